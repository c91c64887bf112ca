"""Who sees what of the page, through Airflow's own API server: every route, every kind of caller."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

pytest.importorskip("airflow", reason="apache-airflow is not installed (extra `airflow`)")

import jwt
from tests.page import OPEN, SECRET, Served, file_verdict, know_dags, serving

from local_cloaking.audit.index import IndexEntry

PREFIX = "/local-cloaking"
#: How somebody may call who has no right to anything.
NOBODY: dict[str, dict[str, str]] = {
    "no token": {},
    "wrong token": {"token": "x.y.z"},
    "forged token": {"token": jwt.encode({"sub": "admin", "role": "ADMIN"}, "not the server's secret" * 4)},
    "unsigned token": {"token": jwt.encode({"sub": "admin", "role": "ADMIN"}, "", algorithm="none")},
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def verdicts(store: Path) -> dict[str, IndexEntry]:
    return {
        OPEN: file_verdict(store, 1, dag_id=OPEN, data_set="open patients"),
        SECRET: file_verdict(store, 2, dag_id=SECRET, data_set="secret patients"),
    }


@pytest.fixture(scope="module")
def served(airflow_home: Path, store: Path, verdicts: dict[str, IndexEntry]) -> Iterator[Served]:
    know_dags(OPEN, SECRET)
    with pytest.MonkeyPatch.context() as patch, serving(airflow_home, store, patch) as running:
        yield running


def routes_of(entry: IndexEntry) -> list[str]:
    by_name = f"?dag_id={entry.dag_id}&name={entry.name}"
    by_try = (
        f"?dag_id={entry.dag_id}&run_id={quote(entry.run_id)}&task_id={entry.task_id}"
        f"&map_index={entry.map_index}&try_number={entry.try_number}"
    )
    return [
        f"{PREFIX}/{route}{query}"
        for route in ("report", "report.html", "record.json")
        for query in (by_name, by_try)
    ]


def application_routes(served: Served) -> list[str]:
    """Return the routes that the page's application has, as Airflow mounted it."""
    (mounted,) = [route for route in served.application.routes if getattr(route, "path", "") == PREFIX]
    return [f"{PREFIX}{route.path.replace('{name}', 'page.css')}" for route in mounted.app.routes]


def test_the_application_has_these_routes_and_no_other(served: Served) -> None:
    assert sorted(application_routes(served)) == [
        "/local-cloaking/",
        "/local-cloaking/record.json",
        "/local-cloaking/report",
        "/local-cloaking/report.html",
        "/local-cloaking/static/page.css",
    ]


@pytest.mark.parametrize("caller", NOBODY)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"])
def test_without_a_user_nothing_is_told(
    served: Served, verdicts: dict[str, IndexEntry], caller: str, method: str
) -> None:
    client = served.client(**NOBODY[caller])
    asked = [
        *application_routes(served),
        *(route for entry in verdicts.values() for route in routes_of(entry)),
        f"{PREFIX}/?dag_id={OPEN}",
        f"{PREFIX}/static/page.js",
        f"{PREFIX}/static/",
        f"{PREFIX}/docs",
        f"{PREFIX}/redoc",
        f"{PREFIX}/openapi.json",
        f"{PREFIX}/docs/oauth2-redirect",
        f"{PREFIX}/report.html?dag_id={OPEN}&map_index=many",
    ]
    for path in asked:
        answer = client.request(method, path)
        wanted = {401, 403, 404} if method == "GET" else {401, 403, 404, 405}
        assert answer.status_code in wanted, path
        assert "patients" not in answer.text
        assert "evidence" not in answer.text
        assert answer.headers["cache-control"] == "no-store"


def test_no_token_is_401_a_wrong_one_403_and_the_right_one_200(served: Served) -> None:
    """[airflow 72655]"""
    assert served.client("viewer").get(f"{PREFIX}/").status_code == 200
    assert served.client().get(f"{PREFIX}/").status_code == 401
    assert served.client(token="x.y.z").get(f"{PREFIX}/").status_code in (401, 403)
    header = {"Authorization": "Bearer x.y.z"}
    assert served.client("admin").get(f"{PREFIX}/", headers=header).status_code in (200, 403)
    assert served.client().get(f"{PREFIX}/", headers=header).status_code == 403


