"""The report says what the record says, and nothing of anyone."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.records import (
    HOSTILE,
    RUN,
    below_threshold,
    column,
    first_version,
    group,
    hostile,
    record_of,
    shuffled,
    without_threshold,
)

from local_cloaking.audit.figures import bar_edges, draw_histogram
from local_cloaking.audit.languages import language_of
from local_cloaking.audit.report import draw_report
from local_cloaking.audit.statistics import Distribution
from local_cloaking.errors import InputError

RECORDS: dict[str, Callable[[], dict[str, Any]]] = {
    "passed": record_of,
    "below": below_threshold,
    "shuffled": shuffled,
    "without threshold": without_threshold,
    "hostile": hostile,
    "version 1": first_version,
}
VOID = {"meta", "link", "br", "img"}


@dataclass
class Element:
    """An element of the page, and what is in it."""

    tag: str
    attributes: dict[str, str | None]
    inside: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """What a reader sees, with white space as a browser has it."""
        whole = "".join(part if isinstance(part, str) else part.text for part in self.inside if not is_style(part))
        return re.sub(r"[ \n]+", " ", whole).strip()

    def all(self, **wanted: str) -> list[Element]:
        """The elements within, in order, with these attributes (``tag`` for the tag)."""
        found = []
        for part in self.inside:
            if isinstance(part, Element):
                has = {**part.attributes, "tag": part.tag}
                if all(has.get(name.strip("_").replace("_", "-")) == value for name, value in wanted.items()):
                    found.append(part)
                found += part.all(**wanted)
        return found

    def only(self, **wanted: str) -> Element:
        found = self.all(**wanted)
        assert len(found) == 1, (wanted, len(found))
        return found[0]


def is_style(part: Element | str) -> bool:
    return isinstance(part, Element) and part.tag in ("style", "title")


class Reader(HTMLParser):
    """Reads a page; one that is not well-formed fails."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open = [Element("page", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs))
        assert len(attrs) == len(element.attributes), "an attribute stands twice"
        self.open[-1].inside.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].inside.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        self.open[-1].inside.append(data)


def page_of(record: dict[str, Any], **options: Any) -> Element:
    reader = Reader()
    reader.feed(draw_report(record, **options).decode())
    reader.close()
    assert len(reader.open) == 1
    return reader.open[0]


def rows_of(page: Element, table: str) -> dict[str, list[str]]:
    """The rows of a table by their header, under the name of its caption."""
    region = page.only(tag="div", aria_labelledby=table)
    rows = region.only(tag="tbody").all(tag="tr")
    return {row.all(tag="th")[0].text: [cell.text for cell in row.all(tag="td")] for row in rows}


def verdict_of(page: Element) -> Element:
    return page.only(tag="section", aria_labelledby="verdict")


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ").replace("\N{NARROW NO-BREAK SPACE}", " ")


@pytest.mark.parametrize("name", [name for name in RECORDS if name != "version 1"])
def test_records_of_these_tests_keep_to_the_schema(name: str) -> None:
    schema = json.loads((files("local_cloaking.audit") / "record.schema.json").read_text())
    jsonschema.validate(RECORDS[name](), schema)


# The first screen ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("passed", "passed", "Passed"),
        ("version 1", "passed", "Passed"),
        ("below", "below_threshold", "Below the threshold"),
        ("shuffled", "not_assessable", "Not assessable"),
        ("without threshold", "none", "No verdict: no threshold was given"),
    ],
)
def test_verdict_is_told_in_words_and_by_a_sign(name: str, kind: str, words: str) -> None:
    page = page_of(RECORDS[name]())
    verdict = verdict_of(page)
    assert verdict.attributes["class"] == f"verdict {kind}"
    assert verdict.only(tag="h2").text == words
    assert words in page.only(tag="title").inside[0]


def test_each_verdict_has_a_sign_of_its_own() -> None:
    pages = [page_of(make()) for make in (record_of, below_threshold, shuffled, without_threshold)]
    signs = {verdict_of(page).only(tag="svg").only(tag="path").attributes["d"] for page in pages}
    assert len(signs) == 4


