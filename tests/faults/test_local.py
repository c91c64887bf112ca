"""Local files and a local audit store: every operation of measure, check and publish fails in every way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.injecting import RUN, Tally, Trial, kinds, run_up_to_publish
from tests.faults.made import FAILING, PASSING, Workshop, write_tables
from tests.faults.operations import faults_of
from tests.faults.tasks import AVATARISE, CHECK, MEASURE, PUBLISH, Gate

pytest.importorskip("airflow", reason="apache-airflow is not installed (extra `airflow`)")

#: Each part is a test of its own, so that several processes share them.
PARTS = 3
#: Of all faults, what the normal tests inject.
SAMPLE = 60


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    folder = tmp_path_factory.mktemp("faults")
    (folder / "kept").mkdir()
    return Workshop(folder / "work", folder / "kept")


@pytest.fixture(scope="module")
def gate(workshop: Workshop) -> Gate:
    """A gate before which a better run lies in the store; what there is before each of its tasks is kept."""
    originals, avatars, projection = write_tables(workshop.tables, k=25)
    gate = Gate(
        str(originals),
        str(avatars),
        PASSING,
        str(workshop.audit),
        {
            "key": "id",
            "projection": str(projection),
            "groups": ["arm"],
            "remediation": str(workshop.root / "weak" / "weak.csv"),
            "compare_with_previous": True,
        },
    )
    run_up_to_publish(gate, workshop, "earlier", keep=False)
    (workshop.root / "weak" / "weak.csv").unlink()
    write_tables(workshop.tables)
    run_up_to_publish(gate, workshop, RUN, keep=True)
    return gate


def trial(gate: Gate, workshop: Workshop, task_id: str, threshold: float = PASSING) -> Trial:
    start = MEASURE if task_id == AVATARISE else task_id
    return Trial(replace(gate, threshold=threshold), workshop, task_id, start)


TRIALS = [(AVATARISE, PASSING), (MEASURE, PASSING), (CHECK, PASSING), (CHECK, FAILING), (PUBLISH, PASSING)]


@pytest.mark.faults
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize(("task_id", "threshold"), TRIALS)
def test_every_operation_fails_in_every_way(gate, workshop, task_id, threshold, part):
    tried, tally = trial(gate, workshop, task_id, threshold), Tally()
    tally.inject(tried, faults_of(tried.operations)[part::PARTS])
    tally.check()
    tally.note(f"local-{task_id}-{threshold:g}", part, tried)


@pytest.mark.parametrize(("task_id", "threshold"), TRIALS)
def test_some_operations_fail_in_some_way(gate, workshop, task_id, threshold):
    tried, tally = trial(gate, workshop, task_id, threshold), Tally()
    tally.inject(tried, faults_of(tried.operations)[SAMPLE // 2 :: SAMPLE])
    tally.check()
    assert tally.injected


def test_the_recording_holds_what_a_run_is_known_to_do(gate, workshop):
    known = {
        AVATARISE: {"originals.csv", "made.csv", "made.csv.projection.json"},
        MEASURE: {"originals.csv", "avatars.csv", "projection.json", "counts.parquet", "weak.csv"},
        CHECK: {"counts.parquet", "record.json", "report.html"},
        PUBLISH: {"record.json", "avatars.csv"},
    }
    for task_id, names in known.items():
        operations = trial(gate, workshop, task_id).operations
        assert names <= {Path(one.path).name for one in operations}
        assert any(one.kind == "tell" and "return_value" in one.path for one in operations)
        read = [one.path for one in operations if one.kind == "open" and Path(one.path).suffix]
        assert len(read) == len(set(read)), "a file is read twice: another may have taken its place"
    written = kinds(trial(gate, workshop, CHECK).operations)
    assert min(written[kind] for kind in ("create", "write", "fsync", "close", "link", "unlink")) >= 3
    assert written["clock"]


def test_whatever_a_run_leaves_was_recorded(gate, workshop):
    for task_id, number in ((AVATARISE, 2), (MEASURE, 2), (CHECK, 3)):
        tried = trial(gate, workshop, task_id)
        before = workshop.kept / tried.start
        made = {
            str(path)
            for path in workshop.root.rglob("*")
            if path.is_file() and not (before / path.relative_to(workshop.root)).exists()
        }
        assert len(made) == number
        assert made <= {one.path for one in tried.operations if one.kind in ("link", "rename")}
