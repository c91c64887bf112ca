"""What the columns of a table add up to, over all partitions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from local_cloaking.distributed.engine import Engine
from local_cloaking.distributed.parts import Part
from local_cloaking.distributed.selection import order_statistics
from local_cloaking.tables.cells import CellSummary, category_summary
from local_cloaking.tables.columns import Column

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


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
    engine: Engine, parts: Sequence[Any], columns: Sequence[Column], *, quartiles: bool = False
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
    quartiles
        Whether the quartiles of numbers are wanted too.
    """
    sums: list[_Sums] = engine.total([engine.submit(_sums, part) for part in parts], _add_lists)
    numbers = [place for place, column in enumerate(columns) if column.role == "number"]
    means = {place: _mean(sums[place]) for place in numbers}
    squares: dict[int, float] = engine.total([engine.submit(_squares, part, means) for part in parts], _add_dicts)
    of_column = _quartiles(engine, parts, {place: sums[place] for place in numbers}) if quartiles else {}
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
                quartiles=of_column.get(place, (math.nan, math.nan)),
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


def _quartiles(engine: Engine, parts: Sequence[Any], sums: dict[int, _Sums]) -> dict[int, tuple[float, float]]:
    names = {place: str(place) for place in sums}
    ordered = [engine.submit(_sorted_numbers, part, names) for part in parts]
    ranks = {names[place]: _ranks(added.rows) for place, added in sums.items()}
    extremes = {names[place]: (added.lowest, added.highest) for place, added in sums.items()}
    found = order_statistics(engine, ordered, ranks, extremes)
    return {place: _interpolated(found[name], sums[place].rows) for place, name in names.items()}


def _ranks(rows: int) -> list[int]:
    places = [share * (rows - 1) for share in (0.25, 0.75)]
    return sorted({rank for place in places for rank in (math.floor(place), math.ceil(place))})


def _interpolated(found: dict[int, float], rows: int) -> tuple[float, float]:
    lower, upper = (
        float(np.quantile([found[math.floor(place)], found[math.ceil(place)]], place - math.floor(place)))
        for place in (0.25 * (rows - 1), 0.75 * (rows - 1))
    )
    return lower, upper


def _sorted_numbers(part: Part, names: dict[int, str]) -> dict[str, Floats]:
    return {name: np.sort(part.columns[place].values) for place, name in names.items()}


def _add_lists(ones: list[_Sums], others: list[_Sums]) -> list[_Sums]:
    return [one + other for one, other in zip(ones, others, strict=True)]


def _add_dicts(one: dict[int, float], other: dict[int, float]) -> dict[int, float]:
    return {place: value + other[place] for place, value in one.items()}
