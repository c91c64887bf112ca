"""Local Cloaking over the number of components."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from local_cloaking import avatarise_in_space, ladder, local_cloaking
from local_cloaking.cli import app
from tests.people import CATEGORIES, actg175


def test_each_rung_is_the_measure_with_so_many_components():
    table = actg175()
    made = avatarise_in_space(table, k=20, ncp=5, seed=1, categorical=CATEGORIES)
    result = local_cloaking(table, made.avatars, projection=made.projection, ladder=True)
    assert result.ladder is not None
    assert result.ladder.individuals == 2139
    expected = [
        local_cloaking(table, made.avatars, ncp=ncp, categorical=CATEGORIES).median for ncp in range(1, 11)
    ]
    assert list(result.ladder.rungs) == expected
    assert result.ladder.rungs[4] == result.median


def test_the_ladder_ends_at_the_rank_and_leaves_out_arbitrary_cuts():
    factorial = pd.DataFrame(itertools.product("ab", "cd", range(20)), columns=["one", "two", "x"])
    # `one` and `two` explain equal shares: no first component without the second.
    rng = np.random.default_rng(2)
    avatars = factorial.assign(x=factorial["x"] + rng.normal(size=80))
    result = local_cloaking(factorial, avatars, ncp=3, ladder=True)
    assert result.ladder is not None
    assert len(result.ladder.rungs) == 3
    assert result.ladder.rungs[2] == result.median
    assert None in result.ladder.rungs[:2]


def test_where_no_cut_up_to_ten_is_possible_no_rung_has_a_figure():
    # Twelve columns of a complete factorial explain equal shares.
    factorial = pd.DataFrame(itertools.product([0.0, 1.0], repeat=12), columns=list("abcdefghijkl"))
    avatars = factorial + np.random.default_rng(4).normal(scale=0.4, size=factorial.shape)
    result = local_cloaking(factorial, avatars, ncp=12, ladder=True)
    assert result.ladder is not None
    assert result.ladder.rungs == (None,) * 10


def test_from_bare_coordinates_there_is_a_rung_for_each_column():
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"a": rng.normal(size=60)})
    x = rng.normal(size=(60, 4))
    y = x + rng.normal(scale=0.5, size=(60, 4))
    result = local_cloaking(table, table + 0.5, coordinates=(x, y), ncp=2, ladder=True)
    assert result.ladder is not None
    expected = [local_cloaking(table, table + 0.5, coordinates=(x, y), ncp=ncp).median for ncp in (1, 2, 3, 4)]
    assert list(result.ladder.rungs) == expected


def test_a_large_table_is_sampled_but_for_the_components_in_use(monkeypatch):
    rng = np.random.default_rng(4)
    x = pd.DataFrame(rng.normal(size=(3000, 4)) * [4, 3, 2, 1], columns=list("abcd"))
    y = x + rng.normal(scale=0.4, size=x.shape)
    whole = local_cloaking(x, y, ncp=2, ladder=True).ladder
    monkeypatch.setattr(ladder, "LADDER_SAMPLED_ROWS", 1000)
    monkeypatch.setattr(ladder, "LADDER_SAMPLE", 800)
    sampled = local_cloaking(x, y, ncp=2, ladder=True)
    assert whole is not None
    assert sampled.ladder is not None
    assert sampled.ladder.individuals == 800
    assert sampled.ladder.rungs[1] == sampled.median == whole.rungs[1]
    assert sampled.ladder.rungs != whole.rungs
    assert sampled.ladder.rungs == pytest.approx(whole.rungs, rel=0.35)
    assert local_cloaking(x, y, ncp=2, ladder=True).ladder == sampled.ladder


def test_there_is_none_unasked_and_none_for_shuffled_avatars():
    rng = np.random.default_rng(5)
    x = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    near = x + rng.normal(scale=0.3, size=x.shape)
    assert local_cloaking(x, near, ncp=2).ladder is None
    assert local_cloaking(x, x.sample(frac=1, random_state=1), ncp=2, ladder=True).ladder is None


def test_all_alike_is_one_rung():
    same = pd.DataFrame({"age": [50.0] * 10})
    result = local_cloaking(same, same, ladder=True)
    assert result.ladder is not None
    assert result.ladder.rungs == (9.0,)


def test_the_record_has_it_with_the_number_of_components(tmp_path: Path):
    rng = np.random.default_rng(6)
    x = pd.DataFrame(rng.normal(size=(100, 3)) * [3, 2, 1], columns=list("abc"))
    x.to_csv(tmp_path / "o.csv", index=False)
    (x + rng.normal(scale=0.5, size=x.shape)).to_csv(tmp_path / "a.csv", index=False)
    arguments = ["measure", tmp_path / "o.csv", tmp_path / "a.csv", "--ncp", 2, "--json", tmp_path / "r.json"]
    CliRunner().invoke(app, [str(argument) for argument in arguments])
    record = json.loads((tmp_path / "r.json").read_text())
    assert [rung["ncp"] for rung in record["ladder"]["rungs"]] == [1, 2, 3]
    assert record["ladder"]["rungs"][1]["local_cloaking"] == record["local_cloaking"]
