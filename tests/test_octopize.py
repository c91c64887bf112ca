"""What Octopize's platform writes: measured in its own space, and known by the names of its files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from local_cloaking import FAMD, InputError, avatarise_in_space, local_cloaking
from local_cloaking.cli import app
from local_cloaking.measuring import Inputs, measure_files

N, NCP = 150, 3


def original_table() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    table = pd.DataFrame(rng.normal(size=(N, 5)).round(4), columns=list("abcde"))
    return table.assign(arm=rng.choice(["placebo", "low", "high"], N))


def with_components(coordinates: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(coordinates, columns=[f"Dim. {number + 1}" for number in range(coordinates.shape[1])])


def write_results(folder: Path, ncp: int = NCP) -> Inputs:
    """Write the files of the platform, with more components than are used."""
    originals = original_table()
    avatars = avatarise_in_space(originals, k=20, ncp=NCP, seed=1).avatars.round(4)
    space = FAMD(6).fit(originals)
    written = {
        "patients.unshuffled-0": avatars,
        "patients.shuffled-0": avatars.sample(frac=1, random_state=1),
        "patients.projections.original-0": with_components(space.transform(originals)),
        "patients.projections.avatars-0": with_components(space.transform(avatars)),
    }
    for name, table in written.items():
        table.to_csv(folder / f"{name}.csv", index=False)
    originals.to_csv(folder / "patients.csv", index=False)
    return Inputs(folder / "patients.csv", folder / "patients.unshuffled-0.csv")


@pytest.fixture
def inputs(tmp_path: Path) -> Inputs:
    return write_results(tmp_path)


def test_measured_in_its_own_space_with_no_fit_of_ours(inputs):
    measured = measure_files(inputs, ncp=NCP)
    result, entries = measured.result, measured.entries
    assert (result.space, result.avatars_table, result.ncp) == ("coordinates", "verified", NCP)
    assert not any("refitted" in warning or "not verified" in warning for warning in result.warnings)
    assert entries["inputs"]["avatar_coordinates"]["name"] == "patients.projections.avatars-0.csv"
    originals, avatars = pd.read_csv(inputs.originals), pd.read_csv(inputs.avatars)
    assert result.counts.tolist() == local_cloaking(originals, avatars, ncp=NCP).counts.tolist()


def test_components_are_taken_by_their_numbers(inputs, tmp_path):
    before = measure_files(inputs, ncp=NCP).result.counts
    for name in ("original", "avatars"):
        path = tmp_path / f"patients.projections.{name}-0.csv"
        pd.read_csv(path)[["Dim. 4", "Dim. 6", "Dim. 1", "Dim. 2", "Dim. 5", "Dim. 3"]].to_csv(path, index=False)
    assert measure_files(inputs, ncp=NCP).result.counts.tolist() == before.tolist()
    pd.read_csv(path).drop(columns="Dim. 2").to_csv(path, index=False)
    with pytest.raises(InputError, match="numbered"):
        measure_files(inputs, ncp=NCP)


@pytest.mark.parametrize("name", ["patients.shuffled-0.csv", "patients.projections.avatars-0.csv"])
def test_other_files_of_the_platform_are_refused_as_tables(inputs, tmp_path, name):
    for places in ((inputs.originals, tmp_path / name), (tmp_path / name, inputs.avatars)):
        with pytest.raises(InputError, match="unshuffled") as caught:
            measure_files(Inputs(*places), ncp=NCP)
        assert caught.value.file == name
    outcome = CliRunner().invoke(app, ["measure", str(inputs.originals), str(tmp_path / name)])
    assert outcome.exit_code == 2
    assert "unshuffled" in outcome.stderr


def test_missing_coordinates_may_still_come(inputs, tmp_path):
    (tmp_path / "patients.projections.original-0.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"patients\.projections\.original-0\.csv"):
        measure_files(inputs, ncp=NCP)
    # Under another name they are any avatars.
    renamed = (tmp_path / "patients.unshuffled-0.csv").rename(tmp_path / "avatars.csv")
    assert measure_files(Inputs(inputs.originals, renamed), ncp=NCP).result.space == "refitted"


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.iloc[np.r_[1, 0, 2:N]],
        lambda table: table.assign(a=table["a"] + 0.01 * (table.index == 7)),
        lambda table: table.sample(frac=1, random_state=1),
    ],
    ids=["two swapped", "a cell", "shuffled under the other name"],
)
def test_coordinates_that_are_not_those_of_the_table_are_not_verified(
    inputs, change: Callable[[pd.DataFrame], pd.DataFrame]
):
    change(pd.read_csv(inputs.avatars)).to_csv(inputs.avatars, index=False)
    result = measure_files(inputs, ncp=NCP).result
    assert result.avatars_table == "not verified"
    assert any("are not those of their rows" in warning for warning in result.warnings)
