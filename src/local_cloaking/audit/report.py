"""The audit report: one HTML file, drawn from a record alone, that a data protection officer can file.

It needs no network and no script, and holds nothing that the record does not: no identifier, no pairing, no count
of an individual. What it says stands in ``templates/report.html.j2``; this module says in which words, and which
parts of a record can be relied on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jinja2

from local_cloaking.audit.advice_report import tried_table
from local_cloaking.audit.consistency import agrees_with_itself
from local_cloaking.audit.figures import draw_cumulative, draw_histogram, draw_ladder
from local_cloaking.audit.languages import Language, language_of
from local_cloaking.audit.pages import as_markup, page_template
from local_cloaking.audit.record import SCHEMA, SCHEMA_VERSION
from local_cloaking.audit.statistics import CONFIDENCE, Distribution
from local_cloaking.errors import InputError
from local_cloaking.groups import worst_group
from local_cloaking.limits import MAX_COPY_SHARE, MAX_FAR_SHARE, MAX_MEDIAN_SHARE, MIN_ASSOCIATION

#: Versions of the record that can be drawn; version 1 has neither parameters, ladder nor groups.
VERSIONS = range(1, SCHEMA_VERSION + 1)


def draw_report(
    record: dict[str, Any],
    *,
    language: str | None = None,
    sha256: str | None = None,
    advice: dict[str, Any] | None = None,
) -> bytes:
    """Draw the report of a record.

    Parameters
    ----------
    record
        A record; see `local_cloaking.audit.record`.
    language
        Code of the report's language, as ``en`` or ``fr``; None for English.
    sha256
        SHA-256 of the record's file, to be shown, where there is one.
    advice
        The values of k that were tried on the same originals, see `local_cloaking.audit.advice`, to be shown with
        the remedy, where they are known.

    Returns
    -------
    The bytes of an HTML file (UTF-8). The same record gives the same bytes.

    Raises
    ------
    InputError
        If this is no record, there is no such language, or the values of k were tried on other originals.

    Examples
    --------
    >>> draw_report({"schema": "something else"})
    Traceback (most recent call last):
        ...
    local_cloaking.errors.InputError: this is not a record of a Local Cloaking check; give ...
    """
    speech = language_of(language)
    if record.get("schema") != SCHEMA or record.get("schema_version") not in VERSIONS:
        raise InputError(
            "this is not a record of a Local Cloaking check",
            remedy="give the JSON file that `measure --json` or the gate wrote, of this version or an earlier one",
        )
    if advice is not None:
        _refuse_other_originals(record, advice)
    try:
        page = page_template("report.html.j2").render(_contents(record, speech, sha256, advice))
    except (LookupError, TypeError, ValueError, AttributeError, jinja2.UndefinedError) as error:
        raise InputError(
            "the record is damaged: an entry is missing, or holds something else than the schema says",
            remedy="give the file as the check wrote it",
        ) from error
    return page.encode("utf-8", "backslashreplace")


def _refuse_other_originals(record: dict[str, Any], advice: dict[str, Any]) -> None:
    measured, tried = (
        entries.get("inputs", {}).get("originals", {}).get("sha256") for entries in (record, advice)
    )
    if measured is None or measured != tried:
        raise InputError(
            "the values of k were tried on other originals than those of the record",
            remedy="give what `advise` wrote for the same file",
        )


def _contents(
    record: dict[str, Any], language: Language, sha256: str | None, advice: dict[str, Any] | None
) -> dict[str, Any]:
    """Return what the template shows."""
    figure_known = record["local_cloaking"] is not None
    distribution = Distribution.of(record["distribution"]) if figure_known else None
    groups = record.get("groups") if figure_known else None
    return {
        "_": language.text,
        "language": language,
        "record": record,
        "sha256": sha256,
        "untouched": agrees_with_itself(record),
        "verdict": _verdict(record, language),
        "warn_below": _optional_bound(record.get("warn_below"), language),
        "previous": record.get("previous"),
        "meaning": _meaning(record, language),
        "reason": record["reason"] or record["unreliable_because"],
        "threshold": _threshold(record["threshold"], language),
        "share": lambda value: _share(value, language),
        "bounds": lambda interval: _bounds(interval, language),
        "words": _words(language),
        "pairing": _pairing(record["pairing"], language),
        "tail": None if distribution is None else _tail(distribution, record["threshold"]),
        "figures": None if distribution is None else _figures(distribution, record, language),
        "ladder": _ladder(record, language),
        "groups": groups,
        "worst": None if groups is None else worst_group(groups),
        "parameters": record.get("parameters"),
        "expectations": [
            # What a figure that is not told would show.
            {**_expectation(entry, language), "relied_on": figure_known or "median" not in entry["type"]}
            for entry in record["expectations"]
        ],
        "limits": {
            "z": MIN_ASSOCIATION,
            "far": 100 * MAX_FAR_SHARE,
            "median": 100 * MAX_MEDIAN_SHARE,
            "copies": 100 * MAX_COPY_SHARE,
        },
        "duration": language.many(
            "Reading and measuring took %(number)s second.",
            "Reading and measuring took %(number)s seconds.",
            round(record["duration_seconds"], 1),
        ),
        "confidence": language.per_cent(CONFIDENCE),
        "advice": advice,
        "table": None if advice is None else tried_table(advice, language),
    }


def _verdict(record: dict[str, Any], language: Language) -> dict[str, str]:
    verdict = record["verdict"]
    if verdict is None and record["unreliable_because"]:
        verdict = "not_assessable"  # Whatever the threshold would have been.
    words = {
        "passed": language.text("Passed"),
        "below_threshold": language.text("Below the threshold"),
        "not_assessable": language.text("Not assessable"),
        None: language.text("No verdict: no threshold was given"),
    }
    warned = verdict == "passed" and record.get("warning")
    word = language.text("Passed, with a warning") if warned else words[verdict]
    return {"word": word, "kind": verdict or "none"}


def _optional_bound(bound: float | None, language: Language) -> str | None:
    return None if bound is None else language.exact(bound)


def _threshold(threshold: float | None, language: Language) -> str:
    return language.text("none given") if threshold is None else language.exact(threshold)


def _meaning(record: dict[str, Any], language: Language) -> str:
    """Say in one sentence what was found."""
    value = record["local_cloaking"]
    if value is None:
        return language.text(
            "Local Cloaking is not known: avatars and originals are not paired in a way that can be relied on."
        )
    if record["strict_median"] == value:
        found = language.many(
            "Between an original and its avatar there is, in the median, %(number)s other avatar closer to the "
            "original",
            "Between an original and its avatar there are, in the median, %(number)s other avatars closer to the "
            "original",
            value,
        )
    else:
        found = language.text(
            "Other avatars that are as close to an original as its own, or closer: %(value)s in the median "
            "(strictly closer: %(strict)s)",
            value=language.number(value),
            strict=language.number(record["strict_median"]),
        )
    if record["threshold"] is None:
        return language.text("%(found)s; no threshold was given.", found=found)
    return language.text(
        "%(found)s; the threshold is %(threshold)s.",
        found=found,
        threshold=_threshold(record["threshold"], language),
    )


def _share(value: float, language: Language) -> str:
    """Write a share in per cent so that neither a few nor nearly all are rounded to none or all."""
    if 0 < value < 0.005:
        return language.text("less than %(bound)s", bound=language.per_cent(0.01))
    if 99.995 <= value < 100:
        return language.text("more than %(bound)s", bound=language.per_cent(99.99))
    return language.per_cent(value)


def _bounds(interval: dict[str, float], language: Language) -> str:
    low, high = interval["at_least"], interval["at_most"]
    if low <= 0 and high >= 100:
        return language.text("not told")
    if low <= 0:
        return language.text("at most %(bound)s", bound=language.per_cent(high))
    if high >= 100:
        return language.text("at least %(bound)s", bound=language.per_cent(low))
    return language.text("%(low)s to %(high)s", low=language.number(low), high=language.per_cent(high))


def _tail(distribution: Distribution, threshold: float | None) -> dict[str, Any]:
    return {
        "fifth": distribution.percentile(5),
        "tenth": distribution.percentile(10),
        "without": distribution.share_below(1),
        "below": None if threshold is None else distribution.share_below(threshold),
        "interval": distribution.median_interval(),
    }


def _figures(distribution: Distribution, record: dict[str, Any], language: Language) -> dict[str, Any]:
    return {
        "histogram": as_markup(draw_histogram(distribution, record["threshold"], language)),
        "cumulative": as_markup(draw_cumulative(distribution, record["threshold"], language)),
    }


def _ladder(record: dict[str, Any], language: Language) -> dict[str, Any] | None:
    entry = record.get("ladder")
    if entry is None or record["local_cloaking"] is None:
        return None
    drawing = None
    if any(rung["local_cloaking"] is not None for rung in entry["rungs"]):
        drawing = as_markup(draw_ladder(entry["rungs"], record["ncp"], record["threshold"], language))
    return {"individuals": entry["individuals"], "rungs": entry["rungs"], "drawing": drawing}


def _pairing(pairing: str, language: Language) -> tuple[str, str]:
    """Return how the tables were paired in this language, and the columns by which, as the record has them."""
    kinds = {
        "row order": language.text("row by row, in the order of the tables"),
        "key ": language.text("by the key"),
        "pairing table ": language.text("by a pairing table, its columns"),
    }
    for start, words in kinds.items():
        if pairing.startswith(start):
            return words, pairing.removeprefix(start)
    return pairing, ""


def _words(language: Language) -> dict[str, str]:
    """Return what a record calls things, in this language."""
    return {
        "number": language.text("number"),
        "category": language.text("category"),
        "boolean": language.text("truth value"),
        "text": language.text("text"),
        "date": language.text("date"),
        "zoned date": language.text("date with time zone"),
        "duration": language.text("duration"),
        "the originals' median": language.text("the originals' median"),
        "the originals' commonest category": language.text("the originals' commonest category"),
        "a category of its own": language.text("a category of its own"),
        "handed over": language.text("handed over by the avatarisation"),
        "refitted": language.text("fitted anew on the originals"),
        "coordinates": language.text("coordinates handed over row by row"),
        "verified": language.text("yes, all of their columns"),
        "not verified": language.text("no, not verified"),
        "originals": language.text("Originals"),
        "avatars": language.text("Avatars"),
        "pairing": language.text("Pairing table"),
        "projection": language.text("Projection"),
        "original_coordinates": language.text("Coordinates of the originals"),
        "avatar_coordinates": language.text("Coordinates of the avatars"),
        "too_few": language.text("withheld: no two groups of enough individuals are left"),
        "with_others": language.text(
            "withheld: together with what else is told here, it would speak of fewer individuals"
        ),
    }


def _expectation(entry: dict[str, Any], language: Language) -> dict[str, Any]:
    said = {
        "expect_table_row_count_to_equal": language.text("one count for each individual"),
        "expect_column_values_to_not_be_null": language.text("no count is missing (observed: how many are)"),
        "expect_column_values_to_be_between": language.text("each count is possible (observed: how many are not)"),
        "expect_column_median_to_be_between": language.text("the median reaches the threshold"),
    }
    return {**entry, "said": said.get(entry["type"], ""), "bound": _bound(entry["bounds"], language)}


def _bound(bounds: dict[str, float], language: Language) -> str:
    known: Sequence[str] = [
        language.exact(bounds[name]) for name in ("value", "min_value", "max_value") if name in bounds
    ]
    if "min_value" in bounds and "max_value" in bounds:
        return language.text("%(low)s to %(high)s", low=known[0], high=known[1])
    if "min_value" in bounds:
        return language.text("at least %(bound)s", bound=known[0])
    if "max_value" in bounds:
        return language.text("at most %(bound)s", bound=known[0])
    return known[0] if known else language.text("none missing")
