"""The refusals of public reports hold for each source of a table: the same fault, wherever the table lies."""

from __future__ import annotations

import datetime as dt
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from local_cloaking import InputError, SqlTable
from local_cloaking.measuring import Inputs, measure_files
from local_cloaking.sources import stored_path
from tests.browser import absent
from tests.database import PASSWORD, Database, database

__all__ = ["database"]

N = 120


def both(values: Any = None, avatars: Any = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Originals and avatars near them, paired by a key, and a column ``c`` where values are given."""
    rng = np.random.default_rng(0)
    originals = pd.DataFrame(rng.normal(size=(N, 3)), columns=["x", "y", "z"])
    others = originals + rng.normal(scale=0.3, size=(N, 3))
    for frame in (originals, others):
        frame.insert(0, "id", [f"{i:04d}" for i in range(N)])
    if values is None:
        return originals, others
    return originals.assign(c=values), others.assign(c=values if avatars is None else avatars)


def cycle(*values: Any) -> list[Any]:
    return [values[i % len(values)] for i in range(N)]


# --- the sources ---


def in_files(suffix: str) -> Callable[..., list[Any]]:
    def write(frames: tuple[pd.DataFrame, ...], folder: Path, database: Database | None) -> list[Any]:
        places = [folder / f"{name}{suffix}" for name in ("originals", "avatars")]
        for frame, place in zip(frames, places, strict=True):
            if suffix == ".csv":
                frame.to_csv(place, index=False)
            elif suffix == ".parquet":
                frame.to_parquet(place, index=False)
            elif suffix == ".arrow":
                frame.to_feather(place)
            elif suffix == ".sas7bdat":
                write_sas(frame, place)
            else:
                pyreadstat = pytest.importorskip("pyreadstat", reason="pyreadstat is not installed (extra `sas`)")
                how = {".xpt": pyreadstat.write_xport, ".dta": pyreadstat.write_dta}[suffix]
                how(frame, place)
        return places

    return write


def write_sas(frame: pd.DataFrame, place: Path) -> None:
    """Written by Debian's readstat, as pyreadstat writes none; dates are plain numbers there."""
    pyreadstat = pytest.importorskip("pyreadstat", reason="pyreadstat is not installed (extra `sas`)")
    if shutil.which("readstat") is None:
        absent("readstat is not installed (Debian's package readstat)")
    pyreadstat.write_dta(frame, place.with_suffix(".dta"))
    subprocess.run(["readstat", "-f", place.with_suffix(".dta"), place], check=True, capture_output=True)


def in_folders(frames: tuple[pd.DataFrame, ...], folder: Path, database: Database | None) -> list[Any]:
    places = [folder / name for name in ("originals", "avatars")]
    for frame, place in zip(frames, places, strict=True):
        place.mkdir()
        for number, rows in enumerate((frame[:50], frame[50:])):
            rows.to_parquet(place / f"part-{number}.parquet", index=False)
    return places


def in_storage(frames: tuple[pd.DataFrame, ...], folder: Path, database: Database | None) -> list[Any]:
    places = [f"memory://{folder.name}/{name}.csv" for name in ("originals", "avatars")]
    for frame, place in zip(frames, places, strict=True):
        stored_path(place).write_bytes(frame.to_csv(index=False).encode())
    return places


def in_sqlite(frames: tuple[pd.DataFrame, ...], folder: Path, database: Database | None) -> list[Any]:
    url = f"sqlite:///{folder / 'trial.db'}"
    with sqlite3.connect(folder / "trial.db") as connection:
        for frame, name in zip(frames, ("originals", "avatars"), strict=True):
            frame.to_sql(name, connection, index=False)
    return [f"{url}#{name}" for name in ("originals", "avatars")]


def in_postgresql(frames: tuple[pd.DataFrame, ...], folder: Path, database: Database | None) -> list[Any]:
    assert database is not None
    for frame, name in zip(frames, ("case_originals", "case_avatars"), strict=True):
        frame.to_sql(name, database.engine, index=False, if_exists="replace")
    return [SqlTable(url=database.url, table=name) for name in ("case_originals", "case_avatars")]


def in_memory(frames: tuple[pd.DataFrame, ...], folder: Path, database: Database | None) -> list[Any]:
    return list(frames)


def in_arrow(frames: tuple[pd.DataFrame, ...], folder: Path, database: Database | None) -> list[Any]:
    return [pa.Table.from_pandas(frame, preserve_index=False) for frame in frames]


SOURCES: dict[str, Callable[..., list[Any]]] = {
    "csv": in_files(".csv"),
    "parquet": in_files(".parquet"),
    "folder": in_folders,
    "feather": in_files(".arrow"),
    "xport": in_files(".xpt"),
    "stata": in_files(".dta"),
    "sas7bdat": in_files(".sas7bdat"),
    "storage": in_storage,
    "sqlite": in_sqlite,
    "postgresql": in_postgresql,
    "frame": in_memory,
    "arrow": in_arrow,
}


#: Looked at by `make test`; the others by `make test-stack`, as all together take minutes.
QUICK = ("folder", "xport", "postgresql")


@pytest.fixture(params=[pytest.param(name, marks=[] if name in QUICK else pytest.mark.stack) for name in SOURCES])
def measure(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Write both tables to a source, and measure them there."""
    server = request.getfixturevalue("database") if request.param == "postgresql" else None
    monkeypatch.setenv("PGPASSWORD", PASSWORD)

    def written_and_measured(frames: tuple[pd.DataFrame, pd.DataFrame], **options: Any) -> Any:
        places = SOURCES[request.param](frames, tmp_path, server)
        return measure_files(Inputs(*places), ncp=2, ladder=False, **{"key": "id", **options}).result

    return written_and_measured


def expected(frames: tuple[pd.DataFrame, pd.DataFrame], **options: Any) -> list[int]:
    return sorted(measure_files(Inputs(*frames), ncp=2, key="id", ladder=False, **options).result.counts.tolist())


def twice_in(source: str, folder: Path, database: Database | None) -> list[Any]:
    """Originals as they should be, and avatars whose column ``x`` stands twice, as a source can have it."""
    originals, avatars = both()
    if source in ("sqlite", "postgresql"):
        places = SOURCES[source]((originals, avatars), folder, database)
        url, table = places[1].split("#") if source == "sqlite" else (places[1].url, places[1].table)
        return [places[0], SqlTable(url=url, sql=f"SELECT id, x, y, z, x FROM {table}")]
    names = [*avatars.columns, "x"]
    if source in ("csv", "storage", "frame"):
        return SOURCES[source]((originals, avatars[names]), folder, database)
    doubled = pa.Table.from_arrays([pa.array(avatars[name]) for name in names], names=names)
    if source == "arrow":
        return [pa.Table.from_pandas(originals, preserve_index=False), doubled]
    places = SOURCES[source]((originals, avatars), folder, database)
    file = places[1] / "part-0.parquet" if source == "folder" else places[1]
    if source == "feather":
        feather.write_feather(doubled, file)
    else:
        parquet.write_table(doubled, file)
    return places


# --- the cases; each fault stands in one cell or more of the avatars ---

REFUSED: dict[str, tuple[tuple[pd.DataFrame, pd.DataFrame], str, int | None]] = {
    "unseen category": (both(cycle("a", "b", "c"), ["unmistakable", *cycle("a", "b", "c")[1:]]), "c", 1),
    "number against text": (both(cycle(1, 2, 3), cycle("a", "b", "unmistakable")), "c", None),
    "names individuals": (both([f"unmistakable {i}" for i in range(N)]), "c", N),
    "numbers as text": (both(cycle(*map(str, np.arange(40) / 7), "unmistakable")), "c", None),
    "no value": (both([None] * N), "c", N),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_column_and_rows(measure, case):
    frames, column, rows = REFUSED[case]
    with pytest.raises(InputError) as caught:
        measure(frames)
    assert caught.value.column == column
    assert rows is None or caught.value.rows == rows
    assert caught.value.remedy
    assert "unmistakable" not in str(caught.value)


def test_one_avatar_fewer_is_refused(measure):
    originals, avatars = both()
    with pytest.raises(InputError):
        measure((originals, avatars.iloc[1:]))


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(name, marks=[] if name in QUICK else pytest.mark.stack)
        for name in SOURCES
        if name not in ("xport", "stata", "sas7bdat")  # They have no such tables.
    ],
)
def test_a_name_that_stands_twice_is_refused(source, tmp_path, request, monkeypatch):
    """[Anonymeter 37]"""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    server = request.getfixturevalue("database") if source == "postgresql" else None
    with pytest.raises(InputError) as caught:
        measure_files(Inputs(*twice_in(source, tmp_path, server)), ncp=2, key="id", ladder=False)
    assert caught.value.column == "x"
    assert caught.value.remedy


def test_a_key_that_stands_twice_is_refused(measure):
    originals, avatars = both()
    with pytest.raises(InputError) as caught:
        measure((originals, avatars.assign(id=["0001", *avatars["id"][1:]])))
    assert caught.value.column == "id"
    assert "0001" not in str(caught.value)


def test_an_infinite_number_is_refused(measure, request):
    if any(kind in request.node.name for kind in ("xport", "stata", "sas7bdat")):
        pytest.skip("these formats have no infinite numbers")
    originals, avatars = both()
    avatars.loc[3, "x"] = -np.inf
    with pytest.raises(InputError) as caught:
        measure((originals, avatars))
    assert caught.value.column == "x"


MEASURED: dict[str, tuple[pd.DataFrame, pd.DataFrame]] = {
    "plain": both(),
    "an absent category": both(cycle("a", "b", "c"), cycle("a", "b", "b")),
    "a category with leading zeros": both(cycle("01", "02", "003")),
    "a missing cell": both([None, *cycle(1.5, 2.5, 4.0)[1:]]),
    "a missing category": both([None, *cycle("a", "b")[1:]]),
    "dates": both(
        [dt.datetime(2020, 1, 1) + dt.timedelta(days=i) for i in range(N)],
        [dt.datetime(2020, 1, 1) + dt.timedelta(days=i + i % 7) for i in range(N)],
    ),
}


@pytest.mark.parametrize("case", MEASURED)
def test_measured_alike_wherever_it_lies(measure, case):
    frames = MEASURED[case]
    result = measure(frames)
    assert sorted(result.counts.tolist()) == expected(frames)


def test_odd_names_are_measured_alike(measure, request):
    if any(kind in request.node.name for kind in ("xport", "stata", "sas7bdat")):
        pytest.skip("these formats have no such names")
    odd = {"x": 'petal "length" (cm)', "y": "é.à", "z": "🙂 %s :z"}
    frames = tuple(frame.rename(columns=odd) for frame in both())
    assert sorted(measure(frames).counts.tolist()) == expected(frames)


@pytest.mark.parametrize("values", [cycle(True, False, True)])
def test_truth_values_are_categories_wherever_they_lie(measure, values):
    frames = both(values)
    # SAS and Stata have only 0 and 1, which are declared.
    assert sorted(measure(frames, categorical=["c"]).counts.tolist()) == expected(frames)
