"""CSV bytes in, a DataFrame out, by one set of rules that does not depend on the file.

Each column is read as text and then decided as a whole, so that one odd cell never changes the type of a part
of it. Where a column can be read in two ways that give different numbers or dates it is refused: a guess
would be measured as if it were the data. No message holds a value of a cell.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv as arrow_csv

from local_cloaking.errors import InputError
from local_cloaking.tables.arrow import refuse_width, unread
from local_cloaking.tables.csv_columns import (
    MISSING,
    DecidedColumns,
    as_series,
    decide_columns,
    one_reading,
    refuse_unlike_points,
)

SEPARATORS = (",", ";", "\t", "|")

LINES_SHOWN = 5
_SAMPLE_ROWS = 100
_BLOCK = 1 << 24
# Text never holds this character (control characters are refused), so nothing is split at it.
_NO_SEPARATOR = "\x1f"
_JUNK = bytes(set(range(32)) - set(b"\t\n\v\f\r"))

_HEADER_NUMBER = re.compile(r"\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?\s*")
_LINE_END = re.compile(rb"\r\n|\r|\n")
_EXCEL_HINT = re.compile(rb'"?sep=([^"\r\n])"?\r?\n', re.IGNORECASE)


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written.

    Parameters
    ----------
    separator
        The character between the cells, None for a table of one column.
    decimal
        "." or ",".
    encoding
        Name of the encoding, as Python knows it.
    """

    separator: str | None
    decimal: str
    encoding: str


@dataclass(frozen=True)
class ParsedCsv:
    """A CSV file with its columns decided, but for dates whose order it does not show.

    Parameters
    ----------
    decided
        The columns of the file, and what is still in doubt of them.
    dialect
        How the file is written.
    rows
        Number of rows under the header.
    names
        All columns, also those that were left out.
    """

    decided: DecidedColumns
    dialect: Dialect
    rows: int
    names: tuple[str, ...]


