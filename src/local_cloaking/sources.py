"""What a table is named by: one text or one object, the same everywhere.

- a path, of a file or of a folder of Parquet files;
- a URI of object storage: ``s3://bucket/key``, or ``s3://CONNECTION@bucket/key`` by an Airflow connection;
- a table of a database, `SqlTable` or its text form;
- a DataFrame or an Arrow table.

Nothing here reads a table, and nothing heavy is imported: a DAG's file names tables while it is parsed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote, unquote, urlsplit

from local_cloaking.errors import InputError

_CONNECTION = "sql"
_STORAGE = "install local-cloaking[storage], and the package that fsspec names for this kind of storage"


@dataclass
class SqlTable:
    """A table, or the result of a query, in a database.

    Its text form names it where only text can be given: ``sql://CONNECTION/TABLE``,
    ``sql://CONNECTION/SCHEMA/TABLE``, or an SQLAlchemy URL with the table behind it, ``sqlite:////data/trial.db#TABLE``
    and ``postgresql+psycopg2://user@host/database#SCHEMA/TABLE``.

    Parameters
    ----------
    conn_id
        An Airflow connection, whose provider's hook opens the database. (templated)
    table, schema
        What to read; quoted, never pasted into a statement. (templated)
    sql
        A query instead of a table. (templated)
    url
        An SQLAlchemy URL instead of a connection, without password: that stands where the driver looks for it, as
        in ``PGPASSWORD`` or ``~/.pgpass``. (templated)

    Examples
    --------
    >>> SqlTable(conn_id="warehouse", table="patients", schema="trial")
    SqlTable('sql://warehouse/trial/patients')
    >>> SqlTable.of("sqlite:////data/trial.db#patients").table
    'patients'
    """

    conn_id: str | None = None
    table: str | None = None
    schema: str | None = None
    sql: str | None = None
    url: str | None = None

    #: What Airflow renders.
    template_fields: ClassVar[Sequence[str]] = ("conn_id", "table", "schema", "sql", "url")

    @classmethod
    def of(cls, text: str) -> SqlTable:
        """Return the table that a text names.

        Raises
        ------
        InputError
            If the text is no such name, or holds a password.
        """
        scheme, _, rest = text.partition("://")
        if scheme == _CONNECTION:
            conn_id, *parts = rest.split("/")
            url = None
        else:
            address, _, fragment = text.partition("#")
            conn_id, parts, url = None, fragment.split("/"), address
            refuse_password(address)
        if not 1 <= len(parts) <= 2 or not all(parts) or conn_id == "":
            raise InputError(
                "the name of a database table names no table",
                remedy="write sql://CONNECTION/TABLE, sql://CONNECTION/SCHEMA/TABLE, or an SQLAlchemy URL "
                "with #TABLE behind it",
            )
        *schema, table = (unquote(part) for part in parts)
        return cls(conn_id and unquote(conn_id), table, schema[0] if schema else None, None, url)

    @property
    def name(self) -> str:
        """What a record calls it: the table with its schema, or ``query``."""
        if self.table is None:
            return "query"
        return self.table if self.schema is None else f"{self.schema}.{self.table}"

    def __str__(self) -> str:
        parts = [quote(part, safe="") for part in (self.schema, self.table) if part is not None]
        what = "/".join(parts) or "query"
        if self.url is None:
            return f"{_CONNECTION}://{quote(self.conn_id or '', safe='')}/{what}"
        return f"{_without_password(self.url)}#{what}"

    def __repr__(self) -> str:
        return f"SqlTable({str(self)!r})"


class HeldTable:
    """A table in memory, which shows none of its cells: Airflow writes down the arguments of its tasks.

    Examples
    --------
    >>> import pandas as pd
    >>> HeldTable(pd.DataFrame({"name": ["somebody"]}))
    <a table of 1 row>
    """

    name = "table"

    def __init__(self, table: Any) -> None:
        self.table = table

    def __len__(self) -> int:
        return len(self.table)

    def __repr__(self) -> str:
        return f"<a table of {len(self)} row{'' if len(self) == 1 else 's'}>"


def held(value: Any) -> Any:
    """Return a DataFrame or Arrow table as a `HeldTable`, and anything else as it is."""
    # By name: nobody has a table whose package was not imported.
    made_by = type(value).__module__.partition(".")[0]
    is_table = (made_by, type(value).__name__) in {("pandas", "DataFrame"), ("pyarrow", "Table")}
    return HeldTable(value) if is_table else value


def source_of(value: Any, stored: Callable[[str], Any] | None = None) -> Any:
    """Return what a name stands for: a `Path`, a path in object storage, a `SqlTable` or a `HeldTable`.

    Parameters
    ----------
    value
        The name, or what it stands for.
    stored
        Makes a path of a URI of object storage; by default `stored_path`.

    Raises
    ------
    InputError
        If it names nothing that can be opened here.

    Examples
    --------
    >>> source_of("sql://warehouse/patients")
    SqlTable('sql://warehouse/patients')
    >>> str(source_of("file:///data/patients.csv"))
    '/data/patients.csv'
    """
    value = held(value)
    if not isinstance(value, str) and hasattr(value, "open"):
        return value
    if isinstance(value, SqlTable | HeldTable):
        return value
    text = _nameable(os.fspath(value))
    if isinstance(value, os.PathLike) or "://" not in text:
        return Path(text)
    if text.startswith("file://"):
        return Path(text.removeprefix("file://"))
    if _is_of_a_database(text):
        return SqlTable.of(text)
    return (stored or stored_path)(text)


def _nameable(text: str) -> str:
    """Refuse what no file system can be asked for."""
    try:
        possible = b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise InputError("the name holds characters that no name of a file has", remedy="correct the path or URI")
    return text


def names_a_table(value: Any) -> bool:
    """Tell whether a value is what names a table, and no table itself.

    Examples
    --------
    >>> names_a_table("patients.csv"), names_a_table([1, 2])
    (True, False)
    """
    return isinstance(value, str | os.PathLike | SqlTable | HeldTable) or hasattr(value, "open")


def refuse_rows_without_order(sources: Mapping[str, Any], *, paired_by_key: bool) -> None:
    """Refuse to pair rows by an order that they do not have.

    Parameters
    ----------
    sources
        What names each table, by what it is; None for one that is not given.
    paired_by_key
        Whether no row is paired by its place in the table.

    Raises
    ------
    InputError
        If it is, and one of the tables is of a database.
    """
    for name, source in sources.items():
        place = None if source is None else source_of(source)
        if isinstance(place, SqlTable) and (not paired_by_key or "coordinates" in name):
            raise InputError(
                "the rows of a database have no order: by it, originals and avatars would be paired by chance",
                remedy="pair them by a `key` or by a pairing table; coordinates need files",
                file=place.name,
            )


def stored_path(uri: str) -> Any:
    """Return a path in object storage, which can be opened like a `Path`.

    A URI with a connection, ``s3://CONNECTION@bucket/key``, is Airflow's; any other is opened by fsspec, with the
    credentials that the environment has.

    Raises
    ------
    InputError
        If what opens it is not installed.
    """
    try:
        netloc = urlsplit(uri).netloc
        # Azure writes its own addresses so: container@account.
        if "@" in netloc and not netloc.endswith(".core.windows.net"):
            return _path_of_airflow(uri)
        from upath import UPath

        path = UPath(uri)
        _ = path.fs
    except (ImportError, ValueError) as error:
        raise InputError("nothing that is installed opens a URI of this kind", remedy=_STORAGE) from error
    return path


def _path_of_airflow(uri: str) -> Any:
    try:
        from airflow.providers.common.compat.sdk import ObjectStoragePath
    except ImportError as error:
        raise InputError(
            "the URI names an Airflow connection, and Airflow is not installed",
            remedy="leave the connection out, or install local-cloaking[airflow]",
        ) from error
    return ObjectStoragePath(uri)


def _is_of_a_database(text: str) -> bool:
    scheme = text.partition("://")[0]
    if scheme == _CONNECTION:
        return True
    if "#" not in text:
        return False
    try:
        from fsspec.registry import known_implementations
    except ImportError:
        return True
    return scheme not in known_implementations


def refuse_password(url: str) -> None:
    """Refuse a URL that holds a password, or is none."""
    try:
        tells = _without_password(url) != url
    except ValueError as error:  # As where a bracket does not close.
        raise InputError("this is no URL of a database", remedy="write it as SQLAlchemy reads it") from error
    if tells:
        raise InputError(
            "the URL of a database holds a password, which would be seen wherever the URL is",
            remedy="leave it out: name an Airflow connection, or put it where the driver looks for it (for "
            "PostgreSQL, PGPASSWORD or ~/.pgpass)",
        )


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    login, at, host = parts.netloc.rpartition("@")
    if ":" in login:
        return parts._replace(netloc=f"{login.partition(':')[0]}{at}{host}").geturl()
    return url
