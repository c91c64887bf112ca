"""The record of one run: everything an auditor needs to compute the verdict again, and nothing of anyone.

The record is a JSON object; its schema is ``record.schema.json`` beside this file, its meaning stands in
``docs/record.md``. It carries a digest of itself, so that a change by hand is found out.
"""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import asdict
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from local_cloaking.errors import LocalCloakingError
from local_cloaking.gate import Judgement, Watch, remedy, warnings_of_pass
from local_cloaking.neighbours import TIE_TOLERANCE

if TYPE_CHECKING:
    from local_cloaking.ladder import Ladder
    from local_cloaking.metric import LocalCloaking
    from local_cloaking.safeguards import TableFindings

Integers = NDArray[np.int64]

SCHEMA = "local-cloaking/record"
SCHEMA_VERSION = 2

TIE_RULE = (
    "avatar j is closer than the own one when s_ij <= r_i^2; s_ij is the sum over the components, in their "
    "order, in float64, of squared differences; d_i = sqrt(s_i,own); r_i = d_i + tau * (|x_i| + d_i); strictly "
    "closer when s_ij < max(0, d_i - tau * (|x_i| + d_i))^2"
)

_PACKAGES = (
    "local-cloaking",
    "numpy",
    "pandas",
    "pyarrow",
    "scikit-learn",
    "scipy",
    "great-expectations",
    "apache-airflow",
    "dask",
)


def measure_entries(result: LocalCloaking) -> dict[str, Any]:
    """Return what was measured as plain JSON values, without counts per individual.

    Examples
    --------
    >>> import pandas as pd
    >>> from local_cloaking import local_cloaking
    >>> same = pd.DataFrame({"age": [50.0] * 10})
    >>> measure_entries(local_cloaking(same, same))["n"]
    10
    """
    findings, evidence = result.findings, result.evidence
    # A figure from pairs that cannot be relied on is no figure.
    known = not result.looks_shuffled and len(result.counts) > 0
    return {
        "local_cloaking": result.median if known else None,
        "strict_median": result.strict_median if known else None,
        "hidden_rate": result.hidden_rate if known else None,
        "n": result.n,
        "reason": result.reason,
        "warnings": list(result.warnings),
        "ncp": result.ncp,
        "space": result.space,
        "avatars_table": result.avatars_table,
        "explained_variance": list(result.explained),
        "pairing": result.pairing,
        "pairing_evidence": {
            "association": evidence.association,
            "far_share": evidence.far_share,
            "median_share": evidence.median_share,
            "sample": evidence.sample,
        },
        "columns": [asdict(column) for column in findings.columns],
        "copy_share": findings.copy_share,
        "real_row_share": findings.real_row_share,
        "duplicate_share": findings.duplicate_share,
        "carried_over": _carried_over(findings),
        "local_cloaking_without_filled": result.without_filled if known else None,
        "ladder": _ladder(result.ladder),
        "groups": result.groups,
        "tie_rule": {"text": TIE_RULE, "tau": TIE_TOLERANCE},
        "versions": versions(),
    }


def _carried_over(findings: TableFindings) -> dict[str, Any] | None:
    carried = findings.carried_over
    return None if carried is None else {"columns": list(carried.columns), "median_peers": carried.median_peers}


def _ladder(ladder: Ladder | None) -> dict[str, Any] | None:
    if ladder is None:
        return None
    rungs = [{"ncp": ncp, "local_cloaking": value} for ncp, value in enumerate(ladder.rungs, start=1)]
    return {"individuals": ladder.individuals, "rungs": rungs}


def peers_in(measure: dict[str, Any]) -> float | None:
    """Return the median number of peers in the carried-over columns, or None; see `judge`."""
    carried = measure["carried_over"]
    return None if carried is None else float(carried["median_peers"])


