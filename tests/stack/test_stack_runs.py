"""The stack, for real: brought up by make, triggered through the REST API, restarted, killed, and taken down.

Runs on any Docker engine; where COMPOSE names a compose command whose stack is up already, on that. The tests
follow each other: each goes on with what the one before left.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shlex
import shutil
import socket
import stat
import subprocess
import time
import urllib.error
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.browser import Browser, absent, browser
from tests.stack.expected import ALWAYS, PROFILES, SECRETS
from tests.stack.running import Ran, Stack, is_refused

__all__ = ["browser"]

pytestmark = [pytest.mark.integration, pytest.mark.stack]

CHECKOUT = Path(__file__).parents[2]
NEEDED = (
    ".dockerignore", "LICENSE", "Makefile", "README.md", "constraints.txt", "dags", "docker-compose.yml",
    "plugins", "pyproject.toml", "scripts", "src",
)  # fmt: skip
DEMO = "local_cloaking_demo"
#: What runs once all is up.
RUNNING = ALWAYS - {"airflow-init"}
#: What `make demo` prints, too: the stack measures what the checkout does.
MEASURED = 10.0
#: Runs whose evidence every later test must find again, with the hash of their record.
kept: list[tuple[Ran, str, str]] = []


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    if given := os.environ.get("COMPOSE"):
        yield Stack(shlex.split(given), CHECKOUT)
        return
    try:
        found = subprocess.run(["docker", "compose", "ls"], capture_output=True, check=False).returncode == 0
    except OSError:
        found = False
    if not found:
        absent("no Docker engine with Compose answers")
    folder = tmp_path_factory.mktemp("stack") / "checkout"
    folder.mkdir()
    for name in NEEDED:
        copy = shutil.copytree if (CHECKOUT / name).is_dir() else shutil.copy
        copy(CHECKOUT / name, folder / name)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    project = f"local-cloaking-test-{secrets.token_hex(4)}"
    own = Stack(["docker", "compose", "--project-name", project], folder, {"AIRFLOW_PORT": port})
    try:
        yield own
    finally:
        own.run([*own.command, "--profile", "*", "down", "--volumes", "--remove-orphans"])


def keep(stack: Stack, ran: Ran, task_id: str = "check") -> dict[str, Any]:
    """Remember a run's evidence, after a look at it, and return the verdict."""
    verdict = stack.result(ran, task_id)
    record = stack.record(ran, task_id)
    assert hashlib.sha256(record).hexdigest() == verdict["record_sha256"]
    assert json.loads(record)["verdict"] == verdict["verdict"]
    kept.append((ran, task_id, verdict["record_sha256"]))
    return dict(verdict)


def assert_kept(stack: Stack) -> None:
    """All records of the runs so far are there, on the page and byte for byte."""
    assert kept
    for ran, task_id, sha256 in kept:
        record = stack.wait("record", partial(stack.record, ran, task_id))
        assert hashlib.sha256(record).hexdigest() == sha256


def assert_demo(stack: Stack, threshold: int, verdict: str, dag_id: str = DEMO, check: str = "check") -> Ran:
    ran = stack.ended(dag_id, stack.trigger(dag_id, threshold=threshold))
    assert ran.state == ("success" if verdict == "passed" else "failed"), stack.what_was_logged()
    told = keep(stack, ran, check)
    assert (told["verdict"], told["local_cloaking"], told["threshold"]) == (verdict, MEASURED, threshold)
    assert ran.tasks["publish"]["state"] == ("success" if verdict == "passed" else "upstream_failed")
    return ran


def restart_each(stack: Stack, services: list[str]) -> None:
    for service in services:
        stack.compose("restart", service)
        stack.await_health()
        assert_kept(stack)


