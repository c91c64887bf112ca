"""Feather, SAS, Stata, packed files and folders: read as the same table written as Parquet is, or refused."""

from __future__ import annotations

import datetime as dt
import gzip
import io
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pytest
from tests.browser import absent

from local_cloaking.errors import InputError
from local_cloaking.tables import packing, read_pair, read_table, sha256_of
from local_cloaking.tables.statistical import format_of, read_statistical

pyreadstat = pytest.importorskip("pyreadstat", reason="pyreadstat is not installed (extra `sas`)")

N = 30


def table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"id": [f"{i:04d}" for i in range(N)], "age": rng.integers(20, 80, N)})
    frame["dose"] = [None if i % 7 == 0 else round(i / 3, 3) for i in range(N)]
    frame["arm"] = rng.choice(["placebo", "élevé"], N)
    frame["born"] = pd.to_datetime([dt.datetime(1950 + i, 1, 1 + i) for i in range(N)])
    return frame


def same(found: pd.DataFrame, wanted: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(found, wanted, check_dtype=False)


def feather(frame: pd.DataFrame, path: Path) -> None:
    frame.to_feather(path)


def lz4(frame: pd.DataFrame, path: Path) -> None:
    frame.to_feather(path, compression="lz4")


def stream(frame: pd.DataFrame, path: Path) -> None:
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    with pa.ipc.new_stream(path, arrow.schema) as writer:
        writer.write_table(arrow, max_chunksize=7)


def stata(frame: pd.DataFrame, path: Path) -> None:
    pyreadstat.write_dta(frame, path)


def old_stata(frame: pd.DataFrame, path: Path) -> None:
    frame.to_stata(path, version=114, write_index=False, data_label="x")


def transport(version: int) -> Callable[[pd.DataFrame, Path], None]:
    return lambda frame, path: pyreadstat.write_xport(frame, path, file_format_version=version)


def sas(frame: pd.DataFrame, path: Path) -> None:
    """Written by Debian's readstat: pyreadstat writes none."""
    if shutil.which("readstat") is None:
        absent("readstat is not installed (Debian's package readstat)")
    stata(frame, path.with_suffix(".dta"))
    path.unlink(missing_ok=True)
    made = path.with_suffix(".sas7bdat")
    subprocess.run(["readstat", "-f", path.with_suffix(".dta"), made], check=True, capture_output=True)
    made.rename(path)


WRITERS: dict[str, Callable[[pd.DataFrame, Path], None]] = {
    "feather": feather,
    "feather lz4": lz4,
    "feather stream": stream,
    "stata": stata,
    "stata 114": old_stata,
    "xport 5": transport(5),
    "xport 8": transport(8),
    "sas7bdat": sas,
}
FORMATS = pytest.mark.parametrize("kind", WRITERS)


def written(kind: str, frame: pd.DataFrame, folder: Path) -> Path:
    if kind == "stata 114":  # of latin-1
        frame = frame.replace({"élevé": "eleve"})
    if kind == "sas7bdat":  # readstat writes dates as plain numbers
        frame = frame.drop(columns="born")
    WRITERS[kind](frame, folder / "table")
    return folder / "table"


@FORMATS
@pytest.mark.parametrize("pack", ["", "gzip", "zstd"])
def test_same_table(kind: str, pack: str, tmp_path: Path) -> None:
    frame = table()
    path = written(kind, frame, tmp_path)
    if pack:
        content = path.read_bytes()
        path.write_bytes(gzip.compress(content) if pack == "gzip" else pa.compress(content, "zstd", asbytes=True))
    read = read_table(path, text_columns=["id"])
    wanted = frame.replace({"élevé": "eleve"}) if kind == "stata 114" else frame
    same(read.frame, wanted[list(read.frame.columns)])
    assert read.source.format == kind.split()[0]
    assert (read.source.rows, read.source.sha256) == (N, sha256_of(path))


@FORMATS
def test_only_the_columns_needed_are_read(kind: str, tmp_path: Path) -> None:
    path = written(kind, table(), tmp_path)
    frame = read_table(path, leave_out=["age", "arm", "no such"]).frame
    whole = read_table(path).frame
    assert list(frame.columns) == list(whole.columns)
    assert frame[["age", "arm"]].memory_usage(index=False).sum() == 0
    kept = [name for name in whole.columns if name not in ("age", "arm")]
    same(frame[kept], whole[kept])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_only_the_columns_needed_of_csv_and_parquet_too(kind: str, tmp_path: Path) -> None:
    frame = table().assign(odd="1,5;2.000")
    write = frame.to_csv if kind == "csv" else frame.to_parquet
    write(tmp_path / "table", index=False)
    read = read_table(tmp_path / "table", leave_out=["odd", "dose"], text_columns=["id"]).frame
    assert list(read.columns) == list(frame.columns)
    assert read["odd"].isna().all()
    same(read[["id", "age", "arm"]], frame[["id", "age", "arm"]])


@FORMATS
def test_the_key_is_read_although_it_is_to_be_left_out(kind: str, tmp_path: Path) -> None:
    path = written(kind, table(), tmp_path)
    assert read_table(path, text_columns=["id"], leave_out=["id"]).frame["id"].notna().all()


@pytest.mark.parametrize("kind", [kind for kind in WRITERS if kind != "sas7bdat"])  # readstat writes none
def test_no_rows(kind: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no rows") as caught:
        read_table(written(kind, table().iloc[:0], tmp_path))
    assert (caught.value.rows, caught.value.file) == (0, "table")


@FORMATS
def test_damaged_files_are_refused_or_read_and_never_shown(kind: str, tmp_path: Path) -> None:
    path = written(kind, table().assign(arm="unmistakable"), tmp_path)
    content = path.read_bytes()
    rng = np.random.default_rng(4)
    refused = 0
    for attempt in range(40):
        broken = bytearray(content)
        if attempt % 2:
            del broken[int(rng.integers(90, len(broken))) :]
        else:
            broken[90:] = bytes(byte ^ int(rng.integers(256) * (rng.random() < 0.1)) for byte in broken[90:])
        path.write_bytes(broken)
        said = refusal_of(path)
        assert "unmistakable" not in said
        refused += bool(said)
    assert refused > 10


def refusal_of(path: Path) -> str:
    try:
        read_table(path)
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("what", ["list", "time", "duplicate"])
def test_what_is_no_flat_table_is_refused(what: str, tmp_path: Path) -> None:
    arrays = {"list": pa.array([["unmistakable"]]), "time": pa.array([dt.time(10)]), "duplicate": pa.array([1])}
    arrow = pa.Table.from_arrays([pa.array([1]), arrays[what]], names=["x", "x" if what == "duplicate" else "y"])
    with pa.ipc.new_file(tmp_path / "table", arrow.schema) as writer:
        writer.write_table(arrow)
    with pytest.raises(InputError) as caught:
        read_table(tmp_path / "table")
    assert caught.value.column == ("x" if what == "duplicate" else "y")
    assert "unmistakable" not in str(caught.value)


def test_times_of_day_are_refused(tmp_path: Path) -> None:
    from local_cloaking import local_cloaking

    stata(pd.DataFrame({"x": [1.0, 2.0], "at": [dt.time(10), dt.time(11)]}), tmp_path / "table")
    frame = read_table(tmp_path / "table").frame
    with pytest.raises(InputError) as caught:
        local_cloaking(frame, frame)
    assert caught.value.column == "at"


def test_an_old_feather_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "table").write_bytes(b"FEA1" + bytes(100))
    with pytest.raises(InputError, match="version 1"):
        read_table(tmp_path / "table")


def test_without_pyreadstat_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    with pytest.raises(InputError, match=r"local-cloaking\[sas\]"):
        read_statistical(b"<stata_dta>", "stata")


def test_csv_is_no_statistical_file() -> None:
    for text in (b"hello,b\n1,2\n", b"id;x\n", b"k\x01", b""):
        assert format_of(text) is None


ZSTD = pa.compress(b"a,b\n" + b"1,secret\n" * 999, "zstd", asbytes=True)


@pytest.mark.parametrize("content", [ZSTD[:-3], ZSTD[:20], ZSTD + b"junk", ZSTD[:10] + b"\xff" * 5 + ZSTD[15:]])
def test_broken_zstd(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "table").write_bytes(content)
    with pytest.raises(InputError, match="zstd file is damaged"):
        read_table(tmp_path / "table")


def test_zstd_stops_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "SMALLEST_LIMIT", 1000)
    (tmp_path / "table").write_bytes(pa.compress(b"a,b\n" + b"1,2\n" * 1_000_000, "zstd", asbytes=True))
    with pytest.raises(InputError, match="the zstd file unpacks to more"):
        read_table(tmp_path / "table")


