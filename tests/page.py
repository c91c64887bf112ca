"""Airflow's own API server with the page in it, users with different rights, and a store full of evidence."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

from local_cloaking.audit.index import IndexEntry, entries, write_entry
from local_cloaking.audit.record import digest_of, to_bytes
from local_cloaking.audit.report import draw_report
from tests.records import RUN, below_threshold, record_of

ROOT = Path(__file__).parent.parent
START = datetime(2026, 11, 1, 8, 0, tzinfo=UTC)
OPEN, SECRET = "trial", "secret"

#: Who may read which DAGs.
READERS = {"admin": {OPEN, SECRET}, "viewer": {OPEN}, "stranger": set()}


class RolesAuthManager(SimpleAuthManager):
    """Lets each user read the DAGs of `READERS`; an auth manager with roles does it so, too."""

    def is_authorized_dag(self, *, method: Any, user: Any, access_entity: Any = None, details: Any = None) -> bool:
        readable = READERS.get(user.username, set())
        dag_id = details.id if details else None
        return method == "GET" and (bool(readable) if dag_id is None else dag_id in readable)


@dataclass
class Served:
    """The API server's application, and how users reach it."""

    application: Any = field(repr=False)
    base: str = ""

    def token(self, user: str) -> str:
        """Return the token that a user gets who logs in."""
        from airflow.api_fastapi.app import get_auth_manager

        return get_auth_manager().generate_jwt(SimpleAuthManagerUser(username=user, role="VIEWER"))

    def client(self, user: str | None = None, token: str | None = None) -> Any:
        """Return a browser's client: of a user, with some token, or with none."""
        from starlette.testclient import TestClient

        if user is not None:
            token = self.token(user)
        cookies = {} if token is None else {"_token": token}
        return TestClient(
            self.application,
            base_url="http://testserver",
            cookies=cookies,
            follow_redirects=False,
            raise_server_exceptions=False,
        )


@contextmanager
def serving(home: Path, store: Path, patch: pytest.MonkeyPatch, base: str = "") -> Iterator[Served]:
    """Make the application as `airflow api-server` does, with the plugin from its file in plugins/."""
    from airflow import plugins_manager
    from airflow.api_fastapi import app as server

    patch.setenv("AIRFLOW__CORE__AUTH_MANAGER", f"{__name__}.RolesAuthManager")
    patch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS", ",".join(f"{user}:viewer" for user in READERS))
    patch.setenv("AIRFLOW__API_AUTH__JWT_SECRET", "a secret of the tests' own, long enough for its algorithm" * 2)
    patch.setenv("AIRFLOW__API__SECRET_KEY", "another secret of the tests")
    patch.setenv("AIRFLOW__LOCAL_CLOAKING__AUDIT_PATH", str(store))
    if base:
        patch.setenv("AIRFLOW__API__BASE_URL", f"http://testserver{base}/")
        patch.setattr(server, "API_ROOT_PATH", f"{base}/")
    plugin = home / "plugins" / "local_cloaking_page.py"
    plugin.parent.mkdir(exist_ok=True)
    # Airflow 3.1 keeps it in a variable of the module.
    holder, name = (
        (server._AuthManagerState, "instance")
        if hasattr(server, "_AuthManagerState")
        else (server, "auth_manager")
    )
    was_there, before = plugin.exists(), getattr(holder, name)
    shutil.copy(ROOT / "plugins" / plugin.name, plugin)
    forget_plugins(plugins_manager)
    server.purge_cached_app()
    try:
        yield Served(server.create_app(apps="core"), base)
    finally:
        # As it was for the application around this one.
        if not was_there:
            plugin.unlink()
        forget_plugins(plugins_manager)
        server.purge_cached_app()
        setattr(holder, name, before)


@contextmanager
def listening(served: Served) -> Iterator[str]:
    """Let the application listen on loopback; yield its address."""
    import socket
    import threading
    import time

    import uvicorn

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(served.application, host="127.0.0.1", port=port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        time.sleep(0.1)
    try:
        yield f"http://127.0.0.1:{port}{served.base}"
    finally:
        server.should_exit = True
        thread.join(30)


def forget_plugins(manager: Any) -> None:
    """Make Airflow look for plugins anew."""
    import sys

    sys.modules.pop("local_cloaking.airflow.plugin", None)
    for value in vars(manager).values():
        if hasattr(value, "cache_clear") and getattr(value, "__module__", "") == manager.__name__:
            value.cache_clear()
    if hasattr(manager, "plugins"):  # Airflow 3.1 keeps them in variables of the module.
        for name in ("plugins", "fastapi_apps", "fastapi_root_middlewares", "external_views", "react_apps"):
            setattr(manager, name, None)
        manager.loaded_plugins.clear()


def know_dags(*dag_ids: str) -> None:
    """Enter DAGs into Airflow's database, as the DAG processor does."""
    from airflow import settings
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel

    with settings.Session() as session:
        session.merge(DagBundleModel(name="tests"))
        session.flush()
        for dag_id in dag_ids:
            if session.get(DagModel, dag_id) is None:
                session.add(DagModel(dag_id=dag_id, bundle_name="tests", fileloc="x.py"))
        session.commit()


def file_verdict(store: Path, number: int = 0, *, said: dict[str, Any] | None = None, **values: Any) -> IndexEntry:
    """Write record, report and entry of a verdict, as the check does; return the entry."""
    plain: dict[str, Any] = {
        "at": (START + timedelta(hours=number)).isoformat(),
        "dag_id": OPEN,
        "run_id": f"manual__{number}",
        "task_id": "gate.check",
        "map_index": -1,
        "try_number": 1,
        "data_set": "patients",
    }
    given = {**plain, **{name: value for name, value in values.items() if name in plain}}
    run = {name: given[name] for name in ("dag_id", "run_id", "task_id", "map_index", "try_number")}
    record = said or (below_threshold if number % 3 == 2 else record_of)()
    record = {**record, "data_set": given["data_set"], "judged": {"at": given["at"], "run": {**RUN, **run}}}
    record["digest"] = digest_of(record)
    content, folder = to_bytes(record), f"evidence/{number}-{given['try_number']}"
    (store / folder).mkdir(parents=True, exist_ok=True)
    (store / folder / "record.json").write_bytes(content)
    entry = IndexEntry(
        **{
            **given,
            "verdict": record["verdict"],
            "warning": False,
            "local_cloaking": record["local_cloaking"],
            "threshold": record["threshold"],
            "n": record["n"],
            "record": f"{folder}/record.json",
            "record_sha256": hashlib.sha256(content).hexdigest(),
            "report": f"{folder}/report.html",
            **{name: value for name, value in values.items() if name not in plain},
        }
    )
    (store / folder / "report.html").write_bytes(_report(number % 3 == 2))
    write_entry(store, entry)
    (filed,) = entries(store, dag_ids=[entry.dag_id], run_id=entry.run_id, limit=1)
    return filed


_DRAWN: dict[bool, bytes] = {}


def _report(below: bool) -> bytes:
    # Each drawn once: what it says of the run does not matter here.
    if below not in _DRAWN:
        _DRAWN[below] = draw_report((below_threshold if below else record_of)())
    return _DRAWN[below]


Filing = Callable[..., IndexEntry]
