"""What the cells of the avatars say about whether Local Cloaking can be relied on.

Each function looks at one way to a figure that is right and means nothing. The bounds stand in `limits`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from local_cloaking.limits import (
    CARRIED_OVER_SHARE,
    COLLAPSED_MINORITY,
    COLLAPSED_SHARE,
    COPY_TOLERANCE,
    MAX_COPY_SHARE,
    MAX_MISSING_EXCESS,
    MOST_SINGLE_PRECISION,
    NEAR_COPY_RATIO,
    NEAR_COPY_SAMPLE,
    SINGLE_PRECISION,
    WARN_REAL_ROW_EXCESS,
)
from local_cloaking.rows import fixed_sample, number_among, number_of_different, row_hashes
from local_cloaking.tables.cells import CellSummary, summarise_cells
from local_cloaking.tables.columns import EncodedColumn
from local_cloaking.threads import cores, each_in_threads

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class ColumnReport:
    """What a reader of the record is told about one column; shares are 0 to 1.

    ``filled_with`` is None where no cell of either table was filled.
    """

    name: str
    role: str
    kind: str
    levels: int
    missing_originals: float
    missing_avatars: float
    filled_with: str | None


@dataclass(frozen=True)
class CarriedOver:
    """Columns that the avatars carry over unchanged.

    Attributes
    ----------
    columns
        Their names.
    median_peers
        Median over the individuals of the number of other avatars with the original's values in all of these
        columns, 0 to n - 1; n - 1 where its own avatar has other values. An attacker who compares values
        instead of distances has that many candidates besides the right one.
    """

    columns: tuple[str, ...]
    median_peers: float


@dataclass(frozen=True)
class TableFindings:
    """What the cells of both tables say.

    Attributes
    ----------
    columns
        One `ColumnReport` per column.
    copy_share
        Share of avatars equal to their own original in all columns where that has a value, 0 to 1.
    real_row_share
        Share of avatars equal to any original in all columns, missing cells filled, 0 to 1.
    duplicate_share
        Share of originals equal to another original, 0 to 1.
    carried_over
        Columns that the avatars carry over from their originals, and how many share their values; None where
        there are none.
    reasons
        Why Local Cloaking cannot be assessed on these tables, a sentence each.
    warnings
        What a reader should know, a sentence each.
    """

    columns: tuple[ColumnReport, ...]
    copy_share: float
    real_row_share: float
    duplicate_share: float
    carried_over: CarriedOver | None
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class RowFigures:
    """What the rows of both tables say, counted.

    Attributes
    ----------
    copies
        Avatars equal to their own original in all columns where that has a value.
    real_rows
        Avatars equal to any original.
    duplicates
        Originals equal to another original.
    distinct_originals, distinct_avatars
        Different rows.
    carried_over
        As in `TableFindings`.
    """

    copies: int
    real_rows: int
    duplicates: int
    distinct_originals: int
    distinct_avatars: int
    carried_over: CarriedOver | None


def examine(originals: Sequence[EncodedColumn], avatars: Sequence[EncodedColumn], own: Integers) -> TableFindings:
    """Look at the cells of both tables.

    Parameters
    ----------
    originals, avatars
        The encoded tables, the same columns in the same order.
    own
        The row of each original's avatar, shape (n,).
    """
    original_summaries = each_in_threads(lambda cells: summarise_cells(cells, quartiles=True), originals)
    avatar_summaries = each_in_threads(summarise_cells, avatars)
    original_rows, avatar_rows = each_in_threads(
        lambda table: hash_cells(table, original_summaries), (originals, avatars)
    )
    own_avatars = [take(cells, own) for cells in avatars]
    agreements = agree(originals, own_avatars, original_summaries)
    figures = RowFigures(
        copies=int(np.count_nonzero(are_copies(originals, own_avatars, agreements))),
        real_rows=number_among(avatar_rows, original_rows),
        duplicates=int(pd.Series(original_rows).duplicated(keep=False).sum()),
        distinct_originals=number_of_different(original_rows),
        distinct_avatars=number_of_different(avatar_rows),
        carried_over=_carried_over(avatars, own, agreements, original_summaries),
    )
    return judge_tables(original_summaries, avatar_summaries, figures)


def judge_tables(
    originals: Sequence[CellSummary], avatars: Sequence[CellSummary], rows: RowFigures
) -> TableFindings:
    """Say what columns and rows mean for the measure.

    Parameters
    ----------
    originals, avatars
        The columns of both tables, added up, in the same order.
    rows
        What was counted row by row.
    """
    columns = tuple(_report(one, other) for one, other in zip(originals, avatars, strict=True))
    copies, real = rows.copies / originals[0].rows, rows.real_rows / avatars[0].rows
    duplicates = rows.duplicates / originals[0].rows
    reasons = [_missing_reason(column) for column in columns]
    reasons += [_weightless_reason(one, other) for one, other in zip(originals, avatars, strict=True)]
    if copies > MAX_COPY_SHARE:
        reasons.append(f"{copies:.1%} of the avatars are copies of their own original")
    warnings = _collapse_warnings(originals, avatars, rows)
    if real > duplicates + WARN_REAL_ROW_EXCESS:
        warnings.append(
            f"{real:.1%} of the avatars equal a row of the originals in all columns: they are real people's rows"
        )
    return TableFindings(
        columns=columns,
        copy_share=copies,
        real_row_share=real,
        duplicate_share=duplicates,
        carried_over=rows.carried_over,
        reasons=tuple(reason for reason in reasons if reason is not None),
        warnings=tuple(warnings),
    )


def near_copies_reason(originals: Floats, avatars: Floats) -> str | None:
    """Say that the avatars are originals with a little noise, whoever they are paired with, or None.

    Compares, in the projected space, how far the nearest avatar is with how far the nearest other original is.
    Those who have an avatar in their very place are left out: of them, `TableFindings.copy_share` speaks.

    Parameters
    ----------
    originals, avatars
        Coordinates, shapes (n, p) and (m, p).

    Examples
    --------
    >>> x = np.random.default_rng(1).normal(size=(200, 2))
    >>> near_copies_reason(x, x + 0.001) is None, near_copies_reason(x, -x) is None
    (False, True)
    """
    sample = originals[near_copy_sample(len(originals))]
    return judge_near_copies(nearest(avatars, sample), nearest_other(originals, sample))


def near_copy_sample(n: int) -> Integers:
    """Return the rows of the originals that are looked at for copies with noise."""
    return fixed_sample(n, NEAR_COPY_SAMPLE)


def nearest(avatars: Floats, sample: Floats) -> Floats:
    """Return how far the nearest avatar is.

    Parameters
    ----------
    avatars
        Coordinates, shape (m, p).
    sample
        Coordinates of the originals asked for, shape (s, p).

    Examples
    --------
    >>> nearest(np.array([[0.0], [3.0]]), np.array([[2.5]]))
    array([0.5])
    """
    distances: Floats = _tree(avatars).query(sample, workers=cores())[0]
    return distances


def nearest_other(originals: Floats, sample: Floats) -> Floats:
    """Return how far the nearest original in another place is, infinite where there is none.

    Parameters
    ----------
    originals
        Coordinates, shape (n, p).
    sample
        Coordinates of the originals asked for, shape (s, p), or of originals elsewhere.

    Examples
    --------
    >>> nearest_other(np.array([[0.0], [0.0], [3.0]]), np.array([[0.0]]))
    array([3.])
    """
    places = originals[np.unique(row_hashes(originals), return_index=True)[1]]
    distances, rows = _tree(places).query(sample, k=min(2, len(places)), workers=cores())
    distances, rows = distances.reshape(len(sample), -1), rows.reshape(len(sample), -1)
    other = (places[rows] != sample[:, None, :]).any(axis=2)
    nearest: Floats = np.where(other, distances, np.inf).min(axis=1)
    return nearest


def _tree(places: Floats) -> Any:
    from scipy.spatial import cKDTree

    # Made for few questions: what a tidier tree saves is less than it costs.
    return cKDTree(places, balanced_tree=False, compact_nodes=False)


def judge_near_copies(to_avatar: Floats, to_other: Floats) -> str | None:
    """Say what the distances of the sampled originals mean; see `near_copies_reason`.

    Parameters
    ----------
    to_avatar, to_other
        How far the nearest avatar is, and the nearest original in another place, shape (s,).
    """
    if not np.isfinite(to_other).all():
        return None
    apart = to_avatar > 1e-9 * to_other
    if 2 * np.count_nonzero(apart) < len(to_avatar):
        return None
    ratio = float(np.median(to_avatar[apart] / to_other[apart]))
    if ratio >= NEAR_COPY_RATIO:
        return None
    return (
        "the avatars are copies of originals with a little noise: in the median, the nearest avatar is at "
        f"{ratio:.1%} of the distance to the nearest other original"
    )


def _report(original: CellSummary, avatar: CellSummary) -> ColumnReport:
    column = original.column
    filled_with = None
    if original.filled or avatar.filled:
        filled_with = "the originals' median" if column.role == "number" else "the originals' commonest category"
    elif column.missing_level:
        filled_with = "a category of its own"
    return ColumnReport(
        name=column.name,
        role=column.role,
        kind=column.kind,
        levels=column.width if column.role == "category" else 0,
        missing_originals=original.missing_share,
        missing_avatars=avatar.missing_share,
        filled_with=filled_with,
    )


def _missing_reason(column: ColumnReport) -> str | None:
    # The difference of two shares may be off by one rounding: exactly the bound is within it.
    if column.missing_avatars - column.missing_originals <= MAX_MISSING_EXCESS + 1e-9:
        return None
    return (
        f"column {column.name!r} is missing in {column.missing_avatars:.1%} of the avatars, but in "
        f"{column.missing_originals:.1%} of the originals: filled cells hide what leaves"
    )


def _weightless_reason(original: CellSummary, avatar: CellSummary) -> str | None:
    if original.column.role == "category" or original.lowest < original.highest:
        return None
    if avatar.lowest == avatar.highest == original.lowest:
        return None
    return (
        f"column {original.column.name!r} is the same for all originals but not for all avatars: it has no weight "
        "in the projected space, so that what leaves in it was not measured"
    )


def take(cells: EncodedColumn, rows: Any) -> EncodedColumn:
    """Return the cells of some rows, in their order."""
    return EncodedColumn(cells.column, cells.values[rows], cells.missing[rows])


def agree(
    originals: Sequence[EncodedColumn], own_avatars: Sequence[EncodedColumn], summaries: Sequence[CellSummary]
) -> list[NDArray[np.bool_]]:
    """Tell, column by column, whose avatar has the original's value; numbers that differ by noise are the same.

    Parameters
    ----------
    originals, own_avatars
        The originals, and row by row their avatars.
    summaries
        The originals' columns, of the whole table.
    """
    agreements = []
    for one, other, summary in zip(originals, own_avatars, summaries, strict=True):
        near = 0.0 if summary.column.role == "category" else _nearness(one.values, summary)
        agreements.append(np.abs(one.values - other.values) <= near)
    return agreements


def are_copies(
    originals: Sequence[EncodedColumn],
    own_avatars: Sequence[EncodedColumn],
    agreements: Sequence[NDArray[np.bool_]],
) -> NDArray[np.bool_]:
    """Tell whose avatar agrees in all cells that both have, where these are at least half of the original's."""
    n = len(agreements[0])
    same = np.ones(n, dtype=bool)
    known, common = np.zeros(n), np.zeros(n)
    for one, other, agreement in zip(originals, own_avatars, agreements, strict=True):
        missing = one.missing | other.missing
        # What one of the two lacks tells them not apart, whatever it was filled with.
        same &= missing | agreement
        known += ~one.missing
        common += ~missing
    return same & (common > 0) & (2 * common >= known)


