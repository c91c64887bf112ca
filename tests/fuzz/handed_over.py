"""What else is handed over as a file: a projection, the counts of a measure, what `advise` found."""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import zlib

from local_cloaking.audit.consistency import agrees_with_itself
from local_cloaking.audit.evidence import Evidence
from local_cloaking.audit.record import build_record, peers_in
from local_cloaking.errors import LocalCloakingError
from local_cloaking.gate import judge
from local_cloaking.measuring import Inputs, measure_files
from local_cloaking.projection import FAMD
from tests.fuzz.mutated_json import mutate_json
from tests.fuzz.records import prepare as _prepare_records
from tests.fuzz.tables import OTHER, Bytes, mutate_parquet

_JUDGED, _MEASURED, _DRAWN = 60, 20, 300


def prepare() -> None:
    """Import what is imported late."""
    import local_cloaking.audit.advice
    import local_cloaking.audit.advice_report  # noqa: F401

    _prepare_records()


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Change a file of counts, or JSON: in it, what was measured, too."""
    if not data.startswith(b"PAR1"):
        return mutate_json(data, rng)
    if rng.random() < 0.5:
        return mutate_parquet(data, rng)
    with contextlib.suppress(LocalCloakingError, ValueError, RecursionError):
        evidence = Evidence.from_bytes(data, hashlib.sha256(data).hexdigest())
        measure = json.loads(mutate_json(json.dumps(evidence.measure).encode(), random.Random(rng.random())))
        return Evidence(evidence.closer, evidence.strictly_closer, measure).to_bytes()
    return data


def once(data: bytes) -> None:
    try:
        if data.startswith(b"PAR1"):
            _counts(data)
        elif b"local-cloaking/advice" in data:
            _advice(data)
        else:
            _projection(data)
    except LocalCloakingError as refusal:
        assert str(refusal)


def _counts(data: bytes) -> None:
    evidence = Evidence.from_bytes(data, hashlib.sha256(data).hexdigest())
    if zlib.crc32(data) % _JUDGED:
        return
    measure = evidence.measure
    judgement = judge(
        evidence.closer, individuals=measure["n"], threshold=1, reason=measure["reason"], peers=peers_in(measure)
    )
    record = build_record(measure, evidence.closer, judgement, judged={"at": "2026-11-30T08:00:00+01:00"})
    if judgement.verdict == "passed":
        assert agrees_with_itself(record), "passed, and does not agree with itself"


def _advice(data: bytes) -> None:
    from local_cloaking.audit.advice import read_advice
    from local_cloaking.audit.advice_report import draw_advice

    entries = read_advice(data)
    if not zlib.crc32(data) % _DRAWN:
        assert b"<script>alert" not in draw_advice(entries)


def _projection(data: bytes) -> None:
    with contextlib.suppress(UnicodeDecodeError):
        FAMD.from_json(data.decode())
    if not zlib.crc32(data) % _MEASURED:
        measure_files(Inputs(Bytes(OTHER), Bytes(OTHER), Bytes(data)))
