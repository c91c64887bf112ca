"""What is done to avatars so that they score better than they protect; the ways of ``docs/safeguards.md``."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from local_cloaking import FAMD


def shuffled(table: pd.DataFrame, share: float = 1.0, seed: int = 0) -> pd.DataFrame:
    """A share of the rows trade places at random."""
    rng = np.random.default_rng(seed)
    order = np.arange(len(table))
    rows = rng.choice(len(table), round(share * len(table)), replace=False)
    order[rows] = rng.permutation(rows)
    return table.iloc[order].reset_index(drop=True)


def blanked(
    table: pd.DataFrame, share: float, seed: int = 0, columns: Sequence[str] | None = None
) -> pd.DataFrame:
    """The same share of cells, rounded down, missing in each column."""
    rng = np.random.default_rng(seed)
    result = table.copy()
    for name in columns or list(table.columns):
        number = pd.api.types.is_numeric_dtype(result[name])
        cells = result[name].astype(float if number else object)
        rows = rng.choice(len(table), math.floor(share * len(table)), replace=False)
        cells.iloc[rows] = np.nan if number else None
        result[name] = cells
    return result


def with_noise(table: pd.DataFrame, scale: float, seed: int = 0) -> pd.DataFrame:
    """Each number moves a little."""
    rng = np.random.default_rng(seed)
    numbers = table.select_dtypes("number").columns
    return table.assign(**{name: table[name] + rng.normal(scale=scale, size=len(table)) for name in numbers})


def neighbours(
    table: pd.DataFrame, rank: int = 2, categorical: Sequence[str] | None = None, ncp: int = 3
) -> NDArray[np.intp]:
    """For each row, the row of its neighbour of that rank."""
    coordinates = FAMD(ncp, categorical).fit_transform(table)
    rows: NDArray[np.intp] = cKDTree(coordinates).query(coordinates, k=rank + 1)[1][:, rank]
    return rows


def neighbour_swap(
    table: pd.DataFrame, rank: int = 2, categorical: Sequence[str] | None = None, ncp: int = 3
) -> pd.DataFrame:
    """Each gets the row of a neighbour instead of an avatar."""
    return table.iloc[neighbours(table, rank, categorical, ncp)].reset_index(drop=True)
