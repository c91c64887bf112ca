"""The page inside Airflow: what it shows of the verdicts, to whom it looks how, and how it is loaded."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

pytest.importorskip("airflow", reason="apache-airflow is not installed (extra `airflow`)")

from tests.page import OPEN, SECRET, Served, file_verdict, know_dags, serving
from tests.records import HOSTILE, shuffled
from tests.storage import connect_storage

from local_cloaking.airflow.links import page_path
from local_cloaking.airflow.page.course import course_of
from local_cloaking.audit import index

PREFIX = "/local-cloaking/"


@pytest.fixture(scope="module")
def served(airflow_home: Path) -> Iterator[Served]:
    know_dags(OPEN, SECRET)
    with (
        pytest.MonkeyPatch.context() as patch,
        serving(airflow_home, airflow_home / "audit", patch) as running,
    ):
        yield running


@pytest.fixture
def store(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AIRFLOW__LOCAL_CLOAKING__AUDIT_PATH", str(tmp_path / "store"))
    return tmp_path / "store"


class Read(HTMLParser):
    """A page as a reader meets it: its texts, links and elements."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.links: list[str] = []
        self.elements: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.elements.append(tag)
        self.links += [given[name] or "" for name in ("href", "src", "action") if name in given]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        assert not [name for name in given if name.startswith("on") or name == "style"], given

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data

    def verdicts(self) -> list[list[str]]:
        """Return the cells of the list of verdicts, tidied."""
        rows = [[re.sub(r"\s+", " ", cell).strip() for cell in row] for row in self.rows]
        return [row for row in rows if len(row) == 9 and row[0] not in ("When", "Date")]


def shown(served: Served, query: str = "", user: str = "admin", route: str = "") -> Read:
    answer = served.client(user).get(f"{served.base}{PREFIX}{route}{query}")
    assert answer.status_code == 200, answer.text
    return Read(answer.text)


# What it shows -------------------------------------------------------------------------------------------------


def test_an_empty_store_says_so_and_names_the_option(served: Served, store: Path) -> None:
    assert "audit_path" in " ".join(shown(served).texts)


def test_each_verdict_with_its_figures_and_its_evidence(served: Served, store: Path) -> None:
    file_verdict(store, 1)
    file_verdict(store, 2, try_number=3, map_index=4)
    file_verdict(store, 3, said=shuffled(), data_set=None)
    page = shown(served)
    rows = page.verdicts()
    assert [row[1:5] for row in rows] == [
        ["Not assessable", "–", "5", "2,139"],
        ["Below the threshold", "10", "15", "2,139"],
        ["Passed", "10", "5", "2,139"],
    ]
    assert [row[6:] for row in rows] == [
        ["without a name", OPEN, "manual__3gate.check, try 1"],
        ["patients", OPEN, "manual__2gate.check [4], try 3"],
        ["patients", OPEN, "manual__1gate.check, try 1"],
    ]
    reports = [link for link in page.links if "/report?" in link]
    assert len(set(reports)) == 3
    for link in reports:
        assert served.client("viewer").get(link).status_code == 200