def test_verdict_stands_with_what_it_rests_on() -> None:
    facts = verdict_of(page_of(below_threshold(threshold_set_by="the committee"))).only(tag="dl", class_="figures")
    terms = [term.text for term in facts.all(tag="dt")]
    assert dict(zip(terms, [value.text for value in facts.all(tag="dd")], strict=True)) == {
        "Local Cloaking": "10",
        "Threshold": "15",
        "Individuals": "2,139",
        "Threshold set by": "the committee",
        "Judged": "30 November 2026, 08:09:05 +01:00",
    }


def test_without_verdict_the_date_is_that_of_the_measure() -> None:
    page = page_of(without_threshold(measured_at="2026-05-04T10:00:00+02:00"))
    assert "Measured4 May 2026, 10:00:00 +02:00" in verdict_of(page).text


def test_data_set_is_named_or_said_to_have_no_name() -> None:
    assert page_of(record_of(data_set="trial 7")).only(tag="p", class_="data-set").text == "trial 7"
    assert "without a name" in page_of(without_threshold()).only(tag="p", class_="data-set").text


@pytest.mark.parametrize(
    ("value", "threshold", "sentence"),
    [
        (10.0, 5.0, "there are, in the median, 10 other avatars closer to the original; the threshold is 5."),
        (1.0, 5.0, "there is, in the median, 1 other avatar closer to the original; the threshold is 5."),
        (1.5, 5.0, "there are, in the median, 1.5 other avatars closer to the original; the threshold is 5."),
        (0.0, 5.0, "there are, in the median, 0 other avatars closer to the original; the threshold is 5."),
        # What decides is never rounded away.
        (5.0, 5.001, "there are, in the median, 5 other avatars closer to the original; the threshold is 5.001."),
        (5.0, None, "there are, in the median, 5 other avatars closer to the original; no threshold was given."),
    ],
)
def test_one_sentence_says_what_that_means(value: float, threshold: float | None, sentence: str) -> None:
    page = page_of(record_of(local_cloaking=value, strict_median=value, threshold=threshold))
    assert page.only(tag="p", class_="meaning").text == f"Between an original and its avatar {sentence}"


def test_avatars_that_are_only_as_close_are_not_called_closer() -> None:
    page = page_of(record_of(local_cloaking=10.0, strict_median=0.0))
    assert page.only(tag="p", class_="meaning").text == (
        "Other avatars that are as close to an original as its own, or closer: 10 in the median (strictly closer: "
        "0); the threshold is 5."
    )


def test_a_measure_that_cannot_be_relied_on_is_not_assessable_whatever_the_threshold() -> None:
    page = page_of(shuffled(verdict=None, threshold=None, expectations=[], remedy=""))
    assert verdict_of(page).only(tag="h2").text == "Not assessable"


def test_what_a_figure_that_is_not_told_would_show_is_not_shown_as_met_either() -> None:
    page = page_of(shuffled(expectations=record_of()["expectations"]))
    assert "not relied on" in page.text


@pytest.mark.parametrize(
    "entries",
    [{"threshold": 50.0}, {"local_cloaking": 60.0}, {"unreliable_because": "a reason"}, {"local_cloaking": None}],
)
def test_a_pass_that_the_figures_do_not_bear_is_told(entries: dict[str, Any]) -> None:
    assert "This record contradicts itself" in page_of(record_of(**entries)).text


def test_whoever_did_not_pass_reads_why_and_what_to_do_at_once() -> None:
    why = verdict_of(page_of(below_threshold())).only(tag="dl", class_="why").text
    assert "Local Cloaking 10 is below the threshold 15." in why
    assert "raise k, the number of neighbours that an avatar draws on (now 20), and avatarise again." in why
    assert verdict_of(page_of(record_of())).all(tag="dl", class_="why") == []


def test_measure_that_cannot_be_relied_on_says_so_without_a_threshold_too() -> None:
    record = shuffled(verdict=None, threshold=None, reason=None, remedy="")
    assert "look shuffled" in verdict_of(page_of(record)).text


