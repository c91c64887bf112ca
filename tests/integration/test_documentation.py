"""The DAGs of the documentation, as they stand there: only paths and addresses are those of the test."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
import pytest

pytest.importorskip("airflow", reason="apache-airflow is not installed (extra `airflow`)")

from tests.documented import DOCS, EXAMPLES, FOLDER, SOURCES, blocks, write_tables
from tests.integration.conftest import Run, run_file
from tests.receivers import Hook, hook, mails

__all__ = ["hook", "mails"]

pytestmark = [pytest.mark.integration, pytest.mark.package]

DAGS = sorted((EXAMPLES / "dags").glob("*.py"))
#: What some of them import that Airflow does not bring.
NEEDS = {
    "mail": "airflow.providers.smtp",
    "octopize": "pandas",
    "pod": "airflow.providers.cncf.kubernetes",
    "slack": "airflow.providers.slack",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that stands for /data, with a store of its own."""
    write_tables(tmp_path)
    monkeypatch.setenv("AIRFLOW__LOCAL_CLOAKING__AUDIT_PATH", str(tmp_path / "audit"))
    return tmp_path


def here(text: str, folder: Path, **others: str) -> str:
    for name, value in others.items():
        assert name in text
        text = text.replace(name, value)
    return re.sub(rf"(?<=[\"'\s ]){FOLDER}\b", str(folder), text)


def run_example(airflow_home: Path, name: str, folder: Path, **others: str) -> Run:
    needed = NEEDS.get(name)
    if needed:
        pytest.importorskip(needed, reason=f"{needed} is not installed (extra `dev`)")
    path = airflow_home / "dags" / f"documented_{name}.py"
    path.write_text(here((EXAMPLES / "dags" / f"{name}.py").read_text(), folder, **others))
    try:
        return run_file(path)
    finally:
        path.unlink()


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def dag_blocks() -> list[Any]:
    return [
        block for block in blocks() if block.kind == "python" and "airflow" in block.text and block.page != SOURCES
    ]


@pytest.mark.parametrize("block", dag_blocks(), ids=lambda block: block.name)
def test_dag_on_a_page_is_one(block: Any) -> None:
    names: dict[str, Any] = {}
    exec(compile(block.text, block.name, "exec"), names)
    from airflow.sdk import DAG

    # The block need not give it a name: its gate knows it.
    made = [value if isinstance(value, DAG) else getattr(value, "dag", None) for value in names.values()]
    (dag,) = {id(found): found for found in made if isinstance(found, DAG)}.values()
    dag.validate()
    assert len(dag.tasks) > 0


def test_dags_on_pages_are_found() -> None:
    assert {"README.md", "alerts.md"} <= {block.page.name for block in dag_blocks()}


def test_every_example_is_run_here() -> None:
    source = Path(__file__).read_text()
    assert [path.stem for path in DAGS if f'"{path.stem}"' not in source.replace("NEEDS", "", 1)] == []


def test_first_gate_lets_the_avatars_leave_without_key_and_order(airflow_home, folder):
    run = run_example(airflow_home, "first_gate", folder)
    assert run.state == "success"
    released, avatars = (pd.read_csv(folder / f"{name}.csv") for name in ("released", "avatars"))
    assert list(released.columns) == [name for name in avatars.columns if name != "patient_id"]
    assert not released["a"].equals(avatars["a"])
    assert sorted(released["a"]) == sorted(avatars["a"])

    # What it left behind is what the page on deleting deletes, and nothing else.
    prune = load(EXAMPLES / "python" / "prune.py").prune
    store = folder / "audit"
    assert prune(store, 1, delete=True) == []
    kept = [path for path in store.rglob("*") if path.is_file()]
    assert len(prune(store, 0, delete=False)) == 2
    assert [path for path in store.rglob("*") if path.is_file()] == kept
    assert len(prune(store, 0, delete=True)) == 2
    assert [path for path in store.rglob("*") if path.is_file()] == []


def test_parquet_source(airflow_home, folder):
    source = '"' + FOLDER + '/{{ run_id }}/avatars.parquet"'
    projection = '"' + FOLDER + '/{{ run_id }}/projection.json"'
    run = run_example(
        airflow_home, "parquet_source", folder,
        **{source: f'"{folder}/avatars.parquet"', projection: f'"{folder}/projection.json"'},
    )  # fmt: skip
    assert run.state == "success"
    assert run.result("gate.local_cloaking")["space"] == "handed over"


def test_pairing_table(airflow_home, folder):
    run = run_example(airflow_home, "pairing_table", folder)
    assert run.result("gate.check")["verdict"] == "passed", run.result("gate.check")


def test_object_storage(airflow_home, folder, endpoint, monkeypatch):
    from tests.storage import connect_storage

    pytest.importorskip("s3fs", reason="s3fs is not installed (extra `dev`)")
    client = connect_storage(endpoint, monkeypatch, connection="lake", bucket="clinic")
    for name in ("patients.csv", "avatars.csv"):
        client.upload_file(str(folder / name), "clinic", name)
    run = run_example(airflow_home, "object_storage", folder)
    assert run.state == "success"
    assert run.result("publish") == (folder / "avatars.csv").stat().st_size
    assert run.result("gate.check")["record"].startswith("s3://lake@clinic/audit/")