@pytest.mark.parametrize(
    ("user", "readable"), [("admin", {OPEN, SECRET}), ("viewer", {OPEN}), ("stranger", set())]
)
def test_a_user_sees_the_dags_that_airflow_lets_them_read_and_no_trace_of_others(
    served: Served, verdicts: dict[str, IndexEntry], user: str, readable: set[str]
) -> None:
    client = served.client(user)
    for query in ("", f"?dag_id={OPEN}", f"?dag_id={SECRET}", "?data_set=secret+patients", "?verdict=passed"):
        page = client.get(f"{PREFIX}/{query}")
        assert page.status_code == 200
        # What was typed into the filters is said again.
        text = page.text.replace('value="secret"', "").replace('value="secret patients"', "")
        for dag_id in {OPEN, SECRET} - readable:
            assert verdicts[dag_id].name not in text
            assert verdicts[dag_id].run_id not in text
            assert f'<option value="{dag_id}">' not in page.text
    whole = client.get(f"{PREFIX}/").text
    assert {dag_id for dag_id, entry in verdicts.items() if entry.name in whole} == readable
    for dag_id, entry in verdicts.items():
        for path in routes_of(entry):
            answer = client.get(path)
            assert answer.status_code == (200 if dag_id in readable else 404), path
    for name in ("page.css", "page.js"):
        assert client.get(f"{PREFIX}/static/{name}").status_code == 200


def test_a_dag_that_may_not_be_read_is_like_one_that_is_not_there(
    served: Served, verdicts: dict[str, IndexEntry]
) -> None:
    client, entry = served.client("viewer"), verdicts[SECRET]
    for path in routes_of(entry):
        there, absent = client.get(path), client.get(path.replace(f"dag_id={SECRET}", "dag_id=absent"))
        # The links to other languages hold what was asked.
        assert (there.status_code, there.text.replace(SECRET, "absent")) == (absent.status_code, absent.text)


def test_a_verdict_is_not_reached_by_the_name_of_a_readable_dag(
    served: Served, verdicts: dict[str, IndexEntry]
) -> None:
    client = served.client("viewer")
    for query in (
        f"?dag_id={OPEN}&name={verdicts[SECRET].name}",
        f"?dag_id={SECRET}&dag_id={OPEN}&name={verdicts[SECRET].name}",
        f"?dag_id={OPEN}&dag_id={SECRET}&name={verdicts[SECRET].name}",
        f"?dag_id={OPEN}%2F..%2F{SECRET}&name={verdicts[SECRET].name}",
        f"?dag_id={OPEN}&name=..%2F{SECRET}%2F{verdicts[SECRET].name}",
    ):
        for route in ("report", "report.html", "record.json"):
            assert client.get(f"{PREFIX}/{route}{query}").status_code == 404


def test_no_language_version_shows_more(served: Served, verdicts: dict[str, IndexEntry]) -> None:
    page = served.client("viewer").get(f"{PREFIX}/?lang=fr").text
    assert verdicts[OPEN].name in page
    assert verdicts[SECRET].name not in page


# The store, and nothing beside it ------------------------------------------------------------------------------

WAYS_OUT = [
    "../outside/record.json",
    "evidence/../../outside/record.json",
    "..%2Foutside%2Frecord.json",
    "%2e%2e/outside/record.json",
    "..\\outside\\record.json",
    "./record.json",
    "evidence//record.json",
    "/etc/passwd",
    "//etc/passwd",
    "file:///etc/passwd",
    "s3://bucket/record.json",
    "record.json\x00",
    "~/record.json",
    "",
    ".",
    "evidence",
    "link/record.json",
    "evidence/link.json",
    "evidence/2-1/link.html",
]


@pytest.mark.parametrize("path", WAYS_OUT)
@pytest.mark.parametrize("kind", ["record", "report"])
def test_no_entry_leads_out_of_the_store(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, kind: str
) -> None:
    store, outside = tmp_path / "store", tmp_path / "outside"
    monkeypatch.setenv("AIRFLOW__LOCAL_CLOAKING__AUDIT_PATH", str(store))
    first = file_verdict(store, 1)
    outside.mkdir()
    # A true record of the very verdict: only its place is wrong.
    (outside / "record.json").write_bytes((store / first.record).read_bytes())
    (store / "link").symlink_to(outside)
    (store / "evidence" / "link.json").symlink_to(outside / "record.json")
    (store / "evidence" / "2-1").mkdir()
    (store / "evidence" / "2-1" / "link.html").symlink_to(outside / "record.json")
    entry = file_verdict(store, 2, record_sha256=first.record_sha256, **{kind: path})
    client = served.client("viewer")
    routes = ["report.html", "record.json"] if kind == "record" else ["report.html"]
    for route in routes:
        answer = client.get(f"{PREFIX}/{route}?dag_id={OPEN}&name={entry.name}")
        assert answer.status_code in (404, 409), route
        assert "root:" not in answer.text


