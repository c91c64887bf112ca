"""The report's languages: numbers and dates as people write them, and no text or sentence left in English."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from babel.messages.catalog import Message
from hypothesis import example, given
from hypothesis import strategies as st
from tests.scripts import assert_refused, loaded

from local_cloaking import FAMD, InputError, avatarise, local_cloaking
from local_cloaking.audit.languages import SENTENCES, Language, language_of, languages, read_catalogue
from local_cloaking.audit.record import TIE_RULE, build_record, measure_entries
from local_cloaking.gate import judge, remedy
from local_cloaking.metric import LocalCloaking
from local_cloaking.pairing import PairingEvidence
from local_cloaking.safeguards import judge_near_copies

NARROW, WIDE = "\u202f", "\u00a0"
PLACEHOLDER = re.compile(r"%\((\w+)\)s")

#: What column names may hold, each of which breaks a careless pattern or a careless filling.
HOSTILE = (
    "a; b",
    "it's",
    "both ' and \"",
    "%(value)s 5% %s {x} {{",
    "back\\slash\\",
    "line\nbreak",
    "a, 'b', c and 2 more: protected, but of little use; all originals, or all avatars, are alike",
    "<script>alert(1)</script>",
    "\u05d0\u05d1 \u202e",
    "x" * 200,
)

ENGLISH, FRENCH = language_of("en"), language_of("fr")
CATALOGUES = [code for code in languages() if code != "en"]


def entries(code: str) -> list[Message]:
    return [message for message in read_catalogue(code) if message.id]


def templates(code: str) -> list[Message]:
    return [message for message in entries(code) if message.context == SENTENCES]


@pytest.fixture(scope="module")
def catalogue() -> Iterator[ModuleType]:
    with loaded("catalogue") as script:
        yield script


# --- which languages there are ---


def test_there_are_english_and_french() -> None:
    assert languages() == ("en", "fr")


@pytest.mark.parametrize("code", ["fr", "FR", "fr_FR", "fr-FR", "fr-ca", " fr "])
def test_language_is_found_however_its_code_is_written(code: str) -> None:
    assert language_of(code).code == "fr"


@pytest.mark.parametrize("code", [None, "en", "en_GB", "EN-us"])
def test_english_is_the_language_where_none_is_named(code: str | None) -> None:
    assert language_of(code).code == "en"


@pytest.mark.parametrize("code", ["de", "", "french", "../fr", "fr/../fr"])
def test_other_languages_are_refused_and_those_there_are_are_named(code: str) -> None:
    with pytest.raises(InputError, match="give one of these languages: en, fr"):
        language_of(code)


# --- texts ---


@pytest.mark.parametrize("language", [ENGLISH, FRENCH])
def test_text_without_translation_stays_english_and_is_filled(language: Language) -> None:
    filled = language.text("100 % of %(one)s, not %(two)s", one="%(two)s", two="{one} %s 5%")
    assert filled == "100 % of %(two)s, not {one} %s 5%"


def test_text_that_is_not_filled_is_an_error() -> None:
    with pytest.raises(KeyError, match="name"):
        ENGLISH.text("%(name)s")


def test_no_text_is_no_text() -> None:
    # gettext keeps a catalogue's header under the empty text.
    assert FRENCH.text("") == FRENCH.sentence("") == ""


def test_another_language_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pl.po").write_text(
        'msgid ""\nmsgstr "Content-Type: text/plain; charset=utf-8\\n"\n'
        '"Plural-Forms: nplurals=3; plural=(n==1 ? 0 : n>=2 && n<=4 ? 1 : 2);\\n"\n\n'
        'msgid "%(number)s row"\nmsgid_plural "%(number)s rows"\n'
        'msgstr[0] "%(number)s wiersz"\nmsgstr[1] "%(number)s wiersze"\nmsgstr[2] "%(number)s wierszy"\n\n'
        'msgctxt "sentence"\nmsgid "%(rows)s rows are odd"\nmsgstr "dziwne wiersze: %(rows)s"\n',
        encoding="utf-8",
    )
    monkeypatch.setattr("local_cloaking.audit.languages._FOLDER", tmp_path)
    assert languages() == ("en", "pl")
    polish = language_of("pl-PL")
    said = [polish.many("%(number)s row", "%(number)s rows", number) for number in (1, 3, 5)]
    assert said == ["1 wiersz", "3 wiersze", "5 wierszy"]
    assert polish.sentence("1.5 rows are odd") == "dziwne wiersze: 1,5"
    assert polish.text("not known") == "not known"
    assert polish.moment("2026-11-30T07:12:03+01:00").startswith("30 listopada 2026")


@pytest.mark.parametrize(("number", "said"), [(0, "0 rows"), (1, "1 row"), (2139, "2,139 rows of both")])
def test_plural_forms_without_a_catalogue_are_the_english_ones(number: int, said: str) -> None:
    more = "%(number)s rows of %(tables)s" if number > 1 else "%(number)s rows"
    assert ENGLISH.many("%(number)s row", more, number, tables="both") == said


# --- numbers, sizes and moments ---


@pytest.mark.parametrize(
    ("value", "digits", "english", "french"),
    [
        (1234.5, 2, "1,234.5", f"1{NARROW}234,5"),
        (10.0, 2, "10", "10"),
        (93.0849, 2, "93.08", "93,08"),
        (93.0849, 0, "93", "93"),
        (1 / 3, 5, "0.33333", "0,33333"),
        (-0.001, 2, "0", "0"),
        (-2.5, 1, "-2.5", "-2,5"),
        (1e15, 2, "1,000,000,000,000,000", NARROW.join(["1", *["000"] * 5])),
        (2**70, 2, "1,180,591,620,717,411,303,424", "1 180 591 620 717 411 303 424".replace(" ", NARROW)),
        (None, 2, "not known", "inconnu"),
        (float("nan"), 2, "not known", "inconnu"),
    ],
)
def test_number(value: float | None, digits: int, english: str, french: str) -> None:
    assert ENGLISH.number(value, digits) == english
    assert FRENCH.number(value, digits) == french


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 6))
@example(1.7976931348623157e308, 2)
def test_number_reads_back_as_it_was_rounded(value: float, digits: int) -> None:
    for language, point, thousands in ((ENGLISH, ".", ","), (FRENCH, ",", NARROW)):
        written = language.number(value, digits)
        assert float(written.replace(thousands, "").replace(point, ".")) == round(value, digits)
        assert len(written.partition(point)[2]) <= digits


def test_per_cent_has_a_space_that_does_not_break() -> None:
    assert ENGLISH.per_cent(93.0849) == f"93.08{WIDE}%"
    assert FRENCH.per_cent(93.0849) == f"93,08{NARROW}%"
    assert FRENCH.per_cent(5, 0) == f"5{NARROW}%"
    assert FRENCH.per_cent(None) == "inconnu"


@pytest.mark.parametrize(
    ("iso", "english", "french"),
    [
        (
            "2026-11-30T07:12:03+01:00",
            "30 November 2026, 07:12:03 +01:00",
            "30 novembre 2026, 07:12:03 +01:00",
        ),
        (
            "2026-02-01T23:59:59.999-03:30",
            "1 February 2026, 23:59:59 -03:30",
            "1 février 2026, 23:59:59 -03:30",
        ),
        ("2026-08-05T00:00:00Z", "5 August 2026, 00:00:00 +00:00", "5 août 2026, 00:00:00 +00:00"),
        ("2026-08-05T00:00:00", "5 August 2026, 00:00:00", "5 août 2026, 00:00:00"),
        ("yesterday", "yesterday", "yesterday"),
        (None, "not known", "inconnu"),
    ],
)
def test_moment_keeps_its_offset(iso: str | None, english: str, french: str) -> None:
    assert ENGLISH.moment(iso) == english
    assert FRENCH.moment(iso) == french


@pytest.mark.parametrize(
    ("size", "english", "french"),
    [
        (0, "0 bytes", "0 octet"),
        (1, "1 byte", "1 octet"),
        (999, "999 bytes", "999 octets"),
        (1000, "1 kB", "1 ko"),
        (999_949, "999.9 kB", "999,9 ko"),
        (999_960, "1 MB", "1 Mo"),
        (1_234_567, "1.2 MB", "1,2 Mo"),
        (3 * 10**9, "3 GB", "3 Go"),
        (2 * 10**16, "20,000 TB", "20 000 To"),
    ],
)
def test_size_of_a_file(size: int, english: str, french: str) -> None:
    assert ENGLISH.bytes(size) == english.replace(" ", WIDE)
    assert re.sub(r"\s", " ", FRENCH.bytes(size)) == french
    # No line breaks between a number and its unit.
    assert " " not in FRENCH.bytes(size)


# --- the sentences of a record ---


def assert_said(text: str | None) -> None:
    """Say a sentence that the package made in French; its names and numbers are still there, the words are not."""
    assert text
    assert ENGLISH.sentence(text) == text
    french = FRENCH.sentence(text)
    assert french != text
    assert not re.search(r"\b(the|of|and|are|is|its)\b", without_names(french)), french
    assert names_in(french) == names_in(text)
    assert numbers_in(without_names(french).replace(NARROW, "").replace(",", ".")) == numbers_in(
        without_names(text)
    )


def without_names(text: str) -> str:
    for name in sorted(HOSTILE, key=len, reverse=True):
        text = text.replace(repr(name), "NAME")
    return text


def names_in(text: str) -> list[str]:
    return sorted(name for name in HOSTILE for _ in range(text.count(repr(name))))


def numbers_in(text: str) -> list[float]:
    return sorted(float(number) for number in re.findall(r"\d+(?:\.\d+)?", text))


def test_every_verdict_is_said() -> None:
    counts = np.arange(30)
    for judgement in (
        judge(counts, individuals=30, threshold=20.5),
        judge(counts, individuals=31, threshold=2),
        judge(counts[:3], individuals=3, threshold=12.5),
        judge(counts, individuals=30, threshold=2.5, peers=1.5),
    ):
        assert judgement.verdict != "passed"
        assert_said(judgement.reason)


def test_every_remedy_is_said() -> None:
    for said in (remedy("below_threshold"), remedy("below_threshold", 20), remedy("not_assessable")):
        assert_said(said)


@given(
    st.none() | st.sampled_from([-1.234, 0.0, 3.999, 50.0]),
    st.sampled_from([0.0, 0.06, 0.5, 1.0]),
    st.sampled_from([0.1, 0.5]),
    st.integers(1, 10**9),
    st.none() | st.sampled_from([500, 8000]),
)
def test_whatever_is_found_of_the_pairs_is_said(
    association: float | None, far: float, median: float, n: int, sample: int | None
) -> None:
    evidence = PairingEvidence(association, far, median, n, sample)
    for said in (evidence.reason, evidence.warning):
        if said is not None:
            assert_said(said)


def test_near_copies_are_said() -> None:
    assert_said(judge_near_copies(np.full(9, 0.0123), np.ones(9)))


def test_rule_of_ties_is_said() -> None:
    french = FRENCH.sentence(TIE_RULE)
    assert french.count("tau") == TIE_RULE.count("tau")
    assert " when " not in french


def normal(columns: tuple[str, ...] = HOSTILE, seed: int = 0) -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(seed).normal(size=(120, len(columns))), columns=list(columns))


def copied() -> LocalCloaking:
    table = normal()
    return local_cloaking(table, table, ncp=2)


def shuffled() -> LocalCloaking:
    table = normal()
    return local_cloaking(table, table.sample(frac=1, random_state=1).reset_index(drop=True), ncp=2)


def alike() -> LocalCloaking:
    table = pd.DataFrame({HOSTILE[0]: [1.0] * 20})
    return local_cloaking(table, table)


def paired_by_key() -> LocalCloaking:
    table = normal()
    keyed = table.assign(**{HOSTILE[3]: range(len(table))})
    return local_cloaking(keyed, keyed, key=HOSTILE[3], drop=[HOSTILE[0]], ncp=2)


def wanting() -> LocalCloaking:
    originals, avatars = normal(), normal() + 0.1
    originals[HOSTILE[1]] = 5.0
    originals[HOSTILE[8]] = ["x", "y", None] * 40
    avatars[HOSTILE[8]] = ["x", "y", None] * 40
    avatars.loc[:60, HOSTILE[2]] = np.nan
    return local_cloaking(originals, avatars, ncp=2)


def sorted_apart() -> LocalCloaking:
    table = normal().sort_values(HOSTILE[0]).reset_index(drop=True)
    return local_cloaking(table, table, ncp=2)


def numbered() -> LocalCloaking:
    table = normal(HOSTILE[:4])
    table[HOSTILE[4]] = range(120)
    table[HOSTILE[5]] = [3 * i * i for i in range(120)]
    table[HOSTILE[6]] = [f"v{i % 70}" for i in range(120)]
    return local_cloaking(table, table, ncp=2)


def collapsed() -> LocalCloaking:
    table = normal()
    return local_cloaking(table, table * 0.001, ncp=2)


def collapsed_in_two() -> LocalCloaking:
    table = normal()
    avatars = table.assign(**{name: table[name] * 0.001 for name in HOSTILE[5:7]})
    return local_cloaking(table, avatars, ncp=2)


def of_few_rows() -> LocalCloaking:
    table = normal()
    return local_cloaking(table, table.iloc[np.arange(120) // 40 * 40].reset_index(drop=True), ncp=2)


def carried_over(columns: int) -> LocalCloaking:
    names = (*HOSTILE[:columns], *(f"c{i}" for i in range(20)))
    table = normal(names)
    avatars = normal(names, seed=1)
    return local_cloaking(table, avatars.assign(**{name: table[name] for name in HOSTILE[:columns]}), ncp=2)


def with_its_projection() -> LocalCloaking:
    table = normal()
    return local_cloaking(table, table, projection=FAMD(4).fit(table), ncp=2)


def with_coordinates() -> LocalCloaking:
    table = normal()
    places = table.iloc[:, :2].to_numpy()
    return local_cloaking(table, table, coordinates=(places, places), ncp=2)


@pytest.mark.parametrize(
    ("measure", "arguments", "found"),
    [
        (copied, (), "copies of their own"),
        (copied, (), "real people's rows"),
        (shuffled, (), "look shuffled"),
        (alike, (), "all stand in one place"),
        (alike, (), "are alike"),
        (paired_by_key, (), "carry the key"),
        (paired_by_key, (), "was left out"),
        (wanting, (), "is missing in"),
        (wanting, (), "is the same for all"),
        (sorted_apart, (), "sorted apart"),
        (numbered, (), "numbers the rows"),
        (numbered, (), "every whole number"),
        (numbered, (), "does it name individuals"),
        (collapsed, (), "and 5 more: protected"),
        (collapsed_in_two, (), "lost nearly all spread"),
        (of_few_rows, (), "different rows where"),
        (carried_over, (1,), "carried over unchanged"),
        (carried_over, (7,), "and 2 more carried over unchanged"),
        (with_its_projection, (), "but the projection handed over has"),
        (with_coordinates, (), "avatars_table"),
    ],
)
def test_whatever_a_measure_says_is_said(measure: Any, arguments: tuple[int, ...], found: str) -> None:
    result = measure(*arguments)
    told = [*result.warnings, *([] if result.reason is None else [result.reason])]
    assert any(found in text for text in told), told
    for text in told:
        assert_said(text)
    # As one text, too: names with the joint in them are no joint.
    assert_said("; ".join(told))


@given(st.data())
@pytest.mark.parametrize("code", CATALOGUES)
def test_any_names_and_numbers_are_recognised_in_every_sentence(code: str, data: st.DataObject) -> None:
    language = language_of(code)
    known = [message for message in templates(code) if "parts" not in PLACEHOLDER.findall(message.id)]
    chosen = data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=3))
    english, expected = [], []
    for message in chosen:
        values = {name: data.draw(value_of(name)) for name in PLACEHOLDER.findall(message.id)}
        english.append(PLACEHOLDER.sub(lambda gap, values=values: values[gap[1]], message.id))
        expected.append(PLACEHOLDER.sub(lambda gap, values=values: values[gap[1]], message.string))
    assert language.sentence("; ".join(english)) == language.text("; ").join(expected)


def value_of(placeholder: str) -> st.SearchStrategy[str]:
    """Values as they stand in a sentence, and are the same in each language."""
    names = (st.text(max_size=20) | st.sampled_from(HOSTILE)).map(repr)
    if placeholder == "columns":
        return st.lists(names, min_size=1, max_size=5).map(", ".join)
    return names if placeholder == "column" else st.integers(0, 999).map(str)


@pytest.mark.parametrize(
    ("text", "french"),
    [
        ("12.5% of the avatars are copies of their own original", f"12,5{NARROW}% des avatars"),
        ("the counts do not fit 2139 individuals", f"à 2{NARROW}139 individus"),
        ("Local Cloaking 1.5e+06 is below the threshold 2e+06", NARROW.join(["(1", "500", "000)"])),
        ("Local Cloaking nan is below the threshold inf", "(nan)"),
    ],
)
def test_numbers_in_a_sentence_are_written_as_in_the_language(text: str, french: str) -> None:
    assert french in FRENCH.sentence(text)


@given(st.text())
@example("nothing of this is known")
@example("the counts do not fit 5 individuals; and something new")
@example("the counts do not fit 5 individuals, all originals, or all avatars, are alike")
@example(
    "the avatars look shuffled, or belong to other individuals: by magic (if they are not, 9 individuals are too"
)
@example("column 'x was left out: it stands in the avatars but was not measured")
@example("column 'x'y' was left out: it stands in the avatars but was not measured")
def test_unknown_text_stays_as_it_is(text: str) -> None:
    assert FRENCH.sentence(text) == text


@pytest.mark.parametrize(
    "start",
    [
        "",
        "column '",
        "the avatars have lost nearly all spread in ",
        "the avatars look shuffled, or belong to other ",
    ],
)
@pytest.mark.parametrize(
    "again", ["'", '"', "\\", "'a', ", "1", "1.", "; ", "all originals, or all avatars, ", "a"]
)
def test_long_text_is_soon_given_up(start: str, again: str) -> None:
    # A pattern that goes back would need minutes, and the run would end by its own time limit.
    text = start + again * (10_000 // len(again))
    assert FRENCH.sentence(text) == text


# --- the report ---


class Words(HTMLParser):
    """What a reader sees or hears of a page, but for what it says to be English."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.silent: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.said += [given[name] or "" for name in ("aria-label", "title", "alt") if name in given]
        if self.silent or tag in ("style", "code", "bdi") or given.get("lang") == "en":
            self.silent.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.silent and self.silent[-1] == tag:
            self.silent.pop()

    def handle_data(self, data: str) -> None:
        if not self.silent:
            self.said.append(data)


