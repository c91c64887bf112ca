"""The page: what lies in the store that it shows, and what its users ask of it; in process, without a network."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import shutil
import tempfile
import zlib
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from hypothesis import strategies as st

from tests.fuzz.mutated_json import VALUES, mutate_json

PREFIX = "/local-cloaking"
OPEN, SECRET = "trial", "secret"
#: Stands in whatever is kept of the DAG that the users here may not read, and in no request.
MARK = "kept-5e1d-hidden"
#: ... and in the report and the record of the one that some of them may.
READ = "read-77aa-by-some"
_USERS = ("viewer", "stranger", "nobody", "forged")


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes


class Asker:
    """Asks an ASGI application, one request after the other."""

    def __init__(self, application: Any) -> None:
        self._application, self._loop = application, asyncio.new_event_loop()

    def ask(
        self,
        path: str,
        query: str = "",
        *,
        method: str = "GET",
        headers: list[tuple[bytes, bytes]] | None = None,
        body: bytes = b"",
        root: str = "",
    ) -> Answer:
        """Ask for a path, not quoted, with a query as it is sent."""
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": root + path,
            "raw_path": quote(root + path, errors="surrogatepass").encode(),
            "root_path": root,
            "query_string": query.encode("ascii", "replace"),
            "headers": [(b"host", b"testserver"), *(headers or [])],
            "client": ("127.0.0.1", 1),
            "server": ("testserver", 80),
            "state": {},
        }
        return self._loop.run_until_complete(self._asked(scope, body))

    async def _asked(self, scope: dict[str, Any], body: bytes) -> Answer:
        sent: list[dict[str, Any]] = []
        given = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            return given.pop() if given else {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await self._application(scope, receive, send)
        start = next(message for message in sent if message["type"] == "http.response.start")
        return Answer(
            start["status"],
            {name.decode().lower(): value.decode("latin-1") for name, value in start["headers"]},
            b"".join(message.get("body", b"") for message in sent),
        )


def prepare() -> None:
    """Import what is imported late, with an Airflow of the tests' own."""
    import logging
    import os

    import conftest  # noqa: F401 - sets where it lies, before it is imported.

    os.environ["AIRFLOW__LOGGING__LOGGING_LEVEL"] = "CRITICAL"

    logging.disable(logging.CRITICAL)


# What lies in the store ------------------------------------------------------------------------------------------


def prepare_page_records() -> None:
    """Draw a report once, which imports much."""
    prepare()
    from local_cloaking.audit.report import draw_report
    from tests.records import record_of

    draw_report(record_of())
    store()


@cache
def store() -> tuple[Path, Asker]:
    """Return an empty store, and the page's application that reads it: whose user may read one DAG."""
    import os

    from local_cloaking.airflow.page.application import create_application
    from local_cloaking.airflow.page.rights import readable_dags

    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="fuzz-", dir=memory if memory.is_dir() else None))
    os.environ["AIRFLOW__LOCAL_CLOAKING__AUDIT_PATH"] = str(folder)
    application = create_application()
    application.dependency_overrides[readable_dags] = lambda: frozenset({OPEN})
    return folder, Asker(application)


def mutate_page_records(data: bytes, rng: random.Random) -> bytes:
    """Change an entry of the index, or its record; most of the time, hash and digest are made to fit."""
    from local_cloaking.audit.record import digest_of

    def seal(whole: dict[str, Any]) -> None:
        record, entry = whole.get("record"), whole.get("entry")
        if isinstance(record, dict) and rng.random() < 0.9:
            record["digest"] = digest_of(record)
        if isinstance(entry, dict):
            entry["record_sha256"] = hashlib.sha256(_bytes_of(record)).hexdigest()

    return mutate_json(data, rng, seal)


def _bytes_of(value: Any) -> bytes:
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else json.dumps(value).encode()


