"""What `make fuzz` found, each as small as it can be: a clear refusal in the place of a traceback, or worse."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from local_cloaking import InputError, local_cloaking
from local_cloaking.audit.evidence import Evidence, EvidenceError
from local_cloaking.audit.index import FOLDER, IndexEntry, entries, write_entry
from local_cloaking.audit.record import RecordError, digest_of, passed_record, to_bytes
from local_cloaking.audit.statistics import Distribution
from local_cloaking.audit.verify import verify_record
from local_cloaking.cli import app
from local_cloaking.projection import FAMD
from local_cloaking.sources import source_of
from tests.records import record_of


def sealed(record: dict[str, Any]) -> bytes:
    return to_bytes({**record, "digest": digest_of(record)})


# Records ---------------------------------------------------------------------------------------------------------


def test_a_record_of_a_trillion_individuals_takes_no_memory() -> None:
    n = 10**12
    content = sealed({**record_of(), "n": n, "distribution": {"count": [10], "individuals": [n]}})
    assert any(finding.agrees is False for finding in verify_record(content))


def test_individuals_are_not_added_up_beyond_the_integers() -> None:
    # As int64, these add up to 2.
    said = {"count": [10, 11, 12], "individuals": [2**63 - 1, 2**63 - 1, 4]}
    with pytest.raises(ValueError, match="more individuals"):
        Distribution.of(said)
    content = sealed({**record_of(), "n": 2, "threshold": 1.0, "distribution": said})
    with pytest.raises(RecordError):
        passed_record(content, hashlib.sha256(content).hexdigest())


@pytest.mark.parametrize("text", ["\ud800", "\x1b[31mgreen\x9b", "\u202eabc"])
def test_what_a_record_says_cannot_command_the_terminal(tmp_path: Path, text: str) -> None:
    record = {**record_of(), "verdict": text, "local_cloaking": text}
    (tmp_path / "record.json").write_text(json.dumps(record))
    answer = CliRunner().invoke(app, ["verify", str(tmp_path / "record.json")])
    assert answer.exit_code == 1
    assert all(one.isprintable() for line in answer.stdout.splitlines() for one in line)


@pytest.mark.parametrize("measure", ["[]", "[" * 100_000])
def test_counts_beside_which_nothing_is_said_are_no_evidence(measure: str) -> None:
    good = Evidence(np.array([1, 2]), np.array([0, 1]), {"n": 2}).to_bytes()
    import io

    import pyarrow.parquet as pq

    sink = io.BytesIO()
    table = pq.read_table(io.BytesIO(good)).replace_schema_metadata({b"local_cloaking": measure.encode()})
    pq.write_table(table, sink)
    content = sink.getvalue()
    with pytest.raises(EvidenceError, match="not one that a measure wrote"):
        Evidence.from_bytes(content, hashlib.sha256(content).hexdigest())


def test_damaged_counts_are_no_evidence_and_no_fault_of_the_storage() -> None:
    good = Evidence(np.array([1, 2]), np.array([0, 1]), {"n": 2}).to_bytes()
    content = good[:-100] + bytes(92) + good[-8:]
    with pytest.raises(EvidenceError, match="not one that a measure wrote"):
        Evidence.from_bytes(content, hashlib.sha256(content).hexdigest())


@pytest.mark.parametrize("place", [0, 1], ids=["number", "category"])
def test_a_projection_whose_shares_are_nested_once_more_is_refused(place: int) -> None:
    table = pd.DataFrame({"age": [30, 40, 50, 65], "arm": ["a", "b", "a", "b"]})
    content = json.loads(FAMD(1).fit(table).to_json())
    content["shares"][place] = [content["shares"][place]]
    with pytest.raises(InputError, match="not one that this version wrote"):
        FAMD.from_json(json.dumps(content))


# The index -------------------------------------------------------------------------------------------------------

ENTRY = IndexEntry(
    at="2026-11-30T08:09:05.123456+01:00",
    dag_id="trial",
    run_id="manual",
    task_id="check",
    map_index=-1,
    try_number=1,
    data_set="patients",
    verdict="passed",
    warning=False,
    local_cloaking=10.0,
    threshold=5.0,
    n=2139,
    record="record.json",
    record_sha256="0" * 64,
    report=None,
)


@pytest.mark.parametrize(
    "change",
    [
        {"threshold": 10**400},
        {"threshold": -1.0},
        {"local_cloaking": -(10**30)},
        {"n": 10**30},
        {"map_index": -(10**30)},
        {"data_set": "\ud800"},
        {"run_id": "a\udfff"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_an_entry_that_no_page_can_show_is_skipped(tmp_path: Path, change: dict[str, Any]) -> None:
    write_entry(tmp_path, ENTRY)
    (path,) = (tmp_path / FOLDER).rglob("*.json")
    path.write_text(json.dumps({**asdict(ENTRY), **change}))
    assert entries(tmp_path) == []


def test_a_pipe_in_the_place_of_an_entry_keeps_nobody_waiting(tmp_path: Path) -> None:
    import os

    write_entry(tmp_path, ENTRY)
    (path,) = (tmp_path / FOLDER).rglob("*.json")
    path.unlink()
    os.mkfifo(path)
    assert entries(tmp_path) == []


# Options ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "a\x00b",
        "\ud800",
        "nope://x",
        "x://[",
        "x://[#y",
        "postgresql://[/x#t",
        "postgresql://u:p@/x#t",
    ],
)
def test_a_name_that_names_nothing_is_refused(name: str) -> None:
    with pytest.raises(InputError):
        source_of(name)


@pytest.mark.parametrize("names", ["a\rb", "a\nb,\rc", '"' + "a" * 200_000])
@pytest.mark.parametrize("option", ["--categorical", "--drop", "--groups"])
def test_a_list_of_names_that_is_none_is_refused(tmp_path: Path, option: str, names: str) -> None:
    for name in ("originals", "avatars"):
        pd.DataFrame({"x": range(12)}).to_csv(tmp_path / f"{name}.csv", index=False)
    files = [str(tmp_path / f"{name}.csv") for name in ("originals", "avatars")]
    answer = CliRunner().invoke(app, ["measure", *files, f"{option}={names}"])
    assert (answer.exit_code, type(answer.exception)) == (2, SystemExit)
    assert answer.stderr.startswith("refused: ")


@pytest.mark.parametrize("record", ["sql://warehouse/record", "nope://record.json", "memory://absent.json"])
@pytest.mark.parametrize("command", ["verify", "report"])
def test_a_record_that_is_no_file_is_refused(tmp_path: Path, command: str, record: str) -> None:
    more = ["--output", str(tmp_path / "report.html")] if command == "report" else []
    answer = CliRunner().invoke(app, [command, record, *more])
    assert (answer.exit_code, type(answer.exception)) == (2, SystemExit)


def test_more_components_than_a_machine_can_count_are_refused() -> None:
    frame = pd.DataFrame(np.random.default_rng(1).normal(size=(30, 3)), columns=list("abc"))
    with pytest.raises(InputError, match="only 3 independent components"):
        local_cloaking(frame, frame, ncp=2**70)


class TestOperators:
    """Their arguments, as rendered."""

    @pytest.fixture(autouse=True)
    def _airflow(self) -> None:
        pytest.importorskip("airflow", reason="apache-airflow is not installed (extra `airflow`)")

    @pytest.mark.parametrize(
        "value", [5, 1.5, True, "[" * 100_000, "[1, 2", "a\rb"], ids=lambda value: f"{value!s:.10}"
    )
    def test_names_that_are_none(self, value: Any) -> None:
        from local_cloaking.airflow.arguments import names

        with pytest.raises(InputError, match="is not a list"):
            names(value, "categorical")

    @pytest.mark.parametrize("value", ["[" * 100_000, '{"a":' * 100_000], ids=["lists", "objects"])
    def test_a_result_that_is_too_deep(self, value: str) -> None:
        from local_cloaking.airflow.arguments import mapping

        with pytest.raises(InputError, match="is not the result"):
            mapping(value, "measured", "measure")

    @pytest.mark.parametrize("value", [5, True, ["a"], {"a": 1}, None, "a\x00b", "nope://x", "x://["])
    def test_what_names_no_table(self, value: Any) -> None:
        from local_cloaking.airflow.arguments import table

        with pytest.raises(InputError):
            table(value, "originals")

    def test_a_number_that_python_cannot_write(self) -> None:
        from local_cloaking.airflow.arguments import whole

        with pytest.raises(InputError, match="too large"):
            whole(10**5000, "k")

    @pytest.mark.parametrize("record", ["memory://record.json", "x" * 300])
    def test_a_record_out_of_reach(self, record: str) -> None:
        from local_cloaking.airflow import require_passed

        with pytest.raises(OSError, match=r"record|File name"):
            require_passed({"record": record, "record_sha256": "0" * 64}, "avatars.csv")
