"""Verifying a record: against itself, against the hash that was told elsewhere, against the files.

What each of these proves stands in ``docs/threat-model.md``.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from local_cloaking.audit.record import (
    SCHEMA,
    SCHEMA_VERSION,
    RecordError,
    build_record,
    digest_of,
    peers_in,
    verdict_again,
)
from local_cloaking.errors import InputError

if TYPE_CHECKING:
    from local_cloaking.measuring import Inputs
    from local_cloaking.tables import CsvOptions

#: What differs from run to run, or says where things lie, and no figure depends on.
_OF_THE_RUN = {
    "counts",
    "counts_sha256",
    "digest",
    "duration_seconds",
    "judged",
    "measured_at",
    "run",
    "schema_version",
    "versions",
}
#: Figures of other processors and libraries agree to this share; counts agree exactly.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes
    ----------
    what
        What it is.
    agrees
        Whether it is as the record says; None where it is only to be known.
    detail
        What differs, or what is to be known; may be empty.
    """

    what: str
    agrees: bool | None
    detail: str = ""


def read_record(content: bytes) -> dict[str, Any]:
    """Read the bytes of a record, also one of an older schema version.

    Raises
    ------
    RecordError
        If they are no record, or one of a later version than this package knows.

    Examples
    --------
    >>> read_record(b"{}")
    Traceback (most recent call last):
    ...
    local_cloaking.audit.record.RecordError: this is no record of a Local Cloaking check
    """
    try:
        record = json.loads(content)
        known = isinstance(record, dict) and record.get("schema") == SCHEMA
    except (ValueError, RecursionError):
        known = False
    if not known:
        raise RecordError("this is no record of a Local Cloaking check")
    version = record.get("schema_version")
    if isinstance(version, bool) or version not in range(1, SCHEMA_VERSION + 1):
        raise RecordError(f"this version knows records up to schema version {SCHEMA_VERSION}: use a later one")
    return dict(record)


def verify_record(
    content: bytes, *, sha256: str | None = None, inputs: Inputs | None = None, scheduler: str | None = None
) -> list[Finding]:
    """Compute what a record says again.

    Parameters
    ----------
    content
        The bytes of its file.
    sha256
        The hash of the file, as the check's XCom or the asset's event has it.
    inputs
        The files that were measured; None to verify the record by itself.
    scheduler
        Address of a Dask scheduler, where it takes one to measure.

    Returns
    -------
    What was looked at; all of it agrees where the record is right.

    Raises
    ------
    RecordError
        If there is no record, or not all of the files that it names.
    OSError
        If a file cannot be read.

    Examples
    --------
    >>> import pandas as pd
    >>> from local_cloaking import local_cloaking
    >>> from local_cloaking.audit.record import measure_entries, to_bytes
    >>> same = pd.DataFrame({"age": [50.0] * 10})
    >>> result = local_cloaking(same, same)
    >>> record = build_record(measure_entries(result), result.counts, None)
    >>> [finding.agrees for finding in verify_record(to_bytes(record))]
    [True, True, True, True]
    >>> [finding.agrees for finding in verify_record(to_bytes({**record, "n": 11}))]
    [False, False, True, True]
    """
    record = read_record(content)
    findings = []
    if sha256 is not None:
        found = hashlib.sha256(content).hexdigest()
        findings.append(_compared("SHA-256 of the record", sha256.strip().lower(), found))
    with _damage_is_told():
        findings += _by_itself(record)
    return findings if inputs is None else findings + _by_the_files(record, inputs, scheduler)


@contextmanager
def _damage_is_told() -> Iterator[None]:
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise RecordError("the record is damaged: an entry is missing, or is of another kind") from error


def _by_itself(record: dict[str, Any]) -> list[Finding]:
    values = np.array(record["distribution"]["count"], dtype=np.int64)
    individuals = np.array(record["distribution"]["individuals"], dtype=np.int64)
    # Where the avatars look shuffled, nothing may have been counted, and no figure is told.
    n = record["n"] if not len(values) and record["local_cloaking"] is None else int(individuals.sum())
    median = record["local_cloaking"] if record["local_cloaking"] is None else _median(values, individuals)
    return [
        _compared("digest", record["digest"], digest_of(record)),
        _compared("individuals", record["n"], n),
        _compared("Local Cloaking, from the distribution", record["local_cloaking"], median),
        _compared("verdict, from the distribution", record["verdict"], verdict_again(record)),
    ]


