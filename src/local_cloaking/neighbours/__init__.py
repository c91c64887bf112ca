"""Counting the closer avatars: exactly, whatever the method.

The rule (`local_cloaking.neighbours.rule`) is that of the metric, with ties decided so that floating-point noise
cannot move a count. The own avatar never counts; it is left out by identity.

Avatars that stand in the same place are counted as one, with a weight, where most of them do: discrete data has
few places, and a ball's bound that runs through thousands of copies would look at each of them. Three methods keep
to the rule. All divide the space, skip what lies beyond a ball and count whole what lies within it:

============  ====================================================  ==============================================
method        how it looks at what is left                          chosen when
============  ====================================================  ==============================================
``compiled``  one by one, on a k-d tree of our own                  numba is installed (extra ``fast``), and there
                                                                    are avatars enough to be worth its import
``tree``      radius counts on scipy's k-d tree, a hair wider and   otherwise, with few components, where most
              narrower than the rule's radii                        avatars stand in places of their own
``blocks``    matrix products of blocks, rechecked near a bound     otherwise
============  ====================================================  ==============================================

Compiled, a k-d tree is ahead with few components as with many, with sparse balls (avatars near their originals) as
with dense ones; without numba, matrix products overtake a tree once boxes in many components overlap most balls.
``make bench`` compares them with what else a user could take, and with each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from local_cloaking.errors import InputError
from local_cloaking.neighbours.rule import (
    TIE_TOLERANCE,
    Balls,
    CloserAvatars,
    Floats,
    Integers,
    Within,
    squared_distances,
)
from local_cloaking.rows import number_of_different, row_hashes
from local_cloaking.threads import Progress

Method = Literal["compiled", "tree", "blocks"]

#: Below this many avatars, any method takes less than the two seconds that importing numba does.
COMPILED_MIN_AVATARS = 10_000
#: Without numba: scipy's k-d tree is faster than matrix products up to about this many components.
TREE_MAX_COMPONENTS = 8

#: Below this share of different places, each place is counted once, with a weight.
FEW_PLACES = 0.5

#: Squares of coordinates must not overflow.
LARGEST_COORDINATE = 1e150

__all__ = [
    "TIE_TOLERANCE",
    "AvatarIndex",
    "Balls",
    "CloserAvatarCounter",
    "CloserAvatars",
    "Progress",
    "Within",
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
    one that suits the machine. The counts do not depend on it.

    Examples
    --------
    >>> count_closer_avatars([[0.0], [5.0]], [[1.0], [-1.0]]).strictly_closer
    array([0, 1])
    """
    return CloserAvatarCounter(originals, avatars, own, method=method).all()


class CloserAvatarCounter:
    """Counts closer avatars for some originals or for all; what it takes is prepared once.

    Parameters and errors are those of `count_closer_avatars`.

    Examples
    --------
    >>> counter = CloserAvatarCounter([[0.0], [5.0]], [[1.0], [-1.0]])
    >>> counter.some(np.array([1])).closer
    array([1])
    """

    def __init__(
        self,
        originals: ArrayLike,
        avatars: ArrayLike,
        own: ArrayLike | None = None,
        *,
        method: Method | None = None,
    ) -> None:
        self._x, self._y, self._own = _validated(originals, avatars, own)
        self._index = AvatarIndex(self._y, method=method) if len(self._y) else None

    def all(self, progress: Progress | None = None) -> CloserAvatars:
        """Count for every original, in their order."""
        pairs = None if self._index is None else pairs_of_places(self._x, self._index.places, self._own)
        if pairs is None:
            return self._count(self._x, self._own, progress)
        # The counts of an original depend on where it and its avatar stand, and on nothing else.
        counts = self.some(pairs.rows, progress)
        return CloserAvatars(counts.closer[pairs.of_row], counts.strictly_closer[pairs.of_row])

    def some(self, rows: Integers, progress: Progress | None = None) -> CloserAvatars:
        """Count for the originals in these rows, in this order."""
        return self._count(self._x[rows], rows if self._own is None else self._own[rows], progress)

    def _count(self, x: Floats, own: Integers | None, progress: Progress | None) -> CloserAvatars:
        if self._index is None or not len(x):
            return CloserAvatars(np.zeros(0, np.int64), np.zeros(0, np.int64))
        within = self._index.within(Balls.around(x, self._y, own), progress)
        return CloserAvatars(within.outer - 1, within.inner)


