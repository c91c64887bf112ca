"""Bytes as a table: measured against a second one, or refused in words. Never another figure than theirs."""

from __future__ import annotations

import csv
import gzip
import io
import math
import random
import re
import statistics
import zlib
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from local_cloaking.errors import LocalCloakingError
from local_cloaking.gate import judge
from local_cloaking.measuring import Inputs, measure_files
from local_cloaking.metric import local_cloaking
from local_cloaking.projection import FAMD
from local_cloaking.tables import read_pair
from local_cloaking.tables.csv_columns import MISSING
from local_cloaking.tables.packing import unpacked

#: As many rows as the tables of the corpus have: what stays like them is measured.
OTHER = (
    b"age,weight,arm\n41,70.5,a\n39,61.25,b\n55,80.75,a\n47,66.5,b\n62,91.25,c\n33,58.5,a\n"
    b"29,72.75,c\n51,77.5,b\n44,69.25,a\n58,85.5,c\n36,63.75,b\n49,74.25,a\n"
)
#: Measuring takes fifty times as long as reading: one of so many tables that were read is measured.
_MEASURED = 16
#: ... and of those, one of so many by the whole of what the command line does, with the gate.
_WHOLE = 8
_EXCEL_HINT = re.compile(r'\A"?sep=[\t!#-~ ]"?\r?\n', re.IGNORECASE)


class Bytes:
    """A file that is never written."""

    name = "table"

    def __init__(self, data: bytes) -> None:
        self._data = data

    def open(self, mode: str) -> Any:
        return io.BytesIO(self._data)


def prepare() -> None:
    """Import what is imported late."""
    import local_cloaking.audit.consistency
    import local_cloaking.tables.feather
    import local_cloaking.tables.fingerprint
    import local_cloaking.tables.partitions
    import local_cloaking.tables.statistical  # noqa: F401

    _measure_all(Bytes(OTHER), Bytes(OTHER))


def once(data: bytes) -> None:
    number = zlib.crc32(data)
    pair = (Bytes(OTHER), Bytes(data)) if number % 2 else (Bytes(data), Bytes(OTHER))
    try:
        originals, avatars = read_pair(*pair)
        thrown = avatars if number % 2 else originals
        assert str(thrown.source)
        if thrown.source is not None and thrown.source.format == "csv":
            _same_cells(data, thrown.frame, thrown.source)
        if number // 2 % _MEASURED:
            return
        if number // 16 % _WHOLE:
            _measure(originals.frame, avatars.frame)
        else:
            _measure_all(*pair)
    except LocalCloakingError as refusal:
        text = str(refusal)
        assert text
        assert len(text) < 20_000


def _same_cells(data: bytes, frame: pd.DataFrame, source: Any) -> None:
    """Compare numbers with those that Python's own reader finds: a table read wrongly can pass wrongly."""
    text = unpacked(data).decode(source.encoding).removeprefix("\ufeff")
    text = _EXCEL_HINT.sub("", text)
    if source.separator is None:
        # An empty line is a row of one missing cell, but at the end.
        text = text.rstrip("\r\n")
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=source.separator or "\x1f")
    cells = [row for row in rows if row or source.separator is None]
    start = next(place for place, row in enumerate(cells) if row)
    body = cells[start + 1 :]
    assert len(body) == len(frame), "rows were lost"
    for place, name in enumerate(frame.columns):
        if frame[name].dtype.kind in "if":
            _same_numbers([row[place] if row else "" for row in body], frame[name], source.decimal)


def _same_numbers(cells: list[str], column: pd.Series[Any], decimal: str) -> None:
    for cell, number in zip(cells, column, strict=True):
        if cell.strip() in MISSING:
            assert math.isnan(number), "a missing cell became a number"
        elif not (decimal == "," and "." in cell) and not (decimal == "." and "," in cell):
            told = int(cell) if column.dtype.kind == "i" else float(cell.replace(",", "."))
            assert told == number, "a number was read as another"


def _measure(originals: pd.DataFrame, avatars: pd.DataFrame) -> None:
    result = local_cloaking(originals, avatars, ncp=2)
    assert result.n == len(originals) == len(avatars)
    if len(result.counts):
        _same_counts(originals, avatars, result)


