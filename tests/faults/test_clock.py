"""The clock steps back: between tasks, between tries, between runs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from local_cloaking.audit.index import entries
from tests.faults import invariants
from tests.faults.made import PASSING, write_tables
from tests.faults.operations import STEP_BACK, Fault
from tests.faults.tasks import CHECK, MEASURE, PUBLISH, TASKS, Attempt, Gate, Job, attempt

pytest.importorskip("airflow", reason="apache-airflow is not installed (extra `airflow`)")

DAY = 86_400.0


@dataclass
class Runs:
    gate: Gate
    folder: Path

    def task(
        self,
        task_id: str,
        xcoms: invariants.Xcoms,
        run_id: str,
        *,
        back: float = 0,
        number: int = 1,
        fault: Any = None,
    ) -> Attempt:
        return attempt(Job(self.gate, task_id, run_id, number, 1, xcoms, (self.folder,), fault, back=back), xcoms)


def runs_in(folder: Path, k: int = 12) -> Runs:
    originals, avatars, _ = write_tables(folder / "tables", k)
    more = {"key": "id", "ncp": 3, "compare_with_previous": True}
    return Runs(Gate(str(originals), str(avatars), PASSING, str(folder / "audit"), more), folder)


@pytest.mark.stack
def test_between_measure_check_and_publish(tmp_path):
    better, xcoms = runs_in(tmp_path, k=25), {}
    for task_id in TASKS:
        assert better.task(task_id, xcoms, "before").state == "success"
    runs, later = runs_in(tmp_path), {}
    for task_id, back in zip(TASKS, (0, DAY, 2 * DAY), strict=True):
        assert runs.task(task_id, later, "after", back=back).state == "success"
    record = invariants.record_of(later)
    assert datetime.fromisoformat(record["judged"]["at"]) < datetime.fromisoformat(record["measured_at"])
    # The run before is the one before, whatever the clock says now.
    assert record["previous"]["record_sha256"] == json.loads(xcoms[CHECK, "return_value"])["record_sha256"]
    assert record["warning"]
    assert record["duration_seconds"] >= 0
    invariants.told_verdict_has_its_evidence(tmp_path / "audit", later, runs.gate.avatars)
    invariants.index_tells_the_truth(tmp_path / "audit")
    assert {entry.run_id for entry in entries(tmp_path / "audit")} == {"before", "after"}


def test_between_the_tries_of_a_check(tmp_path):
    """Both tries stand in the index, whichever comes first there, and none replaces the other."""
    runs, xcoms = runs_in(tmp_path), {}
    assert runs.task(MEASURE, xcoms, "one").state == "success"
    killed = runs.task(CHECK, xcoms, "one", fault=Fault(-1, "killed", "tell SetXCom return_value"))
    assert killed.state == "killed"
    first = {path: path.read_bytes() for path in (tmp_path / "audit").rglob("*.*") if path.is_file()}
    assert runs.task(CHECK, xcoms, "one", number=2, back=STEP_BACK).state == "success"
    assert runs.task(PUBLISH, xcoms, "one", back=DAY).state == "success"
    assert {path: path.read_bytes() for path in first} == first
    filed = entries(tmp_path / "audit", run_id="one")
    assert [entry.try_number for entry in filed] == [1, 2]
    assert {entry.verdict for entry in filed} == {"passed"}
    assert datetime.fromisoformat(filed[1].at) < datetime.now(UTC)
    invariants.told_verdict_has_its_evidence(tmp_path / "audit", xcoms, runs.gate.avatars)
    assert invariants.record_of(xcoms)["previous"] is None  # It is not compared with its own first try.
