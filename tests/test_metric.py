"""Local Cloaking of two tables: the figure, and what it must not depend on."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_cloaking.avatarisation import avatarise_in_space
from local_cloaking.errors import InputError
from local_cloaking.metric import LocalCloaking, hidden_rate, local_cloaking
from local_cloaking.projection import FAMD


def originals_of(n: int = 150, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 3))
    return pd.DataFrame(
        {
            "age": z[:, 0] * 10 + 50,
            "weight": z[:, 0] * 5 + z[:, 1] * 8 + 70,
            "dose": np.exp(z[:, 2]),
            "arm": np.where(z[:, 1] > 0.4, "new", np.where(z[:, 2] > 0, "old", "none")),
            "smoker": z[:, 2] + rng.normal(size=n) > 0.5,
        }
    )


def avatars_of(originals: pd.DataFrame, *, k: int = 8, ncp: int = 3, seed: int = 1) -> pd.DataFrame:
    return avatarise_in_space(originals, k=k, ncp=ncp, seed=seed).avatars


def numbers(values: Any) -> pd.DataFrame:
    return pd.DataFrame({"x": np.asarray(values, dtype=float)})


def measured(originals: Any, avatars: Any, **options: Any) -> LocalCloaking:
    return local_cloaking(numbers(originals), numbers(avatars), ncp=1, **options)


# The figure ----------------------------------------------------------------------------------------------------


def test_counts_are_those_of_the_formula() -> None:
    # Distances on a line; the counts were taken by hand.
    result = measured([0, 10, 20, 30], [11, 12, 19, 50])
    assert result.counts.tolist() == [0, 1, 0, 3]
    assert result.strict_counts.tolist() == [0, 1, 0, 3]
    assert result.n == 4
    assert result.counts.dtype == np.int64


def test_median_of_an_even_number_is_the_mean_of_the_two_middle_counts() -> None:
    result = measured([0, 10, 20, 30], [11, 12, 19, 50])
    assert result.median == 0.5
    assert type(result.median) is float
    assert measured([0, 10, 20, 30, 40], [11, 12, 19, 50, 40]).median == 0


def test_strict_median_leaves_ties_out() -> None:
    result = measured([0, 0, 0, 10], [1, 1, -1, 10])
    assert result.counts.tolist() == [2, 2, 2, 0]
    assert result.strict_counts.tolist() == [0, 0, 0, 0]
    assert (result.median, result.strict_median) == (2.0, 0.0)


@pytest.mark.parametrize("n", [1, 2, 3, 50])
def test_identical_rows_have_all_others_as_near(n: int) -> None:
    same = pd.DataFrame({"age": [0.1] * n, "arm": ["a"] * n})
    result = local_cloaking(same, same, ncp=2)
    assert result.counts.tolist() == [n - 1] * n
    assert result.strict_median == 0
    assert result.reason is not None  # nothing can be told apart: this is no good value


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_shuffled_avatars_score_about_half_of_the_others_and_are_noticed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    originals = pd.DataFrame(rng.normal(size=(600, 4)), columns=list("abcd"))
    avatars = originals + rng.normal(scale=0.2, size=originals.shape)
    assert local_cloaking(originals, avatars, ncp=4).reason is None
    shuffled = avatars.sample(frac=1, random_state=seed)
    result = local_cloaking(originals, shuffled, ncp=4)
    assert result.median == pytest.approx(599 / 2, rel=0.15)
    assert result.looks_shuffled
    assert "shuffled" in result.reason


# Hidden rate ---------------------------------------------------------------------------------------------------


def rate_by_enumeration(squares: np.ndarray) -> float:
    """Let the attacker pick each of the nearest avatars once."""
    right = []
    for i, row in enumerate(squares):
        nearest = np.flatnonzero(row == row.min())
        right.append(np.mean(nearest == i))
    return 100 * (1 - float(np.mean(right)))


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=12))
def test_hidden_rate_is_that_of_an_attacker_who_links_to_the_nearest(rows: list[tuple[int, int]]) -> None:
    x, y = np.array(rows).T
    squares = (x[:, None] - y[None, :]) ** 2
    counts = (squares <= squares.diagonal()[:, None]).sum(axis=1) - 1
    strict = (squares < squares.diagonal()[:, None]).sum(axis=1)
    assert hidden_rate(counts, strict) == pytest.approx(rate_by_enumeration(squares), abs=1e-9)


def test_hidden_rate_is_the_mean_of_many_attacks() -> None:
    rng = np.random.default_rng(4)
    x = rng.integers(0, 12, size=60).astype(float)
    y = np.round(x + rng.normal(size=60))
    result = measured(x, y)
    squares = (x[:, None] - y[None, :]) ** 2
    # Ties are broken at random: a number below 1 added to whole squares does that.
    attacks = [
        np.mean((squares + rng.random(squares.shape)).argmin(axis=1) != np.arange(60)) for _ in range(4_000)
    ]
    assert result.hidden_rate == pytest.approx(100 * np.mean(attacks), abs=0.5)
    assert 0 < result.hidden_rate < 100
    assert result.hidden_rate != pytest.approx(100 * np.mean(result.counts > 0), abs=1)


def test_hidden_rate_runs_from_nought_to_all_but_a_guess() -> None:
    assert measured(np.arange(20) ** 2, np.arange(20) ** 2).hidden_rate == 0
    same = numbers([1.0] * 20)
    assert local_cloaking(same, same, ncp=1).hidden_rate == pytest.approx(95)
    assert measured([0, 10], [10, 0]).hidden_rate == 100


# What it does not depend on --------------------------------------------------------------------------------------


def test_rows_of_both_tables_may_stand_in_any_order_together() -> None:
    originals = originals_of()
    avatars = avatars_of(originals)
    order = np.random.default_rng(3).permutation(len(originals))
    result = local_cloaking(originals, avatars, ncp=3)
    other = local_cloaking(originals.iloc[order], avatars.iloc[order], ncp=3)
    np.testing.assert_array_equal(other.counts, result.counts[order])
    np.testing.assert_array_equal(other.strict_counts, result.strict_counts[order])
    assert other.median == result.median


def test_columns_may_stand_in_any_order() -> None:
    originals = originals_of()
    avatars = avatars_of(originals)
    result = local_cloaking(originals, avatars, ncp=3)
    for order in itertools.islice(itertools.permutations(originals.columns), 0, 120, 17):
        other = local_cloaking(originals[list(order)], avatars[list(order)[::-1]], ncp=3)
        np.testing.assert_array_equal(other.counts, result.counts)


@pytest.mark.parametrize("scale", [1e-6, 0.3048, 1e9, -1.0])
def test_numbers_may_have_any_unit(scale: float) -> None:
    originals = originals_of()
    avatars = avatars_of(originals)
    result = local_cloaking(originals, avatars, ncp=3)
    other = [table.assign(age=table["age"] * scale + 32, dose=table["dose"] * 7) for table in (originals, avatars)]
    np.testing.assert_array_equal(local_cloaking(*other, ncp=3).counts, result.counts)


def test_index_of_the_tables_does_not_pair_them() -> None:
    originals = originals_of()
    avatars = avatars_of(originals)
    result = local_cloaking(originals, avatars, ncp=3)
    other = local_cloaking(originals, avatars.set_index(pd.Index(range(1_000, 1_150)[::-1])), ncp=3)
    np.testing.assert_array_equal(other.counts, result.counts)


def test_input_is_not_changed() -> None:
    originals = originals_of().assign(id=range(150))
    avatars = avatars_of(originals.drop(columns="id")).assign(id=range(150))
    copies = originals.copy(), avatars.copy()
    local_cloaking(originals, avatars, ncp=3, key="id")
    pd.testing.assert_frame_equal(originals, copies[0])
    pd.testing.assert_frame_equal(avatars, copies[1])


# Pairing -------------------------------------------------------------------------------------------------------


def test_pairing_by_key_is_pairing_by_row_order_once_sorted() -> None:
    originals = originals_of().assign(id=[f"{i:04d}" for i in range(150)])
    avatars = avatars_of(originals.drop(columns="id")).assign(id=originals["id"])
    by_order = local_cloaking(originals.drop(columns="id"), avatars.drop(columns="id"), ncp=3)
    shuffled = avatars.sample(frac=1, random_state=0)
    by_key = local_cloaking(originals, shuffled, ncp=3, key="id")
    np.testing.assert_array_equal(by_key.counts, by_order.counts)
    # The pairs are judged, not the order in which the rows happen to stand.
    assert by_key.reason is None
    assert by_key.evidence.association == pytest.approx(by_order.evidence.association)
    assert by_key.findings.copy_share == by_order.findings.copy_share
    assert by_key.pairing == "key 'id'"
    assert any("take it out" in warning for warning in by_key.warnings)
    assert by_order.pairing == "row order"
    assert "id" not in [column.name for column in by_key.findings.columns]


def test_pairing_table_with_key_columns_of_other_names() -> None:
    originals = originals_of()
    avatars = avatars_of(originals)
    expected = local_cloaking(originals, avatars, ncp=3).counts
    order = np.random.default_rng(5).permutation(150)
    patients = np.arange(150)
    one = originals.assign(patient=patients)
    other = avatars.assign(avatar=[f"a{i}" for i in range(150)]).iloc[order]
    pairing = pd.DataFrame({"patient": patients, "avatar": [f"a{i}" for i in patients]})
    pairing = pairing.sample(frac=1, random_state=2)
    result = local_cloaking(one, other, ncp=3, pairing=pairing)
    np.testing.assert_array_equal(result.counts, expected)
    assert "pairing table" in result.pairing
    with pytest.raises(InputError, match="not in the pairing table"):
        local_cloaking(one, other, ncp=3, pairing=pairing.iloc[1:])


def test_pairing_table_with_one_key_column_for_both_tables() -> None:
    originals = originals_of()
    avatars = avatars_of(originals)
    expected = local_cloaking(originals, avatars, ncp=3).counts
    pairing = pd.DataFrame({"of original": range(150), "of avatar": range(1_149, 999, -1)})
    one = originals.assign(id=pairing["of original"])
    other = avatars.assign(id=pairing["of avatar"]).iloc[::-1]
    result = local_cloaking(one, other, ncp=3, pairing=pairing, key="id")
    np.testing.assert_array_equal(result.counts, expected)


def test_pairing_table_needs_two_columns() -> None:
    table = originals_of()
    with pytest.raises(InputError, match="3 columns"):
        local_cloaking(table, table, pairing=pd.DataFrame({"a": [1], "b": [1], "c": [1]}))


@pytest.mark.parametrize("side", [0, 1])
def test_key_that_is_absent_is_refused(side: int) -> None:
    tables = [originals_of(), originals_of()]
    tables[side] = tables[side].assign(id=range(150))
    with pytest.raises(InputError, match="key is not in") as caught:
        local_cloaking(*tables, key="id")
    assert caught.value.column == "id"


# The projection ------------------------------------------------------------------------------------------------


def test_projection_handed_over_and_refitted_give_the_same_counts() -> None:
    originals = originals_of()
    made = avatarise_in_space(originals, k=8, ncp=3, seed=1)
    handed = local_cloaking(originals, made.avatars, projection=made.projection)
    from_file = local_cloaking(originals, made.avatars, projection=FAMD.from_json(made.projection.to_json()))
    refitted = local_cloaking(originals, made.avatars, ncp=3)
    np.testing.assert_array_equal(handed.counts, refitted.counts)
    np.testing.assert_array_equal(handed.counts, from_file.counts)
    assert (handed.space, refitted.space) == ("handed over", "refitted")
    assert handed.ncp == 3
    assert any("space: refitted" in warning for warning in refitted.warnings)
    assert not any("refitted" in warning for warning in handed.warnings)
    assert handed.avatars_table == refitted.avatars_table == "verified"
    np.testing.assert_allclose(handed.explained, refitted.explained)
    assert 0 < sum(handed.explained) < 1


def test_fewer_components_than_the_projection_has_are_warned_of_and_more_are_refused() -> None:
    originals = originals_of()
    made = avatarise_in_space(originals, k=8, ncp=3, seed=1)
    result = local_cloaking(originals, made.avatars, projection=made.projection, ncp=2)
    np.testing.assert_array_equal(result.counts, local_cloaking(originals, made.avatars, ncp=2).counts)
    assert any("ncp is 2" in warning for warning in result.warnings)
    with pytest.raises(InputError) as caught:
        local_cloaking(originals, made.avatars, projection=made.projection, ncp=4)
    assert caught.value.remedy == "use ncp=3"


@pytest.mark.parametrize(
    "other",
    [
        originals_of(seed=8),
        originals_of().iloc[:-1],
        originals_of().assign(age=originals_of()["age"] * 1.001),
        originals_of().assign(arm=originals_of()["arm"].replace("new", "newer")),
        originals_of().drop(columns="dose"),
        originals_of().rename(columns={"dose": "Dose"}),
    ],
    ids=["other people", "one less", "other ages", "other categories", "fewer columns", "other name"],
)
def test_projection_of_another_table_is_refused(other: pd.DataFrame) -> None:
    originals = originals_of()
    with pytest.raises(InputError, match="fitted on"):
        local_cloaking(originals, originals, projection=FAMD(3).fit(other))


def test_number_of_the_projection_cannot_be_declared_a_category() -> None:
    table = originals_of().assign(visits=np.arange(150) % 4)
    projection = FAMD(3).fit(table)
    with pytest.raises(InputError) as caught:
        local_cloaking(table, table, projection=projection, categorical=["visits"])
    assert caught.value.column == "visits"


def test_five_components_by_default() -> None:
    table = originals_of()
    assert local_cloaking(table, avatars_of(table)).ncp == 5


# Bare coordinates ----------------------------------------------------------------------------------------------


def test_coordinates_are_verified_where_they_are_those_of_the_tables() -> None:
    originals = originals_of()
    avatars = avatars_of(originals)
    famd = FAMD(3).fit(originals)
    coordinates = famd.transform(originals), famd.transform(avatars)
    result = local_cloaking(originals, avatars, ncp=3, coordinates=coordinates)
    np.testing.assert_array_equal(result.counts, local_cloaking(originals, avatars, ncp=3).counts)
    assert result.space == "coordinates"
    assert result.avatars_table == "verified"
    assert not any("avatars_table" in warning for warning in result.warnings)
    assert result.explained == ()
    # Of another table: as by a slip, the rows in another order, or only one of them.
    for rows in (np.arange(150)[::-1], np.r_[1, 0, 2:150]):
        other = local_cloaking(originals, avatars.iloc[rows], ncp=3, coordinates=coordinates)
        assert other.avatars_table == "not verified"
        assert any("avatars_table: not verified" in warning for warning in other.warnings)


def test_coordinates_that_are_all_zero_score_highest_and_are_not_assessable() -> None:
    originals = originals_of()
    coordinates = FAMD(3).fit_transform(originals), np.zeros((150, 3))
    result = local_cloaking(originals, avatars_of(originals), ncp=3, coordinates=coordinates)
    assert result.median == 149
    assert "nothing can be told apart" in result.reason


def test_coordinates_follow_the_key_of_their_rows() -> None:
    originals = originals_of().assign(id=range(150))
    avatars = avatars_of(originals.drop(columns="id")).assign(id=range(150))
    famd = FAMD(3).fit(originals.drop(columns="id"))
    expected = local_cloaking(originals, avatars, ncp=3, key="id").counts
    backwards = avatars.iloc[::-1]
    coordinates = [famd.transform(table.drop(columns="id")) for table in (originals, backwards)]
    result = local_cloaking(originals, backwards, ncp=3, key="id", coordinates=tuple(coordinates))
    np.testing.assert_array_equal(result.counts, expected)


@pytest.mark.parametrize(
    "coordinates",
    [
        (np.zeros((150, 2)), np.zeros((150, 3))),
        (np.zeros((150, 3)), np.zeros((149, 3))),
        (np.zeros(150), np.zeros(150)),
        (np.full((150, 3), np.nan), np.zeros((150, 3))),
        ([["a"] * 3] * 150, np.zeros((150, 3))),
        (np.zeros((150, 3)), [[1.0], [2.0, 3.0]]),
        (np.zeros((150, 3)),),
    ],
    ids=["narrow", "short", "flat", "NaN", "text", "ragged", "one table"],
)
def test_coordinates_that_do_not_fit_are_refused(coordinates: Any) -> None:
    table = originals_of()
    with pytest.raises(InputError):
        local_cloaking(table, table, ncp=3, coordinates=coordinates)


def test_projection_and_coordinates_together_are_refused() -> None:
    table = originals_of()
    famd = FAMD(3).fit(table)
    with pytest.raises(InputError, match="both"):
        local_cloaking(table, table, projection=famd, coordinates=(famd.transform(table), famd.transform(table)))


# Columns left out, cells missing -------------------------------------------------------------------------------


def test_dropped_column_is_not_measured_and_is_warned_of() -> None:
    originals = originals_of()
    avatars = avatars_of(originals)
    expected = local_cloaking(originals.drop(columns="dose"), avatars.drop(columns="dose"), ncp=3).counts
    result = local_cloaking(originals, avatars, ncp=3, drop=["dose"])
    np.testing.assert_array_equal(result.counts, expected)
    assert any("'dose' was left out" in warning for warning in result.warnings)
    only_in_originals = local_cloaking(originals, avatars.drop(columns="dose"), ncp=3, drop=["dose"])
    np.testing.assert_array_equal(only_in_originals.counts, expected)
    assert not any("'dose'" in warning for warning in only_in_originals.warnings)
    with pytest.raises(InputError) as caught:
        local_cloaking(originals, avatars, drop=["nowhere"])
    assert caught.value.column == "nowhere"


def test_missing_number_is_filled_with_the_originals_median_in_both_tables() -> None:
    originals = originals_of()
    originals.loc[:4, "age"] = np.nan
    avatars = avatars_of(originals)
    avatars.loc[3:9, "age"] = np.nan
    filled = [table.assign(age=table["age"].fillna(originals["age"].median())) for table in (originals, avatars)]
    result = local_cloaking(originals, avatars, ncp=3)
    np.testing.assert_array_equal(result.counts, local_cloaking(*filled, ncp=3).counts)
    column = next(column for column in result.findings.columns if column.name == "age")
    assert (column.missing_originals, column.missing_avatars) == (5 / 150, 7 / 150)
    assert column.filled_with == "the originals' median"


def test_local_cloaking_without_the_filled_columns_is_told() -> None:
    originals = originals_of()
    avatars = avatars_of(originals)
    assert local_cloaking(originals, avatars, ncp=3).without_filled is None
    avatars.loc[3:8, "age"] = np.nan
    result = local_cloaking(originals, avatars, ncp=3)
    without = local_cloaking(originals.drop(columns="age"), avatars.drop(columns="age"), ncp=3)
    assert result.without_filled == without.median
    assert result.without_filled != result.median


def test_there_is_no_figure_without_filled_columns_where_too_few_components_stay() -> None:
    originals = originals_of()[["age", "weight", "dose"]]
    avatars = avatars_of(originals)
    avatars.loc[0, "age"] = np.nan
    assert local_cloaking(originals, avatars, ncp=3).without_filled is None
    assert local_cloaking(originals, avatars, ncp=2).without_filled is not None


def test_missing_category_is_a_category_where_the_originals_know_it() -> None:
    originals = originals_of()
    originals.loc[::7, "arm"] = None
    avatars = avatars_of(originals)
    named = [table.assign(arm=table["arm"].astype(object).fillna("unknown")) for table in (originals, avatars)]
    result = local_cloaking(originals, avatars, ncp=3)
    np.testing.assert_array_equal(result.counts, local_cloaking(*named, ncp=3).counts)
    assert result.without_filled is None  # nothing was filled


def test_missing_category_in_the_avatars_alone_becomes_the_commonest() -> None:
    originals = originals_of()
    avatars = avatars_of(originals)
    avatars.loc[:4, "arm"] = None
    filled = avatars.assign(arm=avatars["arm"].fillna(originals["arm"].mode()[0]))
    result = local_cloaking(originals, avatars, ncp=3)
    np.testing.assert_array_equal(result.counts, local_cloaking(originals, filled, ncp=3).counts)
    assert result.reason is None
    avatars.loc[:40, "arm"] = None
    assert "'arm' is missing in" in local_cloaking(originals, avatars, ncp=3).reason


# What is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tables", [(numbers([]), numbers([])), (numbers([1, 2]), numbers([]))])
def test_empty_table_is_refused(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    with pytest.raises(InputError) as caught:
        local_cloaking(*tables, ncp=1)
    assert caught.value.rows == 0


def test_other_numbers_of_rows_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        measured([1, 2, 3], [1, 2])
    assert caught.value.rows == 1


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(InputError, match="not a DataFrame"):
        local_cloaking([[1.0]], numbers([1]))


@pytest.mark.parametrize("ncp", [0, True, 2.5, "two", float("nan")])
def test_ncp_that_is_no_number_of_components_is_refused(ncp: Any) -> None:
    with pytest.raises(InputError):
        local_cloaking(originals_of(), originals_of(), ncp=ncp)