def _same_counts(originals: pd.DataFrame, avatars: pd.DataFrame, result: Any) -> None:
    """Count again, one pair after the other; what ties may be counted or not."""
    famd = FAMD(2)
    x, y = famd.fit_transform(originals), famd.transform(avatars)
    low, high = [], []
    for i, point in enumerate(x):
        own = math.dist(point, y[i])
        close = 1e-6 * (1.0 + own + float(np.abs(point).max()))
        others = [math.dist(point, other) for j, other in enumerate(y) if j != i]
        low.append(sum(distance < own - close for distance in others))
        high.append(sum(distance <= own + close for distance in others))
    assert all(a <= c <= b for a, c, b in zip(low, result.counts, high, strict=True)), "other counts"
    assert statistics.median(low) <= result.median <= statistics.median(high), "another median"


def _measure_all(originals: Any, avatars: Any) -> None:
    from local_cloaking.audit.consistency import agrees_with_itself
    from local_cloaking.audit.record import build_record, peers_in, to_bytes

    measured = measure_files(
        Inputs(originals, avatars), ncp=2, groups=("arm",), min_group_size=5, remediation=True
    )
    result = measured.result
    judgement = judge(
        result.counts, individuals=result.n, threshold=1, reason=result.reason, peers=peers_in(measured.entries)
    )
    record = build_record(
        measured.entries, result.counts, judgement, judged={"at": measured.entries["measured_at"]}
    )
    assert agrees_with_itself(record)
    assert to_bytes(record)
    if judgement.verdict == "passed":
        assert result.reason is None
        assert statistics.median(result.counts.tolist()) >= 1
        assert len(result.counts) == result.n


# What changes CSV ------------------------------------------------------------------------------------------------

CELLS = (
    *(
        "",
        "NA",
        "nan",
        "NaN",
        "null",
        "inf",
        "-inf",
        "0",
        "-0",
        "+1",
        "1e308",
        "1e400",
        "-1e-400",
        "9" * 18,
        "9" * 30,
    ),
    *(
        "1,5",
        "1.5",
        "1.234",
        "1.234,5",
        "1,234.5",
        "1 234",
        "1_000",
        "0x10",
        "007",
        "٣",
        "½",
        "1e5",
        ".5",
        "5.",
        "--1",
    ),
    *("01/02/2020", "13/02/2020", "02/13/2020", "2020-02-30", "2020-02-29", "0001-01-01", "9999-12-31", "24:00"),
    *("2020-01-01T00:00:00Z", "2020-01-01 00:00:00+14:00", "2020-01-01T00:00:00.123456789", "31/12/99"),
    *(
        "true",
        "FALSE",
        "yes",
        "a",
        "b",
        "c",
        "é",
        "\u00a0",
        "\u2028",
        "\ufeff",
        "\u202e",
        "😀",
        "\\N",
        "None",
        "#N/A",
    ),
    *(
        '"',
        '""',
        '"a"',
        '"a,b"',
        '"a\nb"',
        '"a""b"',
        'a"b',
        "'a'",
        "a\tb",
        "a;b",
        "a|b",
        "=1+1",
        "\x00",
        "\x85",
        " 1 ",
    ),
)
_SEPARATORS = ",;\t|"
_ENDS = ("\n", "\r\n", "\r", "\n\n")
_ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252", "latin-1", "utf-32")


def mutate_csv(data: bytes, rng: random.Random) -> bytes:
    """Change lines and cells; change how all of it is written."""
    if data[:2] == b"\x1f\x8b" or data[:4] == b"\x28\xb5\x2f\xfd":
        if rng.random() < 0.3:
            return _bitten(data, rng)
        data = _unpacked(data)
    lines = data.decode("utf-8", "replace").split("\n")
    for _ in range(rng.randint(1, 3)):
        rng.choice((_cell, _cell, _cell, _column, _line, _name))(lines, rng)
    return _written("\n".join(lines), rng)


def _written(text: str, rng: random.Random) -> bytes:
    if rng.random() < 0.1:
        text = text.replace(rng.choice(_SEPARATORS), rng.choice(_SEPARATORS))
    if rng.random() < 0.1:
        text = text.replace(".", ",") if ";" in text else text.replace("\n", rng.choice(_ENDS))
    if rng.random() < 0.03:
        text = rng.choice(("sep=;\n", "sep=,\n", '"sep=|"\r\n', "\n\n", "\ufeff", " ")) + text
    data = text.encode(rng.choice(_ENCODINGS) if rng.random() < 0.1 else "utf-8", "replace")
    return _packed(data, rng) if rng.random() < 0.05 else data