def once_page_records(data: bytes) -> None:
    folder, asker = store()
    index, evidence = folder / "index" / OPEN, folder / "evidence"
    for there in (index, evidence):
        shutil.rmtree(there, ignore_errors=True)
        there.mkdir(parents=True)
    name = f"20261130T080000.000000Z~passed~{'0' * 16}~{'0' * 16}~{'0' * 16}.json"
    try:
        whole = json.loads(data)
        entry, record = _bytes_of(whole["entry"]), _bytes_of(whole["record"])
    except (ValueError, LookupError, TypeError, RecursionError):
        entry, record = data, data
    (index / name).write_bytes(entry)
    (evidence / "record.json").write_bytes(record)
    (evidence / "report.html").write_bytes(b"<p>the report</p>")
    asked = f"dag_id={OPEN}&name={name}"
    number = zlib.crc32(data)
    routes = (("/report", asked), ("/report.html", asked), ("/record.json", asked), ("/", f"dag_id={OPEN}"))
    for path, query in (("/", ""), routes[number % 4]):
        answer = asker.ask(path, query + ("&lang=fr" if number & 4 else ""))
        assert answer.status < 500, f"{answer.status} of {path}"
        assert path != "/" or answer.status == 200
        if path != "/record.json":
            assert b"<script>alert" not in answer.body
            assert b'onload="alert' not in answer.body


#: Whatever leaves it stops the application.
_RUNNING = ExitStack()

# What is asked ---------------------------------------------------------------------------------------------------


@cache
def served() -> tuple[Asker, dict[str, str], dict[str, str]]:
    """Return Airflow's API server with the page in it, the users' tokens, and the names of the entries."""
    import os

    import jwt
    import pytest

    from local_cloaking.audit.store import write_whole
    from tests.page import file_verdict, know_dags, serving

    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    names = {}
    for number, dag_id in enumerate((OPEN, SECRET), start=1):
        from tests.records import record_of

        hidden = MARK if dag_id == SECRET else READ
        entry = file_verdict(
            folder,
            number,
            dag_id=dag_id,
            run_id="manual",
            data_set=MARK if dag_id == SECRET else "somebody",
            said=record_of(threshold_set_by=hidden),
        )
        names[dag_id] = entry.name
        write_whole(folder / str(entry.report), f"<p>{hidden}</p>".encode(), replace=True)
    from airflow.utils.db import initdb

    initdb()
    know_dags(OPEN, SECRET)
    running = serving(Path(os.environ["AIRFLOW_HOME"]), folder, pytest.MonkeyPatch())
    application = _RUNNING.enter_context(running)
    tokens = {user: application.token(user) for user in ("viewer", "stranger")}
    tokens["forged"] = jwt.encode({"sub": "admin", "role": "ADMIN"}, "not the server's secret" * 4)
    return Asker(application.application), tokens, names


def prepare_page_requests() -> None:
    """Start the application."""
    prepare()
    served()


def once_page_requests(data: bytes) -> None:
    asked = json.loads(data)
    asker, tokens, names = served()
    query = asked["query"].replace("OPEN-NAME", names[OPEN]).replace("SECRET-NAME", names[SECRET])
    headers = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in asked["headers"]]
    if asked["user"] in tokens:
        headers.append((b"cookie", f"_token={tokens[asked['user']]}".encode()))
    answer = asker.ask(
        PREFIX + asked["path"], query, method=asked["method"], headers=headers, body=asked["body"].encode()
    )
    assert answer.status < 500, f"status {answer.status}"
    assert MARK.encode() not in answer.body, "evidence of a DAG that the user may not read"
    assert b"<script>alert" not in answer.body
    assert b'onload="alert' not in answer.body
    if "\n" not in asked["path"]:  # Starlette knows no such path to be the page's.
        assert answer.headers.get("cache-control") == "no-store"
    if asked["user"] not in ("viewer", "stranger"):
        assert answer.status >= 400, "answered without a user"
    if asked["user"] != "viewer":
        assert READ.encode() not in answer.body