def _median(values: Any, individuals: Any) -> float:
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(individuals[order])
    middle = [(reached[-1] - 1) // 2, reached[-1] // 2]
    return float(values[order][np.searchsorted(reached, middle, side="right")].mean())


def _by_the_files(record: dict[str, Any], inputs: Inputs, scheduler: str | None) -> list[Finding]:
    if record["schema_version"] < 2:
        raise RecordError(
            "a record of schema version 1 does not say by which options it was measured: it is verified by itself"
        )
    with _damage_is_told():
        _refuse_other_files(record, inputs)
        csv, options = _asked_for(record)
    try:
        again = _made_again(record, replace(inputs, csv=csv), scheduler, options)
    except InputError as error:
        return [Finding("measured again", agrees=False, detail=f"refused: {error}")]
    with _damage_is_told():
        return [*_files_compared(record, again), *_entries_compared(record, again), *_versions_told(record, again)]


def _files_compared(record: dict[str, Any], again: dict[str, Any]) -> list[Finding]:
    return [
        _compared(f"SHA-256 of the {name.replace('_', ' ')}", described["sha256"], again["inputs"][name]["sha256"])
        for name, described in record["inputs"].items()
    ]


def _entries_compared(record: dict[str, Any], again: dict[str, Any]) -> list[Finding]:
    return [
        _compared(name.replace("_", " "), _plain(name, record[name]), _plain(name, again[name]))
        for name in again
        if name not in _OF_THE_RUN
    ]


def _versions_told(record: dict[str, Any], again: dict[str, Any]) -> list[Finding]:
    then, now = record["versions"], again["versions"]
    return [
        Finding(f"version of {name}", None, f"{then.get(name, 'absent')} then, {now.get(name, 'absent')} now")
        for name in {**then, **now}
        if then.get(name) != now.get(name)
    ]


def _refuse_other_files(record: dict[str, Any], inputs: Inputs) -> None:
    given = {name for name, source in vars(inputs).items() if name != "csv" and source is not None}
    for name in sorted(given ^ set(record["inputs"])):
        said = "was not measured with" if name in given else "was measured with"
        raise RecordError(f"the record {said} the file `{name.replace('_', '-')}`: give the files that it names")


def _asked_for(record: dict[str, Any]) -> tuple[CsvOptions, dict[str, Any]]:
    from local_cloaking.tables import CsvOptions

    asked = dict(record["parameters"])
    csv = CsvOptions(**{name: asked.pop(name) for name in asdict(CsvOptions())})
    wanted = ("ncp", "key", "categorical", "drop", "groups", "min_group_size")
    options = {name: asked[name] for name in wanted}
    return csv, {
        **options,
        "data_set": record["data_set"],
        "k": record["k"],
        "ladder": record["ladder"] is not None,
    }


def _made_again(
    record: dict[str, Any], inputs: Inputs, scheduler: str | None, options: dict[str, Any]
) -> dict[str, Any]:
    from local_cloaking.gate import judge
    from local_cloaking.measuring import measure_inputs

    measured = measure_inputs(inputs, scheduler=scheduler, **options)
    result, entries = measured.result, measured.entries
    judgement = None
    if record["threshold"] is not None:
        judgement = judge(
            result.counts,
            individuals=result.n,
            threshold=record["threshold"],
            reason=result.reason,
            peers=peers_in(entries),
        )
    again = build_record(entries, result.counts, judgement, threshold_set_by=record["threshold_set_by"])
    return dict(json.loads(json.dumps(again)))


def _plain(name: str, value: Any) -> Any:
    """Leave out what a file is called: a copy of it is as good."""
    if name != "inputs":
        return value
    return {which: {**described, "name": None} for which, described in value.items()}


def _compared(what: str, told: Any, found: Any) -> Finding:
    if _same(told, found):
        return Finding(what, agrees=True)
    return Finding(what, agrees=False, detail=f"the record says {_shown(told)}, found {_shown(found)}")


def _same(told: Any, found: Any) -> bool:
    if isinstance(told, dict) and isinstance(found, dict):
        return told.keys() == found.keys() and all(_same(told[name], found[name]) for name in told)
    if isinstance(told, list) and isinstance(found, list):
        return len(told) == len(found) and all(map(_same, told, found))
    if isinstance(told, float) and isinstance(found, float):
        return math.isclose(told, found, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
    # 1 is no True, and a number of individuals no float.
    return type(told) is type(found) and bool(told == found)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:200]}..."
