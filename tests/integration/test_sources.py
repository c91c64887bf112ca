"""Gated runs over every kind of source: real servers on loopback, real runs of Airflow."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from tests.database import PASSWORD, Database, database, free_port
from tests.storage import connect_storage
from tests.test_octopize import write_results

__all__ = ["database"]

pytest.importorskip("airflow.providers.postgres", reason="the PostgreSQL provider is not installed (extra `dev`)")
pytest.importorskip("s3fs", reason="s3fs is not installed (extra `dev`)")
pytest.importorskip("moto.server", reason="moto is not installed (extra `dev`)")

HEAD = """
from datetime import datetime, timedelta
from airflow.sdk import DAG, task, task_group
from local_cloaking.airflow import *

OPTIONS = dict(schedule=None, start_date=datetime(2026, 1, 1),
               default_args=dict(retries=1, retry_delay=timedelta(seconds=0)))
"""


@pytest.fixture
def bucket(endpoint, monkeypatch) -> Any:
    # A connection of these tests' own: Airflow keeps the address of one that it has once opened.
    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/moto-api/reset", method="POST"))
    return connect_storage(endpoint, monkeypatch, connection="depot", bucket="bucket")


@pytest.fixture
def warehouse(database: Database, tables, monkeypatch) -> Database:
    """Both tables in PostgreSQL, in a schema whose name has to be quoted."""
    database.execute('DROP SCHEMA IF EXISTS "Étude" CASCADE', 'CREATE SCHEMA "Étude"')
    for path in (tables.originals, tables.avatars):
        frame = pd.read_csv(path, dtype={"id": str})
        frame.to_sql(path.stem, database.engine, schema="Étude", index=False)
    database.connect(monkeypatch, "warehouse")
    return database


def gated(originals: str, avatars: str, threshold: int = 3, more: str = 'key="id", ncp=3') -> str:
    return f"""{HEAD}
with DAG("sources", **OPTIONS) as dag:
    gate = local_cloaking_gate("gate", originals={originals}, avatars={avatars}, threshold={threshold}, {more})

    @task
    def publish(verdict):
        return str(require_passed(verdict, {avatars}))

    publish(gate.verdict)
"""


IN_SQL = 'SqlTable(conn_id="warehouse", schema="Étude", table="{}")'


@pytest.mark.parametrize("threshold", [3, 50])
def test_from_postgresql_to_s3(run_dag, warehouse, bucket, threshold, caplog):
    """A passing gate publishes, a failing one does not; the evidence lies in S3, and no password anywhere."""
    run = run_dag(f"""{HEAD}
with DAG("released", **OPTIONS) as dag:
    avatars = SqlTable(conn_id="warehouse", schema="Étude", table="avatars")
    gate = local_cloaking_gate(
        "gate", originals=SqlTable(conn_id="warehouse", schema="Étude", table="originals"), avatars=avatars,
        threshold={threshold}, key="id", ncp=3, audit_path="s3://depot@bucket/audit")

    @task
    def publish(verdict):
        from airflow.sdk import ObjectStoragePath
        from local_cloaking.tables import read_table
        frame = read_table(require_passed(verdict, avatars)).frame
        with ObjectStoragePath("s3://depot@bucket/released.csv").open("w") as stream:
            frame.drop(columns="id").sample(frac=1).to_csv(stream, index=False)

    publish(gate.verdict)
