"""The search over k: what it finds, what it tries, and where it ends, on made-up functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from local_cloaking.search import NEIGHBOURS, Bounds, doubts, growing_series, next_values, smallest_reaching

BOUNDS = st.tuples(st.integers(1, 60), st.integers(0, 600)).map(lambda pair: Bounds(pair[0], sum(pair)))
ROUNDS = 2


def search(reaches: Callable[[int], bool], bounds: Bounds) -> dict[int, bool]:
    """One after the other, as `advise` does."""
    tried: dict[int, bool] = {}
    while wanted := next_values(tried, bounds):
        assert not set(wanted) & tried.keys()
        assert all(k in bounds for k in wanted)
        tried |= {k: reaches(k) for k in wanted}
    return tried


def search_in_rounds(reaches: Callable[[int], bool], bounds: Bounds) -> dict[int, bool]:
    """All of a round at once, as the DAG does: the series, two rounds within the bracket, the neighbours."""
    tried: dict[int, bool] = {}
    for rounds in (ROUNDS, *range(ROUNDS, 0, -1), 1):
        tried |= {k: reaches(k) for k in next_values(tried, bounds, rounds)}
    return tried


@given(BOUNDS, st.integers(1, 700))
def test_a_rising_function_gives_the_smallest_k_there_is(bounds: Bounds, first: int) -> None:
    smallest = max(first, bounds.lowest)
    for tried in (search(lambda k: k >= first, bounds), search_in_rounds(lambda k: k >= first, bounds)):
        assert smallest_reaching(tried) == (smallest if smallest in bounds else None)
        assert doubts(tried, bounds) == []


@given(BOUNDS, st.sets(st.integers(1, 700)))
def test_whatever_the_function_the_k_found_was_tried_and_those_beside_it_too(
    bounds: Bounds, good: set[int]
) -> None:
    tried = search(good.__contains__, bounds)
    found = smallest_reaching(tried)
    if found is None:
        # Nothing more is to be said than that none of these reaches.
        assert set(growing_series(bounds)) <= tried.keys()
        return
    assert tried[found] is True
    around = {k for k in range(found - NEIGHBOURS, found + NEIGHBOURS + 1) if k in bounds}
    assert around <= tried.keys()
    assert not any(tried[k] for k in around if k < found)
    largest = max((k for k, reaches in tried.items() if not reaches), default=0)
    assert [f"but {largest}," in doubt for doubt in doubts(tried, bounds)] == [True] * (largest > found)


@given(BOUNDS, st.sets(st.integers(1, 700)))
def test_in_rounds_too_the_k_found_was_tried_and_what_was_not_is_told(bounds: Bounds, good: set[int]) -> None:
    tried = search_in_rounds(good.__contains__, bounds)
    found = smallest_reaching(tried)
    if found is None:
        return
    assert tried[found] is True
    around = {k for k in range(found - NEIGHBOURS, found + NEIGHBOURS + 1) if k in bounds}
    told = any("were not all tried" in doubt for doubt in doubts(tried, bounds))
    assert told == bool(around - tried.keys())


@given(st.integers(2, 500))
def test_few_are_tried(first: int) -> None:
    """Bracketed and bisected, not tried one by one."""
    assert len(search(lambda k: k >= first, Bounds(2, 500))) <= 8 + 8 + 3
    # The whole series at once, then no more in a round than the root of the widest bracket.
    assert len(search_in_rounds(lambda k: k >= first, Bounds(2, 500))) <= 8 + 2 * 14 + 3


@given(st.integers(20, 300), st.integers(0, 10_000))
def test_a_noisy_function_is_found_near_where_it_begins_to_reach(first: int, seed: int) -> None:
    noise = np.random.default_rng(seed).normal(size=501)
    # Of a deviation of 1, five are one in a million.
    found = smallest_reaching(search(lambda k: k - first + noise[k] >= 0, Bounds(2, 500)))
    assert found is not None
    assert abs(found - first) <= 6


def test_the_series_grows_to_the_last_k() -> None:
    assert growing_series(Bounds(2, 33)) == [5, 10, 20, 33]
    assert growing_series(Bounds(2, 40)) == [5, 10, 20, 40]
    assert growing_series(Bounds(7, 7)) == [7]
    assert growing_series(Bounds(2, 3)) == [3]


def test_below_the_start_of_the_series_is_searched_too() -> None:
    tried = search(lambda k: k >= 3, Bounds(2, 100))
    assert smallest_reaching(tried) == 3
    assert tried.keys() == {2, 3, 4, 5}


def test_of_the_whole_series_in_one_round_the_smallest_that_reaches_counts() -> None:
    tried = dict.fromkeys([5, 10, 20], False) | {40: True, 80: False, 100: True}
    assert next_values(tried, Bounds(2, 100), 2) == [24, 28, 32, 36]
    assert next_values(tried | {24: False, 28: True, 32: False, 36: False}, Bounds(2, 100), 1) == [25, 26, 27]
