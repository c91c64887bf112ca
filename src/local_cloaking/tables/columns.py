"""Column roles: what each column of the originals is, learnt once and applied to both tables.

A `Column` holds all that is needed to read the same column in the avatars the same way: its role, its
categories, and what stands in for missing cells. It is plain data, so that a fitted projection can be
written down and handed over.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from local_cloaking.errors import InputError
from local_cloaking.limits import (
    IDENTIFIER_MIN_ROWS,
    IDENTIFIER_SHARE,
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
    type_name,
)
from local_cloaking.threads import in_threads

Role = Literal["number", "category"]
#: For each category column, the place of each row's word (-1 where missing) and the words; see `as_words`.
Words = dict[str, tuple[NDArray[np.int64], list[Any]]]


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
    absent = sorted({str(name) for name in categorical} - set(names))
    if absent:
        raise InputError(
            "declared as categorical, but not among the columns", column=absent[0], remedy="correct the name"
        )
    if not names:
        raise InputError("the originals have no column to measure", remedy="give at least one besides the key")
    declared = {str(name) for name in categorical}
    columns, warnings = [], []
    for position, name in enumerate(names):
        column, warning = _learn(originals.iloc[:, position], name, name in declared, words)
        columns.append(column)
        warnings += warning
    return tuple(columns), warnings


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
    names = names_of(frame, table)
    wanted = [column.name for column in columns]
    _refuse_other_columns(names, wanted, table)
    place = {name: position for position, name in enumerate(names)}
    words = words or {}

    def encoded(rows: slice) -> EncodedColumn:
        column = columns[rows.start]
        series = frame.iloc[:, place[column.name]]
        return _encode(series, column, table, fill_rows=fill_rows, words=words.get(column.name))

    return in_threads(encoded, len(columns), 1)


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


def _learn(series: pd.Series[Any], name: str, declared: bool, seen: Words | None) -> tuple[Column, list[str]]:
    kind = kind_of(series, name)
    if kind == "missing" or bool(series.isna().all()):
        raise InputError(
            "the originals have no value in it",
            column=name,
            rows=len(series),
            remedy="leave it out of both tables",
        )
    category = declared or kind in ("text", "boolean") or isinstance(series.dtype, pd.CategoricalDtype)
    if not category:
        values = _checked_numbers(series, kind, name, "originals")
        whole = kind == "number" and is_whole(series)
        fill = float(np.nanmedian(values))
        column = Column(name, "number", kind, str(series.dtype), whole, (), missing_level=False, fill=fill)
        return column, _warn_of_row_numbers(values, name) if whole else []
    if kind == "number":
        _refuse_infinite(as_numbers(series, kind), name, "originals")
    codes, words = as_words(series, kind)
    if seen is not None:
        seen[name] = codes, words
    counts = np.bincount(codes[codes >= 0], minlength=len(words))
    # Before the next question: who makes an identifier a number measures it all the same.
    warnings = _judge_identifier(len(words), int(counts.sum()), name)
    if kind == "text" and not declared:
        _refuse_numbers_as_text(words, counts, name)
    gaps = bool((codes < 0).any())
    column = Column(
        name,
        "category",
        kind,
        _dtype_name(series),
        whole=is_whole(series),
        levels=tuple(words),
        missing_level=gaps,
        fill=float(np.argmax(counts)),
    )
    return column, warnings


def _dtype_name(series: pd.Series[Any]) -> str:
    return "category" if isinstance(series.dtype, pd.CategoricalDtype) else str(series.dtype)


def _encode(
    series: pd.Series[Any],
    column: Column,
    table: str,
    *,
    fill_rows: bool,
    words: tuple[NDArray[np.int64], list[Any]] | None,
) -> EncodedColumn:
    kind = kind_of(series, column.name)
    if kind not in ("missing", column.kind):
        raise InputError(
            f"{column.kind} ({column.dtype}) in the originals, {type_name(series, kind)} in the {table}",
            column=column.name,
            rows=int(series.notna().sum()),
            remedy="give it the same type in both tables",
        )
    if column.role == "number":
        values = _checked_numbers(series, kind, column.name, table)
        missing = np.isnan(values)
        return EncodedColumn(column, np.where(missing, column.fill, values) if fill_rows else values, missing)
    codes = _codes_among(column, *(words or as_words(series, kind)), table=table)
    missing = codes < 0
    if column.missing_level:
        codes = np.where(missing, len(column.levels), codes)
    elif fill_rows:
        codes = np.where(missing, int(column.fill), codes)
    return EncodedColumn(column, codes, missing)


def _codes_among(column: Column, codes: NDArray[np.int64], words: list[Any], *, table: str) -> NDArray[np.int64]:
    place = {level: position for position, level in enumerate(column.levels)}
    of_word = np.array([place.get(word, -2) for word in words] + [-1], dtype=np.int64)
    found = of_word[codes]
    unseen = int(np.count_nonzero(found == -2))
    if unseen:
        raise InputError(
            f"{unseen} {table} have a category that no original has",
            column=column.name,
            rows=unseen,
            remedy="correct it, or map it to a category of the originals",
        )
    return found


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


def _checked_numbers(series: pd.Series[Any], kind: Kind, name: str, table: str) -> NDArray[np.float64]:
    if kind == "missing":
        return np.full(len(series), np.nan)
    values = as_numbers(series, kind)
    _refuse_infinite(values, name, table)
    rounded = (
        int(np.count_nonzero(np.abs(values) >= LARGEST_EXACT_FLOAT))
        if kind == "number" and is_whole(series)
        else 0
    )
    if rounded:
        raise InputError(
            f"{rounded} whole numbers in the {table} are too large to be told apart when measured",
            column=name,
            rows=rounded,
            remedy="pair the tables by it (`key`) or leave it out, or give it another unit",
        )
    return values


def _refuse_infinite(values: NDArray[np.float64], name: str, table: str) -> None:
    infinite = int(np.count_nonzero(np.isinf(values)))
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


def _warn_of_row_numbers(values: NDArray[np.float64], name: str) -> list[str]:
    known = values[~np.isnan(values)]
    if len(known) < IDENTIFIER_MIN_ROWS or len(np.unique(known)) < len(known):
        return []
    if known.max() - known.min() == len(known) - 1:
        return [f"column {name!r} numbers the rows: pair the tables by it (`key`), or leave it out of both"]
    if len(known) >= WHOLE_IDENTIFIER_MIN_ROWS:
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
