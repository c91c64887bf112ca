"""The command line: every operation of ``measure`` fails in every way."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from local_cloaking.audit.consistency import agrees_with_itself, read_record
from tests.faults.commands import Command, Ended, run_command
from tests.faults.invariants import OF_THE_TRY, earlier_files_are_untouched, nothing_half_written
from tests.faults.made import FAILING, PASSING, Workshop, write_tables
from tests.faults.operations import HARMLESS, Fault, faults_of
from tests.reliability import note_figures

pytest.importorskip("airflow", reason="apache-airflow is not installed (extra `airflow`)")

#: Each part is a test of its own, so that several processes share them.
PARTS = 2
#: Of all faults, what the normal tests inject.
SAMPLE = 60
WRITTEN = ("record.json", "report.html", "weak.csv")
CODES = {PASSING: 0, FAILING: 1}
STARTS = [("new", PASSING), ("again", PASSING), ("new", FAILING)]


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """A folder that holds what an earlier measure, of other avatars, has written."""
    folder = tmp_path_factory.mktemp("command")
    (folder / "kept").mkdir()
    workshop = Workshop(folder / "work", folder / "kept")
    for name, k in (("new", 25), ("again", 12)):
        if name == "again":
            assert command(workshop, PASSING).code == 0
        else:
            workshop.audit.mkdir(parents=True)
        write_tables(workshop.tables, k)
        workshop.keep(name, {})
    return workshop


def command(workshop: Workshop, threshold: float, fault: Fault | None = None) -> Ended:
    originals, avatars, projection = (
        workshop.tables / name for name in ("originals.csv", "avatars.csv", "projection.json")
    )
    out = workshop.audit
    arguments = [
        "measure", originals, avatars, "--key", "id", "--projection", projection, "--threshold", threshold,
        "--json", out / "record.json", "--report", out / "report.html", "--remediation", out / "weak.csv",
    ]  # fmt: skip
    return run_command(Command(tuple(map(str, arguments)), workshop.root, fault))


def survives(
    workshop: Workshop, start: str, threshold: float, expected: dict[str, Any], fault: Fault, kind: str
) -> None:
    workshop.restore(start)
    before = workshop.files()
    ended = command(workshop, threshold, fault)
    assert ended.struck, "nothing failed"
    unlinked = kind == "unlink" or fault.way == "read-only from here on"
    nothing_half_written(workshop.root, leftovers="killed" in fault.way or unlinked, private=("weak.csv",))
    earlier_files_are_untouched(before, workshop.files(), may_change=WRITTEN)
    if ended.code == CODES[threshold] and (ended.code == 0 or fault.way in HARMLESS):
        all_written(workshop, threshold, expected)
    else:
        assert ended.code in (-9, 1, 2, 120), ended
        assert "Traceback" not in ended.said or fault.way in ("unforeseen", "timed out"), ended.said
        assert fault.way not in HARMLESS
    again = command(workshop, threshold)
    assert again.code == CODES[threshold], again
    all_written(workshop, threshold, expected)


def all_written(workshop: Workshop, threshold: float, expected: dict[str, Any]) -> None:
    content = (workshop.audit / "record.json").read_bytes()
    record = read_record(content)
    assert agrees_with_itself(record)
    assert {name: record[name] for name in record if name not in OF_THE_TRY} == expected
    assert hashlib.sha256(content).hexdigest() in (workshop.audit / "report.html").read_text()
    assert len((workshop.audit / "weak.csv").read_text().splitlines()) > 1


@pytest.fixture(scope="module", params=STARTS)
def undisturbed(request, workshop) -> tuple[str, float, Ended, dict[str, Any]]:
    start, threshold = request.param
    workshop.restore(start)
    ended = command(workshop, threshold)
    assert ended.code == CODES[threshold], ended
    record = json.loads((workshop.audit / "record.json").read_bytes())
    return start, threshold, ended, {name: record[name] for name in record if name not in OF_THE_TRY}


def inject(workshop: Workshop, undisturbed: Any, chosen: slice) -> int:
    start, threshold, ended, expected = undisturbed
    lost, faults = [], faults_of(ended.operations)[chosen]
    for fault in faults:
        one = ended.operations[fault.number]
        try:
            survives(workshop, start, threshold, expected, fault, one.kind)
        except AssertionError as error:
            lost.append(f"{one.number} {one.kind} {Path(one.path).name}: {fault.way}: {str(error)[:400]}")
    assert not lost, f"{len(lost)} of {len(faults)}:\n" + "\n".join(lost)
    return len(faults)


@pytest.mark.faults
@pytest.mark.parametrize("part", range(PARTS))
def test_every_operation_fails_in_every_way(workshop, undisturbed, part):
    # The three share the faults: what each of them does is nearly the same.
    share = STARTS.index(undisturbed[:2])
    injected = inject(workshop, undisturbed, slice(share + len(STARTS) * part, None, len(STARTS) * PARTS))
    note_figures(
        f"faults-command-{undisturbed[0]}-{undisturbed[1]:g}-{part}",
        injected=injected,
        survived=injected,
        operations=len(undisturbed[2].operations) if part == 0 else 0,
    )


@pytest.mark.stack
def test_some_operations_fail_in_some_way(workshop, undisturbed):
    assert inject(workshop, undisturbed, slice(SAMPLE // 2, None, SAMPLE))


def test_the_recording_holds_what_the_command_is_known_to_do(undisturbed):
    operations = undisturbed[2].operations
    assert {"originals.csv", "avatars.csv", "projection.json"} <= {
        Path(one.path).name for one in operations if one.kind == "open"
    }
    assert set(WRITTEN) <= {Path(one.path).name for one in operations if one.kind == "rename"}
    assert any(one.kind == "write" and one.path.endswith("stdout") for one in operations)


def test_what_cannot_be_printed_is_no_pass(tmp_path):
    """A real full device, and a real process."""
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    originals, avatars, _ = write_tables(tmp_path)
    arguments = [
        sys.executable,
        "-m",
        "local_cloaking.cli",
        "measure",
        originals,
        avatars,
        "--key",
        "id",
        "--ncp",
        "3",
    ]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, text=True, timeout=300, check=False)
    assert done.returncode not in (0, 1)
    assert "Traceback" not in done.stderr
