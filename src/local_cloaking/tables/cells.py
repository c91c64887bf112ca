"""What the cells of one encoded column add up to: all that projection and safeguards judge a column by.

The sums are the same whether a table lies in one piece or in many; where it lies in many,
`local_cloaking.distributed` adds them up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from local_cloaking.tables.columns import Column, EncodedColumn

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class CellSummary:
    """One encoded column, added up; missing cells count with what they were filled with.

    Attributes
    ----------
    column
        What was learnt of the column from the originals.
    rows, missing
        Cells, and how many of them were missing.
    lowest, highest, mean, deviation
        Of numbers; NaN for categories. The deviation is 0 where all numbers are the same, and not finite where
        their spread cannot be computed.
    quartiles
        The first and the third, of the originals' numbers; else NaN.
    level_counts
        int64, shape (levels,): how often each category stands; empty for numbers.
    """

    column: Column
    rows: int
    missing: int
    lowest: float
    highest: float
    mean: float
    deviation: float
    quartiles: tuple[float, float]
    level_counts: Integers

    @property
    def filled(self) -> bool:
        """Whether a missing cell got the column's fill."""
        return self.missing > 0 and not self.column.missing_level

    @property
    def missing_share(self) -> float:
        """Share of missing cells, 0 to 1."""
        return self.missing / self.rows


def summarise_cells(cells: EncodedColumn, *, quartiles: bool = False) -> CellSummary:
    """Add up the cells of a column.

    Parameters
    ----------
    cells
        The encoded column, without gaps; at least one row.
    quartiles
        Whether the quartiles of numbers are wanted too.

    Examples
    --------
    >>> import pandas as pd
    >>> from local_cloaking.tables.columns import encode, learn_columns
    >>> table = pd.DataFrame({"age": [30.0, 40.0, None]})
    >>> summary = summarise_cells(encode(table, learn_columns(table)[0], "originals")[0])
    >>> summary.mean, summary.missing
    (35.0, 1)
    """
    values, missing = cells.values, int(np.count_nonzero(cells.missing))
    if cells.column.role == "category":
        counts = np.bincount(values, minlength=cells.column.width)
        return category_summary(cells.column, len(values), missing, counts)
    lowest, highest = float(values.min()), float(values.max())
    # By comparison, not by a small deviation: the mean of a constant may be off by one rounding.
    mean, deviation = lowest, 0.0
    if lowest < highest:
        with np.errstate(over="ignore", invalid="ignore"):
            mean, deviation = float(np.mean(values)), float(np.std(values))
    lower, upper = (float(q) for q in np.quantile(values, [0.25, 0.75])) if quartiles else (math.nan, math.nan)
    return CellSummary(
        cells.column,
        rows=len(values),
        missing=missing,
        lowest=lowest,
        highest=highest,
        mean=mean,
        deviation=deviation,
        quartiles=(lower, upper),
        level_counts=np.zeros(0, np.int64),
    )


def category_summary(column: Column, rows: int, missing: int, level_counts: Integers) -> CellSummary:
    """Return the summary of a column of categories, which has no numbers to add up."""
    return CellSummary(
        column,
        rows=rows,
        missing=missing,
        lowest=math.nan,
        highest=math.nan,
        mean=math.nan,
        deviation=math.nan,
        quartiles=(math.nan, math.nan),
        level_counts=level_counts,
    )
