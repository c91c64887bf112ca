"""What the cells of the avatars say about whether Local Cloaking can be relied on.

Each function looks at one way to a figure that is right and means nothing. The bounds stand in `limits`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from local_cloaking.limits import (
    COLLAPSED_MINORITY,
    COLLAPSED_SHARE,
    COPY_TOLERANCE,
    MAX_COPY_SHARE,
    MAX_MISSING_EXCESS,
    WARN_REAL_ROW_EXCESS,
)
from local_cloaking.tables.columns import EncodedColumn

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
    reasons
        Why Local Cloaking cannot be assessed on these tables, a sentence each.
    warnings
        What a reader should know, a sentence each.
    """

    columns: tuple[ColumnReport, ...]
    copy_share: float
    real_row_share: float
    duplicate_share: float
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]


def examine(originals: Sequence[EncodedColumn], avatars: Sequence[EncodedColumn], own: Integers) -> TableFindings:
    """Look at the cells of both tables.

    Parameters
    ----------
    originals, avatars
        The encoded tables, the same columns in the same order.
    own
        The row of each original's avatar, shape (n,).
    """
    columns = tuple(_report(one, other) for one, other in zip(originals, avatars, strict=True))
    original_rows, avatar_rows = _row_hashes(originals, originals), _row_hashes(avatars, originals)
    copies = float(_copies(originals, avatars, own).mean())
    real = float(np.isin(avatar_rows, original_rows).mean())
    duplicates = float(pd.Series(original_rows).duplicated(keep=False).mean())
    reasons = [_missing_reason(column) for column in columns]
    if copies > MAX_COPY_SHARE:
        reasons.append(f"{copies:.1%} of the avatars are copies of their own original")
    warnings = _collapse_warnings(originals, avatars, original_rows, avatar_rows)
    if real > duplicates + WARN_REAL_ROW_EXCESS:
        warnings.append(
            f"{real:.1%} of the avatars equal a row of the originals in all columns: they are real people's rows"
        )
    return TableFindings(
        columns, copies, real, duplicates, tuple(r for r in reasons if r is not None), tuple(warnings)
    )


def _report(original: EncodedColumn, avatar: EncodedColumn) -> ColumnReport:
    column = original.column
    filled_with = None
    if original.filled.any() or avatar.filled.any():
        filled_with = "the originals' median" if column.role == "number" else "the originals' commonest category"
    elif column.missing_level:
        filled_with = "a category of its own"
    return ColumnReport(
        name=column.name,
        role=column.role,
        kind=column.kind,
        levels=column.width if column.role == "category" else 0,
        missing_originals=float(original.missing.mean()),
        missing_avatars=float(avatar.missing.mean()),
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


def _copies(
    originals: Sequence[EncodedColumn], avatars: Sequence[EncodedColumn], own: Integers
) -> NDArray[np.bool_]:
    same, known = np.ones(len(own), dtype=bool), np.zeros(len(own), dtype=bool)
    for one, other in zip(originals, avatars, strict=True):
        difference = np.abs(one.values - other.values[own])
        # What is missing in the original tells nothing of them, whatever the avatar was filled with.
        same &= one.missing | (difference <= (0 if one.column.role == "category" else _tolerance(one)))
        known |= ~one.missing
    return same & known


def _tolerance(original: EncodedColumn) -> float:
    """Return how near two numbers of a column may lie and still be the same."""
    values = original.values
    spread = float(np.std(values)) if values.min() < values.max() else float(np.abs(values[0]))
    return COPY_TOLERANCE * spread


def _row_hashes(table: Sequence[EncodedColumn], originals: Sequence[EncodedColumn]) -> NDArray[np.uint64]:
    total = np.zeros(len(table[0].values), np.uint64)
    for cells, original in zip(table, originals, strict=True):
        values = cells.values
        if cells.column.role == "number":
            # Numbers that are the same but for noise fall on the same step, nearly all of them. Adding 0.0
            # makes -0.0 the same number, with the same hash.
            values = np.round((values - original.values.mean()) / (_tolerance(original) or 1.0)) + 0.0
        total = total * np.uint64(0x9E3779B97F4A7C15) + pd.util.hash_array(values)
    return total


def _collapse_warnings(
    originals: Sequence[EncodedColumn],
    avatars: Sequence[EncodedColumn],
    original_rows: NDArray[np.uint64],
    avatar_rows: NDArray[np.uint64],
) -> list[str]:
    collapsed = [
        one.column.name for one, other in zip(originals, avatars, strict=True) if _is_collapsed(one, other)
    ]
    warnings = []
    if collapsed:
        named = ", ".join(repr(name) for name in collapsed[:5])
        more = f" and {len(collapsed) - 5} more" if len(collapsed) > 5 else ""
        warnings.append(f"the avatars have lost nearly all spread in {named}{more}: protected, but of little use")
    distinct = len(np.unique(avatar_rows)), len(np.unique(original_rows))
    if distinct[0] < COLLAPSED_SHARE * distinct[1]:
        warnings.append(
            f"the avatars have {distinct[0]} different rows where the originals have {distinct[1]}: "
            "protected, but of little use"
        )
    return warnings


def _is_collapsed(original: EncodedColumn, avatar: EncodedColumn) -> bool:
    if original.column.role == "number":
        return float(np.std(avatar.values)) < COLLAPSED_SHARE * float(np.std(original.values))
    shares = np.bincount(original.values) / len(original.values)
    return len(np.unique(avatar.values)) == 1 and 1 - float(shares.max()) > COLLAPSED_MINORITY
