"""The documentation's table of the page's routes: each row holds for every kind of caller, none is missing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

pytest.importorskip("airflow", reason="apache-airflow is not installed (extra `airflow`)")

import jwt
from tests.integration.conftest import airflow_version
from tests.page import OPEN, SECRET, Served, file_verdict, know_dags, serving
from tests.records import HOSTILE, RUN, below_threshold

from local_cloaking.audit.index import IndexEntry
from local_cloaking.audit.report import draw_report

PREFIX = "/local-cloaking"
DOCUMENT = Path(__file__).parents[2] / "docs" / "page.md"
MARK = "unmistakable-and-outside"


@dataclass(frozen=True)
class Row:
    """What the documentation says of a route."""

    who: str
    without_user: int
    without_dag: int
    otherwise: int


def documented() -> dict[str, Row]:
    row = r"^\| `(/[^`]*)` \| ([^|]+) \| (\d+) \| (\d+)[^|]* \| (\d+) \|$"
    rows = re.findall(row, DOCUMENT.read_text(), re.M)
    return {path: Row(who, int(none), int(dag), int(other)) for path, who, none, dag, other in rows}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("table")
    (folder / "outside").mkdir()
    for name in ("record.json", "report.html", "entry.json"):
        (folder / "outside" / name).write_text(json.dumps({"said": MARK}))
    return folder / "store"


@pytest.fixture(scope="module")
def verdicts(store: Path) -> dict[str, IndexEntry]:
    return {dag_id: file_verdict(store, place, dag_id=dag_id) for place, dag_id in enumerate((OPEN, SECRET), 1)}


@pytest.fixture(scope="module")
def served(airflow_home: Path, store: Path, verdicts: dict[str, IndexEntry]) -> Iterator[Served]:
    know_dags(OPEN, SECRET)
    with pytest.MonkeyPatch.context() as patch, serving(airflow_home, store, patch) as running:
        yield running


def mounted(served: Served) -> Any:
    (found,) = [route for route in served.application.routes if getattr(route, "path", "") == PREFIX]
    return found.app


def address(route: str, entry: IndexEntry) -> str:
    path = f"{PREFIX}{route.replace('{name}', 'page.css')}"
    return f"{path}?dag_id={entry.dag_id}&name={quote(entry.name)}" if route.startswith(("/re", "/rep")) else path


def test_every_route_has_its_row_and_answers_nothing_but_get(served: Served) -> None:
    routes = {route.path: route.methods for route in mounted(served).routes}
    assert set(routes) == set(documented())
    assert all(methods == {"GET"} for methods in routes.values())


# Every kind of caller --------------------------------------------------------------------------------------------


def tokens(served: Served, kind: str) -> dict[str, str]:
    """Return the cookies of somebody who is nobody."""
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    admin = SimpleAuthManagerUser(username="admin", role="ADMIN")
    manager, right = get_auth_manager(), served.token("admin")
    head, body, signature = right.split(".")
    claims = jwt.decode(right, options={"verify_signature": False})
    return {
        "none": {},
        "empty": {"_token": ""},
        "wrong": {"_token": "x.y.z"},
        "expired": {"_token": manager.generate_jwt(admin, expiration_time_in_seconds=-60)},
        "forged": {"_token": jwt.encode(claims, "not the server's secret" * 4, algorithm="HS512")},
        "unsigned": {"_token": jwt.encode(claims, "", algorithm="none")},
        "signature of another's": {"_token": f"{head}.{body}.{served.token('stranger').rpartition('.')[2]}"},
        "another's claims": {"_token": f"{head}.{served.token('viewer').split('.')[1]}.{signature}"},
        "under another name": {"token": right, "session": right},
    }[kind]


NOBODY = (
    *("none", "empty", "wrong", "expired", "forged", "unsigned"),
    *("signature of another's", "another's claims", "under another name"),
)


@pytest.mark.parametrize("kind", NOBODY)
@pytest.mark.parametrize("route", documented())
def test_nobody_is_told_anything(served: Served, verdicts: dict[str, IndexEntry], kind: str, route: str) -> None:
    for entry in verdicts.values():
        client = served.client()
        client.cookies.update(tokens(served, kind))
        answer = client.get(address(route, entry))
        usual = documented()[route].without_user
        assert answer.status_code in ({usual} if kind in ("none", "under another name") else {usual, 403})
        assert entry.name not in answer.text.replace(quote(entry.name), "")
        assert "page.css" not in answer.text.replace('static/page.css"', "") or route.startswith("/static")
        assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("route", documented())
def test_who_may_not_read_the_dag_and_who_may(served: Served, verdicts: dict[str, IndexEntry], route: str) -> None:
    row = documented()[route]
    for user, without in (("viewer", SECRET), ("stranger", SECRET), ("stranger", OPEN)):
        answer = served.client(user).get(address(route, verdicts[without]))
        assert answer.status_code == row.without_dag, user
        assert verdicts[without].run_id not in answer.text
    for user, dag_id in (("viewer", OPEN), ("admin", OPEN), ("admin", SECRET)):
        assert served.client(user).get(address(route, verdicts[dag_id])).status_code == row.otherwise, user
    assert ("read the DAG" in row.who) == (row.without_dag == 404)


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY"])
@pytest.mark.parametrize("route", documented())
def test_no_method_but_get_is_answered_even_to_an_administrator(
    served: Served, verdicts: dict[str, IndexEntry], method: str, route: str
) -> None:
    answer = served.client("admin").request(method, address(route, verdicts[OPEN]))
    assert answer.status_code == 405
    overridden = {"X-HTTP-Method-Override": method, "X-Method-Override": method}
    assert served.client().get(address(route, verdicts[OPEN]), headers=overridden).status_code == 401


# Ways out of the store, in every encoding ------------------------------------------------------------------------

UP = (
    *("..", "%2e%2e", "%2E%2E", ".%2e", "%252e%252e", "%25252e%25252e", "..%00", "%00..", "...", "...."),
    *("..;", ".. "),
    *("%c0%ae%c0%ae", "%e0%80%ae%e0%80%ae", "%u002e%u002e", "%uff0e%uff0e", "%ef%bc%8e%ef%bc%8e", "\\..", "..\\"),
)
SLASHES = ("/", "%2f", "%2F", "%5c", "\\", "%252f", "%255c", "%c0%af", "%ef%bc%8f", "//", "/./", ";/")


@pytest.mark.parametrize("up", [UP[0], UP[1], *(pytest.param(up, marks=pytest.mark.stack) for up in UP[2:])])
def test_no_name_leads_out_of_the_store(served: Served, verdicts: dict[str, IndexEntry], up: str) -> None:
    client = served.client("admin")
    for slash in SLASHES:
        out = slash.join([up, up, up, "outside", "entry.json"])
        record = slash.join([up, "outside", "record.json"])
        asked = [
            f"/report?dag_id={OPEN}&name={out}",
            f"/record.json?dag_id={OPEN}&name={out}",
            f"/report.html?dag_id={OPEN}{slash}{out}&name=entry.json",
            f"/record.json?dag_id={OPEN}&run_id={out}&task_id={record}",
            f"/static/{record}",
            f"/static/page.css{slash}{record}",
            f"/{record}",
            f"/record.json{slash}{record}",
        ]
        for path in asked:
            answer = client.get(client.base_url.copy_with(raw_path=f"{PREFIX}{path}".encode()))
            assert answer.status_code in (404, 422, 400) or "<title>Airflow</title>" in answer.text, path
            assert MARK not in answer.text, path


# Stored script, in every text ------------------------------------------------------------------------------------

TEXTS = ("at", "dag_id", "run_id", "task_id", "data_set", "verdict", "record", "record_sha256", "report")
SCRIPTS = (
    *HOSTILE,
    "javascript:alert(1)",
    "'-alert(1)-'",
    "</title><script>alert(1)</script>",
    "<svg/onload=alert(1)>",
    "data:text/html,<script>alert(1)</script>",
    "${alert(1)}{{constructor.constructor('alert(1)')()}}",
)


@pytest.mark.parametrize(
    "text", [pytest.param(text, marks=[] if text in TEXTS[3:5] else pytest.mark.stack) for text in TEXTS]
)
def test_a_script_in_an_entry_of_the_index_stays_text(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """An entry that the check did not write, in a store that somebody else could write to."""
    monkeypatch.setenv("AIRFLOW__LOCAL_CLOAKING__AUDIT_PATH", str(tmp_path))
    filed = file_verdict(tmp_path, 1)
    (path,) = (tmp_path / "index" / OPEN).iterdir()
    entry = json.loads(path.read_text())
    client = served.client("admin")
    for script in SCRIPTS:
        path.write_text(json.dumps({**entry, text: script}))
        by_name = f"?dag_id={OPEN}&name={filed.name}"
        for route in ("/", f"/?dag_id={OPEN}", f"/report{by_name}"):
            answer = client.get(f"{PREFIX}{route}")
            assert answer.status_code in (200, 404, 409), route
            assert_no_script(answer.text)
            assert "script-src 'self'" in answer.headers["content-security-policy"]
        for route in (f"/report.html{by_name}", f"/record.json{by_name}"):
            answer = client.get(f"{PREFIX}{route}")
            assert answer.status_code in (200, 404, 409), route
            assert "script-src" not in answer.headers["content-security-policy"] or answer.status_code != 200


def test_a_script_in_each_text_of_a_record_runs_nowhere(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__LOCAL_CLOAKING__AUDIT_PATH", str(tmp_path))
    client, plain = served.client("admin"), below_threshold(judged={"at": "2026-11-30T08:00:00+01:00", "run": RUN})
    texts = {name: value for name, value in plain.items() if isinstance(value, str)}
    for number, script in enumerate(SCRIPTS[:3]):
        keep = {"schema", "verdict", "digest", "measured_at", "avatars_sha256", "space", "avatars_table"}
        said = {**plain, **dict.fromkeys(texts.keys() - keep, script)}
        filed = file_verdict(tmp_path, number, said=said, report=None, data_set=script)
        query = f"?dag_id={OPEN}&name={filed.name}"
        for route in ("report.html", "record.json", "report"):
            answer = client.get(f"{PREFIX}/{route}{query}")
            assert answer.status_code in (200, 409, 422), route
            if answer.headers["content-type"].startswith("text/html"):
                assert_no_script(answer.text)
            else:
                assert answer.headers["content-disposition"].startswith("attachment")
                assert answer.headers["x-content-type-options"] == "nosniff"
    assert b"<script" not in draw_report(plain)


def assert_no_script(page: str) -> None:
    """See that no element, attribute or address of a page runs anything but the page's own file."""
    assert re.findall(r"<script(?! src=\"[^\"]*/static/page\.js\")", page) == []
    assert re.findall(r"<[a-z][^>]*\son[a-z]+\s*=", re.sub(r'="[^"]*"', '=""', page)) == []
    assert re.findall(r'(?:href|src|action|formaction)="\s*(?:javascript|vbscript|data:text)', page, re.I) == []
    assert "<svg/onload" not in page


