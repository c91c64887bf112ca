"""Parquet bytes in, a DataFrame of ordinary columns out.

The pandas metadata of the file is read for one purpose: to see whether it stores an index. Its types are not
trusted; they follow from the Arrow types, so that files of other writers come out the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from local_cloaking.errors import InputError
from local_cloaking.tables.values import LARGEST_EXACT_FLOAT

MAGIC = b"PAR1"
LARGEST_CELLS = 1_000_000_000
_DECLARE = "write it as a number, a date or text, or leave it out"


def read_parquet(
    data: bytes, *, text_columns: Collection[str] | None = (), gaps: Collection[str] | None = None
) -> pd.DataFrame:
    """Read the bytes of a Parquet file.

    Integers come out as int64, or float64 with NaN where cells are missing; decimals as float64; dates as
    datetime64, in UTC where the column has a time zone; dictionaries as categories.

    Parameters
    ----------
    data
        The whole file.
    text_columns
        The key. Its type stays that of the file; a stored pandas index that bears its name becomes that
        column. Any other stored index is refused, since it would either get lost or be measured as a column
        that nobody asked for (a plain row number is no stored index).
    gaps
        For one of the files of a table: the columns in which a cell is missing in any of them, so that all of
        them come out in the same types.

    Raises
    ------
    InputError
        Where the file is damaged, has no rows, claims more cells than `LARGEST_CELLS`, names a column twice,
        stores a pandas index, or has a column that is no flat number, truth value, date or text.

    Examples
    --------
    >>> import io
    >>> buffer = io.BytesIO()
    >>> pd.DataFrame({"age": [41, None], "arm": ["a", "b"]}).to_parquet(buffer)
    >>> read_parquet(buffer.getvalue())
        age arm
    0  41.0   a
    1   NaN   b
    """
    table = _read(data, of_many=gaps is not None)
    _refuse_index(table, frozenset(text_columns or ()))
    return pd.DataFrame(
        {name: _series(table[name], name, gap=name in (gaps or ())) for name in table.column_names}
    )


@dataclass(frozen=True)
class Footprint:
    """What one file of a table holds, but for its cells.

    Attributes
    ----------
    rows
        Rows of the file; may be 0.
    types
        For each column, its type; widths of integers and ways to store text are left out where they come out
        as one type.
    gaps
        Columns in which a cell is missing.
    """

    rows: int
    types: dict[str, str]
    gaps: frozenset[str]


def footprint(data: bytes, *, text_columns: Collection[str] | None = ()) -> Footprint:
    """Look at one file of a table that is written in many.

    Parameters and errors are those of `read_parquet`, but that a file may be without rows.

    Examples
    --------
    >>> import io
    >>> buffer = io.BytesIO()
    >>> pd.DataFrame({"age": [41, None], "arm": ["a", "b"]}).to_parquet(buffer)
    >>> footprint(buffer.getvalue()).types
    {'age': 'double', 'arm': 'text'}
    """
    table = _read(data, of_many=True)
    _refuse_index(table, frozenset(text_columns or ()))
    return Footprint(
        rows=table.num_rows,
        types={field.name: _plain_type(field.type) for field in table.schema},
        gaps=frozenset(name for name in table.column_names if table[name].null_count),
    )


def _plain_type(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        return f"categories of {_plain_type(kind.value_type)}"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "text"
    return "integer" if pa.types.is_integer(kind) else str(kind)


def _read(data: bytes, *, of_many: bool) -> pa.Table:
    table = _checked(data, of_many=of_many)
    if table is None:
        raise InputError(
            "the Parquet file is damaged or incomplete",
            remedy="write it again, or hand over the table as CSV",
        )
    return table


def _checked(data: bytes, *, of_many: bool) -> pa.Table | None:
    """Read what the footer describes, once it is plausible; None where the file is damaged."""
    try:
        file = pq.ParquetFile(
            pa.BufferReader(data),
            page_checksum_verification=True,
        )
        _refuse_shape(file, fewest=0 if of_many else 1)
        table = file.read(use_pandas_metadata=False)
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError):
        # The bytes are in memory: an OSError of Arrow speaks of their content. Its message may show cells.
        return None
    return table


def _refuse_shape(file: pq.ParquetFile, *, fewest: int) -> None:
    rows, schema = file.metadata.num_rows, file.schema_arrow
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
        _refuse_type(field, rows)


def _refuse_type(field: pa.Field, rows: int) -> None:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
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


def _refuse_index(table: pa.Table, text_columns: frozenset[str]) -> None:
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
