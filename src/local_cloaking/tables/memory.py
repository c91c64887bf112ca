"""A table in memory: a DataFrame or an Arrow table, and the hash of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa

from local_cloaking.errors import InputError
from local_cloaking.sources import HeldTable
from local_cloaking.tables.arrow import refuse_index, refuse_shape, to_frame
from local_cloaking.tables.columns import names_of
from local_cloaking.tables.fingerprint import hash_of
from local_cloaking.tables.values import kind_of


@dataclass(frozen=True)
class Held:
    """What is measured, and size and hash of its rows."""

    frame: pd.DataFrame
    size: int
    sha256: str


def read_held(source: HeldTable) -> Held:
    """Look at a table in memory, and hash its rows. A DataFrame is measured as it is; its index is no column.

    Raises
    ------
    InputError
        If it cannot be measured; see `local_cloaking.tables.arrow.refuse_shape`.

    Examples
    --------
    >>> one = pd.DataFrame({"age": [41, 39]})
    >>> read_held(HeldTable(one)).sha256 == read_held(HeldTable(one[::-1])).sha256
    True
    """
    table = source.table
    if isinstance(table, pd.DataFrame):
        return Held(table, *hash_of(_as_arrow(table)))
    refuse_shape(table.schema, table.num_rows)
    refuse_index(table, ())
    return Held(to_frame(table), *hash_of(table))


def _as_arrow(frame: pd.DataFrame) -> pa.Table:
    names = names_of(frame, "table")
    if not len(frame):
        raise InputError("the table has no rows", remedy="hand over a table with at least one row", rows=0)
    return pa.Table.from_arrays(
        [_array(frame.iloc[:, place], name) for place, name in enumerate(names)], names=names
    )


def _array(series: pd.Series[Any], name: str) -> pa.Array:
    kind_of(series, name)
    try:
        array = pa.array(series, from_pandas=True)
    except (pa.ArrowException, ValueError, TypeError):
        # Its message may show cells.
        array = None
    if array is None:
        raise InputError(
            "its values are not those of an ordinary column",
            column=name,
            rows=len(series),
            remedy="write it as a number, a date or text, or leave it out",
        )
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
