"""Files in, tables out, each with the hash of the very bytes that it was read from."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import IO, Protocol, TypeAlias

import pandas as pd
import pyarrow as pa

from local_cloaking.errors import InputError
from local_cloaking.sources import HeldTable, SqlTable, source_of
from local_cloaking.storage import read_whole
from local_cloaking.tables import csv, parquet, partitions
from local_cloaking.tables.packing import unpacked


class Readable(Protocol):
    """A path-like object of object storage: it has a name and can be opened."""

    @property
    def name(self) -> str:
        """Last part of the path."""

    def open(self, mode: str) -> IO[bytes]:
        """Open the file for reading bytes."""


#: What names a table; see `local_cloaking.sources`.
Source: TypeAlias = str | os.PathLike[str] | Readable | SqlTable | HeldTable | pd.DataFrame | pa.Table


@dataclass(frozen=True)
class CsvOptions:
    """How CSV files are written; what is None is found out."""

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None


#: Find out how a CSV file is written.
AS_FOUND = CsvOptions()


@dataclass(frozen=True)
class SourceFile:
    """The file that a table was read from, or what else held it.

    Parameters
    ----------
    name
        Name of the file without its folder, which may tell more than a report should; of a table in a
        database, its name with its schema.
    size, sha256
        Of the bytes as they are stored, packed or not; of a table that is no file, of its rows, see
        `local_cloaking.tables.fingerprint`.
    rows
        Rows of the table, without the header.
    format
        "csv", "parquet", "feather", "sas7bdat", "xport" (SAS transport), "stata", "sql", or "table" for one in
        memory.
    separator, decimal, encoding
        How a CSV file is written; None for others, and no separator for a CSV file of one column.
    rows_sha256
        Of the rows in whatever order, where a file with the same rows in another order is to be known by them.
    """

    name: str
    size: int
    sha256: str
    rows: int
    format: str
    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    rows_sha256: str | None = None


@dataclass(frozen=True)
class Table:
    """A table, and the file that it was read from; None where it came from elsewhere."""

    frame: pd.DataFrame
    source: SourceFile | None = None


def read_table(
    source: Source,
    *,
    text_columns: Collection[str] | None = (),
    categorical: Collection[str] = (),
    leave_out: Collection[str] = (),
    hash_all: bool = True,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> Table:
    r"""Read one table; of a file, the content tells the format, not the name.

    Parameters
    ----------
    source
        What names it, see `local_cloaking.sources`, or an object with ``name`` and ``open("rb")``.
    text_columns
        The key, or None for all columns: kept as the text of a CSV file, without looking for numbers, dates
        or truth values in them. Names that the table does not have are passed over.
    categorical
        The declared categories: kept as the text of a CSV file where their type cannot be told, instead of
        refused. Without meaning for other formats.
    leave_out
        Columns that are not needed: they stand in the table without cells.
    hash_all
        Whether their cells are hashed all the same where the table is no file; of files, all bytes are.
    separator, decimal, encoding
        How a CSV file is written; what is None is found out. The encoding holds for SAS and Stata, too.

    Returns
    -------
    Table
        The table, its rows and columns in the order of the file.

    Raises
    ------
    InputError
        Where the content is no table, or can be read in two ways.
    OSError
        Where the file cannot be reached: the same call may succeed later.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "originals.csv")
    ...     _ = path.write_bytes(b"age,arm\n41,a\n39,b\n")
    ...     table = read_table(path)
    >>> table.frame
       age arm
    0   41   a
    1   39   b
    >>> table.source.name, table.source.rows, table.source.separator
    ('originals.csv', 2, ',')
    """
    options = _Options(text_columns, categorical, leave_out, separator, decimal, encoding)
    return _table(_load(source, options, hash_all=hash_all), None)


def read_pair(
    originals: Source,
    avatars: Source,
    *,
    text_columns: Collection[str] | None = (),
    categorical: Collection[str] = (),
    leave_out: Collection[str] = (),
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> tuple[Table, Table]:
    r"""Read the originals and their avatars.

    The order of day and month in dates such as 03/04/2021 is decided from both files together: a column that
    shows it in one of them is read the same way in the other. Points such as that of 30.123, which may separate
    thousands, are refused where the column holds whole numbers only in the other file. Everything else is
    decided file by file.

    Parameters
    ----------
    originals, avatars
        The two tables, each as in `read_table`.
    text_columns, categorical, leave_out, separator, decimal, encoding
        As in `read_table`, for both tables; of the avatars, all cells are hashed.

    Returns
    -------
    tuple of Table
        The originals, then the avatars.

    Raises
    ------
    InputError
        As in `read_table`, and where the two files write dates in different orders, or one of them numbers
        with points and the other whole ones.
    OSError
        Where a file cannot be reached.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first, second = Path(folder, "originals.csv"), Path(folder, "avatars.csv")
    ...     _ = first.write_bytes(b"birth,age\n25/12/1980,41\n")
    ...     _ = second.write_bytes(b"birth,age\n03/04/1980,42\n")
    ...     originals, avatars = read_pair(first, second)
    >>> avatars.frame["birth"][0].month
    4
    """
    options = _Options(text_columns, categorical, leave_out, separator, decimal, encoding)
    first, second = _load(originals, options, hash_all=False), _load(avatars, options, hash_all=True)
    return _table(first, second), _table(second, first)


def sha256_of(source: Source) -> str:
    r"""Hash a file piece by piece, as it is stored; of a folder of Parquet files, all of them together.

    Of a table that is no file, its rows are hashed; see `local_cloaking.tables.fingerprint`.

    Parameters
    ----------
    source
        As in `read_table`.

    Raises
    ------
    InputError
        Where a folder holds something else than partitions.
    OSError
        Where the file cannot be reached.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "avatars.csv")
    ...     _ = path.write_bytes(b"a\n1\n")
    ...     sha256_of(path)[:8]
    '309b0e45'
    """
    place = source_of(source)
    if isinstance(place, SqlTable):
        from local_cloaking.tables.sql import sha256_of_sql

        return sha256_of_sql(place)
    if isinstance(place, HeldTable):
        from local_cloaking.tables.memory import read_held

        return read_held(place).sha256
    if partitions.is_folder(place):
        return partitions.sha256_of_folder(place)
    with place.open("rb") as file:
        return partitions.hashed(file)[1]


def rows_sha256_of(frame: pd.DataFrame) -> str:
    """Hash the rows of a table, in whatever order they come; see `local_cloaking.tables.fingerprint`.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [41, 39]})
    >>> rows_sha256_of(frame) == rows_sha256_of(frame[::-1])
    True
    """
    from local_cloaking.tables.memory import read_held

    return read_held(HeldTable(frame)).sha256


@dataclass(frozen=True)
class _Options:
    text_columns: Collection[str] | None
    categorical: Collection[str]
    leave_out: Collection[str]
    separator: str | None
    decimal: str | None
    encoding: str | None


@dataclass(frozen=True)
class Content:
    """A file's bytes as they are stored, read once, with their hash."""

    name: str
    size: int
    sha256: str
    data: bytes


