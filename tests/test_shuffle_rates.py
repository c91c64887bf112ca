"""The script that measures the error rates of the rule for shuffled avatars."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest

from tests.scripts import ROOT, WRONG_OPTIONS, assert_refused, loaded


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    with loaded("shuffle_rates") as module:
        yield module


def test_the_printed_rates(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    script.main(["--repeats", "1", "--seed", "3"])
    printed = capsys.readouterr().out
    shuffled, honest, partly = re.split(r"\n\n(?=Right pairs|Partly)", printed)

    missed = re.findall(r"(\d+) of (\d+)", shuffled)
    assert len(missed) == len(script.KINDS) * len(script.SIZES)
    assert {count for count, _ in missed} == {"0"}

    rows = [line for line in honest.splitlines() if re.match(r"\| \d", line)]
    assert len(rows) == len(script.HONEST_SIZES) * 4
    for row in rows:
        n, k, *refused, _ = [cell.strip() for cell in row.strip("|").split("|")]
        assert 2 <= int(k) <= 0.3 * int(n)
        assert int(n) < 75 or {cell.split()[0] for cell in refused} == {"0"}

    for row in (line for line in partly.splitlines() if re.match(r"\| \d", line)):
        cells = re.findall(r"(\d+) of (\d+)", row)
        assert sum(int(count) for count, _ in cells) == int(cells[0][1])
        if row.startswith("| 50%"):
            assert cells[2][0] == "0"
    # Counts, no times: the same options print the same.
    assert not re.search(r"second|\d ?s\b", printed)


def test_the_same_seed_gives_the_same_counts(script: ModuleType) -> None:
    def ask(seed: int) -> object:
        return script.ask("mixed", 50, 1, np.random.default_rng(seed))

    assert ask(1) == ask(1)


@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_shuffled_rows_are_a_permutation(script: ModuleType, share: float) -> None:
    own = script.shuffled(np.random.default_rng(0), 100, share)
    assert sorted(own) == list(range(100))
    assert np.count_nonzero(own != np.arange(100)) <= 100 * share


@pytest.mark.parametrize("arguments", WRONG_OPTIONS)
def test_wrong_options(script: ModuleType, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert_refused(script, arguments, capsys)


def test_the_documented_rates_are_those_of_the_script(script: ModuleType) -> None:
    """The document's tables have the rows and columns that the script prints."""
    text = (ROOT / "docs" / "safeguards.md").read_text(encoding="utf-8")
    assert "python scripts/shuffle_rates.py" in text
    assert "| data | " + " | ".join(f"n = {n}" for n in script.SIZES) + " |" in text
    for n in script.HONEST_SIZES:
        for k in script.ks(n):
            assert re.search(rf"^\| {n} \| {k} \| \d+ of \d+ \|", text, re.MULTILINE), (n, k)
    for share in script.PARTS:
        for n in script.SIZES:
            assert re.search(rf"^\| {share:.0%} \| {n} \| \d+ of \d+ \|", text, re.MULTILINE), (share, n)
