"""The message that tells people of a verdict, or that there is none: subject, plain text and HTML.

It says what the record says, and holds nothing of anyone. It knows no Airflow: what sends it is
`local_cloaking.airflow.notifier`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from local_cloaking.audit.languages import Language
from local_cloaking.audit.pages import page_template

_COLOURS = {"passed": "#1a6437", "warned": "#7d4e00", "not_assessable": "#7d4e00"}
_RED = "#9c2a22"


def write_message(
    run: Mapping[str, Any],
    result: Mapping[str, Any] | None,
    *,
    language: Language,
    data_set: str,
    checks: bool = True,
    error: str | None = None,
    report: str | None = None,
    log: str | None = None,
) -> dict[str, Any]:
    """Write the message on a verdict, or on a task that failed without one.

    Parameters
    ----------
    run
        Which task it was: ``dag_id``, ``run_id``, ``task_id``, ``map_index``.
    result
        The output of the check; None where there is no verdict.
    language
        Of the message.
    data_set
        What the data are called, where no result says it.
    checks
        Whether the task is a check, not a measure; of importance where there is no verdict.
    error
        Why there is no verdict, where that may be told: it must hold no value of a cell.
    report
        Where a person finds the report.
    log
        Address of the task's log.

    Returns
    -------
    What templates of notifiers can use: ``subject``, ``text``, ``html``, and each entry by itself.

    Examples
    --------
    >>> from local_cloaking.audit.languages import language_of
    >>> run = {"dag_id": "release", "run_id": "manual", "task_id": "gate.local_cloaking", "map_index": -1}
    >>> write_message(run, None, language=language_of("en"), data_set="trial", checks=False)["subject"]
    'Local Cloaking: nothing was measured (trial, release)'
    """
    told = dict(result or {})
    entries = {
        **{name: run[name] for name in ("dag_id", "run_id", "task_id", "map_index")},
        "data_set": told.get("data_set") or data_set,
        "verdict": told.get("verdict"),
        "warning": told.get("warning", False),
        "value": told.get("local_cloaking"),
        "threshold": told.get("threshold"),
        "warn_below": told.get("warn_below"),
        "reason": told.get("reason") or error,
        "remedy": told.get("remedy") or None,
        "warnings": list(told.get("warnings", [])),
        "report": report,
        "record": told.get("record"),
        "log": log,
    }
    headline = _headline(entries, checks, language)
    subject = language.text(
        "Local Cloaking: %(headline)s (%(data_set)s, %(dag)s)",
        headline=headline,
        data_set=entries["data_set"],
        dag=entries["dag_id"],
    )
    meaning, rows = _meaning(entries, checks, language), _rows(entries, language)
    return {
        # On one line: a subject with two would be refused, or be two headers.
        "subject": _on_one_line(subject),
        "text": _text(headline, meaning, rows, language),
        "html": _html(headline, meaning, rows, _colour(entries), language),
        **entries,
    }


def _headline(entries: dict[str, Any], checks: bool, language: Language) -> str:
    if entries["verdict"] is None:
        return language.text("the check gave no verdict") if checks else language.text("nothing was measured")
    if entries["warning"]:
        return language.text("passed, with a warning")
    return {
        "passed": language.text("passed"),
        "below_threshold": language.text("below the threshold"),
        "not_assessable": language.text("not assessable"),
    }[entries["verdict"]]


def _meaning(entries: dict[str, Any], checks: bool, language: Language) -> str:
    if entries["verdict"] == "passed":
        return language.text("The avatars passed the check, and what waits for its verdict goes on.")
    if entries["verdict"] is not None:
        return language.text("The check stopped the DAG: what waits for its verdict does not run.")
    if checks:
        return language.text("The check failed before it gave a verdict: what waits for it does not run.")
    return language.text("The measure failed: nothing was measured, and the check did not run.")


def _rows(entries: dict[str, Any], language: Language) -> list[tuple[str, str]]:
    """Return what the message says, each with its name; what is not known is left out."""
    task = entries["task_id"] if entries["map_index"] < 0 else f"{entries['task_id']} [{entries['map_index']}]"
    judged = entries["verdict"] is not None
    numbers = {
        "Local Cloaking": language.number(entries["value"]) if judged else None,
        language.text("Threshold"): language.exact(entries["threshold"]) if judged else None,
        language.text("Warns below"): _number(entries["warn_below"], language),
    }
    remedy = entries["remedy"]
    if not judged and entries["reason"] is None:
        # What another's error says may hold a value of the data.
        remedy = language.text("look into the log of the task")
    rows = {
        "DAG": entries["dag_id"],
        language.text("Run"): entries["run_id"],
        language.text("Task"): task,
        language.text("Data set"): entries["data_set"],
        **numbers,
        language.text("Why"): _said(entries["reason"], language),
        language.text("What to do"): _said(remedy, language),
        language.text("Warnings"): _said("; ".join(entries["warnings"]), language),
        language.text("Report"): entries["report"],
        language.text("Record"): entries["record"],
        language.text("Log"): entries["log"],
    }
    return [(name, _on_one_line(value)) for name, value in rows.items() if value]


def _number(value: float | None, language: Language) -> str | None:
    return None if value is None else language.exact(value)


def _said(sentence: str | None, language: Language) -> str | None:
    return None if sentence is None else language.sentence(sentence)


def _on_one_line(text: str) -> str:
    return " ".join(text.splitlines())


def _text(headline: str, meaning: str, rows: list[tuple[str, str]], language: Language) -> str:
    lines = [language.text("%(name)s: %(value)s", name=name, value=value) for name, value in rows]
    title = language.text("%(name)s: %(value)s", name="Local Cloaking", value=headline)
    return "\n".join([title, meaning, "", *lines, ""])


def _html(headline: str, meaning: str, rows: list[tuple[str, str]], colour: str, language: Language) -> str:
    return page_template("message.html.j2").render(
        language=language, headline=headline, meaning=meaning, rows=rows, colour=colour
    )


def _colour(entries: dict[str, Any]) -> str:
    return _COLOURS.get("warned" if entries["warning"] else str(entries["verdict"]), _RED)
