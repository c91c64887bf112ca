"""A whole Airflow, three users, a browser: a gate that fails, one that passes, and who comes to know of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("airflow", reason="apache-airflow is not installed (extra `airflow`)")

from tests.browser import Browser, browser
from tests.integration.conftest import make_tables
from tests.live import Airflow, live_airflow
from tests.receivers import mail_server, statsd_server

__all__ = ["browser"]

pytestmark = [pytest.mark.integration, pytest.mark.stack]

#: The tables' Local Cloaking is 4.
PASSING, FAILING = 3, 50
NIGHTLY = """
import pendulum
from airflow.providers.smtp.notifications.smtp import SmtpNotifier
from airflow.sdk import DAG, Asset
from local_cloaking.airflow import LocalCloakingNotifier, local_cloaking_gate

TOLD = LocalCloakingNotifier(via=[SmtpNotifier(
    to="officer@example.org",
    subject="{{{{ local_cloaking.subject }}}}", html_content="{{{{ local_cloaking.html }}}}")])

with DAG("nightly", schedule=None, start_date=pendulum.datetime(2026, 1, 1, tz="UTC")) as dag:
    local_cloaking_gate("gate", originals="{originals}", avatars="{avatars}", key="id", ncp=3, k=20,
                        data_set="patients", threshold="{{{{ params.threshold }}}}",
                        notify=TOLD, outlet=Asset("patients_passed"))
    dag.params["threshold"] = {failing}
"""
RELEASE = """
import pendulum
from airflow.sdk import DAG, Asset, task
from local_cloaking.airflow import require_passed

PASSED = Asset("patients_passed")

with DAG("release", schedule=[PASSED], start_date=pendulum.datetime(2026, 1, 1, tz="UTC")) as dag:

    @task
    def hand_over(triggering_asset_events=None):
        return [str(require_passed(event.extra, "{avatars}")) for event in triggering_asset_events[PASSED]]

    hand_over()
