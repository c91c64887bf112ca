"""A PostgreSQL server on loopback, Debian's, in a folder of its own."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.browser import absent

USER = "tester"
#: Nowhere may it be seen. With what a URL has to escape.
PASSWORD = "unmistakable/p@ss:word"


@dataclass
class Database:
    """A running server, and an engine for its one database."""

    port: int
    engine: Any = field(repr=False)

    @property
    def url(self) -> str:
        """Its address, without the password."""
        return f"postgresql+psycopg2://{USER}@127.0.0.1:{self.port}/postgres"

    def execute(self, *statements: str) -> None:
        with self.engine.begin() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    def connect(
        self, monkeypatch: pytest.MonkeyPatch, connection: str, port: int | None = None, password: str = PASSWORD
    ) -> None:
        """Name it as an Airflow connection."""
        entries = {
            "conn_type": "postgres",
            "host": "127.0.0.1",
            "port": port or self.port,
            "login": USER,
            "password": password,
            "schema": "postgres",
        }
        monkeypatch.setenv(f"AIRFLOW_CONN_{connection.upper()}", json.dumps(entries))


@pytest.fixture(scope="session")
def database() -> Iterator[Database]:
    """A database server; skips where there is none."""
    sqlalchemy = pytest.importorskip("sqlalchemy", reason="sqlalchemy is not installed (extra `sql`)")
    pytest.importorskip("psycopg2", reason="psycopg2 is not installed (extra `dev`)")
    programs = _programs()
    # Not in pytest's folders: they are the owner's alone, and PostgreSQL does not run as root.
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    as_whom = _whom(folder)

    def run(*arguments: str) -> None:
        done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False, **as_whom)
        assert done.returncode == 0, done.stderr

    (folder / "password").write_text(PASSWORD)
    data, port = str(folder / "data"), free_port()
    how = ["--auth=scram-sha-256", f"--pwfile={folder / 'password'}", "--encoding=UTF8", "--locale=C", "--no-sync"]
    run(str(programs / "initdb"), "-D", data, "-U", USER, *how)
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
    pg_ctl = str(programs / "pg_ctl")
    run(pg_ctl, "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
    engine = sqlalchemy.create_engine(
        f"postgresql+psycopg2://{USER}:{quote(PASSWORD, safe='')}@127.0.0.1:{port}/postgres"
    )
    try:
        yield Database(port, engine)
    finally:
        engine.dispose()
        run(pg_ctl, "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _programs() -> Path:
    on_path = shutil.which("initdb")
    if on_path is not None:
        return Path(on_path).parent
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        absent("PostgreSQL is not installed (Debian's package postgresql)")
    return found[-1].parent


def _whom(folder: Path) -> dict[str, Any]:
    """PostgreSQL does not run as root: then as the user that its package makes."""
    if os.getuid() != 0:
        return {}
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        absent("the tests run as root, and there is no user postgres to run PostgreSQL as")
    os.chown(folder, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
