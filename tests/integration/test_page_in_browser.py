"""The page in a real browser: by itself, and framed by Airflow's own interface."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("airflow", reason="apache-airflow is not installed (extra `airflow`)")

from tests.browser import Browser, Shown, browser
from tests.page import OPEN, SECRET, Served, file_verdict, know_dags, listening, serving
from tests.records import HOSTILE

__all__ = ["browser"]

pytestmark = [pytest.mark.integration, pytest.mark.stack]

PATIENTS = {"data_set": "patients", "dag_id": OPEN}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("store")
    for number in range(8):
        file_verdict(store, number, local_cloaking=None if number == 3 else float(number + 2))
        file_verdict(store, 10 + number, data_set="visits", warning=number == 7)
    file_verdict(store, 20, run_id="manual__20", try_number=1)
    file_verdict(store, 21, run_id="manual__20", try_number=2)
    file_verdict(store, 30, dag_id=SECRET, data_set="secret patients")
    for number, text in enumerate(HOSTILE, start=40):
        file_verdict(store, number, run_id=text, task_id=text, data_set=text)
    return store


@pytest.fixture(scope="module")
def served(airflow_home: Path, store: Path) -> Iterator[Served]:
    know_dags(OPEN, SECRET)
    with pytest.MonkeyPatch.context() as patch, serving(airflow_home, store, patch) as running:
        yield running


@pytest.fixture(scope="module")
def address(served: Served) -> Iterator[str]:
    with listening(served) as where:
        yield where


@contextmanager
def opened(
    browser: Browser,
    address: str,
    served: Served,
    path: str,
    *,
    width: int = 1280,
    height: int = 800,
    **media: str,
) -> Iterator[Shown]:
    """Open a path of the server, logged in as somebody who may read one DAG."""
    browser.context.add_cookies([{"name": "_token", "value": served.token("viewer"), "url": address}])
    page = browser.context.new_page()
    shown = Shown(page)
    page.on("request", lambda request: shown.requests.append(request.url))
    page.on("console", lambda message: shown.complaints.append(message.text))
    page.on("pageerror", lambda error: shown.complaints.append(str(error)))
    page.on("dialog", lambda dialog: (shown.complaints.append(dialog.message), dialog.dismiss()))
    try:
        page.set_viewport_size({"width": width, "height": height})
        if media:
            page.emulate_media(**media)
        page.goto(f"{address}{path}")
        yield shown
    finally:
        page.close()


ROUTES = {
    "all": "/local-cloaking/?x=1",
    "one": f"/local-cloaking/?dag_id={OPEN}&data_set=patients",
    "report": f"/local-cloaking/report?dag_id={OPEN}&run_id=manual__20&task_id=gate.check",
}


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("route", ROUTES)
def test_page_is_whole_quiet_and_accessible(
    browser: Browser, address: str, served: Served, route: str, scheme: str, width: int, height: int
) -> None:
    language = "fr" if (scheme, width) in (("dark", 1280), ("light", 390)) else "en"
    path = f"{ROUTES[route]}&lang={language}"
    with opened(browser, address, served, path, width=width, height=height, color_scheme=scheme) as shown:
        shown.page.wait_for_load_state("networkidle")
        assert shown.page.locator("html").get_attribute("lang") == language
        assert all(asked.startswith((address, "data:")) for asked in shown.requests)
        assert shown.complaints == []
        assert not shown.overflows()
        assert shown.grave_findings() == []
        ground = shown.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 25, 31)"}[scheme]


def test_a_report_is_one_click_away_and_its_other_tries_another(
    browser: Browser, address: str, served: Served
) -> None:
    with opened(browser, address, served, f"/local-cloaking/?dag_id={OPEN}&run_id=manual__20") as shown:
        shown.page.locator("a.report").first.click()
        assert shown.page.frame_locator("iframe").locator("h1").text_content() == "Local Cloaking: audit report"
        tries = shown.page.locator(".tries a")
        assert [one.text_content() for one in tries.all()] == ["try 2", "try 1"]
        assert tries.first.get_attribute("aria-current") == "page"
        tries.nth(1).click()
        assert tries.nth(1).get_attribute("aria-current") == "page"
        assert shown.complaints == []


def test_filters_by_the_keyboard_alone(browser: Browser, address: str, served: Served) -> None:
    with opened(browser, address, served, "/local-cloaking/?lang=en") as shown:
        page = shown.page
        for _ in range(200):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.name") == "data_set":
                break
        page.keyboard.type("visits")
        page.keyboard.press("Tab")
        page.keyboard.type("Below")
        while page.evaluate("document.activeElement.tagName") != "BUTTON":
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_url("**data_set=visits**")
        assert page.locator("#verdicts ~ .wide tbody tr").count() == 3
        assert page.locator("#verdicts ~ .wide tbody .badge").first.text_content() == "Below the threshold"


def test_the_course_leads_to_its_reports(browser: Browser, address: str, served: Served) -> None:
    with opened(browser, address, served, ROUTES["one"]) as shown:
        marks = shown.page.locator("svg.course a")
        assert marks.count() == 10
        marks.first.focus()
        shown.page.keyboard.press("Enter")
        shown.page.wait_for_url("**/report?**")
        assert "manual__0" in (shown.page.locator("main").text_content() or "")


def test_hostile_names_are_text(browser: Browser, address: str, served: Served) -> None:
    with opened(browser, address, served, "/local-cloaking/?lang=en", width=390) as shown:
        assert shown.page.locator("script").count() == 1
        assert shown.page.locator("[onmouseover], main b").count() == 0
        told = [cell.text_content() for cell in shown.page.locator(".run > bdi").all()]
        assert set(HOSTILE) <= set(told)
        assert not shown.overflows()
        assert shown.complaints == []


# Framed by Airflow ---------------------------------------------------------------------------------------------


def framed(shown: Shown) -> Any:
    frame = shown.page.frame_locator("iframe[title='Local Cloaking']")
    frame.locator("h1").wait_for(timeout=60_000)
    return frame


def test_in_airflows_navigation(browser: Browser, address: str, served: Served) -> None:
    with opened(browser, address, served, "/plugin/local-cloaking") as shown:
        frame = framed(shown)
        assert frame.locator("#verdicts ~ .wide tbody tr").count() > 5
        assert "secret" not in (frame.locator("main").text_content() or "")
        # Airflow is around it already.
        assert [part.is_visible() for part in frame.locator(".outside").all()] == [False, False]
        frame.locator("a.report").first.click()
        inner = frame.frame_locator("iframe").locator("h1")
        assert inner.text_content() == "Local Cloaking: audit report"


def test_colours_and_language_are_airflows(browser: Browser, address: str, served: Served) -> None:
    with opened(browser, address, served, "/plugin/local-cloaking", color_scheme="light") as shown:
        for theme, language in (("dark", "fr"), ("light", "en"), ("dark", "en")):
            shown.page.evaluate(
                f"localStorage.setItem('theme', '{theme}'); localStorage.setItem('i18nextLng', '{language}')"
            )
            shown.page.reload()
            frame = framed(shown)
            frame.locator(f"html[data-theme={theme}][lang={language}]").wait_for(state="attached", timeout=30_000)
            assert frame.locator("body").evaluate("body => getComputedStyle(body).backgroundColor") == (
                "rgb(20, 25, 31)" if theme == "dark" else "rgb(255, 255, 255)"
            )
        shown.page.evaluate("localStorage.clear()")
