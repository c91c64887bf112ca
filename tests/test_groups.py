"""Groups: what is told of them, and what somebody who has everything that is told cannot compute."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from local_cloaking import groups as groups_module
from local_cloaking import local_cloaking
from local_cloaking.avatarisation import avatarise_in_space
from local_cloaking.errors import InputError
from local_cloaking.groups import (
    checked_group_columns,
    checked_min_group_size,
    group_entries,
    worst_group,
)
from tests.people import CATEGORIES, actg175


def table(**sizes: dict[Any, int]) -> pd.DataFrame:
    """One column per name, each level as often as it says."""
    return pd.DataFrame({name: np.repeat(list(of), list(of.values())) for name, of in sizes.items()})


def counts_of(n: int, highest: int = 12, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, highest, n)


def told(entry: dict[str, Any], column: str) -> list[tuple[list[str | None], int, int]]:
    (found,) = [c for c in entry["columns"] if c["column"] == column]
    return [(group["levels"], group["others"], group["individuals"]) for group in found["groups"]]


def withheld(entry: dict[str, Any]) -> dict[str, str | None]:
    return {column["column"]: column["withheld"] for column in entry["columns"]}


# Levels ----------------------------------------------------------------------------------------------------------


def test_each_level_of_enough_individuals_is_a_group_with_the_median_of_its_counts() -> None:
    frame = table(arm={"b": 11, "a": 20})
    counts = counts_of(31)
    entry = group_entries(frame, ["arm"], counts)
    assert entry["min_group_size"] == 10
    assert told(entry, "arm") == [(["a"], 0, 20), (["b"], 0, 11)]
    medians = [group["local_cloaking"] for group in entry["columns"][0]["groups"]]
    assert medians == [np.median(counts[11:]), np.median(counts[:11])]
    json.dumps(entry, allow_nan=False)


def test_small_levels_are_merged_and_not_named() -> None:
    frame = table(site={"rare one": 4, "rare two": 6, "north": 30, "south": 20})
    entry = group_entries(frame, ["site"], counts_of(60))
    assert told(entry, "site") == [(["north"], 0, 30), (["south"], 0, 20), ([], 2, 10)]
    assert "rare" not in json.dumps(entry)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        # One small level alone would be the whole table less the others.
        ({"a": 40, "b": 12, "c": 3, "d": 20}, [(["a"], 0, 40), (["d"], 0, 20), (["b"], 1, 15)]),
        # Two small levels that are too small together.
        ({"a": 40, "b": 12, "c": 3, "d": 2}, [(["a"], 0, 40), (["b"], 2, 17)]),
        # One that needs no more individuals, but must not stand alone.
        ({"a": 40, "b": 30, "c": 9}, [(["a"], 0, 40), (["b"], 1, 39)]),
    ],
    ids=["alone", "too small together", "alone of three"],
)
def test_small_levels_take_the_smallest_others_with_them(
    sizes: dict[Any, int], expected: list[tuple[list[str], int, int]]
) -> None:
    entry = group_entries(table(x=sizes), ["x"], counts_of(sum(sizes.values())))
    assert sorted(told(entry, "x")) == sorted(expected)


@pytest.mark.parametrize(
    "sizes", [{"a": 40}, {"a": 40, "b": 9}, {"a": 5, "b": 6}, {"a": 9, "b": 9}, {"a": 40, "b": 4, "c": 5}]
)
def test_a_column_without_two_large_groups_is_withheld(sizes: dict[Any, int]) -> None:
    entry = group_entries(table(x=sizes), ["x"], counts_of(sum(sizes.values())))
    assert withheld(entry) == {"x": "too_few"}
    assert told(entry, "x") == []
    assert worst_group(entry) is None


def test_missing_cells_are_a_level_and_a_whole_number_is_one_however_it_is_stored() -> None:
    numbers = pd.DataFrame({"x": [1.0] * 15 + [2.0] * 15 + [np.nan] * 15})
    mixed = pd.DataFrame({"x": pd.Series([1] * 7 + [1.0] * 8 + [2.5] * 15 + [None] * 15, dtype=object)})
    assert told(group_entries(numbers, ["x"], counts_of(45)), "x") == [
        (["1"], 0, 15),
        (["2"], 0, 15),
        ([None], 0, 15),
    ]
    assert told(group_entries(mixed, ["x"], counts_of(45)), "x") == [
        (["1"], 0, 15),
        (["2.5"], 0, 15),
        ([None], 0, 15),
    ]


@pytest.mark.parametrize("values", [["a", "b", "c"], [1, 2, 3], [0.5, 1.5, 2.5]], ids=["text", "whole", "float"])
def test_categories_that_nobody_has_are_no_levels(values: list[Any]) -> None:
    cells = pd.Categorical([values[0]] * 20 + [values[2]] * 20, categories=values)
    entry = group_entries(pd.DataFrame({"x": cells}), ["x"], counts_of(40))
    assert [(len(levels), others) for levels, others, _ in told(entry, "x")] == [(1, 0), (1, 0)]


def test_truth_values_are_levels() -> None:
    frame = pd.DataFrame({"x": [True] * 20 + [False] * 20})
    assert told(group_entries(frame, ["x"], counts_of(40)), "x") == [(["False"], 0, 20), (["True"], 0, 20)]


def test_the_order_of_the_rows_does_not_matter() -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({name: rng.choice(list("abcdef"), 200) for name in ("x", "y", "z")})
    counts = counts_of(200)
    order = rng.permutation(200)
    again = group_entries(frame.iloc[order], ["x", "y", "z"], counts[order])
    assert again == group_entries(frame, ["x", "y", "z"], counts)


def test_the_worst_group_is_the_first_of_the_lowest() -> None:
    frame = pd.DataFrame({"x": ["a"] * 20 + ["b"] * 20, "y": (["c"] * 10 + ["d"] * 10) * 2})
    counts = np.where(frame["y"] == "d", 3, 9)
    entry = group_entries(frame, ["x", "y"], counts)
    worst = worst_group(entry)
    assert worst is not None
    assert (worst[0], worst[1]["levels"], worst[1]["local_cloaking"]) == ("y", ["d"], 3.0)
    same = worst_group(group_entries(frame, ["x", "y"], np.full(40, 5)))
    assert same is not None
    assert (same[0], same[1]["levels"]) == ("x", ["a"])


# What is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "named", "problem"),
    [
        (["arm", "nothing"], "nothing", "not among the columns"),
        (["arm", "arm"], "arm", "twice"),
        (["id"], "id", "it is the key"),
        (["age"], "age", "101 levels are too many"),
        (["born"], "born", "dates and durations make no groups"),
        (["stay"], "stay", "dates and durations make no groups"),
        (["odd"], "odd", "mixed or unknown types"),
    ],
)
def test_columns_that_make_no_groups_are_refused(columns: list[str], named: str, problem: str) -> None:
    n = 101
    frame = pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(n)],
            "arm": ["a"] * n,
            "age": range(n),
            "born": pd.date_range("1950-01-01", periods=n),
            "stay": pd.to_timedelta(range(n), unit="D"),
            "odd": pd.Series([1, "a"] * 50 + [1], dtype=object),
        }
    )
    with pytest.raises(InputError, match=problem) as caught:
        checked_group_columns(frame, columns, "id")
    assert caught.value.column == named
    assert caught.value.remedy


def test_a_hundred_levels_are_accepted() -> None:
    assert checked_group_columns(pd.DataFrame({"x": range(100)}), ["x"]) == ["x"]
    assert checked_group_columns(pd.DataFrame({"x": range(100)}), []) == []
    with pytest.raises(InputError, match="101 levels"):
        checked_group_columns(pd.DataFrame({"x": [*range(100), None]}), ["x"])


@pytest.mark.parametrize("value", [4, "4", 2, 1, 0, -3, 7.5, "ten", None, True])
def test_a_group_size_that_singles_out_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="at least 5") as caught:
        checked_min_group_size(value)
    assert caught.value.remedy is not None
    assert "single people" in caught.value.remedy


@pytest.mark.parametrize("value", [5, 5.0, "5", np.int64(5)])
def test_a_group_size_may_be_text(value: Any) -> None:
    size = checked_min_group_size(value)
    assert (size, type(size)) == (5, int)


def test_a_group_of_one_is_an_error() -> None:
    with pytest.raises(ValueError, match="no groups"):
        group_entries(table(x={"a": 20, "b": 20}), ["x"], counts_of(40), min_group_size=1)


def test_counts_that_are_not_those_of_the_table_are_an_error() -> None:
    with pytest.raises(ValueError, match="at least one"):
        group_entries(table(x={"a": 20}), ["x"], np.array([], np.int64))
    with pytest.raises(ValueError, match="3 counts for 20 originals"):
        group_entries(table(x={"a": 20}), ["x"], np.array([1, 2, 3]))


# Somebody who subtracts ------------------------------------------------------------------------------------------


def members(frame: pd.DataFrame, entry: dict[str, Any]) -> np.ndarray:
    """Who is in which published group, by what the entry says and no more; shape (groups, individuals)."""
    rows = []
    for column in entry["columns"]:
        cells = frame[column["column"]].astype(str).to_numpy()
        named = [level for group in column["groups"] for level in group["levels"]]
        for group in column["groups"]:
            inside = np.isin(cells, group["levels"])
            if group["others"]:
                inside |= ~np.isin(cells, named)
            assert inside.sum() == group["individuals"]
            rows.append(inside)
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(frame))


def smallest_set(who: np.ndarray, highest: int) -> int:
    """The size of the smallest set of individuals that groups, each taken up to so many times, add up to."""
    smallest = who.shape[1]
    for start in itertools.product(range(-highest, highest + 1), repeat=max(0, len(who) - 4)):
        base = np.array(start, dtype=np.int64) @ who[: len(start)]
        weights = np.array(list(itertools.product(range(-highest, highest + 1), repeat=len(who) - len(start))))
        sums = base + weights @ who[len(start) :]
        # A multiple of a set is as good as the set.
        top = np.abs(sums).max(axis=1)
        sets = ((sums == 0) | (sums == top[:, None])).all(axis=1) & (top > 0)
        sizes = (sums[sets] != 0).sum(axis=1)
        smallest = min([smallest, *sizes.tolist()])
    return smallest


@st.composite
def small_tables(draw: st.DrawFn, columns: int = 3, rows: int = 40) -> tuple[pd.DataFrame, np.ndarray, int]:
    n = draw(st.integers(6, rows))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    frame = pd.DataFrame(index=range(n))
    for i in range(draw(st.integers(1, columns))):
        levels = draw(st.integers(2, 4))
        cells = rng.choice(levels, n, p=rng.dirichlet(np.full(levels, 2.0)))
        if i and draw(st.booleans()):
            # Nearly a copy of the column before: what is left by subtraction is small.
            cells = np.where(rng.random(n) < 0.9, frame[f"c{i - 1}"], cells)
        frame[f"c{i}"] = cells
    return frame, rng.choice([0, 0, 1, 2, 5, 9], n), draw(st.integers(2, 4))


@settings(max_examples=150, deadline=None)
@given(made=small_tables())
def test_no_sum_or_difference_of_groups_is_a_set_of_fewer(made: tuple[pd.DataFrame, np.ndarray, int]) -> None:
    frame, counts, smallest = made
    entry = group_entries(frame, list(frame), counts, min_group_size=smallest)
    who = members(frame, entry)
    assume(len(who) <= 7)
    assert smallest_set(who, 2 if len(who) <= 6 else 1) >= smallest


def test_somebody_who_subtracts_finds_a_few_where_each_column_is_told_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Three of those on drug a are in the second arm; all others of the first arm are.
    frame = pd.DataFrame({"drug": ["a"] * 20 + ["b"] * 20, "arm": ["one"] * 17 + ["two"] * 23})
    counts = counts_of(40)
    alone = [members(frame, group_entries(frame, [name], counts)) for name in frame]
    assert smallest_set(np.vstack(alone), 1) == 3
    entry = group_entries(frame, ["drug", "arm"], counts)
    assert withheld(entry) == {"drug": None, "arm": "with_others"}
    assert withheld(group_entries(frame, ["arm", "drug"], counts)) == {"arm": None, "drug": "with_others"}
    # The same where the cells are too many to look at all of them.
    monkeypatch.setattr(groups_module, "_CELLS_LOOKED_AT", 2)
    assert group_entries(frame, ["drug", "arm"], counts) == entry


def test_a_column_is_merged_before_it_is_withheld() -> None:
    # Of arm one only three are not on drug a; without telling arms one and two apart, nobody sees them.
    frame = pd.DataFrame({"drug": ["a"] * 20 + ["b"] * 60, "arm": ["one"] * 23 + ["two"] * 27 + ["three"] * 30})
    entry = group_entries(frame, ["drug", "arm"], counts_of(80))
    assert told(entry, "arm") == [(["one", "two"], 0, 50), (["three"], 0, 30)]


def test_a_column_named_like_another_is_told_too() -> None:
    frame = table(sex={"f": 30, "m": 20}).assign(gender=lambda t: t["sex"])
    entry = group_entries(frame, ["sex", "gender"], counts_of(50))
    assert told(entry, "sex") == told(entry, "gender") == [(["f"], 0, 30), (["m"], 0, 20)]


@settings(max_examples=60, deadline=None)
@given(made=small_tables(rows=30))
def test_sizes_that_cannot_be_negative_fix_no_small_cell(made: tuple[pd.DataFrame, np.ndarray, int]) -> None:
    frame, counts, smallest = made
    who = members(frame, group_entries(frame, list(frame), counts, min_group_size=smallest))
    assume(len(who))
    cells, sizes = np.unique(who, axis=1, return_counts=True)
    # The attacker knows which combinations there are, and the size of each group.
    for i in np.flatnonzero(sizes < smallest):
        bounds = [
            linprog(sign * np.eye(len(sizes))[i], A_eq=cells, b_eq=who.sum(axis=1), bounds=(0, None)).fun * sign
            for sign in (1, -1)
        ]
        assert bounds[1] - bounds[0] > 1e-6


@settings(max_examples=150, deadline=None)
@given(made=small_tables(columns=2), looked_at=st.integers(2, 6))
def test_many_cells_are_judged_by_the_largest(made: tuple[pd.DataFrame, np.ndarray, int], looked_at: int) -> None:
    frame, counts, smallest = made
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups_module, "_CELLS_LOOKED_AT", looked_at)
        who = members(frame, group_entries(frame, list(frame), counts, min_group_size=smallest))
    assume(len(who) <= 7)
    assert smallest_set(who, 1) >= smallest


def test_more_cells_than_can_be_looked_at_withhold_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"x": ["a"] * 40 + ["b"] * 40, "y": (["c"] * 20 + ["d"] * 20) * 2})
    assert withheld(group_entries(frame, ["x", "y"], counts_of(80))) == {"x": None, "y": None}
    monkeypatch.setattr(groups_module, "MAX_CELLS", 3)
    assert withheld(group_entries(frame, ["x", "y"], counts_of(80))) == {"x": None, "y": "with_others"}


# Somebody who looks for individuals who are, or are not, without a closer avatar ---------------------------------


def bounds_of(group: dict[str, Any]) -> tuple[int, int]:
    """The numbers without a closer avatar that an interval allows for somebody who knows the grid."""
    n, share = group["individuals"], group["share_without"]
    lowest = int(np.ceil(share["at_least"] * n / 100 - 1e-9))
    highest = n if share["at_most"] == 100 else int(np.floor(share["at_most"] * n / 100 + 1e-9)) - 1
    return lowest, highest


def arrangements(counts: np.ndarray) -> np.ndarray:
    """All ways to give the counts to the individuals."""
    found = {()}
    for _ in counts:
        found = {
            (*start, value)
            for start in found
            for value in set(counts.tolist())
            if start.count(value) < counts.tolist().count(value)
        }
    return np.array(sorted(found))


def fitting(frame: pd.DataFrame, counts: np.ndarray, entry: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Who is in which group, and the ways to give out the counts that fit everything that is published."""
    who, possible = members(frame, entry).astype(bool), arrangements(counts)
    groups = [group for column in entry["columns"] for group in column["groups"]]
    for inside, group in zip(who, groups, strict=True):
        lowest, highest = bounds_of(group)
        without = (possible[:, inside] == 0).sum(axis=1)
        medians = np.median(possible[:, inside], axis=1)
        possible = possible[(medians == group["local_cloaking"]) & (lowest <= without) & (without <= highest)]
    return who, possible


