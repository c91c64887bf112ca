"""Searching bytes for planted values, however they were written: in any encoding, and inside what was packed."""

from __future__ import annotations

import base64
import datetime as dt
import gzip
import html
import io
import json
import re
import sqlite3
import struct
import urllib.parse
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import cached_property
from pathlib import Path

import numpy as np

_SEPARATORS = ("", ",", ".", " ", "'", "’", "\u00a0", "\u202f", "_")
_MONTHS = [
    *("January", "February", "March", "April", "May", "June", "July", "August"),
    *("September", "October", "November", "December"),
    *("janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août"),
    *("septembre", "octobre", "novembre", "décembre"),
]


def ways_to_write_text(text: str) -> set[bytes]:
    """Return a text as the encodings write it that software leaves behind."""
    spelt = {
        text,
        json.dumps(text)[1:-1],
        json.dumps(text, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps(text))[1:-1],
        ascii(text)[1:-1],
        repr(text)[1:-1],
        html.escape(text),
        html.escape(text, quote=False),
        html.escape(text).encode("ascii", "xmlcharrefreplace").decode(),
        text.encode("ascii", "xmlcharrefreplace").decode(),
        urllib.parse.quote(text, safe=""),
        urllib.parse.quote(text),
        urllib.parse.quote_plus(text),
        text.encode("unicode_escape").decode(),
        str(text.encode())[2:-1],
    }
    written = {one.encode() for one in spelt} | {text.encode("latin-1", "replace")} - {b""}
    for coding in ("utf-8", "utf-16-le", "utf-16-be"):
        raw = text.encode(coding)
        written |= {raw, raw.hex().encode(), *_in_base64(raw)}
    return written


def _in_base64(raw: bytes) -> Iterator[bytes]:
    # What stands before it decides how it falls into threes; what the neighbours decide is left out.
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + raw)
        inside = whole[(0, 2, 3)[before] : len(whole) - 4 + (len(raw) + before) % 3]
        yield inside
        yield inside.translate(bytes.maketrans(b"+/", b"-_"))


def ways_to_write_number(value: float) -> set[bytes]:
    """Return a number with other marks, in fewer digits, in a hundredth, and as machines store it."""
    spelt = set()
    for shown in (value, value * 100, value / 100):
        digits = f"{abs(shown):.10f}".rstrip("0").rstrip(".")
        whole, _, decimals = digits.partition(".")
        grouped = f"{int(whole):,}".split(",")
        for separator in _SEPARATORS:
            for decimal in (".", ","):
                # Six digits are as unmistakable as all of them, rounded or cut off.
                for kept in {decimals, decimals[: max(0, 7 - len(whole))]}:
                    text = separator.join(grouped) + (decimal + kept if kept else "")
                    spelt.add(text)
        spelt |= {
            f"{abs(shown):.{digits}{kind}}" for digits, kind in ((6, "g"), (7, "g"), (4, "f"), (6, "f"), (6, "e"))
        }
    written = {one.encode() for one in spelt if sum(sign.isdigit() for sign in one) >= 6}
    written |= {one.decode().encode("utf-16-le") for one in list(written)}
    stored = {struct.pack(f"{order}d", value) for order in "<>"}
    if float(value).is_integer():
        stored |= {int(value).to_bytes(8, order, signed=True) for order in ("little", "big")}
    return written | stored


def ways_to_write_date(day: dt.date) -> set[bytes]:
    """Return a day in the orders, words and numbers that dates are written in."""
    moment = dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC)
    spelt = {f"{day:{order}}" for order in ("%Y-%m-%d", "%Y%m%d", "%Y/%m/%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y")}
    for month in _MONTHS[day.month - 1 :: 12]:
        spelt |= {
            f"{day.day} {month} {day.year}",
            f"{month} {day.day}, {day.year}",
            f"{day.day} {month[:3]} {day.year}",
        }
    seconds = int(moment.timestamp())
    spelt |= {str(seconds * scale) for scale in (1, 10**3, 10**6, 10**9)}
    stored = {(seconds * scale).to_bytes(8, "little", signed=True) for scale in (1, 10**3, 10**6, 10**9)} | {
        struct.pack("<d", seconds * scale) for scale in (1, 10**3, 10**6, 10**9)
    }
    return {one.encode() for one in spelt} | {one.encode("utf-16-le") for one in spelt} | stored