def carried_columns(agreeing: Sequence[int], n: int) -> list[int]:
    """Return the places of the columns that are carried over, by how many of the n avatars agree in each."""
    return [place for place, count in enumerate(agreeing) if count / n > CARRIED_OVER_SHARE]


def _carried_over(
    avatars: Sequence[EncodedColumn],
    own: Integers,
    agreements: Sequence[NDArray[np.bool_]],
    summaries: Sequence[CellSummary],
) -> CarriedOver | None:
    carried = carried_columns([int(np.count_nonzero(agreement)) for agreement in agreements], len(own))
    if not carried:
        return None
    kept = [summaries[place] for place in carried]
    hashes = hash_cells([avatars[place] for place in carried], kept)
    _, place, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    # By the own avatar's hash: its values are the original's up to noise, which may reach over a step's edge.
    alike = counts[place.reshape(-1)[own]] - 1
    peers = np.where(agree_in_all(agreements, carried), alike, len(own) - 1)
    return CarriedOver(tuple(summary.column.name for summary in kept), float(np.median(peers)))


def agree_in_all(agreements: Sequence[NDArray[np.bool_]], columns: Sequence[int]) -> NDArray[np.bool_]:
    """Tell whose avatar has the original's values in all of some columns; see `agree`."""
    same: NDArray[np.bool_] = np.logical_and.reduce([agreements[place] for place in columns])
    return same