def parse_csv(
    data: bytes,
    *,
    text_columns: Collection[str] | None = (),
    categorical: Collection[str] = (),
    leave_out: Collection[str] = (),
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> ParsedCsv:
    r"""Read the bytes of a CSV file and decide the type of each column.

    Parameters
    ----------
    data
        The whole file, not compressed.
    text_columns
        Columns kept as the text of the file; only missing cells are recognised in them. Names that the file
        does not have are passed over. None: all columns.
    categorical
        Columns declared as categories: kept as text where their type cannot be told, instead of refused.
    leave_out
        Columns of which nothing is kept but the names, and that are not looked at.
    separator, decimal, encoding
        How the file is written; what is None is found out.

    Raises
    ------
    InputError
        Where the file is empty, is no text, is not a table, or can be read in two ways.

    Examples
    --------
    >>> parsed = parse_csv(b"age;poids\n41;70,5\n39;\n")
    >>> parsed.dialect
    Dialect(separator=';', decimal=',', encoding='utf-8')
    >>> to_frame(parsed)
       age  poids
    0   41   70.5
    1   39    NaN
    """
    _check_options(separator, decimal)
    data, found_encoding = _as_utf8(data, encoding)
    _refuse_junk(data)
    separator, data = _excel_hint(data, _given_separator(separator))
    if not data or data.isspace():
        raise InputError("the file is empty", remedy="hand over a table with a header and rows", rows=0)
    if separator is None:
        separator = _find_separator(data, decimal)
    if separator == _NO_SEPARATOR:
        # A row of one missing cell is an empty line: only those at the end are no rows.
        data = data.rstrip(b"\r\n") + b"\n"
    _refuse_stray_quotes(data, separator)
    names = _names(data, separator)
    cells = _cells(data, separator, names, frozenset(leave_out))
    decided = decide_columns(
        cells,
        text_columns=frozenset(cells.column_names if text_columns is None else text_columns),
        categorical=frozenset(categorical),
        separator=separator,
        decimal=decimal,
    )
    shown = None if separator == _NO_SEPARATOR else separator
    return ParsedCsv(decided, Dialect(shown, decided.decimal, found_encoding), cells.num_rows, tuple(names))


def to_frame(parsed: ParsedCsv, other: ParsedCsv | pd.DataFrame | None = None) -> pd.DataFrame:
    """Turn a parsed file into a DataFrame.

    Parameters
    ----------
    parsed
        The file.
    other
        The other table of the pair, a DataFrame where it is no CSV file. A date such as 03/04/2021 is read in
        the order that its column shows there.

    Raises
    ------
    InputError
        Where a column of dates can be read in two ways, or the two tables write it in different orders; where
        points may separate thousands, since the column holds whole numbers only in the other table.
    """
    refuse_unlike_points(parsed.decided.grouped, _whole_columns(other))
    partners = other.decided.columns if isinstance(other, ParsedCsv) else {}
    series = {
        name: as_series(one_reading(name, column, partners.get(name)))
        for name, column in parsed.decided.columns.items()
    }
    columns = {name: series[name] if name in series else unread(parsed.rows) for name in parsed.names}
    return pd.DataFrame(columns)


def _whole_columns(table: ParsedCsv | pd.DataFrame | None) -> Collection[str]:
    if table is None:
        return ()
    if isinstance(table, ParsedCsv):
        return table.decided.whole
    numbers = table.select_dtypes("number")
    # By value: Parquet's whole numbers come as float64 where cells are missing.
    return [str(name) for name in numbers if (numbers[name].dropna() % 1 == 0).all() and numbers[name].count()]


# --- options and bytes ---


def _check_options(separator: str | None, decimal: str | None) -> None:
    if decimal not in (None, ".", ","):
        raise InputError(
            "the option `decimal` is neither a point nor a comma", remedy="give '.' or ',', or leave it out"
        )
    given = _given_separator(separator)
    if given is not None and not re.fullmatch(r"[\t !#$%&*,/:;<=>?@\\^`|~]", given):
        raise InputError(
            "the option `separator` cannot separate cells",
            remedy="give one character such as ',', ';', '|' or a tab, or leave it out",
        )


def _given_separator(separator: str | None) -> str | None:
    # A command line can hardly hand over a tab itself.
    return "\t" if separator in ("\\t", "tab") else separator


def _as_utf8(data: bytes, encoding: str | None) -> tuple[bytes, str]:
    """Return the text as UTF-8 without a byte order mark, and the encoding it had."""
    if encoding is not None:
        return _from_given(data, encoding)
    if data.startswith(codecs.BOM_UTF8) and _is_utf8(data):
        return data[len(codecs.BOM_UTF8) :], "utf-8-sig"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _from_given(data, "utf-16")
    if _is_utf8(data):
        return data, "utf-8"
    return _from_given(data, "cp1252")


def _from_given(data: bytes, encoding: str) -> tuple[bytes, str]:
    try:
        name = codecs.lookup(encoding).name
        text = data.decode(name)
        return text.removeprefix("\ufeff").encode("utf-8"), name
    except LookupError:
        problem = "the encoding asked for is not known"
    except ValueError:
        problem = "the bytes are no text in the encoding tried"
    # Raised out here: the error of the codec carries the whole file, and would be chained.
    raise InputError(problem, remedy="name the encoding of the file in the option `encoding`, such as 'utf-8'")


def _is_utf8(data: bytes) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    view = memoryview(data)
    try:
        # In pieces: the text of a large file would stand in memory a second time.
        for start in range(0, len(view), _BLOCK):
            decoder.decode(view[start : start + _BLOCK])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _refuse_junk(data: bytes) -> None:
    view = memoryview(data)
    for start in range(0, len(view), _BLOCK):
        block = bytes(view[start : start + _BLOCK])
        if len(block.translate(None, _JUNK)) != len(block):
            raise InputError(
                "the file holds bytes that no text holds (NUL or control characters)",
                remedy="hand over CSV, Parquet, Feather, SAS or Stata, also packed by gzip or zstd; for "
                "UTF-16 without a byte order mark, name the encoding in the option `encoding`",
            )


def _excel_hint(data: bytes, separator: str | None) -> tuple[str | None, bytes]:
    """Take away the line `sep=;` that Excel reads and writes as the first one."""
    hint = _EXCEL_HINT.match(data)
    if hint is None:
        return separator, data
    # An empty line in its place: the lines that messages name are those of the file.
    return separator or hint.group(1).decode(), b"\n" + data[hint.end() :]


# --- separator, header and rows ---


def _records(data: bytes, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each row that is not blank, with the number of the line on which it starts."""
    reader = csv.reader(io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline=""), delimiter=separator)
    line = 1
    for record in reader:
        if record:
            yield line, record
        line = reader.line_num + 1


def _widths(data: bytes, separator: str) -> list[int]:
    """Count the cells of the first rows, the header among them; none where they cannot be split."""
    try:
        return [len(record) for _, record in islice(_records(data, separator), _SAMPLE_ROWS + 1)]
    except csv.Error:
        return []


def _find_separator(data: bytes, decimal: str | None) -> str:
    widths = {separator: _widths(data, separator) for separator in SEPARATORS}
    in_header = [separator for separator, found in widths.items() if found and found[0] > 1]
    fitting = [separator for separator in in_header if _share_like_header(widths[separator]) > 0.5]
    # Rows that do not fit are the business of a later step, which counts them.
    candidates = fitting or in_header
    if len(candidates) == 1:
        return candidates[0]
    if not candidates and not _splits_rows_only(widths, decimal):
        return _NO_SEPARATOR
    raise InputError(
        "the separator of the file cannot be told: more than one would split its rows, or one splits the "
        "rows but not the header",
        remedy="name it in the option `separator` (for a table of one column, one that the file lacks)",
        rows=max((len(found) - 1 for found in widths.values()), default=0),
    )


def _share_like_header(widths: list[int]) -> float:
    rows = widths[1:]
    return sum(width == widths[0] for width in rows) / len(rows) if rows else 1.0


def _splits_rows_only(widths: Mapping[str, list[int]], decimal: str | None) -> bool:
    # "x" over "1,5" may be one decimal comma, or a row name and a number as R writes them.
    return any(
        len(set(found[1:])) == 1 and found[1] > 1
        for separator, found in widths.items()
        if found[1:] and separator != decimal
    )


def _names(data: bytes, separator: str) -> list[str]:
    try:
        _, header = next(_records(data, separator))
    except csv.Error:
        header = []
    refuse_width(len(header))
    if all(not name.strip() for name in header):
        raise InputError("the header holds no name", remedy="write the names of the columns in the first line")
    if all(_HEADER_NUMBER.fullmatch(name) or name.strip() in MISSING for name in header):
        raise InputError(
            "the first line holds numbers where the names of the columns should stand",
            remedy="write the names of the columns in the first line",
            rows=1,
        )
    names = [name or f"Unnamed: {position}" for position, name in enumerate(header)]
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise _repeated_names(names, repeated)
    return names


def _repeated_names(names: list[str], repeated: list[str]) -> InputError:
    # A name that is a number is likely a cell of a file without header: only its position is told.
    tellable = [name for name in repeated if not _HEADER_NUMBER.fullmatch(name)]
    positions = [str(position + 1) for position, name in enumerate(names) if name in repeated]
    listed = f" ({', '.join(repr(name) for name in tellable)})" if tellable else ""
    return InputError(
        f"{len(repeated)} names stand more than once in the header{listed}, in columns {_listed(positions)}",
        remedy="give each column a name of its own",
        column=tellable[0] if tellable else None,
        rows=0,
    )


def _listed(items: list[str]) -> str:
    shown = items[:LINES_SHOWN]
    return ", ".join(shown) + (", ..." if len(items) > LINES_SHOWN else "")


def _refuse_stray_quotes(data: bytes, separator: str) -> None:
    """Refuse a quotation mark that neither opens nor closes a cell: it would swallow rows up to the next one.

    In a well-written file the marks come in pairs, a doubled one inside a cell closing and opening again: so
    the first, third, fifth ... stands at the start of a cell or behind another mark, the second, fourth ...
    at the end of a cell or before another mark.
    """
    if b'"' not in data:
        return
    content = np.frombuffer(data, dtype=np.uint8)
    edges = np.zeros(256, dtype=np.bool_)
    edges[list(f'{separator}\r\n"'.encode())] = True
    seen, last = 0, 0
    for start in range(0, len(content), _BLOCK):
        marks = np.flatnonzero(content[start : start + _BLOCK] == ord('"')) + start
        opening, closing = marks[seen % 2 :: 2], marks[1 - seen % 2 :: 2]
        before = edges[content[opening - 1]] | (opening == 0)
        after = edges[content[np.minimum(closing + 1, len(content) - 1)]] | (closing + 1 == len(content))
        stray = np.concatenate([opening[~before], closing[~after]])
        if stray.size:
            raise _stray_quote(data, int(stray.min()))
        seen += len(marks)
        last = int(marks[-1]) if len(marks) else last
    if seen % 2:
        raise _stray_quote(data, last)


def _stray_quote(data: bytes, position: int) -> InputError:
    newline = b"\n" if b"\n" in data else b"\r"
    return InputError(
        f"a quotation mark neither opens nor closes a cell (line {data.count(newline, 0, position) + 1})",
        remedy="put such a cell in quotation marks and write each mark inside it twice",
        rows=1,
    )


def _cells(data: bytes, separator: str, names: list[str], leave_out: frozenset[str]) -> pa.Table:
    """Split the file into a table of text, a missing cell being null."""
    ragged: list[int] = []

    def skip(row: arrow_csv.InvalidRow) -> str:
        ragged.append(row.actual_columns)
        return "skip"

    # Numbered names: a header may hold line breaks, and Arrow looks the types up by name.
    numbered = [str(position) for position in range(len(names))]
    wanted = [number for number, name in zip(numbered, names, strict=True) if name not in leave_out]
    # Arrow counts empty lines before the header among the rows to skip.
    empty = len(_LINE_END.findall(data[: len(data) - len(data.lstrip(b"\r\n"))]))
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(data),
            arrow_csv.ReadOptions(column_names=numbered, skip_rows_after_names=empty + 1, block_size=_BLOCK),
            arrow_csv.ParseOptions(
                delimiter=separator,
                newlines_in_values=b'"' in data,
                ignore_empty_lines=separator != _NO_SEPARATOR,
                invalid_row_handler=skip,
            ),
            arrow_csv.ConvertOptions(
                include_columns=wanted,
                column_types=dict.fromkeys(numbered, pa.string()),
                strings_can_be_null=True,
                null_values=list(MISSING),
            ),
        )
    except pa.ArrowInvalid:
        table = None
    if ragged:
        raise _ragged(data, separator, len(names), len(ragged))
    if table is None:
        raise InputError(
            f"the file cannot be split into rows (one of them may be longer than {_BLOCK >> 20} MB)",
            remedy="hand over a table with one line for each individual",
        )
    if table.num_rows == 0:
        raise InputError(
            "the file has a header but no rows", remedy="hand over a table with at least one row", rows=0
        )
    return table.rename_columns([names[int(number)] for number in wanted])


def _ragged(data: bytes, separator: str, width: int, count: int) -> InputError:
    wrong = (line for line, record in _records(data, separator) if len(record) != width)
    try:
        lines = [str(line) for line in islice(wrong, LINES_SHOWN + 1)]
    except csv.Error:
        lines = []
    where = f" (lines {_listed(lines)})" if lines else ""
    return InputError(
        f"{count} rows do not have as many cells as the header, which has {width}{where}",
        remedy="write one cell for each column, in quotation marks where it holds the separator; where the "
        "file uses another separator, name it in the option `separator`",
        rows=count,
    )
