"""Counting on a k-d tree of our own, compiled by numba where that is installed (extra `fast`).

The tree's boxes are judged by the very sum of the rule. Rounding is monotone: no point of a box has a smaller sum
than the corner nearest to the original, nor a larger one than the farthest, each summed column after column as
the rule says. So a box beyond the bounds is skipped, and one within them counted whole, without any slack; the
points of the leaves that remain are summed one by one. No pair is ever in doubt.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from local_cloaking.neighbours.rule import Balls, Floats, Integers, Within
from local_cloaking.threads import Progress, cores, each_in_threads, in_threads

#: Avatars in a leaf, at most: as many as the processor sums at once, a few times over.
LEAF_AVATARS = 64
#: Originals in one piece of a thread's work.
_PIECE = 2_048
#: Rows of originals, and leaves, in one piece of the lighter work.
_MANY = 16_384
#: Points from which the division of a node is guessed.
_SAMPLE = 127
#: Where a leaf has fewer avatars than the others: so far away that it never counts.
_NOWHERE = 1e200


class CompiledTree:
    """Distinct avatars, each with its weight, divided in half again and again, down to the leaves.

    The children of node i are 2 i + 1 and 2 i + 2; all leaves lie on one level.

    Parameters
    ----------
    avatars
        Coordinates, shape (m, p), m at least 1.
    weights
        How often each counts, int64 of shape (m,); None for once each.
    """

    def __init__(self, avatars: Floats, weights: Integers | None = None) -> None:
        points, order = avatars.copy(), np.arange(len(avatars))
        depth = max(0, int(np.ceil(np.log2(len(points) / LEAF_AVATARS))))
        nodes, self._first_leaf = 2 ** (depth + 1) - 1, 2**depth - 1
        start, end = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
        end[0] = len(points)
        self._low, self._high = np.empty((nodes, points.shape[1])), np.empty((nodes, points.shape[1]))
        self._widest, self._split = np.zeros(nodes, np.int64), np.zeros(nodes)
        arrays = (points, order, start, end, self._widest, self._split)
        # The first levels node by node, until there is a part of the tree for every core to finish.
        level = min(depth, int(np.ceil(np.log2(cores()))) + 3)
        for above in range(level):
            each_in_threads(lambda node: _divide(*arrays, node, False), _nodes_of(above))
        each_in_threads(lambda node: _divide(*arrays, node, True), _nodes_of(level))
        _fit_boxes(points, start, end, self._low, self._high)
        weight_before = np.arange(len(points) + 1)
        if weights is not None:
            weights = weights[order]
            weight_before = np.concatenate([[0], np.cumsum(weights)])
        self._node_weights = weight_before[end] - weight_before[start]
        leaf_start, leaf_end = start[self._first_leaf :], end[self._first_leaf :]
        self._leaves = np.empty((len(leaf_start), points.shape[1], int((leaf_end - leaf_start).max())))
        in_threads(
            lambda rows: _copy_leaves(points, leaf_start[rows], leaf_end[rows], self._leaves[rows]),
            len(leaf_start),
            _MANY // LEAF_AVATARS,
        )
        self._leaf_weights = _leaf_weights(weights, leaf_start, leaf_end)

    def within(self, balls: Balls, progress: Progress | None = None) -> Within:
        """Count the avatars within the balls."""
        leaf_of = np.empty(len(balls), np.int32)
        in_threads(
            lambda rows: _find_leaf(balls.centres[rows], self._widest, self._split, leaf_of[rows]),
            len(balls),
            _MANY,
        )
        # Neighbours one after the other: they visit the same leaves.
        places = _order_by_leaf(leaf_of, len(self._leaves))
        found = Within(np.empty(len(balls), np.int64), np.empty(len(balls), np.int64))

        def count(rows: slice) -> None:
            piece = balls[places[rows]]
            outer, inner = np.empty(len(piece), np.int64), np.empty(len(piece), np.int64)
            _count(
                piece.centres,
                piece.outer**2,
                piece.inner**2,
                self._leaves,
                self._leaf_weights,
                self._node_weights,
                self._low,
                self._high,
                outer,
                inner,
            )
            found.outer[places[rows]], found.inner[places[rows]] = outer, inner

        in_threads(count, len(balls), min(_PIECE, len(balls) // (4 * cores()) + 1), progress)
        return found


def _nodes_of(level: int) -> range:
    return range(2**level - 1, 2 ** (level + 1) - 1)


def _leaf_weights(weights: Integers | None, start: Integers, end: Integers) -> Integers:
    """Lay out the weights leaf by leaf, shape (leaves, points); of shape (0, 0) where all are 1."""
    if weights is None:
        return np.zeros((0, 0), np.int64)
    rows = start[:, None] + np.arange(int((end - start).max()))
    return np.where(rows < end[:, None], weights[np.minimum(rows, len(weights) - 1)], 0)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _divide(
    points: Floats,
    order: Integers,
    start: Integers,
    end: Integers,
    widest: Integers,
    split: Floats,
    root: int,
    below: bool,
) -> None:  # pragma: no cover (compiled)
    """Divide a node's points at the middle of its widest side, and, if asked to, all below it."""
    waiting = np.empty(128, np.int64)
    waiting[0], count = root, 1
    while count > 0:
        count -= 1
        node = waiting[count]
        if 2 * node + 2 >= len(start):
            continue
        first, last = start[node], end[node]
        middle, side = (first + last) // 2, _widest_side(points, first, last)
        _select(points, order, first, last - 1, middle, side)
        widest[node], split[node] = side, points[middle, side]
        start[2 * node + 1], end[2 * node + 1] = first, middle
        start[2 * node + 2], end[2 * node + 2] = middle, last
        if below:
            waiting[count], waiting[count + 1] = 2 * node + 1, 2 * node + 2
            count += 2


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _widest_side(points: Floats, first: int, last: int) -> int:  # pragma: no cover (compiled)
    """Find the side along which the points reach farthest, by some of them: no count depends on it."""
    side, width = 0, -1.0
    for column in range(points.shape[1]):
        least, most = np.inf, -np.inf
        for place in range(first, last, (last - first) // _SAMPLE + 1):
            least, most = min(least, points[place, column]), max(most, points[place, column])
        if most - least > width:
            side, width = column, most - least
    return side


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _select(
    points: Floats, order: Integers, left: int, right: int, middle: int, column: int
) -> None:  # pragma: no cover (compiled)
    """Reorder so that nothing before the middle is larger in this column than what follows (Hoare's find)."""
    while right > left:
        pivot = _pivot(points, left, right, middle, column)
        i, j = left, right
        while i <= j:
            while points[i, column] < pivot:
                i += 1
            while points[j, column] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                for k in range(points.shape[1]):
                    points[i, k], points[j, k] = points[j, k], points[i, k]
                i += 1
                j -= 1
        if middle <= j:
            right = j
        elif middle >= i:
            left = i
        else:
            return


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _pivot(
    points: Floats, left: int, right: int, middle: int, column: int
) -> float:  # pragma: no cover (compiled)
    """Guess the value that the middle will have, from a sample."""
    if right - left < 8 * _SAMPLE:
        return points[(left + right) // 2, column]  # type: ignore[no-any-return]
    sample = np.empty(_SAMPLE)
    for k in range(_SAMPLE):
        sample[k] = points[left + (right - left) * k // (_SAMPLE - 1), column]
    sample.sort()
    return sample[(middle - left) * (_SAMPLE - 1) // (right - left)]  # type: ignore[no-any-return]


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _fit_boxes(
    points: Floats, start: Integers, end: Integers, low: Floats, high: Floats
) -> None:  # pragma: no cover (compiled)
    """Draw the leaves' boxes around their points, and each other box around those of its two children."""
    for node in range(len(start) - 1, -1, -1):
        for column in range(points.shape[1]):
            least, most = np.inf, -np.inf
            if 2 * node + 2 < len(start):
                least = min(low[2 * node + 1, column], low[2 * node + 2, column])
                most = max(high[2 * node + 1, column], high[2 * node + 2, column])
            else:
                for place in range(start[node], end[node]):
                    least, most = min(least, points[place, column]), max(most, points[place, column])
            low[node, column], high[node, column] = least, most


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _copy_leaves(
    points: Floats, start: Integers, end: Integers, leaves: Floats
) -> None:  # pragma: no cover (compiled)
    """Lay out the points leaf by leaf, column by column, as the processor likes them."""
    for leaf in range(len(leaves)):
        for column in range(points.shape[1]):
            for place in range(leaves.shape[2]):
                row = start[leaf] + place
                leaves[leaf, column, place] = points[row, column] if row < end[leaf] else _NOWHERE


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _find_leaf(
    centres: Floats, widest: Integers, split: Floats, leaf_of: NDArray[np.int32]
) -> None:  # pragma: no cover (compiled)
    """Find the leaf in whose part of the space each original stands."""
    first_leaf = len(widest) // 2
    for row in range(len(centres)):
        node = 0
        while node < first_leaf:
            node = 2 * node + (2 if centres[row, widest[node]] >= split[node] else 1)
        leaf_of[row] = node - first_leaf


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _order_by_leaf(leaf_of: NDArray[np.int32], leaves: int) -> Integers:  # pragma: no cover (compiled)
    """Return the rows, leaf after leaf."""
    place = np.zeros(leaves + 1, np.int64)
    for leaf in leaf_of:
        place[leaf + 1] += 1
    place = np.cumsum(place)
    order = np.empty(len(leaf_of), np.int64)
    for row in range(len(leaf_of)):
        order[place[leaf_of[row]]] = row
        place[leaf_of[row]] += 1
    return order


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _bounds(centre: Floats, low: Floats, high: Floats) -> tuple[float, float]:  # pragma: no cover (compiled)
    """Return the sums of the rule for the box's nearest and farthest corners."""
    nearest, farthest = 0.0, 0.0
    for column in range(len(centre)):
        above, below = centre[column] - low[column], high[column] - centre[column]
        outside, reach = min(above, below, 0.0), max(above, below)
        nearest += outside * outside
        farthest += reach * reach
    return nearest, farthest


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _sum_leaf(centre: Floats, leaf: Floats, sums: Floats) -> None:  # pragma: no cover (compiled)
    """Compute the sums of the rule for all points of a leaf, side by side."""
    for j in range(len(sums)):
        sums[j] = 0.0
    for column in range(len(centre)):
        x, y = centre[column], leaf[column]
        for j in range(len(sums)):
            difference = x - y[j]
            sums[j] += difference * difference


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _count(
    centres: Floats,
    outer_square: Floats,
    inner_square: Floats,
    leaves: Floats,
    leaf_weights: Integers,
    node_weights: Integers,
    low: Floats,
    high: Floats,
    found_outer: NDArray[Any],
    found_inner: NDArray[Any],
) -> None:  # pragma: no cover (compiled)
    first_leaf = len(low) // 2
    waiting = np.empty(128, np.int64)
    sums = np.empty(leaves.shape[2])
    weighted = len(leaf_weights) > 0
    for row in range(len(centres)):
        outer, inner = outer_square[row], inner_square[row]
        in_outer, in_inner = 0, 0
        waiting[0], count = 0, 1
        while count > 0:
            count -= 1
            node = waiting[count]
            nearest, farthest = _bounds(centres[row], low[node], high[node])
            if nearest > outer:
                continue
            if farthest <= outer and (farthest < inner or nearest >= inner):
                in_outer += node_weights[node]
                in_inner += node_weights[node] if farthest < inner else 0
            elif node < first_leaf:
                waiting[count], waiting[count + 1] = 2 * node + 1, 2 * node + 2
                count += 2
            else:
                _sum_leaf(centres[row], leaves[node - first_leaf], sums)
                if weighted:
                    weights = leaf_weights[node - first_leaf]
                    for j in range(len(sums)):
                        in_outer += weights[j] if sums[j] <= outer else 0
                        in_inner += weights[j] if sums[j] < inner else 0
                else:
                    for j in range(len(sums)):
                        in_outer += 1 if sums[j] <= outer else 0
                        in_inner += 1 if sums[j] < inner else 0
        found_outer[row], found_inner[row] = in_outer, in_inner
