"""Runs of a gated DAG that measures on a Dask cluster, from local folders and from object storage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.cluster import free_port
from tests.partitioned import Both, write_both
from tests.storage import connect_storage

from local_cloaking.measuring import measure_files

pytest.importorskip("distributed", reason="Dask is not installed (extra `dask`)")


SOURCE = """
from datetime import datetime, timedelta
from airflow.sdk import DAG, task
from local_cloaking.airflow import *

with DAG("distributed", schedule=None, start_date=datetime(2026, 1, 1), params=dict(scheduler="{scheduler}"),
         default_args=dict(retries=1, retry_delay=timedelta(seconds=0))) as dag:
    gate = local_cloaking_gate(
        "gate", originals="{place}/originals", avatars="{place}/avatars", key="id", ncp=3, threshold={threshold},
        dask_scheduler="{{{{ params.scheduler }}}}")

    @task
    def publish(verdict):
        return require_passed(verdict, "{place}/avatars")

    publish(gate.verdict)
"""


@pytest.fixture
def both(tables, tmp_path) -> Both:
    frames = [pd.read_csv(path, dtype={"id": str}) for path in (tables.originals, tables.avatars)]
    (tmp_path / "tables").mkdir()
    return write_both(frames[0], frames[1], tmp_path / "tables")


def test_measured_checked_and_published(run_dag, both, cluster):
    place = Path(both.folders.avatars).parent
    run = run_dag(SOURCE.format(scheduler=cluster.address, place=place, threshold=3))
    assert run.state == "success"
    measured, verdict = run.result("gate.local_cloaking"), run.result("gate.check")
    alone = measure_files(both.files, key="id", ncp=3)
    assert measured["local_cloaking"] == verdict["local_cloaking"] == alone.result.median
    counts = pd.read_parquet(measured["counts"])
    assert np.array_equal(counts["closer"], np.sort(alone.result.counts))
    assert run.result("publish") == str(both.folders.avatars)


@pytest.mark.parametrize("change", ["replaced", "added", "taken away", "a file beside"])
def test_a_folder_that_is_not_what_passed_is_not_published(run_dag, both, cluster, change):
    from airflow.providers.common.compat.sdk import AirflowFailException

    from local_cloaking.airflow import require_passed

    folder = Path(both.folders.avatars)
    verdict = run_dag(SOURCE.format(scheduler=cluster.address, place=folder.parent, threshold=3)).result(
        "gate.check"
    )
    assert require_passed(verdict, folder) == str(folder)
    part = folder / "part.1.parquet"
    if change == "replaced":
        part.write_bytes((folder / "part.0.parquet").read_bytes())
    elif change == "added":
        (folder / "part.9.parquet").write_bytes(part.read_bytes())
    elif change == "taken away":
        part.unlink()
    else:
        (folder / "names.csv").write_text("name\n")
    with pytest.raises(AirflowFailException):
        require_passed(verdict, folder)


def test_a_refusal_is_final_and_a_cluster_that_is_not_there_is_not(run_dag, both, cluster, monkeypatch):
    from local_cloaking.distributed import engine

    place = Path(both.folders.avatars).parent
    (place / "avatars" / "part.0.parquet").write_bytes(b"PAR1 damaged PAR1")
    run = run_dag(SOURCE.format(scheduler=cluster.address, place=place, threshold=3))
    assert (run.state, run.tries["gate.local_cloaking"]) == ("failed", 1)
    monkeypatch.setattr(engine, "CONNECT_SECONDS", 1.0)
    run = run_dag(SOURCE.format(scheduler=f"tcp://127.0.0.1:{free_port()}", place=place, threshold=3))
    assert (run.state, run.tries["gate.local_cloaking"]) == ("failed", 2)


def test_from_object_storage(run_dag, both, cluster, endpoint, monkeypatch):
    client = connect_storage(endpoint, monkeypatch, connection="lake", bucket="lake")
    for folder in (both.folders.originals, both.folders.avatars):
        for path in Path(folder).iterdir():
            client.upload_file(str(path), "lake", f"trial/{path.parent.name}/{path.name}")
    run = run_dag(SOURCE.format(scheduler=cluster.address, place="s3://lake@lake/trial", threshold=3))
    assert run.state == "success"
    verdict: dict[str, Any] = run.result("gate.check")
    assert verdict["local_cloaking"] == measure_files(both.files, key="id", ncp=3).result.median
    assert run.result("publish") == "s3://lake@lake/trial/avatars"
    assert "unmistakable-secret" not in json.dumps([*map(str, run.xcoms.values())]) + cluster.log()
    client.delete_object(Bucket="lake", Key="trial/avatars/part.1.parquet")
    from airflow.providers.common.compat.sdk import AirflowFailException

    from local_cloaking.airflow import require_passed

    with pytest.raises(AirflowFailException, match="not the file that passed"):
        require_passed(verdict, "s3://lake@lake/trial/avatars")
