"""A table or query of a database in, a DataFrame of ordinary columns out.

The rows come in chunks, by a cursor on the server's side, and stand in memory as Arrow's compact columns until the
DataFrame is made of them, column by column. Types are those of the values that the driver hands over: ``007`` in a
text stays text.

A database gives rows in no order. Two such tables are paired by a key, never by row order.
"""

from __future__ import annotations

import datetime as dt
import logging
import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from local_cloaking.errors import InputError
from local_cloaking.sources import SqlTable, refuse_password
from local_cloaking.tables.arrow import LARGEST_CELLS, to_frame
from local_cloaking.tables.fingerprint import TableHash
from local_cloaking.tables.values import LARGEST_EXACT_FLOAT

if TYPE_CHECKING:
    import pandas as pd

CHUNK_ROWS = 10_000
_DECLARE = "leave it out, or name a query that turns it into a number, a date or text"


@dataclass(frozen=True)
class SqlRead:
    """What was read: the table, and size and hash of its rows; see `local_cloaking.tables.fingerprint`."""

    frame: pd.DataFrame
    size: int
    sha256: str


def read_sql(source: SqlTable, *, leave_out: Collection[str] = (), hash_all: bool = True) -> SqlRead:
    """Read a table or query.

    Parameters
    ----------
    source
        Which one.
    leave_out
        Columns of which nothing is kept but the names.
    hash_all
        Whether they are read and hashed all the same, so that the hash speaks of the whole table.

    Raises
    ------
    InputError
        If there is no such table or connection, if the query is wrong, or if a column is no number, truth value,
        date or text.
    ConnectionError
        If the database cannot be reached; the same call may succeed later.

    Examples
    --------
    >>> import sqlite3, tempfile
    >>> path = tempfile.mkdtemp() + "/trial.db"
    >>> with sqlite3.connect(path) as connection:
    ...     _ = connection.execute("CREATE TABLE patients (id TEXT, age INTEGER, enrolled DATE)")
    ...     _ = connection.execute("INSERT INTO patients VALUES ('007', 41, '2026-01-31')")
    >>> read_sql(SqlTable(url=f"sqlite:///{path}", table="patients")).frame
        id  age   enrolled
    0  007   41 2026-01-31
    """
    unwanted = frozenset(leave_out)
    with _rows(source, frozenset() if hash_all else unwanted) as (names, hashed_names, chunks):
        columns = {name: _Column(name) for name in hashed_names if name not in unwanted}
        found, rows = TableHash(hashed_names), 0
        for chunk in chunks:
            cells = list(zip(*chunk, strict=True))
            rows += len(chunk)
            if rows * len(columns) > LARGEST_CELLS:
                raise InputError(f"it has more than {LARGEST_CELLS} cells", remedy="leave out columns", rows=rows)
            found.add(
                [
                    _exact(columns[name].take(values) if name in columns else None, values)
                    for name, values in zip(hashed_names, cells, strict=True)
                ]
            )
    if not rows:
        raise InputError(
            "it has no rows", remedy="hand over a table with at least one row", rows=0, file=source.name
        )
    table = pa.table({name: column.joined(rows) for name, column in columns.items()})
    columns.clear()
    return SqlRead(to_frame(table, names=names), found.size, found.hexdigest())


def sha256_of_sql(source: SqlTable) -> str:
    """Hash the rows of a table or query, as `read_sql` does."""
    with _rows(source, frozenset()) as (_, names, chunks):
        found = TableHash(names)
        for chunk in chunks:
            cells = list(zip(*chunk, strict=True))
            found.add([_exact(_array(values, name), values) for name, values in zip(names, cells, strict=True)])
        return found.hexdigest()


