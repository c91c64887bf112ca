"""A folder of Parquet files in, one DataFrame out."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pandas as pd
import pyarrow as pa

from local_cloaking.errors import InputError
from local_cloaking.tables.arrow import to_frame
from local_cloaking.tables.parquet import footprint_of, read_arrow, refuse_other_schemas
from local_cloaking.tables.partitions import DataSet, Partition, find_partitions, read_partition


def read_folder(
    place: Any, *, text_columns: Collection[str] | None = (), leave_out: Collection[str] = ()
) -> tuple[pd.DataFrame, list[Partition], DataSet]:
    """Read a data set of many Parquet files, also one that is partitioned by the values of columns.

    The rows come in the order of the files' names, numbers in names as numbers. A folder named ``year=2026`` gives
    its rows a column ``year``: of whole numbers where all its folders are such, else of text, as ``01`` is no
    number.

    Parameters
    ----------
    place
        As in `local_cloaking.tables.partitions.find_partitions`.
    text_columns, leave_out
        As in `local_cloaking.tables.parquet.read_parquet`.

    Returns
    -------
    The table, its partitions, each hashed as it was read, and where they lie.

    Raises
    ------
    InputError
        If a file is damaged, if they are no parts of one table, or if there is no row.
    OSError
        If they cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> for year, age in (("2025", 41), ("2026", 39)):
    ...     (folder / f"year={year}").mkdir()
    ...     pd.DataFrame({"age": [age]}).to_parquet(folder / f"year={year}" / "part-0.parquet")
    >>> read_folder(folder)[0]
       age  year
    0   41  2025
    1   39  2026
    """
    found = find_partitions(place, by_value=True)
    parts, tables = [], []
    for path in found.paths:
        data, part = read_partition(found.filesystem, path)
        part = Partition(found.label(path), part.size, part.sha256)
        try:
            table, names = read_arrow(data, text_columns=text_columns, leave_out=leave_out, of_many=True)
        except InputError as error:
            raise error.in_file(part.name) from error
        parts.append(part)
        tables.append(table)
    prints = [footprint_of(table) for table in tables]
    refuse_other_schemas([part.name for part in parts], prints)
    values = _columns_of_folders(found, [table.num_rows for table in tables], names)
    if not sum(table.num_rows for table in tables):
        raise InputError("the folder has no rows", remedy="hand over a table with at least one row", rows=0)
    whole = _joined(tables)
    for name, column in values.items():
        whole = whole.append_column(name, column)
    wanted = [*names, *values]
    kept = [name for name in whole.column_names if name not in set(leave_out)]
    return to_frame(whole.select(kept), names=wanted), parts, found


def _joined(tables: list[pa.Table]) -> pa.Table:
    """Put the files together, in the widest of the types that each column has."""
    columns = {}
    for name in tables[0].column_names:
        kinds = {table[name].type for table in tables if not pa.types.is_null(table[name].type)}
        kind = _widest(kinds)
        chunks = [chunk for table in tables for chunk in table[name].chunks]
        columns[name] = pa.chunked_array([chunk.cast(kind) for chunk in chunks], kind)
    return pa.table(columns)


def _widest(kinds: set[pa.DataType]) -> pa.DataType:
    """Return the one type, or one that holds the values of all: they are integers, texts or categories alike."""
    if len(kinds) < 2:
        return kinds.pop() if kinds else pa.null()
    kind = next(iter(kinds))
    if pa.types.is_integer(kind):
        return pa.uint64() if pa.uint64() in kinds else pa.int64()
    if pa.types.is_dictionary(kind):
        return pa.dictionary(pa.int32(), _widest({kind.value_type for kind in kinds}))
    return pa.large_string()


def _columns_of_folders(found: DataSet, rows: list[int], names: list[str]) -> dict[str, pa.Array]:
    told = [found.values(path) for path in found.paths]
    if any(list(values) != list(told[0]) for values in told):
        raise InputError(
            "its folders are not named alike",
            remedy="name them by the same columns, as year=2026",
            file=found.name,
        )
    twice = sorted(set(told[0]) & set(names))
    if twice:
        raise InputError(
            "it stands both in the files and in the names of their folders",
            column=twice[0],
            remedy="leave it out of one of the two",
            file=found.name,
        )
    return {name: _column([values[name] for values in told], rows) for name in told[0]}


def _column(values: list[str | None], rows: list[int]) -> pa.Array:
    """Repeat the value of each folder for its rows."""
    array = pa.array(values, pa.string())
    if all(value is None or _is_whole(value) for value in values) and array.null_count < len(array):
        array = array.cast(pa.int64())
    return array.take(pa.array([number for number, count in enumerate(rows) for _ in range(count)], pa.int64()))


def _is_whole(value: str) -> bool:
    return value.isascii() and value.removeprefix("-").isdigit() and str(int(value)) == value and len(value) < 19
