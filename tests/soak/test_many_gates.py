"""Many gates at once on one audit store, many runs in a row of one scheduler: nothing is lost, nothing grows."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

pytest.importorskip("airflow", reason="apache-airflow is not installed (extra `airflow`)")

from tests.integration.conftest import Tables, airflow_home, make_tables, run_dag, tables
from tests.live import Airflow, live_airflow
from tests.reliability import note_figures

psutil = pytest.importorskip("psutil", reason="psutil is not installed (it comes with Airflow)")

__all__ = ["airflow_home", "run_dag", "tables"]

pytestmark = [pytest.mark.integration, pytest.mark.soak]

#: Smaller numbers try the tests; the documented figures come from these.
GATES = int(os.environ.get("LOCAL_CLOAKING_SOAK_GATES", "100"))
RUNS = int(os.environ.get("LOCAL_CLOAKING_SOAK_RUNS", "200"))
#: So many runs in a row tell a leak from what is kept on purpose.
FEW = 40
THRESHOLD = 4
SOURCE = """
import pendulum
from airflow.sdk import DAG, task, task_group
from local_cloaking.airflow import local_cloaking_gate, require_passed

OPTIONS = dict(schedule=None, start_date=pendulum.datetime(2026, 1, 1, tz="UTC"), max_active_tasks=32)
MEASURE = dict(originals="{folder}/originals.csv", key="id", ncp=3, threshold={threshold})

with DAG("many", **OPTIONS, params=dict(gates=1)) as many:
    @task
    def data_sets(params=None):
        return [dict(number=str(i), avatars=f"{folder}/avatars-{{i}}.csv") for i in range(params["gates"])]

    @task_group
    def gated(number, avatars):
        local_cloaking_gate("gate", avatars=avatars, data_set=number, **MEASURE)

    gated.expand_kwargs(data_sets())

with DAG("again", **OPTIONS) as again:
    gate = local_cloaking_gate("gate", avatars="{folder}/avatars-0.csv", data_set="again", **MEASURE)

    @task
    def publish(verdict):
        return require_passed(verdict, "{folder}/avatars-0.csv")

    gate >> publish(gate.verdict)
