"""Small files that claim or unpack to more than a machine has: refused, in little memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pytest
from tests import bombs

from local_cloaking import InputError
from local_cloaking.tables import read_table
from local_cloaking.tables.packing import unpacked

BOMBS = {
    "a line of 100 MB": (bombs.long_line, "cannot be split into rows"),
    "a million columns": (bombs.many_columns, "has 1000000 columns"),
    "gzip": (bombs.gzip_bomb, "unpacks to more than"),
    "zstd": (bombs.zstd_bomb, "unpacks to more than"),
    "a claim of two billion rows": (bombs.parquet_of_a_billion_rows, "claims 2000000000 rows"),
    "one text of 1.5 GB in Parquet": (bombs.parquet_of_one_long_text, "unpacks to more than"),
    "many columns of Parquet": (bombs.parquet_of_many_columns, "has 30000 columns"),
}

_READ = """
import resource, sys
from local_cloaking import InputError
from local_cloaking.tables import read_table
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_table(sys.argv[1])
except InputError as refusal:
    print(refusal)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


@pytest.mark.stack
@pytest.mark.parametrize("name", BOMBS)
def test_refused_in_little_memory(name: str, tmp_path: Path) -> None:
    make, why = BOMBS[name]
    path = tmp_path / "table"
    path.write_bytes(make())
    done = subprocess.run(
        [sys.executable, "-c", _READ, path], capture_output=True, text=True, check=True, timeout=600
    )
    said, megabytes = done.stdout.splitlines()
    assert why in said
    # Of what is packed or long, what was unpacked or read, once or twice.
    assert int(megabytes) < 700


def test_a_claim_of_two_billion_rows_is_refused_before_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "table"
    path.write_bytes(bombs.parquet_of_a_billion_rows())
    with pytest.raises(InputError, match="claims 2000000000 rows"):
        read_table(path)


@pytest.mark.parametrize("kind", ["csv", "parquet", "feather"])
def test_more_columns_than_can_be_measured_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("local_cloaking.tables.arrow.MOST_COLUMNS", 5)
    path = tmp_path / "table"
    frame = pd.DataFrame({f"c{place}": [1.5] for place in range(6)})
    frame.to_csv(path, index=False) if kind == "csv" else getattr(frame, f"to_{kind}")(path)
    with pytest.raises(InputError, match="has 6 columns, more than 5"):
        read_table(path)


def test_a_parquet_file_that_unpacks_to_more_than_a_table_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("local_cloaking.tables.packing.SMALLEST_LIMIT", 1000)
    path = tmp_path / "table"
    pd.DataFrame({"a": ["x" * 1_000_000, "y"]}).to_parquet(path, compression="zstd")
    with pytest.raises(InputError, match="unpacks to more than"):
        read_table(path)


# Found by `make fuzz` -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [114, 117, 118])
@pytest.mark.parametrize("columns", [True, False])
def test_a_stata_file_that_claims_half_a_billion_rows_is_refused(
    tmp_path: Path, version: int, columns: bool
) -> None:
    pytest.importorskip("pyreadstat", reason="pyreadstat is not installed (extra `sas`)")
    path = tmp_path / "table"
    pd.DataFrame({"a": [1.5] * 12}).to_stata(path, version=version, write_index=False)
    data = bytearray(path.read_bytes())
    at = data.index(b"<N>") + 3 if version > 114 else 6
    data[at : at + 4] = (536_870_912).to_bytes(4, "little")
    if not columns:
        at = data.index(b"<K>") + 3 if version > 114 else 4
        data[at : at + 2] = bytes(2)
    path.write_bytes(data)
    with pytest.raises(InputError, match="damaged or incomplete"):
        read_table(path)


def test_a_time_zone_that_is_no_text_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "table"
    pa.feather.write_feather(pa.table({"at": pa.array([1, 2], pa.timestamp("s", "Zo/ne"))}), path)
    path.write_bytes(path.read_bytes().replace(b"Zo/ne", b"Zo\xf5ne"))
    with pytest.raises(InputError, match="damaged or incomplete"):
        read_table(path)


def test_damaged_zstd_files_leave_no_memory_behind() -> None:
    good = pa.Codec("zstd").compress(b"a,b\n" * 5000, asbytes=True)

    def addresses() -> int:
        return int(Path("/proc/self/statm").read_text().split()[0]) * 4096

    if not Path("/proc/self/statm").exists():
        pytest.skip("this system does not tell how much memory a process has")
    for place in range(50):
        if place == 10:
            before = addresses()
        with pytest.raises(InputError):
            unpacked(good[:-6] + b"\xff" * 6)
    assert addresses() - before < 20 << 20