# --- folders ---


def partitioned(frame: pd.DataFrame, folder: Path, *columns: str) -> Path:
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    pa.dataset.write_dataset(
        arrow, folder, format="parquet", partitioning=list(columns), partitioning_flavor="hive"
    )
    return folder


def test_a_partitioned_data_set_is_the_same_table(tmp_path: Path) -> None:
    frame = table().assign(year=[2020 + i % 3 for i in range(N)], site=[f"0{i % 2}" for i in range(N)])
    frame.loc[4, "site"] = None
    folder = partitioned(frame, tmp_path / "lake", "year", "site")
    read = read_table(folder)
    assert set(read.frame.columns) == set(frame.columns)
    assert read.frame["year"].dtype == np.int64
    found = read.frame.sort_values("id", ignore_index=True)[list(frame.columns)]
    same(found, frame)
    assert read.source.sha256 == sha256_of(folder)
    assert (read.source.format, read.source.rows, read.source.name) == ("parquet", N, "lake")
    assert read_table(folder, leave_out=["year", "age"]).frame["year"].isna().all()


def test_renaming_a_folder_changes_the_hash(tmp_path: Path) -> None:
    folder = partitioned(table().assign(year=2020), tmp_path / "lake", "year")
    before = sha256_of(folder)
    (folder / "year=2020").rename(folder / "year=2021")
    assert sha256_of(folder) != before