"""


def write_tables(folder: Path, number: int) -> dict[str, float]:
    """Write originals, and as many tables of avatars, each with a Local Cloaking of its own; return those."""
    from local_cloaking import avatarise_in_space, local_cloaking

    originals = pd.read_csv(make_tables(folder).originals, dtype={"id": str})
    found = {}
    for i in range(number):
        k = 10 + i % 30
        avatars = avatarise_in_space(originals, k=k, ncp=3, seed=i, key="id").avatars
        avatars.sample(frac=1, random_state=i).to_csv(folder / f"avatars-{i}.csv", index=False)
        again = pd.read_csv(folder / f"avatars-{i}.csv", dtype={"id": str})
        found[str(i)] = local_cloaking(originals, again, key="id", ncp=3).median
    return found


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, float]]:
    folder = tmp_path_factory.mktemp("tables")
    return folder, write_tables(folder, GATES)


@pytest.fixture(scope="module")
def airflow(expected: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    source = SOURCE.format(folder=expected[0], threshold=THRESHOLD)
    home = tmp_path_factory.mktemp("airflow") / "home"
    settings = {"CORE__PARALLELISM": 8, "CORE__MAX_ACTIVE_TASKS_PER_DAG": 32}
    with live_airflow(home, {"soak.py": source}, settings=settings) as airflow:
        for dag_id in ("many", "again"):
            airflow.unpause(dag_id)
        yield airflow


def verdicts_of(airflow: Airflow, run_id: str, number: int) -> list[dict[str, Any]]:
    path = f"{airflow.run_path('many', run_id)}/taskInstances/gated.gate.check/xcomEntries/return_value"
    return [airflow.ask(f"{path}?map_index={i}&deserialize=false&stringify=false")["value"] for i in range(number)]


def test_gates_of_two_runs_at_once_on_one_audit_store(airflow: Airflow, expected: Any) -> None:
    """A verdict and a record each, all right, none in the place of another."""
    numbers = (GATES, min(10, GATES))
    run_ids = [airflow.trigger("many", gates=number) for number in numbers]
    for run_id in run_ids:
        airflow.wait("end", lambda run_id=run_id: airflow.ended("many", run_id), seconds=5400)
    records, found = set(), expected[1]
    for run_id, number in zip(run_ids, numbers, strict=True):
        for i, verdict in enumerate(verdicts_of(airflow, run_id, number)):
            content = Path(verdict["record"]).read_bytes()
            record = json.loads(content)
            assert hashlib.sha256(content).hexdigest() == verdict["record_sha256"]
            assert (record["judged"]["run"]["run_id"], record["data_set"]) == (run_id, str(i))
            assert record["local_cloaking"] == verdict["local_cloaking"] == found[str(i)]
            assert record["verdict"] == ("passed" if found[str(i)] >= THRESHOLD else "below_threshold")
            assert Path(verdict["report"]).exists()
            records.add(verdict["record"])
    audit = airflow.home / "audit"
    assert len(records) == sum(numbers) == len(list(audit.rglob("record.json")))
    assert len(list((audit / "index").rglob("*.json"))) == sum(numbers)
    assert [path.name for path in audit.rglob(".*")] == []
    note_figures("soak-gates", at_once=sum(numbers), verdicts=len(records))


def workers_of(airflow: Airflow) -> list[Any]:
    """The processes of the scheduler that outlive a task."""
    return [psutil.Process(airflow.processes["scheduler"].pid)] + [
        child
        for child in psutil.Process(airflow.processes["scheduler"].pid).children(recursive=True)
        if "worker" in " ".join(child.cmdline()) or "worker" in child.name()
    ]


def held(processes: list[Any]) -> tuple[int, int]:
    """Return how many bytes of memory processes hold, and how many files are open in them."""
    return (
        sum(process.memory_info().rss for process in processes if process.is_running()),
        sum(process.num_fds() for process in processes if process.is_running()),
    )


def assert_nothing_grows(samples: list[tuple[int, int]], memory: float) -> None:
    """The last quarter holds what the second held, but for a share of its memory; of few runs nothing is said."""
    if len(samples) < FEW:
        return
    quarter = max(len(samples) // 4, 1)
    early, late = samples[quarter : 2 * quarter], samples[-quarter:]
    before, after = (statistics.median(sample[0] for sample in some) for some in (early, late))
    assert after < before * (1 + memory), f"memory grew from {before:,.0f} to {after:,.0f} bytes"
    files = max(sample[1] for sample in early), statistics.median(sample[1] for sample in late)
    assert files[1] <= files[0], f"open files grew from {files[0]} to {files[1]}"


def test_many_runs_in_a_row_of_one_scheduler(airflow: Airflow, expected: Any) -> None:
    samples = []
    for _ in range(RUNS):
        run_id, _ = airflow.run("again")
        verdict = airflow.result("again", run_id, "gate.check")
        assert verdict["local_cloaking"] == expected[1]["0"]
        samples.append(held(workers_of(airflow)))
    assert_nothing_grows(samples, memory=0.1)
    note_figures("soak-scheduler", runs_in_a_row=RUNS)


def test_many_runs_in_a_row_of_one_process(run_dag: Any, tables: Tables) -> None:
    """As in a worker that does not start a process for each task: what the package itself leaves behind."""
    source = f"""
from datetime import datetime
from airflow.sdk import DAG, task
from local_cloaking.airflow import *

with DAG("again", schedule=None, start_date=datetime(2026, 1, 1)) as dag:
    gate = local_cloaking_gate("gate", originals="{tables.originals}", avatars="{tables.avatars}", key="id",
                               ncp=3, threshold=3, groups=["arm"])
    @task
    def publish(verdict):
        return require_passed(verdict, "{tables.avatars}")

    publish(gate.verdict)
"""
    samples = []
    for _ in range(RUNS):
        assert run_dag(source).state == "success"
        gc.collect()  # What `dag.test()` itself leaves open is closed when it is collected.
        samples.append(held([psutil.Process()]))
    assert_nothing_grows(samples, memory=0.1)
    note_figures("soak-process", runs_in_a_row=RUNS)