class AvatarIndex:
    """Avatars, prepared to count those within balls.

    Parameters
    ----------
    avatars
        Coordinates, float64 of shape (m, p), m at least 1.
    method
        The method, by default the one that suits the machine. The counts do not depend on it.

    Attributes
    ----------
    places
        The `different_places` of the avatars.

    Examples
    --------
    >>> avatars = np.array([[1.0], [-1.0], [7.0]])
    >>> AvatarIndex(avatars).within(Balls.around(np.array([[0.0]]), avatars, np.array([0]))).outer
    array([2])
    """

    def __init__(self, avatars: Floats, *, method: Method | None = None) -> None:
        self.places = different_places(avatars)
        method = method or _suitable_method(*avatars.shape, few_places=self.places is not None)
        self._counter = _counter(method, avatars, self.places)

    def within(self, balls: Balls, progress: Progress | None = None) -> Within:
        """Count the avatars within the balls, own avatars among them."""
        return self._counter.within(balls, progress)


class _Counter(Protocol):
    def within(self, balls: Balls, progress: Progress | None = None) -> Within: ...


def _suitable_method(avatars: int, components: int, *, few_places: bool) -> Method:
    if avatars >= COMPILED_MIN_AVATARS and _can_compile():
        return "compiled"
    return "tree" if components <= TREE_MAX_COMPONENTS and not few_places else "blocks"


def _counter(method: Method, avatars: Floats, places: Places | None) -> _Counter:
    # Imported here: numba and scipy take their time, and only one of them is needed.
    if method == "tree":
        from local_cloaking.neighbours.tree import ScipyTree

        return ScipyTree(avatars)
    if places is None:
        distinct, weights = avatars, None
    else:
        distinct, weights = avatars[places.rows], np.bincount(places.of_row, minlength=len(places.rows))
    if method == "compiled":
        from local_cloaking.neighbours.compiled import CompiledTree

        return CompiledTree(distinct, weights)
    from local_cloaking.neighbours.blocks import AvatarBlocks

    return AvatarBlocks(distinct, weights)


@cache
def _can_compile() -> bool:
    try:
        from local_cloaking.neighbours.compiled import CompiledTree  # noqa: F401
    except (ImportError, RuntimeError):
        # numba is not installed, does not know this numpy, or finds no place to keep what it compiles.
        return False
    return True


def _validated(
    originals: ArrayLike, avatars: ArrayLike, own: ArrayLike | None
) -> tuple[Floats, Floats, Integers | None]:
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
        return x, y, None
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
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        # Without the cause: its message shows the cell.
        raise InputError(f"the coordinates of the {name} are not numbers", remedy="give numbers") from None
    if array.ndim != 2:
        raise InputError(
            f"the coordinates of the {name} have {array.ndim} dimensions",
            remedy="give one row per individual and one column per component",
        )
    refuse_beyond(rows_beyond(array), name)
    return np.ascontiguousarray(array)


def rows_beyond(coordinates: Floats) -> int:
    """Return how many rows have a coordinate that is missing, infinite or too large to be squared."""
    # A NaN anywhere is the minimum and the maximum, and compares with nothing.
    within = coordinates.min(initial=0) >= -LARGEST_COORDINATE and coordinates.max(initial=0) <= LARGEST_COORDINATE
    return 0 if within else int(np.count_nonzero(~(np.abs(coordinates) <= LARGEST_COORDINATE).all(axis=1)))


def refuse_beyond(rows: int, name: str) -> None:
    """Refuse a table of which so many rows are beyond; see `rows_beyond`.

    Raises
    ------
    InputError
        If there is any.
    """
    if rows:
        raise InputError(
            f"{rows} {name} have a coordinate that is missing, infinite or beyond {LARGEST_COORDINATE:g}",
            rows=rows,
            remedy="fill or mend them first",
        )


@dataclass(frozen=True)
class Places:
    """The different places of some rows: ``rows``, one row in each; ``of_row``, the place of each row."""

    rows: Integers
    of_row: Integers


def different_places(a: Floats) -> Places | None:
    """Return the different places; None where most rows have one of their own."""
    hashes = row_hashes(a)
    if number_of_different(hashes) > FEW_PLACES * len(a):
        return None
    _, rows, place = np.unique(hashes, return_index=True, return_inverse=True)
    if not np.array_equal(a[rows[place]], a):
        # Two places with one hash.
        _, rows, place = np.unique(a + 0.0, axis=0, return_index=True, return_inverse=True)
    return Places(rows.astype(np.int64), place.reshape(-1).astype(np.int64))


def pairs_of_places(originals: Floats, avatars: Places | None, own: Integers | None) -> Places | None:
    """Return the different pairs of an original's place and its avatar's; None where most are different.

    Parameters
    ----------
    originals
        Coordinates, shape (n, p).
    avatars
        The `different_places` of the avatars.
    own
        The row of each original's avatar, shape (n,); None for its own row.
    """
    places = None if avatars is None else different_places(originals)
    if places is None or avatars is None:
        return None
    own_place = avatars.of_row if own is None else avatars.of_row[own]
    both = places.of_row * len(avatars.rows) + own_place
    _, rows, pair = np.unique(both, return_index=True, return_inverse=True)
    return Places(rows.astype(np.int64), pair.astype(np.int64))
