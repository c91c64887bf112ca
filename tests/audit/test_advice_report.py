"""The page on the values of k says what was tried, and nothing of anyone."""

from __future__ import annotations

import copy
import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import pytest

from local_cloaking import InputError, advise
from local_cloaking.audit.advice import advice_entries, read_advice
from local_cloaking.audit.advice_report import draw_advice
from local_cloaking.audit.figures import Course, draw_course
from local_cloaking.audit.languages import language_of

HOSTILE = '<script>alert(1)</script> & "quotes" {{ 7 * 7 }}'


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, 3)), columns=list("abc"))
    context = {"advised_at": "2026-11-30T08:09:05+01:00", "data_set": "ACTG 175"}
    return advice_entries(advise(frame, threshold=6, margin=0.5, ncp=2, seeds=[3, 4]), context)


def none(entries: dict[str, Any]) -> dict[str, Any]:
    """The same where the pairs could not be relied on."""
    changed = copy.deepcopy(entries)
    changed["k"], changed["reason"] = None, "no k tried up to 36 could be assessed"
    changed["warnings"] = ["the values of k beside 9 were not all tried: a smaller one may reach it, too"]
    for one in changed["tried"]:
        for part in (one, *one["trials"]):
            part.update(local_cloaking=None, hidden_rate=None, reaches=False, reason="shuffled")
    return changed


class Rows(HTMLParser):
    """The cells of the table of values tried."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._cell = False
        self.feed(page[page.index('<caption id="tried">') :].split("</table>")[0])

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag == "tr":
            self.rows.append([])
        self._cell = tag in ("td", "th")
        if self._cell:
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self._cell and self.rows:
            self.rows[-1][-1] += data


def test_the_schema_describes_every_entry_and_is_kept(found: dict[str, Any]) -> None:
    schema = json.loads((files("local_cloaking.audit") / "advice.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    assert [name for name, entry in schema["properties"].items() if not entry.get("description")] == []
    for entries in (found, none(found)):
        assert read_advice(json.dumps(entries).encode()) == entries


def test_what_is_not_such_a_file_is_refused(found: dict[str, Any]) -> None:
    damaged = [
        b"",
        b"{",
        b"[]",
        json.dumps({**found, "k": "9"}).encode(),
        json.dumps({**found, "more": 1}).encode(),
    ]
    for content in damaged:
        with pytest.raises(InputError):
            read_advice(content)
    for entries in ({}, {**found, "schema_version": 2}, {**found, "tried": [{}]}, {**found, "threshold": "x"}):
        with pytest.raises(InputError):
            draw_advice(entries)


def test_the_table_has_each_k_with_its_figures(found: dict[str, Any]) -> None:
    rows = Rows(draw_advice(found).decode()).rows[1:]
    assert [int(row[0]) for row in rows] == [one["k"] for one in found["tried"]]
    for row, one in zip(rows, found["tried"], strict=True):
        assert float(row[1]) == one["local_cloaking"]
        assert [float(value) for value in row[2].split("·")] == [t["local_cloaking"] for t in one["trials"]]
        assert row[8].strip() == ("yes" if one["reaches"] else "no")
        assert float(row[7]) == pytest.approx(one["moved"], abs=5e-4)


def test_first_comes_the_k_and_what_it_rests_on(found: dict[str, Any]) -> None:
    page = draw_advice(found).decode()
    assert f"k = {found['k']} reaches the threshold" in page
    assert "every seed reaches 6.5" in page
    assert "30 November 2026, 08:09:05 +01:00" in page
    assert page.count("<svg role=") == 3
    assert 'class="verdict passed"' in page


@pytest.mark.parametrize("language", ["en", "fr"])
def test_without_any_figure_the_page_is_drawn_too(found: dict[str, Any], language: str) -> None:
    page = draw_advice(none(found), language=language).decode()
    assert 'class="verdict below_threshold"' in page
    assert page.count("<svg role=") == 3
    assert {row[8].strip() for row in Rows(page).rows[1:]} == {
        {"en": "not assessable", "fr": "non évaluable"}[language]
    }


def test_in_french_nothing_stays_english(found: dict[str, Any]) -> None:
    for entries in (found, none(found)):
        page = draw_advice(entries, language="fr").decode()
        body = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
        assert not re.findall(r"\b(?:the|which|seed|tried|reaches|means|moved)\b", re.sub("<[^>]*>", " ", body))


def test_names_are_shown_as_text_and_nothing_is_fetched(found: dict[str, Any]) -> None:
    page = draw_advice({**found, "data_set": HOSTILE, "warnings": [HOSTILE]}).decode()
    assert "<script" not in page
    assert "{{ 7 * 7 }}" in page
    assert not re.findall(r"(?:src|href)=\"(?!data:,|#)", page.replace("xlink:href", "href"))


def test_same_entries_same_bytes(found: dict[str, Any]) -> None:
    assert draw_advice(found) == draw_advice(found)


def test_seeds_without_a_figure_leave_a_gap_in_the_line() -> None:
    course = Course("x", "x", [(5, [1.0, None]), (10, [3.0, 2.0]), (20, [None, None])], min)
    assert course.counting == [(10, 2.0)]
    drawing = draw_course(course, None, "a < b", language_of(None))
    assert ET.fromstring(drawing).attrib["aria-label"] == "a < b"
