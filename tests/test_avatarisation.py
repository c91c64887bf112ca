"""The published avatarisation: the table it gives, the weights it draws, the figures it must come to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from local_cloaking.avatarisation import (
    _nearest_others,
    avatarise,
    avatarise_in_space,
    checked_k,
    random_weights,
)
from local_cloaking.errors import InputError
from local_cloaking.metric import local_cloaking
from local_cloaking.projection import FAMD
from tests.people import CATEGORIES, actg175


def table_of(n: int = 80, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 3))
    return pd.DataFrame(
        {
            "age": (z[:, 0] * 10 + 50).round().astype(int),
            "dose": np.exp(z[:, 1]),
            "arm": np.where(z[:, 0] > 0.4, "new", np.where(z[:, 2] > 0, "old", "none")),
            "smoker": z[:, 2] + rng.normal(size=n) > 0.5,
            "site": pd.Categorical(np.where(z[:, 1] > 0, "x", "y")),
            "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta((z[:, 1] * 1e6).astype(int), unit="s"),
            "visits": pd.array((z[:, 2] ** 2 * 3).astype(int), dtype="Int64"),
        }
    )


# The table -----------------------------------------------------------------------------------------------------


def test_names_order_types_and_number_of_rows_are_those_of_the_originals() -> None:
    originals = table_of()
    avatars = avatarise(originals, k=5, ncp=3, seed=0)
    assert list(avatars.columns) == list(originals.columns)
    assert len(avatars) == len(originals)
    assert avatars.drop(columns="site").dtypes.equals(originals.drop(columns="site").dtypes)
    assert isinstance(avatars["site"].dtype, pd.CategoricalDtype)
    for name in ("arm", "smoker", "site"):
        assert set(avatars[name]) <= set(originals[name])
    assert avatars["age"].between(originals["age"].min() - 10, originals["age"].max() + 10).all()


def test_integer_column_names_stay_integers() -> None:
    originals = table_of()[["age", "dose"]].set_axis([3, 7], axis="columns")
    assert avatarise(originals, k=5, ncp=2, seed=0).columns.tolist() == [3, 7]


def test_missing_numbers_come_out_filled() -> None:
    originals = table_of()
    originals.loc[:5, ["dose", "visits"]] = None
    assert avatarise(originals, k=5, ncp=3, seed=0)[["dose", "visits"]].notna().all().all()


def test_seed_decides_the_avatars() -> None:
    originals = table_of()
    first = avatarise(originals, k=5, ncp=3, seed=7)
    pd.testing.assert_frame_equal(avatarise(originals, k=5, ncp=3, seed=7), first)
    assert not avatarise(originals, k=5, ncp=3, seed=8)["dose"].equals(first["dose"])


def test_without_a_seed_avatars_differ_each_time() -> None:
    originals = table_of()
    assert not avatarise(originals, k=5, ncp=3)["dose"].equals(avatarise(originals, k=5, ncp=3)["dose"])


def test_originals_are_not_changed() -> None:
    originals = table_of()
    copy = originals.copy()
    avatarise(originals, k=5, ncp=3, seed=0)
    pd.testing.assert_frame_equal(originals, copy)


def test_key_is_carried_over_at_its_place_and_not_projected() -> None:
    originals = table_of()
    keyed = originals.copy()
    keyed.insert(2, "id", [f"p{i:03d}" for i in range(80)])
    made = avatarise_in_space(keyed, k=5, ncp=3, seed=1, key="id")
    assert list(made.avatars.columns) == list(keyed.columns)
    assert made.avatars["id"].tolist() == keyed["id"].tolist()
    assert "id" not in [column.name for column in made.projection.columns_]
    pd.testing.assert_frame_equal(made.avatars.drop(columns="id"), avatarise(originals, k=5, ncp=3, seed=1))
    with pytest.raises(InputError) as caught:
        avatarise_in_space(originals, k=5, key="id")
    assert caught.value.column == "id"


def test_projection_that_is_kept_is_the_one_of_the_originals() -> None:
    originals = table_of()
    made = avatarise_in_space(originals, k=5, ncp=3, seed=1)
    assert made.projection.to_json() == FAMD(3).fit(originals).to_json()


# k -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "k", [0, -1, 80, 1_000, True, np.bool_(True), None, "", "ten", "2.5", 2.5, float("nan"), float("inf"), [5]]
)
def test_k_that_is_no_whole_number_of_other_originals_is_refused(k: Any) -> None:
    with pytest.raises(InputError, match="from 1 to 79"):
        avatarise(table_of(), k=k, ncp=2, seed=0)


@pytest.mark.parametrize("k", [1, 79, "20", 20.0, np.int64(20)])
def test_k_may_be_any_whole_number_of_other_originals(k: Any) -> None:
    assert type(checked_k(k, 80)) is int
    assert len(avatarise(table_of(), k=k, ncp=2, seed=0)) == 80


def test_one_neighbour_gives_the_nearest_other_original() -> None:
    originals = pd.DataFrame({"x": [0.0, 1.0, 10.0, 12.0, 30.0]})
    avatars = avatarise(originals, k=1, ncp=1, seed=0)
    np.testing.assert_allclose(avatars["x"], [1.0, 0.0, 12.0, 10.0, 12.0])


def test_an_individual_alone_has_no_neighbours() -> None:
    with pytest.raises(InputError):
        avatarise(pd.DataFrame({"x": [1.0]}), k=1, ncp=1)


# Neighbours ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize("levels", [2, 4, 1_000])
def test_neighbours_are_the_nearest_others_and_never_the_original_itself(k: int, levels: int) -> None:
    rng = np.random.default_rng(k)
    x = rng.integers(0, levels, size=(120, 2)).astype(float)  # with few levels, many copies of each row
    rows, distances = _nearest_others(x, k)
    assert rows.shape == distances.shape == (120, k)
    assert not (rows == np.arange(120)[:, None]).any()
    assert all(len(set(row)) == k for row in rows)
    to_all = np.sqrt(((x[:, None] - x[None, :]) ** 2).sum(axis=2))
    np.testing.assert_allclose(distances, to_all[np.arange(120)[:, None], rows])
    np.fill_diagonal(to_all, np.inf)
    np.testing.assert_allclose(np.sort(distances, axis=1), np.sort(to_all, axis=1)[:, :k])


def test_copies_of_a_row_are_neighbours_but_the_row_itself_is_not() -> None:
    rows, distances = _nearest_others(np.zeros((50, 3)), 5)
    assert not (rows == np.arange(50)[:, None]).any()
    assert not distances.any()


# Weights -------------------------------------------------------------------------------------------------------


def test_weights_sum_to_one_and_are_positive() -> None:
    distances = np.random.default_rng(0).random((500, 20)) + 0.01
    weights = random_weights(distances, np.random.default_rng(1))
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    assert (weights > 0).all()


def test_weights_follow_the_published_law() -> None:
    """Compare with weights drawn one by one from the formula."""
    distances = np.array([1.0, 2.0, 4.0])
    n, rng = 60_000, np.random.default_rng(2)
    drawn = np.empty((n, 3))
    for i in range(n):
        p = rng.exponential(size=3) * 0.5 ** (rng.permutation(3) + 1) / distances
        drawn[i] = p / p.sum()
    weights = random_weights(np.tile(distances, (n, 1)), np.random.default_rng(3))
    np.testing.assert_allclose(weights.mean(axis=0), drawn.mean(axis=0), atol=0.006)
    np.testing.assert_allclose(weights.std(axis=0), drawn.std(axis=0), atol=0.006)


def test_neighbours_at_one_distance_weigh_the_same_in_the_mean_but_not_in_one_draw() -> None:
    weights = random_weights(np.ones((40_000, 4)), np.random.default_rng(4))
    np.testing.assert_allclose(weights.mean(axis=0), 0.25, atol=0.006)
    # Ranks halve: one neighbour outweighs the others far more often than exponential weights alone would.
    assert weights.max(axis=1).mean() > 0.6


def test_neighbour_in_the_same_place_outweighs_all_others() -> None:
    weights = random_weights(np.array([[0.0, 1.0, 5.0]] * 200), np.random.default_rng(5))
    assert (weights[:, 0] > 0.999).all()


@pytest.mark.parametrize("distance", [0.0, 5e-324, 1e-300, 1e300])
def test_weights_are_numbers_whatever_the_distances(distance: float) -> None:
    # A weight of R / (2 d) overflows for copies of one row: once in some thousand rows, were d merely tiny.
    weights = random_weights(np.full((50_000, 3), distance), np.random.default_rng(6))
    np.testing.assert_allclose(weights.sum(axis=1), 1)


def test_table_of_many_copies_gives_avatars_without_gaps() -> None:
    originals = pd.DataFrame({"x": np.repeat([0.0, 1.0, 5.0], 4_000), "y": np.repeat([3.0, 1.0, 2.0], 4_000)})
    avatars = avatarise(originals, k=5, ncp=2, seed=0)
    np.testing.assert_allclose(avatars, originals, atol=1e-9)


# Figures -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "least", "most"), [(5, 5, 6), (20, 9, 11), (50, 16, 20)])
def test_local_cloaking_of_actg_175_is_that_of_the_literature(k: int, least: float, most: float) -> None:
    originals = actg175()
    assert originals.shape == (2139, 26)
    results = []
    for seed in range(5):
        made = avatarise_in_space(originals, k=k, ncp=5, seed=seed, categorical=CATEGORIES)
        results.append(local_cloaking(originals, made.avatars, projection=made.projection, categorical=CATEGORIES))
    assert all(result.reason is None and result.space == "handed over" for result in results)
    assert least <= np.median([result.median for result in results]) <= most
    assert all(least - 1 <= result.median <= most + 1 for result in results)
    if k == 20:
        assert all(91 <= 100 * np.mean(result.counts > 0) <= 93.5 for result in results)
