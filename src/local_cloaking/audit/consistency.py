"""Whether a record agrees with itself: with its digest, its schema, and what follows from its distribution.

A record that was edited by hand, or put together by something else, can say ``passed`` over figures that did not
pass. Whoever reads one (the report, `verify`, the guard of a publishing task) asks here first.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from local_cloaking.audit.record import (
    SCHEMA,
    SCHEMA_VERSION,
    RecordError,
    digest_of,
    verdict_again,
    warning_again,
)
from local_cloaking.audit.statistics import Distribution

#: Figures of other processors and libraries agree to this share; counts agree exactly.
ROUNDING = 1e-9


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
    if type(version) is not int or version not in range(1, SCHEMA_VERSION + 1):
        raise RecordError(f"this version knows records up to schema version {SCHEMA_VERSION}: use a later one")
    return dict(record)


def agrees_with_itself(record: dict[str, Any]) -> bool:
    """Tell whether nothing in a record contradicts the rest of it; see `look_into`."""
    return all(finding.agrees for finding in look_into(record))


def look_into(record: dict[str, Any]) -> list[Finding]:
    """Compare a record, as `read_record` returns it, with what follows from it.

    Examples
    --------
    >>> import pandas as pd
    >>> from local_cloaking import local_cloaking
    >>> from local_cloaking.audit.record import build_record, measure_entries
    >>> same = pd.DataFrame({"age": [50.0] * 10})
    >>> result = local_cloaking(same, same)
    >>> record = build_record(measure_entries(result), result.counts, None)
    >>> [finding.what for finding in look_into({**record, "verdict": "passed"}) if not finding.agrees][:2]
    ['digest', 'schema']
    """
    findings = [_of_the_digest(record), _of_the_schema(record)]
    try:
        distribution = Distribution.of(record["distribution"])
        return findings + _of_the_figures(record, distribution) + _of_the_verdict(record)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        # Without its text, which may show a value.
        return [*findings, Finding("figures and verdict", agrees=False, detail="an entry is missing or damaged")]


def _of_the_digest(record: dict[str, Any]) -> Finding:
    try:
        return compared("digest", record.get("digest"), digest_of(record))
    except (ValueError, RecursionError):  # as NaN, which JSON has not
        return Finding("digest", agrees=False, detail="an entry is no plain JSON")


def _of_the_schema(record: dict[str, Any]) -> Finding:
    error = next(_validator(record["schema_version"]).iter_errors(record), None)
    if error is None:
        return Finding("schema", agrees=True)
    where = "/".join(str(step) for step in error.absolute_path) or "the record"
    return Finding("schema", agrees=False, detail=f"{where} is not as the schema says ({error.validator})")


@cache
def _validator(version: int) -> Any:
    from jsonschema import Draft202012Validator

    name = "record.schema.json" if version == SCHEMA_VERSION else f"record-{version}.schema.json"
    return Draft202012Validator(json.loads((files("local_cloaking.audit") / name).read_text(encoding="utf-8")))


def _of_the_figures(record: dict[str, Any], distribution: Distribution) -> list[Finding]:
    known = record["local_cloaking"] is not None
    if not known:
        hidden = [name for name in ("strict_median", "hidden_rate") if record[name] is not None]
        unreliable = record["unreliable_because"] is not None
        n = distribution.n or record["n"]
        return [compared("individuals", record["n"], n), Finding("figures", agrees=unreliable and not hidden)]
    return [
        compared("individuals", record["n"], distribution.n),
        compared("Local Cloaking, from the distribution", record["local_cloaking"], distribution.median),
        Finding("strict median", agrees=0 <= record["strict_median"] <= record["local_cloaking"]),
        Finding("hidden rate", agrees=_is_possible(record["hidden_rate"], distribution)),
    ]


def _is_possible(hidden_rate: float, distribution: Distribution) -> bool:
    """Tell whether ties can have made this rate: none to all of the c counted may be strictly nearer."""
    certain = 100.0 - distribution.share_below(1)
    nearest = float((distribution.individuals / (distribution.counts + 1.0)).sum())
    least = 100.0 * (1.0 - nearest / distribution.n)
    return bool(least - ROUNDING * 100 <= hidden_rate <= certain + ROUNDING * 100)


def _of_the_verdict(record: dict[str, Any]) -> list[Finding]:
    findings = [compared("verdict, from the distribution", record["verdict"], verdict_again(record))]
    if record["schema_version"] >= 2:
        findings.append(compared("warning, from the figures", record["warning"], warning_again(record)))
    if record["verdict"] != "passed":
        return findings
    excuses = [name for name in ("reason", "remedy", "unreliable_because") if record[name]]
    return [
        *findings,
        Finding("nothing against a pass", agrees=not excuses, detail=", ".join(excuses)),
        Finding("Great Expectations results", agrees=_all_met(record)),
    ]


def _all_met(record: dict[str, Any]) -> bool:
    results = {entry["type"]: entry for entry in record["expectations"]}
    rows = results.get("expect_table_row_count_to_equal", {"bounds": {}})
    median = results.get("expect_column_median_to_be_between", {"bounds": {}})
    return (
        len(results) == len(record["expectations"]) >= 4
        and all(entry["success"] is True for entry in results.values())
        and rows["bounds"].get("value") == rows.get("observed") == record["n"]
        and median["bounds"].get("min_value") == record["threshold"]
        and median.get("observed") == record["local_cloaking"]
    )


def compared(what: str, told: Any, found: Any) -> Finding:
    """Compare what a record tells with what was found.

    Examples
    --------
    >>> compared("individuals", 12, 13)
    Finding(what='individuals', agrees=False, detail='the record says 12, found 13')
    """
    if same(told, found):
        return Finding(what, agrees=True)
    return Finding(what, agrees=False, detail=f"the record says {_shown(told)}, found {_shown(found)}")


def same(told: Any, found: Any) -> bool:
    """Tell whether two JSON values are the same, floats up to rounding.

    Examples
    --------
    >>> same({"a": [1, 0.1 + 0.2]}, {"a": [1, 0.3]}), same(1, True)
    (True, False)
    """
    if isinstance(told, dict) and isinstance(found, dict):
        return told.keys() == found.keys() and all(same(told[name], found[name]) for name in told)
    if isinstance(told, list) and isinstance(found, list):
        return len(told) == len(found) and all(map(same, told, found))
    if isinstance(told, float) and isinstance(found, float):
        return math.isclose(told, found, rel_tol=ROUNDING, abs_tol=ROUNDING)
    # 1 is no True, and a number of individuals no float.
    return type(told) is type(found) and bool(told == found)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 200 else f"{text[:200]}..."