def test_a_store_that_is_a_link_itself_is_read(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = file_verdict(tmp_path / "store", 1)
    (tmp_path / "way").symlink_to(tmp_path / "store")
    monkeypatch.setenv("AIRFLOW__LOCAL_CLOAKING__AUDIT_PATH", str(tmp_path / "way"))
    answer = served.client("viewer").get(f"{PREFIX}/record.json?dag_id={OPEN}&name={entry.name}")
    assert json.loads(answer.content)["schema"] == "local-cloaking/record"


@pytest.mark.parametrize(
    "path",
    [
        "/static/../application.py",
        "/static/..%2Fapplication.py",
        "/static/%2e%2e/application.py",
        "/static/..%5Capplication.py",
        "/static/%2Fetc%2Fpasswd",
        "/static/page.css/",
        "/static/page.css%00",
        "/static//page.css",
        "/../../etc/passwd",
        "/report.html/../../../etc/passwd",
        "/evidence/1-1/record.json",
        "/index/trial",
    ],
)
def test_only_style_and_script_are_static(served: Served, path: str) -> None:
    client = served.client("admin")
    # As it is: the client would put it right.
    url = client.base_url.copy_with(raw_path=f"{PREFIX}{path}".encode())
    answer = client.get(url)
    assert answer.status_code == 404 or "<title>Airflow</title>" in answer.text
    assert "root:" not in answer.text
    assert "create_application" not in answer.text


def test_another_dags_evidence_is_not_shown_as_ones_own(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__LOCAL_CLOAKING__AUDIT_PATH", str(tmp_path))
    secret = file_verdict(tmp_path, 1, dag_id=SECRET)
    own = file_verdict(tmp_path, 3)
    client = served.client("viewer")
    for number, values in enumerate(
        ({"record": secret.record, "record_sha256": secret.record_sha256}, {"report": secret.report}), start=6
    ):
        forged = file_verdict(tmp_path, number, **values)
        answer = client.get(f"{PREFIX}/report.html?dag_id={OPEN}&name={forged.name}")
        assert answer.status_code == 409
    assert client.get(f"{PREFIX}/report.html?dag_id={OPEN}&name={own.name}").status_code == 200


def test_a_record_that_was_changed_is_not_shown(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__LOCAL_CLOAKING__AUDIT_PATH", str(tmp_path))
    entry = file_verdict(tmp_path, 2)
    path = tmp_path / entry.record
    path.write_bytes(path.read_bytes().replace(b"below_threshold", b"passed"))
    for route in ("report.html", "record.json"):
        answer = served.client("viewer").get(f"{PREFIX}/{route}?dag_id={OPEN}&name={entry.name}")
        assert answer.status_code == 409
        assert "not the one that the check wrote" in answer.text


# Headers -------------------------------------------------------------------------------------------------------


def policy_of(answer: Any) -> dict[str, str]:
    parts = (part.strip().partition(" ") for part in answer.headers["content-security-policy"].split(";"))
    return {name: value for name, _, value in parts}


def test_headers_keep_other_sites_and_scripts_out(served: Served, verdicts: dict[str, IndexEntry]) -> None:
    client = served.client("admin")
    paths = [f"{PREFIX}/", *routes_of(verdicts[OPEN]), f"{PREFIX}/static/page.js", f"{PREFIX}/none"]
    for path in paths:
        answer = client.get(path)
        policy = policy_of(answer)
        assert policy["frame-ancestors"] == "'self'"
        assert policy["default-src"] == "'none'"
        assert "unsafe" not in policy.get("script-src", "")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "SAMEORIGIN"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "no-referrer"
    for path in routes_of(verdicts[OPEN])[2:]:
        policy = policy_of(client.get(path))
        # What lies in the store runs nothing, and is of no origin.
        assert policy["sandbox"] == ""
        assert "script-src" not in policy
