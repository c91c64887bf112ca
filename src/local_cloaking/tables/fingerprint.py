"""The hash of a table that is no file: of its rows, in whatever order they come.

A database hands over the rows of a table in any order, and a DataFrame has no bytes of its own. So each row is
hashed by itself, and the hash of the table is the SHA-256 of its columns' names and of the rows' hashes, sorted.
Nothing is rounded: two tables have the same hash when they have the same rows, equally often.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

ROWS_AT_ONCE = 20_000
_MISSING = "-"


class TableHash:
    """Takes the rows of a table, some at a time.

    Parameters
    ----------
    names
        Its columns, in order.

    Examples
    --------
    >>> one, other = TableHash(["age"]), TableHash(["age"])
    >>> one.add([pa.array([41, 39])])
    >>> other.add([pa.array([39])])
    >>> other.add([pa.array([41])])
    >>> one.hexdigest() == other.hexdigest(), one.size
    (True, 10)
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = [str(name) for name in names]
        self._rows = bytearray()
        #: Bytes that were hashed.
        self.size = 0

    def add(self, columns: Sequence[pa.Array | Sequence[Any]]) -> None:
        """Take rows, given by their columns: Arrow arrays, or lists of Python's own values."""
        cells = [cell for column in columns for cell in _with_length(_words(column))]
        for row in pc.binary_join_element_wise(*cells, "") if cells else ():
            data = row.as_buffer()
            self.size += len(data)
            self._rows += hashlib.sha256(data).digest()

    def hexdigest(self) -> str:
        """Return the hash of all rows so far."""
        rows = np.frombuffer(bytes(self._rows), dtype=">u8").reshape(-1, 4)
        ordered = rows[np.lexsort(rows.T[::-1])]
        digest = hashlib.sha256(json.dumps(self._names, ensure_ascii=False).encode("utf-8", "surrogatepass"))
        digest.update(ordered.tobytes())
        return digest.hexdigest()


def hash_of(table: pa.Table) -> tuple[int, str]:
    """Return how many bytes of an Arrow table were hashed, and their hash.

    Examples
    --------
    >>> hash_of(pa.table({"age": [41]}))[1] == hash_of(pa.table({"age": [41.0]}))[1]
    False
    """
    found = TableHash(table.column_names)
    for batch in table.to_batches(max_chunksize=ROWS_AT_ONCE):
        found.add(batch.columns)
    return found.size, found.hexdigest()


def _with_length(words: pa.Array) -> Iterator[Any]:
    # The length in front tells where a cell ends, whatever stands in it.
    yield pc.cast(pc.binary_length(words), pa.string())
    yield ":"
    yield words


def _words(column: pa.Array | Sequence[Any]) -> pa.Array:
    """Write each cell as text that begins with the kind of the cell."""
    if not isinstance(column, pa.Array):
        return pa.array(_each(column), pa.string())
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _words(column.dictionary_decode())
    if pa.types.is_integer(kind):
        return _marked("i", column.cast(pa.string()))
    if pa.types.is_float64(kind):
        # By their bits: how a number is written may differ from version to version.
        return _marked("f", column.view(pa.int64()).cast(pa.string()))
    if pa.types.is_boolean(kind):
        return _marked("b", column.cast(pa.string()))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _marked("s", column.cast(pa.string()))
    if pa.types.is_timestamp(kind):
        mark = "t" if kind.tz is None else "z"
        return _marked(mark + kind.unit, column.cast(pa.int64()).cast(pa.string()))
    return pa.array(_each(column.to_pylist()), pa.string())


def _marked(mark: str, words: pa.Array) -> pa.Array:
    marked = pc.binary_join_element_wise(mark, words, "")
    return pc.fill_null(marked, _MISSING)


def _each(values: Iterable[Any]) -> list[str]:
    return [_word(value) for value in values]


def _word(value: Any) -> str:
    if value is None:
        return _MISSING
    if isinstance(value, bool):
        return f"b{str(value).lower()}"
    if isinstance(value, int):
        return f"i{value}"
    if isinstance(value, float):
        return f"f{np.float64(value).view(np.int64)}"
    if isinstance(value, str):
        return f"s{value}"
    return f"d{value}" if isinstance(value, Decimal) else f"{type(value).__name__} {value!r}"
