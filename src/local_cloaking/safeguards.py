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
    CARRIED_OVER_SHARE,
    COLLAPSED_MINORITY,
    COLLAPSED_SHARE,
    COPY_TOLERANCE,
    MAX_COPY_SHARE,
    MAX_MISSING_EXCESS,
    NEAR_COPY_RATIO,
    NEAR_COPY_SAMPLE,
    WARN_REAL_ROW_EXCESS,
)
from local_cloaking.rows import number_among, number_of_different, row_hashes
from local_cloaking.tables.columns import EncodedColumn
from local_cloaking.threads import in_threads

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
    near = {one.column.name: _tolerance(one) for one in originals}
    tables = (originals, avatars)
    original_rows, avatar_rows = in_threads(lambda i: _row_hashes(tables[i.start], originals, near), 2, 1)
    agreements = [
        _agreement(one, other, own, near[one.column.name]) for one, other in zip(originals, avatars, strict=True)
    ]
    copies = float(_copies(originals, avatars, own, agreements).mean())
    real = number_among(avatar_rows, original_rows) / len(avatar_rows)
    duplicates = float(pd.Series(original_rows).duplicated(keep=False).mean())
    reasons = [_missing_reason(column) for column in columns]
    reasons += [_weightless_reason(one, other) for one, other in zip(originals, avatars, strict=True)]
    if copies > MAX_COPY_SHARE:
        reasons.append(f"{copies:.1%} of the avatars are copies of their own original")
    warnings = _collapse_warnings(originals, avatars, original_rows, avatar_rows)
    if real > duplicates + WARN_REAL_ROW_EXCESS:
        warnings.append(
            f"{real:.1%} of the avatars equal a row of the originals in all columns: they are real people's rows"
        )
    return TableFindings(
        columns=columns,
        copy_share=copies,
        real_row_share=real,
        duplicate_share=duplicates,
        carried_over=_carried_over(originals, avatars, own, agreements, near),
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
    from scipy.spatial import cKDTree

    places = originals[np.unique(row_hashes(originals), return_index=True)[1]]
    if len(places) < 2:
        return None
    # Always the same sample for the same table: a record can be made again.
    rows = np.random.default_rng(0).permutation(len(originals))[:NEAR_COPY_SAMPLE]
    # Trees made for few questions: what a tidier one saves is less than it costs.
    trees = (cKDTree(table, balanced_tree=False, compact_nodes=False) for table in (avatars, places))
    to_avatar = next(trees).query(originals[rows], workers=-1)[0]
    to_other = next(trees).query(originals[rows], k=2, workers=-1)[0][:, 1]
    apart = to_avatar > 1e-9 * to_other
    if 2 * np.count_nonzero(apart) < len(rows):
        return None
    ratio = float(np.median(to_avatar[apart] / to_other[apart]))
    if ratio >= NEAR_COPY_RATIO:
        return None
    return (
        "the avatars are copies of originals with a little noise: in the median, the nearest avatar is at "
        f"{ratio:.1%} of the distance to the nearest other original"
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


def _weightless_reason(original: EncodedColumn, avatar: EncodedColumn) -> str | None:
    values = original.values
    if original.column.role == "category" or values.min() < values.max() or (avatar.values == values[0]).all():
        return None
    return (
        f"column {original.column.name!r} is the same for all originals but not for all avatars: it has no weight "
        "in the projected space, so that what leaves in it was not measured"
    )


def _agreement(original: EncodedColumn, avatar: EncodedColumn, own: Integers, near: float) -> NDArray[np.bool_]:
    """Tell whose avatar has the original's own value, shape (n,); numbers that differ by noise are the same."""
    same: NDArray[np.bool_] = np.abs(original.values - avatar.values[own]) <= near
    return same


def _copies(
    originals: Sequence[EncodedColumn],
    avatars: Sequence[EncodedColumn],
    own: Integers,
    agreements: Sequence[NDArray[np.bool_]],
) -> NDArray[np.bool_]:
    """Tell whose avatar agrees in all cells that both have, where these are at least half of the original's."""
    same = np.ones(len(own), dtype=bool)
    known, common = np.zeros(len(own)), np.zeros(len(own))
    for one, other, agreement in zip(originals, avatars, agreements, strict=True):
        missing = one.missing | other.missing[own]
        # What one of the two lacks tells them not apart, whatever it was filled with.
        same &= missing | agreement
        known += ~one.missing
        common += ~missing
    return same & (common > 0) & (2 * common >= known)


def _carried_over(
    originals: Sequence[EncodedColumn],
    avatars: Sequence[EncodedColumn],
    own: Integers,
    agreements: Sequence[NDArray[np.bool_]],
    near: dict[str, float],
) -> CarriedOver | None:
    triples = zip(originals, avatars, agreements, strict=True)
    carried = [(one, other) for one, other, agreement in triples if agreement.mean() > CARRIED_OVER_SHARE]
    if not carried:
        return None
    ones, others = [one for one, _ in carried], [other for _, other in carried]
    original_hashes, avatar_hashes = _row_hashes(ones, ones, near), _row_hashes(others, ones, near)
    hashes, counts = np.unique(avatar_hashes, return_counts=True)
    place = np.minimum(np.searchsorted(hashes, original_hashes), len(hashes) - 1)
    alike = np.where(hashes[place] == original_hashes, counts[place], 0)
    peers = np.where(avatar_hashes[own] == original_hashes, alike - 1, len(own) - 1)
    return CarriedOver(tuple(one.column.name for one in ones), float(np.median(peers)))


def _tolerance(original: EncodedColumn) -> float:
    """Return how near two numbers of a column may lie and still be the same: 0 for places of categories."""
    if original.column.role == "category":
        return 0.0
    values = original.values
    if values.min() == values.max():
        return COPY_TOLERANCE * float(np.abs(values[0]))
    # One outlier can make the deviation as large as it likes; the middle half of the values it leaves alone.
    lower, upper = np.quantile(values, [0.25, 0.75])
    spread = float(np.std(values))
    return COPY_TOLERANCE * (min(spread, float(upper - lower)) if upper > lower else spread)


def _row_hashes(
    table: Sequence[EncodedColumn], originals: Sequence[EncodedColumn], near: dict[str, float]
) -> NDArray[np.uint64]:
    total = np.zeros(len(table[0].values), np.uint64)
    for cells, original in zip(table, originals, strict=True):
        values = cells.values
        if cells.column.role == "number":
            # Numbers that are the same but for noise fall on the same step, nearly all of them. Adding 0.0
            # makes -0.0 the same number, with the same hash.
            values = np.round((values - original.values.mean()) / (near[original.column.name] or 1.0)) + 0.0
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
    distinct = number_of_different(avatar_rows), number_of_different(original_rows)
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