def pinned(frame: pd.DataFrame, counts: np.ndarray, entry: dict[str, Any]) -> list[int]:
    """The individuals of whom it follows, from the entry, all groups and all counts, whether theirs is 0."""
    _, possible = fitting(frame, counts, entry)
    assert (possible == counts).all(axis=1).any(), "what is published is not true"
    share = (possible == 0).mean(axis=0)
    return np.flatnonzero((share == 0) | (share == 1)).tolist()


@st.composite
def tiny_tables(draw: st.DrawFn) -> tuple[pd.DataFrame, np.ndarray]:
    """Tables of up to three columns, and counts among which some, but not all, are 0."""
    distinct = draw(st.booleans())
    n = draw(st.integers(6, 7 if distinct else 10))
    cells = st.integers(0, draw(st.integers(1, 2)))
    names = list("xyz")[: draw(st.integers(1, 3))]
    frame = pd.DataFrame({name: draw(st.lists(cells, min_size=n, max_size=n)) for name in names})
    if distinct:
        without = draw(st.integers(1, n - 1))
        counts = draw(st.permutations([0] * without + list(range(1, n - without + 1))))
    else:
        counts = draw(st.lists(st.sampled_from([0, 0, 1, 3]), min_size=n, max_size=n))
        assume(0 < counts.count(0) < n)
    if draw(st.booleans()):
        # So that cells are all, or none.
        frame = frame.sort_values(names, ignore_index=True)
        counts = sorted(counts)
    return frame, np.array(counts)