def test_last_verdict_and_course_of_each_data_set(served: Served, store: Path) -> None:
    for number in range(6):
        file_verdict(store, number, data_set=["patients", "visits"][number % 2], local_cloaking=float(number))
    page = shown(served)
    last = [[re.sub(r"\s+", " ", cell).strip() for cell in row] for row in page.rows if len(row) == 7][1:]
    assert [(row[0], row[1], row[2]) for row in last] == [
        ("visits", "Below the threshold", "5"),
        ("patients", "Passed", "4"),
    ]
    one = served.client("admin").get(f"{PREFIX}?dag_id={OPEN}&data_set=patients").text
    assert re.findall(r'aria-label="[^"]*Local Cloaking (\d+), Threshold (\d+)"', one) == [
        ("0", "5"),
        ("2", "15"),
        ("4", "5"),
    ]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("", range(12)),
        (f"?dag_id={SECRET}", [1, 3, 5, 7, 9, 11]),
        ("?data_set=visits", [2, 6, 10]),
        ("?verdict=below_threshold", [2, 5, 8, 11]),
        ("?verdict=no+such", []),
        (f"?dag_id={OPEN}&verdict=passed&data_set=patients", [0, 4]),
        ("?since=2026-11-02", range(8, 12)),
        ("?until=2026-11-01", range(8)),
        ("?since=2026-11-02&until=2026-11-02&verdict=passed", [9, 10]),
        ("?run_id=manual__5%2B00:00", [5]),
        # Airflow 3.1 puts the name of a run into the address as it is.
        (f"?dag_id={SECRET}&run_id=manual__5+00:00", [5]),
        ("?dag_id=absent", []),
    ],
)
def test_filters(served: Served, store: Path, query: str, wanted: Any) -> None:
    for number in range(12):
        file_verdict(
            store,
            number * 2,
            dag_id=[OPEN, SECRET][number % 2],
            data_set=["patients", "visits"][number % 4 == 2],
            run_id=f"manual__{number}+00:00",
            verdict="below_threshold" if number % 3 == 2 else "passed",
        )
    runs = [int(re.findall(r"manual__(\d+)", row[8])[0]) for row in shown(served, query).verdicts()]
    assert runs == sorted(wanted, reverse=True)


@pytest.mark.parametrize("query", ["?since=tomorrow", "?until=%27%22", "?dag_id=" + "x" * 2000])
def test_a_filter_that_is_none_is_refused_without_saying_it_again(served: Served, store: Path, query: str) -> None:
    answer = served.client("admin").get(PREFIX + query)
    assert answer.status_code == 422
    assert "holds a value that is none" in answer.text


def test_pages_follow_each_other_and_keep_the_filters(served: Served, store: Path) -> None:
    filed = file_verdict(store, 0)
    for number in range(1, 120):
        index.write_entry(store, copied(filed, number))
    seen, query = [], "?data_set=patients&lang=fr"
    for _ in range(3):
        page = shown(served, query)
        seen += [row[8] for row in page.verdicts()]
        older = [link for link in page.links if link.startswith(PREFIX) and "before=" in link]
        query = f"?{urlsplit(older[0]).query}" if older else ""
        assert not older or parse_qs(query[1:])["lang"] == ["fr"]
    assert len(seen) == len(set(seen)) == 120
    assert query == ""


def copied(entry: index.IndexEntry, number: int, **values: Any) -> index.IndexEntry:
    from dataclasses import replace
    from datetime import datetime, timedelta

    at = datetime.fromisoformat(entry.at) + timedelta(minutes=number)
    return replace(entry, at=at.isoformat(), run_id=f"manual__{number}", **values)