def test_warnings_follow_the_verdict() -> None:
    page = page_of(below_threshold(warnings=["one thing", "another"]))
    assert [item.text for item in page.only(tag="section", aria_labelledby="warnings").all(tag="li")] == [
        "one thing",
        "another",
    ]
    assert "None." in page_of(record_of(warnings=[])).only(tag="section", aria_labelledby="warnings").text


def test_record_changed_by_hand_is_told_before_anything_else() -> None:
    changed = {**below_threshold(), "verdict": "passed"}
    text = page_of(changed).text
    assert text.index("This record contradicts itself") < text.index("Passed")
    assert "This record contradicts itself" not in page_of(below_threshold()).text


# The distribution ------------------------------------------------------------------------------------------------


def test_tail_says_what_the_counts_say() -> None:
    record = below_threshold()
    counts = np.repeat(record["distribution"]["count"], record["distribution"]["individuals"])
    tail = {name: plain(cells[0]) for name, cells in rows_of(page_of(record), "tail").items()}
    assert tail["Local Cloaking: median of the counts"] == f"{np.median(counts):g}"
    assert tail["5th percentile"] == f"{np.percentile(counts, 5, method='inverted_cdf'):g}"
    assert tail["10th percentile"] == f"{np.percentile(counts, 10, method='inverted_cdf'):g}"
    shares = {
        "Individuals with count 0: no other avatar is as close as their own": 100 * np.mean(counts == 0),
        "Individuals whose count is below the threshold": 100 * np.mean(counts < 15),
        "Hidden rate": record["hidden_rate"],
    }
    assert {name: tail[name] for name in shares} == {
        name: f"{round(value, 2):g} %" for name, value in shares.items()
    }
    interval = Distribution.of(record["distribution"]).median_interval()
    assert interval is not None
    assert tail["Confidence interval of the median"] == f"{interval.lower} to {interval.upper}"


def test_interval_comes_with_its_level_and_what_it_does_not_cover() -> None:
    text = plain(page_of(record_of()).text)
    assert re.search(r"Its level is 95\.\d\d? % or more", text)
    assert "It assumes independent counts" in text
    assert "covers neither the population" in text
    few = record_of(n=5, distribution={"count": [1, 9], "individuals": [2, 3]}, local_cloaking=9.0)
    page = page_of(few)
    assert rows_of(page, "tail")["Confidence interval of the median"] == ["none: fewer than 6 individuals"]
    assert "It assumes independent counts" not in page.text


def test_strict_median_stands_beside_the_median() -> None:
    rows = rows_of(page_of(record_of(strict_median=7.5)), "tail")
    assert [cells for name, cells in rows.items() if name.startswith("Strict median")] == [["7.5"]]


def test_a_few_are_not_rounded_to_nobody_nor_nearly_all_to_everybody() -> None:
    few = {"count": [0, 9], "individuals": [1, 10**6 - 1]}
    page = page_of(record_of(n=10**6, distribution=few, local_cloaking=9.0, hidden_rate=99.9999))
    rows = {name: plain(cells[0]) for name, cells in rows_of(page, "tail").items()}
    assert rows["Individuals with count 0: no other avatar is as close as their own"] == "less than 0.01 %"
    assert rows["Hidden rate"] == "more than 99.99 %"


def test_without_threshold_nothing_is_said_to_be_below_it() -> None:
    page = page_of(without_threshold())
    assert not any("threshold" in name for name in rows_of(page, "tail"))
    assert "dashed line" not in page.text


@pytest.mark.parametrize("counted", [False, True])
def test_counts_of_pairs_that_cannot_be_relied_on_are_not_drawn(counted: bool) -> None:
    entries = {"distribution": record_of()["distribution"]} if counted else {}
    page = page_of(shuffled(**entries, ladder=record_of()["ladder"], groups=record_of()["groups"]))
    assert page.all(role="img") == []
    assert page.all(aria_labelledby="tail") == []
    assert "these cannot be relied on" in page.text
    assert "gender" not in page.only(tag="section", aria_labelledby="groups").text
    assert "not known" in verdict_of(page).text
    assert "a sample of 500 originals" in page.text


