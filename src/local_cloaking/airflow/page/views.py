"""What the pages say: from entries of the index to HTML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import Request, Response

from local_cloaking.airflow.links import PREFIX
from local_cloaking.airflow.page.course import course_of
from local_cloaking.audit.index import VERDICTS, IndexEntry, Listing
from local_cloaking.audit.languages import Language, language_of, languages
from local_cloaking.audit.pages import page_template

PAGE = 50
#: Data sets on the first screen, and how many verdicts the drawing of each goes back: of one alone, further.
SERIES = 20
SHORT, LONG = 20, 100


def overview_page(
    request: Request, listed: Listing, readable: frozenset[str], chosen: Mapping[str, str], before: str
) -> Response:
    """Draw the page of the data sets and their verdicts."""
    wanted = {name: value or None for name, value in chosen.items() if name != "dag_id"}
    verdicts = listed.newest(**wanted, limit=PAGE + 1, before=before or None)
    latest = [] if chosen["run_id"] else listed.latest(SERIES + 1, data_set=wanted["data_set"])
    # Named, its course takes the place of the table of data sets.
    alone = len(latest) == 1 and bool(chosen["dag_id"] or chosen["data_set"])
    courses = listed.courses(latest[:SERIES], LONG if alone else SHORT)
    series = [
        {
            "last": last,
            "course": course_of(course or [last], width=720, height=200, left=44, margin=12)
            if alone
            else course_of(course or [last], width=150, height=34),
        }
        for last, course in zip(latest, courses, strict=False)
    ]
    more = len(verdicts) > PAGE
    return _drawn(
        request,
        "overview.html.j2",
        series=series,
        more_series=len(latest) > SERIES,
        alone=alone,
        verdicts=verdicts[:PAGE],
        older=verdicts[PAGE - 1].name if more else None,
        newer=bool(before),
        dag_ids=sorted(readable),
        chosen=chosen,
        filtered=any(value for name, value in chosen.items() if name != "dag_id"),
    )


def report_page(request: Request, entry: IndexEntry | None, tries: list[IndexEntry], asked: Any) -> Response:
    """Draw the page that frames a report; of a try that gave no verdict, say so."""
    return _drawn(request, "report.html.j2", 200 if entry else 404, entry=entry, tries=tries, task=entry or asked)


def error_page(request: Request, status: int) -> Response:
    """Draw the page of a refusal; it may have no style, which asks for a user, too."""
    return _drawn(request, "error.html.j2", status, refusal=status)


def _drawn(request: Request, template: str, status: int = 200, **contents: Any) -> Response:
    language = _language(request)
    words = {
        "passed": language.text("Passed"),
        "below_threshold": language.text("Below the threshold"),
        "not_assessable": language.text("Not assessable"),
    }
    root = str(request.scope.get("root_path", "")).rstrip("/")
    said = request.query_params.get("lang")
    kept = {} if said is None else {"lang": language.code}

    def address(route: str = "", **query: Any) -> str:
        """Return a route's address, with the language that was asked for."""
        given = {name: value for name, value in query.items() if value not in (None, "")} | kept
        return f"{root}/{route}" + (f"?{urlencode(given)}" if given else "")

    def in_other(code: str) -> str:
        # What was not understood is not said again.
        asked = [] if status == 422 else request.query_params.multi_items()
        query = [(name, value) for name, value in asked if name != "lang"]
        return "?" + urlencode([*query, ("lang", code)])

    page = page_template(template, "local_cloaking.airflow.page").render(
        _=language.text,
        many=language.many,
        language=language,
        offered=languages(),
        said=said is not None,
        in_other=in_other,
        address=address,
        airflow=root.removesuffix(PREFIX),
        here=f"{root}{request.scope['path'].removeprefix(root)}?{request.url.query}",
        words=words,
        verdicts_there_are=VERDICTS,
        exact=language.exact,
        segment=lambda text: quote(text, safe=""),
        **contents,
    )
    return Response(
        page.encode("utf-8", "backslashreplace"),
        status,
        media_type="text/html",
        headers={"Content-Language": language.code, "Vary": "Accept-Language"},
    )


def _language(request: Request) -> Language:
    """Return the language that the address asks for, or else the first of the browser's that there is."""
    browser = request.headers.get("accept-language", "").split(",")
    for code in [request.query_params.get("lang", ""), *(entry.split(";")[0].strip() for entry in browser)]:
        if code[:2].lower() in languages():
            return language_of(code[:2])
    return language_of(None)
