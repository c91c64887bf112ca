"""A whole Airflow, started as a user starts it, and a browser: from the failed run to its report."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("airflow", reason="apache-airflow is not installed (extra `airflow`)")

from tests.browser import Browser, browser

__all__ = ["browser"]

pytestmark = [pytest.mark.integration, pytest.mark.stack]

PLUGIN = Path(__file__).parents[2] / "plugins" / "local_cloaking_page.py"
SOURCE = """
import pendulum
from airflow.sdk import DAG
from local_cloaking.airflow import local_cloaking_gate

with DAG("nightly", schedule=None, start_date=pendulum.datetime(2026, 1, 1, tz="UTC")) as dag:
    local_cloaking_gate("gate", originals="{originals}", avatars="{avatars}", key="id", ncp=3, k=20,
                        data_set="patients", threshold="{{{{ params.threshold }}}}")
    dag.params["threshold"] = 50
"""


@dataclass
class Standalone:
    """A running `airflow standalone`."""

    address: str
    password: str
    token: str = ""

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """Call the REST API."""
        request = urllib.request.Request(
            f"{self.address}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def wait(self, what: str, question: Any, seconds: float = 240) -> Any:
        """Ask until there is an answer."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if found := question():
                    return found
            except (OSError, urllib.error.HTTPError):
                pass
            time.sleep(1)
        pytest.fail(f"no {what} within {seconds} seconds")


@pytest.fixture
def standalone(tmp_path: Path, tables: Any) -> Iterator[Standalone]:
    home, password = tmp_path / "airflow", secrets.token_hex(8)
    for folder in ("dags", "plugins"):
        (home / folder).mkdir(parents=True)
    (home / "dags" / "nightly.py").write_text(SOURCE.format(originals=tables.originals, avatars=tables.avatars))
    shutil.copy(PLUGIN, home / "plugins")
    (home / "passwords.json").write_text(json.dumps({"admin": password}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    settings = {
        "CORE__DAGS_FOLDER": home / "dags",
        "CORE__PLUGINS_FOLDER": home / "plugins",
        "CORE__LOAD_EXAMPLES": False,
        "CORE__PARALLELISM": 4,
        "CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin",
        "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": home / "passwords.json",
        "CORE__EXECUTION_API_SERVER_URL": f"{address}/execution/",
        "API__PORT": port,
        "API__HOST": "127.0.0.1",
        "API__BASE_URL": address,
        "DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}",
        "LOCAL_CLOAKING__AUDIT_PATH": home / "audit",
        "SCHEDULER__ENABLE_HEALTH_CHECK": False,
    }
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    environment |= {f"AIRFLOW__{name}": str(value) for name, value in settings.items()}
    environment |= {
        "AIRFLOW_HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    with (tmp_path / "standalone.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "airflow", "standalone"],
            env=environment, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
        running = Standalone(address, password)
        try:
            running.wait("API", lambda: process.poll() is None and running.ask("/api/v2/version"))
            running.token = running.ask("/auth/token", {"username": "admin", "password": password})["access_token"]
            yield running
        finally:
            # All of its own session: API server, scheduler, DAG processor, triggerer and their workers.
            for stop in (signal.SIGTERM, signal.SIGKILL):
                if process.poll() is None:
                    os.killpg(process.pid, stop)
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    continue


def test_from_a_failed_run_to_its_report(standalone: Standalone, browser: Browser) -> None:
    standalone.wait("DAG", lambda: standalone.ask("/api/v2/dags/nightly"))
    request = urllib.request.Request(
        f"{standalone.address}/api/v2/dags/nightly",
        data=b'{"is_paused": false}',
        method="PATCH",
        headers={"Content-Type": "application/json", "Authorization": f"Bearer {standalone.token}"},
    )
    urllib.request.urlopen(request, timeout=30)
    run = standalone.ask("/api/v2/dags/nightly/dagRuns", {"logical_date": None})["dag_run_id"]
    path = f"/api/v2/dags/nightly/dagRuns/{urllib.request.quote(run, safe='')}"
    state = standalone.wait(
        "end of the run",
        lambda: (found := standalone.ask(path)["state"]) in ("success", "failed") and found,
    )
    assert state == "failed"
    links = standalone.ask(f"{path}/taskInstances/gate.check/links")["extra_links"]
    assert set(links) == {"Report", "Record"}

    page = browser.context.new_page()
    page.set_default_timeout(90_000)
    page.set_viewport_size({"width": 1280, "height": 800})
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(f"{standalone.address}/local-cloaking/")
    assert page.locator("h1").text_content() == "Not logged in"
    page.get_by_role("link", name="Log in").click()
    page.locator("[name=username]").fill("admin")
    page.locator("[name=password]").fill(standalone.password)
    page.locator("[type=submit]").click()
    page.locator("#verdicts").wait_for()
    assert page.locator("h1").text_content() == "Data sets and their verdicts"

    # The button on the task, though the task failed.
    page.goto(f"{standalone.address}/dags/nightly/runs/{run}/tasks/gate.check/details")
    page.get_by_role("link", name="Report", exact=True).click()
    report = page.frame_locator("iframe[title='Report']")
    assert report.locator(".verdict h2").text_content().strip() == "Below the threshold"
    assert page.locator("main").text_content().count(run) == 1

    # The page in the navigation, and the tabs of DAG and run.
    for where in ("plugin/local-cloaking", "dags/nightly/plugin/local-cloaking-dag",
                  f"dags/nightly/runs/{run}/plugin/local-cloaking-run"):  # fmt: skip
        page.goto(f"{standalone.address}/{where}")
        frame = page.frame_locator("iframe[title='Local Cloaking']")
        frame.locator("#verdicts ~ .wide .badge").first.wait_for()
        assert frame.locator("#verdicts ~ .wide tbody tr").count() == 1
        frame.locator("a.report").click()
        inner = frame.frame_locator("iframe[title='Report']")
        assert inner.locator(".verdict h2").text_content().strip() == "Below the threshold"
    assert complaints == []
    if pictures := os.environ.get("LOCAL_CLOAKING_PICTURES"):
        page.goto(f"{standalone.address}/plugin/local-cloaking")
        page.frame_locator("iframe[title='Local Cloaking']").locator("#verdicts").wait_for()
        page.screenshot(path=Path(pictures) / "page.png")
    page.close()
