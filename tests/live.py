"""A whole Airflow on loopback: API server, scheduler, DAG processor, and users whose roles say what they read."""

from __future__ import annotations

import importlib.util
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
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.browser import absent

PLUGIN = Path(__file__).parents[1] / "plugins" / "local_cloaking_page.py"
AUTH_MANAGER = "airflow.providers.fab.auth_manager.fab_auth_manager.FabAuthManager"
#: What a user needs to come in, beside the DAGs that a role names.
COMING_IN = ("Website", "Plugins")


@dataclass
class Airflow:
    """A running Airflow, and how to talk to it."""

    address: str
    home: Path
    environment: dict[str, str] = field(repr=False)
    passwords: dict[str, str] = field(repr=False)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict, repr=False)
    _tokens: dict[str, str] = field(default_factory=dict, repr=False)

    def ask(
        self,
        path: str,
        body: Any = None,
        *,
        method: str | None = None,
        user: str = "admin",
        token: str | None = None,
    ) -> Any:
        """Call the REST API, and return its answer."""
        given = token if token is not None else self.token(user)
        request = urllib.request.Request(
            f"{self.address}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {given}"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or b"null")

    def token(self, user: str) -> str:
        """Return the token that a user gets who logs in."""
        if user not in self._tokens:
            login = {"username": user, "password": self.passwords[user]}
            self._tokens[user] = self.ask("/auth/token", login, token="none yet")["access_token"]
        return self._tokens[user]

    def status(self, path: str, user: str = "admin") -> int:
        """Return how a path of the server answers a user."""
        request = urllib.request.Request(f"{self.address}{path}", headers={"Cookie": f"_token={self.token(user)}"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def unpause(self, dag_id: str) -> None:
        """Wait until a DAG is known, and let the scheduler run it."""
        self.wait(f"DAG {dag_id}", lambda: self.ask(f"/api/v2/dags/{dag_id}"))
        self.ask(f"/api/v2/dags/{dag_id}", {"is_paused": False}, method="PATCH")

    def trigger(self, dag_id: str, **conf: Any) -> str:
        """Start a run, and return its name."""
        started = self.ask(f"/api/v2/dags/{dag_id}/dagRuns", {"logical_date": None, "conf": conf})
        return str(started["dag_run_id"])

    def run_path(self, dag_id: str, run_id: str) -> str:
        """Return where the REST API has a run."""
        return f"/api/v2/dags/{dag_id}/dagRuns/{urllib.parse.quote(run_id, safe='')}"

    def ended(self, dag_id: str, run_id: str) -> str:
        """Wait for the end of a run, and return its state."""
        path = self.run_path(dag_id, run_id)
        return str(
            self.wait(
                f"end of {dag_id}",
                lambda: (state := self.ask(path)["state"]) in ("success", "failed") and state,
            )
        )

    def run(self, dag_id: str, **conf: Any) -> tuple[str, str]:
        """Start a run, wait for its end; return its name and state."""
        run_id = self.trigger(dag_id, **conf)
        return run_id, self.ended(dag_id, run_id)

    def result(self, dag_id: str, run_id: str, task_id: str) -> Any:
        """Return what a task pushed to XCom."""
        path = f"{self.run_path(dag_id, run_id)}/taskInstances/{task_id}/xcomEntries/return_value"
        return self.ask(f"{path}?deserialize=false&stringify=false")["value"]

    def wait(self, what: str, question: Callable[[], Any], seconds: float = 240) -> Any:
        """Ask until there is an answer."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for name, process in self.processes.items():
                assert process.poll() is None, f"the {name} has stopped: {self.log(name)}"
            try:
                if found := question():
                    return found
            except OSError:  # among them whatever HTTP status is an error
                pass
            time.sleep(0.5)
        raise AssertionError(f"no {what} within {seconds} seconds")

    def log(self, name: str) -> str:
        """Return the end of what a process printed."""
        return (self.home / f"{name}.log").read_text(errors="replace")[-4000:]

    def command(self, *arguments: str) -> str:
        """Run Airflow's command line."""
        done = subprocess.run(
            [sys.executable, "-m", "airflow", *arguments],
            env=self.environment, cwd=self.home, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout

    def start(self, name: str) -> None:
        """Start one of its processes."""
        with (self.home / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", "airflow", name],
                env=self.environment, cwd=self.home, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def stop(self) -> None:
        """Stop all of it, with whatever it started."""
        for process in self.processes.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.processes.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(20)


def free_port() -> int:
    """Return a port of loopback that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def live_airflow(
    home: Path,
    dags: Mapping[str, str],
    *,
    readers: Mapping[str, tuple[str, ...]] | None = None,
    settings: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Airflow]:
    """Start an Airflow with the auth manager that knows roles (FAB); stop it at the end.

    :param home: Its AIRFLOW_HOME.
    :param dags: The sources of the files in its folder of DAGs, by their names.
    :param readers: Users beside ``admin``, and the DAGs that each may read.
    :param settings: More settings, ``SECTION__OPTION``.
    :param environment: More of the processes' environment.
    """
    if importlib.util.find_spec("airflow.providers.fab") is None:
        absent("apache-airflow-providers-fab is not installed (extra `dev`)")
    for folder in ("dags", "plugins"):
        (home / folder).mkdir(parents=True)
    for name, source in dags.items():
        (home / "dags" / name).write_text(source)
    shutil.copy(PLUGIN, home / "plugins")
    address = f"http://127.0.0.1:{free_port()}"
    running = Airflow(
        address,
        home,
        _environment(home, address, settings or {}) | dict(environment or {}),
        {user: secrets.token_hex(8) for user in ("admin", *(readers or {}))},
    )
    try:
        running.command("db", "migrate")
        _add_users(running, readers or {})
        for name in ("api-server", "scheduler", "dag-processor"):
            running.start(name)
        running.wait("API", lambda: running.ask("/api/v2/version", token="none"))
        yield running
    finally:
        running.stop()


def _environment(home: Path, address: str, settings: Mapping[str, Any]) -> dict[str, str]:
    usual = {
        "CORE__AUTH_MANAGER": AUTH_MANAGER,
        "CORE__DAGS_FOLDER": home / "dags",
        "CORE__EXECUTION_API_SERVER_URL": f"{address}/execution/",
        "CORE__FERNET_KEY": "",
        "CORE__LOAD_EXAMPLES": False,
        "CORE__PARALLELISM": 4,
        "CORE__PLUGINS_FOLDER": home / "plugins",
        "API__BASE_URL": address,
        "API__HOST": "127.0.0.1",
        "API__PORT": address.rpartition(":")[2],
        "API__SECRET_KEY": secrets.token_hex(32),
        "API__WORKERS": 1,
        "API_AUTH__JWT_SECRET": secrets.token_hex(64),
        "DAG_PROCESSOR__REFRESH_INTERVAL": 5,
        "DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}",
        "LOCAL_CLOAKING__AUDIT_PATH": home / "audit",
        "SCHEDULER__ENABLE_HEALTH_CHECK": False,
        # A busy machine answers late.
        "WORKERS__EXECUTION_API_TIMEOUT": 120,
        **settings,
    }
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    return {
        **inherited,
        **{f"AIRFLOW__{name}": str(value) for name, value in usual.items()},
        "AIRFLOW_HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }


#: In a process of its own, and in one: Airflow's command line takes seconds for each user, role and right.
_USERS = """
import json, sys
from airflow.providers.fab.auth_manager.cli_commands.utils import get_application_builder

said = json.load(sys.stdin)
with get_application_builder() as builder:
    manager = builder.sm
    manager.sync_roles()
    for user, password in said["passwords"].items():
        name = "Admin" if user == "admin" else user + "_role"
        role = manager.add_role(name) or manager.find_role(name)
        for resource in said["rights"].get(user, ()):
            manager.add_permission_to_role(role, manager.create_permission("can_read", resource))
        assert manager.add_user(user, user, "of the tests", user + "@example.org", [role], password)
"""


def _add_users(running: Airflow, readers: Mapping[str, tuple[str, ...]]) -> None:
    rights = {user: [*COMING_IN, *(f"DAG:{dag_id}" for dag_id in dag_ids)] for user, dag_ids in readers.items()}
    done = subprocess.run(
        [sys.executable, "-c", _USERS],
        input=json.dumps({"passwords": running.passwords, "rights": rights}),
        env=running.environment, cwd=running.home, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
