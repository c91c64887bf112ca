"""What holds after every fault, whatever failed and how."""

from __future__ import annotations

import hashlib
import io
import json
import stat
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from local_cloaking.audit.consistency import agrees_with_itself, read_record
from local_cloaking.audit.evidence import Evidence
from local_cloaking.audit.index import entries
from tests.faults.tasks import CHECK, MEASURE

#: What differs from try to try in a record.
OF_THE_TRY = frozenset({"counts", "counts_sha256", "digest", "duration_seconds", "judged", "measured_at", "run"})
#: What it says of the run before.
OF_THE_RUN_BEFORE = frozenset({"previous", "warning", "warnings"})
Xcoms = dict[tuple[str, str], str]


def nothing_half_written(folder: Path, *, leftovers: bool, private: tuple[str, ...] = ()) -> None:
    """Every file is whole; files under another name than their own are only where a process was killed.

    :param leftovers: Whether a file may be left that never came to its name.
    :param private: Names of files that are their owner's alone.
    """
    for path in (found for found in folder.rglob("*") if found.is_file()):
        mode = stat.S_IMODE(path.stat().st_mode)
        name = path.name
        if name.startswith("."):
            assert leftovers, f"{name} was left"
            assert mode & 0o133 == 0, f"{name} may be changed or run by others"
            name = name[1:].rpartition(".")[0]
        else:
            whole(name, path.read_bytes())
        if name in private:
            assert mode == 0o600, f"{path.name} is not its owner's alone"


@lru_cache(maxsize=1000)
def whole(name: str, content: bytes) -> None:
    """A file of this name ends where it should, and says nothing that contradicts the rest of it."""
    name = name.rpartition("/")[2]
    if name == "record.json":
        assert agrees_with_itself(read_record(content)), name
    elif name.endswith(".json"):
        assert isinstance(json.loads(content), dict), name
    elif name.endswith(".html"):
        assert content.rstrip().endswith(b"</html>"), name
    elif name.endswith(".parquet"):
        import pyarrow.parquet as pq

        assert pq.read_table(io.BytesIO(content)).num_rows > 0, name
    elif name.endswith(".csv"):
        assert content.endswith(b"\n"), name
        assert len({line.count(b",") for line in content.splitlines()}) == 1, name


def earlier_files_are_untouched(
    before: dict[str, str], after: dict[str, str], *, may_change: tuple[str, ...] = ()
) -> None:
    """No file of before is gone or different."""
    changed = [path for path in before if after.get(path) != before[path] and Path(path).name not in may_change]
    assert not changed, f"{changed} changed"


def told_verdict_has_its_evidence(audit: Any, xcoms: Xcoms, avatars: Any) -> str | None:
    """What the check told stands on the disk; and nothing leaves but what passed.

    Return the verdict that was told, None where none was.
    """
    from airflow.providers.common.compat.sdk import AirflowFailException

    from local_cloaking.airflow import require_passed

    told = json.loads(xcoms.get((CHECK, "return_value"), "null"))
    if told is None or told["verdict"] != "passed":
        with pytest.raises((AirflowFailException, OSError)):
            require_passed(told, avatars)
        if told is None:
            return None
    content = _content(told["record"])
    assert hashlib.sha256(content).hexdigest() == told["record_sha256"]
    record = read_record(content)
    assert agrees_with_itself(record)
    assert record["verdict"] == told["verdict"]
    assert told["warning"] == record["warning"]
    counts = _content(record["counts"])
    measured = json.loads(xcoms[MEASURE, "return_value"])
    assert measured["counts_sha256"] == record["counts_sha256"]
    assert len(Evidence.from_bytes(counts, record["counts_sha256"]).closer) == record["n"]
    if record["verdict"] == "passed":
        assert told["record_sha256"].encode() in _content(told["report"])
        filed = entries(audit, verdict="passed")
        assert told["record_sha256"] in {entry.record_sha256 for entry in filed}
        assert str(require_passed(told, avatars)).endswith(Path(str(avatars)).name)
    return str(record["verdict"])


def index_tells_the_truth(audit: Any) -> None:
    """Every entry of the index leads to its record, and a pass to its report, too."""
    for entry in entries(audit):
        content = (audit / entry.record).read_bytes()
        assert hashlib.sha256(content).hexdigest() == entry.record_sha256
        record = read_record(content)
        assert (record["verdict"], record["local_cloaking"]) == (entry.verdict, entry.local_cloaking)
        if entry.verdict == "passed":
            assert entry.report is not None
            assert entry.record_sha256.encode() in (audit / entry.report).read_bytes()


def same_record(told: str, expected: dict[str, Any], *, may_differ: frozenset[str] = frozenset()) -> None:
    """The record says what that of an undisturbed run says."""
    record = read_record(_content(json.loads(told)["record"]))
    left_out = OF_THE_TRY | may_differ
    differing = {name for name in expected if name not in left_out and record.get(name) != expected[name]}
    assert not differing, f"the record has other {differing}"


def record_of(xcoms: Xcoms) -> dict[str, Any]:
    """Return the record that a check told of."""
    return read_record(_content(json.loads(xcoms[CHECK, "return_value"])["record"]))


def _content(place: str) -> bytes:
    from local_cloaking.airflow.arguments import location

    with location(place, "place").open("rb") as stream:
        return bytes(stream.read())