def _cell(lines: list[str], rng: random.Random) -> None:
    place = rng.randrange(len(lines))
    separator = max(_SEPARATORS, key=lines[0].count)
    cells = lines[place].split(separator)
    cells[rng.randrange(len(cells))] = rng.choice(CELLS)
    lines[place] = separator.join(cells)


def _column(lines: list[str], rng: random.Random) -> None:
    """Write one column in another way."""
    separator = max(_SEPARATORS, key=lines[0].count)
    some = rng.sample(CELLS, rng.randint(1, 4))
    column = rng.randrange(lines[0].count(separator) + 2)
    for place, line in enumerate(lines):
        cells = line.split(separator)
        if place and line and column <= len(cells):
            cells[column : column + 1] = [rng.choice(some)]
            lines[place] = separator.join(cells)
        elif line and column == len(cells):
            lines[place] = separator.join([*cells, rng.choice(("new", "date", "1", ""))])


def _line(lines: list[str], rng: random.Random) -> None:
    place = rng.randrange(len(lines))
    if rng.random() < 0.5:
        lines.insert(place, lines[rng.randrange(len(lines))])
    elif len(lines) > 1:
        del lines[place]


def _name(lines: list[str], rng: random.Random) -> None:
    separator = max(_SEPARATORS, key=lines[0].count)
    names = lines[0].split(separator)
    names[rng.randrange(len(names))] = rng.choice((*CELLS, "age", "weight", "arm", "x" * 300))
    lines[0] = separator.join(names)