# Components and groups -------------------------------------------------------------------------------------------


def test_ladder_shows_each_number_of_components_and_marks_the_one_in_use() -> None:
    page = page_of(record_of())
    rows = rows_of(page, "ladder")
    assert list(rows) == ["1", "2", "3", "4", "5 (in use)", "6", "7", "8", "9", "10"]
    assert [rows[name] for name in ("1", "3", "4", "5 (in use)")] == [["61"], ["14.5"], ["not defined"], ["10"]]
    assert "fixed sample" not in page.text
    assert len(page.all(role="img")) == 3


def test_ladder_of_a_sample_says_so() -> None:
    page = page_of(record_of(ladder={**record_of()["ladder"], "individuals": 2000}))
    assert "a fixed sample of 2,000 originals" in page.text


@pytest.mark.parametrize("make", [first_version, lambda: record_of(ladder=None, groups=None, parameters=None)])
def test_record_without_ladder_and_groups_is_drawn(make: Callable[[], dict[str, Any]]) -> None:
    text = page_of(make()).text
    assert "holds no figures for other numbers of components" in text
    assert "No columns were named" in text


def test_ladder_without_any_figure_has_no_chart() -> None:
    rungs = [{"ncp": 1, "local_cloaking": None}]
    assert len(page_of(record_of(ladder={"individuals": 2139, "rungs": rungs})).all(role="img")) == 2


def test_groups_are_told_with_the_worst_one_and_shares_as_bounds() -> None:
    page = page_of(record_of())
    section = page.only(tag="section", aria_labelledby="groups")
    assert (
        "The lowest Local Cloaking of a group: 3.5 (arms: 0, missing, small groups together: 4)." in section.text
    )
    assert "That is below the threshold" in section.text
    regions = section.all(role="region")
    groups = [[plain(cell.text) for cell in row.all(tag="td")] for one in regions for row in one.all(tag="tr")[1:]]
    assert groups == [
        ["412", "9", "5 to 10 %"],
        ["412", "11", "5 to 10 %"],
        ["412", "3.5", "at most 7.5 %"],
        ["412", "12", "at least 95 %"],
    ]
    assert "Groups of fewer than 10 individuals" in section.text


def test_withheld_columns_are_named_with_the_reason() -> None:
    section = page_of(record_of()).only(tag="section", aria_labelledby="groups")
    assert "race withheld: together with what else is told here" in section.text
    assert "str2 withheld: no two groups of enough individuals" in section.text


def test_share_of_which_nothing_is_told_is_no_bound() -> None:
    groups = {
        "min_group_size": 10,
        "columns": [column("a", group(["x"], 9.0, 0.0, 100.0), group(["y"], 9.0, 0.0, 5.0))],
    }
    assert "not told" in page_of(record_of(groups=groups)).only(tag="section", aria_labelledby="groups").text


def test_worst_group_above_the_threshold_is_not_said_to_be_below_it() -> None:
    groups = {
        "min_group_size": 10,
        "columns": [column("a", group(["x"], 5.0, 0.0, 5.0), group(["y"], 9.0, 0.0, 5.0))],
    }
    assert "That is below" not in page_of(record_of(groups=groups)).text


# Method and provenance -------------------------------------------------------------------------------------------


def test_columns_stand_with_role_levels_and_what_was_filled() -> None:
    rows = {
        name: [plain(cell) for cell in cells] for name, cells in rows_of(page_of(record_of()), "columns").items()
    }
    assert list(rows) == [entry["name"] for entry in record_of()["columns"]]
    assert rows["cd496"] == ["number", "number", "–", "37.26 %", "0 %", "the originals' median"]
    assert rows["strat"][:3] == ["category", "number", "3"]