def _nearness(values: Floats, original: CellSummary) -> Floats:
    """Return how near each number's like may lie: the column's tolerance, or more where float32 rounds more."""
    tolerance = _tolerance(original)
    most = MOST_SINGLE_PRECISION / COPY_TOLERANCE * tolerance
    near: Floats = np.maximum(tolerance, np.minimum(SINGLE_PRECISION * np.abs(values), most))
    return near


def _tolerance(original: CellSummary) -> float:
    """Return how near two numbers of a column may lie and still be the same."""
    if original.lowest == original.highest:
        return COPY_TOLERANCE * abs(original.lowest)
    # One outlier can make the deviation as large as it likes; the middle half of the values it leaves alone.
    lower, upper = original.quartiles
    return COPY_TOLERANCE * (min(original.deviation, upper - lower) if upper > lower else original.deviation)


def hash_cells(table: Sequence[EncodedColumn], originals: Sequence[CellSummary]) -> NDArray[np.uint64]:
    """Return a number for each row, the same for rows that are equal but for noise, nearly always.

    Parameters
    ----------
    table
        Rows of either table, or a part of them.
    originals
        The same columns of the originals, of the whole table.
    """
    total = np.zeros(len(table[0].values), np.uint64)
    for cells, original in zip(table, originals, strict=True):
        values = cells.values
        if cells.column.role == "number":
            # Numbers that are the same but for noise fall on the same step, nearly all of them. Adding 0.0
            # makes -0.0 the same number, with the same hash.
            values = np.round((values - original.mean) / (_tolerance(original) or 1.0)) + 0.0
        total = total * np.uint64(0x9E3779B97F4A7C15) + pd.util.hash_array(values)
    return total


def _collapse_warnings(
    originals: Sequence[CellSummary], avatars: Sequence[CellSummary], rows: RowFigures
) -> list[str]:
    collapsed = [
        one.column.name for one, other in zip(originals, avatars, strict=True) if _is_collapsed(one, other)
    ]
    warnings = []
    if collapsed:
        named = ", ".join(repr(name) for name in collapsed[:5])
        more = f" and {len(collapsed) - 5} more" if len(collapsed) > 5 else ""
        warnings.append(f"the avatars have lost nearly all spread in {named}{more}: protected, but of little use")
    if rows.distinct_avatars < COLLAPSED_SHARE * rows.distinct_originals:
        warnings.append(
            f"the avatars have {rows.distinct_avatars} different rows where the originals have "
            f"{rows.distinct_originals}: protected, but of little use"
        )
    return warnings


def _is_collapsed(original: CellSummary, avatar: CellSummary) -> bool:
    if original.column.role == "number":
        return avatar.deviation < COLLAPSED_SHARE * original.deviation
    largest = float(original.level_counts.max() / original.rows)
    return np.count_nonzero(avatar.level_counts) == 1 and 1 - largest > COLLAPSED_MINORITY