def _packed(data: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.5:
        return gzip.compress(data, mtime=0)
    return pa.Codec("zstd").compress(data, asbytes=True)


def _unpacked(data: bytes) -> bytes:
    try:
        return unpacked(data)
    except LocalCloakingError:
        return data


def _bitten(data: bytes, rng: random.Random, start: int = 0, end: int | None = None) -> bytes:
    """Change some bytes, or cut."""
    changed = bytearray(data)
    end = len(changed) if end is None else end
    if end <= start:
        return data
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
        place = rng.randrange(start, end)
        way = rng.random()
        if way < 0.4:
            changed[place] = rng.randrange(256)
        elif way < 0.6:
            changed[place] ^= 1 << rng.randrange(8)
        elif way < 0.8:
            changed[place] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
        else:
            size = rng.choice((2, 4, 8))
            number = rng.choice((0, 1, -1, 2**31 - 1, -(2**31), 2**62, 10**9, rng.randrange(256)))
            raw = (number % (1 << 8 * size)).to_bytes(size, "little")
            changed[place : min(place + size, end)] = raw[: end - place]
    return bytes(changed)


# What changes Parquet and Arrow ------------------------------------------------------------------------------

_VALUES: dict[Any, Any] = {
    pa.float64(): lambda rng: rng.choice((1.5, -2.25, 1e300, float("nan"), float("inf"), rng.gauss(0, 1))),
    pa.float32(): lambda rng: rng.gauss(0, 1),
    pa.float16(): lambda rng: np.float16(rng.gauss(0, 1)),
    pa.int64(): lambda rng: rng.choice((0, -1, 2**53 + 1, 2**63 - 1, rng.randrange(100))),
    pa.uint64(): lambda rng: rng.choice((2**64 - 1, rng.randrange(100))),
    pa.int8(): lambda rng: rng.randrange(-128, 128),
    pa.bool_(): lambda rng: rng.random() < 0.5,
    pa.string(): lambda rng: rng.choice("abc"),
    pa.large_string(): lambda rng: rng.choice("abc"),
    pa.binary(): lambda rng: rng.choice((b"a", b"\xff")),
    pa.date32(): lambda rng: rng.randrange(-10000, 30000),
    pa.timestamp("ns"): lambda rng: rng.randrange(2**62),
    pa.timestamp("s", "Europe/Paris"): lambda rng: rng.choice((2**40, rng.randrange(2**31))),
    pa.decimal128(9, 2): lambda rng: pa.scalar(rng.randrange(10000)).cast(pa.decimal128(21, 2)).as_py(),
    pa.dictionary(pa.int8(), pa.string()): lambda rng: rng.choice("abc"),
    pa.list_(pa.int64()): lambda rng: [1] * rng.randrange(3),
    pa.null(): lambda rng: None,
    pa.duration("s"): lambda rng: rng.randrange(100),
}
_ENCODED = (
    "PLAIN",
    "RLE",
    "DELTA_BINARY_PACKED",
    "BYTE_STREAM_SPLIT",
    "DELTA_BYTE_ARRAY",
    "DELTA_LENGTH_BYTE_ARRAY",
)


def mutate_parquet(data: bytes, rng: random.Random) -> bytes:
    """Write another file; bite into the footer, its length being right, or into the pages."""
    way = rng.random()
    if way < 0.1:
        return new_file(rng)
    if data[:4] == b"PAR1" and len(data) > 12 and way < 0.9:
        footer = min(int.from_bytes(data[-8:-4], "little"), len(data) - 12)
        start = len(data) - 8 - footer
        if way < 0.5:
            return _bitten(data, rng, start, len(data) - 8)
        if way < 0.75:
            return _bitten(data, rng, 4, start)
        changed = _resized(data[start:-8], rng)
        return data[:start] + changed + len(changed).to_bytes(4, "little") + b"PAR1"
    return _packed(data, rng) if way > 0.97 else _bitten(data, rng)


mutate_statistical = _bitten


def _resized(footer: bytes, rng: random.Random) -> bytes:
    """Put in what Thrift reads as a number, or take something out."""
    place = rng.randrange(len(footer) + 1)
    if rng.random() < 0.5:
        return footer[:place] + footer[place + rng.randint(1, 8) :]
    number, varint = rng.choice((1, 10**9, 2**31, 2**62, rng.randrange(1 << 20))), b""
    while number >= 0x80:
        varint += bytes([number & 0x7F | 0x80])
        number >>= 7
    varint += bytes([number])
    return footer[:place] + varint + footer[place + (len(varint) if rng.random() < 0.5 else 1) :]


def new_file(rng: random.Random) -> bytes:
    """Write a small table as Parquet or Arrow, of the types and in the ways that there are."""
    rows = rng.choice((12, 12, 12, 1, 0, 40))
    names = rng.sample(("age", "weight", "arm", "date", "é", "a.b", "__index_level_0__"), rng.randint(1, 5))
    if rng.random() < 0.5:
        table = pa.table(
            {
                "age": pa.array(
                    [rng.randrange(20, 90) for _ in range(rows)], rng.choice((pa.int64(), pa.int16()))
                ),
                "weight": pa.array(
                    [rng.gauss(70, 9) for _ in range(rows)], rng.choice((pa.float64(), pa.float32()))
                ),
                "arm": pa.array([rng.choice("abc") for _ in range(rows)]),
            }
        )
    else:
        table = pa.table({name: _column_of(rng.choice(list(_VALUES)), rows, rng) for name in names})
    sink = io.BytesIO()
    try:
        _write(table, sink, rng)
    except (pa.ArrowException, OSError):  # No such encoding for such a type.
        sink = io.BytesIO()
        pq.write_table(table.select([]), sink)
    return sink.getvalue()


def _column_of(kind: Any, rows: int, rng: random.Random) -> Any:
    values = [None if rng.random() < 0.1 else _VALUES[kind](rng) for _ in range(rows)]
    return pa.array(values, kind)


def _write(table: Any, sink: Any, rng: random.Random) -> None:
    way = rng.random()
    if way < 0.2:
        pa.feather.write_feather(table, sink, compression=rng.choice(("uncompressed", "lz4", "zstd")))
    elif way < 0.3:
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=rng.choice((5, 100)))
    else:
        dictionary = rng.random() < 0.5
        pq.write_table(
            table,
            sink,
            compression=rng.choice(("none", "snappy", "gzip", "brotli", "zstd", "lz4")),
            use_dictionary=dictionary,
            column_encoding=None if dictionary or rng.random() < 0.3 else rng.choice(_ENCODED),
            data_page_version=rng.choice(("1.0", "2.0")),
            version=rng.choice(("1.0", "2.4", "2.6")),
            row_group_size=rng.choice((5, 100)),
            write_statistics=rng.random() < 0.5,
            store_schema=rng.random() < 0.5,
            write_page_checksum=rng.random() < 0.2,
        )


def kept_tables(rng: random.Random) -> list[bytes]:
    """Return some files to begin with."""
    return [new_file(rng) for _ in range(40)]


__all__ = ["mutate_csv", "mutate_parquet", "mutate_statistical", "once"]
