"""The counts are exactly those of the rule: with ties, with noise, from every method."""

from __future__ import annotations

import itertools
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_cloaking.errors import InputError
from local_cloaking.neighbours import (
    CloserAvatarCounter,
    _suitable_method,
    closer_avatar_counts,
    count_closer_avatars,
    squared_distances,
)

TAU = 1e-12
COMPILED = find_spec("numba") is not None
#: None is the method that suits the data; where numba is not installed (extra `fast`), nothing is compiled.
METHODS = ("tree", "blocks", *(["compiled"] if COMPILED else []), None)
PLACEMENTS = [
    pytest.param(scale, offset, before, id=f"{scale:.2g}-{offset:g}-{'before' if before else 'after'}")
    for scale, offset, before in itertools.product((1.0, 0.1, 1 / 3), (0.0, 1e5, 1e7), (True, False))
]


def placed(integers: np.ndarray, scale: float, offset: float, before: bool) -> np.ndarray:
    return (integers + offset) * scale if before else integers * scale + offset


def counts_of_integers(a: np.ndarray, b: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Count in int64, where every square and every tie is exact."""
    a, b = a.astype(np.int64), b.astype(np.int64)
    squares = ((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=2)
    bound = squares[np.arange(len(a)), own][:, None]
    return (squares <= bound).sum(axis=1) - 1, (squares < bound).sum(axis=1)


def counts_by_rule(x: np.ndarray, y: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Follow the rule of the metric to the letter, pair by pair."""

    def sum_of_squares(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        total = np.zeros(np.broadcast(one[..., 0], other[..., 0]).shape)
        for k in range(one.shape[-1]):
            total += (one[..., k] - other[..., k]) ** 2
        return total

    closer, strictly = np.zeros(len(x), np.int64), np.zeros(len(x), np.int64)
    for start in range(0, len(x), 100):
        rows = slice(start, start + 100)
        distance = np.sqrt(sum_of_squares(x[rows], y[own[rows]]))
        slack = TAU * (np.sqrt(sum_of_squares(x[rows], np.zeros_like(x[rows]))) + distance)
        s = sum_of_squares(x[rows][:, None, :], y[None, :, :])
        closer[rows] = (s <= ((distance + slack) ** 2)[:, None]).sum(axis=1) - 1
        strictly[rows] = (s < (np.maximum(0.0, distance - slack) ** 2)[:, None]).sum(axis=1)
    return closer, strictly


def assert_counts(
    x: Any, y: Any, own: np.ndarray, expected: tuple[np.ndarray, np.ndarray], methods: tuple[Any, ...] = METHODS
) -> None:
    for method in methods:
        found = count_closer_avatars(x, y, own, method=method)
        assert found.closer.dtype == found.strictly_closer.dtype == np.int64
        np.testing.assert_array_equal(found.closer, expected[0], err_msg=f"closer, {method}")
        np.testing.assert_array_equal(found.strictly_closer, expected[1], err_msg=f"strictly closer, {method}")
    np.testing.assert_array_equal(closer_avatar_counts(x, y, own), expected[0])


@st.composite
def integer_tables(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Few different values, so that ties and duplicates abound; at least as many avatars as originals."""
    n, p = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    m = n + draw(st.integers(0, 6))
    largest = draw(st.integers(0, 4))
    cell = st.integers(-largest, largest)
    a = draw(st.lists(st.lists(cell, min_size=p, max_size=p), min_size=n, max_size=n))
    b = draw(st.lists(st.lists(cell, min_size=p, max_size=p), min_size=m, max_size=m))
    own = draw(st.permutations(range(m)))[:n]
    return np.array(a), np.array(b), np.array(own)


@pytest.mark.parametrize(("scale", "offset", "before"), PLACEMENTS)
@settings(max_examples=25, deadline=None)
@given(table=integer_tables())
def test_counts_of_scaled_and_shifted_integers_are_exact(
    table: tuple[np.ndarray, np.ndarray, np.ndarray], scale: float, offset: float, before: bool
) -> None:
    a, b, own = table
    x, y = placed(a, scale, offset, before), placed(b, scale, offset, before)
    assert_counts(x, y, own, counts_of_integers(a, b, own))


@pytest.mark.parametrize(("scale", "offset", "before"), PLACEMENTS)
def test_counts_of_many_tied_rows_are_exact(scale: float, offset: float, before: bool) -> None:
    rng = np.random.default_rng(7)
    a = rng.integers(-3, 4, size=(400, 3))
    b = np.concatenate([a + rng.integers(-1, 2, size=a.shape), rng.integers(-3, 4, size=(100, 3))])
    order = rng.permutation(500)
    b, own = b[order], np.argsort(order)[:400]
    x, y = placed(a, scale, offset, before), placed(b, scale, offset, before)
    assert_counts(x, y, own, counts_of_integers(a, b, own))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)), min_size=2, max_size=10)
)
def test_methods_agree_with_the_rule_on_any_floats(rows: list[tuple[float, float, float]]) -> None:
    x = np.array(rows)
    y = x[::-1] * 1.5
    own = np.arange(len(x))
    assert_counts(x, y, own, counts_by_rule(x, y, own))


@pytest.mark.parametrize("shift", [0.0, 0.1, 1e5])
def test_mirror_images_tie(shift: float) -> None:
    rng = np.random.default_rng(3)
    steps = rng.normal(size=(30, 4))
    centre = np.full((1, 4), shift)
    y = np.concatenate([centre + steps, centre - steps])
    x = np.repeat(centre, 60, axis=0)
    own = np.arange(60)
    # Each avatar ties with its mirror image, and with nothing else.
    rank = np.argsort(np.argsort((steps**2).sum(axis=1)))
    expected = np.concatenate([2 * rank + 1, 2 * rank + 1]), np.concatenate([2 * rank, 2 * rank])
    assert_counts(x, y, own, expected)


@pytest.mark.parametrize("scale", [1.0, 0.1, 1 / 3])
@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_near_tie_in_sixty_columns_is_no_tie(scale: float, offset: float) -> None:
    near, far = np.full(60, 998), np.full(60, 998)
    near[59], far[59] = 0, 1  # squares 58,764,236 and 58,764,237: a gap of 1.7e-8
    a, b = np.zeros((2, 60), int), np.stack([near, far])
    x, y = a * scale + offset, b * scale + offset
    assert_counts(x, y, np.array([0, 1]), (np.array([0, 1]), np.array([0, 1])))


def test_noise_at_a_billionth_of_the_tolerance_is_a_tie_and_beyond_the_tolerance_is_none() -> None:
    x = np.array([[1.0, 0.0]] * 2)
    inside = np.array([[2.0, 0.0], [1.0, 1.0 + 1e-15]])
    assert_counts(x, inside, np.array([0, 1]), (np.array([1, 1]), np.array([0, 0])))
    outside = np.array([[2.0, 0.0], [1.0, 1.0 + 1e-11]])
    assert_counts(x, outside, np.array([0, 1]), (np.array([0, 1]), np.array([0, 1])))


def test_own_avatar_among_its_copies_is_left_out_by_identity() -> None:
    x = np.array([[1.0, 2.0]] * 3 + [[9.0, 9.0]])
    y = np.array([[1.5, 2.0]] * 3 + [[9.0, 9.5]])
    for own in itertools.permutations(range(3)):
        rows = np.array([*own, 3])
        assert_counts(x, y, rows, (np.array([2, 2, 2, 0]), np.zeros(4, int)))


def test_original_far_from_everything_is_counted_exactly() -> None:
    rng = np.random.default_rng(11)
    a = rng.integers(-5, 6, size=(200, 4))
    b = a + rng.integers(-2, 3, size=a.shape)
    a[17] = 10_000
    own = np.arange(200)
    assert_counts(a / 3, b / 3, own, counts_of_integers(a, b, own))
    # Its avatar far away too: the others are all nearer to it, and no other count may move.
    b[17] = -10_000
    expected = counts_of_integers(a, b, own)
    assert expected[0][17] == 199
    assert_counts(a / 3, b / 3, own, expected)


@pytest.mark.parametrize("far", [1e8, 1e120])
def test_original_absurdly_far_away_follows_the_rule(far: float) -> None:
    rng = np.random.default_rng(12)
    x = rng.normal(size=(50, 3))
    y = x + rng.normal(scale=0.3, size=x.shape)
    x[0] = far
    own = np.arange(50)
    assert_counts(x, y, own, counts_by_rule(x, y, own))


@pytest.mark.parametrize("value", [0.0, 1e-200, 0.1, 1 / 3, -1e7])
@pytest.mark.parametrize("p", [1, 5, 30])
def test_rows_all_in_one_place_tie_with_all_others(value: float, p: int) -> None:
    x = np.full((37, p), value)
    assert_counts(x, x, np.arange(37)[::-1], (np.full(37, 36), np.zeros(37, int)))


def test_one_individual_counts_nothing() -> None:
    assert_counts([[3.0, 4.0]], [[7.0, 7.0]], np.array([0]), (np.array([0]), np.array([0])))


@pytest.mark.parametrize(
    ("avatars", "closer", "strictly"),
    [
        ([[0.0], [10.0]], [0, 0], [0, 0]),
        ([[10.0], [0.0]], [1, 1], [1, 1]),
        ([[5.0], [5.0]], [1, 1], [0, 0]),
        ([[1.0], [-1.0]], [1, 1], [0, 1]),
    ],
)
def test_two_individuals(avatars: list[list[float]], closer: list[int], strictly: list[int]) -> None:
    assert_counts([[0.0], [10.0]], avatars, np.array([0, 1]), (np.array(closer), np.array(strictly)))


def test_no_individual_gives_no_count() -> None:
    assert closer_avatar_counts(np.zeros((0, 3)), np.zeros((0, 3))).shape == (0,)


def test_negative_zero_is_zero() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.integers(-1, 2, size=(2, 60, 3))
    own = rng.permutation(60)
    x, y = a.astype(float), b.astype(float)
    expected = counts_of_integers(a, b, own)
    signs = rng.random((60, 3)) < 0.5
    x[(a == 0) & signs], y[(b == 0) & ~signs] = -0.0, -0.0
    assert np.signbit(x[a == 0]).any()
    assert_counts(x, y, own, expected)


@pytest.mark.parametrize("p", [2, 12])
def test_moving_everything_by_100000_moves_no_count(p: int) -> None:
    rng = np.random.default_rng(p)
    x = rng.normal(size=(600, p))
    x[300:] = x[:300]  # duplicates among the originals and, rounded, ties among the avatars
    y = np.round(x + rng.normal(scale=0.5, size=x.shape), 1)
    own = np.arange(600)
    here = counts_by_rule(x, y, own)
    assert_counts(x + 1e5, y + 1e5, own, here)


@pytest.mark.parametrize(("p", "methods"), [(5, METHODS), (25, METHODS), (60, METHODS)])
def test_five_thousand_rows_agree_with_the_rule(p: int, methods: tuple[Any, ...]) -> None:
    rng = np.random.default_rng(p)
    x = rng.normal(size=(5_000, p))
    x[:1_000] = np.round(x[:1_000])
    y = x + rng.normal(scale=0.4, size=x.shape)
    y[500:1_500] = np.round(y[500:1_500])
    y[2_000:2_500] = y[2_500:3_000]
    order = rng.permutation(5_000)
    y, own = y[order], np.argsort(order)
    assert_counts(x, y, own, counts_by_rule(x, y, own), methods)


@pytest.mark.parametrize(
    ("levels", "n", "methods"),
    [
        ([2, 2, 2, 5, 5], 200_000, (None,)),
        ([5, 5, 5, 5, 5], 200_000, (None,)),
        ([2, 2, 2, 5, 5], 8_000, METHODS),
    ],
)
def test_discrete_rows_agree_with_a_count_over_their_cells(
    levels: list[int], n: int, methods: tuple[Any, ...]
) -> None:
    rng = np.random.default_rng(1)
    a = rng.integers(0, levels, size=(n, 5))
    b = np.where(rng.random(a.shape) < 0.2, rng.integers(0, levels, size=a.shape), a)
    order = rng.permutation(n)
    b, own = b[order], np.argsort(order)
    # Counts depend on the cells alone, which are far fewer than the rows.
    cells = np.array(list(itertools.product(*map(range, levels))))
    at = np.ravel_multi_index(a.T, levels), np.ravel_multi_index(b.T, levels)
    weights = np.bincount(at[1], minlength=len(cells))
    squares = sum(np.subtract.outer(column, column) ** 2 for column in cells.T)
    farthest = int(squares.max())
    at_distance = np.array([np.bincount(row, weights, minlength=farthest + 1) for row in squares])
    within = np.cumsum(at_distance.astype(np.int64), axis=1)
    bound = squares[at[0], at[1][own]]
    closer = within[at[0], bound] - 1
    strictly = np.where(bound > 0, within[at[0], bound - 1], 0)
    assert_counts(a / 3 + 1e5, b / 3 + 1e5, own, (closer, strictly), methods)


def test_method_is_chosen_from_the_data() -> None:
    # With many copies in each place, a tree takes minutes where the blocks take seconds.
    chosen = [_suitable_method(200_000, 5, few_places=few) for few in (False, True)]
    assert chosen == (["compiled", "compiled"] if COMPILED else ["tree", "blocks"])
    assert _suitable_method(200_000, 60, few_places=False) == ("compiled" if COMPILED else "blocks")
    # Whether numba is installed or not: importing it takes longer than counting.
    assert [_suitable_method(5_000, 5, few_places=few) for few in (False, True)] == ["tree", "blocks"]
    assert _suitable_method(5_000, 60, few_places=False) == "blocks"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", [1e-170, 1e-158, 1e-30, 1e30, 1e140])
def test_counts_of_tiny_and_huge_coordinates_follow_the_rule(method: Any, scale: float) -> None:
    rng = np.random.default_rng(4)
    x = rng.integers(-4, 5, size=(700, 3)) * scale
    y = x + rng.integers(-2, 3, size=x.shape) * scale
    own = np.arange(700)
    assert_counts(x, y, own, counts_by_rule(x, y, own), (method,))


@pytest.mark.parametrize("method", METHODS)
def test_a_block_far_from_the_others_follows_the_rule(method: Any) -> None:
    # Two clusters, so far apart that beside their distance the balls' radii are a rounding error of float32.
    rng = np.random.default_rng(6)
    x = rng.normal(size=(1_500, 4))
    x[750:] += 1e9
    y = x[rng.permutation(750).tolist() + (750 + rng.permutation(750)).tolist()] + 0.1
    own = np.arange(1_500)
    assert_counts(x, y, own, counts_by_rule(x, y, own), (method,))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [1, 63, 64, 65, 257, 513, 1_025])
def test_sizes_around_those_of_leaves_and_blocks_follow_the_rule(method: Any, n: int) -> None:
    rng = np.random.default_rng(n)
    x = rng.normal(size=(n, 3)).round(1)
    y = x + rng.normal(scale=0.5, size=x.shape).round(1)
    own = rng.permutation(n)
    assert_counts(x, y, own, counts_by_rule(x, y, own), (method,))


@pytest.mark.parametrize("method", METHODS)
def test_weights_beyond_what_float32_adds_exactly(method: Any) -> None:
    # 17 million avatars in three places, and a few originals: their counts are those of the places.
    y = np.repeat([[0.0], [1.0], [4.0]], [17_000_001, 3, 5], axis=0)
    if method == "tree":
        y = y[-30:]  # which looks at every copy
    x, own = np.array([[0.2], [1.0], [3.0]]), np.array([len(y) - 9, len(y) - 6, len(y) - 1])
    zeros = len(y) - 8
    expected = np.array([zeros - 1, 2, 4]), np.array([0, 0, 0])
    assert_counts(x, y, own, expected, (method,))


def test_some_originals_have_the_counts_they_have_among_all() -> None:
    rng = np.random.default_rng(9)
    x = rng.normal(size=(500, 3)).round(1)
    y, own = x + rng.normal(scale=0.3, size=x.shape).round(1), rng.permutation(500)
    for method in METHODS:
        counter = CloserAvatarCounter(x, y, own, method=method)
        rows = rng.permutation(500)[:40]
        some, everyone = counter.some(rows), counter.all()
        np.testing.assert_array_equal(some.closer, everyone.closer[rows])
        np.testing.assert_array_equal(some.strictly_closer, everyone.strictly_closer[rows])


@pytest.mark.parametrize("method", METHODS)
def test_progress_is_told_up_to_the_last_row(method: Any) -> None:
    x = np.random.default_rng(2).normal(size=(40_000, 2))
    told: list[tuple[int, int]] = []
    CloserAvatarCounter(x, x + 0.001, method=method).all(lambda done, total: told.append((done, total)))
    assert len(told) > 1
    shares = [done / total for done, total in told]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert {total for _, total in told} == {40_000}  # originals, whatever the method works on


def test_equal_rows_far_apart_in_the_table_have_equal_counts() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(3_000, 3)) / 3
    y = x + rng.normal(scale=0.2, size=x.shape)
    x[2_999], y[2_999] = x[0], y[0]
    for method in METHODS:
        counts = count_closer_avatars(x, y, method=method)
        assert counts.closer[0] == counts.closer[2_999]
        assert counts.strictly_closer[0] == counts.strictly_closer[2_999]


def test_squares_are_summed_column_after_column() -> None:
    x = np.array([[1e8, 1.0, 1.0]])
    assert squared_distances(x, np.zeros((1, 3)))[0] == (1e16 + 1.0) + 1.0  # not 1e16 + (1.0 + 1.0)
    assert (1e16 + 1.0) + 1.0 != 1e16 + (1.0 + 1.0)


TWO = [[0.0, 0.0], [1.0, 1.0]]


@pytest.mark.parametrize(
    ("originals", "avatars", "own", "rows"),
    [
        ([[np.nan, 0.0], [1.0, 1.0]], TWO, None, 1),
        ([[np.nan, np.nan], [1.0, np.nan]], TWO, None, 2),
        (TWO, [[0.0, np.inf], [1.0, 1.0]], None, 1),
        (TWO, [[0.0, -np.inf], [1.0, np.nan]], None, 2),
        (TWO, [[0.0, 1e151], [1.0, 1.0]], None, 1),
        (TWO, [*TWO, *TWO], None, 2),
        (TWO, TWO[:1], None, 1),
        (TWO, TWO, [0, 2], 1),
        (TWO, TWO, [-1, -2], 2),
    ],
)
def test_refusal_tells_the_number_of_rows_and_the_remedy(
    originals: Any, avatars: Any, own: Any, rows: int
) -> None:
    with pytest.raises(InputError) as caught:
        closer_avatar_counts(originals, avatars, own)
    assert caught.value.rows == rows
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("originals", "avatars", "own"),
    [
        (TWO, [[0.0], [1.0]], None),
        ([0.0, 1.0], [0.0, 1.0], None),
        (np.zeros((2, 2, 2)), np.zeros((2, 2, 2)), None),
        ([["a", "b"]], [["a", "b"]], None),
        ([[0.0], [1.0, 2.0]], TWO, None),
        (TWO, TWO, [0]),
        (TWO, TWO, [[0, 1]]),
        (TWO, TWO, [0.0, 1.0]),
        (TWO, TWO, [False, True]),
        (TWO, TWO, ["0", "1"]),
    ],
)
def test_input_that_does_not_fit_is_refused(originals: Any, avatars: Any, own: Any) -> None:
    with pytest.raises(InputError) as caught:
        closer_avatar_counts(originals, avatars, own)
    assert caught.value.remedy


def test_input_is_not_changed() -> None:
    x, y = np.array([[-0.0], [5.0]]), np.array([[1.0], [-0.0]])
    own = np.array([1, 0])
    closer_avatar_counts(x, y, own)
    assert np.signbit(x[0, 0])
    assert np.signbit(y[1, 0])
    assert own.tolist() == [1, 0]
