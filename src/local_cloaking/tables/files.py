"""Files in, tables out, each with the hash of the very bytes that it was read from."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import zlib
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, Protocol

import pandas as pd

from local_cloaking.errors import InputError
from local_cloaking.tables import csv, parquet, partitions

LARGEST_UNPACKED = 8 << 30
LARGEST_RATIO = 200
SMALLEST_LIMIT = 256 << 20
_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20


class Readable(Protocol):
    """A path-like object of object storage: it has a name and can be opened."""

    @property
    def name(self) -> str:
        """Last part of the path."""

    def open(self, mode: str) -> IO[bytes]:
        """Open the file for reading bytes."""


Source = str | os.PathLike[str] | Readable


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
    """The file that a table was read from.

    Parameters
    ----------
    name
        Name of the file without its folder, which may tell more than a report should.
    size, sha256
        Of the bytes as they are stored, packed or not.
    rows
        Rows of the table, without the header.
    format
        "csv" or "parquet".
    separator, decimal, encoding
        How a CSV file is written; None for Parquet, and no separator for a CSV file of one column.
    """

    name: str
    size: int
    sha256: str
    rows: int
    format: str
    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None


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
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> Table:
    r"""Read one table, CSV or Parquet, gzipped or not; the content tells which, not the name.

    Parameters
    ----------
    source
        A path, or an object with ``name`` and ``open("rb")``.
    text_columns
        The key, or None for all columns: kept as the text of a CSV file, without looking for numbers, dates
        or truth values in them. Names that the table does not have are passed over.
    categorical
        The declared categories: kept as the text of a CSV file where their type cannot be told, instead of
        refused. Without meaning for Parquet.
    separator, decimal, encoding
        How a CSV file is written; what is None is found out. Without meaning for Parquet.

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
    return _table(_load(source, _Options(text_columns, categorical, separator, decimal, encoding)), None)


def read_pair(
    originals: Source,
    avatars: Source,
    *,
    text_columns: Collection[str] | None = (),
    categorical: Collection[str] = (),
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
        The two files, each as in `read_table`.
    text_columns, categorical, separator, decimal, encoding
        As in `read_table`, for both files.

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
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first, second = Path(folder, "originals.csv"), Path(folder, "avatars.csv")
    ...     _ = first.write_bytes(b"birth,age\n25/12/1980,41\n")
    ...     _ = second.write_bytes(b"birth,age\n03/04/1980,42\n")
    ...     originals, avatars = read_pair(first, second)
    >>> avatars.frame["birth"][0].month
    4
    """
    options = _Options(text_columns, categorical, separator, decimal, encoding)
    first, second = _load(originals, options), _load(avatars, options)
    return _table(first, second), _table(second, first)


def sha256_of(source: Source) -> str:
    r"""Hash a file piece by piece, as it is stored; of a folder of Parquet files, all of them together.

    Parameters
    ----------
    source
        As in `read_table`, or a folder; see `local_cloaking.tables.partitions`.

    Raises
    ------
    InputError
        Where a folder holds something else than partitions.
    OSError
        Where the file cannot be reached.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "avatars.csv")
    ...     _ = path.write_bytes(b"a\n1\n")
    ...     sha256_of(path)[:8]
    '309b0e45'
    """
    path = _path(source)
    if partitions.is_folder(path):
        return partitions.sha256_of_folder(path)
    with path.open("rb") as file:
        return partitions.hashed(file)[1]


@dataclass(frozen=True)
class _Options:
    text_columns: Collection[str] | None
    categorical: Collection[str]
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
    file: Content
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
    path = _path(source)
    with path.open("rb") as file:
        data: bytes = file.read()
    name = PurePosixPath(path.name).name
    if not data:
        raise InputError("the file is empty", remedy="hand over a table with a header and rows", rows=0, file=name)
    return Content(name, len(data), hashlib.sha256(data).hexdigest(), data)


def _path(source: Source) -> Any:
    if isinstance(source, str) or not hasattr(source, "open"):
        return Path(os.fspath(source))
    return source


def _load(source: Source, options: _Options) -> _Loaded:
    file = read_bytes(source)
    try:
        return _Loaded(file, _parsed(file.data, options))
    except InputError as error:
        raise error.in_file(file.name) from error


def _parsed(data: bytes, options: _Options) -> csv.ParsedCsv | pd.DataFrame:
    if data.startswith(_GZIP):
        data = _unpacked(data)
    if data.startswith(parquet.MAGIC):
        return parquet.read_parquet(data, text_columns=options.text_columns)
    return csv.parse_csv(
        data,
        text_columns=options.text_columns,
        categorical=options.categorical,
        separator=options.separator,
        decimal=options.decimal,
        encoding=options.encoding,
    )


def _table(loaded: _Loaded, other: _Loaded | None) -> Table:
    file, content = loaded.file, loaded.content
    if isinstance(content, pd.DataFrame):
        return Table(content, SourceFile(file.name, file.size, file.sha256, len(content), "parquet"))
    partner = other.content if other is not None else None
    source = SourceFile(file.name, file.size, file.sha256, content.rows, "csv", **asdict(content.dialect))
    try:
        return Table(csv.to_frame(content, partner), source)
    except InputError as error:
        raise error.in_file(file.name) from error


def _unpacked(data: bytes) -> bytes:
    """Decompress, up to a limit that no table reaches: a few megabytes can unpack to more than the memory."""
    limit = min(LARGEST_UNPACKED, max(SMALLEST_LIMIT, LARGEST_RATIO * len(data)))
    unpacked = _up_to(data, limit + 1)
    if unpacked is None:
        raise InputError(
            "the gzip file is damaged or incomplete", remedy="write it again, or hand it over unpacked"
        )
    if len(unpacked) > limit:
        raise InputError(
            f"the gzip file unpacks to more than {limit >> 20} MB, {LARGEST_RATIO} times its size or more",
            remedy="hand it over unpacked if it is a table",
        )
    return unpacked


def _up_to(data: bytes, size: int) -> bytes | None:
    unpacked = io.BytesIO()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            while chunk := file.read(min(_CHUNK, size - unpacked.tell())):
                unpacked.write(chunk)
    except (OSError, EOFError, zlib.error):
        # The bytes are in memory: an OSError speaks of their content.
        return None
    return unpacked.getvalue()
