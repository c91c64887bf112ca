"""Data sets as writers leave them, and those that are no one table."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from local_cloaking import InputError, pairing
from local_cloaking.measuring import Inputs, measure_files
from tests.cluster import kill_the_fullest
from tests.partitioned import mixed, noisy, write_both, write_parts

pytest.importorskip("distributed", reason="Dask is not installed (extra `dask`)")

from local_cloaking.distributed import engine, measure, measure_partitions
from local_cloaking.distributed.engine import ClusterError


@pytest.fixture
def folders(tmp_path) -> tuple[Path, Path]:
    originals = mixed()
    inputs = write_both(originals, noisy(originals), tmp_path).folders
    return Path(inputs.originals), Path(inputs.avatars)


def test_empty_partitions_and_single_files_are_taken(at_once, folders, tmp_path):
    originals, avatars = folders
    pd.read_parquet(originals / "part.0.parquet").iloc[:0].to_parquet(originals / "part.1a.parquet", index=False)
    mixed_inputs = Inputs(originals, avatars.parent / "avatars.parquet")
    there = measure_partitions(mixed_inputs, scheduler=at_once)
    here = measure_files(Inputs(originals.parent / "originals.parquet", mixed_inputs.avatars))
    assert np.array_equal(there.result.counts, np.sort(here.result.counts))
    assert there.entries["avatars_sha256"] == here.entries["avatars_sha256"]


def test_types_that_come_out_as_one_are_no_other_schema(at_once, folders):
    """Narrow integers, large strings, and a column without a value in one partition."""
    originals, avatars = folders
    path = originals / "part.1.parquet"
    table = pq.read_table(path)
    table = table.set_column(table.column_names.index("size"), "size", table["size"].cast(pa.int16()))
    table = table.set_column(table.column_names.index("arm"), "arm", table["arm"].cast(pa.large_string()))
    pq.write_table(table.set_column(table.column_names.index("b"), "b", pa.nulls(len(table))), path)
    whole = mixed()
    start = len(pd.read_parquet(originals / "part.0.parquet"))
    whole.loc[start : start + len(table) - 1, "b"] = np.nan
    whole.to_parquet(originals.parent / "whole.parquet", index=False)
    there = measure_partitions(Inputs(originals, avatars), scheduler=at_once)
    here = measure_files(Inputs(originals.parent / "whole.parquet", originals.parent / "avatars.parquet"))
    assert np.array_equal(there.result.counts, np.sort(here.result.counts))
    assert there.entries["columns"] == here.entries["columns"]


def other_column(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.rename(columns={"a": "other"})


def other_type(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(size=frame["size"].astype(float))


@pytest.mark.parametrize(
    ("change", "message"), [(other_column, "in some partitions only"), (other_type, "it is double here")]
)
def test_partitions_of_unlike_schemas_are_refused(at_once, folders, change: Callable[..., Any], message):
    path = folders[1] / "part.2.parquet"
    change(pd.read_parquet(path)).to_parquet(path, index=False)
    with pytest.raises(InputError, match=message) as refused:
        measure_partitions(Inputs(*folders), scheduler=at_once)
    assert refused.value.file == "part.2.parquet"


def test_a_damaged_partition_is_named(cluster, folders):
    (folders[1] / "part.1.parquet").write_bytes(b"PAR1 damaged")
    with pytest.raises(InputError, match="damaged") as refused:
        measure_partitions(Inputs(*folders), scheduler=cluster.address)
    assert refused.value.file == "part.1.parquet"


def test_more_levels_than_anything_is_made_for_are_refused_alike(at_once, tmp_path, monkeypatch):
    """By both: not an identifier by its share, but no category either."""
    names = [f"name {i}" for i in range(10_001)]
    originals = pd.DataFrame({"x": np.arange(40_004.0) % 97, "name": names * 4})
    both = write_both(originals, originals, tmp_path)
    with pytest.raises(InputError, match="more than 10000 different values in 40004 rows") as here:
        measure_files(both.files)
    with pytest.raises(InputError) as there:
        measure_partitions(both.folders, scheduler=at_once)
    assert str(here.value) == str(there.value)


@pytest.mark.parametrize("key", [None, "id"])
def test_shuffled_avatars_are_told_from_a_sample_as_on_one_machine(at_once, tmp_path, monkeypatch, key):
    monkeypatch.setattr(pairing, "EARLY_STOP_ROWS", 500)
    monkeypatch.setattr(pairing, "EARLY_STOP_SAMPLES", (100, 200))
    originals = mixed(900).assign(id=np.arange(900))
    avatars = noisy(originals).sample(frac=1, random_state=1).assign(id=np.arange(900))
    both = write_both(originals, avatars, tmp_path)
    options = {"key": key} if key else {"drop": ["id"]}
    here = measure_files(both.files, **options)
    there = measure_partitions(both.folders, scheduler=at_once, **options)
    assert len(here.result.counts) == len(there.result.counts) == 0
    assert here.entries["pairing_evidence"]["sample"] == 100
    assert "look shuffled" in here.entries["reason"]
    assert there.entries["reason"] == here.entries["reason"]
    for name, value in here.entries["pairing_evidence"].items():
        assert there.entries["pairing_evidence"][name] == pytest.approx(value)
    assert math.isnan(there.result.median)


def test_a_partition_that_is_read_again_must_be_the_same(cluster, tmp_path, monkeypatch):
    """A worker dies, what it held is made again from the file, and the file is another by then."""
    from distributed import Client

    originals = mixed()
    avatars = write_parts(noisy(originals), tmp_path / "avatars", [60, 120, 180, 240])
    originals = write_parts(originals, tmp_path / "originals", [60, 120, 180, 240])
    with Client(cluster.address, set_as_default=False) as client:
        cluster.add_worker()
        cluster.await_workers(client, at_least=3)
        cells = measure.Cells

        def lost(*args: Any) -> Any:
            monkeypatch.setattr(measure, "Cells", cells)
            for folder in (originals, avatars):
                for path in folder.glob("*.parquet"):
                    path.write_bytes(path.read_bytes() + b"PAR1")
            kill_the_fullest(client)
            return cells(*args)

        monkeypatch.setattr(measure, "Cells", lost)
        # Which of the two it is depends on what of the lost is made again first.
        with pytest.raises((InputError, ClusterError), match="changed"):
            measure_partitions(Inputs(originals, avatars), scheduler=cluster.address)


def test_word_is_given_of_how_far_the_counting_is(cluster, folders, monkeypatch):
    monkeypatch.setattr(engine, "PULSE_SECONDS", 0.01)
    told: list[tuple[int, int]] = []
    progress = lambda done, total: told.append((done, total))  # noqa: E731
    measure_partitions(Inputs(*folders), scheduler=cluster.address, progress=progress)
    assert told
    assert {total for _, total in told} == {300}
    assert told == sorted(told)
