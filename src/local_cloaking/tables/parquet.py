"""Parquet bytes in, a DataFrame of ordinary columns out.

The pandas metadata of the file is read for one purpose: to see whether it stores an index. Its types are not
trusted; they follow from the Arrow types, so that files of other writers come out the same.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from local_cloaking.errors import InputError
from local_cloaking.tables.arrow import plain_type, refuse_index, refuse_shape, to_frame
from local_cloaking.tables.packing import LARGEST_RATIO, largest_plausible

MAGIC = b"PAR1"
#: The type of a column without a value in a file.
_NO_TYPE = "null"


def read_parquet(
    data: bytes,
    *,
    text_columns: Collection[str] | None = (),
    leave_out: Collection[str] = (),
    gaps: Collection[str] | None = None,
) -> pd.DataFrame:
    """Read the bytes of a Parquet file; the types are those of `local_cloaking.tables.arrow.to_frame`.

    Parameters
    ----------
    data
        The whole file.
    text_columns
        The key. Its type stays that of the file; a stored pandas index that bears its name becomes that
        column. Any other stored index is refused, since it would either get lost or be measured as a column
        that nobody asked for (a plain row number is no stored index).
    leave_out
        Columns of which nothing is read but the names.
    gaps
        For one of the files of a table: the columns in which a cell is missing in any of them, so that all of
        them come out in the same types.

    Raises
    ------
    InputError
        Where the file is damaged, has no rows, claims more cells than
        `local_cloaking.tables.arrow.LARGEST_CELLS`, names a column twice, stores a pandas index, or has a column
        that is no flat number, truth value, date or text.

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
    table, names = read_arrow(data, text_columns=text_columns, leave_out=leave_out, of_many=gaps is not None)
    return to_frame(table, gaps=gaps or (), names=names)


def read_arrow(
    data: bytes,
    *,
    text_columns: Collection[str] | None = (),
    leave_out: Collection[str] = (),
    of_many: bool = False,
) -> tuple[pa.Table, list[str]]:
    """Read the columns that are needed as they are stored; return the names of all, too.

    Parameters and errors are those of `read_parquet`, but that one file of many may be without rows.
    """
    read = _checked(data, frozenset(leave_out), of_many=of_many)
    if read is None:
        raise InputError(
            "the Parquet file is damaged or incomplete",
            remedy="write it again, or hand over the table as CSV",
        )
    refuse_index(read[0], frozenset(text_columns or ()))
    return read


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
    return footprint_of(read_arrow(data, text_columns=text_columns, of_many=True)[0])


def footprint_of(table: pa.Table) -> Footprint:
    """Look at what was read of one file."""
    return Footprint(
        rows=table.num_rows,
        types={field.name: plain_type(field.type) for field in table.schema},
        gaps=frozenset(name for name in table.column_names if table[name].null_count),
    )


def refuse_other_schemas(files: Sequence[str], prints: Sequence[Footprint]) -> None:
    """Refuse files, given by their names, that are not parts of one table.

    Raises
    ------
    InputError
        If a column stands in some of them only, or in two types.
    """
    first = prints[0].types
    kinds = dict(first)
    for file, seen in zip(files, prints, strict=True):
        lacking = sorted(set(first) ^ set(seen.types))
        if lacking:
            raise InputError(
                f"it stands in some partitions only, and {len(lacking) - 1} other columns too",
                column=lacking[0],
                remedy="write all partitions with the same columns",
                file=file,
            )
        for name, kind in seen.types.items():
            if _NO_TYPE in (kind, kinds[name]):
                kinds[name] = kind if kinds[name] == _NO_TYPE else kinds[name]
            elif kind != kinds[name]:
                raise InputError(
                    f"it is {kind} here, and {kinds[name]} in another partition",
                    column=name,
                    remedy="write all partitions with the same types",
                    file=file,
                )


def _checked(data: bytes, leave_out: frozenset[str], *, of_many: bool) -> tuple[pa.Table, list[str]] | None:
    """Read what the footer describes, once it is plausible; None where the file is damaged."""
    try:
        file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
        schema = file.schema_arrow
        refuse_shape(schema, file.metadata.num_rows, fewest=0 if of_many else 1, leave_out=leave_out)
        _refuse_packed(file.metadata, len(data))
        wanted = [name for name in schema.names if name not in leave_out]
        table = file.read(columns=wanted, use_pandas_metadata=False)
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError):
        # The bytes are in memory: an OSError of Arrow speaks of their content. Its message may show cells.
        return None
    # A wanted name brings what looks like a part of it: "a" also "a.b".
    return table.select(wanted), schema.names


def _refuse_packed(metadata: pq.FileMetaData, size: int) -> None:
    """Refuse a file that says that it unpacks to more than a table could hold."""
    unpacked = sum(metadata.row_group(place).total_byte_size for place in range(metadata.num_row_groups))
    # No bound but by its size: what is large on disk may be as large in memory.
    largest = largest_plausible(size)
    if unpacked > largest:
        raise InputError(
            f"the Parquet file unpacks to more than {largest >> 20} MB, {LARGEST_RATIO} times its size or more",
            remedy="write it again without compression if it is a table",
        )
