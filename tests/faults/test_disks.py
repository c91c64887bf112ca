"""A disk that is really full, and a folder that is really read-only."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults import invariants
from tests.faults.made import FAILING, PASSING, VERDICTS, write_tables
from tests.faults.tasks import CHECK, MEASURE, Gate, Job, attempt
from tests.reliability import note_figures

pytest.importorskip("airflow", reason="apache-airflow is not installed (extra `airflow`)")

RUN = "manual"
#: KiB: from a disk that takes nothing to one that takes all.
SIZES = (4, 8, 12, 16, 20, 24, 32, 48, 64, 72, 76, 80, 88, 96)


def mount(*arguments: str) -> bool:
    return subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk in memory."""
    place = tmp_path / "disk"
    place.mkdir()
    if os.getuid() != 0 or not mount("-t", "tmpfs", "-o", "size=4m", "none", str(place)):
        pytest.skip("no disk can be mounted here: that takes root")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def sized(disk: Path, kib: int) -> None:
    assert mount("-o", f"remount,rw,size={kib}k", str(disk))


def gate_on(disk: Path, folder: Path, threshold: float) -> Gate:
    originals, avatars, _ = write_tables(folder / "tables")
    return Gate(str(originals), str(avatars), threshold, str(disk / "audit"), {"key": "id", "ncp": 3})


def run(gate: Gate, disk: Path, number: int, xcoms: invariants.Xcoms, run_id: str = RUN) -> list[str]:
    """Try what is still to be done; return how each task ended."""
    ended = []
    for task_id in (MEASURE, CHECK):
        if task_id == MEASURE and (MEASURE, "return_value") in xcoms:
            continue
        tried = attempt(Job(gate, task_id, run_id, number, 1, xcoms, (disk,)), xcoms)
        ended.append(tried.state)
        invariants.nothing_half_written(disk, leftovers=False)
        invariants.index_tells_the_truth(disk / "audit")
        verdict = invariants.told_verdict_has_its_evidence(disk / "audit", xcoms, gate.avatars)
        assert (tried.state == "success") == (
            task_id == MEASURE or verdict == "passed"
        ) or tried.state == "up_for_retry"
        if tried.state != "success":
            break
    return ended


@pytest.mark.faults
@pytest.mark.parametrize("threshold", [PASSING, FAILING])
def test_on_a_disk_that_is_full_nothing_passes_and_nothing_is_half_there(disk, tmp_path, threshold):
    gate = gate_on(disk, tmp_path, threshold)
    full = 0
    for kib in SIZES:
        sized(disk, kib)
        xcoms: invariants.Xcoms = {}
        first = run(gate, disk, 1, xcoms)
        before = files_of(disk)
        full += first[-1] == "up_for_retry"
        sized(disk, 4096)
        if first[-1] == "up_for_retry":
            last = run(gate, disk, 2, xcoms)
            invariants.earlier_files_are_untouched(before, files_of(disk))
        else:
            last = first
        assert last[-1] == ("success" if threshold == PASSING else "failed")
        assert invariants.told_verdict_has_its_evidence(disk / "audit", xcoms, gate.avatars) == VERDICTS[threshold]
        subprocess.run(["find", str(disk), "-mindepth", "1", "-delete"], check=True)
    assert 3 < full < len(SIZES)
    note_figures(f"faults-disk-{threshold:g}", injected=full, survived=full)


def test_in_a_read_only_folder_nothing_passes(disk, tmp_path):
    gate = gate_on(disk, tmp_path, PASSING)
    xcoms: invariants.Xcoms = {}
    (disk / "audit").mkdir()
    assert mount("-o", "remount,ro", str(disk))
    assert run(gate, disk, 1, xcoms) == ["up_for_retry"]
    assert mount("-o", "remount,rw", str(disk))
    assert attempt(Job(gate, MEASURE, RUN, 2, 1, xcoms, (disk,)), xcoms).state == "success"
    assert mount("-o", "remount,ro", str(disk))
    assert run(gate, disk, 1, xcoms) == ["up_for_retry"]
    assert mount("-o", "remount,rw", str(disk))
    assert run(gate, disk, 2, xcoms) == ["success"]


def files_of(folder: Path) -> dict[str, str]:
    return {str(path): path.read_bytes().hex() for path in folder.rglob("*") if path.is_file()}
