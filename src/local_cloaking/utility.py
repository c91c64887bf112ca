r"""What avatars have lost of their originals: how far means, spreads and correlations moved.

A larger k protects better and blurs more. This is the other side of the scales: three figures that are 0 where
nothing moved, and their mean. They compare the tables as wholes, so they need no pairs.

A column of numbers has the mean :math:`\mu` and the standard deviation :math:`\sigma`. A column of categories has
an indicator (0 or 1) for each level, with the vector of their means (the shares of the levels) :math:`\mu` and
:math:`\sigma^2`, the sum of their variances. So a column of 0 and 1 has the same figures as a number and as a
category of two levels. With the originals x and the avatars y, over all columns c and all pairs of columns c < d:

.. math::

    \text{means} = \operatorname{mean}_c \frac{\lVert \mu_{y,c} - \mu_{x,c} \rVert}{\sigma_{x,c}}, \qquad
    \text{spreads} = \operatorname{mean}_c \left| \frac{\sigma_{y,c}}{\sigma_{x,c}} - 1 \right|, \qquad
    \text{correlations} = \operatorname{mean}_{c<d} \overline{| r_{y,cd} - r_{x,cd} |}

r is Pearson's correlation, of indicators too; the bar is the mean over the levels of both columns. Missing cells
are filled as the measure fills them.

References
----------
Means: the standardised difference, Austin, P. C. (2009). Balance diagnostics for comparing the distribution of
baseline covariates between treatment groups in propensity-score matched samples. Statistics in Medicine 28,
3083-3107. doi:10.1002/sim.3697

Correlations: the pairwise correlation difference, here a mean instead of a norm, so that tables of different width
compare. Goncalves, A. et al. (2020). Generation and evaluation of synthetic patient data. BMC Medical Research
Methodology 20, 108. doi:10.1186/s12874-020-00977-1
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from local_cloaking.projection import covariance_of, cross_products, shares_of
from local_cloaking.tables.cells import CellSummary, summarise_cells
from local_cloaking.tables.columns import Column, EncodedColumn, encode, learn_columns

Floats = NDArray[np.float64]

#: Variances of standardised columns and of indicators below this are rounding noise.
_NO_VARIANCE = 1e-12


@dataclass(frozen=True)
class Shift:
    """How far a table moved from another; 0 is not at all.

    Attributes
    ----------
    means
        In standard deviations of the originals, the mean over the columns.
    spreads
        As a share of the originals' standard deviation, the mean over the columns.
    correlations
        The mean over the pairs of columns; 0 to 2.

    Examples
    --------
    >>> Shift(means=0.25, spreads=0.5, correlations=0.0).overall
    0.25
    """

    means: float
    spreads: float
    correlations: float

    @property
    def overall(self) -> float:
        """The mean of the three: one figure to look at, by convention."""
        return math.fsum((self.means, self.spreads, self.correlations)) / 3


def shift(originals: pd.DataFrame, avatars: pd.DataFrame, *, categorical: Collection[str] = ()) -> Shift:
    """Measure how far means, spreads and correlations of the avatars are from those of the originals.

    Parameters
    ----------
    originals, avatars
        The same columns in any order, without key; rows in any order.
    categorical
        Columns to treat as categories whatever their type.

    Raises
    ------
    InputError
        If the tables cannot be compared; whatever `local_cloaking.local_cloaking` measures can be.

    Examples
    --------
    >>> originals = pd.DataFrame({"age": [30.0, 40.0, 50.0, 60.0], "arm": ["a", "b", "b", "a"]})
    >>> shift(originals, originals)
    Shift(means=0.0, spreads=0.0, correlations=0.0)
    >>> avatars = originals.assign(age=[40.0, 45.0, 50.0, 55.0])
    >>> shift(originals, avatars)
    Shift(means=0.111..., spreads=0.25, correlations=0.0)
    """
    return Origin.of(originals, categorical=categorical).shift_of(avatars)


@dataclass(frozen=True)
class Origin:
    """What the originals add up to, once, whatever number of avatar tables is held against it."""

    columns: tuple[Column, ...]
    sums: _Sums

    @classmethod
    def of(cls, originals: pd.DataFrame, *, categorical: Collection[str] = ()) -> Origin:
        """Add the originals up; parameters and errors are those of `shift`."""
        columns, _ = learn_columns(originals, categorical)
        return cls(tuple(columns), _Sums.of(encode(originals, columns, "originals")))

    def shift_of(self, avatars: pd.DataFrame) -> Shift:
        """Measure how far avatars moved; see `shift`."""
        sums = _Sums.of(encode(avatars, self.columns, "avatars"))
        pairs = list(zip(self.sums.summaries, sums.summaries, strict=True))
        return Shift(
            means=float(np.mean([_of_means(*pair) for pair in pairs])),
            spreads=float(np.mean([_of_spreads(*pair) for pair in pairs])),
            correlations=_of_correlations(self.columns, self.sums.correlations, sums.correlations),
        )


@dataclass(frozen=True)
class _Sums:
    """What the columns of a table add up to; correlations between all numbers and indicators, shape (d, d)."""

    summaries: list[CellSummary]
    correlations: Floats

    @classmethod
    def of(cls, encoded: list[EncodedColumn]) -> _Sums:
        summaries = [summarise_cells(cells) for cells in encoded]
        shares = [shares_of(summary) for summary in summaries]
        products = cross_products(encoded, shares)
        covariance = covariance_of(products, [cells.column for cells in encoded], shares, summaries[0].rows)
        return cls(summaries, _correlations(covariance))


def _correlations(covariance: Floats) -> Floats:
    """Of what does not vary, every correlation is 0."""
    variances = np.diag(covariance)
    varies = variances > _NO_VARIANCE
    roots = np.sqrt(np.where(varies, variances, 1.0))
    return np.where(np.outer(varies, varies), covariance / np.outer(roots, roots), 0.0)


def _mean_of(summary: CellSummary) -> Floats:
    if summary.column.role == "category":
        return summary.level_counts / summary.rows
    return np.array([summary.mean])


def _spread_of(summary: CellSummary) -> float:
    if summary.column.role == "category":
        shares = summary.level_counts / summary.rows
        return math.sqrt(max(0.0, float(1.0 - shares @ shares)))
    return summary.deviation


def _of_means(original: CellSummary, avatar: CellSummary) -> float:
    moved, spread = float(np.linalg.norm(_mean_of(avatar) - _mean_of(original))), _spread_of(original)
    # Where there is nothing to compare with, any move counts as one.
    return moved / spread if spread > 0 else float(moved > 0)


def _of_spreads(original: CellSummary, avatar: CellSummary) -> float:
    before, after = _spread_of(original), _spread_of(avatar)
    return abs(after / before - 1.0) if before > 0 else float(after > 0)


def _of_correlations(columns: Sequence[Column], originals: Floats, avatars: Floats) -> float:
    """Average over the levels within each pair of columns, then over the pairs: each pair weighs the same."""
    if len(columns) < 2:
        return 0.0
    widths = np.array([column.width for column in columns])
    starts = np.cumsum(widths) - widths
    moved = np.add.reduceat(np.add.reduceat(np.abs(avatars - originals), starts, axis=0), starts, axis=1)
    moved /= np.outer(widths, widths)
    return float(moved[np.triu_indices(len(columns), 1)].mean())
