"""Which values of k to try next: a growing series brackets the smallest that reaches the aim, then bisection.

Everything is a function of what was tried, so that one process and the mapped tasks of a DAG search alike.

Local Cloaking grows with k on the whole, not step by step: it is the median of whole numbers, and each seed gives
others. So a bisection ends at a k that reaches beside one that does not, which need not be the smallest there is:
`NEIGHBOURS` values on either side are tried as well. Where one below reaches, the search goes on from there; where
one above does not, `doubts` says so. The k found was always tried itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

#: Where the growing series starts, and by which factor it grows.
FIRST = 5
FACTOR = 2
#: How many values on either side of the k found are tried.
NEIGHBOURS = 2


@dataclass(frozen=True)
class Bounds:
    """The smallest and the largest k that may be tried, both included."""

    lowest: int
    highest: int

    def __contains__(self, k: object) -> bool:
        return isinstance(k, int) and self.lowest <= k <= self.highest


def growing_series(bounds: Bounds) -> list[int]:
    """Return the values that are tried first, in this order, until one reaches.

    Examples
    --------
    >>> growing_series(Bounds(2, 100))
    [5, 10, 20, 40, 80, 100]
    """
    return list(_growing(bounds))


def _growing(bounds: Bounds) -> Iterator[int]:
    k = max(FIRST, bounds.lowest)
    while k < bounds.highest:
        yield k
        k *= FACTOR
    yield bounds.highest


def next_values(tried: Mapping[int, bool], bounds: Bounds, rounds: int | None = None) -> list[int]:
    """Return the values of k to try next; none where the search has ended.

    Parameters
    ----------
    tried
        For each k that was tried, whether it reaches the aim.
    bounds
        What may be tried.
    rounds
        None to try one after the other, as few as possible. Else in how many rounds at most the bracket is to be
        down to one k, where those of a round are tried at the same time: as many a round as that takes.

    Examples
    --------
    >>> next_values({5: False, 10: False, 20: False}, Bounds(2, 100))
    [40]
    >>> next_values({20: False, 40: True}, Bounds(2, 100))
    [30]
    >>> next_values({20: False, 40: True}, Bounds(2, 100), rounds=2)
    [24, 28, 32, 36]
    >>> next_values({38: False, 39: True}, Bounds(2, 100))
    [37, 40, 41]
    """
    found = smallest_reaching(tried)
    if found is None:
        left = [k for k in growing_series(bounds) if k > max(tried, default=0)]
        return left if rounds is not None else left[:1]
    below = max((k for k in tried if k < found), default=bounds.lowest - 1)
    if found - below > 1:
        parts = 2 if rounds is None else math.ceil((found - below) ** (1 / max(rounds, 1)))
        return _between(below, found, parts)
    return [k for k in _neighbours(found, bounds) if k not in tried]


def smallest_reaching(tried: Mapping[int, bool]) -> int | None:
    """Return the smallest k that was tried and reaches the aim, or None.

    Examples
    --------
    >>> smallest_reaching({20: False, 39: True, 40: True})
    39
    """
    return min((k for k, reaches in tried.items() if reaches), default=None)


def doubts(tried: Mapping[int, bool], bounds: Bounds) -> list[str]:
    """Say what speaks against taking the k that was found for a bound from which on all is well.

    Returns
    -------
    A sentence each.

    Examples
    --------
    >>> doubts({37: False, 38: False, 39: True, 40: False, 41: True}, Bounds(2, 100))
    ['k = 39 reaches it, but 40, which is larger, does not: it lies at the edge, and a margin would be wise']
    >>> doubts({37: False, 38: False, 39: True, 40: True, 41: True}, Bounds(2, 100))
    []
    """
    found = smallest_reaching(tried)
    if found is None:
        return []
    warnings = []
    largest = max((k for k, reaches in tried.items() if not reaches), default=0)
    if largest > found:
        warnings.append(
            f"k = {found} reaches it, but {largest}, which is larger, does not: it lies at the edge, and a margin "
            "would be wise"
        )
    untried = [k for k in _neighbours(found, bounds) if k not in tried]
    if untried:
        warnings.append(f"the values of k beside {found} were not all tried: a smaller one may reach it, too")
    return warnings


def _neighbours(k: int, bounds: Bounds) -> list[int]:
    around = range(k - NEIGHBOURS, k + NEIGHBOURS + 1)
    return [other for other in around if other != k and other in bounds]


def _between(below: int, above: int, parts: int) -> list[int]:
    """Return whole numbers that divide the gap into so many parts, as even as can be."""
    width = above - below
    return sorted({below + width * part // parts for part in range(1, parts)} - {below})
