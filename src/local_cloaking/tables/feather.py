"""Feather files, which are Arrow's own format: bytes in, a DataFrame of ordinary columns out."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pandas as pd
import pyarrow as pa

from local_cloaking.errors import InputError
from local_cloaking.tables.arrow import refuse_index, refuse_shape, to_frame

_FILE = b"ARROW1\0\0"
_STREAM = b"\xff\xff\xff\xff"
#: A format of before Arrow's 1.0, which Arrow is about to forget.
_OLD = b"FEA1"
MAGICS = (_FILE, _STREAM, _OLD)


def read_feather(
    data: bytes, *, text_columns: Collection[str] | None = (), leave_out: Collection[str] = ()
) -> pd.DataFrame:
    """Read the bytes of a Feather file, or of an Arrow stream, packed or not.

    Parameters and errors are those of `local_cloaking.tables.parquet.read_parquet`.

    Examples
    --------
    >>> import io
    >>> buffer = io.BytesIO()
    >>> pd.DataFrame({"age": [41, None], "arm": ["a", "b"]}).to_feather(buffer)
    >>> read_feather(buffer.getvalue())
        age arm
    0  41.0   a
    1   NaN   b
    """
    if data.startswith(_OLD):
        raise InputError(
            "it is a Feather file of version 1, which is no longer read", remedy="write it as version 2"
        )
    read = _checked(data, frozenset(leave_out))
    if read is None:
        raise InputError(
            "the Feather file is damaged or incomplete", remedy="write it again, or hand over the table as CSV"
        )
    table, names = read
    refuse_index(table, frozenset(text_columns or ()))
    return to_frame(table, names=names)


def _checked(data: bytes, leave_out: frozenset[str]) -> tuple[pa.Table, list[str]] | None:
    try:
        with _opened(data) as reader:
            names = reader.schema.names
            # Types first: a nested column may hold far more values than rows.
            refuse_shape(reader.schema, 0, fewest=0, leave_out=leave_out)
            wanted = [place for place, name in enumerate(names) if name not in leave_out]
        options = pa.ipc.IpcReadOptions(included_fields=wanted)
        with _opened(data, options) as reader:
            table = reader.read_all()
        refuse_shape(table.schema, table.num_rows)
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, KeyError, EOFError):
        # The bytes are in memory: an OSError of Arrow speaks of their content. Its message may show cells.
        return None
    return table, names


def _opened(data: bytes, options: Any = None) -> Any:
    open_it = pa.ipc.open_file if data.startswith(_FILE) else pa.ipc.open_stream
    return open_it(pa.BufferReader(data), options=options)