def kill_in_the_middle(stack: Stack, dag_id: str = DEMO, task_id: str = "avatarise", check: str = "check") -> Ran:
    """Kill the scheduler, and what runs in its container, while a task runs."""
    run_id = stack.trigger(dag_id)
    stack.wait("running task", lambda: stack.tasks(dag_id, run_id)[task_id]["state"] == "running")
    before = started_at(stack)
    # All but the container's first process, which no signal from within ends, and which ends with its child.
    stack.run([*stack.command, "exec", "-T", "airflow-scheduler", "bash", "-c", "kill -9 -1"])
    assert stack.state(dag_id, run_id) == "running"
    stack.wait("restarted scheduler", lambda: started_at(stack) not in ("", before))
    ran = stack.ended(dag_id, run_id, seconds=600)
    assert ran.state == "success", stack.what_was_logged()
    assert keep(stack, ran, check)["verdict"] == "passed"
    return ran


def started_at(stack: Stack) -> str:
    """Return when the scheduler's first process was started, in ticks; nothing while it is not."""
    return stack.run(
        [*stack.command, "exec", "-T", "airflow-scheduler", "cut", "-d ", "-f22", "/proc/1/stat"]
    ).stdout.strip()


# Profile celery, first: what runs this test inside another command brings it up with this profile ----------------


def test_with_celery_tasks_run_on_the_workers(stack):
    stack.make("up", "PROFILES=celery")
    assert set(stack.services()) == RUNNING | PROFILES["celery"]
    workers = {one["ID"][:12] for one in stack.containers() if one["Service"] == "airflow-worker"}
    assert len(workers) == 2
    for threshold, verdict in ((5, "passed"), (50, "below_threshold")):
        ran = assert_demo(stack, threshold, verdict)
        assert {ran.tasks[name]["hostname"] for name in ("avatarise", "local_cloaking", "check")} <= workers


def test_with_celery_a_restart_of_each_service_keeps_the_records(stack):
    restart_each(stack, stack.services())


def test_with_celery_a_killed_scheduler_still_gives_a_verdict(stack):
    kill_in_the_middle(stack)
    assert_kept(stack)
    stack.make("down")
    assert stack.containers() == []


# The stack itself ------------------------------------------------------------------------------------------------


def test_up_says_where_to_go_and_where_the_password_lies(stack):
    """[airflow 26178] It would wait in vain for an init service that does not end with 0."""
    secrets_before = (stack.folder / ".env").read_text()
    printed = stack.make("up").stdout
    assert printed.splitlines()[-3:] == [
        f"Airflow    {stack.address().replace('127.0.0.1', 'localhost')}",
        "user       admin",
        "password   AIRFLOW_ADMIN_PASSWORD in .env",
    ]
    assert stack.address().startswith("http://127.0.0.1:")
    assert set(stack.services()) == RUNNING
    file = stack.folder / ".env"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text() == secrets_before
    written = dict(line.split("=", 1) for line in secrets_before.splitlines() if "=" in line)
    for name in SECRETS:
        assert written[name] not in printed


def test_down_kept_the_records(stack):
    assert_kept(stack)


def test_without_a_user_nothing_is_shown(stack):
    for path in ("/api/v2/dags", "/local-cloaking/"):
        with pytest.raises(urllib.error.HTTPError) as refusal:
            stack.send(path, signed=False)
        assert is_refused(refusal.value)


def test_every_dag_is_read_without_a_mistake(stack):
    assert stack.ask("/api/v2/importErrors")["import_errors"] == []
    names = {path.stem for path in (CHECKOUT / "dags").glob("*.py")}
    stack.wait("DAG", lambda: names <= {dag["dag_id"] for dag in stack.ask("/api/v2/dags")["dags"]})


def test_the_demonstration_ends_green_and_what_waits_for_a_pass_starts(stack):
    """[airflow 17320, 34496] [airflow 59373, 49646] Tasks run, and write to the folders that are mounted."""
    before = stack.runs("local_cloaking_release")
    assert_demo(stack, 5, "passed")
    run_id, *_ = stack.wait("release", lambda: stack.runs("local_cloaking_release") - before)
    assert stack.ended("local_cloaking_release", run_id).state == "success"


def test_below_the_threshold_it_ends_red(stack):
    assert_demo(stack, 50, "below_threshold")