@dataclass(frozen=True)
class _Loaded:
    name: str
    size: int
    sha256: str
    format: str
    content: csv.ParsedCsv | pd.DataFrame


def read_bytes(source: Source) -> Content:
    """Read a file once, whole: one replaced between hashing and parsing would be measured under another's hash.

    Raises
    ------
    InputError
        If the file is empty.
    OSError
        If it cannot be reached.
    """
    place = source_of(source)
    if not hasattr(place, "open"):
        raise InputError("it is no file", remedy="give a path or a URI")
    name = PurePosixPath(place.name).name
    data = read_whole(place)
    if not data:
        raise InputError("the file is empty", remedy="hand over a table with a header and rows", rows=0, file=name)
    return Content(name, len(data), hashlib.sha256(data).hexdigest(), data)


def _load(source: Source, options: _Options, *, hash_all: bool) -> _Loaded:
    place = source_of(source)
    if isinstance(place, SqlTable):
        from local_cloaking.tables.sql import read_sql

        read = read_sql(place, leave_out=_unwanted(options), hash_all=hash_all)
        return _Loaded(place.name, read.size, read.sha256, "sql", read.frame)
    if isinstance(place, HeldTable):
        from local_cloaking.tables.memory import read_held

        held = read_held(place)
        return _Loaded(place.name, held.size, held.sha256, "table", held.frame)
    if partitions.is_folder(place):
        from local_cloaking.tables.folders import read_folder

        frame, parts, found = read_folder(place, text_columns=options.text_columns, leave_out=_unwanted(options))
        return _Loaded(found.name, sum(part.size for part in parts), found.sha256(parts), "parquet", frame)
    file = read_bytes(place)
    try:
        kind, content = _parsed(file.data, options)
    except InputError as error:
        raise error.in_file(file.name) from error
    return _Loaded(file.name, file.size, file.sha256, kind, content)


def _unwanted(options: _Options) -> frozenset[str]:
    return frozenset(options.leave_out) - frozenset(options.text_columns or ())


def _parsed(data: bytes, options: _Options) -> tuple[str, csv.ParsedCsv | pd.DataFrame]:
    from local_cloaking.tables import feather, statistical

    data = unpacked(data)
    unwanted = _unwanted(options)
    if data.startswith(parquet.MAGIC):
        return "parquet", parquet.read_parquet(data, text_columns=options.text_columns, leave_out=unwanted)
    if data.startswith(feather.MAGICS):
        return "feather", feather.read_feather(data, text_columns=options.text_columns, leave_out=unwanted)
    kind = statistical.format_of(data)
    if kind is not None:
        return kind, statistical.read_statistical(data, kind, leave_out=unwanted, encoding=options.encoding)
    return "csv", csv.parse_csv(
        data,
        text_columns=options.text_columns,
        categorical=options.categorical,
        leave_out=unwanted,
        separator=options.separator,
        decimal=options.decimal,
        encoding=options.encoding,
    )


def _table(loaded: _Loaded, other: _Loaded | None) -> Table:
    content = loaded.content
    if isinstance(content, pd.DataFrame):
        source = SourceFile(loaded.name, loaded.size, loaded.sha256, len(content), loaded.format)
        return Table(content, source)
    partner = other.content if other is not None else None
    source = SourceFile(
        loaded.name, loaded.size, loaded.sha256, content.rows, loaded.format, **asdict(content.dialect)
    )
    try:
        return Table(csv.to_frame(content, partner), source)
    except InputError as error:
        raise error.in_file(loaded.name) from error
