"""Column roles: what each column of the originals is, learnt once and applied to both tables.

A `Column` holds all that is needed to read the same column in the avatars the same way: its role, its
categories, and what stands in for missing cells. It is plain data, so that a fitted projection can be
written down and handed over.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from local_cloaking.errors import InputError
from local_cloaking.limits import (
    IDENTIFIER_MIN_ROWS,
    IDENTIFIER_SHARE,
    MAX_LEVELS,
    NEAR_IDENTIFIER_SHARE,
    NUMBERS_AS_TEXT_MAX_LEVELS,
    NUMBERS_AS_TEXT_SHARE,
    WHOLE_IDENTIFIER_MIN_ROWS,
)
from local_cloaking.tables.values import (
    LARGEST_EXACT_FLOAT,
    Kind,
    as_numbers,
    as_words,
    from_seconds,
    is_whole,
    kind_of,
)
from local_cloaking.threads import each_in_threads

Role = Literal["number", "category"]
#: For each category column, the place of each row's word (-1 where missing) and the words; see `as_words`.
Words = dict[str, tuple[NDArray[np.int64], list[Any]]]

#: Place of a category that no original has.
_UNSEEN = -2


@dataclass(frozen=True)
class Column:
    """One column, as learnt from the originals.

    Attributes
    ----------
    name
        The column's name, as text.
    role
        ``number`` (centred and scaled) or ``category`` (one indicator per level).
    kind
        What its values are: number, boolean, text, date, zoned date or duration.
    dtype
        The originals' pandas type, to give avatars the same.
    whole
        Whether its numbers are whole.
    levels
        The categories, sorted; empty for numbers.
    missing_level
        Whether a missing value is a category of its own, after the others.
    fill
        What stands in for a missing cell: the originals' median, or the place of their commonest level.
    """

    name: str
    role: Role
    kind: Kind
    dtype: str
    whole: bool
    levels: tuple[Any, ...]
    missing_level: bool
    fill: float

    @property
    def width(self) -> int:
        """How many columns of the scaled table it makes: 1, or one per level."""
        return 1 if self.role == "number" else len(self.levels) + self.missing_level


@dataclass(frozen=True)
class EncodedColumn:
    """The cells of one column: ``values`` is float64 (numbers) or int64 (places of levels), without gaps.

    ``filled`` tells which cells were missing and got the column's fill; a missing cell that is a level of
    its own is ``missing`` but not ``filled``.
    """

    column: Column
    values: NDArray[Any]
    missing: NDArray[np.bool_]

    @property
    def filled(self) -> NDArray[np.bool_]:
        """Boolean, shape (n,)."""
        return np.zeros_like(self.missing) if self.column.missing_level else self.missing


@dataclass(frozen=True)
class ColumnSummary:
    """What a column of the originals holds, added up: all that its role is judged by.

    Attributes
    ----------
    name, kind, dtype, whole
        As in `Column`; the kind ``missing`` stands for a column without a value.
    known, rows
        Cells with a value, and all of them.
    infinite, rounded
        Numbers that are infinite, and whole ones too large to be told apart in float64.
    lowest, highest, median
        Of the numbers; NaN for categories.
    all_differ
        Whether no two whole numbers are the same.
    words, counts
        The different values of a category, sorted, and how often each stands; None where there are more than
        `local_cloaking.limits.MAX_LEVELS`. Both are empty for numbers.
    """

    name: str
    kind: Kind
    dtype: str
    whole: bool
    known: int
    rows: int
    infinite: int = 0
    rounded: int = 0
    lowest: float = math.nan
    highest: float = math.nan
    median: float = math.nan
    all_differ: bool = False
    words: tuple[Any, ...] | None = ()
    counts: tuple[int, ...] = ()


@dataclass(frozen=True)
class Misfit:
    """In how far the cells of a column are not those that were learnt from the originals.

    Attributes
    ----------
    kind, dtype
        Of the cells.
    known
        Cells with a value.
    infinite, rounded
        As in `ColumnSummary`.
    unseen
        Cells with a category that no original has.
    """

    kind: Kind
    dtype: str
    known: int
    infinite: int = 0
    rounded: int = 0
    unseen: int = 0


def names_of(frame: pd.DataFrame, table: str) -> list[str]:
    """Return the column names as text.

    Raises
    ------
    InputError
        If two columns have the same name, also where one is 1 and the other "1".

    Examples
    --------
    >>> names_of(pd.DataFrame({"a": [1], 2: [3]}), "originals")
    ['a', '2']
    """
    names = [str(name) for name in frame.columns]
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise InputError(
            f"{len(twice)} column names stand more than once in the {table}",
            column=twice[0],
            remedy="give each column a name of its own",
        )
    return names


def without(originals: pd.DataFrame, drop: Collection[str]) -> pd.DataFrame:
    """Return the originals without some columns.

    Raises
    ------
    InputError
        If this is no table with rows, or there is no such column.

    Examples
    --------
    >>> list(without(pd.DataFrame({"age": [41], "note": ["x"]}), ["note"]))
    ['age']
    """
    if not isinstance(originals, pd.DataFrame):
        raise InputError("the originals are not a DataFrame", remedy="give a pandas DataFrame")
    left_out = {str(name) for name in drop}
    absent = sorted(left_out - {str(name) for name in originals.columns})
    if absent:
        raise InputError("to be dropped, but not in the originals", column=absent[0], remedy="correct the name")
    return originals[[name for name in originals.columns if str(name) not in left_out]]


def learn_columns(
    originals: pd.DataFrame, categorical: Collection[str] = (), words: Words | None = None
) -> tuple[tuple[Column, ...], list[str]]:
    """Learn the role, categories and fill of each column from the originals.

    Parameters
    ----------
    originals
        The originals, without key.
    categorical
        Columns to treat as categories whatever their type; text, truth values and pandas categoricals
        always are.
    words
        Takes the words of each category column, so that `encode` need not look for them again.

    Returns
    -------
    columns, warnings
        One `Column` per column, in order, and what a user should know about them.

    Raises
    ------
    InputError
        If a column cannot be given a role that means something; see ``docs/safeguards.md``.

    Examples
    --------
    >>> columns, _ = learn_columns(pd.DataFrame({"age": [30, 40], "arm": ["a", "b"]}))
    >>> [(c.name, c.role) for c in columns]
    [('age', 'number'), ('arm', 'category')]
    """
    names = names_of(originals, "originals")
    declared = checked_declaration(categorical, names)
    learnt = []
    # One after the other: the first column that is refused is the one that is named.
    for position, name in enumerate(names):
        summary = summarise(originals.iloc[:, position], name, declared=name in declared, seen=words)
        learnt.append(learn_column(summary, declared=name in declared))
    return tuple(column for column, _ in learnt), [warning for _, warnings in learnt for warning in warnings]


def checked_declaration(categorical: Collection[str], names: Sequence[str]) -> set[str]:
    """Return the names of the declared categories.

    Raises
    ------
    InputError
        If one of them is no column, or there is no column at all.

    Examples
    --------
    >>> checked_declaration(["arm"], ["age", "arm"])
    {'arm'}
    """
    declared = {str(name) for name in categorical}
    absent = sorted(declared - set(names))
    if absent:
        raise InputError(
            "declared as categorical, but not among the columns", column=absent[0], remedy="correct the name"
        )
    if not names:
        raise InputError("the originals have no column to measure", remedy="give at least one besides the key")
    return declared


def summarise(series: pd.Series[Any], name: str, *, declared: bool, seen: Words | None = None) -> ColumnSummary:
    """Add up what a column of the originals holds.

    Parameters
    ----------
    series
        The column.
    name
        Its name, for messages.
    declared
        Whether it is to be treated as categories whatever its type.
    seen
        Takes the words of a category column, so that `encode_column` need not look for them again.

    Raises
    ------
    InputError
        If the column mixes kinds.

    Examples
    --------
    >>> summarise(pd.Series(["b", "a", "b"]), "arm", declared=False).counts
    (1, 2)
    """
    kind = kind_of(series, name)
    whole = kind != "text" and is_whole(series)
    nothing = ColumnSummary(name, "missing", _dtype_name(series), whole, 0, len(series))
    if kind == "missing":
        return nothing
    summary = replace(nothing, kind=kind)
    if is_category(summary, declared=declared):
        summary = _with_words(summary, series, seen)
        return summary if summary.known else nothing
    values = as_numbers(series, kind)
    known = values[~np.isnan(values)]
    if not known.size:
        return nothing
    whole = kind == "number" and summary.whole
    return replace(
        summary,
        known=len(known),
        infinite=int(np.count_nonzero(np.isinf(known))),
        rounded=_rounded(known) if whole else 0,
        lowest=float(known.min()),
        highest=float(known.max()),
        median=float(np.median(known)),
        all_differ=whole and len(np.unique(known)) == len(known),
    )


def is_category(summary: ColumnSummary, *, declared: bool) -> bool:
    """Tell whether a column is made of categories, not of numbers."""
    return declared or summary.kind in ("text", "boolean") or summary.dtype == "category"


def learn_column(summary: ColumnSummary, *, declared: bool) -> tuple[Column, list[str]]:
    """Give a column its role, its categories and its fill, by what it holds.

    Returns
    -------
    column, warnings
        The column, and what a user should know about it.

    Raises
    ------
    InputError
        If no role means something; see ``docs/safeguards.md``.

    Examples
    --------
    >>> summary = summarise(pd.Series([30, 40, 44]), "age", declared=False)
    >>> learn_column(summary, declared=False)[0].fill
    40.0
    """
    if not summary.known:
        raise InputError(
            "the originals have no value in it",
            column=summary.name,
            rows=summary.rows,
            remedy="leave it out of both tables",
        )
    if is_category(summary, declared=declared):
        return _learn_category(summary, declared=declared)
    _refuse_infinite(summary.infinite, summary.name, "originals")
    _refuse_rounded(summary.rounded, summary.name, "originals")
    whole = summary.kind == "number" and summary.whole
    column = Column(
        summary.name,
        "number",
        summary.kind,
        summary.dtype,
        whole,
        (),
        missing_level=False,
        fill=summary.median,
    )
    return column, _warn_of_row_numbers(summary) if whole else []


def encode(
    frame: pd.DataFrame,
    columns: Sequence[Column],
    table: str,
    *,
    fill_rows: bool = True,
    words: Words | None = None,
) -> list[EncodedColumn]:
    """Read a table as the columns say.

    Parameters
    ----------
    frame
        A table with these columns, in any order, and no others.
    columns
        What was learnt from the originals.
    table
        ``originals`` or ``avatars``, for messages.
    fill_rows
        Whether missing cells get the column's fill (else NaN, or -1 for categories).
    words
        What `learn_columns` found in this very table.

    Raises
    ------
    InputError
        If a column is absent or too many, of another type, infinite, or has an unknown category.
    """
    place = places_of(names_of(frame, table), columns, table)

    def encoded(position: int) -> EncodedColumn:
        column = columns[position]
        its_words = (words or {}).get(column.name)
        series = frame.iloc[:, place[position]]
        cells, misfit = encode_column(series, column, fill_rows=fill_rows, words=its_words)
        refuse_misfit(column, misfit, table)
        assert cells is not None  # noqa: S101 (cells of the right kind can be read)
        return cells

    return each_in_threads(encoded, range(len(columns)))


def places_of(names: list[str], columns: Sequence[Column], table: str) -> list[int]:
    """Return where each of the columns stands in a table with these names.

    Raises
    ------
    InputError
        If a column is absent, or one too many.

    Examples
    --------
    >>> columns, _ = learn_columns(pd.DataFrame({"age": [30, 40], "arm": ["a", "b"]}))
    >>> places_of(["arm", "age"], columns, "avatars")
    [1, 0]
    """
    _refuse_other_columns(names, [column.name for column in columns], table)
    place = {name: position for position, name in enumerate(names)}
    return [place[column.name] for column in columns]


def decode(column: Column, values: NDArray[Any]) -> pd.Series[Any]:
    """Turn numbers, or places of levels, back into the column's own type.

    Examples
    --------
    >>> column = learn_columns(pd.DataFrame({"age": [30, 41]}))[0][0]
    >>> decode(column, np.array([30.2])).tolist()
    [30]
    """
    if column.role == "category":
        return _decode_levels(column, values)
    if column.kind in ("date", "zoned date", "duration"):
        return _as_dtype(from_seconds(values, column.kind), column)
    if column.whole:
        values = np.round(values)
        if np.issubdtype(_numpy_dtype(column), np.integer):
            limits = np.iinfo(_numpy_dtype(column))
            highest = float(limits.max)
            if int(highest) > limits.max:
                # Of 64 bits: the nearest float64 is one too many, and would come out as the smallest number.
                highest = float(np.nextafter(highest, 0))
            values = np.clip(values, limits.min, highest)
    return _as_dtype(pd.Series(values), column)


def _with_words(summary: ColumnSummary, series: pd.Series[Any], seen: Words | None) -> ColumnSummary:
    infinite = 0
    if summary.kind == "number":
        infinite = int(np.count_nonzero(np.isinf(as_numbers(series, summary.kind))))
    codes, words = as_words(series, summary.kind)
    if seen is not None:
        seen[summary.name] = codes, words
    summary = replace(summary, known=int(np.count_nonzero(codes >= 0)))
    if len(words) > MAX_LEVELS:
        return replace(summary, infinite=infinite, words=None)
    counts = np.bincount(codes[codes >= 0], minlength=len(words))
    return replace(summary, infinite=infinite, words=tuple(words), counts=tuple(counts.tolist()))


def _learn_category(summary: ColumnSummary, *, declared: bool) -> tuple[Column, list[str]]:
    name, words = summary.name, summary.words
    _refuse_infinite(summary.infinite, name, "originals")
    if words is None:
        raise InputError(
            f"more than {MAX_LEVELS} different values in {summary.known} rows: it names individuals, or is no "
            "category",
            column=name,
            rows=summary.known,
            remedy="pair the tables by it (`key`), or leave it out of both",
        )
    # Before the next question: who makes an identifier a number measures it all the same.
    warnings = _judge_identifier(len(words), summary.known, name)
    counts = np.array(summary.counts, dtype=np.int64)
    if summary.kind == "text" and not declared:
        _refuse_numbers_as_text(list(words), counts, name)
    column = Column(
        name,
        "category",
        summary.kind,
        summary.dtype,
        whole=summary.whole,
        levels=words,
        missing_level=summary.known < summary.rows,
        fill=float(np.argmax(counts)),
    )
    return column, warnings


def _dtype_name(series: pd.Series[Any]) -> str:
    return "category" if isinstance(series.dtype, pd.CategoricalDtype) else str(series.dtype)


def encode_column(
    series: pd.Series[Any],
    column: Column,
    *,
    fill_rows: bool = True,
    words: tuple[NDArray[np.int64], list[Any]] | None = None,
) -> tuple[EncodedColumn | None, Misfit]:
    """Read the cells of one column, and count those that do not fit; `refuse_misfit` judges them.

    Returns
    -------
    cells, misfit
        The cells, None where they are of another kind; and in how far they do not fit.

    Examples
    --------
    >>> column = learn_columns(pd.DataFrame({"arm": ["a", "b"]}))[0][0]
    >>> encode_column(pd.Series(["a", "c"]), column)[1].unseen
    1
    """
    kind = kind_of(series, column.name)
    misfit = Misfit(kind, _dtype_name(series), 0)
    if kind not in ("missing", column.kind):
        return None, replace(misfit, known=int(series.notna().sum()))
    if column.role == "number":
        values = np.full(len(series), np.nan) if kind == "missing" else as_numbers(series, kind)
        missing = np.isnan(values)
        whole = kind == "number" and is_whole(series)
        misfit = replace(
            misfit,
            known=len(values) - int(np.count_nonzero(missing)),
            infinite=int(np.count_nonzero(np.isinf(values))),
            rounded=_rounded(values) if whole else 0,
        )
        return EncodedColumn(
            column, np.where(missing, column.fill, values) if fill_rows else values, missing
        ), misfit
    codes = _codes_among(column, *(words or as_words(series, kind)))
    unseen = codes == _UNSEEN
    missing = codes < 0
    misfit = replace(
        misfit,
        known=int(np.count_nonzero(~missing | unseen)),
        unseen=int(np.count_nonzero(unseen)),
    )
    if column.missing_level:
        codes = np.where(missing, len(column.levels), codes)
    elif fill_rows:
        codes = np.where(missing, int(column.fill), codes)
    return EncodedColumn(column, codes, missing), misfit


def refuse_misfit(column: Column, misfit: Misfit, table: str) -> None:
    """Refuse cells that are not those that were learnt from the originals.

    Raises
    ------
    InputError
        If they are of another kind, infinite, too large, or of an unknown category.
    """
    if misfit.kind not in ("missing", column.kind):
        raise InputError(
            f"{column.kind} ({column.dtype}) in the originals, {misfit.kind} ({misfit.dtype}) in the {table}",
            column=column.name,
            rows=misfit.known,
            remedy="give it the same type in both tables",
        )
    _refuse_infinite(misfit.infinite, column.name, table)
    _refuse_rounded(misfit.rounded, column.name, table)
    if misfit.unseen:
        raise InputError(
            f"{misfit.unseen} {table} have a category that no original has",
            column=column.name,
            rows=misfit.unseen,
            remedy="correct it, or map it to a category of the originals",
        )


def _codes_among(column: Column, codes: NDArray[np.int64], words: list[Any]) -> NDArray[np.int64]:
    place = {level: position for position, level in enumerate(column.levels)}
    of_word = np.array([place.get(word, _UNSEEN) for word in words] + [-1], dtype=np.int64)
    return of_word[codes]


def _refuse_other_columns(names: list[str], wanted: list[str], table: str) -> None:
    lacking = [name for name in wanted if name not in set(names)]
    if lacking:
        raise InputError(
            f"{_columns(lacking, 'the originals have')} but not the {table}",
            column=lacking[0],
            remedy=f"add it to the {table} or leave it out of both; are the names written and encoded alike?",
        )
    surplus = [name for name in names if name not in set(wanted)]
    if surplus:
        raise InputError(
            f"{_columns(surplus, f'the {table} have')} but not the originals",
            column=surplus[0],
            remedy="drop it: a column that is not measured must not leave either",
        )


def _columns(names: list[str], who: str) -> str:
    return f"a column that {who}" if len(names) == 1 else f"the first of {len(names)} columns that {who}"


def _rounded(values: NDArray[np.float64]) -> int:
    return int(np.count_nonzero(np.abs(values) >= LARGEST_EXACT_FLOAT))


def _refuse_rounded(rounded: int, name: str, table: str) -> None:
    if rounded:
        raise InputError(
            f"{rounded} whole numbers in the {table} are too large to be told apart when measured",
            column=name,
            rows=rounded,
            remedy="pair the tables by it (`key`) or leave it out, or give it another unit",
        )


def _refuse_infinite(infinite: int, name: str, table: str) -> None:
    if infinite:
        raise InputError(
            f"{infinite} values in the {table} are infinite",
            column=name,
            rows=infinite,
            remedy="correct them, or leave the cells empty",
        )


def _refuse_numbers_as_text(words: list[str], counts: NDArray[np.int64], name: str) -> None:
    numbers = pd.to_numeric(pd.Series(words, dtype=object).str.replace(",", "."), errors="coerce").notna()
    rows, total = int(counts[numbers.to_numpy(bool)].sum()), int(counts.sum())
    remedy = "make them numbers or missing, or declare the column with `categorical`"
    if rows == total and len(words) > NUMBERS_AS_TEXT_MAX_LEVELS:
        raise InputError(
            f"{total} numbers written as text would become {len(words)} categories",
            column=name,
            rows=total,
            remedy=remedy,
        )
    if NUMBERS_AS_TEXT_SHARE * total < rows < total:
        raise InputError(
            f"numbers written as text, and {total - rows} values that are no numbers",
            column=name,
            rows=total - rows,
            remedy=remedy,
        )


def _judge_identifier(different: int, values: int, name: str) -> list[str]:
    if values < IDENTIFIER_MIN_ROWS:
        return []
    if different > IDENTIFIER_SHARE * values:
        raise InputError(
            f"{different} different values in {values} rows: it names individuals, or is no category",
            column=name,
            rows=different,
            remedy="pair the tables by it (`key`), or leave it out of both",
        )
    if different > NEAR_IDENTIFIER_SHARE * values:
        return [f"column {name!r}: {different} different categories in {values} rows; does it name individuals?"]
    return []


def _warn_of_row_numbers(summary: ColumnSummary) -> list[str]:
    name, known = summary.name, summary.known
    if known < IDENTIFIER_MIN_ROWS or not summary.all_differ:
        return []
    if summary.highest - summary.lowest == known - 1:
        return [f"column {name!r} numbers the rows: pair the tables by it (`key`), or leave it out of both"]
    if known >= WHOLE_IDENTIFIER_MIN_ROWS:
        return [f"column {name!r}: every whole number in it is different; is it an identifier?"]
    return []


def _decode_levels(column: Column, codes: NDArray[Any]) -> pd.Series[Any]:
    levels: list[Any] = [*column.levels, None] if column.missing_level else list(column.levels)
    if column.kind in ("date", "zoned date", "duration"):
        seconds = np.array([np.nan if level is None else float(level) for level in levels])
        return _as_dtype(from_seconds(seconds, column.kind), column).iloc[codes].reset_index(drop=True)
    cells = np.array(levels, dtype=object)[codes]
    if column.kind == "number" and column.dtype != "object":
        return _as_dtype(pd.Series(pd.to_numeric(pd.Series(cells, dtype=object))), column)
    return _as_dtype(pd.Series(cells, dtype=object), column, categories=list(column.levels))


def _as_dtype(series: pd.Series[Any], column: Column, categories: list[Any] | None = None) -> pd.Series[Any]:
    if column.dtype == "category":
        return pd.Series(pd.Categorical(series, categories=categories))
    if column.dtype == "object" and column.kind in ("date", "zoned date", "duration"):
        return series
    try:
        return series.astype(column.dtype)  # type: ignore[call-overload, no-any-return]
    except (TypeError, ValueError):
        # Whole numbers with a gap do not fit the originals' type; no value is lost by leaving it.
        return series


def _numpy_dtype(column: Column) -> np.dtype[Any]:
    try:
        return np.dtype(column.dtype.lower())
    except TypeError:
        return np.dtype(np.float64)
