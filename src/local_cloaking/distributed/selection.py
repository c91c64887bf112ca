"""Exact order statistics of numbers that lie in many partitions, in a few passes.

float64 numbers are in the order of their bits, read as whole numbers. So a number of a wanted rank is found by
asking, pass after pass, how many numbers lie below each of some hundred bounds, and going on between two of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from local_cloaking.distributed.engine import Engine

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Bounds that are asked about at once, for each rank that is still open.
BOUNDS = 512
#: The shares of the numbers that lie below the quartiles.
_QUARTILES = (0.25, 0.75)

#: Numbers of a column, by their ranks.
Ranked = dict[int, float]


def order_statistics(
    engine: Engine,
    parts: Sequence[Any],
    ranks: Mapping[str, Iterable[int]],
    extremes: Mapping[str, tuple[float, float]],
) -> dict[str, dict[int, float]]:
    """Find the numbers of some ranks in each column, counted from 0.

    Parameters
    ----------
    engine
        Where the parts lie.
    parts
        Futures, one per partition, of dicts: the sorted numbers of each column.
    ranks
        The ranks wanted of each column.
    extremes
        The least and the greatest number of each column.
    """
    intervals = {
        (name, rank): (_order_of(low), _order_of(high))
        for name, (low, high) in extremes.items()
        for rank in ranks[name]
    }
    while True:
        bounds = {name: _bounds(name, intervals) for name in extremes}
        bounds = {name: values for name, values in bounds.items() if len(values)}
        if not bounds:
            break
        shared = engine.share({name: _numbers(values) for name, values in bounds.items()})
        below = engine.total([engine.submit(_below, part, shared) for part in parts], _sum_counts)
        for (name, rank), interval in intervals.items():
            if name in bounds:
                intervals[name, rank] = _narrowed(interval, rank, bounds[name], below[name])
    found: dict[str, dict[int, float]] = {name: {} for name in extremes}
    for (name, rank), (low, _) in intervals.items():
        found[name][rank] = float(_numbers([low])[0])
    return found


def median_ranks(known: int) -> set[int]:
    """Return the ranks that the median of so many numbers is made of."""
    return {(known - 1) // 2, known // 2}


def median_of(ranked: Ranked, known: int) -> float:
    """Return the median of so many numbers."""
    return float(np.mean([ranked[rank] for rank in sorted(median_ranks(known))]))


def quartile_ranks(known: int, rows: int) -> set[int]:
    """Return the ranks of numbers that quartiles are made of, where ``rows - known`` cells are to be filled."""
    filled = {rank for share in _QUARTILES for rank in _around(share, rows)}
    return {rank for rank in filled | {rank - (rows - known) for rank in filled} if 0 <= rank < known}


def quartiles_of(ranked: Ranked, known: int, rows: int, fill: float) -> tuple[float, float]:
    """Return the quartiles of numbers and fills together.

    Parameters
    ----------
    ranked
        The numbers of the `quartile_ranks`.
    known, rows
        How many numbers there are, and how many with the fills.
    fill
        What missing cells are filled with.

    Examples
    --------
    >>> quartiles_of({0: 1.0, 1: 2.0, 2: 9.0}, known=3, rows=5, fill=2.0)
    (2.0, 2.0)
    """

    def of_rank(rank: int) -> float:
        # All fills lie in one place of the order: before it, a number keeps its rank; after it, it moves on.
        before = ranked[rank] if rank < known else math.inf
        after = ranked[rank - (rows - known)] if rank >= rows - known else -math.inf
        return max(after, min(before, fill))

    lower, upper = (
        float(np.quantile([of_rank(rank) for rank in _around(share, rows)], share * (rows - 1) % 1))
        for share in _QUARTILES
    )
    return lower, upper


def _around(share: float, rows: int) -> tuple[int, int]:
    place = share * (rows - 1)
    return math.floor(place), math.ceil(place)


def _bounds(name: str, intervals: Mapping[tuple[str, int], tuple[int, int]]) -> list[int]:
    places: set[int] = set()
    for (column, _), (low, high) in intervals.items():
        if column == name and low < high:
            steps = min(BOUNDS, high - low)
            places.update(low + (high - low) * step // steps for step in range(1, steps + 1))
    return sorted(places)


def _narrowed(interval: tuple[int, int], rank: int, bounds: Sequence[int], below: Integers) -> tuple[int, int]:
    """Keep, of an interval, what lies between the two bounds around the rank."""
    low, high = interval
    # As many as `rank`, or fewer, lie below all bounds up to here, and more below the next.
    place = int(np.searchsorted(below, rank, side="right"))
    if place:
        low = max(low, bounds[place - 1])
    if place < len(bounds):
        high = min(high, bounds[place] - 1)
    return low, high


def _order_of(number: float) -> int:
    """Return the place of a number among all float64 numbers."""
    bits = int(np.array([number + 0.0]).view(np.uint64)[0])
    return bits ^ (2**64 - 1) if bits >> 63 else bits | 2**63


def _numbers(places: Sequence[int]) -> Floats:
    bits = [place ^ 2**63 if place >> 63 else place ^ (2**64 - 1) for place in places]
    return np.array(bits, dtype=np.uint64).view(np.float64)


def _below(part: dict[str, Floats], bounds: dict[str, Floats]) -> dict[str, Integers]:
    nothing = np.zeros(0)
    return {
        name: np.searchsorted(part.get(name, nothing), values, side="left").astype(np.int64)
        for name, values in bounds.items()
    }


def _sum_counts(one: dict[str, Integers], other: dict[str, Integers]) -> dict[str, Integers]:
    return {name: counts + other[name] for name, counts in one.items()}
