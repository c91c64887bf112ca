"""The list of the weakly protected: only where it is asked for, for its owner alone, and nowhere else."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from local_cloaking.cli import app
from local_cloaking.metric import local_cloaking


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    rng = np.random.default_rng(7)
    originals = pd.DataFrame(rng.normal(size=(400, 3)) * [3, 2, 1], columns=list("abc"))
    avatars = originals + rng.normal(scale=0.4, size=originals.shape)
    for table in (originals, avatars):
        table.insert(0, "id", [f"00PATIENT{i:03d}" for i in range(400)])
    avatars = avatars.sample(frac=1, random_state=2)
    originals.to_csv(tmp_path / "originals.csv", index=False)
    avatars.to_csv(tmp_path / "avatars.csv", index=False)
    return tmp_path / "originals.csv", tmp_path / "avatars.csv"


def test_it_holds_the_lowest_counts_with_their_keys_and_nobody_else_can_read_it(tables, tmp_path):
    target = tmp_path / "inside" / "weak.csv"
    result = run("measure", *tables, "--key", "id", "--ncp", 2, "--remediation", target)
    assert result.exit_code == 0, result.output
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    listed = pd.read_csv(target, dtype={"id": str})
    originals, avatars = (pd.read_csv(table, dtype={"id": str}) for table in tables)
    measured = local_cloaking(originals, avatars, key="id", ncp=2)
    counts = pd.Series(measured.counts, index=originals["id"])
    assert listed.columns.tolist() == ["id", "count"]
    assert counts[listed["id"]].tolist() == listed["count"].tolist() == sorted(listed["count"])
    # A twentieth, all with the last one's count, and everybody with a count of 0.
    assert len(listed) >= max(20, int((measured.counts == 0).sum()))
    assert counts.drop(listed["id"]).min() > listed["count"].max()


def test_nothing_of_it_stands_anywhere_else(tables, tmp_path):
    record, report = tmp_path / "record.json", tmp_path / "report.html"
    result = run(
        "measure", *tables, "--key", "id", "--ncp", 2, "--threshold", 1, "--json", record, "--report", report,
        "--remediation", tmp_path / "weak.csv",
    )  # fmt: skip
    assert "00PATIENT" in (tmp_path / "weak.csv").read_text()
    assert "00PATIENT" not in record.read_text() + report.read_text() + result.output


def test_unasked_there_is_none(tables, tmp_path):
    before = {path.name for path in tmp_path.iterdir()}
    run("measure", *tables, "--key", "id", "--ncp", 2, "--json", tmp_path / "record.json")
    assert {path.name for path in tmp_path.iterdir()} - before == {"record.json"}


def test_without_a_key_the_rows_are_numbered(tables, tmp_path):
    originals, avatars = (pd.read_csv(table) for table in tables)
    avatars.sort_values("id").drop(columns="id").to_csv(tmp_path / "a.csv", index=False)
    originals.drop(columns="id").to_csv(tmp_path / "o.csv", index=False)
    run("measure", tmp_path / "o.csv", tmp_path / "a.csv", "--ncp", 2, "--remediation", tmp_path / "rows.csv")
    run("measure", *tables, "--key", "id", "--ncp", 2, "--remediation", tmp_path / "keys.csv")
    rows, keys = pd.read_csv(tmp_path / "rows.csv"), pd.read_csv(tmp_path / "keys.csv")
    assert keys["id"].tolist() == originals["id"].iloc[rows["row"] - 1].tolist()


def test_of_pairs_that_cannot_be_relied_on_nobody_is_named(tables, tmp_path):
    avatars = pd.read_csv(tables[1])
    avatars["id"] = avatars["id"].sample(frac=1, random_state=3).to_numpy()
    avatars.to_csv(tables[1], index=False)
    result = run("measure", *tables, "--key", "id", "--ncp", 2, "--remediation", tmp_path / "weak.csv")
    assert result.exit_code == 1
    assert (tmp_path / "weak.csv").read_text() == "id,count\n"


def test_it_is_not_written_over_a_table(tables):
    before = tables[0].read_bytes()
    result = run("measure", *tables, "--key", "id", "--ncp", 2, "--remediation", tables[0])
    assert result.exit_code == 2
    assert "written over another file" in result.output
    assert tables[0].read_bytes() == before


def test_nobody_is_named_where_the_record_cannot_be_written(tables, tmp_path):
    (tmp_path / "file").write_text("x")
    result = run(
        "measure", *tables, "--key", "id", "--ncp", 2, "--json", tmp_path / "file" / "r.json",
        "--remediation", tmp_path / "weak.csv",
    )  # fmt: skip
    assert result.exit_code == 2
    assert not (tmp_path / "weak.csv").exists()