@settings(max_examples=400, deadline=None)
@given(made=tiny_tables(), smallest=st.integers(2, 3), exchanged_with=st.sampled_from([1, 1000]))
def test_of_nobody_can_be_computed_whether_the_count_is_0(
    made: tuple[pd.DataFrame, np.ndarray], smallest: int, exchanged_with: int
) -> None:
    frame, counts = made
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups_module, "_CELLS_EXCHANGED_WITH", exchanged_with)
        entry = group_entries(frame, list(frame), counts, min_group_size=smallest)
    assert pinned(frame, counts, entry) == []


@settings(max_examples=200, deadline=None)
@given(made=tiny_tables(), smallest=st.integers(2, 3))
def test_nor_by_medians_alone(made: tuple[pd.DataFrame, np.ndarray], smallest: int) -> None:
    frame, counts = made
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups_module, "_step", lambda size, total_without: size + 1)
        entry = group_entries(frame, list(frame), counts, min_group_size=smallest)
    shares = [group["share_without"] for column in entry["columns"] for group in column["groups"]]
    assert all(share == {"at_least": 0.0, "at_most": 100.0} for share in shares)
    assert pinned(frame, counts, entry) == []


def test_medians_of_two_columns_that_tell_of_one_together_are_not_both_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Neither column tells of anybody by itself, and in each group there is both a 0 and another count.
    monkeypatch.setattr(groups_module, "_step", lambda size, total_without: size + 1)
    frame = pd.DataFrame({"x": list("bbbaaba"), "y": list("abababb")})
    counts = np.array([0, 4, 4, 0, 2, 0, 2])
    alone = [group_entries(frame, [name], counts, min_group_size=2)["columns"][0] for name in ("x", "y")]
    assert [pinned(frame, counts, {"columns": [column]}) for column in alone] == [[], []]
    assert pinned(frame, counts, {"columns": alone}) == [4]
    entry = group_entries(frame, ["x", "y"], counts, min_group_size=2)
    assert withheld(entry) == {"x": None, "y": "with_others"}


