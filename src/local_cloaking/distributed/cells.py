"""What the columns of a table add up to, over all partitions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from local_cloaking.distributed.engine import Engine
from local_cloaking.distributed.parts import Part
from local_cloaking.distributed.selection import Ranked, quartiles_of
from local_cloaking.tables.cells import CellSummary, category_summary
from local_cloaking.tables.columns import Column

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

NOTHING_RANKED: Mapping[str, Ranked] = {}


@dataclass(frozen=True)
class _Sums:
    """Of one column: cells, missing ones, least, greatest and sum of numbers, or the counts of levels."""

    rows: int
    missing: int
    lowest: float
    highest: float
    total: float
    level_counts: Integers

    def __add__(self, other: _Sums) -> _Sums:
        return _Sums(
            self.rows + other.rows,
            self.missing + other.missing,
            min(self.lowest, other.lowest),
            max(self.highest, other.highest),
            self.total + other.total,
            self.level_counts + other.level_counts,
        )


def summarise_table(
    engine: Engine, parts: Sequence[Any], columns: Sequence[Column], ranked: Mapping[str, Ranked] = NOTHING_RANKED
) -> list[CellSummary]:
    """Add up the encoded columns of a table; see `local_cloaking.tables.cells.summarise_cells`.

    Parameters
    ----------
    engine
        Where the parts lie.
    parts
        Futures of `Part`, one per partition.
    columns
        What was learnt of the columns.
    ranked
        The numbers that quartiles are made of, where these are wanted.
    """
    sums: list[_Sums] = engine.total([engine.submit(_sums, part) for part in parts], _add_lists)
    numbers = [place for place, column in enumerate(columns) if column.role == "number"]
    means = {place: _mean(sums[place]) for place in numbers}
    squares: dict[int, float] = engine.total([engine.submit(_squares, part, means) for part in parts], _add_dicts)
    summaries = []
    for place, (column, added) in enumerate(zip(columns, sums, strict=True)):
        if column.role == "category":
            summaries.append(category_summary(column, added.rows, added.missing, added.level_counts))
            continue
        summaries.append(
            CellSummary(
                column,
                rows=added.rows,
                missing=added.missing,
                lowest=added.lowest,
                highest=added.highest,
                mean=means[place],
                deviation=math.sqrt(squares[place] / added.rows) if added.lowest < added.highest else 0.0,
                quartiles=_quartiles(column, added, ranked),
                level_counts=added.level_counts,
            )
        )
    return summaries


def _sums(part: Part) -> list[_Sums]:
    nothing = np.zeros(0, np.int64)
    sums = []
    for cells in part.columns:
        values, missing = cells.values, int(np.count_nonzero(cells.missing))
        if cells.column.role == "category":
            counts = np.bincount(values, minlength=cells.column.width)
            sums.append(_Sums(len(values), missing, math.nan, math.nan, math.nan, counts))
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            total = float(np.sum(values))
        sums.append(_Sums(len(values), missing, float(values.min()), float(values.max()), total, nothing))
    return sums


def _mean(sums: _Sums) -> float:
    return sums.total / sums.rows if sums.lowest < sums.highest else sums.lowest


def _squares(part: Part, means: dict[int, float]) -> dict[int, float]:
    with np.errstate(over="ignore", invalid="ignore"):
        return {place: float(np.sum((part.columns[place].values - mean) ** 2)) for place, mean in means.items()}


def _quartiles(column: Column, sums: _Sums, ranked: Mapping[str, Ranked]) -> tuple[float, float]:
    if column.name not in ranked:
        return math.nan, math.nan
    return quartiles_of(ranked[column.name], sums.rows - sums.missing, sums.rows, column.fill)


def _add_lists(ones: list[_Sums], others: list[_Sums]) -> list[_Sums]:
    return [one + other for one, other in zip(ones, others, strict=True)]


def _add_dicts(one: dict[int, float], other: dict[int, float]) -> dict[int, float]:
    return {place: value + other[place] for place, value in one.items()}
