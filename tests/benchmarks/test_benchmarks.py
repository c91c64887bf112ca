"""The benchmark runs, and compares what counts the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from local_cloaking.neighbours import closer_avatar_counts
from tests.benchmarks import data


@pytest.mark.stack
def test_a_line_of_the_table(tmp_path: Path) -> None:
    table = tmp_path / "benchmarks.md"
    options = ["--scale", "0.005", "--repeats", "1", "--only", "near-100k", "-o", str(table)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == table.read_text()
    cells = [cell.strip() for cell in done.stdout.splitlines()[2].split("|")[1:-1]]
    assert (cells[0], cells[7]) == ("0.005 of 100,000 x 5 near", "at least 3")
    assert float(cells[6]) > 0


def test_tables_are_what_their_names_say() -> None:
    assert np.median(closer_avatar_counts(*data.near(20_000, 5))) <= 2
    small, large = (np.median(closer_avatar_counts(*data.released(n, 5))) for n in (5_000, 20_000))
    assert 2 * small <= large  # it grows with n
    shuffled = np.median(closer_avatar_counts(*data.shuffled(5_000, 5)))
    assert 2_000 < shuffled < 3_000
    x, y = data.discrete(10_000)
    assert [len(np.unique(column)) for column in x.T] == [2, 2, 2, 5, 5]
    assert 0.05 < (x != y).mean() < 0.2
    originals, avatars = data.mixed(1_000)
    assert len(originals.select_dtypes("number").columns) == 15
    assert list(originals.columns) == list(avatars.columns)
