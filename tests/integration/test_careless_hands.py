"""A whole Airflow, and somebody with every right who tries to get avatars out that did not pass."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

pytest.importorskip("airflow", reason="apache-airflow is not installed (extra `airflow`)")

from tests.integration.conftest import make_tables
from tests.live import Airflow, live_airflow

pytestmark = [pytest.mark.integration, pytest.mark.stack]

#: The tables' Local Cloaking is 4.
PASSING, FAILING = 3, 50
SOURCE = """
import shutil
from pathlib import Path
import pendulum
from airflow.sdk import DAG, task
from local_cloaking.airflow import local_cloaking_gate, require_passed

with DAG("careful", schedule=None, start_date=pendulum.datetime(2026, 1, 1, tz="UTC")) as dag:
    gate = local_cloaking_gate("gate", originals="{originals}", avatars="{{{{ params.avatars }}}}", key="id",
                               ncp=3, threshold="{{{{ params.threshold }}}}")

    @task
    def publish(verdict, avatars, run_id=None):
        passed = require_passed(verdict, avatars)
        target = Path("{published}") / run_id
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy(passed, target / "avatars.csv")

    gate >> publish(gate.verdict, "{{{{ params.avatars }}}}")
    dag.params.update(threshold={failing}, avatars="{avatars}")
"""


@dataclass
class Careless:
    """The run of a DAG, and the hands of somebody who may do anything."""

    airflow: Airflow
    folder: Path
    run_id: str = ""

    def run(self, threshold: float, avatars: str = "avatars.csv") -> str:
        """Run the DAG on a file of its own; return the run's state."""
        self.run_id, state = self.airflow.run("careful", threshold=threshold, avatars=str(self.folder / avatars))
        return state

    @property
    def path(self) -> str:
        return self.airflow.run_path("careful", self.run_id)

    def state(self, task_id: str) -> str:
        return str(self.airflow.ask(f"{self.path}/taskInstances/{task_id}")["state"])

    def verdict(self) -> dict[str, Any]:
        return dict(self.airflow.result("careful", self.run_id, "gate.check"))

    def mark_success(self, *task_ids: str) -> None:
        for task_id in task_ids:
            self.airflow.ask(f"{self.path}/taskInstances/{task_id}", {"new_state": "success"}, method="PATCH")
            assert self.state(task_id) == "success"

    def edit_xcom(self, value: dict[str, Any]) -> None:
        entry = f"{self.path}/taskInstances/gate.check/xcomEntries/return_value"
        self.airflow.ask(entry, {"value": value, "map_index": -1}, method="PATCH")
        assert self.verdict() == value

    def publish_again(self) -> str:
        """Clear the publishing task, and return the state in which it ends."""
        cleared = self.airflow.ask(
            "/api/v2/dags/careful/clearTaskInstances",
            {
                "dag_run_id": self.run_id,
                "task_ids": ["publish"],
                "dry_run": False,
                "only_failed": False,
                "reset_dag_runs": True,
            },
        )
        assert [one["task_id"] for one in cleared["task_instances"]] == ["publish"]
        return str(
            self.airflow.wait(
                "end of publish", lambda: (state := self.state("publish")) in ("success", "failed") and state
            )
        )

    def published(self) -> list[str]:
        folder = self.folder / "published" / self.run_id
        return sorted(path.name for path in folder.glob("*"))


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Careless]:
    folder = tmp_path_factory.mktemp("tables")
    tables = make_tables(folder)
    places = {"originals": tables.originals, "avatars": tables.avatars, "published": folder / "published"}
    source = SOURCE.format(**places, failing=FAILING)
    home = tmp_path_factory.mktemp("airflow") / "home"
    with live_airflow(home, {"careful.py": source}) as airflow:
        airflow.unpause("careful")
        yield Careless(airflow, folder)


def test_what_passed_is_published_again(running: Careless) -> None:
    assert running.run(PASSING) == "success"
    assert running.published() == ["avatars.csv"]
    assert running.publish_again() == "success"


def test_a_check_marked_a_success_by_hand_opens_nothing(running: Careless) -> None:
    assert running.run(FAILING) == "failed"
    assert running.state("publish") == "upstream_failed"
    running.mark_success("gate.check")
    assert running.publish_again() == "failed"
    assert running.published() == []


def test_a_measure_and_a_check_marked_a_success_without_a_result_open_nothing(running: Careless) -> None:
    assert running.run(PASSING, "absent.csv") == "failed"
    shutil.copy(running.folder / "avatars.csv", running.folder / "absent.csv")
    running.mark_success("gate.local_cloaking", "gate.check")
    assert running.publish_again() == "failed"
    assert running.published() == []


@pytest.mark.parametrize("edited", ["verdict", "threshold and verdict", "hash of an edited record"])
def test_an_edited_xcom_opens_nothing(running: Careless, edited: str) -> None:
    assert running.run(FAILING) == "failed"
    verdict = {**running.verdict(), "verdict": "passed", "reason": None}
    if edited != "verdict":
        verdict["threshold"] = PASSING
    if edited == "hash of an edited record":
        record = json.loads(Path(verdict["record"]).read_text())
        forged = running.folder / "forged.json"
        forged.write_text(json.dumps({**record, "verdict": "passed", "threshold": PASSING}))
        verdict |= {"record": str(forged), "record_sha256": hashlib.sha256(forged.read_bytes()).hexdigest()}
    running.edit_xcom(verdict)
    running.mark_success("gate.check")
    assert running.publish_again() == "failed"
    assert running.published() == []


def test_the_verdict_of_other_avatars_opens_nothing(running: Careless) -> None:
    other = running.folder / "other.csv"
    other.write_bytes((running.folder / "avatars.csv").read_bytes())
    assert running.run(PASSING, "other.csv") == "success"
    passed = running.verdict()
    third = running.folder / "third.csv"
    avatars = pd.read_csv(other, dtype={"id": str})
    avatars.loc[0, "a"] += 0.1
    avatars.to_csv(third, index=False)
    assert running.run(FAILING, "third.csv") == "failed"
    running.edit_xcom(passed)
    running.mark_success("gate.check")
    assert running.publish_again() == "failed"
    assert running.published() == []


def test_avatars_replaced_after_the_check_stay(running: Careless) -> None:
    avatars = running.folder / "replaced.csv"
    shutil.copy(running.folder / "avatars.csv", avatars)
    assert running.run(PASSING, "replaced.csv") == "success"
    shutil.rmtree(running.folder / "published" / running.run_id)
    shutil.copy(running.folder / "originals.csv", avatars)
    assert running.publish_again() == "failed"
    assert running.published() == []


def test_evidence_that_is_gone_opens_nothing(running: Careless) -> None:
    assert running.run(PASSING) == "success"
    shutil.rmtree(running.folder / "published" / running.run_id)
    Path(running.verdict()["record"]).unlink()
    assert running.publish_again() == "failed"
    assert running.published() == []