def record_of(threshold: float | None, result: LocalCloaking, **entries: Any) -> dict[str, Any]:
    judgement = None
    if threshold is not None:
        judgement = judge(result.counts, individuals=result.n, threshold=threshold, reason=result.reason)
    source = {"name": "t.csv", "size": 1234, "sha256": "0" * 64, "rows": result.n}
    measure = {
        **measure_entries(result),
        "k": 20,
        "data_set": None,
        "inputs": {"originals": source, "avatars": source},
        "avatars_sha256": "0" * 64,
        "parameters": None,
        "measured_at": "2026-11-30T07:12:03+01:00",
        "duration_seconds": 1.5,
        "run": None,
        **entries,
    }
    return build_record(measure, result.counts, judgement, judged={"at": "2026-11-30T07:12:03+01:00"})


def whole() -> LocalCloaking:
    """Measure with whatever a report can show."""
    table = normal().assign(arm=["a", "b", "c", None] * 30)
    avatars = avatarise(table, k=20, ncp=5, seed=0)
    return local_cloaking(table, avatars, ladder=True, groups=["arm"])


@pytest.mark.parametrize(("measure", "threshold"), [(whole, 1), (whole, None), (shuffled, 5), (wanting, 50.5)])
def test_report_in_french_says_nothing_in_english(measure: Any, threshold: float | None) -> None:
    from local_cloaking.audit.report import draw_report

    page = draw_report(record_of(threshold, measure()), language="fr").decode()
    words = Words()
    words.feed(page)
    assert '<html lang="fr">' in page
    assert "Local Cloaking" in " ".join(words.said)
    english = re.compile(r"\b(the|of|and|are|is|was|with|which|that|not|by|other|than|for|from|no|to|in)\b", re.I)
    assert [text for text in words.said if english.search(without_names(text))] == []