def test_settings_say_how_it_was_measured() -> None:
    settings = {name: cells[0] for name, cells in rows_of(page_of(record_of()), "settings").items()}
    assert settings["Components (ncp)"] == "5"
    assert settings["Neighbours k of the avatarisation"] == "20"
    assert settings["Columns left out"] == "pidnum"
    assert settings["Columns named as categories"] == "gender, race"
    assert "1e-12" in settings["Equal distances"]
    assert record_of()["tie_rule"]["text"] in settings.values()
    for package, version in record_of()["versions"].items():
        assert f"{package} {version}" in settings["Software"]


@pytest.mark.parametrize(
    ("pairing", "said"),
    [
        ("row order", "row by row, in the order of the tables"),
        ("key 'id'", "by the key 'id'"),
        ("pairing table ('a', 'b')", "by a pairing table, its columns ('a', 'b')"),
    ],
)
def test_pairing_is_told(pairing: str, said: str) -> None:
    page = page_of(record_of(pairing=pairing))
    assert rows_of(page, "settings")["How avatars and originals were paired"] == [said]


def test_explained_variance_adds_up() -> None:
    page = page_of(record_of(explained_variance=[0.5, 0.25, 0.125]))
    rows = {name: [plain(cell) for cell in cells] for name, cells in rows_of(page, "variance").items()}
    assert rows == {"1": ["50 %", "50 %"], "2": ["25 %", "75 %"], "3": ["12.5 %", "87.5 %"]}
    assert page_of(record_of(explained_variance=[])).all(aria_labelledby="variance") == []


def test_inputs_stand_with_size_hash_and_rows() -> None:
    rows = rows_of(page_of(record_of()), "inputs")
    for name, entry in record_of()["inputs"].items():
        cells = next(cells for title, cells in rows.items() if title.lower() == name)
        assert cells[0] == entry["name"]
        assert cells[1] == (f"{entry['rows']:,}" if "rows" in entry else "–")
        assert cells[3] == entry["sha256"]


def test_runs_stand_with_task_try_and_map_index() -> None:
    rows = rows_of(page_of(below_threshold()), "runs")
    assert rows["Measure"][1:] == [RUN["dag_id"], RUN["run_id"], "local_cloaking.measure", "3", "2"]
    assert rows["Verdict"][0] == "30 November 2026, 08:09:05 +01:00"
    assert rows["Verdict"][3] == "local_cloaking.check"
    assert rows_of(page_of(record_of(run=None, judged=None)), "runs")["Measure"][1:] == ["outside Airflow"]


def test_great_expectations_results_are_a_table() -> None:
    record = below_threshold()
    record["expectations"][3] = {**record["expectations"][3], "bounds": {"min_value": 15.0}, "success": False}
    rows = rows_of(page_of(record), "expectations")
    assert len(rows) == 4
    *fitting, median = rows.values()
    assert fitting[0] == ["2,139", "2,139", "yes"]
    assert fitting[2] == ["0 to 2,138", "0", "yes"]
    assert median == ["at least 15", "10", "no"]
    assert "nothing was counted" in page_of(shuffled()).text
    assert page_of(without_threshold()).all(aria_labelledby="expectations") == []


def test_digest_stands_there_and_the_hash_of_the_file_where_it_is_known() -> None:
    record = record_of()
    assert record["digest"] in rows_of(page_of(record), "record")["Its digest"]
    assert "SHA-256 of its file" not in rows_of(page_of(record), "record")
    assert rows_of(page_of(record, sha256="ab" * 32), "record")["SHA-256 of its file"] == ["ab" * 32]


def test_limits_name_the_three_criteria_and_the_remedy() -> None:
    limits = page_of(record_of()).only(tag="section", aria_labelledby="limits").text
    for words in ("Singling out", "Linkability", "Inference", "no proof of anonymity", "ncp", "density", "median"):
        assert words in limits
    assert "matches all originals and all avatars at once does better" in limits
    assert "(now 20)" in limits
    assert "was not told" in page_of(record_of(k=None)).only(tag="section", aria_labelledby="limits").text