def test_it_can_be_triggered_in_the_browser(stack, browser: Browser):
    user = stack.user()
    page = browser.context.new_page()
    page.set_default_timeout(120_000)
    page.goto(f"{user['address']}/dags/{DEMO}")
    page.locator("[name=username]").fill(user["username"])
    page.locator("[name=password]").fill(user["password"])
    page.locator("[type=submit]").first.click()
    for threshold, state in ((5, "success"), (50, "failed")):
        before = stack.runs(DEMO)
        page.get_by_role("button", name="Trigger").first.click()
        form = page.get_by_role("dialog")
        form.locator("textarea").first.fill(str(threshold))
        form.get_by_role("button", name="Trigger", exact=True).click()
        (run_id,) = stack.wait("run", lambda before=before: stack.runs(DEMO) - before)
        ran = stack.ended(DEMO, run_id)
        assert ran.state == state
        assert keep(stack, ran)["threshold"] == threshold
        page.goto(f"{user['address']}/dags/{DEMO}")
    page.close()


def test_processes_are_not_root_and_what_must_not_be_written_cannot_be(stack):
    for service in RUNNING:
        user = stack.compose("exec", "-T", service, "sh", "-c", "id -u; awk '/^Uid/ {print $2}' /proc/1/status")
        assert "0" not in user.split(), service
    for service, place in (
        ("airflow-scheduler", "dags"),
        ("airflow-scheduler", "plugins"),
        ("airflow-apiserver", "audit"),
    ):
        tried = [*stack.command, "exec", "-T", service, "touch", f"/opt/airflow/{place}/written"]
        assert "Read-only file system" in stack.run(tried).stderr


def test_a_restart_of_each_service_keeps_the_records(stack):
    restart_each(stack, stack.services())


def test_a_scheduler_that_is_killed_in_the_middle_of_a_run_still_gives_a_verdict(stack):
    kill_in_the_middle(stack)
    assert_kept(stack)


# Profile dask ----------------------------------------------------------------------------------------------------


def test_with_dask_its_workers_measure_the_same(stack):
    stack.make("up", "PROFILES=dask")
    assert set(stack.services()) == RUNNING | PROFILES["dask"]
    for threshold, verdict in ((5, "passed"), (50, "below_threshold")):
        assert_demo(stack, threshold, verdict, "local_cloaking_dask", "gate.check")


def test_with_dask_a_restart_of_each_service_keeps_the_records(stack):
    # The others were restarted above, and are the same.
    restart_each(stack, sorted(PROFILES["dask"]))


def test_with_dask_a_killed_scheduler_still_gives_a_verdict(stack):
    kill_in_the_middle(stack, "local_cloaking_dask", "gate.local_cloaking", "gate.check")
    assert_kept(stack)
    stack.make("down")


# What is wrong ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(SECRETS))
def test_an_unset_secret_is_named_with_what_to_do(stack, tmp_path, name):
    lines = (stack.folder / ".env").read_text().splitlines()
    (tmp_path / "env").write_text("\n".join(line for line in lines if not line.startswith(f"{name}=")))
    before = {one["Name"]: one["State"] for one in stack.containers()}
    failed = stack.run([*stack.command, "--env-file", str(tmp_path / "env"), "up", "--detach"])
    assert failed.returncode != 0
    assert f"{name} is missing a value" in failed.stderr
    assert "`make up` writes" in failed.stderr
    assert {one["Name"]: one["State"] for one in stack.containers()} == before


def test_a_wrong_database_host_ends_in_a_message_that_names_it(stack):
    stack.make("down")
    started = time.monotonic()
    failed = stack.run(["make", "up"], POSTGRES_HOST="no-such-host")
    assert failed.returncode == 2
    assert 'host name "no-such-host"' in failed.stdout
    assert "password" not in failed.stdout
    assert time.monotonic() - started < 600
    assert not {"airflow-apiserver", "airflow-scheduler"} & set(stack.services())
    stack.make("down")


def test_clean_takes_the_data_away(stack):
    name = stack.config()["volumes"]["audit"]["name"]
    assert name in volumes(stack)
    stack.make("clean-stack")
    assert name not in volumes(stack)
    assert stack.containers() == []


def volumes(stack: Stack) -> list[str]:
    listed = stack.run(["docker", "volume", "ls", "--format", "{{.Name}}"])
    assert listed.returncode == 0, listed.stderr
    return listed.stdout.split()