# --- the catalogues ---


@pytest.mark.parametrize("code", CATALOGUES)
def test_nothing_lacks_in_a_catalogue(catalogue: ModuleType, code: str) -> None:
    assert catalogue.untranslated(code) == {}, "make catalogue prints the entries to add"


@pytest.mark.parametrize("code", CATALOGUES)
def test_nothing_stands_in_a_catalogue_in_vain(catalogue: ModuleType, code: str) -> None:
    assert catalogue.unused(code) == []


@pytest.mark.parametrize("code", CATALOGUES)
def test_translations_have_the_gaps_of_their_texts(code: str) -> None:
    for message in entries(code):
        texts = [message.id] if isinstance(message.id, str) else list(message.id)
        strings = [message.string] if isinstance(message.string, str) else list(message.string)
        assert not message.fuzzy, message.id
        assert all(strings), message.id
        for text, string in product(texts[-1:], strings):
            gaps = PLACEHOLDER.findall(text)
            assert set(gaps) == set(PLACEHOLDER.findall(string)), text
            assert len(gaps) == len(set(gaps)) or message.context != SENTENCES, text
            # What is filled in must not be mistaken for a format that another tool would fill.
            assert not re.search(r"%%|%[sd]\b|\{", string), string


def test_french_is_set_as_french_is() -> None:
    for message in entries("fr"):
        for text in [message.string] if isinstance(message.string, str) else message.string:
            words = PLACEHOLDER.sub("1", text)
            assert not re.search(r" [:;?!%»]|« ", words), f"a space that may break: {text}"
            assert not re.search(r"[^\s:]:(?!\w|//)|[^\s][;?!»]|\w%|«\S", re.sub(r"https?://\S+", "", words)), (
                f"no space where French has one: {text}"
            )
            assert not re.search(r"\d\.\d", words), f"a decimal point: {text}"
            assert "'" not in words, f"a straight apostrophe: {text}"


