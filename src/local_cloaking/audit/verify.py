"""Verifying a record: against itself, against the hash that was told elsewhere, against the files.

What each of these proves stands in ``docs/threat-model.md``.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from local_cloaking.audit.consistency import Finding, compared, look_into, read_record
from local_cloaking.audit.record import RecordError, build_record, peers_in, watch_of
from local_cloaking.errors import InputError

if TYPE_CHECKING:
    from local_cloaking.measuring import Inputs
    from local_cloaking.tables import CsvOptions

#: What somebody chose: no measure can tell whether it is what was chosen then.
_CHOSEN = (
    "threshold",
    "threshold_set_by",
    "warn_below",
    "max_drop",
    "previous",
    "k",
    "data_set",
    "parameters",
)

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
    >>> findings = verify_record(b'{"schema": "local-cloaking/record", "schema_version": 2}')
    >>> [finding.what for finding in findings if finding.agrees is False]
    ['digest', 'schema', 'figures and verdict']
    """
    record = read_record(content)
    findings = []
    if sha256 is not None:
        found = hashlib.sha256(content).hexdigest()
        findings.append(compared("SHA-256 of the record", sha256.strip().lower(), found))
    by_itself = look_into(record)
    findings += by_itself
    if inputs is None:
        return findings
    if not next(finding.agrees for finding in by_itself if finding.what == "schema"):
        return [*findings, Finding("measured again", agrees=False, detail="not, as the record is damaged")]
    return findings + _by_the_files(record, inputs, scheduler)


def _by_the_files(record: dict[str, Any], inputs: Inputs, scheduler: str | None) -> list[Finding]:
    if record["schema_version"] < 2:
        raise RecordError(
            "a record of schema version 1 does not say by which options it was measured: it is verified by itself"
        )
    _refuse_other_files(record, inputs)
    csv, options = _asked_for(record)
    try:
        again = _made_again(record, replace(inputs, csv=csv), scheduler, options)
    except InputError as error:
        return [Finding("measured again", agrees=False, detail=f"refused: {error}")]
    return [
        *_files_compared(record, again),
        *_entries_compared(record, again),
        *_versions_told(record, again),
        *_choices_told(record),
    ]


def _files_compared(record: dict[str, Any], again: dict[str, Any]) -> list[Finding]:
    return [
        compared(
            f"SHA-256 of the {name.replace('_', ' ')}", described.get("sha256"), again["inputs"][name]["sha256"]
        )
        for name, described in record["inputs"].items()
    ]


def _entries_compared(record: dict[str, Any], again: dict[str, Any]) -> list[Finding]:
    measured = [name for name in again if name not in _OF_THE_RUN and name not in _CHOSEN]
    return [
        compared(name.replace("_", " "), _plain(name, record.get(name)), _plain(name, again[name]))
        for name in measured
    ]


def _versions_told(record: dict[str, Any], again: dict[str, Any]) -> list[Finding]:
    then, now = record["versions"], again["versions"]
    return [
        Finding(f"version of {name}", None, f"{then.get(name, 'absent')} then, {now.get(name, 'absent')} now")
        for name in {**then, **now}
        if then.get(name) != now.get(name)
    ]


def _choices_told(record: dict[str, Any]) -> list[Finding]:
    return [
        Finding(
            name.replace("_", " "), None, f"{json.dumps(record[name], ensure_ascii=False)}, as the record says"
        )
        for name in _CHOSEN
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
    return csv, {**options, "data_set": record["data_set"], "k": record["k"]}


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
    again = build_record(
        entries,
        result.counts,
        judgement,
        threshold_set_by=record["threshold_set_by"],
        watch=watch_of(record),
    )
    return dict(json.loads(json.dumps(again)))


def _plain(name: str, value: Any) -> Any:
    """Leave out what a file is called: a copy of it is as good."""
    if name != "inputs":
        return value
    return {which: {**described, "name": None} for which, described in value.items()}
