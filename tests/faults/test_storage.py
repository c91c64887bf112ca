"""Tables and audit store in object storage: every request fails in every way."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.faults import invariants
from tests.faults.beforehand import ask_only_twice
from tests.faults.injecting import RUN, LineTrial, Tally, run_up_to_publish
from tests.faults.made import FAILING, PASSING, write_tables
from tests.faults.operations import Fault, Operation, ways_of
from tests.faults.proxies import STORAGE_WAYS, Line, storage_proxy
from tests.faults.tasks import CHECK, MEASURE, PUBLISH, Gate
from tests.storage import REGION, connect_storage, endpoint

__all__ = ["endpoint"]

pytest.importorskip("airflow", reason="apache-airflow is not installed (extra `airflow`)")
pytest.importorskip("s3fs", reason="s3fs is not installed (extra `dev`)")
pytest.importorskip("moto.server", reason="moto is not installed (extra `dev`)")

#: Each part is a test of its own, so that several processes share them.
PARTS = 2
PLACE = "s3://store@bucket"


@dataclass
class Bucket:
    """A bucket that is brought back to how it was, as often as wanted."""

    client: Any
    root: Path
    _states: dict[str, tuple[dict[str, bytes], dict[Any, Any]]] = field(default_factory=dict)

    @property
    def audit(self) -> Any:
        from airflow.providers.common.compat.sdk import ObjectStoragePath

        return ObjectStoragePath(f"{PLACE}/audit")

    def contents(self) -> dict[str, bytes]:
        listed = self.client.list_objects_v2(Bucket="bucket").get("Contents", [])
        return {
            item["Key"]: self.client.get_object(Bucket="bucket", Key=item["Key"])["Body"].read() for item in listed
        }

    def keep(self, name: str, xcoms: dict[Any, Any]) -> None:
        self._states[name] = self.contents(), dict(xcoms)

    def restore(self, name: str) -> dict[Any, Any]:
        kept, xcoms = self._states[name]
        there = self.contents()
        for key in there.keys() - kept.keys():
            self.client.delete_object(Bucket="bucket", Key=key)
        for key, content in kept.items():
            if there.get(key) != content:
                self.client.put_object(Bucket="bucket", Key=key, Body=content)
        return dict(xcoms)

    def files(self) -> dict[str, str]:
        return {key: hashlib.sha256(content).hexdigest() for key, content in self.contents().items()}

    def nothing_half_written(self, *, leftovers: bool) -> None:
        """No upload is left in pieces, either."""
        for key, content in self.contents().items():
            invariants.whole(key, content)
        assert leftovers or not self.client.list_multipart_uploads(Bucket="bucket").get("Uploads")


@dataclass
class StoredTrial(LineTrial):
    """A trial of which requests to the storage fail."""

    final = frozenset({"half, told as the whole", "nonsense"})

    def may_leave(self, fault: Fault) -> bool:
        return True


@dataclass
class Stored:
    bucket: Bucket
    gate: Gate
    line: Line
    environment: dict[str, str]

    def trial(self, task_id: str, threshold: float = PASSING) -> StoredTrial:
        gate = replace(self.gate, threshold=threshold)
        return StoredTrial(gate, self.bucket, task_id, task_id, self.environment, ask_only_twice, line=self.line)


@pytest.fixture(scope="module")
def stored(endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    folder = tmp_path_factory.mktemp("stored")
    (folder / "work").mkdir()
    with pytest.MonkeyPatch.context() as patch, storage_proxy(endpoint) as (line, address):
        bucket = Bucket(connect_storage(endpoint, patch, connection="store", bucket="bucket"), folder / "work")
        connection = {
            "conn_type": "aws",
            "login": "tester",
            "password": "unmistakable-secret",
            "extra": {
                "endpoint_url": address,
                "region_name": REGION,
                "config_kwargs": {"retries": {"total_max_attempts": 1, "mode": "standard"}},
            },
        }
        environment = {"AIRFLOW_CONN_STORE": json.dumps(connection)}
        gate = Gate(
            f"{PLACE}/originals.csv", f"{PLACE}/avatars.csv", PASSING, f"{PLACE}/audit",
            {"key": "id", "projection": f"{PLACE}/projection.json", "groups": ["arm"],
             "compare_with_previous": True},
        )  # fmt: skip
        for k, run_id in ((25, "earlier"), (12, RUN)):
            for path in write_tables(folder / "tables", k):
                bucket.client.upload_file(str(path), "bucket", path.name)
            run_up_to_publish(gate, bucket, run_id, keep=run_id == RUN, environment=environment)
        yield Stored(bucket, gate, line, environment)


def faults_of(operations: list[Operation]) -> list[Fault]:
    return ways_of(operations, STORAGE_WAYS)


TRIALS = [(MEASURE, PASSING), (CHECK, PASSING), (CHECK, FAILING), (PUBLISH, PASSING)]


@pytest.mark.faults
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize(("task_id", "threshold"), TRIALS)
def test_every_request_fails_in_every_way(stored, task_id, threshold, part):
    tried, tally = stored.trial(task_id, threshold), Tally()
    # What a verdict that stops the DAG does otherwise than a pass is seen in a part of them.
    step = PARTS if threshold == PASSING else 4 * PARTS
    tally.inject(tried, faults_of(tried.operations)[part::step])
    tally.check()
    tally.note(f"storage-{task_id}-{threshold:g}", part, tried)


@pytest.mark.faults
def test_the_recording_holds_what_a_run_is_known_to_do(stored):
    known = {
        MEASURE: {"originals.csv", "avatars.csv", "projection.json", "counts.parquet"},
        CHECK: {"counts.parquet", "record.json", "report.html"},
        PUBLISH: {"record.json", "avatars.csv"},
    }
    for task_id, names in known.items():
        operations = stored.trial(task_id).operations
        assert names <= {Path(one.path).name for one in operations}
    assert sum(one.kind == "PUT" for one in stored.trial(CHECK).operations) == 3
