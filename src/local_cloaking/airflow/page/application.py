"""The application of the page, as Airflow's API server mounts it: its routes, and what every answer carries.

Nothing here is open: each route asks for the user, also that of style and script; the API is not described.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.resources import files
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException as AnyHTTPException

from local_cloaking.airflow.page.rights import Readable
from local_cloaking.airflow.page.stored import NotTheEvidenceError, stored_record, stored_report
from local_cloaking.airflow.page.views import error_page, overview_page, report_page
from local_cloaking.airflow.runs import evidence_root
from local_cloaking.audit.index import IndexEntry, listing, read_entry
from local_cloaking.errors import InputError

log = logging.getLogger(__name__)

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; frame-src 'self'; img-src data:; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
#: For what was read from the store, in case that somebody else could write to it: no script, an origin of its own.
_STORED = {
    "Content-Security-Policy": (
        "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; "
        "base-uri 'none'; frame-ancestors 'self'"
    )
}
_STATIC = {"page.css": "text/css", "page.js": "text/javascript"}

Text = Annotated[str, Query(max_length=1000)]


@dataclass(frozen=True)
class Asked:
    """The verdict that a request names: by its entry, or by the try that gave it."""

    dag_id: str
    name: str
    run_id: str
    task_id: str
    map_index: int
    try_number: int | None

    def among(self, entries: list[IndexEntry]) -> IndexEntry | None:
        """Return the verdict among those of its task, newest first."""
        fitting = (entry for entry in entries if self.try_number in (None, entry.try_number))
        return next(fitting, None)


def asked_for(
    dag_id: Text,
    name: Text = "",
    run_id: Text = "",
    task_id: Text = "",
    map_index: int = -1,
    try_number: int | None = None,
) -> Asked:
    """Read the query of a request for one verdict."""
    return Asked(dag_id, name, run_id, task_id, map_index, try_number)


AskedFor = Annotated[Asked, Depends(asked_for)]


def create_application() -> FastAPI:
    """Return the application."""
    application = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    application.middleware("http")(_add_headers)
    application.add_exception_handler(AnyHTTPException, _refusal)
    application.add_exception_handler(RequestValidationError, _wrong_query)
    application.add_exception_handler(InputError, _wrong_query)
    application.add_exception_handler(OSError, _store_unreadable)
    application.add_exception_handler(NotTheEvidenceError, _not_the_evidence)
    for route, function in (
        ("/", show_overview),
        ("/report", show_report),
        ("/report.html", send_report),
        ("/record.json", send_record),
        ("/static/{name}", send_static),
    ):
        application.get(route)(function)
    return application


# Routes --------------------------------------------------------------------------------------------------------


def show_overview(
    request: Request,
    readable: Readable,
    dag_id: Text = "",
    run_id: Text = "",
    data_set: Text = "",
    verdict: Text = "",
    since: Text = "",
    until: Text = "",
    before: Text = "",
) -> Response:
    """Show the data sets with their last verdicts, and a list of verdicts."""
    chosen = {
        "dag_id": dag_id,
        "run_id": _whole_run_id(run_id),
        "data_set": data_set,
        "verdict": verdict,
        "since": since,
        "until": until,
    }
    dag_ids = readable & {dag_id} if dag_id else readable
    return overview_page(request, listing(evidence_root(), dag_ids=dag_ids), readable, chosen, before)


def show_report(request: Request, readable: Readable, asked: AskedFor) -> Response:
    """Show the report of a verdict, beside the other tries of its task."""
    entry, tries = _verdict(readable, asked)
    return report_page(request, entry, tries, asked)


def send_report(readable: Readable, asked: AskedFor) -> Response:
    """Send the report's own file."""
    entry, _ = _verdict(readable, asked)
    return Response(_evidence(stored_report, entry), media_type="text/html", headers=_STORED)


def send_record(readable: Readable, asked: AskedFor) -> Response:
    """Send the record's own file."""
    entry, _ = _verdict(readable, asked)
    named = {"Content-Disposition": 'attachment; filename="record.json"'}
    return Response(_evidence(stored_record, entry), media_type="application/json", headers={**_STORED, **named})


def send_static(readable: Readable, name: str) -> Response:
    """Send style or script."""
    del readable  # Only whether there is a user.
    if name not in _STATIC:
        raise HTTPException(404)
    content = (files("local_cloaking.airflow.page") / "static" / name).read_bytes()
    return Response(content, media_type=_STATIC[name])


def _verdict(readable: frozenset[str], asked: Asked) -> tuple[IndexEntry | None, list[IndexEntry]]:
    """Return the verdict that was asked for, None where there is none, and all of its task in its run."""
    if asked.dag_id not in readable:
        # As if it were not there: who may not read a DAG does not learn that it exists.
        raise HTTPException(404)
    root = evidence_root()
    entry = read_entry(root, asked.dag_id, asked.name) if asked.name else None
    if asked.name and entry is None:
        raise HTTPException(404)
    task = entry or asked
    run_id = entry.run_id if entry else _whole_run_id(asked.run_id)
    of_run = listing(root, dag_ids=[asked.dag_id]).newest(run_id=run_id, limit=500)
    tries = [one for one in of_run if (one.task_id, one.map_index) == (task.task_id, task.map_index)]
    return entry or asked.among(tries), tries


def _evidence(read: Callable[[Any, IndexEntry], bytes], entry: IndexEntry | None) -> bytes:
    if entry is None:
        raise HTTPException(404)
    try:
        return read(evidence_root(), entry)
    except FileNotFoundError as error:
        raise HTTPException(404) from error


def _whole_run_id(run_id: str) -> str:
    # Airflow before 3.2 puts a run's name into the address of a tab as it is, and a plus arrives as a space.
    return run_id.replace(" ", "+")


# Every answer --------------------------------------------------------------------------------------------------


async def _add_headers(request: Request, proceed: Callable[[Request], Awaitable[Response]]) -> Response:
    response = Response(status_code=403) if _is_of_another_site(request) else await proceed(request)
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def _is_of_another_site(request: Request) -> bool:
    """Tell whether another site's page asks, other than by a link that a person followed, as that of an alert."""
    site, mode, wanted = (request.headers.get(f"sec-fetch-{name}") for name in ("site", "mode", "dest"))
    return site in ("cross-site", "same-site") and (mode, wanted) != ("navigate", "document")


def _refusal(request: Request, error: Any) -> Response:
    return error_page(request, error.status_code)


def _wrong_query(request: Request, error: Exception) -> Response:
    del error  # What was asked is not said again.
    return error_page(request, 422)


def _not_the_evidence(request: Request, error: Exception) -> Response:
    del error
    log.error("a record of the audit store is not the one that the check wrote")
    return error_page(request, 409)


def _store_unreadable(request: Request, error: Exception) -> Response:
    log.error("the audit store cannot be read", exc_info=error)
    return error_page(request, 503)