_TEXTS = st.one_of(
    st.sampled_from([value for value in VALUES if isinstance(value, str)]),
    st.sampled_from(
        ["passed", "2026-11-30", "manual", "gate.check", "somebody", "10000-01-01", "2026-W01", "20261130"]
    ),
    st.text(max_size=30),
)
_DAGS = st.sampled_from([OPEN, SECRET, f"{OPEN}/../{SECRET}", f"{SECRET}\x00", "", f" {SECRET}", "SECRET", "*"])
_NAMES = st.sampled_from(["OPEN-NAME", "SECRET-NAME", f"../{SECRET}/SECRET-NAME", "SECRET-NAME\x00", "OPEN-NAME/"])
_NUMBERS = st.one_of(st.integers(), st.sampled_from(["-1", "1", "1e3", "9" * 5000, "NaN", "+1", "0x1", "1.0", ""]))
_PATHS = ("/", "/report", "/report.html", "/record.json", "/static/page.css", "/static/page.js")


def strategy_page_requests() -> st.SearchStrategy[list[dict[str, Any]]]:
    """Make requests, each of every user: some of the application's own schema, some that no schema has."""
    parameters = st.lists(
        st.one_of(
            st.tuples(st.just("dag_id"), _DAGS),
            st.tuples(st.just("name"), _NAMES),
            st.tuples(st.sampled_from(["map_index", "try_number"]), _NUMBERS),
            st.tuples(
                st.sampled_from(["run_id", "task_id"]),
                st.one_of(st.sampled_from(["manual", "gate.check"]), _TEXTS),
            ),
            st.tuples(
                st.sampled_from(["data_set", "verdict", "since", "until", "before", "lang", "token", "x"]), _TEXTS
            ),
            st.tuples(_TEXTS, _TEXTS),
        ),
        max_size=5,
    )
    queries = st.one_of(
        parameters.map(lambda pairs: urlencode(pairs, errors="surrogatepass")),
        parameters.map(lambda pairs: "&".join(f"{name}={value}" for name, value in pairs)),
        st.text(st.sampled_from("&=%;+?#abc/09.~ZX\x00é "), max_size=40),
    )
    paths = st.one_of(
        st.sampled_from(_PATHS),
        st.lists(
            st.sampled_from(
                ["..", ".", "", "static", "page.css", "report", "%2e%2e", "\\", "\x00", "index", SECRET]
            ),
            max_size=6,
        ).map(lambda parts: "/" + "/".join(parts)),
        _TEXTS.map(lambda text: f"/static/{text}"),
        _TEXTS.map(lambda text: f"/{text}"),
    )
    headers = st.lists(
        st.tuples(
            st.sampled_from(
                ["accept-language", "authorization", "cookie", "origin", "x-forwarded-for", "range", "accept"]
            ),
            st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=30),
        ),
        max_size=2,
    )
    raw = st.fixed_dictionaries(
        {
            "method": st.sampled_from(["GET"] * 6 + ["HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE"]),
            "path": paths,
            "query": queries,
            "headers": headers,
            "body": st.just(""),
        }
    )
    made = st.one_of(raw, raw, *_of_the_schema())
    return made.map(lambda asked: [{"user": user, **asked} for user in _USERS])


def _of_the_schema() -> list[st.SearchStrategy[dict[str, Any]]]:
    """Return what schemathesis makes of each operation: what fits the schema, and what does not."""
    import schemathesis

    from local_cloaking.airflow.page.application import create_application

    schema = schemathesis.openapi.from_dict(create_application().openapi())
    operations = [found.ok() for found in schema.get_all_operations()]
    modes = list(schemathesis.GenerationMode)
    return [operation.as_strategy(generation_mode=mode).map(_plain) for operation in operations for mode in modes]


def _plain(case: Any) -> dict[str, Any]:
    query = urlencode(
        [(str(name), str(value)) for name, value in (case.query or {}).items()], errors="surrogatepass"
    )
    return {
        "method": case.method,
        "path": case.formatted_path,
        "query": query,
        "headers": [],
        "body": "",
    }
