"""The operator that judges a measured Local Cloaking, and stops the DAG when it falls short."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, Asset, BaseOperator

from local_cloaking.airflow.arguments import location, mapping, text, truth
from local_cloaking.airflow.links import RecordLink, ReportLink
from local_cloaking.airflow.metrics import send_gauges
from local_cloaking.airflow.runs import (
    CONFIG_OPTION,
    CONFIG_SECTION,
    evidence_folder,
    evidence_root,
    refusals_are_final,
    run_of,
    zone_of,
)
from local_cloaking.errors import InputError
from local_cloaking.storage import read_whole

if TYPE_CHECKING:
    from airflow.sdk import Context

    from local_cloaking.audit.evidence import Evidence
    from local_cloaking.gate import Watch

#: Of how many verdicts of a data set, from the latest, the run before is looked for.
_LOOKED_BACK = 20

_XCOM_ENTRIES = (
    "verdict",
    "reason",
    "remedy",
    "threshold",
    "warn_below",
    "warning",
    "local_cloaking",
    "hidden_rate",
    "n",
    "ncp",
    "k",
    "warnings",
    "data_set",
    "avatars_sha256",
)


class LocalCloakingCheckOperator(BaseOperator):
    """Fails the task, for good, unless Local Cloaking reaches the threshold.

    The gate is a Great Expectations suite on the counts that were measured, not on the number in XCom. Record and
    report are written, and the verdict pushed to XCom, before the task fails. The JSON object has ``verdict``
    (``passed``, ``below_threshold``, ``not_assessable``), ``reason``, ``remedy``, ``local_cloaking``,
    ``threshold``, ``warning``, ``warnings``, ``record``, ``record_sha256``, ``avatars_sha256``, ``report``.

    A pass below ``warn_below``, or one that fell since the run before, is a pass with ``warning`` true.

    Assets among the task's outlets are updated when the verdict is ``passed``, with value, threshold and record
    in ``extra``.

    :param measured: The result of `LocalCloakingOperator`, as its ``.output``. (templated)
    :param threshold: The smallest Local Cloaking that passes, above 0. (templated)
    :param warn_below: A bound above the threshold: a pass below it is a warning. (templated)
    :param compare_with_previous: Whether to compare with the last run that measured the same data set. (templated)
    :param max_drop: Compares, too: by how much Local Cloaking may fall since that run before it is a warning; by
        default 0, which warns of any fall. (templated)
    :param threshold_set_by: Who set the threshold, for the record. (templated)
    :param language: Of the report, ``en`` (by default) or ``fr``. (templated)
    :param audit_path: Where record and report are kept; by default ``[local_cloaking] audit_path``. (templated)
    """

    template_fields: Sequence[str] = (
        "measured",
        "threshold",
        "warn_below",
        "compare_with_previous",
        "max_drop",
        "threshold_set_by",
        "language",
        "audit_path",
    )
    operator_extra_links = (ReportLink(), RecordLink())
    ui_color = "#f7e8df"

    def __init__(
        self,
        *,
        measured: Any,
        threshold: Any,
        warn_below: Any = None,
        compare_with_previous: Any = False,
        max_drop: Any = None,
        threshold_set_by: Any = None,
        language: Any = None,
        audit_path: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.measured = measured
        self.threshold = threshold
        self.warn_below = warn_below
        self.compare_with_previous = compare_with_previous
        self.max_drop = max_drop
        self.threshold_set_by = threshold_set_by
        self.language = language
        self.audit_path = audit_path

    def execute(self, context: Context) -> dict[str, Any]:
        """Judge, write record and report, push the verdict; fail unless it is ``passed``."""
        with refusals_are_final():
            result = self._judge(context)
        send_gauges(result, run_of(context)["dag_id"])
        if result["verdict"] == "passed":
            self._tell_assets(context, result)
            return result
        context["ti"].xcom_push(key="return_value", value=result)
        raise AirflowFailException(f"{result['verdict']}: {result['reason']}; {result['remedy']}")

    def _judge(self, context: Context) -> dict[str, Any]:
        from local_cloaking.audit.languages import language_of
        from local_cloaking.audit.record import build_record, peers_in, to_bytes
        from local_cloaking.audit.store import write_whole
        from local_cloaking.gate import checked_threshold, judge
        from local_cloaking.measuring import now

        threshold = checked_threshold(self.threshold)
        watch = self._watch(threshold)
        language = language_of(text(self.language, "language"))
        measured = mapping(self.measured, "measured", "measure")
        evidence = self._evidence(measured, context)
        judgement = judge(
            evidence.closer,
            individuals=evidence.measure["n"],
            threshold=threshold,
            reason=evidence.measure["reason"],
            peers=peers_in(evidence.measure),
        )
        if watch.max_drop is not None:
            watch = replace(
                watch, previous=self._previous(evidence.measure["data_set"], judgement.verdict, context)
            )
        record = build_record(
            evidence.measure,
            evidence.closer,
            judgement,
            threshold_set_by=text(self.threshold_set_by, "threshold_set_by"),
            watch=watch,
            counts=str(measured["counts"]),
            counts_sha256=str(measured["counts_sha256"]),
            judged={"at": now(zone_of(context)), "run": run_of(context)},
        )
        content = to_bytes(record)
        sha256 = hashlib.sha256(content).hexdigest()
        folder = evidence_folder(self.audit_path, context)
        path = folder / "record.json"
        write_whole(path, content)
        self._log(record, str(path))
        result = {
            **{name: record[name] for name in _XCOM_ENTRIES},
            "record": str(path),
            "record_sha256": sha256,
            "report": self._report(folder / "report.html", record, language.code, sha256),
        }
        self._enter_in_index(record, result, context)
        return result

    def _watch(self, threshold: float) -> Watch:
        from local_cloaking.gate import Watch, checked_max_drop, checked_warn_below

        compares = truth(self.compare_with_previous, "compare_with_previous") or self.max_drop is not None
        return Watch(
            warn_below=None if self.warn_below is None else checked_warn_below(self.warn_below, threshold),
            max_drop=checked_max_drop(0 if self.max_drop is None else self.max_drop) if compares else None,
        )

    def _previous(self, data_set: str | None, verdict: str, context: Context) -> dict[str, Any] | None:
        """Return the last other run that measured the same data set; None where there is none."""
        if data_set is None:
            return None
        run = run_of(context)
        this_run = (run["dag_id"], run["run_id"])
        try:
            from local_cloaking.audit.index import entries

            root = evidence_root(self.audit_path)
            for entry in entries(root, data_set=data_set, limit=_LOOKED_BACK, strict=True):
                value = entry.local_cloaking
                if value is not None and (entry.dag_id, entry.run_id) != this_run:
                    return {"record_sha256": entry.record_sha256, "local_cloaking": float(value), "at": entry.at}
        except Exception:
            if verdict == "passed":
                raise  # Its warning would be lost; the next try compares.
            self.log.exception("the runs before could not be read: Local Cloaking is not compared with theirs")
        return None

    def _enter_in_index(self, record: dict[str, Any], result: dict[str, Any], context: Context) -> None:
        from local_cloaking.audit.index import IndexEntry, write_entry

        root, report = evidence_root(self.audit_path), result["report"]
        try:
            entry = IndexEntry(
                # To the microsecond, unlike the record: entries are sorted by it.
                at=datetime.now(UTC).astimezone(zone_of(context)).isoformat(timespec="microseconds"),
                **record["judged"]["run"],
                data_set=record["data_set"],
                verdict=record["verdict"],
                warning=record["warning"],
                local_cloaking=record["local_cloaking"],
                threshold=record["threshold"],
                n=record["n"],
                record=_within(root, result["record"]),
                record_sha256=result["record_sha256"],
                report=None if report is None else _within(root, report),
            )
            write_entry(root, entry)
        except Exception:
            if record["verdict"] == "passed":
                raise  # Nothing passes without being shown; the next try writes it.
            self.log.exception("the verdict could not be entered in the index: no page will show it")

    def _report(self, path: Any, record: dict[str, Any], language: str, sha256: str) -> str | None:
        from local_cloaking.audit.report import draw_report
        from local_cloaking.audit.store import write_whole

        try:
            write_whole(path, draw_report(record, language=language, sha256=sha256))
        except Exception:
            if record["verdict"] == "passed":
                raise  # Nothing passes without its report; the next try writes it.
            # Nor does what is wrong with the report keep a verdict from stopping the DAG, for good.
            self.log.exception("the report could not be written; `local-cloaking report` draws it from the record")
            return None
        return str(path)

    def _evidence(self, measured: dict[str, Any], context: Context) -> Evidence:
        from local_cloaking.audit.evidence import Evidence

        missing = [name for name in ("counts", "counts_sha256") if not isinstance(measured.get(name), str)]
        if missing:
            raise InputError(
                f"`measured` has no {missing[0]}", remedy="give the output of a LocalCloakingOperator"
            )
        path = location(measured["counts"], "measured")
        try:
            content = read_whole(path)
        except OSError as error:
            # No verdict, and not final: shared storage comes back.
            raise AirflowException(
                f"the counts at {path} cannot be read ({error.strerror or type(error).__name__}): let all workers "
                f"share `audit_path`, or set [{CONFIG_SECTION}] {CONFIG_OPTION} to a place that they share"
            ) from error
        evidence = Evidence.from_bytes(content, measured["counts_sha256"])
        theirs, ours = evidence.measure.get("run") or {}, run_of(context)
        if any(theirs.get(name) != ours[name] for name in ("dag_id", "run_id")):
            raise InputError(
                "the counts were measured in another run", remedy="judge the measure of this very run"
            )
        return evidence

    def _log(self, record: dict[str, Any], path: str) -> None:
        from local_cloaking.summary import summary_rows

        log = self.log.info if record["verdict"] == "passed" else self.log.error
        for name, value in summary_rows(record, path):
            log("%-16s %s", name, value)

    def _tell_assets(self, context: Context, result: dict[str, Any]) -> None:
        told = (
            "verdict",
            "warning",
            "local_cloaking",
            "threshold",
            "n",
            "data_set",
            "record",
            "record_sha256",
            "avatars_sha256",
            "report",
        )
        for outlet in self.outlets:
            if isinstance(outlet, Asset):
                context["outlet_events"][outlet].extra = {name: result[name] for name in told}


def _within(root: Any, path: str) -> str:
    """Return a path as it is below the root of all evidence."""
    return path.removeprefix(str(root)).lstrip("/")
