"""The type of a CSV column, decided from all of its cells.

The rules for a column, on its cells that are not missing, the first that fits all of them:

1. whole numbers without leading zeros: ``int64``, or ``float64`` with NaN where cells are missing;
2. numbers, with the decimal point or the decimal comma of the file: ``float64``;
3. true/false words: ``bool``, or the nullable ``boolean`` where cells are missing;
4. ISO 8601 dates and times: ``datetime64``, in UTC where they carry an offset;
5. dates such as DD/MM/YYYY, where the order of day and month can be told: ``datetime64``;
6. anything else: text, as it stands in the file.

Whole numbers that the type would round (beyond int64, or from 2**53 on in a column that becomes ``float64``)
and numbers with leading zeros are identifiers rather than quantities: they stay text. Blanks around a cell do
not count for these rules, and stay in a text.

A mark before three digits, as in 30.123 or 30,123, may be a decimal mark or separate thousands. A column that
shows no more than that is refused, unless the option `decimal` or the commas between the cells tell which it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from local_cloaking.errors import InputError
from local_cloaking.tables.values import LARGEST_EXACT_FLOAT

MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "#N/A", "<NA>")
TRUE_WORDS = ("True", "true", "TRUE")
FALSE_WORDS = ("False", "false", "FALSE")
#: From here on float64 does not hold every whole number.
_HEAD = 256
_WHOLE = r"^[+-]?(0|[1-9][0-9]*)$"
_LEADING_ZERO = r"^[+-]?0[0-9]"
_DIGITS_ONLY = r"^[+-]?[0-9]+$"
_POINT_NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_COMMA_NUMBER = r"^[+-]?([0-9]+(,[0-9]*)?|,[0-9]+)([eE][+-]?[0-9]+)?$"
_COMMA_GROUPS = r"^[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+$"
_POINT_GROUPS = r"^[+-]?[1-9][0-9]{0,2}(\.[0-9]{3})+$"
_GROUPED = (
    r"^[+-]?[1-9][0-9]{0,2}"
    r"((,[0-9]{3})+(\.[0-9]*)?|(\.[0-9]{3})+(,[0-9]*)?|([ '’\x{a0}\x{202f}][0-9]{3})+([.,][0-9]*)?)$"
)
_ANY_NUMBER = f"{_POINT_NUMBER}|{_COMMA_NUMBER}|{_GROUPED}"
_ISO = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?$"
)
_OFFSET = r":[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
_NANOSECONDS = r"\.[0-9]{7,}"
_SLASHED = tuple(
    rf"^(?P<first>[0-9]{{1,2}}){mark}(?P<second>[0-9]{{1,2}}){mark}(?P<year>[0-9]{{4}})"
    r"(?:[ T](?P<hour>[0-9]{1,2})(?P<rest>:[0-9]{2}(?::[0-9]{2})?))?$"
    for mark in ("/", r"\.", "-")
)


@dataclass(frozen=True)
class SlashedDates:
    """A column of dates whose order of day and month may have to come from the other table of the pair.

    Parameters
    ----------
    day_first, month_first
        The dates under each reading, None where a cell is no date under it. At least one is there.
    """

    day_first: pa.ChunkedArray | None
    month_first: pa.ChunkedArray | None


@dataclass(frozen=True)
class DecidedColumns:
    """The columns of a file, and what the other file of a pair needs to know of them.

    Parameters
    ----------
    columns
        The columns in order; dates whose order of day and month is still open as `SlashedDates`.
    decimal
        The decimal mark of the file.
    whole
        Columns that hold whole numbers only.
    grouped
        Columns whose points were read as decimal points although they may separate thousands, each with the
        number of cells that have one.
    """

    columns: Mapping[str, pa.ChunkedArray | SlashedDates]
    decimal: str
    whole: frozenset[str]
    grouped: Mapping[str, int]


@dataclass(frozen=True)
class _Column:
    content: pa.ChunkedArray | SlashedDates
    decimal: str | None = None
    whole: bool = False
    grouped: int = 0


def decide_columns(
    cells: pa.Table,
    *,
    text_columns: frozenset[str],
    categorical: frozenset[str],
    separator: str,
    decimal: str | None,
) -> DecidedColumns:
    """Decide the type of each column, and the decimal mark of the file.

    Parameters
    ----------
    cells
        The file's cells as text, missing ones null.
    text_columns, categorical, separator, decimal
        As in `local_cloaking.tables.csv.parse_csv`.

    Raises
    ------
    InputError
        Where a column can be read in two ways.
    """
    decided: dict[str, _Column] = {}
    for name in cells.column_names:
        if name in text_columns:
            decided[name] = _Column(_without_blank_markers(cells[name]))
        elif name in categorical:
            decided[name] = _decide_category(cells[name], name, separator, decimal)
        else:
            decided[name] = _decide(cells[name], name, separator, decimal)
    written = {column.decimal for column in decided.values() if column.decimal}
    if len(written) > 1:
        raise _two_decimals(cells, decided)
    grouped = {name: column.grouped for name, column in decided.items() if column.grouped}
    if separator != ",":
        # After the above, which says more: the file's own decimal commas.
        _refuse_doubtful_points({name: rows for name, rows in grouped.items() if name not in categorical})
    return DecidedColumns(
        {name: column.content for name, column in decided.items()},
        decimal or (written.pop() if written else "."),
        frozenset(name for name, column in decided.items() if column.whole),
        grouped,
    )


def _decide_category(cells: pa.ChunkedArray, name: str, separator: str, decimal: str | None) -> _Column:
    try:
        column = _decide(cells, name, separator, decimal)
    except InputError:
        column = None
    # What would be ambiguous as a number or a date is not as a category.
    if column is None or isinstance(column.content, SlashedDates):
        return _Column(_without_blank_markers(cells))
    doubtful = column.grouped and separator != ","
    content = _without_blank_markers(cells) if doubtful else column.content
    return _Column(content, whole=column.whole, grouped=column.grouped)


def _two_decimals(cells: pa.Table, decided: Mapping[str, _Column]) -> InputError:
    point = next(name for name, column in decided.items() if column.decimal == ".")
    comma = next(name for name, column in decided.items() if column.decimal == ",")
    return InputError(
        f"it has decimal points, while column {comma!r} of the same file has decimal commas",
        remedy="write all numbers of the file in one way, or declare a column whose values are no numbers in "
        "`categorical`",
        column=point,
        rows=_count(cells[point], r"\."),
    )


def _decide(cells: pa.ChunkedArray, name: str, separator: str, decimal: str | None) -> _Column:
    if cells.null_count == len(cells):
        return _Column(pa.chunked_array([pa.nulls(len(cells), pa.float64())]))
    column = _typed(cells, name, separator, decimal)
    if column is not None:
        return column
    trimmed = pc.ascii_trim_whitespace(cells)
    if trimmed.equals(cells):
        return _Column(cells)
    trimmed = _without_markers(trimmed)
    if trimmed.null_count == len(trimmed):
        return _Column(trimmed.cast(pa.float64()))
    return _typed(trimmed, name, separator, decimal) or _Column(_without_blank_markers(cells))


def _typed(cells: pa.ChunkedArray, name: str, separator: str, decimal: str | None) -> _Column | None:
    whole = _whole_numbers(cells)
    if whole is not None:
        return _Column(whole, whole=True)
    numbers = _numbers(cells, name, separator, decimal)
    if numbers is not None:
        return numbers
    flags = _flags(cells)
    if flags is not None:
        return _Column(flags)
    _refuse_grouped_or_mixed(cells, name)
    dates = _iso_dates(cells, name)
    if dates is None:
        dates = _slashed_dates(cells, name)
    return _Column(dates) if dates is not None else None


def _without_markers(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.if_else(pc.is_in(cells, pa.array(MISSING)), pa.scalar(None, cells.type), cells)


def _without_blank_markers(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    missing = pc.is_in(pc.ascii_trim_whitespace(cells), pa.array(MISSING))
    return pc.if_else(missing, pa.scalar(None, cells.type), cells)


# --- numbers ---


def _whole_numbers(cells: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Read int64, or float64 with nulls; None where a cell is no whole number or would be rounded."""
    numbers = _cast(cells, pa.int64())
    if numbers is None and _head_has_every(cells, _DIGITS_ONLY):
        # Arrow reads a plus before a float, but not before an integer.
        numbers = _cast(pc.replace_substring_regex(cells, r"^\+([0-9])", r"\1"), pa.int64())
    # Arrow also reads "007" and "0x1F", which are no quantities.
    if numbers is None or not _every(cells, _WHOLE):
        return None
    if numbers.null_count == 0:
        return numbers
    return None if _beyond_exact(numbers) else numbers.cast(pa.float64())