""")
    assert run.state == ("success" if threshold == 3 else "failed")
    assert run.result("gate.check")["local_cloaking"] == 4.0
    stored = {
        item["Key"]: bucket.get_object(Bucket="bucket", Key=item["Key"])["Body"].read()
        for item in bucket.list_objects_v2(Bucket="bucket")["Contents"]
    }
    for name in ("record.json", "report.html", "counts.parquet"):
        assert [key for key in stored if key.endswith(name)]
    assert ("released.csv" in stored) == (threshold == 3)
    if threshold == 3:
        assert len(stored["released.csv"].splitlines()) == 401
    seen = json.dumps([list(map(str, stored.values())), list(map(str, run.xcoms.values())), caplog.text])
    assert PASSWORD not in seen
    assert "unmistakable" not in seen


@pytest.mark.stack
def test_the_same_in_the_text_form_and_by_templates(run_dag, warehouse):
    text = '"sql://warehouse/{{{{ params.schema }}}}/{}"'
    source = gated(text.format("originals"), '"sql://warehouse/%C3%89tude/avatars"')
    run = run_dag(source.replace("**OPTIONS)", '**OPTIONS, params=dict(schema="%C3%89tude"))'))
    assert run.state == "success"
    templated = 'SqlTable(conn_id="{{ params.conn }}", sql="SELECT * FROM \\"Étude\\".originals")'
    source = gated(templated, '"sql://warehouse/%C3%89tude/avatars"')
    run = run_dag(source.replace("**OPTIONS)", '**OPTIONS, params=dict(conn="warehouse"))'))
    assert run.state == "success"


@pytest.mark.stack
def test_avatars_that_changed_in_the_database_do_not_leave(run_dag, warehouse):
    update = "UPDATE \"Étude\".avatars SET a = a + 1e-9 WHERE id = '0007'"
    source = gated(IN_SQL.format("originals"), IN_SQL.format("avatars")).replace(
        "        return str(",
        "        from airflow.providers.postgres.hooks.postgres import PostgresHook\n"
        f"        PostgresHook('warehouse').run({update!r})\n        return str(",
    )
    run = run_dag(source)
    assert run.states["gate.check"] == "success"
    assert (run.states["publish"], run.tries["publish"]) == ("failed", 1)


def test_a_database_out_of_reach_may_be_retried_and_a_wrong_table_is_not(run_dag, warehouse, monkeypatch):
    """[soda-core 987] What does not open is no success."""
    wrong = run_dag(gated('"sql://warehouse/nowhere"', '"sql://warehouse/nowhere"'))
    assert (wrong.states["gate.local_cloaking"], wrong.tries["gate.local_cloaking"]) == ("failed", 1)
    unknown = run_dag(gated('"sql://nobody/nowhere"', '"sql://nobody/nowhere"'))
    assert (unknown.states["gate.local_cloaking"], unknown.tries["gate.local_cloaking"]) == ("failed", 1)
    warehouse.connect(monkeypatch, "warehouse", password="old")
    shut = run_dag(gated(IN_SQL.format("originals"), IN_SQL.format("avatars")))
    assert (shut.states["gate.local_cloaking"], shut.tries["gate.local_cloaking"]) == ("failed", 2)
    assert shut.states["publish"] == "upstream_failed"
    warehouse.connect(monkeypatch, "warehouse", port=free_port())
    lost = run_dag(gated('"sql://warehouse/nowhere"', '"sql://warehouse/nowhere"'))
    assert (lost.states["gate.local_cloaking"], lost.tries["gate.local_cloaking"]) == ("failed", 2)


@pytest.mark.stack
def test_rows_of_a_database_are_not_paired_by_order(run_dag, warehouse):
    run = run_dag(gated(IN_SQL.format("originals"), IN_SQL.format("avatars"), more='drop="id", ncp=3'))
    assert (run.states["gate.local_cloaking"], run.tries["gate.local_cloaking"]) == ("failed", 1)


@pytest.mark.stack
def test_sqlite_by_its_providers_hook(run_dag, tables, monkeypatch):
    path = tables.folder / "trial.db"
    with sqlite3.connect(path) as connection:
        for file in (tables.originals, tables.avatars):
            pd.read_csv(file, dtype={"id": str}).to_sql(file.stem, connection, index=False)
    monkeypatch.setenv("AIRFLOW_CONN_LITE", json.dumps({"conn_type": "sqlite", "host": str(path)}))
    run = run_dag(gated('"sql://lite/originals"', '"sql://lite/avatars"'))
    assert run.state == "success"
    assert run.result("gate.check")["local_cloaking"] == 4.0


def skip_where_xcom_keeps_no_tables() -> None:
    """Skip where this Airflow hands no table of this pandas from task to task: 3.1 knows none of pandas 3."""
    try:
        from airflow.sdk.serde import serialize
    except ImportError:
        from airflow.serialization.serde import serialize
    try:
        serialize(pd.DataFrame({"x": [1]}))
    except TypeError:
        pytest.skip("this Airflow's XCom keeps no table of this pandas")


def test_a_table_of_an_earlier_task(run_dag, tables, airflow_home):
    """It is measured, and none of its cells stands in what Airflow keeps of the task's arguments."""
    skip_where_xcom_keeps_no_tables()
    source = f"""{HEAD}
with DAG("earlier", **OPTIONS) as dag:
    @task
    def table(path):
        import pandas as pd
        return pd.read_csv(path, dtype=dict(id=str)).assign(marked="unmistakable")

    originals, avatars = table("{tables.originals}"), table.override(task_id="other")("{tables.avatars}")
    gate = local_cloaking_gate("gate", originals=originals, avatars=avatars, threshold=3, key="id", ncp=3)

    @task
    def publish(verdict, table):
        return len(require_passed(verdict, table))

    publish(gate.verdict, avatars)
"""
    run = run_dag(source)
    assert run.state == "success"
    assert run.result("publish") == 400
    assert run.result("gate.check")["local_cloaking"] == 4.0
    from airflow import settings
    from airflow.models.renderedtifields import RenderedTaskInstanceFields
    from sqlalchemy import select

    with settings.Session() as session:
        kept = session.scalars(
            select(RenderedTaskInstanceFields).where(RenderedTaskInstanceFields.task_id == "gate.local_cloaking")
        ).all()
    assert [fields.rendered_fields["avatars"] for fields in kept][-1] == "<a table of 400 rows>"
    assert "unmistakable" not in json.dumps([fields.rendered_fields for fields in kept])