# Oversized and malformed -----------------------------------------------------------------------------------------

LARGE = {
    "dag_id": "x" * 1001,
    "name": "y" * 30_000,
    "run_id": "é" * 5000,
    "map_index": "9" * 5000,
    "try_number": "1e400",
    "since": "9" * 999,
    "before": "~" * 1000,
    "data_set": "\x00" * 1000,
    "verdict": "🙂" * 1000,
    "lang": "f" * 30_000,
}


@pytest.mark.parametrize("name", LARGE)
def test_what_is_too_large_or_no_value_is_refused_and_not_said_again(served: Served, name: str) -> None:
    client = served.client("admin")
    for route in ("/", "/report", "/report.html", "/record.json"):
        answer = client.get(f"{PREFIX}{route}", params={"dag_id": OPEN, "task_id": "t", name: LARGE[name]})
        assert answer.status_code in (200, 404, 422)
        if answer.status_code == 422:
            assert LARGE[name][:200] not in answer.text
        assert len(answer.content) < 1_000_000


def test_thousands_of_arguments_and_headers_are_answered(served: Served) -> None:
    client = served.client("viewer")
    many = "&".join(f"dag_id=d{number}" for number in range(5000))
    assert client.get(f"{PREFIX}/report?{many}").status_code == 404
    headers = {**{f"x-{number}": "v" * 100 for number in range(500)}, "Accept-Language": "fr," * 10_000}
    assert client.get(f"{PREFIX}/", headers=headers).status_code == 200


