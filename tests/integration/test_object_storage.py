"""Tables and evidence in object storage: a real S3 server on loopback, reached through Airflow's connection."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest
from tests.storage import connect_storage

pytest.importorskip("s3fs", reason="s3fs is not installed (extra `dev`)")
pytest.importorskip("moto.server", reason="moto is not installed (extra `dev`)")

SOURCE = """
from datetime import datetime, timedelta
from airflow.sdk import DAG, task
from local_cloaking.airflow import *

with DAG("stored", schedule=None, start_date=datetime(2026, 1, 1),
         default_args=dict(retries=1, retry_delay=timedelta(seconds=0))) as dag:
    gate = local_cloaking_gate(
        "gate", originals="s3://store@bucket/originals.csv", avatars="s3://store@bucket/avatars.csv", key="id",
        ncp=3, threshold={threshold}, audit_path="s3://store@{audit}")

    @task
    def publish(verdict):
        return require_passed(verdict, "s3://store@bucket/avatars.csv")

    publish(gate.verdict)
"""


@pytest.fixture
def bucket(endpoint, tables, monkeypatch) -> Any:
    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/moto-api/reset", method="POST"))
    client = connect_storage(endpoint, monkeypatch, connection="store", bucket="bucket")
    for path in (tables.originals, tables.avatars):
        client.upload_file(str(path), "bucket", path.name)
    return client


def keys_of(client) -> list[str]:
    return sorted(item["Key"] for item in client.list_objects_v2(Bucket="bucket").get("Contents", []))


def test_counts_and_record_lie_in_object_storage(run_dag, bucket):
    run = run_dag(SOURCE.format(threshold=3, audit="bucket/audit"))
    assert run.state == "success"
    verdict = run.result("gate.check")
    assert verdict["record"].startswith("s3://")
    kept = [key for key in keys_of(bucket) if key.startswith("audit/")]
    evidence = [key for key in kept if not key.startswith("audit/index/")]
    assert len(kept) == len(evidence) + 1
    assert [key.rsplit("/", 1)[-1] for key in evidence] == ["record.json", "report.html", "counts.parquet"]
    record = json.loads(bucket.get_object(Bucket="bucket", Key=evidence[0])["Body"].read())
    assert record["verdict"] == "passed"
    assert "unmistakable-secret" not in json.dumps([record, *map(str, run.xcoms.values())])
    assert run.result("publish") == "s3://store@bucket/avatars.csv"


def test_below_the_threshold_the_record_is_there_before_the_task_fails(run_dag, bucket):
    run = run_dag(SOURCE.format(threshold=50, audit="bucket/audit"))
    assert run.state == "failed"
    assert [key for key in keys_of(bucket) if key.endswith("record.json")]


def test_a_bucket_that_is_not_there_is_an_error_and_no_verdict(run_dag, bucket):
    run = run_dag(SOURCE.format(threshold=3, audit="no-such-bucket/audit"))
    assert run.state == "failed"
    assert run.states["gate.local_cloaking"] == "failed"
    assert run.tries["gate.local_cloaking"] == 2