"""


@dataclass
class Runs:
    """A night with a gate that failed, the next with one that passed; what was left by each."""

    airflow: Airflow
    failed: str
    passed: str
    avatars: str
    mails_after_failure: list[EmailMessage]
    mails: list[EmailMessage]
    events_after_failure: list[dict[str, Any]]
    releases_after_failure: list[dict[str, Any]]
    gauges: Callable[[], list[str]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    tables = make_tables(tmp_path_factory.mktemp("tables"))
    places = {"originals": tables.originals, "avatars": tables.avatars, "failing": FAILING}
    dags = {"nightly.py": NIGHTLY.format(**places), "release.py": RELEASE.format(**places)}
    with (
        mail_server() as (mails, connection),
        statsd_server() as (gauges, metrics),
        live_airflow(
            tmp_path_factory.mktemp("airflow") / "home",
            dags,
            readers={"statistician": ("nightly",), "stranger": ("release",)},
            environment={"AIRFLOW_CONN_SMTP_DEFAULT": connection, **metrics},
        ) as airflow,
    ):
        for dag_id in ("nightly", "release"):
            airflow.unpause(dag_id)
        failed, state = airflow.run("nightly")
        assert state == "failed"
        after_failure = list(mails), events(airflow), releases(airflow)
        passed, state = airflow.run("nightly", threshold=PASSING)
        assert state == "success"
        yield Runs(
            airflow, failed, passed, str(tables.avatars), after_failure[0], mails, *after_failure[1:], gauges
        )


def events(airflow: Airflow) -> list[dict[str, Any]]:
    return list(airflow.ask("/api/v2/assets/events?source_dag_id=nightly")["asset_events"])


def releases(airflow: Airflow) -> list[dict[str, Any]]:
    return list(airflow.ask("/api/v2/dags/release/dagRuns")["dag_runs"])


def test_a_failing_gate_sends_one_mail_and_updates_no_asset(runs: Runs) -> None:
    (mail,) = runs.mails_after_failure
    assert mail["To"] == "officer@example.org"
    assert mail["Subject"].startswith("Local Cloaking: below the threshold (patients, ")
    assert "Local Cloaking 4 is below the threshold 50" in mail.get_body(("html",)).get_content()
    assert runs.events_after_failure == []
    assert runs.releases_after_failure == []
    assert runs.airflow.result("nightly", runs.failed, "gate.check")["verdict"] == "below_threshold"


def test_the_release_is_started_by_the_pass_and_by_nothing_else(runs: Runs) -> None:
    (release,) = runs.airflow.wait("run of the release", lambda: releases(runs.airflow))
    assert runs.airflow.ended("release", release["dag_run_id"]) == "success"
    assert runs.airflow.result("release", release["dag_run_id"], "hand_over") == [runs.avatars]
    (event,) = events(runs.airflow)
    verdict = runs.airflow.result("nightly", runs.passed, "gate.check")
    assert event["source_run_id"] == runs.passed
    for name in ("verdict", "local_cloaking", "threshold", "record", "record_sha256"):
        assert event["extra"][name] == verdict[name], name
    assert len(releases(runs.airflow)) == 1
    assert len(runs.mails) == 1  # a pass without a warning tells nobody


def test_the_mails_link_leads_from_the_login_to_the_report(runs: Runs, browser: Browser) -> None:
    airflow = runs.airflow
    page = browser.context.new_page()
    page.set_default_timeout(90_000)
    page.set_viewport_size({"width": 1280, "height": 800})
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))

    (link,) = [
        line.split('"')[1]
        for line in runs.mails[0].get_body(("html",)).get_content().split("<a href=")
        if "/local-cloaking/report" in line.split(">")[0]
    ]
    page.goto(link.replace("&amp;", "&"))
    assert page.locator("h1").text_content() == "Not logged in"
    page.get_by_role("link", name="Log in").click()
    page.locator("[name=username]").fill("statistician")
    page.locator("[name=password]").fill(airflow.passwords["statistician"])
    page.locator("[type=submit]").click()
    page.wait_for_url("**/local-cloaking/report?**")
    complaints.clear()  # what Airflow's own page of the login had to complain of
    report = page.frame_locator("iframe[title='Report']")
    assert report.locator(".verdict h2").text_content().strip() == "Below the threshold"
    assert page.locator("main").text_content().count(runs.failed) == 1

    # The page of all verdicts: filtered down to the failed one, and by its link to the report.
    page.goto(f"{airflow.address}/local-cloaking/")
    rows = page.locator("#verdicts ~ .wide tbody tr")
    assert rows.count() == 2
    page.locator("select[name=verdict]").select_option("below_threshold")
    page.get_by_role("button", name="Filter").click()
    page.wait_for_url("**verdict=below_threshold**")
    assert rows.count() == 1
    page.locator("a.report").click()
    report = page.frame_locator("iframe[title='Report']")
    assert report.locator(".verdict h2").text_content().strip() == "Below the threshold"

    assert complaints == []
    page.close()


def test_task_navigation_and_tabs_lead_to_the_report(runs: Runs, browser: Browser) -> None:
    airflow, run = runs.airflow, runs.failed
    links = airflow.ask(f"{airflow.run_path('nightly', run)}/taskInstances/gate.check/links")["extra_links"]
    assert set(links) == {"Report", "Record"}
    browser.context.clear_cookies()
    browser.context.add_cookies([{"name": "_token", "value": airflow.token("admin"), "url": airflow.address}])
    page = browser.context.new_page()
    page.set_default_timeout(90_000)
    page.set_viewport_size({"width": 1280, "height": 800})

    # The button on the task, though the task failed.
    page.goto(f"{airflow.address}/dags/nightly/runs/{run}/tasks/gate.check/details")
    page.get_by_role("link", name="Report", exact=True).click()
    report = page.frame_locator("iframe[title='Report']")
    assert report.locator(".verdict h2").text_content().strip() == "Below the threshold"

    for where, verdicts in (("plugin/local-cloaking", 2), ("dags/nightly/plugin/local-cloaking-dag", 2),
                            (f"dags/nightly/runs/{run}/plugin/local-cloaking-run", 1)):  # fmt: skip
        page.goto(f"{airflow.address}/{where}")
        frame = page.frame_locator("iframe[title='Local Cloaking']")
        frame.locator("#verdicts ~ .wide .badge").first.wait_for()
        assert frame.locator("#verdicts ~ .wide tbody tr").count() == verdicts
        frame.locator("a.report").last.click()
        inner = frame.frame_locator("iframe[title='Report']")
        assert inner.locator(".verdict h2").text_content().strip() == "Below the threshold"
    if pictures := os.environ.get("LOCAL_CLOAKING_PICTURES"):
        page.goto(f"{airflow.address}/plugin/local-cloaking")
        page.frame_locator("iframe[title='Local Cloaking']").locator("#verdicts").wait_for()
        page.screenshot(path=Path(pictures) / "page.png")
    page.close()


def test_a_user_without_rights_on_the_dag_sees_nothing_of_it(runs: Runs, browser: Browser) -> None:
    airflow = runs.airflow
    query = (
        f"?dag_id=nightly&run_id={runs.failed.replace('+', '%2B')}&task_id=gate.check&map_index=-1&try_number=1"
    )
    for route in ("report", "report.html", "record.json"):
        path = f"/local-cloaking/{route}{query}"
        assert (airflow.status(path, "statistician"), airflow.status(path, "stranger")) == (200, 404), route
    browser.context.clear_cookies()
    browser.context.add_cookies([{"name": "_token", "value": airflow.token("stranger"), "url": airflow.address}])
    page = browser.context.new_page()
    page.goto(f"{airflow.address}/local-cloaking/")
    shown = page.content()
    assert "Data sets and their verdicts" in shown
    assert "nightly" not in shown
    assert "patients" not in shown
    page.goto(f"{airflow.address}/local-cloaking/?dag_id=nightly")
    assert "patients" not in page.content()
    page.close()


def test_the_gauges_of_both_gates_reach_statsd(runs: Runs) -> None:
    # The last test: the receiver takes in no more afterwards.
    thresholds = [line.split(":")[1] for line in runs.gauges() if ".threshold," in line]
    assert thresholds == ["50.0|g", "3.0|g"]
    medians = [line for line in runs.gauges() if line.startswith("airflow.local_cloaking.median,")]
    assert medians == ["airflow.local_cloaking.median,dag_id=nightly,data_set=patients:4.0|g"] * 2
