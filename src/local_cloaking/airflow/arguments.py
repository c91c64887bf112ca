"""Operator arguments as they arrive in ``execute``: rendered, so text where a number was meant.

A missing XCom renders as the text ``None``: taken for a value, it would silently switch an option off.
"""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from local_cloaking.errors import InputError
from local_cloaking.sources import HeldTable, SqlTable, held, source_of
from local_cloaking.whole import whole_number


def text(value: Any, argument: str) -> str | None:
    """Return an optional text argument; None only where none was given.

    Raises
    ------
    InputError
        If a template rendered to nothing.

    Examples
    --------
    >>> text("pidnum", "key")
    'pidnum'
    """
    if value is None:
        return None
    try:
        rendered = str(value)
    except ValueError as error:  # Python writes no number of thousands of digits.
        raise InputError(f"the argument `{argument}` is too large a number", remedy="correct it") from error
    if rendered.strip() in ("", "None"):
        raise InputError(
            f"the argument `{argument}` rendered to nothing",
            remedy="correct the template, or the task whose XCom it reads",
        )
    return rendered


def names(value: Any, argument: str) -> list[str]:
    """Return a list of column names, given as a list, as JSON text or as ``A,B,C``.

    Examples
    --------
    >>> names("race,gender", "categorical")
    ['race', 'gender']
    """
    if value is None:
        return []
    try:
        return _listed(value if isinstance(value, str) else list(value), argument)
    except (TypeError, ValueError, RecursionError, csv.Error) as error:
        raise InputError(
            f"the argument `{argument}` is not a list", remedy="give a list, JSON or A,B,C"
        ) from error


def _listed(value: str | list[Any], argument: str) -> list[str]:
    if not isinstance(value, str):
        return [str(name) for name in value]
    rendered = text(value, argument) or ""
    if rendered.lstrip().startswith("["):
        return [str(name) for name in json.loads(rendered)]
    return [name for row in csv.reader([rendered], skipinitialspace=True) for name in row if name]


def whole(value: Any, argument: str) -> int | None:
    """Return an optional whole number, also from text.

    Examples
    --------
    >>> whole("20", "k")
    20
    """
    if text(value, argument) is None:
        return None
    number = whole_number(value)
    if number is None:
        raise InputError(f"the argument `{argument}` is not a whole number", remedy="correct it")
    return number


def truth(value: Any, argument: str) -> bool:
    """Return a truth value, also from text.

    Examples
    --------
    >>> truth("True", "compare_with_previous")
    True
    """
    words = {"true": True, "false": False}
    word = str(value).strip().lower()
    if word not in words:
        raise InputError(f"the argument `{argument}` is neither true nor false", remedy="correct it")
    return words[word]


def mapping(value: Any, argument: str, producer: str) -> dict[str, Any]:
    """Return the result of another task, given as its XCom or as JSON text.

    Examples
    --------
    >>> mapping('{"n": 3}', "measured", "measure")
    {'n': 3}
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = None
    if not isinstance(value, dict):
        raise InputError(
            f"the argument `{argument}` is not the result of a {producer} task",
            remedy=f"give that task's `.output`, or its XCom with `| tojson`: did the {producer} task run?",
        )
    return value


class TableArgument:
    """An argument that names a table, or is one.

    A table of an earlier task is held, so that none of its cells is shown: Airflow writes down, and shows in its
    interface, the rendered arguments of each task.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, task: Any, owner: type | None = None) -> Any:
        if task is None:
            return self
        try:
            return task.__dict__[self._name]
        except KeyError:
            raise AttributeError(self._name) from None

    def __set__(self, task: Any, value: Any) -> None:
        task.__dict__[self._name] = held(value)


def table(value: Any, argument: str) -> Any:
    """Return what names a table; see `local_cloaking.sources`.

    Raises
    ------
    InputError
        If nothing was given, or it names nothing that can be opened here.

    Examples
    --------
    >>> table("sql://warehouse/patients", "originals")
    SqlTable('sql://warehouse/patients')
    """
    value = held(value)
    if isinstance(value, SqlTable | HeldTable):
        return value
    if hasattr(value, "open") and not isinstance(value, PurePosixPath | PureWindowsPath):
        return value  # An ObjectStoragePath, made by the author of the DAG.
    rendered = text(os.fspath(value) if isinstance(value, str | os.PathLike) else None, argument)
    if rendered is None:
        raise InputError(f"the argument `{argument}` is missing", remedy="give a path or a URI")
    return source_of(rendered, _stored)


def location(value: Any, argument: str) -> Any:
    """Return where a file lies: a `Path`, or an ``ObjectStoragePath`` for a URI.

    Raises
    ------
    InputError
        If nothing was given, or it is no file.

    Examples
    --------
    >>> str(location("/data/avatars.csv", "avatars"))
    '/data/avatars.csv'
    """
    place = table(value, argument)
    if isinstance(place, SqlTable | HeldTable):
        raise InputError(f"the argument `{argument}` names no file", remedy="give a path or a URI")
    return place


def _stored(uri: str) -> Any:
    from airflow.providers.common.compat.sdk import ObjectStoragePath

    try:
        return ObjectStoragePath(uri)
    except (ImportError, ValueError) as error:
        raise InputError(
            "nothing that is installed opens a URI of this kind", remedy="correct it, or install what opens it"
        ) from error


def optional_table(value: Any, argument: str) -> Any:
    """Return what names an optional table, or None where none was given."""
    return None if value is None else table(value, argument)


def refuse_same_place(**places: Any) -> None:
    """Refuse to write one file over another of the same task.

    Raises
    ------
    InputError
        If two of the places are the same.
    """
    seen: dict[str, str] = {}
    for argument, place in places.items():
        where = str(place.resolve()) if isinstance(place, Path) else str(place)
        if where in seen:
            raise InputError(
                f"the arguments `{seen[where]}` and `{argument}` name the same file", remedy="name another file"
            )
        seen[where] = argument


def csv_options(separator: Any, decimal: Any, encoding: Any) -> Any:
    """Return how CSV files are written."""
    from local_cloaking.tables import CsvOptions

    return CsvOptions(text(separator, "separator"), text(decimal, "decimal"), text(encoding, "encoding"))


def optional_location(value: Any, argument: str) -> Any:
    """Return where an optional file lies, or None where none was given."""
    return None if value is None else location(value, argument)
