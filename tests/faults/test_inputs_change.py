"""Inputs that change between measuring, judging and publishing, or while they are read, are noticed by hash."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from local_cloaking.cli import app
from local_cloaking.measuring import Inputs, measure_files
from tests.faults import invariants
from tests.faults.made import PASSING, Workshop, write_tables
from tests.faults.tasks import CHECK, MEASURE, PUBLISH, Attempt, Gate, Job, attempt

pytest.importorskip("airflow", reason="apache-airflow is not installed (extra `airflow`)")

Xcoms = dict[tuple[str, str], str]


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """Tables that were measured; and then, judged, too."""
    folder = tmp_path_factory.mktemp("changing")
    for name in ("kept", "other"):
        (folder / name).mkdir()
    workshop = Workshop(folder / "work", folder / "kept")
    write_tables(folder / "other", k=25)
    write_tables(workshop.tables)
    xcoms: Xcoms = {}
    for task_id in (MEASURE, CHECK):
        assert tried(workshop, task_id, xcoms).state == "success"
        workshop.keep(f"after {task_id}", xcoms)
    return workshop


def tried(workshop: Workshop, task_id: str, xcoms: Xcoms) -> Attempt:
    originals, avatars, projection = (
        workshop.tables / name for name in ("originals.csv", "avatars.csv", "projection.json")
    )
    more = {"key": "id", "projection": str(projection)}
    gate = Gate(str(originals), str(avatars), PASSING, str(workshop.audit), more)
    return attempt(Job(gate, task_id, "manual", 1, 1, xcoms, (workshop.root,)), xcoms)


def replaced(workshop: Workshop, name: str) -> None:
    """Other avatars, which would pass as well: only their hash tells."""
    (workshop.tables / name).write_bytes((workshop.kept.parent / "other" / name).read_bytes())


def appended(workshop: Workshop, name: str) -> None:
    path = workshop.tables / name
    path.write_bytes(path.read_bytes() + b"\n")


@pytest.mark.parametrize("change", [replaced, appended])
@pytest.mark.parametrize("after", [MEASURE, CHECK])
def test_avatars_that_change_do_not_leave(workshop, after, change):
    xcoms = workshop.restore(f"after {after}")
    change(workshop, "avatars.csv")
    if after == MEASURE:
        assert tried(workshop, CHECK, xcoms).state == "success"  # Of the bytes that were measured.
    ended = tried(workshop, PUBLISH, xcoms)
    assert ended.state == "failed"
    assert "avatars.csv is not the file that passed: its hash differs" in ended.said
    # What passed may still leave.
    workshop_file = workshop.kept / f"after {MEASURE}" / "tables" / "avatars.csv"
    (workshop.tables / "avatars.csv").write_bytes(workshop_file.read_bytes())
    assert tried(workshop, PUBLISH, xcoms).state == "success"


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def of_others(path: Path) -> None:
    """A whole counts file, with a better figure."""
    from local_cloaking.audit.evidence import Evidence

    content = path.read_bytes()
    measured = Evidence.from_bytes(content, hashlib.sha256(content).hexdigest())
    path.write_bytes(Evidence(measured.closer + 5, measured.strictly_closer, measured.measure).to_bytes())


@pytest.mark.parametrize("change", [cut, of_others])
def test_counts_that_change_are_not_judged(workshop, change: Callable[[Path], None]):
    xcoms = workshop.restore(f"after {MEASURE}")
    change(Path(json.loads(xcoms[MEASURE, "counts"])))
    ended = tried(workshop, CHECK, xcoms)
    assert ended.state == "failed"
    assert "the counts file is not the one that was measured: its hash differs" in ended.said
    assert (CHECK, "return_value") not in xcoms
    assert not list(workshop.root.rglob("record.json"))


def test_counts_that_are_gone_are_waited_for(workshop):
    xcoms = workshop.restore(f"after {MEASURE}")
    Path(json.loads(xcoms[MEASURE, "counts"])).unlink()
    assert tried(workshop, CHECK, xcoms).state == "up_for_retry"


def test_a_record_that_changes_lets_nothing_leave(workshop):
    xcoms = workshop.restore(f"after {CHECK}")
    record = Path(json.loads(xcoms[CHECK, "return_value"])["record"])
    record.write_bytes(record.read_bytes().replace(b'"threshold": 1.0', b'"threshold": 0.5'))
    ended = tried(workshop, PUBLISH, xcoms)
    assert ended.state == "failed"
    assert "its hash differs" in ended.said


@pytest.mark.parametrize("name", ["originals.csv", "avatars.csv", "projection.json"])
@pytest.mark.parametrize("after", [MEASURE, CHECK])
def test_whatever_was_measured_and_changes_is_told_by_verify(workshop, name, after):
    """The record has the hash of each input as it was when it was measured."""
    xcoms = workshop.restore(f"after {after}")
    measured = hashlib.sha256((workshop.tables / name).read_bytes()).hexdigest()
    appended(workshop, name)
    if after == MEASURE:
        assert tried(workshop, CHECK, xcoms).state == "success"
    record = invariants.record_of(xcoms)
    which = name.partition(".")[0]
    assert record["inputs"][which]["sha256"] == measured
    arguments = ["verify", json.loads(xcoms[CHECK, "return_value"])["record"]]
    for option in ("originals.csv", "avatars.csv", "projection.json"):
        arguments += [f"--{option.partition('.')[0]}", str(workshop.tables / option)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 1, done.output
    assert f"DIFFERS  SHA-256 of the {which}" in done.output


class Changing:
    """A file that is written over while it is read: the first half is of one, the second of another."""

    def __init__(self, path: Path, content: bytes) -> None:
        self.name, self._path, self._content = path.name, path, content

    def open(self, mode: str) -> Any:
        path, content = self._path, self._content

        class Stream(io.FileIO):
            def read(self, size: int | None = -1) -> bytes:
                first = super().read(len(content) // 2)
                path.write_bytes(content)
                return first + super().read()

        return Stream(path, "r")


def test_a_file_that_changes_while_it_is_read_has_the_hash_of_what_was_measured(workshop):
    from local_cloaking.tables import read_bytes, sha256_of

    workshop.restore(f"after {MEASURE}")
    avatars = workshop.tables / "avatars.csv"
    before = avatars.read_bytes()
    # Of the same length, so that the mixture is a table, too.
    lines = before.splitlines(keepends=True)
    after = b"".join([lines[0], *lines[:0:-1]])
    read = read_bytes(Changing(avatars, after))
    assert read.data not in (before, after)
    assert read.sha256 == hashlib.sha256(read.data).hexdigest()
    # So nobody is let out by it: neither what was there before, nor what is there now.
    assert read.sha256 not in (sha256_of(avatars), hashlib.sha256(before).hexdigest())


def test_the_hash_is_that_of_the_bytes_that_were_measured(workshop):
    """The file is replaced as soon as it was read."""
    workshop.restore(f"after {MEASURE}")
    avatars = workshop.tables / "avatars.csv"
    before = avatars.read_bytes()

    class Replaced:
        name = "avatars.csv"

        def open(self, mode: str) -> Any:
            stream = io.BytesIO(avatars.read_bytes())
            replaced(workshop, "avatars.csv")
            return stream

    inputs = Inputs(workshop.tables / "originals.csv", Replaced(), workshop.tables / "projection.json")
    measured = measure_files(inputs, key="id")
    assert measured.entries["avatars_sha256"] == hashlib.sha256(before).hexdigest()
    assert avatars.read_bytes() != before
