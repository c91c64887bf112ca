"""Counting the closer avatars: exactly, whatever the method.

The rule (`local_cloaking.neighbours.rule`) is that of the metric, with ties decided so that floating-point noise
cannot move a count. The own avatar never counts; it is left out by identity. Three methods keep to it:

============  ======================================================  ======================================
method        how                                                     chosen when
============  ======================================================  ======================================
``compiled``  a k-d tree of the distinct avatars, compiled by numba   few components, numba is installed
``tree``      radius counts on scipy's k-d tree                       few components, few copies
``blocks``    matrix products of originals with distinct avatars      many components, or few distinct avatars
============  ======================================================  ======================================
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from local_cloaking.errors import InputError
from local_cloaking.neighbours.rule import (
    TIE_TOLERANCE,
    Balls,
    CloserAvatars,
    Floats,
    Integers,
    squared_distances,
)

Method = Literal["compiled", "tree", "blocks"]

#: A k-d tree prunes well up to about this many components; beyond it, matrix products are faster.
TREE_MAX_COMPONENTS = 8
#: With fewer distinct avatars than this, looking at each of them is faster than any tree.
TREE_MIN_AVATARS = 2_000
#: With more copies of each avatar than this, in the mean, looking at each distinct one is faster too: a ball's
#: bound then runs through leaves full of copies, which the tree tests one by one.
TREE_MAX_COPIES = 4

#: Squares of coordinates must not overflow.
LARGEST_COORDINATE = 1e150

__all__ = [
    "TIE_TOLERANCE",
    "CloserAvatars",
    "closer_avatar_counts",
    "count_closer_avatars",
    "squared_distances",
]


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
    balls = Balls.around(x[x_rows[pairs // len(y_rows)]], y[y_rows[pairs % len(y_rows)]])
    if method is None:
        method = _suitable_method(components=x.shape[1], avatars=len(y), distinct_avatars=len(y_rows))
    weights = np.bincount(y_of, minlength=len(y_rows))
    counts = _count(method, balls, y, y[y_rows], weights)
    return CloserAvatars(counts.closer[pair_of], counts.strictly_closer[pair_of])


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
    if components > TREE_MAX_COMPONENTS or distinct_avatars < TREE_MIN_AVATARS:
        return "blocks"
    if _can_compile():
        return "compiled"
    return "tree" if avatars <= TREE_MAX_COPIES * distinct_avatars else "blocks"


@cache
def _can_compile() -> bool:
    try:
        from local_cloaking.neighbours.compiled import count_compiled  # noqa: F401
    except (ImportError, RuntimeError):
        # numba is not installed, does not know this numpy, or finds no place to keep what it compiles.
        return False
    return True


def _count(method: Method, balls: Balls, avatars: Floats, distinct: Floats, weights: Integers) -> CloserAvatars:
    # Imported here: numba and scipy take their time, and only one of them is needed.
    if method == "compiled":
        from local_cloaking.neighbours.compiled import count_compiled

        return count_compiled(balls, distinct, weights)
    if method == "tree":
        from local_cloaking.neighbours.tree import count_by_tree

        return count_by_tree(balls, avatars)
    from local_cloaking.neighbours.blocks import count_by_blocks

    return count_by_blocks(balls, distinct, weights)
