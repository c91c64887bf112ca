"""Records as `verify`, the guard of a publishing task and the report read them: changed, and sealed again."""

from __future__ import annotations

import hashlib
import json
import math
import random
import statistics
import tempfile
import zlib
from functools import cache
from pathlib import Path
from typing import Any

from local_cloaking.audit.consistency import agrees_with_itself, read_record
from local_cloaking.audit.record import RecordError, digest_of, passed_record
from local_cloaking.audit.verify import verify_record
from local_cloaking.errors import LocalCloakingError
from tests.fuzz.mutated_json import mutate_json
from tests.fuzz.tables import OTHER

#: Of so many, one is also drawn, verified by its files, and verified by the command line.
_DRAWN, _BY_FILES, _BY_COMMAND = 300, 200, 100


def prepare() -> None:
    """Import what is imported late."""

    import local_cloaking.audit.report
    import local_cloaking.cli  # noqa: F401
    from tests.fuzz.tables import prepare as of_tables

    of_tables()
    from local_cloaking.audit.report import draw_report
    from tests.records import record_of

    draw_report(record_of())


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Change a record; most of the time, its digest is made to fit."""

    def seal(record: dict[str, Any]) -> None:
        record["digest"] = digest_of(record)

    return mutate_json(data, rng, seal)


def once(data: bytes) -> None:
    number = zlib.crc32(data)
    try:
        findings = verify_record(data)
    except RecordError:
        findings = []
    agrees = bool(findings) and all(finding.agrees is not False for finding in findings)
    try:
        record = passed_record(data, hashlib.sha256(data).hexdigest())
    except RecordError:
        record = None
    if record is not None:
        assert agrees, "passed, and does not agree with itself"
        may_pass(json.loads(data))
    if not number % _BY_COMMAND:
        _by_command(data, agrees=agrees)
    if not number % _BY_FILES:
        _by_files(data)
    if agrees and not number % _DRAWN:
        draws(read_record(data), "fr" if number % 2 else "en")


def may_pass(record: dict[str, Any]) -> None:
    """Compute the verdict again, by nothing that the package has."""
    said = record["distribution"]
    assert record["verdict"] == "passed"
    threshold = record["threshold"]
    assert type(threshold) in (int, float)
    assert 0 < threshold < math.inf
    pairs = list(zip(said["count"], said["individuals"], strict=True))
    assert sum(individuals for _, individuals in pairs) == record["n"] >= 1
    assert all(count <= record["n"] - 1 for count, _ in pairs)
    if record["n"] < 100_000:
        counts = [count for count, individuals in pairs for _ in range(int(individuals))]
        assert statistics.median(counts) >= threshold
        assert math.isclose(statistics.median(counts), record["local_cloaking"])
    assert record["unreliable_because"] is None
    assert not record["reason"]
    carried = record["carried_over"]
    assert carried is None or carried["median_peers"] >= threshold
    content = {name: value for name, value in record.items() if name != "digest"}
    text = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    assert record["digest"] == hashlib.sha256(text.encode()).hexdigest()
    assert len(record["expectations"]) >= 4
    assert all(entry["success"] is True for entry in record["expectations"])


def draws(record: dict[str, Any], language: str) -> None:
    """Draw the report of a record that agrees with itself; whatever its texts hold, they are text."""
    from local_cloaking.audit.report import draw_report

    page = draw_report(record, language=language).decode()
    assert "<script>alert" not in page
    assert 'onload="alert' not in page


def _by_files(data: bytes) -> None:
    from local_cloaking.measuring import Inputs
    from tests.fuzz.tables import Bytes

    try:
        verify_record(data, inputs=Inputs(Bytes(OTHER), Bytes(OTHER)))
    except LocalCloakingError as refusal:
        assert str(refusal)


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="fuzz-"))


def _by_command(data: bytes, *, agrees: bool) -> None:
    from typer.testing import CliRunner

    from local_cloaking.cli import app

    path = _folder() / "record.json"
    path.write_bytes(data)
    answer = CliRunner().invoke(app, ["verify", str(path)])
    by_itself(answer)
    assert (answer.exit_code == 0) == agrees, "the command line says otherwise"
    assert agrees_with_itself(read_record(data)) if agrees else answer.exit_code in (1, 2)


def by_itself(answer: Any) -> None:
    """Make sure that a command ended by itself."""
    if answer.exception is not None and not isinstance(answer.exception, SystemExit):
        raise answer.exception
    assert answer.exit_code in (0, 1, 2)
