"""The page on the values of k that were tried: which one reaches the threshold, and what protection costs.

Drawn from the JSON object of `local_cloaking.audit.advice` alone; what it says stands in
``templates/advice.html.j2``. Like the audit report, it needs no network and no script.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jinja2
from markupsafe import Markup

from local_cloaking.audit.advice import SCHEMA, SCHEMA_VERSION
from local_cloaking.audit.figures import Course, draw_course
from local_cloaking.audit.languages import Language, language_of
from local_cloaking.audit.pages import as_markup, page_template
from local_cloaking.errors import InputError


def draw_advice(advice: Mapping[str, Any], *, language: str | None = None) -> bytes:
    """Draw the page of a search.

    Parameters
    ----------
    advice
        As `local_cloaking.audit.advice.advice_entries` returns it, or `read_advice`.
    language
        Code of the page's language, as ``en`` or ``fr``; None for English.

    Returns
    -------
    The bytes of an HTML file (UTF-8). The same search gives the same bytes.

    Raises
    ------
    InputError
        If this is no such search, or there is no such language.

    Examples
    --------
    >>> draw_advice({"schema": "something else"})
    Traceback (most recent call last):
        ...
    local_cloaking.errors.InputError: this is not what `advise` writes; give the JSON file of `advise --json`
    """
    speech = language_of(language)
    if (advice.get("schema"), advice.get("schema_version")) != (SCHEMA, SCHEMA_VERSION):
        raise InputError("this is not what `advise` writes", remedy="give the JSON file of `advise --json`")
    try:
        page = page_template("advice.html.j2").render(_contents(advice, speech))
    except (LookupError, TypeError, ValueError, AttributeError, jinja2.UndefinedError) as error:
        raise InputError(
            "the file of `advise` is damaged: an entry is missing, or holds something else than its schema says",
            remedy="give the file as `advise --json` wrote it",
        ) from error
    return page.encode("utf-8", "backslashreplace")


def tried_table(advice: Mapping[str, Any], language: Language) -> dict[str, Any]:
    """Return what ``templates/tried.html.j2`` shows: the values of k that were tried, a row each."""
    return {"rows": [_row(tried) for tried in advice["tried"]], "found": advice["k"], "language": language}


def _contents(advice: Mapping[str, Any], language: Language) -> dict[str, Any]:
    return {
        "_": language.text,
        "language": language,
        "advice": advice,
        "found": advice["k"] is not None,
        "word": _word(advice, language),
        "meaning": _meaning(advice, language),
        "threshold": language.exact(advice["threshold"]),
        "margin": language.exact(advice["margin"]),
        "figures": _figures(advice, language),
        "table": tried_table(advice, language),
        "made_by": {
            "published algorithm": language.text("the published algorithm"),
            "function": language.text("a function of the user's"),
            "command": language.text("a command of the user's"),
        }[advice["avatarisation"]],
    }


def _word(advice: Mapping[str, Any], language: Language) -> str:
    if advice["k"] is None:
        return language.text("No k reaches the threshold")
    return language.text("k = %(k)s reaches the threshold", k=language.number(advice["k"], 0))


def _meaning(advice: Mapping[str, Any], language: Language) -> str:
    bound = language.exact(advice["threshold"] + advice["margin"])
    if advice["k"] is None:
        return language.text(
            "Of the k from %(least)s to %(most)s, none that was tried reaches %(bound)s with every seed.",
            least=language.number(advice["k_min"], 0),
            most=language.number(advice["k_max"], 0),
            bound=bound,
        )
    found = next(tried for tried in advice["tried"] if tried["k"] == advice["k"])
    return language.text(
        "It is the smallest k tried with which every seed reaches %(bound)s. The least favourable seed has a "
        "Local Cloaking of %(value)s.",
        bound=bound,
        value=language.number(found["local_cloaking"]),
    )


def _row(tried: Mapping[str, Any]) -> dict[str, Any]:
    trials: Sequence[Mapping[str, Any]] = tried["trials"]
    return {
        **tried,
        "each": [trial["local_cloaking"] for trial in trials],
        **{part: max(trial["utility"][part] for trial in trials) for part in ("means", "spreads", "correlations")},
    }


def _figures(advice: Mapping[str, Any], language: Language) -> dict[str, Markup]:
    bound = advice["threshold"] + advice["margin"]
    written = language.exact(bound)
    text = (
        language.text("threshold with margin %(value)s", value=written)
        if advice["margin"]
        else language.text("threshold %(value)s", value=written)
    )
    courses = {
        "local_cloaking": Course(
            "k-local-cloaking", "Local Cloaking", _points(advice, "local_cloaking"), min, bound, text
        ),
        "hidden_rate": Course(
            "k-hidden-rate", language.text("hidden rate, %"), _points(advice, "hidden_rate"), min, from_zero=False
        ),
        "moved": Course(
            "k-moved",
            language.text("moved (0: not at all)"),
            [
                (tried["k"], [trial["utility"]["overall"] for trial in tried["trials"]])
                for tried in advice["tried"]
            ],
            max,
        ),
    }
    words = {
        "local_cloaking": language.text("Local Cloaking by k; the table has the figures."),
        "hidden_rate": language.text("Hidden rate by k; the table has the figures."),
        "moved": language.text("How far the avatars moved, by k; the table has the figures."),
    }
    return {
        name: as_markup(draw_course(course, advice["k"], words[name], language))
        for name, course in courses.items()
    }


def _points(advice: Mapping[str, Any], name: str) -> list[tuple[int, list[float | None]]]:
    return [(tried["k"], [trial[name] for trial in tried["trials"]]) for tried in advice["tried"]]
