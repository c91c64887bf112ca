"""Avatars that can be linked although they stand far from their originals, or near all of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from local_cloaking import InputError, avatarise, local_cloaking
from local_cloaking.gate import judge


def table(n: int = 600, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)) @ rng.normal(size=(3, 6)), columns=list("abcdef"))
    frame += 0.3 * rng.normal(size=frame.shape)
    return frame.assign(arm=rng.choice(["x", "y", "z"], n), rare=rng.choice(["no", "yes"], n, p=[0.98, 0.02]))


def verdict(result, threshold: float = 2) -> str:
    carried = result.findings.carried_over
    return judge(
        result.counts,
        individuals=result.n,
        threshold=threshold,
        reason=result.reason,
        peers=None if carried is None else carried.median_peers,
    ).verdict


@pytest.mark.parametrize("k", [2, 20, 100])
def test_honest_avatars_are_told_apart_from_all_of_these(k):
    originals = table()
    result = local_cloaking(originals, avatarise(originals, k=k, ncp=3, seed=1), ncp=3)
    assert result.reason is None
    assert not [warning for warning in result.warnings if "carried over" in warning]
    carried = result.findings.carried_over
    assert carried is None or carried.median_peers > 100


@pytest.mark.parametrize("columns", [["a"], ["a", "b", "c"], ["b", "arm"]])
def test_columns_carried_over_that_single_people_out(columns):
    originals = table()
    avatars = avatarise(originals, k=50, ncp=3, seed=1)
    assert verdict(local_cloaking(originals, avatars, ncp=3)) == "passed"
    avatars[columns] = originals[columns]
    result = local_cloaking(originals, avatars, ncp=3)
    assert result.median >= 2
    assert set(columns) <= set(result.findings.carried_over.columns)
    assert result.findings.carried_over.median_peers == 0
    assert verdict(result) == "not_assessable"
    assert any("carried over unchanged" in warning for warning in result.warnings)


@pytest.mark.parametrize("mean", [0.0, 600.0, 1_020.0, 2_000.0, 30_000.0])
def test_columns_carried_over_in_single_precision(mean):
    # 60 is the spread: with a mean far from zero, float32 rounds by more than the tolerance for copies.
    originals = table()
    rng = np.random.default_rng(8)
    for name in ("x", "y", "z"):
        originals[name] = mean + 60 * rng.normal(size=len(originals))
    avatars = avatarise(originals, k=50, ncp=3, seed=1)
    assert verdict(local_cloaking(originals, avatars, ncp=3)) == "passed"
    for name in ("x", "y", "z"):
        avatars[name] = originals[name].astype("float32").astype("float64")
    result = local_cloaking(originals, avatars, ncp=3)
    assert {"x", "y", "z"} <= set(result.findings.carried_over.columns)
    assert result.findings.carried_over.median_peers == 0
    assert verdict(result) == "not_assessable"


@pytest.mark.parametrize("jitter", [5e-7, 9e-7])
def test_noise_below_the_tolerance_hides_no_column_that_is_carried_over(jitter):
    originals = table()
    rng = np.random.default_rng(8)
    avatars = avatarise(originals, k=50, ncp=3, seed=1)
    values = originals["a"]
    spread = min(values.std(), values.quantile(0.75) - values.quantile(0.25))
    avatars["a"] = values + jitter * spread * rng.choice([-1, 1], size=len(values))
    result = local_cloaking(originals, avatars, ncp=3)
    assert "a" in result.findings.carried_over.columns
    assert result.findings.carried_over.median_peers == 0
    assert verdict(result) == "not_assessable"


def test_a_column_whose_outlier_leaves_it_without_weight():
    originals = table()
    originals["income"] = np.arange(600.0)
    originals.loc[0, "income"] = 1e9
    avatars = avatarise(originals, k=50, ncp=3, seed=1).assign(income=originals["income"])
    assert verdict(local_cloaking(originals, avatars, ncp=3)) == "not_assessable"


def test_categories_carried_over_that_many_share_are_no_link():
    originals = table()
    avatars = avatarise(originals, k=50, ncp=3, seed=1).assign(arm=originals["arm"], rare=originals["rare"])
    result = local_cloaking(originals, avatars, ncp=3)
    assert set(result.findings.carried_over.columns) == {"arm", "rare"}
    assert verdict(result) == "passed"


@pytest.mark.parametrize("noise", [1e-5, 1e-3, 1e-2])
@pytest.mark.parametrize("stored", [1, 6, 12])
def test_copies_with_noise_however_often_a_person_is_stored(noise, stored):
    rng = np.random.default_rng(2)
    originals = pd.DataFrame(np.repeat(rng.normal(size=(200, 4)), stored, axis=0), columns=list("abcd"))
    avatars = originals + rng.normal(scale=noise, size=originals.shape)
    result = local_cloaking(originals, avatars, ncp=3)
    if stored == 1:
        assert verdict(result, 1) == "below_threshold"
    else:
        assert "copies" in result.reason
        assert verdict(result, 1) == "not_assessable"


def test_copies_with_noise_that_are_paired_within_groups():
    rng = np.random.default_rng(3)
    originals = table(1500).assign(site=np.sort(rng.integers(0, 40, 1500)))
    avatars = originals.copy()
    avatars[list("abcdef")] += rng.normal(scale=0.01, size=(1500, 6))
    shuffled = avatars.sample(frac=1, random_state=1).sort_values("site", ignore_index=True, kind="stable")
    result = local_cloaking(originals, shuffled, ncp=3)
    assert "copies" in result.reason
    assert any("sorted by column 'site'" in warning for warning in result.warnings)


def test_a_constant_column_hides_no_copies():
    rng = np.random.default_rng(4)
    originals = pd.DataFrame(np.repeat(rng.normal(size=(300, 4)), 6, axis=0), columns=list("abcd")).assign(
        site=1.0
    )
    result = local_cloaking(originals, originals.assign(site=np.arange(1800.0)), ncp=3)
    assert "no weight" in result.reason
    assert local_cloaking(originals, originals, ncp=3).findings.copy_share == 1.0


def test_true_cells_with_gaps_elsewhere_are_copies():
    rng = np.random.default_rng(5)
    full = pd.DataFrame(
        rng.normal(size=(1000, 4)) @ rng.normal(size=(4, 20)), columns=[f"v{i}" for i in range(20)]
    )
    originals, avatars = (full.mask(rng.random(full.shape) < 0.3) for _ in range(2))
    result = local_cloaking(originals, avatars, ncp=3)
    assert result.findings.copy_share > 0.9
    assert "copies" in result.reason


def test_whole_numbers_too_large_to_be_told_apart_are_refused():
    originals = table().assign(number=np.arange(600) + 9_100_000_000_000_000_000)
    with pytest.raises(InputError, match="too large") as refused:
        local_cloaking(originals, originals)
    assert (refused.value.column, refused.value.rows) == ("number", 600)


def test_a_column_left_out_leaves_the_table_unverified():
    originals = table()
    avatars = avatarise(originals, k=20, ncp=3, seed=1)
    assert local_cloaking(originals, avatars, ncp=3).avatars_table == "verified"
    assert local_cloaking(originals, avatars, ncp=3, drop=["a"]).avatars_table == "not verified"
    extra = originals.assign(number=range(600))
    assert local_cloaking(extra, avatars, ncp=3, drop=["number"]).avatars_table == "verified"


@pytest.mark.parametrize("threshold", ["٥", "5_0", "0x5", "5,0", "1e400"])
def test_text_that_a_reader_takes_for_another_number_is_no_threshold(threshold):
    with pytest.raises(InputError, match="threshold"):
        judge(np.array([5] * 10), individuals=10, threshold=threshold)