def test_parts_of_unlike_types_become_one_table(tmp_path: Path) -> None:
    parts = [
        pa.table({"x": pa.array([1], pa.int8()), "c": pa.array(["a"]).dictionary_encode(), "n": pa.nulls(1)}),
        pa.table({"x": pa.array([2], pa.int64()), "c": pa.array(["b"]).dictionary_encode(), "n": pa.array([0.5])}),
        pa.table({"x": pa.array([], pa.int64()), "c": pa.array(["b"]).dictionary_encode()[:0], "n": pa.nulls(0)}),
    ]
    for number, part in enumerate(parts):
        pa.parquet.write_table(part, tmp_path / f"part-{number}.parquet")
    frame = read_table(tmp_path).frame
    assert frame["x"].tolist() == [1, 2]
    assert frame["c"].tolist() == ["a", "b"]
    assert str(frame["c"].dtype) == "category"
    assert frame["n"].isna().tolist() == [True, False]


@pytest.mark.parametrize("what", ["other type", "other columns", "depth", "both", "empty", "damaged"])
def test_what_is_no_one_table_is_refused(what: str, tmp_path: Path) -> None:
    folder = partitioned(pd.DataFrame({"x": [1, 2], "year": [1, 2]}), tmp_path / "lake", "year")
    part = folder / "year=1" / "part-0.parquet"
    if what == "other type":
        pd.DataFrame({"x": ["unmistakable"]}).to_parquet(part)
    elif what == "other columns":
        pd.DataFrame({"x": [1], "y": [1]}).to_parquet(part)
    elif what == "depth":
        pd.DataFrame({"x": [1]}).to_parquet(folder / "part-1.parquet")
    elif what == "both":
        for number in (1, 2):
            pd.DataFrame({"x": [1], "year": [1]}).to_parquet(folder / f"year={number}" / "part-0.parquet")
    elif what == "empty":
        for number in (1, 2):
            pd.DataFrame({"x": [1]}).iloc[:0].to_parquet(folder / f"year={number}" / "part-0.parquet")
    else:
        part.write_bytes(part.read_bytes()[:50])
    with pytest.raises(InputError) as caught:
        read_table(folder)
    assert caught.value.remedy
    assert "unmistakable" not in str(caught.value)


# --- in memory ---


@pytest.mark.parametrize("of", ["pandas", "arrow"])
def test_a_table_in_memory(of: str) -> None:
    frame = table()
    given: Any = frame if of == "pandas" else pa.Table.from_pandas(frame, preserve_index=False)
    one, other = read_pair(given, given)
    same(one.frame, frame)
    assert one.source == other.source
    assert (one.source.format, one.source.rows, one.source.name) == ("table", N, "table")
    assert sha256_of(given) == one.source.sha256
    changed = frame.assign(age=frame["age"] + (frame["id"] == "0007"))
    assert sha256_of(changed if of == "pandas" else pa.Table.from_pandas(changed)) != one.source.sha256
    assert sha256_of(frame.sample(frac=1, random_state=1)) == sha256_of(frame)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"x": ["unmistakable", 1]}),
        pd.DataFrame({"x": [["unmistakable"], [1]]}),
        pd.DataFrame([[1, 2]], columns=["x", "x"]),
        pd.DataFrame({"x": []}),
    ],
)
def test_a_frame_that_cannot_be_measured(frame: pd.DataFrame) -> None:
    with pytest.raises(InputError) as caught:
        read_table(frame)
    assert "unmistakable" not in str(caught.value)
    assert "unmistakable" not in str(caught.value.__context__)


def test_a_feather_file_with_a_stored_index_is_refused(tmp_path: Path) -> None:
    arrow = pa.Table.from_pandas(pd.DataFrame({"age": [41]}, index=pd.Index(["somebody"], name="person")))
    buffer = io.BytesIO()
    pyarrow.feather.write_feather(arrow, buffer)
    (tmp_path / "table").write_bytes(buffer.getvalue())
    with pytest.raises(InputError, match="index of a pandas table"):
        read_table(tmp_path / "table")