def zeros_of_cells(frame: pd.DataFrame, total: int, entry: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """The cells (groups by cells), and all numbers of counts of 0 in them that total and intervals allow."""
    cells, sizes = np.unique(members(frame, entry), axis=1, return_counts=True)
    possible = np.array([z for z in itertools.product(*(range(n + 1) for n in sizes)) if sum(z) == total])
    groups = [group for column in entry["columns"] for group in column["groups"]]
    for inside, (lowest, highest) in zip(cells, map(bounds_of, groups), strict=True):
        of_group = possible @ inside
        possible = possible[(lowest <= of_group) & (of_group <= highest)]
    return cells, possible


def one_of_a_race_and_sex() -> tuple[pd.DataFrame, np.ndarray]:
    """61 people, one alone in race X and sex f; six of race X and six of sex f have count 0, eleven in all."""
    frame = pd.DataFrame({"race": ["X"] * 21 + ["Y"] * 40, "sex": ["f"] + ["m"] * 20 + ["f"] * 20 + ["m"] * 20})
    some = [0] * 5 + list(range(2, 17))
    return frame, np.array([0, *some, *some, *range(2, 22)])


def test_the_only_one_where_two_groups_cross_is_not_given_away_by_their_shares() -> None:
    frame, counts = one_of_a_race_and_sex()
    entry = group_entries(frame, ["race", "sex"], counts)
    assert withheld(entry) == {"race": None, "sex": None}
    cells, possible = zeros_of_cells(frame, 11, entry)
    assert (possible.min(axis=0) < possible.max(axis=0)).all()
    (one,) = np.flatnonzero(cells[0] & cells[2])
    assert set(possible[:, one]) == {0, 1}
    # Race is told as it is without sex; with shares for sex as narrow as these, eleven would not do for both.
    assert entry["columns"][0] == group_entries(frame, ["race"], counts)["columns"][0]
    alone = group_entries(frame, ["sex"], counts)["columns"][0]
    _, possible = zeros_of_cells(frame, 11, {"columns": [entry["columns"][0], alone]})
    assert set(possible[:, one]) == {1}


def test_one_whose_count_is_high_is_hidden_by_exchanges_among_four_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    # A 0 instead of the high count would move the medians of race X and sex f, unless others make up for it.
    frame, counts = one_of_a_race_and_sex()
    counts = np.where(counts > 0, counts * 100 + np.arange(61), 0)
    counts[[0, 60]] = 3000, 0
    entry = group_entries(frame, ["race", "sex"], counts)
    assert withheld(entry) == {"race": None, "sex": None}
    monkeypatch.setattr(groups_module, "_CELLS_OF_RECTANGLES", 0)
    assert withheld(group_entries(frame, ["race", "sex"], counts)) == {"race": None, "sex": "with_others"}


@pytest.mark.parametrize("sizes", [(4, 8), (5, 7), (3, 3, 6), (4, 4, 4), (3, 9), (2, 5, 5)])
@pytest.mark.parametrize("total", range(1, 12))
def test_no_way_to_give_out_the_zeros_can_be_read_off_the_shares(sizes: tuple[int, ...], total: int) -> None:
    frame = pd.DataFrame({"x": np.repeat(range(len(sizes)), sizes)})
    for numbers in itertools.product(*(range(size + 1) for size in sizes)):
        if sum(numbers) != total:
            continue
        counts = np.concatenate([np.where(np.arange(n) < z, 0, 7) for n, z in zip(sizes, numbers, strict=True)])
        entry = group_entries(frame, ["x"], counts, min_group_size=2)
        assert pinned(frame, counts, entry) == [], numbers


def test_an_exchange_that_an_interval_would_show_hides_nothing() -> None:
    # The pair has a median of 3.5: one is without. Of the first seven, one less would leave their interval.
    frame = table(x={"seven": 7, "three": 3, "two": 2})
    counts = np.array([0, 0, 0, 7, 7, 7, 7, 7, 7, 7, 0, 7])
    entry = group_entries(frame, ["x"], counts, min_group_size=2)
    assert withheld(entry) == {"x": None}
    assert pinned(frame, counts, entry) == []


def test_an_exchange_within_a_group_of_another_column_does_not_show_in_it() -> None:
    # Only groups that hold one of the two would show it; y is told as well as x.
    frame = pd.DataFrame({"x": list("110110001010"), "y": list("010101200012")})
    closer = np.array([7, 7, 0, 7, 7, 0, 0, 0, 7, 0, 7, 0])
    entry = group_entries(frame, ["x", "y"], closer, min_group_size=2)
    assert told(entry, "y") == [(["0"], 0, 6), (["1", "2"], 0, 6)]
    assert pinned(frame, closer, entry) == []


def test_somebody_finds_individuals_where_shares_are_exact() -> None:
    # The test above can fail: with the medians and the total alone, and bounds that are the numbers themselves.
    frame = pd.DataFrame({"x": [0] * 5 + [1] * 5})
    counts = np.array([0, 0, 3, 3, 3, 3, 3, 3, 3, 3])
    entry = group_entries(frame, ["x"], counts, min_group_size=2)
    assert pinned(frame, counts, entry) == []
    entry["columns"][0]["groups"][0]["share_without"] = {"at_least": 40.0, "at_most": 60.0}
    assert pinned(frame, counts, entry) == [5, 6, 7, 8, 9]


def test_a_median_of_nought_that_gives_another_group_away_is_not_told() -> None:
    # Six are without: if the median of ten is 0, all of them are there.
    frame = table(x={"a": 10, "b": 20})
    counts = np.array([0] * 6 + [4] * 24)
    assert withheld(group_entries(frame, ["x"], counts)) == {"x": "with_others"}
    counts[10] = 0  # now somebody in the other group is, too
    assert withheld(group_entries(frame, ["x"], counts)) == {"x": None}


@pytest.mark.parametrize("without", range(1, 50))
def test_shares_are_told_whatever_the_number_of_those_without(without: int) -> None:
    # However the steps of the grid lay, this number would be the first of one, were they not chosen by it.
    counts = np.array([9] * 100 + [0] * without + [9] * (100 - without))
    entry = group_entries(table(x={"a": 100, "b": 100}), ["x"], counts)
    shares = [group["share_without"] for group in entry["columns"][0]["groups"]]
    assert [share["at_most"] - share["at_least"] < 20 for share in shares] == [True, True]


def test_a_group_of_which_all_are_without_can_be_told() -> None:
    counts = np.array([0] * 20 + [0] * 10 + [4] * 70)
    entry = group_entries(table(x={"a": 20, "b": 80}), ["x"], counts)
    assert [group["local_cloaking"] for group in entry["columns"][0]["groups"]] == [0, 4]
    assert entry["columns"][0]["groups"][0]["share_without"]["at_least"] < 90


def test_groups_that_do_not_overlap_are_not_told() -> None:
    # Everything up to the first median is in the first group, so nothing below it is in the second.
    assert withheld(group_entries(table(x={"a": 11, "b": 11}), ["x"], np.arange(22))) == {"x": "with_others"}


@settings(max_examples=200, deadline=None)
@given(
    sizes=st.lists(st.integers(10, 400), min_size=2, max_size=6),
    share=st.floats(0, 1),
    seed=st.integers(0, 10**6),
)
def test_intervals_hold_the_share_and_are_no_narrower_than_five_per_cent_or_three_individuals(
    sizes: list[int], share: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": np.repeat(range(len(sizes)), sizes)})
    counts = np.where(rng.random(len(frame)) < share * rng.random(len(frame)), 0, rng.integers(0, 30, len(frame)))
    entry = group_entries(frame, ["x"], counts)
    for group, inside in zip(entry["columns"][0]["groups"], members(frame, entry).astype(bool), strict=True):
        n, interval = group["individuals"], group["share_without"]
        lowest, highest = bounds_of(group)
        assert lowest <= (counts[inside] == 0).sum() <= highest
        assert highest - lowest + 1 >= max(3, n / 20)
        assert 0 <= interval["at_least"] < interval["at_most"] <= 100
        assert interval["at_most"] - interval["at_least"] >= 5


def test_where_nobody_or_everybody_is_without_groups_are_told() -> None:
    frame = table(x={"a": 40, "b": 60})
    for counts, interval in ((np.full(100, 3), (0.0, 7.5)), (np.zeros(100, np.int64), (90.0, 100.0))):
        entry = group_entries(frame, ["x"], counts)
        first = entry["columns"][0]["groups"][0]
        assert (first["share_without"]["at_least"], first["share_without"]["at_most"]) == interval


# ACTG 175 --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def actg_counts() -> np.ndarray:
    patients = actg175()
    made = avatarise_in_space(patients, k=20, ncp=5, seed=1, categorical=CATEGORIES)
    return local_cloaking(patients, made.avatars, projection=made.projection).counts


def test_the_first_columns_of_actg_are_told_level_by_level(actg_counts: np.ndarray) -> None:
    patients = actg175()
    entry = group_entries(patients, ["gender", "race", "arms", "strat"], actg_counts)
    assert withheld(entry) == dict.fromkeys(["gender", "race", "arms", "strat"])
    assert told(entry, "gender") == [(["0"], 0, 368), (["1"], 0, 1771)]
    assert told(entry, "arms") == [(["0"], 0, 532), (["1"], 0, 522), (["2"], 0, 524), (["3"], 0, 561)]
    assert told(entry, "strat") == [(["1"], 0, 886), (["2"], 0, 410), (["3"], 0, 843)]
    for group in entry["columns"][0]["groups"]:
        inside = patients["gender"].astype(str).isin(group["levels"])
        assert group["local_cloaking"] == np.median(actg_counts[inside])
        assert group["share_without"]["at_most"] - group["share_without"]["at_least"] < 7
    worst = worst_group(entry)
    assert worst is not None
    assert worst[1]["local_cloaking"] == min(
        group["local_cloaking"] for column in entry["columns"] for group in column["groups"]
    )


def test_of_all_categories_of_actg_some_are_told_and_small_levels_are_not_named(actg_counts: np.ndarray) -> None:
    patients = actg175()
    entry = group_entries(patients, CATEGORIES, actg_counts)
    reasons = withheld(entry)
    assert reasons["zprior"] == "too_few"  # everybody has the same
    assert list(reasons.values()).count(None) >= 8
    assert told(entry, "karnof")[0] == (["80"], 1, 89)  # nine patients have 70
    who = members(patients, entry)
    cells, sizes = np.unique(who, axis=1, return_counts=True)
    # Exactly, by whole numbers: what a combination that vanishes on all large cells leaves on the others.
    large = cells[:, sizes >= 10]
    assert (sizes < 10).any()
    values, vectors = np.linalg.eigh((large @ large.T).astype(float))
    assert np.abs(vectors[:, values < 1e-9].T @ cells).max() < 1e-6
