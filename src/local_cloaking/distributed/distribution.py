"""Counts of individuals that lie in many partitions: how often each pair of counts stands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Distribution:
    """Different pairs of counts, sorted, and how many individuals have each; int64, shape (pairs,)."""

    closer: Integers
    strictly_closer: Integers
    individuals: Integers

    @classmethod
    def of(cls, closer: Integers, strictly_closer: Integers, individuals: Integers) -> Distribution:
        """Bring together equal pairs.

        Examples
        --------
        >>> one = np.array([2, 0, 2])
        >>> Distribution.of(one, one, np.ones(3, np.int64)).individuals
        array([1, 2])
        """
        order = np.lexsort((strictly_closer, closer))
        closer, strictly_closer, individuals = closer[order], strictly_closer[order], individuals[order]
        new = np.ones(len(closer), dtype=bool)
        new[1:] = (np.diff(closer) != 0) | (np.diff(strictly_closer) != 0)
        starts = np.flatnonzero(new)
        summed = np.add.reduceat(individuals, starts) if len(starts) else individuals
        return cls(closer[starts], strictly_closer[starts], summed)

    def __add__(self, other: Distribution) -> Distribution:
        return Distribution.of(
            np.concatenate([self.closer, other.closer]),
            np.concatenate([self.strictly_closer, other.strictly_closer]),
            np.concatenate([self.individuals, other.individuals]),
        )

    def counts(self) -> tuple[Integers, Integers]:
        """Return the counts, sorted, one entry an individual: they say nothing of anyone."""
        return np.repeat(self.closer, self.individuals), np.repeat(self.strictly_closer, self.individuals)

    def median(self) -> float:
        """Return the median of the closer counts over the individuals.

        Examples
        --------
        >>> counts = np.array([0, 4, 9])
        >>> Distribution(counts, counts, np.array([2, 1, 1])).median()
        2.0
        """
        upto = np.cumsum(self.individuals)
        middle = [(upto[-1] - 1) // 2, upto[-1] // 2]
        return float(np.mean(self.closer[np.searchsorted(upto, middle, side="right")]))
