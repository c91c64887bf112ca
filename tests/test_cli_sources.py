"""The command line over object storage and databases, without Airflow."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from local_cloaking import InputError, local_cloaking
from local_cloaking.cli import app
from tests.database import PASSWORD, Database, database, free_port
from tests.storage import endpoint

__all__ = ["database", "endpoint"]

pytest.importorskip("upath", reason="universal-pathlib is not installed (extra `storage`)")
pytest.importorskip("s3fs", reason="s3fs is not installed (extra `storage`)")
pytest.importorskip("moto.server", reason="moto is not installed (extra `dev`)")


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result.exit_code, result.output


def distribution(result: Any) -> dict[str, list[int]]:
    values, individuals = np.unique(result.counts, return_counts=True)
    return {"count": values.tolist(), "individuals": individuals.tolist()}


def both() -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(1)
    originals = pd.DataFrame(rng.normal(size=(80, 3)), columns=list("abc"))
    originals.insert(0, "id", [f"{i:03d}" for i in range(80)])
    numbers = originals[list("abc")]
    return originals, originals.assign(
        **{name: numbers[name] + rng.normal(scale=0.4, size=80) for name in numbers}
    )


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    import boto3
    import s3fs

    for name, value in {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "tester",
        "AWS_SECRET_ACCESS_KEY": "unmistakable-secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    client = boto3.client("s3")
    client.create_bucket(Bucket="lake")
    for name, frame in zip(("originals", "avatars"), both(), strict=True):
        client.put_object(Bucket="lake", Key=f"{name}.csv", Body=frame.to_csv(index=False).encode())
    # It keeps what it has once opened, by the arguments, which do not hold the address.
    s3fs.S3FileSystem.clear_instance_cache()
    yield client
    s3fs.S3FileSystem.clear_instance_cache()


def test_tables_record_and_report_in_object_storage(bucket, tmp_path):
    places = ["s3://lake/originals.csv", "s3://lake/avatars.csv"]
    options = ["--key", "id", "--ncp", 2, "--threshold", 1]
    code, _ = run(
        "measure", *places, *options, "--json", "s3://lake/out/r.json", "--report", "s3://lake/out/r.html"
    )
    assert code == 0
    record = json.loads(bucket.get_object(Bucket="lake", Key="out/r.json")["Body"].read())
    assert record["verdict"] == "passed"
    assert record["distribution"] == distribution(local_cloaking(*both(), key="id", ncp=2))
    assert b"unmistakable-secret" not in bucket.get_object(Bucket="lake", Key="out/r.html")["Body"].read()
    code, said = run("verify", "s3://lake/out/r.json", "--originals", places[0], "--avatars", places[1])
    assert (code, "DIFFERS" in said) == (0, False)
    assert run("report", "s3://lake/out/r.json", "-o", "s3://lake/out/again.html")[0] == 0
    made = ["--projection", "s3://lake/p.json", "-o", "s3://lake/made.parquet"]
    assert run("avatarise", places[0], "--key", "id", "--k", 5, "--ncp", 2, *made)[0] == 0
    assert (
        run("measure", places[0], "s3://lake/made.parquet", "--key", "id", "--projection", "s3://lake/p.json")[0]
        == 0
    )


def test_nothing_is_written_over_a_table_in_object_storage(bucket):
    code, said = run(
        "measure", "s3://lake/originals.csv", "s3://lake/avatars.csv", "--json", "s3://lake/avatars.csv"
    )
    assert (code, "over another file" in said) == (2, True)


def test_storage_out_of_reach_and_kinds_that_nothing_opens(bucket, monkeypatch, tmp_path):
    code, said = run("measure", "s3://lake/nowhere.csv", "s3://lake/avatars.csv")
    assert code == 2
    code, said = run("measure", "nothing://lake/originals.csv", "s3://lake/avatars.csv")
    assert (code, "local-cloaking[storage]" in said) == (2, True)
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    both()[0].to_csv(tmp_path / "originals.csv", index=False)
    code, said = run("measure", tmp_path / "originals.csv", "s3://lake/avatars.csv")
    assert (code, "cannot be reached" in said) == (2, True)


def test_tables_of_a_database(tmp_path):
    with sqlite3.connect(tmp_path / "trial.db") as connection:
        for name, frame in zip(("originals", "avatars"), both(), strict=True):
            frame.to_sql(name, connection, index=False)
    url = f"sqlite:///{tmp_path / 'trial.db'}"
    record = tmp_path / "record.json"
    measure = ["measure", f"{url}#originals", f"{url}#avatars", "--ncp", 2]
    assert run(*measure, "--key", "id", "--json", record)[0] == 0
    result = local_cloaking(f"{url}#originals", f"{url}#avatars", key="id", ncp=2)
    assert json.loads(record.read_text())["distribution"] == distribution(result)
    with pytest.raises(InputError, match="have no order"):
        local_cloaking(f"{url}#originals", both()[1], ncp=2)
    assert run("verify", record, "--originals", f"{url}#originals", "--avatars", f"{url}#avatars")[0] == 0
    code, said = run(*measure)
    assert (code, "have no order" in said) == (2, True)
    code, said = run(*measure, "--key", "id", "--json", f"{url}#record")
    assert (code, "no place to write" in said) == (2, True)
    code, said = run("measure", f"{url}#nowhere", f"{url}#avatars", "--key", "id")
    assert (code, "no such table" in said) == (2, True)


@pytest.mark.stack
def test_a_million_rows_of_postgresql_take_less_than_a_gigabyte_and_a_half(database: Database):
    script = Path(__file__).parents[1] / "scripts" / "sql_memory.py"
    done = subprocess.run(
        [sys.executable, script, "--url", database.url],
        env={**os.environ, "PGPASSWORD": PASSWORD},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    found = re.search(r"1000000 x 25: .* at most (\d+) MB", done.stdout)
    assert found is not None, done.stdout
    assert int(found[1]) < 1500
