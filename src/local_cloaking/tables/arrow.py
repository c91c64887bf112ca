"""Arrow tables in, DataFrames of ordinary columns out: the same types, whoever wrote the table, and where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from local_cloaking.errors import InputError
from local_cloaking.tables.values import LARGEST_EXACT_FLOAT

LARGEST_CELLS = 1_000_000_000
#: The work of the projection grows with the cube of the columns: of more than this, it would not end.
MOST_COLUMNS = 10_000
_DECLARE = "write it as a number, a date or text, or leave it out"


def to_frame(table: pa.Table, *, gaps: Collection[str] = (), names: Collection[str] | None = None) -> pd.DataFrame:
    """Turn an Arrow table into a DataFrame of ordinary columns.

    Integers come out as int64, or float64 with NaN where cells are missing; decimals as float64; dates as
    datetime64, in UTC where the column has a time zone; dictionaries as categories.

    Parameters
    ----------
    table
        The columns that are needed.
    gaps
        Columns that come out as if a cell of theirs were missing.
    names
        All columns that the frame shall have, in order; by default the table's. Those that the table lacks have no
        cells: they are known, but nothing of them was read.

    Raises
    ------
    InputError
        If a column does not fit such a type.

    Examples
    --------
    >>> to_frame(pa.table({"age": [41, None], "arm": ["a", "b"]}))
        age arm
    0  41.0   a
    1   NaN   b
    """
    read = set(table.column_names)
    return pd.DataFrame(
        {
            name: _series(table[name], name, gap=name in gaps) if name in read else unread(table.num_rows)
            for name in (table.column_names if names is None else names)
        }
    )


def unread(rows: int) -> pd.Series:
    """Return the column of a table of which nothing was read. It takes no memory, however many rows.

    Examples
    --------
    >>> unread(3).isna().tolist()
    [True, True, True]
    """
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.nulls(rows)))


def plain_type(kind: pa.DataType) -> str:
    """Name a type; widths of integers and ways to store text are left out where they come out as one type."""
    if pa.types.is_dictionary(kind):
        return f"categories of {plain_type(kind.value_type)}"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "text"
    return "integer" if pa.types.is_integer(kind) else str(kind)


def refuse_shape(schema: pa.Schema, rows: int, *, fewest: int = 1, leave_out: Collection[str] = ()) -> None:
    """Refuse a table that cannot be measured, by what it says of itself, before its cells are read.

    Parameters
    ----------
    schema
        Names and types of its columns.
    rows
        How many rows it says that it has.
    fewest
        How many it must have.
    leave_out
        Columns whose cells are not needed: they may be of any type.

    Raises
    ------
    InputError
        If it has too few rows or too many cells, or a column twice, or one that is no flat number, truth value,
        date or text.
    """
    refuse_width(len(schema.names))
    repeated = [name for name, count in Counter(schema.names).items() if count > 1]
    if repeated:
        raise InputError(
            f"{len(repeated)} column names stand more than once",
            remedy="give each column a name of its own",
            column=repeated[0],
            rows=rows,
        )
    if rows < fewest or not schema.names:
        raise InputError("the file has no rows", remedy="hand over a table with at least one row", rows=0)
    if rows * len(schema.names) > LARGEST_CELLS:
        raise InputError(
            f"the file claims {rows} rows of {len(schema.names)} columns, more than {LARGEST_CELLS} cells",
            remedy="measure it in parts, or leave out columns",
            rows=rows,
        )
    for field in schema:
        # Before reading: a nested column may hold far more values than rows.
        if field.name not in leave_out:
            _refuse_type(field, rows)


def refuse_width(columns: int) -> None:
    """Refuse a table of more columns than `MOST_COLUMNS`."""
    if columns > MOST_COLUMNS:
        raise InputError(
            f"the file has {columns} columns, more than {MOST_COLUMNS}",
            remedy="hand over a table of the columns that are to be measured",
        )


def _refuse_type(field: pa.Field, rows: int) -> None:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return  # Looked at, as one that is no text raises a ValueError.
    if _is_flat(kind):
        return
    what = "lists or structures" if pa.types.is_nested(kind) else f"values of type {_name(kind)}"
    raise InputError(f"it holds {what}, which cannot be measured", remedy=_DECLARE, column=field.name, rows=rows)


def _name(kind: pa.DataType) -> str:
    return "extension" if isinstance(kind, pa.BaseExtensionType) else str(kind)


def _is_flat(kind: pa.DataType) -> bool:
    flat = (
        pa.types.is_boolean,
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_decimal,
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_string_view,
        pa.types.is_date,
        pa.types.is_timestamp,
        pa.types.is_null,
    )
    return any(check(kind) for check in flat)


def refuse_index(table: pa.Table, text_columns: Collection[str]) -> None:
    """Refuse a table of pandas that holds an index, unless it is one of these columns."""
    try:
        stored = list((table.schema.pandas_metadata or {}).get("index_columns", []))
    except (ValueError, AttributeError, TypeError, RecursionError):
        # Metadata that pandas could not have written says nothing of an index.
        stored = []
    # A plain row number is stored as a description, not as a column.
    names = [name for name in stored if isinstance(name, str) and name in table.column_names]
    for name in names:
        if name not in text_columns:
            raise InputError(
                "it is the index of a pandas table, which is no column to measure",
                remedy="write the table with index=False, or with reset_index() and name the column as key",
                column=name,
                rows=table.num_rows,
            )


def _series(column: pa.ChunkedArray, name: str, *, gap: bool) -> pd.Series:
    kind, gap = column.type, gap or bool(column.null_count)
    if pa.types.is_integer(kind):
        column = _whole_numbers(column, name, gap=gap)
    elif pa.types.is_decimal(kind):
        column = _decimals(column, name)
    elif pa.types.is_floating(kind) or pa.types.is_null(kind):
        column = column.cast(pa.float64())
    elif pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        column = _dates(column, name)
    elif pa.types.is_string_view(kind):
        column = column.cast(pa.string())
    nullable = {pa.bool_(): pd.BooleanDtype()} if gap else {}
    try:
        series: pd.Series | None = column.to_pandas(types_mapper=nullable.get)
    except (pa.ArrowException, ValueError, TypeError):
        series = None
    if series is None:
        raise _no_column("its values are not those of an ordinary column", name, len(column))
    return series


def _whole_numbers(column: pa.ChunkedArray, name: str, *, gap: bool) -> pa.ChunkedArray:
    exact = _cast(column, pa.float64() if gap else pa.int64())
    if exact is None:
        limit = LARGEST_EXACT_FLOAT if gap else 2**63 - 1
        raise _too_large(column, name, limit)
    return exact


def _decimals(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    numbers = column.cast(pa.float64())
    if column.type.scale <= 0 and pc.any(pc.greater(pc.abs(numbers), LARGEST_EXACT_FLOAT)).as_py():
        raise _too_large(numbers, name, LARGEST_EXACT_FLOAT)
    return numbers


def _too_large(column: pa.ChunkedArray, name: str, limit: int) -> InputError:
    numbers = pc.abs(column.cast(pa.float64(), safe=False))
    return InputError(
        f"it holds whole numbers beyond {limit}, which would be rounded",
        remedy="write the column as text where it is an identifier or a category, or in a larger unit",
        column=name,
        rows=int(pc.sum(pc.greater_equal(numbers, float(limit))).as_py() or 0),
    )


def _dates(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    kind = column.type
    zone = "UTC" if pa.types.is_timestamp(kind) and kind.tz is not None else None
    # Nanoseconds stay: the cast to microseconds would refuse or cut them.
    unit = "ns" if pa.types.is_timestamp(kind) and kind.unit == "ns" else "us"
    dates = _cast(column, pa.timestamp(unit, zone))
    if dates is None:
        raise _no_column("it holds dates beyond the range of dates", name, len(column))
    return dates


def _no_column(problem: str, name: str, rows: int) -> InputError:
    return InputError(problem, remedy=_DECLARE, column=name, rows=rows)


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        # Its message shows the cell.
        return None
