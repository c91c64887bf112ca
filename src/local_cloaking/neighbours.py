r"""Counting the closer avatars: exactly, whatever the method.

The rule is that of the metric, with ties decided so that floating-point noise cannot move a count. With

.. math::

    s_{ij} = \sum_k (x_{ik} - y_{jk})^2, \quad d_i = \sqrt{s_{i\,a(i)}}, \quad
    r_i = d_i + \tau (|x_i| + d_i), \quad q_i = \max(0,\; d_i - \tau (|x_i| + d_i))

the columns summed in their order in float64, avatar *j* is **closer** when :math:`s_{ij} \le r_i^2` and
**strictly closer** when :math:`s_{ij} < q_i^2`. The own avatar never counts; it is left out by identity.

Two methods share that rule. Neither trusts its own rounding: whatever lies within its error of a bound is
decided by the sum :math:`s_{ij}` itself.

===========  =======================================================  ======================================
method       how                                                      chosen when
===========  =======================================================  ======================================
``tree``     radius counts on a k-d tree of the avatars               few components, many distinct avatars
``blocks``   matrix products of originals with distinct avatars       many components, or few distinct avatars
===========  =======================================================  ======================================
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from local_cloaking.errors import InputError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Method = Literal["tree", "blocks"]

#: Two distances that differ by less than this share of ``|x_i| + d_i`` are equal.
TIE_TOLERANCE = 1e-12

#: A k-d tree prunes well up to about this many components; beyond it, matrix products are faster.
TREE_MAX_COMPONENTS = 8
#: With fewer distinct avatars than this, looking at each of them is faster than any tree.
TREE_MIN_AVATARS = 2_000
#: With more copies of each avatar than this, in the mean, looking at each distinct one is faster too: a ball's
#: bound then runs through leaves full of copies, which the tree tests one by one.
TREE_MAX_COPIES = 4

#: Rows of originals and of avatars in one matrix product: the product (1 MiB) stays in a core's cache.
BLOCK_ORIGINALS = 128
BLOCK_AVATARS = 1_024

#: Squares of coordinates must neither overflow nor vanish.
LARGEST_COORDINATE = 1e150
SMALLEST_RADIUS = 1e-140

_EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class CloserAvatars:
    """For each original, how many avatars other than its own are as near or nearer than its own.

    Attributes
    ----------
    closer
        int64, shape (n,): avatars at most as far away as the own one, ties included.
    strictly_closer
        int64, shape (n,): avatars nearer than the own one, ties left out.
    """

    closer: Integers
    strictly_closer: Integers


def closer_avatar_counts(originals: ArrayLike, avatars: ArrayLike, own: ArrayLike | None = None) -> Integers:
    """Count, for each original, the other avatars that are at most as far away as its own.

    Parameters
    ----------
    originals
        Coordinates, shape (n, p): finite numbers.
    avatars
        Coordinates, shape (m, p), in the same space.
    own
        ``own[i]`` is the row of the avatar of original ``i``, shape (n,); by default ``i``, and then
        there must be as many avatars as originals.

    Returns
    -------
    int64 array of shape (n,), each value between 0 and m - 1.

    Raises
    ------
    InputError
        If shapes do not fit, a coordinate is not finite, or ``own`` names a row that is not there.

    Examples
    --------
    The second avatar stands as near to the first original as that original's own: a tie counts.

    >>> closer_avatar_counts([[0.0], [5.0]], [[1.0], [-1.0]])
    array([1, 1])
    """
    return count_closer_avatars(originals, avatars, own).closer


def count_closer_avatars(
    originals: ArrayLike, avatars: ArrayLike, own: ArrayLike | None = None, *, method: Method | None = None
) -> CloserAvatars:
    """Count the closer and the strictly closer avatars of each original.

    Parameters and errors are those of `closer_avatar_counts`; ``method`` forces a method, by default the
    one that suits the data. The counts do not depend on it.

    Examples
    --------
    >>> count_closer_avatars([[0.0], [5.0]], [[1.0], [-1.0]]).strictly_closer
    array([0, 1])
    """
    x, y, own_rows = _validated(originals, avatars, own)
    if len(x) == 0:
        return CloserAvatars(np.zeros(0, np.int64), np.zeros(0, np.int64))
    x_rows, x_of = _distinct_rows(x)
    y_rows, y_of = _distinct_rows(y)
    # The counts of an original depend on where it and its avatar stand, and on nothing else.
    pairs, pair_of = np.unique(x_of * np.int64(len(y_rows)) + y_of[own_rows], return_inverse=True)
    balls = _Balls.around(x[x_rows[pairs // len(y_rows)]], y[y_rows[pairs % len(y_rows)]])
    if method is None:
        method = _suitable_method(components=x.shape[1], avatars=len(y), distinct_avatars=len(y_rows))
    if method == "tree":
        counts = _count_by_tree(balls, y)
    else:
        counts = _count_by_blocks(balls, y[y_rows], np.bincount(y_of, minlength=len(y_rows)))
    return CloserAvatars(counts.closer[pair_of], counts.strictly_closer[pair_of])


def squared_distances(x: Floats, y: Floats) -> Floats:
    """Sum the squared differences over the last axis, one column after the other: the s_ij of the rule."""
    total = np.zeros(np.broadcast_shapes(x.shape, y.shape)[:-1])
    for column in range(x.shape[-1]):
        difference = x[..., column] - y[..., column]
        total += difference * difference
    return total


@dataclass(frozen=True)
class _Balls:
    """Originals with the two radii of the rule: ``outer`` is r_i and ``inner`` is q_i."""

    centres: Floats
    outer: Floats
    inner: Floats

    @classmethod
    def around(cls, x: Floats, own_avatars: Floats) -> _Balls:
        distance = np.sqrt(squared_distances(x, own_avatars))
        slack = TIE_TOLERANCE * (np.sqrt(squared_distances(x, np.zeros_like(x))) + distance)
        return cls(x, distance + slack, np.maximum(0.0, distance - slack))

    def __len__(self) -> int:
        return len(self.centres)

    def __getitem__(self, rows: Any) -> _Balls:
        return _Balls(self.centres[rows], self.outer[rows], self.inner[rows])


def _validated(originals: ArrayLike, avatars: ArrayLike, own: ArrayLike | None) -> tuple[Floats, Floats, Integers]:
    x, y = _coordinates(originals, "originals"), _coordinates(avatars, "avatars")
    if x.shape[1] != y.shape[1]:
        raise InputError(
            f"the originals have {x.shape[1]} components, the avatars {y.shape[1]}",
            remedy="project both into the same space",
        )
    if own is None:
        if len(x) != len(y):
            raise InputError(
                f"{len(x)} originals, {len(y)} avatars",
                rows=abs(len(x) - len(y)),
                remedy="give one avatar per original, or `own`, the avatar's row of each original",
            )
        return x, y, np.arange(len(x))
    rows = np.asarray(own)
    if rows.shape != (len(x),) or (rows.size and not np.issubdtype(rows.dtype, np.integer)):
        raise InputError("`own` is not one row number per original", remedy="give n whole numbers")
    outside = int(np.count_nonzero((rows < 0) | (rows >= len(y))))
    if outside:
        raise InputError(
            f"`own` names {outside} rows that are not among the {len(y)} avatars",
            rows=outside,
            remedy="count the rows of the avatars from 0",
        )
    return x, y, rows.astype(np.int64)


def _coordinates(values: ArrayLike, name: str) -> Floats:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        # Without the cause: its message shows the cell.
        raise InputError(f"the coordinates of the {name} are not numbers", remedy="give numbers") from None
    if array.ndim != 2:
        raise InputError(
            f"the coordinates of the {name} have {array.ndim} dimensions",
            remedy="give one row per individual and one column per component",
        )
    bad = int(np.count_nonzero(~(np.abs(array) <= LARGEST_COORDINATE).all(axis=1)))
    if bad:
        raise InputError(
            f"{bad} {name} have a coordinate that is missing, infinite or beyond {LARGEST_COORDINATE:g}",
            rows=bad,
            remedy="fill or mend them first",
        )
    # -0.0 and 0.0 are the same place; adding 0.0 makes them the same bits, as _distinct_rows needs.
    return array + 0.0


def _distinct_rows(a: Floats) -> tuple[Integers, Integers]:
    """Return one row number per distinct row, and for each row the place of its like in that list."""
    # A row's hash sorts forty times faster than the row; that equal hashes are equal rows is checked.
    hashes = np.zeros(len(a), np.uint64)
    for column in a.T:
        bits = np.ascontiguousarray(column).view(np.uint64)
        hashes = (hashes ^ bits) * np.uint64(0x9E3779B97F4A7C15)
        hashes ^= hashes >> np.uint64(29)
    _, rows, place = np.unique(hashes, return_index=True, return_inverse=True)
    if not np.array_equal(a[rows[place]], a):
        _, rows, place = np.unique(a, axis=0, return_index=True, return_inverse=True)
    return rows.astype(np.int64), place.reshape(-1).astype(np.int64)


def _suitable_method(*, components: int, avatars: int, distinct_avatars: int) -> Method:
    few_copies = distinct_avatars >= TREE_MIN_AVATARS and avatars <= TREE_MAX_COPIES * distinct_avatars
    return "tree" if components <= TREE_MAX_COMPONENTS and few_copies else "blocks"


def _count_by_tree(balls: _Balls, avatars: Floats) -> CloserAvatars:
    """Count with radius queries a hair wider and narrower than the rule's radii.

    Where the two agree, rounding cannot matter.
    """
    from scipy.spatial import cKDTree

    order = cKDTree(balls.centres, compact_nodes=False, balanced_tree=False).indices
    balls = balls[order]  # neighbours one after the other: they visit the same nodes
    tree = cKDTree(avatars, leafsize=24, compact_nodes=True, balanced_tree=False)
    hair = (avatars.shape[1] + 16) * _EPSILON

    def within(radii: Floats, rows: Any) -> Integers:
        found = tree.query_ball_point(balls.centres[rows], radii[rows], return_length=True, workers=_workers())
        return np.where(radii[rows] > 0, found, 0).astype(np.int64)

    closer, strictly = within(balls.outer * (1 + hair), ...), within(balls.inner * (1 - hair), ...)
    # Between the two bounds stands the own avatar; if nothing else does, both counts are settled.
    open_rows = np.flatnonzero((closer - strictly != 1) | (balls.outer < SMALLEST_RADIUS))
    if len(open_rows):
        unsure = within(balls.outer * (1 - hair), open_rows) != closer[open_rows]
        unsure |= within(balls.inner * (1 + hair), open_rows) != strictly[open_rows]
        unsure |= balls.outer[open_rows] < SMALLEST_RADIUS
        for row in open_rows[unsure]:
            s = squared_distances(balls.centres[row], avatars)
            closer[row] = np.count_nonzero(s <= balls.outer[row] ** 2)
            strictly[row] = np.count_nonzero(s < balls.inner[row] ** 2)
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return CloserAvatars(closer[back] - 1, strictly[back])


def _count_by_blocks(balls: _Balls, avatars: Floats, weights: Integers) -> CloserAvatars:
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

    parts = _in_threads(count, [slice(s, s + BLOCK_ORIGINALS) for s in range(0, len(balls), BLOCK_ORIGINALS)])
    return CloserAvatars(np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts]))


def _sums(groups: Integers, values: Integers, size: int) -> Integers:
    # bincount adds in float64, which is exact up to 2**53 avatars.
    return np.bincount(groups, weights=values, minlength=size).astype(np.int64)


def _in_threads(
    work: Callable[[slice], tuple[Integers, Integers]], parts: list[slice]
) -> list[tuple[Integers, Integers]]:
    from threadpoolctl import threadpool_limits

    # One BLAS thread a worker: blocks this small lose more by being divided than they gain.
    with threadpool_limits(limits=1, user_api="blas"), ThreadPoolExecutor(_workers()) as pool:
        return list(pool.map(work, parts))


def _workers() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