def _numbers(cells: pa.ChunkedArray, name: str, separator: str, decimal: str | None) -> _Column | None:
    floats = _floats(cells)
    if floats is not None:
        points = _holds(cells, ".")
        if points and decimal == ",":
            raise InputError(
                "it has decimal points, although the option `decimal` says comma",
                remedy="leave the option out, write the numbers with a comma, or declare the column in "
                "`categorical`",
                column=name,
                rows=_count(cells, r"\."),
            )
        grouped = _point_groups(cells) if points and decimal is None else 0
        return _Column(floats, "." if points else None, grouped=grouped)
    if not _head_has_every(cells, _COMMA_NUMBER) or _holds(cells, "."):
        return None
    floats = _floats(pc.replace_substring(cells, ",", "."))
    if floats is None:
        return None
    _refuse_doubtful_commas(cells, name, separator, decimal)
    return _Column(floats, ",")


def _floats(cells: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Read float64; None where a cell is no number, or is an identifier that looks like one."""
    numbers = _cast(cells, pa.float64())
    if numbers is None:
        return None
    # "NAN" would come out as a missing cell, which no marker says it is.
    if pc.any(pc.is_nan(numbers)).as_py() or _count(cells, _LEADING_ZERO):
        return None
    large = pc.greater_equal(pc.abs(numbers), LARGEST_EXACT_FLOAT)
    return None if _count(cells.filter(large), _DIGITS_ONLY) else numbers


def _refuse_doubtful_commas(cells: pa.ChunkedArray, name: str, separator: str, decimal: str | None) -> None:
    if decimal == ",":
        return
    declare = "declare the column in `categorical` where its values are no numbers"
    if decimal == ".":
        problem = "it has numbers with a comma, although the option `decimal` says point"
        remedy = f"write the numbers with a point and without separators of thousands, or {declare}"
    elif separator == ",":
        problem = "it has numbers with a comma in a file whose cells are separated by commas"
        remedy = f"give decimal=',' where it is a decimal comma in the option `decimal`, or {declare}"
    elif _only_groups(cells):
        problem = "its commas may be decimal commas or separators of thousands"
        remedy = f"give decimal=',' in the option `decimal`, write thousands without separators, or {declare}"
    else:
        return
    raise InputError(problem, remedy=remedy, column=name, rows=_count(cells, ","))


def _only_groups(cells: pa.ChunkedArray) -> bool:
    head = cells.slice(0, _HEAD)
    if _count(head, ",") > _count(head, _COMMA_GROUPS):
        return False
    return _count(cells, ",") == _count(cells, _COMMA_GROUPS)


def _point_groups(cells: pa.ChunkedArray) -> int:
    """Count the numbers such as 30.123, where all others are whole; 0 where another one shows what points mean."""
    groups = 0
    for part in (cells.slice(0, _HEAD), cells):
        groups = _count(part, _POINT_GROUPS)
        if groups + _count(part, _WHOLE) < len(part) - part.null_count:
            return 0
    return groups


def _refuse_doubtful_points(grouped: Mapping[str, int]) -> None:
    """Refuse points that may separate thousands, as they do where cells are not separated by commas."""
    for name, rows in grouped.items():
        raise InputError(
            f"the points of {rows} of its numbers may be decimal points or separators of thousands",
            remedy="give decimal='.' in the option `decimal`, write thousands without separators, or declare the "
            "column in `categorical` where its values are no numbers",
            column=name,
            rows=rows,
        )


def refuse_unlike_points(grouped: Mapping[str, int], whole: Collection[str]) -> None:
    """Refuse points that may separate thousands where the other table of the pair has whole numbers only.

    Parameters
    ----------
    grouped
        As in `DecidedColumns`.
    whole
        The columns that hold whole numbers only in the other table.

    Raises
    ------
    InputError
        Where there is such a column: 30.123 beside 29871 is likelier thirty thousand than thirty.
    """
    for name, rows in grouped.items():
        if name in whole:
            raise InputError(
                f"the points of {rows} of its numbers may be decimal points or separators of thousands, since "
                "the other table has whole numbers only",
                remedy="give `decimal`, or write the numbers alike in both files",
                column=name,
                rows=rows,
            )


def _refuse_grouped_or_mixed(cells: pa.ChunkedArray, name: str) -> None:
    """Refuse a column of numbers that no one rule reads; one with other text in it is left to the roles."""
    if not _every(cells, _ANY_NUMBER):
        return
    points, commas = _count(cells, _POINT_NUMBER), _count(cells, _COMMA_NUMBER)
    plain = _count(cells, f"{_POINT_NUMBER}|{_COMMA_NUMBER}")
    present = len(cells) - cells.null_count
    declare = "declare the column in `categorical` where its values are no numbers"
    if plain < present:
        raise InputError(
            f"{present - plain} of its numbers have separators of thousands",
            remedy=f"write the numbers without them, or {declare}",
            column=name,
            rows=present - plain,
        )
    if points < present and commas < present:
        raise InputError(
            f"{present - commas} of its numbers have a decimal point and {present - points} a decimal comma",
            remedy=f"write all numbers in one way, or {declare}",
            column=name,
            rows=min(present - commas, present - points),
        )


# --- true and false, dates ---


def _flags(cells: pa.ChunkedArray) -> pa.ChunkedArray | None:
    words = pa.array(TRUE_WORDS + FALSE_WORDS)
    for part in (cells.slice(0, _HEAD), cells):
        if not pc.all(pc.is_in(part.drop_null(), words)).as_py():
            return None
    return pc.if_else(cells.is_valid(), pc.is_in(cells, pa.array(TRUE_WORDS)), pa.scalar(None, pa.bool_()))


def _iso_dates(cells: pa.ChunkedArray, name: str) -> pa.ChunkedArray | None:
    if not _every(cells, _ISO):
        return None
    present = len(cells) - cells.null_count
    with_offset = _count(cells, _OFFSET)
    if 0 < with_offset < present:
        raise InputError(
            f"{with_offset} of its times carry an offset from UTC and {present - with_offset} do not",
            remedy="write all of them with an offset or all without, or declare the column in `categorical`",
            column=name,
            rows=min(with_offset, present - with_offset),
        )
    unit = "ns" if _count(cells, _NANOSECONDS) else "us"
    return _cast(cells, pa.timestamp(unit, "UTC" if with_offset else None))


def _slashed_dates(cells: pa.ChunkedArray, name: str) -> SlashedDates | None:
    pattern = next((pattern for pattern in _SLASHED if _every(cells, pattern)), None)
    if pattern is None:
        return None
    found = pc.extract_regex(cells, pattern)
    parts = {field: pc.struct_field(found, field) for field in ("first", "second", "year", "hour", "rest")}
    day_first = _dates(parts, day="first", month="second")
    month_first = _dates(parts, day="second", month="first")
    if day_first is None and month_first is None:
        _refuse_two_orders(parts, name)
        return None
    return SlashedDates(day_first, month_first)


def _dates(parts: Mapping[str, pa.ChunkedArray], *, day: str, month: str) -> pa.ChunkedArray | None:
    days = [parts["year"], *(pc.utf8_lpad(parts[part], 2, "0") for part in (month, day))]
    hours = pc.if_else(pc.equal(parts["hour"], ""), "00", pc.utf8_lpad(parts["hour"], 2, "0"))
    minutes = pc.if_else(pc.equal(parts["rest"], ""), ":00", parts["rest"])
    date = pc.binary_join_element_wise(*days, "-")
    time = pc.binary_join_element_wise(hours, minutes, "")
    return _cast(pc.binary_join_element_wise(date, time, " "), pa.timestamp("us"))


def _refuse_two_orders(parts: Mapping[str, pa.ChunkedArray], name: str) -> None:
    first, second = (pc.greater(parts[part].cast(pa.int8()), 12) for part in ("first", "second"))
    days_first = pc.sum(pc.and_not(first, second)).as_py() or 0
    months_first = pc.sum(pc.and_not(second, first)).as_py() or 0
    if days_first and months_first:
        raise InputError(
            f"{days_first} of its dates start with the day and {months_first} with the month",
            remedy="write the dates as YYYY-MM-DD (ISO 8601), or declare the column in `categorical`",
            column=name,
            rows=min(days_first, months_first),
        )


def _orders(column: SlashedDates) -> dict[str, pa.ChunkedArray]:
    readings = {"day first": column.day_first, "month first": column.month_first}
    return {order: dates for order, dates in readings.items() if dates is not None}


def one_reading(
    name: str, column: pa.ChunkedArray | SlashedDates, partner: pa.ChunkedArray | SlashedDates | None
) -> pa.ChunkedArray:
    """Settle the order of day and month, with the help of the other file's column of that name.

    Raises
    ------
    InputError
        Where neither file shows the order, or each shows another.
    """
    if not isinstance(column, SlashedDates):
        return column
    orders = _orders(column)
    if isinstance(partner, SlashedDates):
        theirs = _orders(partner)
        orders = {order: dates for order, dates in orders.items() if order in theirs}
    possible = list(orders.values())
    if len(possible) == 1 or (possible and possible[0].equals(possible[1])):
        return possible[0]
    present = next(iter(_orders(column).values()))
    problem = (
        "its dates may start with the day or with the month"
        if possible
        else "its dates start with the day in one table and with the month in the other"
    )
    raise InputError(
        problem,
        remedy="write the dates as YYYY-MM-DD (ISO 8601), or declare the column in `categorical`",
        column=name,
        rows=len(present) - present.null_count,
    )


# --- Arrow ---


def as_series(column: pa.ChunkedArray) -> pd.Series:
    """Return a column as pandas holds it: truth values with gaps as the nullable ``boolean``."""
    nullable = {pa.bool_(): pd.BooleanDtype()} if column.null_count else {}
    series: pd.Series = column.to_pandas(types_mapper=nullable.get)
    return series


def _cast(cells: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    try:
        return cells.cast(kind)
    except pa.ArrowInvalid:
        # Its message shows the cell.
        return None


def _beyond_exact(numbers: pa.ChunkedArray) -> bool:
    ends = pc.min_max(numbers)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    return bool(low <= -LARGEST_EXACT_FLOAT or high >= LARGEST_EXACT_FLOAT)


def _count(cells: pa.ChunkedArray, pattern: str) -> int:
    return int(pc.sum(pc.match_substring_regex(cells, pattern)).as_py() or 0)


def _holds(cells: pa.ChunkedArray, character: str) -> bool:
    parts = (cells.slice(0, _HEAD), cells)
    return any(pc.any(pc.match_substring(part, character)).as_py() for part in parts)


def _head_has_every(cells: pa.ChunkedArray, pattern: str) -> bool:
    head = cells.slice(0, _HEAD)
    return _count(head, pattern) == int(len(head) - head.null_count)


def _every(cells: pa.ChunkedArray, pattern: str) -> bool:
    # Most columns show in their first rows that they do not fit: the rest of a long one is spared.
    return _head_has_every(cells, pattern) and _count(cells, pattern) == int(len(cells) - cells.null_count)
