"""A whole Airflow at DEBUG: its logs, its database and the rest of its home hold nothing of anyone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("airflow", reason="apache-airflow is not installed (extra `airflow`)")

from tests.live import live_airflow
from tests.reliability import note_figures
from tests.secrecy.planting import write_all
from tests.secrecy.searching import Search, files_below
from tests.secrecy.test_planted import planted
from tests.secrecy.watched_run import HEAD

pytestmark = [pytest.mark.stack, pytest.mark.integration]

DAG = """
    both = dict(KEYED, originals=f"{DATA}/originals.csv", avatars=f"{DATA}/avatars.csv")
    gate = local_cloaking_gate("passed", threshold=1, groups=["town"], remediation=f"{OUT}/remediation.csv",
                               notify=LocalCloakingNotifier(via=Webhook("NO_HOOK"), always=True), **both)
    local_cloaking_gate("unseen", threshold=1, **{**both, "avatars": f"{DATA}/unseen.csv"})
    local_cloaking_gate("database", threshold=1, **{**both, "originals": "sql://warehouse/patients"})
    AvatariseOperator(task_id="avatarise", originals=both["originals"], avatars=f"{OUT}/avatars.csv", **KEYED)
"""


def test_logs_and_database_of_a_whole_airflow(tmp_path: Path) -> None:
    from tests.secrecy.planting import PASSWORD, WEBHOOK_TOKEN

    write_all(tmp_path / "data")
    (tmp_path / "out").mkdir()
    source = HEAD.format(data=str(tmp_path / "data"), out=str(tmp_path / "out"), name="searched") + DAG
    warehouse = {"conn_type": "postgres", "host": "127.0.0.1", "port": 9, "login": "tester", "password": PASSWORD}
    home = tmp_path / "home"
    with live_airflow(
        home,
        {"searched.py": source},
        settings={"LOGGING__LOGGING_LEVEL": "DEBUG"},
        environment={
            "AIRFLOW_CONN_WAREHOUSE": json.dumps(warehouse),
            "NO_HOOK": f"http://127.0.0.1:9/{WEBHOOK_TOKEN}",
            "TMPDIR": str(tmp_path / "out"),
        },
    ) as running:
        running.unpause("searched")
        run_id = running.trigger("searched")
        path = running.run_path("searched", run_id)
        # At DEBUG, on a busy machine, it takes its time.
        running.wait("end", lambda: running.ask(path)["state"] in ("success", "failed"), seconds=900)
        assert running.ask(path)["state"] == "failed"
        assert running.result("searched", run_id, "passed.check")["verdict"] == "passed"
    logs = [path for path in files_below(home / "logs") if "task_id=" in str(path)]
    assert [
        path for path in logs if "unseen" in str(path) and b"a category that no original has" in path.read_bytes()
    ]
    search = Search(planted())
    found = {
        str(path.relative_to(home)): values
        for path in files_below(home)
        if (values := search.found_in(path.read_bytes()))
    }
    assert found == {}
    assert search.places > 12
    assert (home / "airflow.db").stat().st_size > 0
    note_figures("secrecy-live", planted=len(planted()), places_searched=search.places, found=0)