def versions() -> dict[str, str]:
    """Return the versions of what computed the figure; packages that are not installed are left out."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def build_record(
    measure: dict[str, Any],
    closer: Integers,
    judgement: Judgement | None,
    *,
    threshold_set_by: str | None = None,
    watch: Watch | None = None,
    counts: str | None = None,
    counts_sha256: str | None = None,
    judged: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Put a record together.

    Parameters
    ----------
    measure
        `measure_entries`, with what the caller adds: inputs, parameters, times, run.
    closer
        The counts that were judged, in any order.
    judgement
        What the gate said; None where there was no threshold, and then the verdict is null.
    threshold_set_by
        Who set the threshold, in free text.
    watch
        What lets a verdict pass and is told all the same; None for nothing.
    counts, counts_sha256
        Where the counts file lies, and its hash; None on the command line, which keeps none.
    judged
        When and where the verdict was given.

    Returns
    -------
    The record, with its digest.
    """
    values, individuals = np.unique(closer, return_counts=True)
    watch = watch or Watch()
    told = warnings_of_pass(judgement.verdict, judgement.local_cloaking, watch) if judgement else []
    record = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "verdict": judgement.verdict if judgement else None,
        "threshold": judgement.threshold if judgement else None,
        "threshold_set_by": threshold_set_by,
        "warn_below": watch.warn_below,
        "warning": bool(told),
        "max_drop": watch.max_drop,
        "previous": None if watch.previous is None else dict(watch.previous),
        "remedy": remedy(judgement.verdict, measure.get("k")) if judgement else "",
        "expectations": [asdict(expectation) for expectation in judgement.expectations] if judgement else [],
        **measure,
        "warnings": [*measure["warnings"], *told],
        "reason": judgement.reason if judgement else measure["reason"],
        "unreliable_because": measure["reason"],
        "distribution": {"count": values.tolist(), "individuals": individuals.tolist()},
        "counts": counts,
        "counts_sha256": counts_sha256,
        "judged": judged,
    }
    return {**record, "digest": digest_of(record)}


def digest_of(record: dict[str, Any]) -> str:
    """Return the SHA-256 of a record without its digest, over its keys in order, without white space.

    Examples
    --------
    >>> record = {"verdict": "passed"}
    >>> digest_of({**record, "digest": digest_of(record)}) == digest_of(record)
    True
    """
    content = {key: value for key, value in record.items() if key != "digest"}
    text = json.dumps(content, allow_nan=False, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def to_bytes(record: dict[str, Any]) -> bytes:
    """Write a record as the bytes of its file."""
    return (json.dumps(record, allow_nan=False, ensure_ascii=False, indent=2) + "\n").encode()


class RecordError(LocalCloakingError):
    """The record is damaged, was changed, or does not say ``passed``."""


def passed_record(content: bytes, sha256: str) -> dict[str, Any]:
    """Read a record, and make sure that it says ``passed``.

    Parameters
    ----------
    content
        The bytes of the record's file.
    sha256
        Their hash, as the check told it.

    Raises
    ------
    RecordError
        If the bytes are others, the record contradicts itself, or its verdict is not ``passed``.
    """
    if hashlib.sha256(content).hexdigest() != sha256:
        raise RecordError("the record is not the one that the check wrote: its hash differs")
    from local_cloaking.audit.consistency import agrees_with_itself, read_record

    record = read_record(content)
    if not agrees_with_itself(record):
        raise RecordError("the record contradicts itself: it was changed after the check")
    if record["verdict"] != "passed":
        raise RecordError(f"the verdict is {record['verdict']}, not passed: {record['reason']}")
    return record


def verdict_again(record: dict[str, Any]) -> str | None:
    """Compute the verdict of a record again, from what it says was measured.

    That is its distribution of counts, ``n``, ``threshold``, ``unreliable_because`` and ``carried_over``.

    Examples
    --------
    >>> verdict_again({"distribution": {"count": [4, 9], "individuals": [20, 30]}, "n": 50, "threshold": 5.0,
    ...                "unreliable_because": None, "carried_over": None})
    'passed'
    """
    n, threshold = record["n"], record["threshold"]
    if threshold is None:
        return None
    from local_cloaking.audit.statistics import Distribution

    # Not an entry for each individual: a record can claim any number of them.
    try:
        distribution = Distribution.of(record["distribution"])
    except ValueError:
        return "not_assessable"
    fits = distribution.n == n and bool((distribution.counts <= n - 1).all())
    possible = not isinstance(threshold, bool) and threshold > 0
    if not fits or not possible or n - 1 < threshold or record["unreliable_because"] is not None:
        return "not_assessable"
    if distribution.median < threshold:
        return "below_threshold"
    peers = peers_in(record)
    return "passed" if peers is None or peers >= threshold else "not_assessable"


def watch_of(record: dict[str, Any]) -> Watch:
    """Return what a record says was asked to be told of.

    Examples
    --------
    >>> watch_of({"warn_below": 8.0, "max_drop": None, "previous": None}).warn_below
    8.0
    """
    return Watch(record["warn_below"], record["max_drop"], record["previous"])


def warning_again(record: dict[str, Any]) -> bool:
    """Compute again, from what a record says, whether its pass was to be told of.

    Examples
    --------
    >>> warning_again({"verdict": "passed", "local_cloaking": 6.0, "warn_below": 8.0, "max_drop": None,
    ...                "previous": None})
    True
    """
    return bool(warnings_of_pass(record["verdict"], record["local_cloaking"], watch_of(record)))
