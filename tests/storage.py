"""A bucket on an S3 server on loopback, and the Airflow connection that reaches it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

REGION = "eu-west-3"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def connect_storage(endpoint: str, monkeypatch: pytest.MonkeyPatch, *, connection: str, bucket: str) -> Any:
    """Name the server as an Airflow connection, make a bucket, and return a client."""
    import boto3

    keys = {"aws_access_key_id": "tester", "aws_secret_access_key": "unmistakable-secret"}
    entries = {
        "conn_type": "aws",
        "login": keys["aws_access_key_id"],
        "password": keys["aws_secret_access_key"],
        "extra": {"endpoint_url": endpoint, "region_name": REGION},
    }
    monkeypatch.setenv(f"AIRFLOW_CONN_{connection.upper()}", json.dumps(entries))
    client = boto3.client("s3", endpoint_url=endpoint, region_name=REGION, **keys)
    client.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
    return client
