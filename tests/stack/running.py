"""A running stack: the compose command that drives it, and Airflow's REST API as a user calls it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import pytest

ENDED = ("success", "failed")

_Found = TypeVar("_Found")


@dataclass
class Ran:
    """What is left of a run of a DAG."""

    dag_id: str
    run_id: str
    state: str
    tasks: dict[str, dict[str, Any]] = field(repr=False)


@dataclass
class Stack:
    """The stack of one compose project.

    ``command`` is the compose command with its options, ``folder`` the checkout that it is told of.
    """

    command: list[str]
    folder: Path
    environment: dict[str, str] = field(default_factory=dict, repr=False)
    _token: str = field(default="", repr=False)

    # The engine --------------------------------------------------------------------------------------------------

    def run(self, arguments: list[str], seconds: float = 900, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the checkout, with COMPOSE as make takes it."""
        # The profiles are those that make is told.
        kept = {name: value for name, value in os.environ.items() if name != "COMPOSE_PROFILES"}
        compose = shlex.join(self.command)
        return subprocess.run(
            arguments, cwd=self.folder, env={**kept, **self.environment, "COMPOSE": compose, **more},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds, check=False,
        )  # fmt: skip

    def compose(self, *arguments: str, seconds: float = 600) -> str:
        """Run a compose command, and return what it printed."""
        done = self.run([*self.command, *arguments], seconds)
        assert done.returncode == 0, f"{arguments}: {(done.stdout + done.stderr)[-3000:]}"
        return done.stdout

    def make(self, target: str, *options: str) -> subprocess.CompletedProcess[str]:
        """Run a make target, which must succeed."""
        done = self.run(["make", "--no-print-directory", target, *options])
        assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
        self._token = ""
        return done

    def config(self) -> dict[str, Any]:
        """Return the file as compose reads it, with the secrets in it."""
        return dict(json.loads(self.compose("--profile", "*", "config", "--format", "json")))

    def containers(self) -> list[dict[str, Any]]:
        """Return what compose tells of each container that there is."""
        lines = self.compose("--profile", "*", "ps", "--all", "--format", "json").splitlines()
        return [json.loads(line) for line in lines]

    def services(self) -> list[str]:
        """Return the services that run."""
        return sorted({one["Service"] for one in self.containers() if one["State"] == "running"})

    def await_health(self) -> None:
        """Wait until all that runs is healthy, and nothing else is left."""
        self.wait(
            "healthy stack",
            lambda: all(
                one["Health"] == "healthy" or (one["Service"], one["ExitCode"]) == ("airflow-init", 0)
                for one in self.containers()
            ),
        )

    # Airflow -----------------------------------------------------------------------------------------------------

    def wait(self, what: str, question: Callable[[], _Found], seconds: float = 300) -> _Found:
        """Ask until there is an answer."""
        end = time.monotonic() + seconds
        said = ""
        while time.monotonic() < end:
            try:
                if found := question():
                    return found
            except (OSError, ValueError, KeyError) as error:
                said = repr(error)
            time.sleep(2)
        pytest.fail(f"no {what} within {seconds:g} seconds; {said}\n{self.what_was_logged()}")

    def what_was_logged(self) -> str:
        """Return the end of all logs, for a test that fails."""
        return self.run([*self.command, "--profile", "*", "logs", "--no-color", "--tail", "15"]).stdout[-15_000:]

    def address(self) -> str:
        """Return where the API server listens on this machine."""
        return f"http://{self.compose('port', 'airflow-apiserver', '8080').strip()}"

    def send(self, path: str, body: Any = None, *, signed: bool = True, method: str | None = None) -> bytes:
        """Call the API server, by default as the stack's first user."""
        headers = {"Content-Type": "application/json"}
        if signed:
            headers["Authorization"] = f"Bearer {self.token()}"
        request = urllib.request.Request(
            f"{self.address()}{path}", None if body is None else json.dumps(body).encode(), headers, method=method
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return bytes(answer.read())

    def ask(self, path: str, body: Any = None, **options: Any) -> Any:
        """Call the REST API."""
        return json.loads(self.send(path, body, **options))

    def user(self) -> dict[str, str]:
        """Return the stack's first user, with the password that lies in .env, and where people find Airflow."""
        environment = self.config()["services"]["airflow-init"]["environment"]
        return {
            "username": "admin",
            "password": environment["AIRFLOW_ADMIN_PASSWORD"],
            "address": environment["AIRFLOW__API__BASE_URL"],
        }

    def token(self) -> str:
        """Return a token of that user."""
        if not self._token:
            user = self.user()
            del user["address"]
            self._token = self.ask("/auth/token", user, signed=False)["access_token"]
        return self._token

    def runs(self, dag_id: str) -> set[str]:
        """Return the names of the latest runs of a DAG."""
        runs = self.ask(f"/api/v2/dags/{dag_id}/dagRuns?order_by=-run_after&limit=50")["dag_runs"]
        return {run["dag_run_id"] for run in runs}

    def trigger(self, dag_id: str, **parameters: Any) -> str:
        """Trigger a DAG, and return the run's name."""
        path = f"/api/v2/dags/{dag_id}"
        self.wait(f"DAG {dag_id}", lambda: self.ask(path))
        return str(self.ask(f"{path}/dagRuns", {"logical_date": None, "conf": parameters})["dag_run_id"])

    def ended(self, dag_id: str, run_id: str, seconds: float = 420) -> Ran:
        """Wait for the end of a run."""

        def over() -> str | None:
            state = self.state(dag_id, run_id)
            return state if state in ENDED else None

        state = self.wait(f"end of {run_id}", over, seconds)
        return Ran(dag_id, run_id, state, self.tasks(dag_id, run_id))

    def state(self, dag_id: str, run_id: str) -> str:
        """Return the state of a run."""
        return str(self.ask(f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id, safe='')}")["state"])

    def tasks(self, dag_id: str, run_id: str) -> dict[str, dict[str, Any]]:
        """Return Airflow's task instances of a run, by the task's name."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id, safe='')}/taskInstances"
        return {task["task_id"]: task for task in self.ask(path)["task_instances"]}

    def result(self, ran: Ran, task_id: str) -> Any:
        """Return what a task pushed to XCom."""
        return self.ask(
            f"/api/v2/dags/{ran.dag_id}/dagRuns/{quote(ran.run_id, safe='')}/taskInstances/{task_id}"
            "/xcomEntries/return_value"
        )["value"]

    def record(self, ran: Ran, task_id: str = "check") -> bytes:
        """Return a verdict's record, as the page hands it out."""
        query = urlencode({"dag_id": ran.dag_id, "run_id": ran.run_id, "task_id": task_id})
        return self.send(f"/local-cloaking/record.json?{query}")


def is_refused(error: urllib.error.HTTPError) -> bool:
    """Whether the API server asked for a user, or did not let this one."""
    return error.code in (401, 403)