def test_script_says_what_lacks(
    catalogue: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "texts", lambda: {'a "new" text': "x.py:1", ("one", "many"): "x.py:2"})
    monkeypatch.setattr(catalogue, "sentences", lambda: {("column ", " is odd"): "y.py:3"})
    assert catalogue.main([]) == 1
    printed = capsys.readouterr().out
    assert '#: x.py:1\nmsgid "a \\"new\\" text"\nmsgstr ""' in printed
    assert 'msgid_plural "many"' in printed
    assert '#: y.py:3\nmsgctxt "sentence"\nmsgid "column %(value)s is odd"' in printed
    assert "in no source: not known" in printed


def test_script_finds_every_way_to_tell(catalogue: ModuleType) -> None:
    import ast

    source = '''
def _warn_of(x):
    """Say a thing."""
    if x:
        raise InputError("not this one", remedy="nor this one")
    return [f"this {x} one"]

def other(x, warnings, reasons):
    warnings.append("and this one")
    reasons += [f"{x:.1%} of these"]
    reason = "that one" if x else "or that one"
    return Space(warnings=(*warnings, "the last one"), note="not a warning")
'''
    found = {
        pieces for node in catalogue.telling_nodes(ast.parse(source)) for pieces, _ in catalogue.strings(node)
    }
    assert found == {
        ("this ", " one"),
        ("and this one",),
        (" of these",),
        ("that one",),
        ("or that one",),
        ("the last one",),
    }


def test_script_refuses_wrong_options(catalogue: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert_refused(catalogue, ["--other"], capsys)