# One file, text as text, fit for a screen reader -----------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "fr"])
@pytest.mark.parametrize("name", RECORDS)
def test_page_asks_for_nothing_and_runs_nothing(name: str, language: str) -> None:
    page = page_of(RECORDS[name](), language=language)
    assert page.only(tag="html").attributes["lang"] == language
    policy = page.only(http_equiv="Content-Security-Policy").attributes["content"]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    for element in page.all():
        assert element.tag not in ("script", "iframe", "object", "embed", "img", "a", "b", "form")
        for attribute, value in element.attributes.items():
            assert not attribute.startswith("on"), element
            if attribute in ("src", "href", "xlink:href"):
                assert str(value).startswith(("#", "data:,")), element
    styles = "".join(str(part) for element in page.all(tag="style") for part in element.inside)
    assert "url(" not in styles
    assert "@import" not in styles


@pytest.mark.parametrize("name", RECORDS)
def test_page_has_an_outline_and_its_tables_are_named(name: str) -> None:
    page = page_of(RECORDS[name]())
    levels = [int(element.tag[1]) for element in page.all() if re.fullmatch("h[1-6]", element.tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(then - one <= 1 for one, then in pairwise(levels))
    ids = [element.attributes["id"] for element in page.all() if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    referred = {
        element.attributes["aria-labelledby"] for element in page.all() if "aria-labelledby" in element.attributes
    }
    assert referred <= set(ids)
    for table in page.all(tag="table"):
        assert table.only(tag="caption").text
        assert all(cell.attributes.get("scope") in ("col", "row") for cell in table.all(tag="th"))
    for drawing in page.all(role="img"):
        assert len(drawing.attributes["aria-label"] or "") > 20
    uses = {str(element.attributes["xlink:href"])[1:] for element in page.all(tag="use")}
    assert uses <= set(ids)


def test_hostile_names_are_shown_as_they_are() -> None:
    page = page_of(hostile())
    region = page.only(tag="div", aria_labelledby="columns")
    names = [cell.only(tag="bdi") for cell in region.only(tag="tbody").all(tag="th")]
    assert [name.inside for name in names] == [[name] for name in HOSTILE]
    assert page.only(tag="p", class_="data-set").only(tag="bdi").inside == [f"{HOSTILE[0]} {HOSTILE[3]}"]


def test_lone_surrogate_does_not_stop_the_report() -> None:
    record = json.loads(json.dumps(record_of()))
    record["data_set"] = "\ud800"
    # Its digest cannot be computed: no file in UTF-8 holds such a name.
    assert b"This record contradicts itself" in draw_report(record)


@pytest.mark.parametrize("name", RECORDS)
def test_same_record_gives_the_same_bytes(name: str) -> None:
    assert draw_report(RECORDS[name]()) == draw_report(RECORDS[name]())


def test_french_report_is_french() -> None:
    page = page_of(below_threshold(hidden_rate=92.89), language="fr_FR")
    assert verdict_of(page).only(tag="h2").text == "Sous le seuil"
    text = page.text
    assert "92,89\N{NARROW NO-BREAK SPACE}%" in text
    assert "30 novembre 2026" in text
    assert "2\N{NARROW NO-BREAK SPACE}139" in text
    assert "Below the threshold" not in text


def test_language_without_a_catalogue_is_refused() -> None:
    with pytest.raises(InputError, match="language"):
        draw_report(record_of(), language="eo")


# What is no record -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("record", [{}, {"schema": "another"}, {**record_of(), "schema_version": 99}])
def test_what_is_no_record_is_refused(record: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="not a record"):
        draw_report(record)


@pytest.mark.parametrize("name", sorted(set(first_version()) - {"schema", "schema_version"}))
@pytest.mark.parametrize("value", [..., "x", [1]], ids=repr)
def test_damaged_record_is_drawn_or_refused_and_nothing_else(name: str, value: Any) -> None:
    record = {key: entry for key, entry in shuffled().items() if key != name}
    if value is not ...:
        record[name] = value
    if record == shuffled():
        return
    try:
        page = draw_report(record)
    except InputError:
        return
    assert b"This record contradicts itself" in page


@pytest.mark.parametrize(
    "distribution",
    [{}, {"count": [1]}, {"count": [2, 1], "individuals": [1, 1]}, {"count": [], "individuals": []}],
)
def test_distribution_that_is_none_is_refused(distribution: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="damaged"):
        draw_report(record_of(distribution=distribution))


# Figures ---------------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**8), st.one_of(st.none(), st.floats(0.01, 10**9)))
def test_each_count_has_one_bar_and_none_lies_on_both_sides_of_the_threshold(
    highest: int, threshold: float | None
) -> None:
    edges = bar_edges(highest, threshold)
    assert (edges[0], edges[-1]) == (0, highest + 1)
    assert (np.diff(edges) > 0).all()
    assert len(edges) < 90
    if threshold is not None and threshold <= highest:
        assert np.ceil(threshold) in edges


def test_bars_are_single_counts_first_and_then_widen() -> None:
    widths = np.diff(bar_edges(10**6, None))
    assert widths[:4].tolist() == [1, 1, 1, 1]
    assert (widths[6:-1] / (bar_edges(10**6, None)[6:-2] + 1) < 0.4).all()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 500), min_size=1, max_size=60), st.one_of(st.none(), st.integers(1, 20)))
