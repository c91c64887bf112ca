"""The script that measures the figures of ``docs/safeguards.md``."""

from __future__ import annotations

import ast
import importlib.util
import math
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest

from local_cloaking.limits import NEAR_COPY_RATIO
from local_cloaking.safeguards import near_copies_reason
from tests.scripts import ROOT, WRONG_OPTIONS, assert_refused, loaded

pytestmark = [
    pytest.mark.stack,
    pytest.mark.skipif(
        importlib.util.find_spec("lifelines") is None, reason="lifelines, which ships ACTG 175, is not installed"
    ),
]


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    with loaded("safeguard_figures") as module:
        yield module


@pytest.fixture(scope="module")
def printed(script: ModuleType) -> dict[str, list[list[str]]]:
    """Each table: its name, its head and its rows, with one avatarisation of each sort."""
    parts = "\n".join(script.report(1, 3)).strip().split("\n\n")
    assert parts[0] == "repeats 1, seed 3"
    names = [part.removesuffix(":") for part in parts[1::2]]
    cells = [[line.strip("|").split("|") for line in part.splitlines()] for part in parts[2::2]]
    tables = [[[cell.strip() for cell in row] for row in rows] for rows in cells]
    return dict(zip(names, tables, strict=True))


def table(printed: dict[str, list[list[str]]], start: str) -> list[list[str]]:
    """The rows of the one table whose name starts so, without its head."""
    (found,) = [rows for name, rows in printed.items() if name.startswith(start)]
    return found[2:]


def test_each_table_is_printed(script: ModuleType, printed: dict[str, list[list[str]]]) -> None:
    assert list(printed) == [section.name for section in script.SECTIONS]
    for name, (head, line, *rows) in printed.items():
        assert set(line) == {"---"}
        assert rows, name
        assert {len(row) for row in rows} == {len(head)}, name
        assert all(cell and "nan" not in cell for row in rows for cell in row), name


def test_the_outcomes_that_the_page_tells_of(printed: dict[str, list[list[str]]]) -> None:
    assert [row[-1] for row in table(printed, "Copies: ")][:2] == ["not assessable"] * 2
    assert {row[4] for row in table(printed, "Honest avatars")} == {"0"}
    assert {row[-1] for row in table(printed, "Other people")} == {"1 of 1"}
    assert [row[-1] for row in table(printed, "Cells blanked")] == ["passed"] * 2 + ["not assessable"] * 3
    assert [row[-1] for row in table(printed, "A column that is the same")] == ["passed", "not assessable"]
    (ladder,) = table(printed, "Another number")
    assert sorted(map(float, ladder), reverse=True) == [float(cell) for cell in ladder]
    carried = {(row[0], row[1]): row[-1] for row in table(printed, "Columns carried over")}
    assert carried["nothing", "100 %"] == "passed"
    assert carried["age, wtkg", "100 %"] == "not assessable"


def test_no_honest_avatars_are_near_copies_from_k_2_on(printed: dict[str, list[list[str]]]) -> None:
    for *data, _one, two, five, twenty, hundred in table(printed, "Copies with noise, honest"):
        assert min(map(float, (two, five, twenty, hundred))) > 2 * NEAR_COPY_RATIO, data


def test_the_ratio_is_the_one_that_the_rule_bounds(script: ModuleType) -> None:
    rng = np.random.default_rng(1)
    people = script.KINDS["numbers"](rng, 200)
    for scale in (0.001, 0.01, 0.03, 0.1, 0.3):
        avatars = script.noisy(people, scale, 1)
        space = script.FAMD(5).fit(people)
        reason = near_copies_reason(space.transform(people), space.transform(avatars))
        assert (reason is not None) == (script.ratio(people, avatars) < NEAR_COPY_RATIO), scale
    assert script.ratio(people, people) == math.inf


def test_the_categories_are_those_of_the_demonstration(script: ModuleType) -> None:
    tree = ast.parse((ROOT / "dags" / "local_cloaking_demo.py").read_text(encoding="utf-8"))
    (found,) = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "CATEGORIES"
    ]
    assert found == script.CATEGORIES


def test_the_same_seed_gives_the_same_lines(script: ModuleType) -> None:
    (section,) = [section for section in script.SECTIONS if section.name.startswith("Copies: ")]
    assert list(section.lines(1, 5)) == list(section.lines(1, 5))


def test_the_page_holds_the_tables_of_the_script(script: ModuleType) -> None:
    """The document's tables have the heads that the script prints."""
    text = (ROOT / "docs" / "safeguards.md").read_text(encoding="utf-8")
    assert "python scripts/safeguard_figures.py" in text
    for section in script.SECTIONS:
        assert "| " + " | ".join(section.head) + " |" in text, section.name


@pytest.mark.parametrize("arguments", WRONG_OPTIONS)
def test_wrong_options(script: ModuleType, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert_refused(script, arguments, capsys)