# Other sites -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("route", documented())
def test_another_site_can_let_nobody_fetch_or_frame_but_follow_a_link(
    served: Served, verdicts: dict[str, IndexEntry], site: str, route: str
) -> None:
    """As a browser tells it, also where the cookie came along."""
    client, path = served.client("admin"), address(route, verdicts[OPEN])
    for mode, wanted in (
        *(("no-cors", "script"), ("no-cors", "image"), ("no-cors", "style"), ("cors", "empty")),
        *(("navigate", "iframe"), ("navigate", "object"), ("navigate", "embed"), ("no-cors", "document")),
    ):
        said = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": wanted}
        answer = client.get(path, headers={**said, "Origin": "https://other.example"})
        assert (answer.status_code, answer.content) == (403, b""), (mode, wanted)
    followed = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert client.get(path, headers=followed).status_code == 200
    for own in ("same-origin", "none"):
        said = {"Sec-Fetch-Site": own, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}
        assert client.get(path, headers=said).status_code == 200


@pytest.mark.parametrize("origin", ["https://other.example", "null", "http://testserver"])
def test_no_other_origin_may_read_an_answer(served: Served, verdicts: dict[str, IndexEntry], origin: str) -> None:
    for route in documented():
        answer = served.client("admin").get(address(route, verdicts[OPEN]), headers={"Origin": origin})
        # Airflow 3.1 says of every answer that it may be asked for with cookies, which alone lets nobody read it.
        allowed = {name for name in answer.headers if name.startswith("access-control-")}
        assert allowed <= {"access-control-allow-credentials"}, route
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["x-frame-options"] == "SAMEORIGIN"
        assert "frame-ancestors 'self'" in answer.headers["content-security-policy"]
        assert "set-cookie" not in answer.headers
    asked = {"Origin": origin, "Access-Control-Request-Method": "GET"}
    preflight = served.client("admin").options(f"{PREFIX}/record.json", headers=asked)
    # Airflow 3.1 answers itself that it allows no origin, later ones that the route takes no such question.
    assert preflight.status_code == (405 if airflow_version() >= (3, 2) else 400)
    assert "access-control-allow-origin" not in preflight.headers