class Search:
    """Finds any of the planted values.

    Parameters
    ----------
    planted
        The ways to write each value, by a name for it.
    """

    def __init__(self, planted: dict[str, Iterable[bytes]]) -> None:
        self.names = {way.lower(): name for name, ways in planted.items() for way in ways}
        short = [way for way in self.names if len(way) < 6]
        assert not short, f"too short to be unmistakable: {short}"
        self.places = 0

    @cached_property
    def _beginnings(self) -> tuple[np.ndarray, dict[bytes, list[bytes]]]:
        known, by_beginning = np.zeros(2**24, bool), {}
        for way in self.names:
            by_beginning.setdefault(way[:4], []).append(way)
            known[int.from_bytes(way[:3], "little")] = True
        return known, by_beginning

    def found_in(self, content: bytes | str, name: str = "") -> dict[str, str]:
        """Return the planted values that a content holds, packed or not, each with what is around it."""
        data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
        self.places += 1
        found: dict[str, str] = {}
        for opened in unpacked(data, name):
            for value, place in self._found(opened):
                around = opened[max(0, place - 60) : place + 60].decode("utf-8", "replace")
                found.setdefault(value, around)
        return found

    def _found(self, data: bytes) -> Iterator[tuple[str, int]]:
        low = data.lower()
        if len(low) < 4:
            return
        known, by_beginning = self._beginnings
        signs = np.frombuffer(low, np.uint8).astype(np.uint32)
        codes = signs[:-2] | signs[1:-1] << 8 | signs[2:] << 16
        for place in np.flatnonzero(known[codes]).tolist():
            for way in by_beginning.get(low[place : place + 4], ()):
                if low.startswith(way, place):
                    yield self.names[way], place


def unpacked(data: bytes, name: str = "", depth: int = 0) -> Iterator[bytes]:
    """Return a content, and whatever is packed in it."""
    yield data
    if depth > 4:
        return
    for inner in _inside(data):
        if inner and inner != data:
            yield from unpacked(inner, name, depth + 1)


def _inside(data: bytes) -> Iterator[bytes]:
    if data.startswith(b"\x1f\x8b"):
        yield gzip.decompress(data)
    elif data.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            for entry in packed.namelist():
                yield packed.read(entry)
    elif data.startswith(b"PAR1"):
        yield from _parquet(data)
    elif data.startswith(b"SQLite format 3\0"):
        yield from _sqlite(data)
    elif data[:1] == b"\x78":
        try:
            yield zlib.decompress(data)
        except zlib.error:
            return
    else:
        yield from _texts(data)


def _parquet(data: bytes) -> Iterator[bytes]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(pa.BufferReader(data))
    except pa.ArrowException:
        return
    yield table.to_pandas().to_csv(index=False).encode()
    yield b"\n".join(value for pair in (table.schema.metadata or {}).items() for value in pair)
    for column in table.columns:
        for chunk in column.chunks:
            yield from (buffer.to_pybytes() for buffer in chunk.buffers() if buffer is not None)


def _sqlite(data: bytes) -> Iterator[bytes]:
    with closing(sqlite3.connect(":memory:")) as database:
        # In the old journal's format: with a log beside it, it cannot be opened from memory.
        database.deserialize(data[:18] + b"\1\1" + data[20:])
        database.text_factory = bytes
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            for row in database.execute(f'SELECT * FROM "{table.decode()}"'):
                yield from (
                    cell for cell in row if isinstance(cell, bytes) and cell[:2] in (b"\x1f\x8b", b"\x78\x9c")
                )


def _texts(data: bytes) -> Iterator[bytes]:
    if b"base64," in data:
        for piece in re.findall(rb"base64,([A-Za-z0-9+/=\s]+)", data):
            yield base64.b64decode(piece + b"==", validate=False)
    if b"&#" in data or b"&quot;" in data or b"&amp;" in data:
        yield html.unescape(data.decode("utf-8", "replace")).encode()


def files_below(folder: Path) -> Iterator[Path]:
    """Return all plain files of a folder, at any depth."""
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())
