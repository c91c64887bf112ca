"""What happens when a part of the cluster is lost, was never there, or is not what it should be."""

from __future__ import annotations

import pickle
import shutil
import sys
import time
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from local_cloaking import InputError
from local_cloaking.cli import app
from local_cloaking.measuring import measure_files
from tests.cluster import free_port, kill, kill_the_fullest, start_cluster
from tests.partitioned import Both, mixed, noisy, write_both

pytest.importorskip("distributed", reason="Dask is not installed (extra `dask`)")

from local_cloaking.distributed import counting, engine, measure, measure_partitions, survey


@pytest.fixture
def both(tmp_path) -> Both:
    originals = mixed()
    return write_both(originals, noisy(originals), tmp_path)


def before_counting(monkeypatch: pytest.MonkeyPatch, happens: Any) -> None:
    """Let something happen when the rows are encoded and paired on the workers, and nothing is counted yet."""
    cells = measure.Cells

    def first(*args: Any) -> Any:
        monkeypatch.setattr(measure, "Cells", cells)
        happens(args)
        return cells(*args)

    monkeypatch.setattr(measure, "Cells", first)


def test_a_worker_killed_in_the_middle_changes_nothing(cluster, both, monkeypatch):
    from distributed import Client

    with Client(cluster.address, set_as_default=False) as client:
        cluster.add_worker()
        cluster.await_workers(client, at_least=3)
        before_counting(monkeypatch, lambda _: kill_the_fullest(client))
        result = measure_partitions(both.folders, scheduler=cluster.address).result
    assert np.array_equal(result.counts, np.sort(measure_files(both.files).result.counts))


def test_a_scheduler_without_workers_and_a_scheduler_that_is_lost(both, tmp_path, monkeypatch):
    alone = start_cluster(tmp_path / "cluster", workers=0)
    try:
        monkeypatch.setattr(engine, "WORKERS_SECONDS", 2.0)
        with pytest.raises(engine.ClusterError, match="has no workers"):
            measure_partitions(both.folders, scheduler=alone.address)
        monkeypatch.setattr(engine, "WORKERS_SECONDS", 60.0)
        monkeypatch.setattr(engine, "CONNECT_SECONDS", 5.0)
        alone.add_worker()
        lost_at = []

        def lost(_: Any) -> None:
            lost_at.append(time.monotonic())
            kill(alone.scheduler)

        before_counting(monkeypatch, lost)
        with pytest.raises(engine.ClusterError, match="the scheduler was lost"):
            measure_partitions(both.folders, scheduler=alone.address)
        assert time.monotonic() - lost_at[0] < 60
    finally:
        alone.stop()


def test_nobody_listens(both, monkeypatch):
    monkeypatch.setattr(engine, "CONNECT_SECONDS", 2.0)
    address = f"tcp://127.0.0.1:{free_port()}"
    with pytest.raises(OSError, match="no Dask scheduler answers"):
        measure_partitions(both.folders, scheduler=address)
    arguments = ["measure", str(both.folders.originals), str(both.folders.avatars), "--dask", address]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert done.stderr.strip() == f"refused: {address}: no Dask scheduler answers"


def test_no_address(both):
    with pytest.raises(InputError, match="address of the Dask scheduler"):
        measure_partitions(both.folders, scheduler="nonsense://")


def test_workers_of_another_version_are_refused(cluster, both, monkeypatch):
    here = metadata.version("local-cloaking")
    monkeypatch.setattr(engine.metadata, "version", lambda _: "9.9")
    with pytest.raises(InputError, match=f"a worker has local-cloaking {here}, but 9.9 measures"):
        measure_partitions(both.folders, scheduler=cluster.address)


def test_a_partition_that_changes_while_it_is_measured_is_refused(cluster, both, monkeypatch):
    learnt = measure.learn

    def changed(*args: Any) -> Any:
        part = Path(both.folders.avatars) / "part.1.parquet"
        shutil.copy(Path(both.folders.avatars) / "part.0.parquet", part)
        return learnt(*args)

    monkeypatch.setattr(measure, "learn", changed)
    with pytest.raises(InputError, match="changed while it was measured") as refused:
        measure_partitions(both.folders, scheduler=cluster.address)
    assert refused.value.file == "part.1.parquet"


def test_the_client_reads_no_partition_and_gets_nothing_of_the_size_of_a_table(cluster, tmp_path, monkeypatch):
    def refused(*_: Any) -> None:
        raise AssertionError("the client read a partition")

    monkeypatch.setattr(survey, "read_partition", refused)
    monkeypatch.setattr(counting, "SAMPLE", 200)
    fetched: list[int] = []
    gather = engine.Engine.gather

    def weighed(self: Any, future: Any, pulse: Any = None) -> Any:
        result = gather(self, future, pulse)
        fetched.append(len(pickle.dumps(result)))
        return result

    monkeypatch.setattr(engine.Engine, "gather", weighed)
    largest = []
    for n in (1_000, 16_000):
        (tmp_path / str(n)).mkdir()
        originals = mixed(n)
        tables = write_both(originals, noisy(originals, share=0.01), tmp_path / str(n))
        fetched.clear()
        assert measure_partitions(tables.folders, scheduler=cluster.address).result.n == n
        largest.append((max(fetched), sum(fetched)))
    # Sixteen times the rows; what grows is the list of the different counts.
    assert largest[1][0] < 1.5 * largest[0][0]
    assert largest[1][1] < 1.5 * largest[0][1]


def test_no_cell_stands_in_messages_or_logs(cluster, both, tmp_path):
    originals = mixed()
    avatars = noisy(originals)
    avatars.loc[avatars.index[-1], "arm"] = "unmistakable cell"
    (tmp_path / "more").mkdir()
    tables = write_both(originals, avatars, tmp_path / "more")
    with pytest.raises(InputError, match="1 avatars have a category") as refused:
        measure_partitions(tables.folders, scheduler=cluster.address)
    with engine.connect(cluster.address) as connected:
        task = connected.submit(_fails_in_a_worker, 1)
        with pytest.raises(engine.WorkerFault) as fault:
            connected.gather(task)
    assert "unmistakable" not in f"{refused.value} {fault.value} {cluster.log()}"


def _fails_in_a_worker(_: Any) -> None:
    # A function that workers know, with an argument that it cannot take.
    from local_cloaking.distributed.division import divide

    divide("unmistakable cell", 4)  # type: ignore[arg-type]


def test_without_dask_the_extra_is_named(both, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"Dask is not installed; pip install 'local-cloaking\[dask\]'"):
        measure_partitions(both.folders, scheduler="tcp://127.0.0.1:1")


def test_what_one_machine_alone_can_do_is_refused(both):
    with pytest.raises(InputError, match="not with Dask: pairing"):
        measure_partitions(replace(both.folders, pairing="pairs.csv"), scheduler="tcp://127.0.0.1:1")
