"""A reader of a terminal or a log sees how far the counting is."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from local_cloaking import local_cloaking
from local_cloaking.progress import LoggedProgress


def lines_of(told: list[tuple[float, int, int]], every: float = 5.0) -> list[str]:
    """What is said when so many of so many are done at these seconds after the start."""
    moments = iter([0.0, *(second for second, _, _ in told)])
    lines: list[str] = []
    progress = LoggedProgress(lines.append, every=every, clock=lambda: next(moments))
    for _, done, total in told:
        progress(done, total)
    return lines


def test_a_line_every_few_seconds_with_the_time_left() -> None:
    told = [(1.0, 100, 1_000), (5.5, 500, 1_000), (7.0, 600, 1_000), (11.0, 900, 1_000), (12.0, 1_000, 1_000)]
    assert lines_of(told) == [
        "counted 500 of 1,000 originals (50 %), about 6 s left",
        "counted 900 of 1,000 originals (90 %), about 1 s left",
    ]


@pytest.mark.parametrize(
    ("second", "left"), [(10.0, "90 s"), (100.0, "15 min"), (600.0, "90 min"), (3_600.0, "9.0 h")]
)
def test_the_time_left_in_a_unit_that_can_be_read(second: float, left: str) -> None:
    assert lines_of([(second, 100, 1_000)]) == [f"counted 100 of 1,000 originals (10 %), about {left} left"]


def test_nothing_is_said_before_anything_is_done_nor_at_the_end() -> None:
    assert lines_of([(9.0, 0, 10), (20.0, 10, 10)]) == []


def test_the_measure_tells_how_far_it_is() -> None:
    rng = np.random.default_rng(1)
    originals = pd.DataFrame(rng.normal(size=(5_000, 3)), columns=["a", "b", "c"])
    told: list[tuple[int, int]] = []
    local_cloaking(originals, originals + 0.1, ncp=2, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (5_000, 5_000)
    assert told == sorted(told)


@pytest.fixture
def tables(tmp_path: Path) -> list[str]:
    rng = np.random.default_rng(1)
    originals = pd.DataFrame(rng.normal(size=(3_000, 3)), columns=["a", "b", "c"])
    paths = [str(tmp_path / "originals.csv"), str(tmp_path / "avatars.csv")]
    for path, frame in zip(paths, (originals, originals + rng.normal(size=originals.shape) / 4), strict=True):
        frame.to_csv(path, index=False)
    return paths


COMMAND = [sys.executable, "-m", "local_cloaking.cli", "measure", "--ncp", "2"]


def test_a_terminal_shows_a_bar(tables: list[str]) -> None:
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen([*COMMAND, *tables], stdout=subprocess.PIPE, stderr=slave, env=environment) as running:
        os.close(slave)
        shown = b""
        while chunk := _read(master):
            shown += chunk
        printed = running.communicate(timeout=300)[0]
    os.close(master)
    assert running.returncode == 0
    assert b"counting" in shown
    assert b"3000/3000" in shown.replace(b",", b"")
    assert b"counting" not in printed


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # how a terminal says that nobody is at the other end any more
        return b""


def test_what_is_no_terminal_gets_no_bar(tables: list[str]) -> None:
    done = subprocess.run([*COMMAND, *tables], capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