def test_area_of_the_bars_is_the_share_of_the_individuals(counts: list[int], threshold: int | None) -> None:
    values, individuals = np.unique(counts, return_counts=True)
    distribution = Distribution.of({"count": values.tolist(), "individuals": individuals.tolist()})
    drawing = draw_histogram(distribution, threshold, language_of(None))
    bars = re.findall(r'<path d="([^"]*)"[^>]*style="fill: (#41719c|#cf8a3e)', drawing)
    areas = {"#41719c": 0.0, "#cf8a3e": 0.0}
    for path, colour in bars:
        points = np.array(re.findall(r"(-?[\d.]+) (-?[\d.]+)", path), dtype=float)
        areas[colour] += float(np.prod(points.max(axis=0) - points.min(axis=0)))
    below = 0.0 if threshold is None else float(np.mean(np.array(counts) < threshold))
    assert areas["#cf8a3e"] / sum(areas.values()) == pytest.approx(below, abs=1e-3)


@pytest.mark.parametrize(
    ("counts", "threshold"),
    [([0], 0.5), ([0], None), ([49_999], 3.5), ([0, 10**8], 5.0), ([1, 2], 10.0**9), (list(range(40)), 20.0)],
)
def test_any_distribution_can_be_drawn(counts: list[int], threshold: float | None) -> None:
    distribution = {"count": counts, "individuals": [1] * len(counts)}
    record = record_of(n=len(counts), distribution=distribution, local_cloaking=float(np.median(counts)))
    drawings = page_of({**record, "threshold": threshold}).all(role="img")
    for drawing in drawings[:2]:
        assert f"median {np.median(counts):,g}".split("e")[0] in drawing.text or np.median(counts) >= 10**6
        assert ("threshold" in drawing.text) == (threshold is not None)


def test_report_of_a_million_different_counts_stays_small() -> None:
    n = 10**6
    record = record_of(
        n=n, distribution={"count": list(range(n)), "individuals": [1] * n}, local_cloaking=(n - 1) / 2
    )
    assert len(draw_report(record)) < 1_000_000


def test_drawing_leaves_no_trace_in_matplotlib_and_waits_for_it() -> None:
    code = (
        "import json, sys\n"
        "from local_cloaking.audit.report import draw_report\n"
        "assert 'matplotlib' not in sys.modules\n"
        "import matplotlib\n"
        "settings = lambda: [matplotlib.rcParams[name] for name in ('font.family', 'font.size', 'svg.hashsalt')]\n"
        "before = settings()\n"
        "draw_report(json.load(sys.stdin))\n"
        "assert settings() == before\n"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(record_of()), capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "False", done.stderr