def test_of_ten_thousand_verdicts_only_the_first_page_is_read(
    served: Served, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filed = file_verdict(store, 0)
    monkeypatch.setattr("local_cloaking.audit.store.os.fsync", lambda descriptor: None)
    for number in range(10_000):
        index.write_entry(store, copied(filed, number, data_set=f"table {number % 7}"))
    opened: list[str] = []
    read = index._read
    monkeypatch.setattr(
        index, "_read", lambda root, one, **options: opened.append(one.name) or read(root, one, **options)
    )
    page = shown(served)
    assert len(page.verdicts()) == 50
    # The list and one more, and twenty verdicts of each data set for its course.
    assert len(opened) <= 51 + 7 * 20


# The report, the record, and other tries -----------------------------------------------------------------------


def by_try(number: int, **values: Any) -> str:
    asked = {"dag_id": OPEN, "run_id": f"manual__{number}", "task_id": "gate.check", "map_index": -1, **values}
    return f"?{urlsplit(page_path('report', **asked)).query}"


def test_the_report_page_shows_this_try_and_lists_the_others(served: Served, store: Path) -> None:
    """[airflow 71471]"""
    tries = [file_verdict(store, number, run_id="manual__1", try_number=number) for number in (1, 2, 3)]
    file_verdict(store, 4, run_id="manual__1", task_id="other.check")
    file_verdict(store, 5, run_id="manual__1", map_index=0)
    file_verdict(store, 6, run_id="manual__other")
    for asked in tries:
        page = shown(served, by_try(1, try_number=asked.try_number), route="report")
        assert [link for link in page.links if "report.html" in link and asked.name in link]
        listed = [parse_qs(urlsplit(link).query)["name"][0] for link in page.links if "/report?" in link]
        assert listed == [one.name for one in reversed(tries)]
    newest = shown(served, by_try(1), route="report")
    assert [link for link in newest.links if "report.html" in link and tries[-1].name in link]


def test_a_try_without_a_verdict_says_so_and_lists_the_others(served: Served, store: Path) -> None:
    filed = file_verdict(store, 1)
    answer = served.client("admin").get(f"{PREFIX}report{by_try(1, try_number=2)}")
    assert answer.status_code == 404
    assert "gave no verdict" in answer.text
    assert filed.name in answer.text
    for route in ("report.html", "record.json"):
        assert served.client("admin").get(f"{PREFIX}{route}{by_try(1, try_number=2)}").status_code == 404


def test_report_and_record_are_the_files_in_the_store(served: Served, store: Path) -> None:
    filed = file_verdict(store, 2)
    client, query = served.client("viewer"), f"?dag_id={OPEN}&name={filed.name}"
    report, record = client.get(f"{PREFIX}report.html{query}"), client.get(f"{PREFIX}record.json{query}")
    assert report.content == (store / (filed.report or "")).read_bytes()
    assert report.headers["content-type"].startswith("text/html")
    assert record.content == (store / filed.record).read_bytes()
    assert record.headers["content-type"] == "application/json"
    assert record.headers["content-disposition"].startswith("attachment")


def test_a_report_that_was_not_written_is_drawn_from_the_record(served: Served, store: Path) -> None:
    filed = file_verdict(store, 2, report=None)
    report = served.client("viewer").get(f"{PREFIX}report.html?dag_id={OPEN}&name={filed.name}")
    assert report.status_code == 200
    assert filed.record_sha256 in report.text


def test_evidence_that_is_gone_is_not_found(served: Served, store: Path) -> None:
    filed = file_verdict(store, 2)
    (store / filed.record).unlink()
    for route in ("report.html", "record.json"):
        answer = served.client("viewer").get(f"{PREFIX}{route}?dag_id={OPEN}&name={filed.name}")
        assert answer.status_code == 404


def test_a_store_that_cannot_be_read_is_told_without_its_place(
    served: Served, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any, **options: Any) -> Any:
        raise PermissionError(13, "denied", str(store))

    monkeypatch.setattr("local_cloaking.airflow.page.application.listing", broken)
    answer = served.client("admin").get(PREFIX)
    assert answer.status_code == 503
    assert str(store) not in answer.text


# Texts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["dag_id", "run_id", "task_id", "data_set"])
@pytest.mark.parametrize("text", HOSTILE)
def test_whatever_a_name_holds_it_is_text(
    served: Served, store: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    monkeypatch.setattr("local_cloaking.airflow.page.rights.get_auth_manager", lambda: Everything(OPEN, text))
    plain = Read(served.client("admin").get(PREFIX + f"?dag_id={OPEN}").text).elements
    filed = file_verdict(store, 1, **{name: text})
    for route in ("", f"report?{urlsplit(page_path('', dag_id=filed.dag_id, name=filed.name)).query}"):
        answer = served.client("admin").get(PREFIX + route)
        assert answer.status_code == 200
        page = Read(answer.text)
        assert page.elements.count("script") == plain.count("script") == 1
        assert set(page.elements) <= ELEMENTS
        assert text in "".join(page.texts)
    for filter_name in ("dag_id", "data_set", "run_id"):
        answer = served.client("admin").get(PREFIX, params={filter_name: text})
        assert set(Read(answer.text).elements) <= ELEMENTS


ELEMENTS = set(
    re.findall(
        r"\w+",
        """html head meta title link script body header p a strong nav span main h1 h2 section div table thead
        tbody tr th td svg path circle polyline text form label input datalist option select button bdi br time
        iframe ol li""",
    )
)


class Everything:
    """Lets everybody read some DAGs; who asks is still asked for by Airflow."""

    def __init__(self, *dag_ids: str) -> None:
        self.dag_ids = set(dag_ids)

    def get_authorized_dag_ids(self, **asked: Any) -> set[str]:
        return self.dag_ids


ENGLISH = re.compile(r"\b(the|of|and|are|is|was|with|which|that|not|by|for|from|no|to|in|this|it)\b", re.I)


def test_in_french_nothing_is_english(served: Served, store: Path) -> None:
    for number in range(4):
        file_verdict(store, number, warning=number == 0)
    file_verdict(store, 5, data_set=None, run_id="manual__1")
    client = served.client("admin")
    routes = [
        "",
        f"?dag_id={OPEN}",
        "?verdict=none",
        f"report{by_try(1)}",
        f"report{by_try(1, try_number=9)}",
        "none",
    ]
    for route in routes:
        for headers, more in (({"Accept-Language": "fr-CH, de;q=0.9"}, ""), ({}, "lang=fr")):
            path = f"{PREFIX}{route}{'&' if '?' in route else '?'}{more}"
            answer = client.get(path, headers=headers)
            assert answer.headers["content-language"] == "fr", path
            assert [text for text in Read(answer.text).texts if ENGLISH.search(text)] == [], path
    assert "Se connecter" in served.client().get(f"{PREFIX}?lang=fr").text


@pytest.mark.parametrize(
    ("header", "query", "code"),
    [("", "", "en"), ("de, fr;q=0.5", "", "fr"), ("fr", "?lang=en", "en"), ("de", "?lang=xx", "en")],
)
def test_the_language_is_that_of_the_address_or_the_browser(
    served: Served, store: Path, header: str, query: str, code: str
) -> None:
    answer = served.client("admin").get(PREFIX + query, headers={"Accept-Language": header})
    assert f'<html lang="{code}"' in answer.text


# Under a base path, and from object storage --------------------------------------------------------------------


def test_under_a_base_path_every_link_works(airflow_home: Path, tmp_path: Path) -> None:
    know_dags(OPEN)
    file_verdict(tmp_path, 1)
    with (
        pytest.MonkeyPatch.context() as patch,
        serving(airflow_home, tmp_path, patch, base="/airflow") as running,
    ):
        assert page_path("report").startswith("/airflow/local-cloaking/report")
        client = running.client("viewer")
        page = shown(running)
        inner = [link for link in page.links if "local-cloaking" in link]
        assert len(inner) > 5
        assert all(link.startswith("/airflow/local-cloaking/") for link in inner)
        assert {client.get(link).status_code for link in inner} == {200}
        login = Read(running.client().get(f"/airflow{PREFIX}").text).links
        assert "/airflow/api/v2/auth/login?next=/airflow/local-cloaking/%3F" in login


def test_evidence_in_object_storage_is_shown_as_soon_as_it_is_there(
    served: Served, store: Path, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("s3fs", reason="s3fs is not installed (extra `dev`)")
    from local_cloaking.airflow.runs import evidence_root

    client = connect_storage(endpoint, monkeypatch, connection="pages", bucket="evidence")
    filed = file_verdict(store, 1)
    for path in (filed.record, filed.report or ""):
        client.upload_file(str(store / path), "evidence", f"audit/{path}")
    monkeypatch.setenv("AIRFLOW__LOCAL_CLOAKING__AUDIT_PATH", "s3://pages@evidence/audit")
    assert shown(served).verdicts() == []
    for number in (1, 2):
        index.write_entry(evidence_root(), copied(filed, number))
        page = shown(served)
        assert len(page.verdicts()) == number
    report = next(link for link in page.links if "/report?" in link)
    answer = served.client("viewer").get(report.replace("/report?", "/record.json?"))
    assert answer.content == (store / filed.record).read_bytes()


# Links on the tasks --------------------------------------------------------------------------------------------

GATED = """
import pendulum
from airflow.sdk import DAG
from local_cloaking.airflow import *

with DAG("linked", schedule=None, start_date=pendulum.datetime(2026, 1, 1, tz="UTC")) as dag:
    gate = local_cloaking_gate("gate", originals="{tables.originals}", avatars="{tables.avatars}", key="id", ncp=3,
                               threshold={threshold}, data_set="patients")
"""


@pytest.mark.parametrize(("threshold", "verdict"), [(3, "passed"), (50, "below_threshold")])
def test_links_of_a_real_run_lead_to_its_report_and_record(
    served: Served,
    store: Path,
    run_dag: Any,
    tables: Any,
    monkeypatch: pytest.MonkeyPatch,
    threshold: int,
    verdict: str,
) -> None:
    """[airflow 57545] Also after a failure."""
    run = run_dag(GATED.format(tables=tables, threshold=threshold))
    (entry,) = index.entries(store)
    assert (entry.verdict, entry.data_set) == (verdict, "patients")
    monkeypatch.setattr("local_cloaking.airflow.page.rights.get_auth_manager", lambda: Everything(entry.dag_id))
    client = served.client("viewer")
    report = run.xcoms["gate.check", "_link_local_cloaking_report"]
    record = run.xcoms["gate.check", "_link_local_cloaking_record"]
    assert entry.name in client.get(report).text
    assert json.loads(client.get(record).content)["verdict"] == verdict
    assert "gate.check" in client.get(report).text
    assert client.get(report.replace("/report?", "/report.html?")).status_code == 200


def test_the_buttons_are_those_of_the_check() -> None:
    from airflow.sdk import DAG

    from local_cloaking.airflow import LocalCloakingCheckOperator

    with DAG("buttons", schedule=None):
        check = LocalCloakingCheckOperator(task_id="check", measured={}, threshold=5)
    links = {link.name: link.xcom_key for link in check.operator_extra_links}
    assert links == {"Report": "_link_local_cloaking_report", "Record": "_link_local_cloaking_record"}


# How it is loaded ----------------------------------------------------------------------------------------------


def test_the_plugin_is_a_page_in_the_navigation_and_a_tab_of_dag_and_run(served: Served) -> None:
    answer = served.client("admin").get("/api/v2/plugins")
    (plugin,) = [one for one in answer.json()["plugins"] if one["name"] == "local_cloaking"]
    views = {view["destination"]: view["href"] for view in plugin["external_views"]}
    assert views == {
        "nav": "/local-cloaking/",
        "dag": "/local-cloaking/?dag_id={DAG_ID}",
        "dag_run": "/local-cloaking/?dag_id={DAG_ID}&run_id={RUN_ID}",
    }
    assert len({view["url_route"] for view in plugin["external_views"]}) == 3


def loaded(home: Path, *, folder: bool, installed: bool, manager: str) -> list[str]:
    """Load the plugins in a process of its own, beside another vendor's; return their names and sources."""
    plugins, packages = home / "plugins", home / "packages"
    plugins.mkdir(parents=True)
    if folder:
        source = Path(__file__).parents[2] / "plugins" / "local_cloaking_page.py"
        (plugins / source.name).write_bytes(source.read_bytes())
    (plugins / "zz_other.py").write_text(
        "from airflow.plugins_manager import AirflowPlugin\nclass Other(AirflowPlugin):\n    name = 'other'\n"
    )
    points = {"vendor": "[airflow.plugins]\nvendor = vendor:Vendor\n"}
    if installed:
        points["local_cloaking_stand_in"] = (
            "[airflow.plugins]\nlocal_cloaking = local_cloaking.airflow.plugin:LocalCloakingPlugin\n"
        )
    for name, text in points.items():
        info = packages / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(text)
    (packages / "vendor.py").write_text(
        "from airflow.plugins_manager import AirflowPlugin\nclass Vendor(AirflowPlugin):\n    name = 'vendor'\n"
    )
    code = (
        # The package under test is installed, and brings the plugin: unseen, or seen as the stand-in.
        "import importlib.metadata as here\n"
        "try:\n    import importlib_metadata as there\nexcept ImportError:\n    there = here\n"
        "def unseen(found):\n"
        "    ours = 'local-cloaking'\n"
        "    return lambda **context: (one for one in found(**context) if one.metadata['Name'] != ours)\n"
        "for library in {here, there}:\n    library.distributions = unseen(library.distributions)\n"
        f"import sys, {manager} as manager\n"
        # Airflow 3.1 keeps them in a variable of the module.
        "loaded = manager._get_plugins()[0] if hasattr(manager, '_get_plugins') else "
        "(manager.ensure_plugins_loaded(), manager.plugins)[1]\n"
        "print('loaded', sorted(plugin.name for plugin in loaded if plugin.name in "
        "('local_cloaking', 'other', 'vendor')),"
        " 'local_cloaking.airflow.page.application' in sys.modules)"
    )
    environment = {
        **os.environ,
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(plugins),
        "PYTHONPATH": os.pathsep.join([str(packages), *sys.path]),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=300
    )
    assert "already registered" not in done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith("loaded")]


@pytest.mark.stack
@pytest.mark.parametrize("manager", ["airflow.plugins_manager", "airflow.sdk.plugins_manager"])
@pytest.mark.parametrize(("folder", "installed"), [(True, False), (False, True), (True, True)])
def test_loaded_once_whichever_way_and_others_too(
    tmp_path: Path, folder: bool, installed: bool, manager: str
) -> None:
    """[airflow 55571] Another plugin's views are there, too."""
    pytest.importorskip(manager, reason="this Airflow has no such part")
    found = loaded(tmp_path, folder=folder, installed=installed, manager=manager)
    # And the application is not made where nobody serves it.
    assert found == ["loaded ['local_cloaking', 'other', 'vendor'] False"]


# The course ----------------------------------------------------------------------------------------------------


def drawn(*figures: tuple[float | None, float]) -> Any:
    filed = index.IndexEntry(
        "2026-11-30T08:09:05+01:00", OPEN, "r", "t", -1, 1, None, "passed", False, 0.0, 5.0, 20, "r.json", "", None
    )
    entries = [copied(filed, i, local_cloaking=value, threshold=bound) for i, (value, bound) in enumerate(figures)]
    return course_of(entries, width=100, height=50, left=10, margin=5)


def test_the_course_rises_with_the_figure_and_breaks_where_there_is_none() -> None:
    course = drawn((2.0, 5), (4.0, 5), (None, 5), (10.0, 8), (6.0, 8))
    heights = [mark.y for mark in course.marks]
    assert heights[3] < heights[4] < heights[1] < heights[0] < heights[2] == 45
    assert [len(line.split()) for line in course.lines] == [2, 2]
    assert [mark.x for mark in course.marks] == sorted(mark.x for mark in course.marks)
    assert all(10 < mark.x < 95 and 5 <= mark.y <= 45 for mark in course.marks)


def test_the_threshold_steps_where_it_changed() -> None:
    assert drawn((2.0, 5), (4.0, 5), (3.0, 10)).threshold.count("L") == 1
    assert drawn((2.0, 5), (4.0, 5)).threshold.count("L") == 0


@pytest.mark.parametrize("top", [0.001, 0.3, 1, 5, 7, 99, 1e6, 1e-300, 1e300])
def test_the_axis_has_some_round_values_from_nothing_up(top: float) -> None:
    ticks = drawn((top, top)).ticks
    assert ticks[0][0] == 0
    assert 2 <= len(ticks) <= 7 or top < 1e-9


def test_a_report_is_not_drawn_from_a_record_that_contradicts_itself(served: Served, store: Path) -> None:
    """Found by `make fuzz`: whoever can write to the store made the page answer with 500."""
    filed = file_verdict(store, 1, report=None)
    record = json.loads((store / filed.record).read_bytes())
    content = json.dumps({**record, "columns": 5, "threshold": "x"}).encode()
    (store / filed.record).write_bytes(content)
    index.write_entry(store, copied(filed, 2, record_sha256=hashlib.sha256(content).hexdigest(), report=None))
    newest = index.entries(store)[0]
    answer = served.client("viewer").get(f"/local-cloaking/report.html?dag_id={OPEN}&name={newest.name}")
    assert answer.status_code == 409
