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

from local_cloaking.neighbours.rule import Balls, CloserAvatars, Floats, Integers, in_threads

#: Avatars in a leaf, at most: as many as the processor sums at once, a few times over.
LEAF_AVATARS = 64
#: Originals that are counted one after the other: neighbours, which visit the same leaves.
LEAF_ORIGINALS = 256
#: Originals in one piece of a thread's work.
_PIECE = 16_384
#: Where a leaf has fewer avatars than the others: so far away that it never counts.
_NOWHERE = 1e200


def count_compiled(balls: Balls, avatars: Floats, weights: Integers) -> CloserAvatars:
    """Count distinct avatars, each as often as its weight says."""
    order, start, end, low, high = _tree(avatars, LEAF_AVATARS)
    points, point_weights = _leaves(avatars[order], weights[order], start, end)
    weight_before = np.concatenate([[0], np.cumsum(weights[order])])
    node_weights = weight_before[end] - weight_before[start]
    places = _tree(balls.centres, LEAF_ORIGINALS)[0]
    sorted_balls = balls[places]
    closer, strictly = np.empty(len(balls), np.int64), np.empty(len(balls), np.int64)

    def count(rows: slice) -> None:
        piece = sorted_balls[rows]
        found = np.empty((2, len(piece)), np.int64)
        _count(
            piece.centres, piece.outer**2, piece.inner**2, points, point_weights, node_weights, low, high, found
        )
        closer[places[rows]], strictly[places[rows]] = found[0] - 1, found[1]

    in_threads(count, len(balls), _PIECE)
    return CloserAvatars(closer, strictly)


def _tree(points: Floats, leaf: int) -> tuple[Integers, Integers, Integers, Floats, Floats]:
    """Divide points in half, again and again, until no leaf holds more than so many.

    Returns
    -------
    order
        Shape (m,): the points, leaf after leaf.
    start, end
        For each node, the piece of ``order`` that it holds. The children of node i are 2 i + 1 and 2 i + 2; all
        leaves lie on one level.
    low, high
        Shape (nodes, p): the corners of each node's box.
    """
    depth = max(0, int(np.ceil(np.log2(max(1, len(points)) / leaf))))
    nodes = 2 ** (depth + 1) - 1
    order = np.arange(len(points))
    start, end = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    low, high = np.empty((nodes, points.shape[1])), np.empty((nodes, points.shape[1]))
    _divide(np.ascontiguousarray(points), order, start, end, low, high)
    return order, start, end, low, high


def _leaves(points: Floats, weights: Integers, start: Integers, end: Integers) -> tuple[Floats, Integers]:
    """Copy the points leaf by leaf, column by column, as the processor likes them: shape (leaves, p, points)."""
    first = len(start) // 2
    width = int((end - start)[first:].max())
    rows = start[first:, None] + np.arange(width)
    filled = rows < end[first:, None]
    rows = np.minimum(rows, len(points) - 1)
    copied = np.where(filled[:, None, :], points[rows].transpose(0, 2, 1), _NOWHERE)
    return np.ascontiguousarray(copied), np.where(filled, weights[rows], 0)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _divide(
    points: Floats, order: Integers, start: Integers, end: Integers, low: Floats, high: Floats
) -> None:  # pragma: no cover (compiled)
    nodes, columns = low.shape
    end[0] = len(points)
    for node in range(nodes):
        widest, width = 0, -1.0
        for column in range(columns):
            least, most = np.inf, -np.inf
            for place in range(start[node], end[node]):
                value = points[order[place], column]
                least, most = min(least, value), max(most, value)
            low[node, column], high[node, column] = least, most
            if most - least > width:
                widest, width = column, most - least
        if 2 * node + 2 < nodes:
            middle = (start[node] + end[node]) // 2
            _select(points, order, start[node], end[node] - 1, middle, widest)
            start[2 * node + 1], end[2 * node + 1] = start[node], middle
            start[2 * node + 2], end[2 * node + 2] = middle, end[node]


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _select(
    points: Floats, order: Integers, left: int, right: int, middle: int, column: int
) -> None:  # pragma: no cover (compiled)
    """Reorder so that nothing before the middle is larger in this column than what follows (Hoare's find)."""
    while right > left:
        pivot = points[order[(left + right) // 2], column]
        i, j = left, right
        while i <= j:
            while points[order[i], column] < pivot:
                i += 1
            while points[order[j], column] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            right = j
        elif middle >= i:
            left = i
        else:
            return


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
    points: Floats,
    point_weights: Integers,
    node_weights: Integers,
    low: Floats,
    high: Floats,
    found: NDArray[Any],
) -> None:  # pragma: no cover (compiled)
    first_leaf = len(low) // 2
    waiting = np.empty(256, np.int64)  # a stack, twice as deep as any tree
    sums = np.empty(points.shape[2])
    for row in range(len(centres)):
        outer, inner = outer_square[row], inner_square[row]
        closer, strictly = 0, 0
        waiting[0], count = 0, 1
        while count > 0:
            count -= 1
            node = waiting[count]
            nearest, farthest = _bounds(centres[row], low[node], high[node])
            if nearest > outer:
                continue
            if farthest <= outer and (farthest < inner or nearest >= inner):
                closer += node_weights[node]
                strictly += node_weights[node] if farthest < inner else 0
            elif node < first_leaf:
                waiting[count], waiting[count + 1] = 2 * node + 1, 2 * node + 2
                count += 2
            else:
                _sum_leaf(centres[row], points[node - first_leaf], sums)
                weights = point_weights[node - first_leaf]
                for j in range(len(sums)):
                    closer += weights[j] if sums[j] <= outer else 0
                    strictly += weights[j] if sums[j] < inner else 0
        found[0, row], found[1, row] = closer, strictly
