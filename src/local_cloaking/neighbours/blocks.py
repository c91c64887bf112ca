"""Counting with matrix products: for many components, or few distinct avatars."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from local_cloaking.neighbours.rule import (
    Balls,
    CloserAvatars,
    Floats,
    Integers,
    in_threads,
    squared_distances,
)

#: Rows of originals and of avatars in one matrix product: the product (1 MiB) stays in a core's cache.
BLOCK_ORIGINALS = 128
BLOCK_AVATARS = 1_024

_EPSILON = float(np.finfo(np.float64).eps)


def count_by_blocks(balls: Balls, avatars: Floats, weights: Integers) -> CloserAvatars:
    """Count with matrix products, ``|x|^2 + |y|^2 - 2xy``; each pair near a bound is summed anew."""
    # Around the middle of the avatars, the terms that cancel are as small as they can be.
    middle = avatars.mean(axis=0)
    y = avatars - middle
    y_squares = squared_distances(y, np.zeros_like(y))
    # Rounding of the centring, of the three terms and of their sum, with a factor to spare.
    noise = 8 * (y.shape[1] + 8) * _EPSILON
    y_blocks = [slice(start, start + BLOCK_AVATARS) for start in range(0, len(y), BLOCK_AVATARS)]
    farthest = [float(np.sqrt(y_squares[block].max())) for block in y_blocks]

    def count(rows: slice) -> tuple[Integers, Integers]:
        ball = balls[rows]
        x = ball.centres - middle
        x_squares = squared_distances(x, np.zeros_like(x))
        closer, strictly = np.zeros(len(x), np.int64), np.zeros(len(x), np.int64)
        outer_square, inner_square = ball.outer**2, ball.inner**2
        for block, far in zip(y_blocks, farthest, strict=True):
            s = x @ (-2.0 * y[block].T)
            s += x_squares[:, None]
            s += y_squares[block]
            error = noise * (np.sqrt(x_squares) + far) ** 2
            inside = s < (inner_square - error)[:, None]
            surely = inside @ weights[block].astype(np.float64)
            strictly += surely.astype(np.int64)
            closer += surely.astype(np.int64)
            i, j = np.nonzero((s <= (outer_square + error)[:, None]) & ~inside)
            exact = squared_distances(ball.centres[i], avatars[block][j])
            w = weights[block][j]
            closer += _sums(i, w * (exact <= outer_square[i]), len(x))
            strictly += _sums(i, w * (exact < inner_square[i]), len(x))
        return closer - 1, strictly

    # One BLAS thread a worker: blocks this small lose more by being divided than they gain.
    with threadpool_limits(limits=1, user_api="blas"):
        parts = in_threads(count, len(balls), BLOCK_ORIGINALS)
    return CloserAvatars(np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts]))


def _sums(groups: Integers, values: Integers, size: int) -> Integers:
    # bincount adds in float64, which is exact up to 2**53 avatars.
    return np.bincount(groups, weights=values, minlength=size).astype(np.int64)
