"""Tasks of a whole Airflow (scheduler, LocalExecutor, API server) are killed in the middle of what they write."""

from __future__ import annotations

import hashlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("airflow", reason="apache-airflow is not installed (extra `airflow`)")

from local_cloaking.audit.consistency import agrees_with_itself, read_record
from local_cloaking.audit.index import entries
from tests.faults.invariants import index_tells_the_truth, nothing_half_written
from tests.faults.made import FAILING, PASSING, VERDICTS, write_tables
from tests.live import Airflow, live_airflow
from tests.reliability import note_figures

pytestmark = [pytest.mark.faults, pytest.mark.integration]

#: The first write of each named file stops before the file comes to its name, tells who writes, and waits.
SOURCE = """
import os, time
from datetime import datetime, timedelta
from pathlib import Path
from airflow.sdk import DAG, task
from local_cloaking.airflow import local_cloaking_gate, require_passed
from local_cloaking.audit import store

give_name = store._give_name

def stopped(beside, path, **options):
    name = "index.json" if path.parent.parent.name == "index" else path.name
    place = Path({waiting!r}) / (os.environ.get("AIRFLOW_CTX_DAG_RUN_ID", "parsed").split("__")[0] + "-" + name)
    if place.exists() and not place.read_text():
        place.write_text(str(os.getpid()))
        time.sleep(600)
    give_name(beside, path, **options)

store._give_name = stopped

with DAG("killed", schedule=None, start_date=datetime(2026, 1, 1), params=dict(threshold={passing}),
         default_args=dict(retries=1, retry_delay=timedelta(seconds=0))) as dag:
    gate = local_cloaking_gate("gate", originals={originals!r}, avatars={avatars!r}, key="id", ncp=3,
                               threshold="{{{{ params.threshold }}}}")

    @task
    def publish(verdict, avatars):
        return require_passed(verdict, avatars)

    publish(gate.verdict, {avatars!r})
"""


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    folder = tmp_path_factory.mktemp("killed")
    originals, avatars, _ = write_tables(folder / "tables")
    (folder / "waiting").mkdir()
    source = SOURCE.format(
        waiting=str(folder / "waiting"), originals=str(originals), avatars=str(avatars), passing=PASSING
    )
    home = folder / "home"
    with live_airflow(home, {"killed.py": source}) as running:
        running.unpause("killed")
        yield running


@pytest.mark.parametrize(
    ("task_id", "name", "threshold"),
    [
        ("gate.local_cloaking", "counts.parquet", PASSING),
        ("gate.check", "record.json", PASSING),
        ("gate.check", "report.html", PASSING),
        ("gate.check", "index.json", PASSING),
        ("gate.check", "report.html", FAILING),
    ],
)
def test_a_task_that_is_killed_while_it_writes_is_tried_again(airflow: Airflow, task_id, name, threshold):
    audit = airflow.home / "audit"
    before = contents(audit)
    waiting = airflow.home.parent / "waiting" / f"manual-{name}"
    waiting.write_text("")
    run_id = airflow.trigger("killed", threshold=threshold)
    pid = int(airflow.wait("task that writes", waiting.read_text))
    left = contents(audit)
    assert not [path for path in left.keys() - before.keys() if path.name == name]
    os.kill(pid, signal.SIGKILL)
    assert airflow.ended("killed", run_id) == ("success" if threshold == PASSING else "failed")
    waiting.unlink()

    path = f"{airflow.run_path('killed', run_id)}/taskInstances"
    tries = {one["task_id"]: (one["state"], one["try_number"]) for one in airflow.ask(path)["task_instances"]}
    assert tries[task_id] == ("success" if threshold == PASSING else "failed", 2)
    assert tries["publish"][0] == ("success" if threshold == PASSING else "upstream_failed")
    verdict = airflow.result("killed", run_id, "gate.check")
    content = Path(verdict["record"]).read_bytes()
    assert hashlib.sha256(content).hexdigest() == verdict["record_sha256"]
    record = read_record(content)
    assert agrees_with_itself(record)
    assert record["verdict"] == verdict["verdict"] == VERDICTS[threshold]
    assert record["judged"]["run"]["try_number"] == (2 if task_id == "gate.check" else 1)
    after = contents(audit)
    assert not [path for path in left if after.get(path) != left[path]], "what was there has changed"
    nothing_half_written(audit, leftovers=True)
    index_tells_the_truth(audit)
    assert [entry.record_sha256 for entry in entries(audit, run_id=run_id)] == [verdict["record_sha256"]]
    note_figures(f"faults-killed-{name.partition('.')[0]}-{threshold:g}", injected=1, survived=1)


def contents(folder: Path) -> dict[Path, Any]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
