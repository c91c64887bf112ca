"""Statistics of a distribution of counts, against numpy on the counts themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom

from local_cloaking.audit.statistics import CONFIDENCE, Distribution

COUNTS = st.lists(st.one_of(st.integers(0, 8), st.integers(0, 10**6)), min_size=1, max_size=200)


def distribution_of(counts: list[int] | NDArray[np.int64]) -> Distribution:
    values, individuals = np.unique(np.array(counts, dtype=np.int64), return_counts=True)
    return Distribution.of({"count": values.tolist(), "individuals": individuals.tolist()})


@given(COUNTS)
def test_median_is_the_usual_one(counts: list[int]) -> None:
    assert distribution_of(counts).median == np.median(counts)


@given(COUNTS)
def test_ranks_are_those_of_the_sorted_counts(counts: list[int]) -> None:
    distribution = distribution_of(counts)
    assert [distribution.at_rank(rank) for rank in range(1, len(counts) + 1)] == sorted(counts)
    assert (distribution.n, distribution.highest) == (len(counts), max(counts))


@given(COUNTS, st.integers(1, 100))
def test_percentile_is_the_smallest_count_that_so_many_do_not_exceed(counts: list[int], per_cent: int) -> None:
    value = distribution_of(counts).percentile(per_cent)
    # By the definition, in whole numbers.
    assert 100 * sum(count <= value for count in counts) >= per_cent * len(counts)
    assert 100 * sum(count < value for count in counts) < per_cent * len(counts)


@pytest.mark.parametrize("per_cent", [5, 10, 25, 50, 100])
@pytest.mark.parametrize("n", [1, 7, 100, 1_001])
def test_percentile_is_numpys_inverted_distribution(n: int, per_cent: int) -> None:
    counts = np.random.default_rng(n).integers(0, 50, n)
    expected = np.percentile(counts, per_cent, method="inverted_cdf")
    assert distribution_of(counts).percentile(per_cent) == expected


@given(COUNTS, st.floats(0, 1e6))
def test_shares_are_those_of_the_counts(counts: list[int], value: float) -> None:
    distribution, known = distribution_of(counts), np.array(counts)
    assert distribution.share_below(value) == pytest.approx(100 * np.mean(known < value))
    places = np.array([0, 1, 5, 10**6])
    expected = [100 * np.mean(known <= place) for place in places]
    assert distribution.share_at_most(places).tolist() == pytest.approx(expected)


def test_count_equal_to_the_threshold_is_not_below_it() -> None:
    assert distribution_of([4, 5, 5, 6]).share_below(5) == 25.0
    assert distribution_of([4, 5, 5, 6]).share_below(5.5) == 75.0


# The interval of the median -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [6, 7, 8, 9, 17, 40, 100, 2_139, 1_000_000])
def test_interval_is_the_narrowest_of_the_level_asked_for(n: int) -> None:
    interval = Distribution.of({"count": [3], "individuals": [n]}).median_interval()
    assert interval is not None
    level = 100 * (1 - 2 * binom.cdf(interval.rank - 1, n, 0.5))
    narrower = 100 * (1 - 2 * binom.cdf(interval.rank, n, 0.5))
    assert interval.level == pytest.approx(level)
    assert level >= CONFIDENCE > narrower
    assert (interval.lower, interval.upper) == (3, 3)


@pytest.mark.parametrize(("n", "rank"), [(6, 1), (8, 1), (9, 2), (20, 6), (100, 40)])
def test_interval_has_the_ranks_of_the_printed_tables(n: int, rank: int) -> None:
    interval = distribution_of(np.arange(n) * 10).median_interval()
    assert interval is not None
    assert (interval.rank, interval.lower, interval.upper) == (rank, 10 * (rank - 1), 10 * (n - rank))


@pytest.mark.parametrize("n", range(6))
def test_fewer_than_six_individuals_have_no_interval(n: int) -> None:
    assert distribution_of(list(range(n))).median_interval() is None


@given(st.lists(st.integers(0, 100), min_size=6, max_size=100))
def test_interval_holds_the_median_of_the_counts_themselves(counts: list[int]) -> None:
    interval = distribution_of(counts).median_interval()
    assert interval is not None
    assert interval.lower <= np.median(counts) <= interval.upper


@pytest.mark.parametrize("n", [6, 25, 200])
def test_interval_covers_as_often_as_it_says(n: int) -> None:
    rng, repeats = np.random.default_rng(n), 1_000
    # Of spread-out whole numbers, median 50,000, hardly two are equal: the level is then met, not exceeded.
    held = 0
    for _ in range(repeats):
        interval = distribution_of(rng.integers(0, 100_001, n)).median_interval()
        assert interval is not None
        held += interval.lower <= 50_000 <= interval.upper
    expected = interval.level / 100
    assert abs(held / repeats - expected) < 4 * np.sqrt(expected * (1 - expected) / repeats)


def test_interval_of_counts_that_tie_covers_at_least_as_often_as_it_says() -> None:
    rng, held = np.random.default_rng(1), 0
    for _ in range(1_000):
        interval = distribution_of(rng.geometric(0.3, 50) - 1).median_interval()
        assert interval is not None
        held += interval.lower <= 1 <= interval.upper  # the median of that distribution
    assert held / 1_000 > 0.95


# What is no distribution, and what is a large one ---------------------------------------------------------------


def test_hundred_million_individuals_are_not_written_out() -> None:
    distribution = Distribution.of({"count": [0, 7, 10**8 - 1], "individuals": [10**6, 98 * 10**6, 10**6]})
    assert (distribution.n, distribution.median, distribution.percentile(5)) == (10**8, 7.0, 7)
    assert distribution.median_interval() is not None


def test_empty_distribution_has_neither_median_nor_shares() -> None:
    empty = Distribution.of({"count": [], "individuals": []})
    assert empty.n == 0
    for ask in (lambda: empty.median, lambda: empty.highest, lambda: empty.percentile(5)):
        with pytest.raises(ValueError, match="nothing was counted"):
            ask()
    with pytest.raises(ValueError, match="nothing was counted"):
        empty.share_below(5)


@pytest.mark.parametrize(
    "entry",
    [
        {"count": [1, 1], "individuals": [1, 1]},
        {"count": [2, 1], "individuals": [1, 1]},
        {"count": [-1], "individuals": [1]},
        {"count": [1], "individuals": [0]},
        {"count": [1], "individuals": [1, 1]},
        {"count": 1, "individuals": 1},
    ],
)
def test_what_is_no_distribution_is_refused(entry: dict[str, list[int]]) -> None:
    with pytest.raises(ValueError, match=r"counts|individuals"):
        Distribution.of(entry)


@pytest.mark.parametrize("per_cent", [0, 101, -5])
def test_percentile_outside_of_its_range_is_refused(per_cent: int) -> None:
    with pytest.raises(ValueError, match="percentile"):
        distribution_of([1, 2]).percentile(per_cent)


@pytest.mark.parametrize("rank", [0, 3])
def test_rank_outside_of_its_range_is_refused(rank: int) -> None:
    with pytest.raises(ValueError, match="ranks"):
        distribution_of([1, 2]).at_rank(rank)
