"""What a report says of the counts: percentiles, shares, and how sure the median is.

All of it is computed from the record's distribution (how many individuals have each count), never from a list with
an entry per individual: of a hundred million individuals, the different counts still fit in memory.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

#: The level asked for, in per cent; the interval's own level is this or more.
CONFIDENCE = 95.0
#: More than anybody counts; the sum of what a file says may not leave its integers, and come out as another.
_MOST = 2.0**53


@dataclass(frozen=True)
class MedianInterval:
    """A confidence interval of the median, its ends two of the counts.

    Attributes
    ----------
    lower, upper
        The counts at rank ``rank`` from below and from above; both ends belong to the interval.
    rank
        1 for the least and the greatest count.
    level
        Probability, in per cent, that such an interval holds the median, `CONFIDENCE` or more.
    """

    lower: int
    upper: int
    rank: int
    level: float


@dataclass(frozen=True)
class Distribution:
    """How many individuals have each count.

    Attributes
    ----------
    counts
        The different counts, rising, shape (m,).
    individuals
        How many individuals have each, at least one, shape (m,).

    Examples
    --------
    >>> distribution = Distribution.of({"count": [0, 4, 9], "individuals": [1, 2, 1]})
    >>> distribution.n, distribution.median, distribution.percentile(25)
    (4, 4.0, 0)
    """

    counts: Integers = field(repr=False)
    individuals: Integers = field(repr=False)

    @classmethod
    def of(cls, entry: Mapping[str, Sequence[int]]) -> Distribution:
        """Read the entry ``distribution`` of a record.

        Raises
        ------
        ValueError
            If it is not one: counts that do not rise, or that nobody has.
        """
        counts = np.array(entry["count"], dtype=np.int64)
        individuals = np.array(entry["individuals"], dtype=np.int64)
        if counts.ndim != 1 or counts.shape != individuals.shape:
            raise ValueError("as many numbers of individuals as counts are needed")
        if (np.diff(counts) <= 0).any() or (counts < 0).any() or (individuals < 1).any():
            raise ValueError("counts rise from 0, and each is somebody's")
        if individuals.sum(dtype=np.float64) > _MOST:
            raise ValueError("there are more individuals than can be added up")
        return cls(counts, individuals)

    @property
    def n(self) -> int:
        """Number of individuals; 0 where nothing was counted."""
        return int(self.individuals.sum())

    @property
    def median(self) -> float:
        """The usual median, the mean of the two middle counts where their number is even."""
        n = self._some()
        return (self.at_rank((n + 1) // 2) + self.at_rank(n // 2 + 1)) / 2

    @property
    def highest(self) -> int:
        """The greatest count."""
        self._some()
        return int(self.counts[-1])

    def at_rank(self, rank: int) -> int:
        """Return the count at a rank, 1 for the least count, n for the greatest."""
        if not 1 <= rank <= self.n:
            raise ValueError(f"ranks go from 1 to {self.n}")
        return int(self.counts[np.searchsorted(np.cumsum(self.individuals), rank)])

    def percentile(self, per_cent: int) -> int:
        """Return the smallest count such that at least so many per cent have that many or fewer.

        Parameters
        ----------
        per_cent
            1 to 100, a whole number: so that no rounding decides.

        Examples
        --------
        >>> Distribution.of({"count": [0, 7], "individuals": [5, 95]}).percentile(5)
        0
        """
        if not 1 <= per_cent <= 100:
            raise ValueError("a percentile lies between 1 and 100")
        return self.at_rank(-(-per_cent * self._some() // 100))

    def share_below(self, value: float) -> float:
        """Return the share of individuals, in per cent, whose count is below a value.

        Examples
        --------
        >>> Distribution.of({"count": [0, 4, 5], "individuals": [1, 1, 2]}).share_below(5)
        50.0
        """
        return 100.0 * int(self.individuals[self.counts < value].sum()) / self._some()

    def share_at_most(self, counts: Integers) -> NDArray[np.float64]:
        """Return the shares of individuals, in per cent, with each of these counts or fewer.

        Examples
        --------
        >>> Distribution.of({"count": [0, 4], "individuals": [1, 1]}).share_at_most(np.array([0, 3, 4]))
        array([ 50.,  50., 100.])
        """
        reached = np.concatenate([[0], np.cumsum(self.individuals)])
        shares: NDArray[np.float64] = 100.0 * reached[np.searchsorted(self.counts, counts, "right")] / self._some()
        return shares

    def median_interval(self) -> MedianInterval | None:
        """Return a confidence interval of the median from order statistics, or None for fewer than 6 individuals.

        Of n independent counts, the number below the median of their distribution is binomial with one half. So
        the counts at the ranks r and n + 1 - r hold it with probability 1 - 2 P(B < r), or more where counts are
        equal; r is the largest for which that is `CONFIDENCE` or more.

        Examples
        --------
        >>> Distribution.of({"count": [1, 2, 3, 4, 5, 6], "individuals": [1] * 6}).median_interval()
        MedianInterval(lower=1, upper=6, rank=1, level=96.875)
        """
        from scipy.special import bdtr  # P(B <= k); an import that a page without counts spares

        n, outside = self.n, (1 - CONFIDENCE / 100) / 2
        # As many ranks as there are k with P(B <= k) within the bound: 0, 1, ... r - 1.
        rank = bisect_right(range(n // 2), outside, key=lambda k: float(bdtr(k, n, 0.5)))
        if rank < 1:
            return None
        level = 100 * (1 - 2 * float(bdtr(rank - 1, n, 0.5)))
        return MedianInterval(self.at_rank(rank), self.at_rank(n + 1 - rank), rank, level)

    def _some(self) -> int:
        n = self.n
        if not n:
            raise ValueError("nothing was counted")
        return n
