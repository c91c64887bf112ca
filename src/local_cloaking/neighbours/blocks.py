"""Counting block against block with matrix products, where nothing is compiled.

Originals and avatars are divided in space into blocks. A block of avatars that lies beyond a ball is skipped, one
that lies within it is counted whole: its box is judged as `local_cloaking.neighbours.compiled` judges one. For the
others, one matrix product in float32 gives ``|x|^2 + |y|^2 - 2xy`` for all pairs of two blocks; each pair that is
nearer to a bound than the product's own error is summed anew as the rule says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from local_cloaking.neighbours.rule import (
    Balls,
    Floats,
    Integers,
    Within,
    corner_sums,
    squared_distances,
    squared_lengths,
)
from local_cloaking.threads import Progress, each_in_threads

#: Rows in a block, at most: the product of two (512 KiB) stays in a core's cache.
BLOCK_ORIGINALS = 256
BLOCK_AVATARS = 512

_EPSILON = float(np.finfo(np.float32).eps)
#: The square of a smaller unit vanishes.
SMALLEST_UNIT = 1e-150
#: More than what vanishes from a sum of the rule, in such units.
_VANISHED = 1e-20
#: float32 adds weights exactly up to here.
_LARGEST_EXACT_FLOAT32 = 1 << 24


class AvatarBlocks:
    """Distinct avatars, each with its weight, divided in space into blocks.

    Parameters
    ----------
    avatars
        Coordinates, shape (m, p), m at least 1.
    weights
        How often each counts, int64 of shape (m,); None for once each.
    """

    def __init__(self, avatars: Floats, weights: Integers | None = None) -> None:
        parts = list(_parts(avatars, BLOCK_AVATARS))
        if weights is None:
            weights = np.ones(len(avatars), np.int64)
        self._blocks = [_Block.of(avatars[rows], weights[rows]) for rows in parts]
        self._low = np.array([block.points.min(axis=0) for block in self._blocks])
        self._high = np.array([block.points.max(axis=0) for block in self._blocks])
        self._totals = np.array([weights[rows].sum() for rows in parts])

    def within(self, balls: Balls, progress: Progress | None = None) -> Within:
        """Count the avatars within the balls."""
        parts = list(_parts(balls.centres, BLOCK_ORIGINALS))
        found = Within(np.empty(len(balls), np.int64), np.empty(len(balls), np.int64))

        done = 0

        def count(rows: Integers) -> None:
            found.outer[rows], found.inner[rows] = self._count(balls[rows])

        def told(rows: Integers) -> None:
            nonlocal done
            done += len(rows)
            if progress is not None:
                progress(done, len(balls))

        # One BLAS thread a worker: blocks this small lose more by being divided than they gain.
        with threadpool_limits(limits=1, user_api="blas"):
            each_in_threads(count, parts, told)
        return found

    def _count(self, ball: Balls) -> tuple[Integers, Integers]:
        outer_square, inner_square = ball.outer**2, ball.inner**2
        near = np.flatnonzero(self._are_near(ball.centres, float(outer_square.max())))
        nearest, farthest = corner_sums(ball.centres, self._low[near], self._high[near])
        outside = nearest > outer_square[:, None]
        in_inner = farthest < inner_square[:, None]
        in_outer = (farthest <= outer_square[:, None]) & (in_inner | (nearest >= inner_square[:, None]))
        outer, inner = in_outer @ self._totals[near], in_inner @ self._totals[near]
        mixed = ~(outside | in_outer)
        product = _Product(ball.centres)
        for place in np.flatnonzero(mixed.any(axis=0)):
            rows = np.flatnonzero(mixed[:, place])
            more = product.count(self._blocks[near[place]], rows, outer_square[rows], inner_square[rows])
            outer[rows] += more[0]
            inner[rows] += more[1]
        return outer, inner

    def _are_near(self, centres: Floats, largest: float) -> NDArray[np.bool_]:
        """Tell which blocks the largest ball could touch from anywhere in the box of its block."""
        below, above = self._low - centres.max(axis=0), centres.min(axis=0) - self._high
        near: NDArray[np.bool_] = squared_lengths(np.maximum(np.maximum(below, above), 0.0)) <= largest
        return near


@dataclass(frozen=True)
class _Block:
    """A block of avatars, and their weights as what matrix products take."""

    points: Floats
    weights: Integers
    factors: NDArray[np.floating]

    @classmethod
    def of(cls, points: Floats, weights: Integers) -> _Block:
        exact = np.float32 if weights.sum() < _LARGEST_EXACT_FLOAT32 else np.float64
        return cls(points, weights, weights.astype(exact))


class _Product:
    """Originals of one block, made ready for products with blocks of avatars."""

    def __init__(self, centres: Floats) -> None:
        self._centres = centres
        # Around their middle, the terms that cancel are as small as they can be.
        self._middle = centres.mean(axis=0)
        self._x = centres - self._middle
        self._reach = float(np.abs(self._x).max())
        # Of the squared distance, as a share of (|x| + |y|)^2: the rounding of the coordinates, of the product and
        # of the sums, twice over.
        self._noise = (centres.shape[1] + 8) * _EPSILON

    def count(
        self, block: _Block, rows: Integers, outer_square: Floats, inner_square: Floats
    ) -> tuple[Integers, Integers]:
        """Count the avatars of a block within the balls of some originals."""
        y = block.points - self._middle
        # A power of two as the unit: nothing leaves float32's range, and no digit changes.
        unit = 2.0 ** np.ceil(np.log2(max(self._reach, float(np.abs(y).max()), SMALLEST_UNIT)))
        x32, y32 = (self._x[rows] / unit).astype(np.float32), (y / unit).astype(np.float32)
        x_squares, y_squares = (x32 * x32).sum(axis=1), (y32 * y32).sum(axis=1)
        s = x32 @ (-2 * y32.T)
        s += x_squares[:, None]
        s += y_squares
        error = self._noise * (np.sqrt(float(x_squares.max())) + np.sqrt(float(y_squares.max()))) ** 2 + _VANISHED
        sure = s < (inner_square / unit**2 - error).astype(np.float32)[:, None]
        possible = s <= (outer_square / unit**2 + error).astype(np.float32)[:, None]
        inner = (sure @ block.factors).astype(np.int64)
        outer = inner.copy()
        open_rows = np.flatnonzero((possible @ block.factors).astype(np.int64) != inner)
        if len(open_rows):
            i, j = np.nonzero(possible[open_rows] & ~sure[open_rows])
            i = open_rows[i]
            exact = squared_distances(self._centres[rows[i]], block.points[j])
            outer += _sums(i, block.weights[j] * (exact <= outer_square[i]), len(rows))
            inner += _sums(i, block.weights[j] * (exact < inner_square[i]), len(rows))
        return outer, inner


def _parts(points: Floats, size: int) -> Iterator[Integers]:
    """Divide points in half at the middle of the widest side until no part has more than so many rows."""
    waiting = [np.arange(len(points))]
    while waiting:
        rows = waiting.pop()
        if len(rows) <= size:
            yield rows
            continue
        part = points[rows]
        side = int((part.max(axis=0) - part.min(axis=0)).argmax())
        middle = len(rows) // 2
        rows = rows[np.argpartition(part[:, side], middle)]
        waiting += [rows[middle:], rows[:middle]]


def _sums(groups: Integers, values: Integers, size: int) -> Integers:
    # bincount adds in float64, which is exact up to 2**53 avatars.
    return np.bincount(groups, weights=values, minlength=size).astype(np.int64)