class _Column:
    """The cells of a column, chunk by chunk."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._chunks: list[pa.Array] = []

    def take(self, values: Sequence[Any]) -> pa.Array:
        array = _array(values, self.name)
        self._chunks.append(array)
        return array

    def joined(self, rows: int) -> pa.ChunkedArray:
        kinds = {chunk.type for chunk in self._chunks if not pa.types.is_null(chunk.type)}
        if kinds == {pa.int64(), pa.float64()}:
            kinds = {pa.float64()}
        if len(kinds) > 1:
            raise _mixed(self.name, rows)
        kind = kinds.pop() if kinds else pa.null()
        chunks, self._chunks = self._chunks, []
        try:
            return pa.chunked_array([chunk.cast(kind) for chunk in chunks], kind)
        except pa.ArrowInvalid:
            raise _too_large(self.name, rows) from None


#: By the types of a chunk's values, missing ones apart.
_KINDS: dict[frozenset[type], pa.DataType] = {
    frozenset(): pa.null(),
    frozenset({bool}): pa.bool_(),
    frozenset({int}): pa.int64(),
    frozenset({float}): pa.float64(),
    frozenset({int, float}): pa.float64(),
    frozenset({Decimal}): pa.float64(),
    frozenset({Decimal, int}): pa.float64(),
    frozenset({str}): pa.string(),
    frozenset({uuid.UUID}): pa.string(),
    frozenset({dt.date}): pa.date32(),
}


def _array(values: Sequence[Any], name: str) -> pa.Array:
    types = frozenset(map(type, values)) - {type(None)}
    if types == {dt.datetime}:
        return _moments(values, name)
    kind = _KINDS.get(types)
    if kind is None:
        if len(types) > 1:
            raise _mixed(name, len(values))
        raise InputError(
            f"it holds values of type {next(iter(types)).__name__}, which cannot be measured",
            column=name,
            rows=sum(value is not None for value in values),
            remedy=_DECLARE,
        )
    if Decimal in types:
        values = _floats(values, name)
    elif uuid.UUID in types:
        values = [None if value is None else str(value) for value in values]
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, OverflowError, UnicodeError):
        # Its message may show the cell.
        raise _too_large(name, len(values)) from None


def _floats(values: Sequence[Any], name: str) -> list[float | None]:
    # A whole number of that size is an identifier, or would be taken for another.
    if any(
        value is not None and abs(value) >= LARGEST_EXACT_FLOAT and value == value.to_integral_value()
        for value in map(_finite, values)
    ):
        raise _too_large(name, len(values))
    return [None if value is None else float(value) for value in values]


def _finite(value: Any) -> Decimal | None:
    return None if value is None or not Decimal(value).is_finite() else Decimal(value)


def _moments(values: Sequence[Any], name: str) -> pa.Array:
    zoned = {value.tzinfo is not None for value in values if value is not None}
    if len(zoned) > 1:
        raise InputError(
            "dates with and without a time zone are mixed",
            column=name,
            rows=len(values),
            remedy="give all of them a time zone, or none",
        )
    return pa.array(values, pa.timestamp("us", "UTC" if zoned == {True} else None))


def _exact(array: pa.Array | None, values: Sequence[Any]) -> pa.Array | Sequence[Any]:
    """Return what is hashed: what is kept, but where that is rounded or mixed the values themselves."""
    if array is None or pa.types.is_date(array.type):
        return values
    return values if pa.types.is_float64(array.type) and frozenset(map(type, values)) - {float} else array


def _mixed(name: str, rows: int) -> InputError:
    return InputError(
        "its values are of more than one type", column=name, rows=rows, remedy="write the column in one type"
    )


def _too_large(name: str, rows: int) -> InputError:
    return InputError(
        f"it holds whole numbers of {LARGEST_EXACT_FLOAT} and more, which would be rounded, or what is no text",
        column=name,
        rows=rows,
        remedy="let a query write the column as text where it is an identifier, or in a larger unit",
    )


# --- the database ---


@contextmanager
def _rows(source: SqlTable, unwanted: frozenset[str]) -> Iterator[tuple[list[str], list[str], Iterator[Any]]]:
    """Give the names of all columns, those of the columns read, and the rows, some at a time."""
    _refuse_incomplete(source)
    with _refusals_told(source):
        engine = _engine(source)
        try:
            with _rows_unlogged(engine), _reached(source, engine) as connection:
                chunked = connection.execution_options(yield_per=CHUNK_ROWS)
                names, result = _executed(chunked, source, unwanted)
                read = list(map(str, result.keys()))
                _refuse_repeated(names, source)
                yield names, read, result.partitions(CHUNK_ROWS)
        finally:
            engine.dispose()


def _refuse_incomplete(source: SqlTable) -> None:
    if (source.conn_id is None) == (source.url is None):
        raise InputError("a database table needs one of conn_id and url", remedy="name the Airflow connection")
    if (source.table is None) == (source.sql is None):
        raise InputError("a database table needs one of table and sql", remedy="name the table, or give a query")
    if source.url is not None:
        refuse_password(source.url)


def _refuse_repeated(names: list[str], source: SqlTable) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(
            f"{len(repeated)} column names stand more than once",
            column=repeated[0],
            remedy="give each column of the query a name of its own",
            file=source.name,
        )


def _engine(source: SqlTable) -> Any:
    if source.conn_id is not None:
        try:
            from local_cloaking.airflow.connections import engine_of
        except ImportError as error:
            raise InputError(
                "it names an Airflow connection, and Airflow is not installed",
                remedy="install local-cloaking[airflow], or name an SQLAlchemy URL",
                file=source.name,
            ) from error
        return engine_of(source.conn_id)
    try:
        import sqlalchemy
    except ImportError as error:
        raise InputError(
            "it lies in a database, and SQLAlchemy is not installed", remedy="install local-cloaking[sql]"
        ) from error
    try:
        return sqlalchemy.create_engine(str(source.url))
    except (sqlalchemy.exc.ArgumentError, ImportError):
        raise InputError(
            "the URL names no database that can be opened here",
            remedy="correct it, and install the driver that it names",
            file=source.name,
        ) from None


def _executed(connection: Any, source: SqlTable, unwanted: frozenset[str]) -> tuple[list[str], Any]:
    if source.sql is not None:
        # As it stands: neither colons nor per cent signs mean anything to anybody but the database.
        result = connection.execution_options(no_parameters=True).exec_driver_sql(source.sql)
        return list(map(str, result.keys())), result
    import sqlalchemy

    table = sqlalchemy.Table(
        str(source.table), sqlalchemy.MetaData(), schema=source.schema, autoload_with=connection, resolve_fks=False
    )
    names = [str(column.name) for column in table.columns]
    wanted = [column for column in table.columns if column.name not in unwanted]
    if connection.dialect.name == "sqlite":
        # It stores decimals as floats: turned into decimals again, they would be rounded to ten digits.
        for column in wanted:
            if isinstance(column.type, sqlalchemy.Numeric):
                column.type = sqlalchemy.Float()
    return names, connection.execute(sqlalchemy.select(*wanted))


@contextmanager
def _rows_unlogged(engine: Any) -> Iterator[None]:
    """Keep rows out of the log: at DEBUG, SQLAlchemy writes down each one that it fetches."""
    logger = logging.getLogger(engine.logger.name)
    logger.addFilter(_is_no_row)
    try:
        yield
    finally:
        logger.removeFilter(_is_no_row)


def _is_no_row(record: logging.LogRecord) -> bool:
    return record.levelno > logging.DEBUG


@contextmanager
def _reached(source: SqlTable, engine: Any) -> Iterator[Any]:
    import sqlalchemy

    try:
        connection = engine.connect()
    except sqlalchemy.exc.DBAPIError as error:
        # No query was sent yet: what the driver says holds no cell.
        said = str(error.orig).strip().splitlines()[:1]
        raise ConnectionError(f"{source}: the database cannot be reached: {' '.join(said)}") from None
    with connection:
        yield connection


@contextmanager
def _refusals_told(source: SqlTable) -> Iterator[None]:
    """Tell a wrong source, which stays wrong, from a database that is out of reach; no message shows a cell."""
    try:
        import sqlalchemy
    except ImportError:
        yield  # `_engine` says so.
        return
    problem, lost = None, None
    try:
        yield
    except InputError as error:
        raise error.in_file(source.name) from error.__cause__
    except sqlalchemy.exc.NoSuchTableError:
        problem = "there is no such table"
    except sqlalchemy.exc.DBAPIError as error:
        wrong = (sqlalchemy.exc.ProgrammingError, sqlalchemy.exc.DataError, sqlalchemy.exc.NotSupportedError)
        code = _code(error.orig)
        if isinstance(error, wrong) or code == "SQLITE_ERROR":
            problem = f"the database refuses to read it ({code})"
        else:
            lost = code
    except (ValueError, TypeError):
        problem = "a cell is not of the type that its column is declared as"
    if problem is not None:
        raise InputError(
            problem, remedy="correct the name or the query, and the rights of the connection", file=source.name
        ) from None
    if lost is not None:
        raise ConnectionError(f"{source}: the database was lost while it was read ({lost})") from None


def _code(error: Any) -> str:
    """Return how the driver calls an error, without what it says of it."""
    for name in ("sqlstate", "pgcode", "sqlite_errorname"):
        if getattr(error, name, None):
            return str(getattr(error, name))
    return type(error).__name__
