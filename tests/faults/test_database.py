"""Tables in a PostgreSQL: the database goes away at whatever passes between it and the task."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd
import pytest

from tests.database import PASSWORD, USER, Database, database
from tests.faults.beforehand import CHUNK_ROWS, few_rows_at_a_time
from tests.faults.injecting import RUN, LineTrial, Tally, run_up_to_publish
from tests.faults.made import PASSING, N, Workshop, write_tables
from tests.faults.operations import Fault, ways_of
from tests.faults.proxies import DATABASE_WAYS, Line, database_proxy
from tests.faults.tasks import MEASURE, PUBLISH, Gate

__all__ = ["database"]

pytest.importorskip("airflow", reason="apache-airflow is not installed (extra `airflow`)")


@dataclass
class SqlTrial(LineTrial):
    """A trial whose database goes away."""

    final = frozenset()

    def may_leave(self, fault: Fault) -> bool:
        return fault.way == "killed"


@dataclass
class Stored:
    workshop: Workshop
    gate: Gate
    line: Line
    environment: dict[str, str]

    def trial(self, task_id: str) -> SqlTrial:
        return SqlTrial(
            self.gate, self.workshop, task_id, task_id, self.environment, few_rows_at_a_time, line=self.line
        )


@pytest.fixture(scope="module")
def stored(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    folder = tmp_path_factory.mktemp("database")
    for name in ("kept", "work", "tables"):
        (folder / name).mkdir()
    workshop = Workshop(folder / "work", folder / "kept")
    for path in write_tables(folder / "tables")[:2]:
        pd.read_csv(path, dtype={"id": str}).to_sql(path.stem, database.engine, index=False)

    def end() -> None:
        database.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )

    with pytest.MonkeyPatch.context() as patch, database_proxy(database.port, end) as (line, port):
        database.connect(patch, "warehouse")
        connection = {
            "conn_type": "postgres", "host": "127.0.0.1", "port": port, "login": USER, "password": PASSWORD,
            "schema": "postgres",
        }  # fmt: skip
        environment = {"AIRFLOW_CONN_WAREHOUSE": json.dumps(connection)}
        gate = Gate(
            "sql://warehouse/originals", "sql://warehouse/avatars", PASSING, str(workshop.audit),
            {"key": "id", "ncp": 3},
        )  # fmt: skip
        run_up_to_publish(gate, workshop, RUN, keep=True, environment=environment)
        yield Stored(workshop, gate, line, environment)
        for table in ("originals", "avatars"):
            database.execute(f"DROP TABLE {table}")


@pytest.mark.faults
@pytest.mark.parametrize("part", [0, 4])
@pytest.mark.parametrize("task_id", [MEASURE, PUBLISH])
def test_the_database_goes_away_at_whatever_passes(stored, task_id, part):
    tried, tally = stored.trial(task_id), Tally()
    asked = [one.size for one in tried.operations if one.kind == "answered"]
    assert len(asked) > 2 * N // CHUNK_ROWS
    # Hundreds of messages: each fails in one way or two, in turn.
    tally.inject(tried, ways_of(tried.operations, DATABASE_WAYS)[part::8])
    tally.check()
    tally.note(f"database-{task_id}", part, tried)
