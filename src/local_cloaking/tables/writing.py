"""Tables out, as the bytes of a file whose name says the format."""

from __future__ import annotations

import gzip
import io
from pathlib import PurePath
from typing import TYPE_CHECKING

from local_cloaking.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

FORMATS = (".csv", ".csv.gz", ".parquet")


def checked_format(name: str) -> str:
    """Return which of `FORMATS` a file name asks for.

    Raises
    ------
    InputError
        If it is none of them.

    Examples
    --------
    >>> checked_format("avatars.csv.gz")
    '.csv.gz'
    """
    lower = PurePath(name).name.lower()
    for suffix in sorted(FORMATS, key=len, reverse=True):
        if lower.endswith(suffix):
            return suffix
    raise InputError(
        "the name of the output file does not say its format", remedy=f"let it end in {', '.join(FORMATS)}"
    )


def table_bytes(
    frame: pd.DataFrame,
    name: str,
    *,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> bytes:
    r"""Return a table as the bytes of a file.

    Parameters
    ----------
    frame
        The table; its index is not written.
    name
        The file's name: ``.csv``, ``.csv.gz`` or ``.parquet``.
    separator, decimal, encoding
        How to write CSV; by default ``,``, ``.`` and UTF-8.

    Raises
    ------
    InputError
        If the name says no known format.

    Examples
    --------
    >>> import pandas as pd
    >>> table_bytes(pd.DataFrame({"dose": [1.5]}), "a.csv", separator=";", decimal=",")
    b'dose\n1,5\n'
    """
    suffix = checked_format(name)
    if suffix == ".parquet":
        sink = io.BytesIO()
        frame.to_parquet(sink, index=False)
        return sink.getvalue()
    text = frame.to_csv(index=False, sep=separator or ",", decimal=decimal or ".", lineterminator="\n")
    # Without the time of packing: the same table, the same bytes.
    content = text.encode(encoding or "utf-8")
    return content if suffix == ".csv" else gzip.compress(content, mtime=0)