#: Run by a process of its own: Airflow looks once for what keeps its XComs.
WITH_ARROW = """
from airflow.sdk import DAG, task
from local_cloaking.airflow import *
from tests.integration.conftest import _what_is_left
import json, pendulum

with DAG("arrow_tables", schedule=None, start_date=pendulum.datetime(2026, 1, 1, tz="UTC")) as dag:
    @task
    def table(path):
        import pyarrow.csv as csv
        return csv.read_csv(path, convert_options=csv.ConvertOptions(column_types=dict(id="string")))

    originals, avatars = table("{tables.originals}"), table.override(task_id="other")("{tables.avatars}")
    gate = local_cloaking_gate("gate", originals=originals, avatars=avatars, threshold=3, key="id", ncp=3)

    @task
    def publish(verdict, table):
        return require_passed(verdict, table).num_rows

    publish(gate.verdict, avatars)

if __name__ == "__main__":
    run = _what_is_left(dag.test())
    print("RUN", json.dumps([run.state, run.result("gate.check")["local_cloaking"], run.result("publish")]))
"""


def test_arrow_tables_of_an_earlier_task_by_the_documented_backend(airflow_home, tables, tmp_path):
    folder = tmp_path / "xcom"
    folder.mkdir()
    path = airflow_home / "dags" / "with_arrow.py"
    path.write_text(WITH_ARROW.format(tables=tables))
    here = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, timeout=300, cwd=here,
        env={
            **os.environ,
            "AIRFLOW__CORE__XCOM_BACKEND": "arrow_xcom.ArrowXCom",
            "ARROW_XCOM_FOLDER": str(folder),
            "PYTHONPATH": os.pathsep.join([str(here / "docs" / "examples" / "xcom"), str(here), *sys.path]),
        },
    )  # fmt: skip
    path.unlink()
    assert done.returncode == 0, done.stderr[-3000:]
    (said,) = [line for line in done.stdout.splitlines() if line.startswith("RUN ")]
    assert json.loads(said.removeprefix("RUN ")) == ["success", 4.0, 400]
    kept = list(folder.iterdir())
    assert len(kept) == 2
    assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}


def test_an_arrow_table_is_held_too():
    from airflow.sdk import DAG

    from local_cloaking.airflow import LocalCloakingOperator

    with DAG("held", schedule=None):
        operator = LocalCloakingOperator(
            task_id="measure", originals=pa.table({"x": ["unmistakable"]}), avatars=pd.DataFrame({"x": [1, 2]})
        )
    assert [str(operator.originals), str(operator.avatars)] == ["<a table of 1 row>", "<a table of 2 rows>"]


