"""Reports in a real browser: on a screen, on a telephone, on paper, and to a screen reader."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.browser import Browser, browser
from tests.records import HOSTILE, below_threshold, hostile, record_of, shuffled, without_threshold

from local_cloaking import advise
from local_cloaking.audit.advice import advice_entries
from local_cloaking.audit.advice_report import draw_advice
from local_cloaking.audit.report import draw_report

__all__ = ["browser"]

pytestmark = [pytest.mark.integration, pytest.mark.stack]

RECORDS: dict[str, Callable[[], dict[str, Any]]] = {
    "passed": record_of,
    "below": below_threshold,
    "shuffled": shuffled,
    "without threshold": without_threshold,
    "hostile": hostile,
}
SCREENS = [(1280, 800), (390, 844)]


def written(folder: Path, record: dict[str, Any], language: str = "en") -> Path:
    file = folder / "report.html"
    file.write_bytes(draw_report(record, language=language, sha256="ab" * 32))
    return file


@pytest.mark.parametrize(("language", "width", "height"), [("en", *SCREENS[0]), ("fr", *SCREENS[1])])
@pytest.mark.parametrize("name", RECORDS)
def test_page_is_whole_quiet_and_accessible(
    browser: Browser, tmp_path: Path, name: str, language: str, width: int, height: int
) -> None:
    file = written(tmp_path, RECORDS[name](), language)
    with browser.showing(file, width, height) as shown:
        assert shown.requests == [file.as_uri()]
        assert shown.complaints == []
        assert not shown.overflows()
        assert shown.grave_findings() == []


@pytest.mark.parametrize(("width", "height"), SCREENS)
@pytest.mark.parametrize("language", ["en", "fr"])
def test_page_of_the_values_of_k_is_whole_quiet_and_accessible(
    browser: Browser, tmp_path: Path, language: str, width: int, height: int
) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(120, 3)), columns=list("abc"))
    entries = advice_entries(advise(table, threshold=6, ncp=2, seeds=[1, 2]), {"data_set": HOSTILE[0]})
    file = tmp_path / "advice.html"
    file.write_bytes(draw_advice(entries, language=language))
    with browser.showing(file, width, height) as shown:
        assert shown.requests == [file.as_uri()]
        assert shown.complaints == []
        assert not shown.overflows()
        assert shown.grave_findings() == []
        assert shown.bottom_of(".data-set, .verdict") <= height


@pytest.mark.parametrize(("width", "height"), SCREENS)
@pytest.mark.parametrize("language", ["en", "fr"])
@pytest.mark.parametrize("name", [name for name in RECORDS if name != "hostile"])
def test_first_screen_holds_the_verdict_and_what_it_means(
    browser: Browser, tmp_path: Path, name: str, language: str, width: int, height: int
) -> None:
    with browser.showing(written(tmp_path, RECORDS[name](), language), width, height) as shown:
        # With its reason, its remedy, the figures, who set the threshold, and when.
        assert shown.bottom_of(".data-set, .verdict") <= height


@pytest.mark.parametrize(("width", "height"), SCREENS)
def test_hostile_names_are_text(browser: Browser, tmp_path: Path, width: int, height: int) -> None:
    with browser.showing(written(tmp_path, hostile()), width, height) as shown:
        assert shown.page.locator("script, b, [onmouseover]").count() == 0
        names = [cell.text_content() for cell in shown.page.locator("[aria-labelledby=columns] tbody th").all()]
        assert names == list(HOSTILE)
        assert shown.bottom_of(".verdict h2, .figures div:first-child") <= height


def test_wide_tables_scroll_by_the_keyboard(browser: Browser, tmp_path: Path) -> None:
    with browser.showing(written(tmp_path, hostile()), 390, 844) as shown:
        region = shown.page.locator("[aria-labelledby=columns]")
        region.focus()
        assert region.evaluate(
            "found => found.scrollWidth > found.clientWidth && document.activeElement === found"
        )


def test_page_that_has_a_fault_is_found_out(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "faulty.html"
    file.write_text(
        "<!DOCTYPE html><title>x</title><p style='width: 9999px; color: #ccc'>pale</p>"
        "<img src='https://nowhere.invalid/x.png'><script>console.error('no')</script>"
    )
    with browser.showing(file, 390, 844) as shown:
        assert shown.overflows()
        assert len(shown.requests) == 2
        assert "no" in shown.complaints
        assert {finding.split(":")[0] for finding in shown.grave_findings()} >= {"color-contrast", "image-alt"}


@pytest.mark.parametrize("language", ["en", "fr"])
@pytest.mark.parametrize("name", RECORDS)
def test_report_is_printed_on_a4(browser: Browser, tmp_path: Path, name: str, language: str) -> None:
    with browser.showing(written(tmp_path, RECORDS[name](), language), 1280, 800) as shown:
        paper = shown.printed()
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", paper)
    assert {(round(float(width)), round(float(height))) for width, height in boxes} == {(595, 842)}
    assert 3 <= len(re.findall(rb"/Type /Page\b", paper)) <= 10


def test_nothing_that_fits_on_a_page_is_cut_when_printed(browser: Browser, tmp_path: Path) -> None:
    with browser.showing(written(tmp_path, below_threshold()), 1280, 800) as shown:
        shown.page.emulate_media(media="print")
        for selector in (".wide", "figure", "tr", ".verdict", "li"):
            kept = shown.page.locator(selector).evaluate_all(
                "all => all.map(one => getComputedStyle(one).breakInside)"
            )
            assert set(kept) == {"avoid"}, selector
        repeated = shown.page.locator("thead").evaluate_all("all => all.map(one => getComputedStyle(one).display)")
        assert set(repeated) == {"table-header-group"}
        # On paper nobody scrolls: each table is as narrow as the page, 178 mm.
        shown.page.set_viewport_size({"width": 672, "height": 900})
        cut = shown.page.locator(".wide").evaluate_all(
            "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).length"
        )
        assert cut == 0