def test_mail(airflow_home, folder, mails):
    run = run_example(airflow_home, "mail", folder)
    assert run.state == "failed"
    (mail,) = mails
    assert mail["to"] == "officer@example.org"
    assert "seuil" in mail.get_body(("html",)).get_content()


def test_slack(airflow_home, folder, hook: Hook, monkeypatch):
    connection = {"conn_type": "slackwebhook", "password": hook.address}
    monkeypatch.setenv("AIRFLOW_CONN_SLACK_WEBHOOK", json.dumps(connection))
    run = run_example(airflow_home, "slack", folder)
    assert run.state == "failed"
    (told,) = hook.received
    assert "threshold" in told["text"]


def test_webhook(airflow_home, folder, hook: Hook):
    run = run_example(airflow_home, "webhook", folder, **{"http://tickets.example.org/": hook.address})
    assert run.state == "success"
    (told,) = hook.received
    assert (told["verdict"], told["threshold"]) == ("passed", 2)


@pytest.mark.parametrize("threshold", [5, 300])
def test_pod(airflow_home, folder, tmp_path, threshold):
    """What the pod is told is run by a shell; the task after it gets what the pod returns."""
    pytest.importorskip(NEEDS["pod"], reason="apache-airflow-providers-cncf-kubernetes is not installed")
    dag = load(EXAMPLES / "dags" / "pod.py").dag
    pod = dag.get_task("measure")
    shell, option, script = pod.cmds
    returned = tmp_path / "return.json"
    script = here(script, folder, **{"/airflow/xcom/return.json": str(returned), "old 5": f"old {threshold}"})
    done = subprocess.run(
        [shell, option, script],
        env={**os.environ, "RUN": "manual_1", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == (0 if threshold == 5 else 1), done.stdout + done.stderr
    assert (folder / "audit" / "manual_1" / "report.html").is_file()
    assert returned.is_file() == (threshold == 5)
    assert (pod.retries, pod.do_xcom_push) == (0, True)
    if threshold == 5:
        from local_cloaking.airflow import require_passed

        assert require_passed(json.loads(returned.read_text()), folder / "avatars.csv")


class Platform:
    """Stands for Octopize's client, and makes the avatars here; calls are those of the client, version 1.30."""

    def __init__(self, base_url: str | None = None, *, api_key: str | None = None) -> None:
        assert (base_url, api_key) == ("https://platform.example.org", "key")

    def create_runner(self, set_name: str) -> Platform:
        return self

    def add_table(self, table_name: str, data: pd.DataFrame) -> None:
        assert "patient_id" not in data.columns
        self.table = data

    def set_parameters(self, table_name: str, *, k: int, ncp: int) -> None:
        self.k, self.ncp = k, ncp

    def run(self, jobs_to_run: list[str]) -> None:
        assert jobs_to_run == ["standard"]

    def sensitive_unshuffled(self, table_name: str) -> pd.DataFrame:
        from local_cloaking import avatarise

        return avatarise(self.table, k=3 * self.k, ncp=self.ncp, seed=1)


@pytest.fixture
def platform(monkeypatch):
    monkeypatch.setenv("AVATAR_BASE_URL", "https://platform.example.org")
    monkeypatch.setenv("AVATAR_API_KEY", "key")


def test_octopize_with_a_platform_that_is_here(airflow_home, folder, platform, monkeypatch):
    for name, content in {
        "avatars": {},
        "avatars.manager": {"Manager": Platform},
        "avatars.models": {"JobKind": types.SimpleNamespace(standard="standard")},
    }.items():
        module = types.ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    (folder / "avatars.csv").unlink()
    run = run_example(airflow_home, "octopize", folder)
    assert run.state == "success"
    assert "patient_id" not in pd.read_csv(folder / "released.csv").columns


def test_octopize_calls_the_client_as_it_is(folder, platform, tmp_path):
    """Each call is compared with the signature that the installed client has."""
    manager = pytest.importorskip(
        "avatars.manager", reason="octopize-avatar is not installed; it needs Python 3.12"
    )
    from avatars.runner import Runner

    path = tmp_path / "octopize.py"
    path.write_text(here((EXAMPLES / "dags" / "octopize.py").read_text(), folder))
    (folder / "avatars.csv").rename(folder / "from_the_platform.csv")
    unshuffled = pd.read_csv(folder / "from_the_platform.csv").drop(columns="patient_id")
    runner = mock.create_autospec(Runner, instance=True)
    runner.sensitive_unshuffled.return_value = unshuffled
    with mock.patch.object(manager, "Manager", autospec=True) as made:
        made.return_value.create_runner.return_value = runner
        load(path).dag.get_task("avatarise").python_callable()
    assert pd.read_csv(folder / "avatars.csv", dtype=str)["patient_id"].is_unique
    with pytest.raises(TypeError):
        runner.add_table("patients", no_such_option=1)


def test_pages_show_every_dag() -> None:
    shown = "".join(page.read_text() for page in DOCS.glob("*.md"))
    assert [path.name for path in DAGS if f"examples/dags/{path.name}" not in shown] == []
