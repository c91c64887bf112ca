"""SAS and Stata files: bytes in, a DataFrame of ordinary columns out.

They are read by pyreadstat, not by pandas: pandas reads no version 8 of SAS transport files, takes the zero of
version 5 for a number that is not zero, and leaves dates as numbers.
"""

from __future__ import annotations

import io
import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import pandas as pd

from local_cloaking.errors import InputError
from local_cloaking.tables.arrow import LARGEST_CELLS, refuse_width, unread
from local_cloaking.tables.packing import largest_unpacked

if TYPE_CHECKING:
    from types import ModuleType

_SAS = bytes(12) + bytes.fromhex("c2ea8160b31411cfbd92080009c7318c181f1011")
_TRANSPORT = (
    b"HEADER RECORD*******LIBRARY HEADER RECORD!!!!!!!",
    b"HEADER RECORD*******LIBV8   HEADER RECORD!!!!!!!",
)
_STATA = b"<stata_dta>"
_OLD_STATA = range(104, 116)
_ROWS_OF_STATA = re.compile(
    rb"<release>(?P<version>\d+)</release><byteorder>(?P<order>[A-Z]+)</byteorder><K>.*?</K><N>(?P<rows>.{8})",
    re.DOTALL,
)

_READERS = {"sas7bdat": "read_sas7bdat", "xport": "read_xport", "stata": "read_dta"}
_CALLED = {"sas7bdat": "SAS file", "xport": "SAS transport file", "stata": "Stata file"}


def format_of(data: bytes) -> str | None:
    """Tell whether a file is one of these, by its first bytes: ``sas7bdat``, ``xport`` or ``stata``.

    Examples
    --------
    >>> format_of(b"<stata_dta><header>"), format_of(b"a,b")
    ('stata', None)
    """
    if data.startswith(_SAS):
        return "sas7bdat"
    if data.startswith(_TRANSPORT):
        return "xport"
    # Before version 117: version, order of bytes, and two bytes that no text has.
    old = len(data) > 4 and data[0] in _OLD_STATA and data[1] in (1, 2) and data[2:4] == b"\1\0"
    return "stata" if old or data.startswith(_STATA) else None


def read_statistical(
    data: bytes, kind: str, *, leave_out: Collection[str] = (), encoding: str | None = None
) -> pd.DataFrame:
    """Read the bytes of a SAS or Stata file.

    Numbers come out as float64 (int64 where the file says so and no cell is missing), dates as datetime64; an
    empty text is a missing cell, as SAS and Stata have no other. Labels of values are not applied: codes are read.

    Parameters
    ----------
    data
        The whole file.
    kind
        As `format_of` tells.
    leave_out
        Columns of which nothing is read but the names.
    encoding
        Of its texts, where the file itself does not say it rightly.

    Raises
    ------
    InputError
        Where the file is damaged, has no rows or holds times of day; where pyreadstat is not installed.

    Examples
    --------
    >>> read_statistical(b"<stata_dta>", "stata")
    Traceback (most recent call last):
    ...
    local_cloaking.errors.InputError: the Stata file is damaged or incomplete; write it again, or hand over ...
    """
    reader = getattr(_pyreadstat(kind), _READERS[kind])
    if kind == "stata":
        # Its reader would go through all rows that there are said to be.
        _refuse_claim(_rows_of_stata(data), 0, data, kind)
    described, _ = _read(reader, data, kind, encoding, metadataonly=True)
    names: list[str] = list(described.column_names)
    refuse_width(len(names))
    if len(set(names)) < len(names):
        raise InputError("column names stand more than once", remedy="give each column a name of its own")
    _refuse_claim(described.number_rows or 0, len(names), data, kind)
    wanted = [name for name in names if name not in set(leave_out)]
    frame = _read(reader, data, kind, encoding, usecols=wanted, dates_as_pandas_datetime=True)[1]
    if not len(frame):
        raise InputError("the file has no rows", remedy="hand over a table with at least one row", rows=0)
    if len(frame) * len(names) > LARGEST_CELLS:
        raise InputError(f"it has more than {LARGEST_CELLS} cells", remedy="leave out columns", rows=len(frame))
    return _with_missing(frame, names)


def _rows_of_stata(data: bytes) -> int:
    """Return how many rows a Stata file says that it has; 0 where it does not say."""
    if not data.startswith(_STATA):
        return int.from_bytes(data[6:10], "big" if data[1] == 1 else "little")
    said = _ROWS_OF_STATA.search(data, 0, 1000)
    if said is None:
        return 0
    rows = said["rows"] if said["version"] > b"117" else said["rows"][:4]
    return int.from_bytes(rows, "big" if said["order"] == b"MSF" else "little")


def _refuse_claim(rows: int, columns: int, data: bytes, kind: str) -> None:
    """Refuse a file that says it has more cells than its bytes can hold: room would be made for all of them."""
    largest = len(data) if kind == "stata" else largest_unpacked(len(data)) // 8
    if rows > len(data) or rows * columns > largest:
        raise _damaged(kind)


def _with_missing(frame: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    columns: dict[str, Any] = {}
    for name in names:
        if name not in frame.columns:
            columns[name] = unread(len(frame))
            continue
        series = frame[name]
        if series.dtype.kind not in "ifM":
            series = series.mask(series == "", None)
        columns[name] = series
    return pd.DataFrame(columns)


def _read(reader: Any, data: bytes, kind: str, encoding: str | None, **options: Any) -> tuple[Any, pd.DataFrame]:
    from pyreadstat import PyreadstatError, ReadstatError

    try:
        frame, described = reader(io.BytesIO(data), encoding=encoding, **options)
    except (
        PyreadstatError,
        ReadstatError,
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
    ):
        # What a damaged file leads to in a reader that trusts it. Messages may show cells, and would be chained.
        frame = None
    if frame is None:
        raise _damaged(kind)
    return described, frame


def _damaged(kind: str) -> InputError:
    return InputError(
        f"the {_CALLED[kind]} is damaged or incomplete",
        remedy="write it again, or hand over the table as CSV; for garbled texts, name their encoding in the "
        "option `encoding`",
    )


def _pyreadstat(kind: str) -> ModuleType:
    try:
        import pyreadstat
    except ImportError as error:
        raise InputError(
            f"it is a {_CALLED[kind]}, and pyreadstat, which reads it, is not installed",
            remedy="install local-cloaking[sas]",
        ) from error
    module: ModuleType = pyreadstat
    return module