def test_three_data_sets_in_one_mapped_task_group(run_dag, tables, warehouse, bucket):
    """Each from another kind of source, by its text form; the one that falls short fails alone."""
    bucket.upload_file(str(tables.originals), "bucket", "originals.csv")
    bucket.upload_file(str(tables.avatars), "bucket", "avatars.csv")
    close = pd.read_csv(tables.originals, dtype={"id": str})
    close[list("abcdef")] *= 1.0001
    close.to_csv(tables.folder / "close.csv", index=False)
    places = [
        ["sql://warehouse/%C3%89tude/originals", "sql://warehouse/%C3%89tude/avatars"],
        ["s3://depot@bucket/originals.csv", "s3://depot@bucket/avatars.csv"],
        [str(tables.originals), str(tables.folder / "close.csv")],
    ]
    run = run_dag(f"""{HEAD}
with DAG("mapped", **OPTIONS) as dag:
    @task_group
    def gated(places):
        @task
        def nth(places, n):
            return places[n]
        local_cloaking_gate("gate", originals=nth(places, 0), avatars=nth(places, 1), threshold=3, key="id", ncp=3)

    gated.expand(places={places!r})
""")
    assert run.state == "failed"
    verdicts = [run.result(f"gated.gate.check[{number}]") for number in range(3)]
    assert [verdict["verdict"] for verdict in verdicts] == ["passed", "passed", "below_threshold"]
    assert [verdict["local_cloaking"] for verdict in verdicts] == [4.0, 4.0, 0.0]
    assert len({verdict["record"] for verdict in verdicts}) == 3


@pytest.mark.parametrize("threshold", [3, 80])
def test_octopizes_files(run_dag, bucket, tmp_path, threshold):
    """Measured in the platform's own space; the shuffled table leaves, as its rows are those that passed."""
    write_results(tmp_path)
    for path in tmp_path.iterdir():
        bucket.upload_file(str(path), "bucket", f"results/{path.name}")
    run = run_dag(f"""{HEAD}
FOLDER = "s3://depot@bucket/results"
with DAG("octopize", **OPTIONS) as dag:
    gate = local_cloaking_gate(
        "gate", originals=f"{{FOLDER}}/patients.csv", avatars=f"{{FOLDER}}/patients.unshuffled-0.csv",
        threshold={threshold}, ncp=3)

    @task
    def publish(verdict):
        return require_passed(verdict, f"{{FOLDER}}/patients.shuffled-0.csv")

    publish(gate.verdict)
""")
    assert run.state == ("success" if threshold == 3 else "failed")
    measured = run.result("gate.local_cloaking")
    assert (measured["space"], measured["avatars_table"]) == ("coordinates", "verified")
    assert run.result("publish") == (
        "s3://depot@bucket/results/patients.shuffled-0.csv" if threshold == 3 else None
    )
    if threshold == 3:
        from airflow.providers.common.compat.sdk import AirflowFailException

        from local_cloaking.airflow import require_passed

        verdict, shuffled = run.result("gate.check"), tmp_path / "patients.shuffled-0.csv"
        table = pd.read_csv(shuffled)
        assert require_passed(verdict, shuffled) == str(shuffled)
        for other in (
            table.iloc[1:],
            pd.concat([table, table[:1]]),
            table.assign(a=table["a"] + 1e-4 * (table.index == 3)),
        ):
            other.to_csv(shuffled, index=False)
            with pytest.raises(AirflowFailException, match="its hash differs"):
                require_passed(verdict, shuffled)


@pytest.mark.stack
def test_octopizes_shuffled_table_is_refused_once_and_missing_coordinates_are_waited_for(run_dag, tmp_path):
    write_results(tmp_path)
    originals = repr(str(tmp_path / "patients.csv"))
    refused = run_dag(gated(originals, repr(str(tmp_path / "patients.shuffled-0.csv")), more="ncp=3"))
    assert (refused.states["gate.local_cloaking"], refused.tries["gate.local_cloaking"]) == ("failed", 1)
    (tmp_path / "patients.projections.avatars-0.csv").unlink()
    waited = run_dag(gated(originals, repr(str(tmp_path / "patients.unshuffled-0.csv")), more="ncp=3"))
    assert (waited.states["gate.local_cloaking"], waited.tries["gate.local_cloaking"]) == ("failed", 2)
