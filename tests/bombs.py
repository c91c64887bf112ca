"""Files that are small, or claim more than they hold, and would take all memory or time of whoever trusts them."""

from __future__ import annotations

import gzip
import io

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

_ROWS = 123_456


def long_line() -> bytes:
    return b"a,b\n1," + b"x" * 100_000_000 + b"\n2,3\n"


def many_columns() -> bytes:
    names = ",".join(f"c{place}" for place in range(1_000_000))
    return f"{names}\n{'1,' * 999_999}1\n".encode()


def gzip_bomb() -> bytes:
    # Two of them one after the other are one file; each is of a hundred kilobytes.
    return gzip.compress(b"a,b\n" + b"1,2\n" * 25_000_000) * 3


def zstd_bomb() -> bytes:
    return bytes(pa.Codec("zstd").compress(b"a,b\n" + b"1,2\n" * 75_000_000, asbytes=True))


def parquet_of_a_billion_rows() -> bytes:
    """A file of some rows whose footer says that they are a billion."""
    data = _parquet(pa.table({"a": pa.array([1.0] * _ROWS)}), "zstd")
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = data[start:-8].replace(_varint(2 * _ROWS), _varint(2 * 2_000_000_000))
    return data[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def parquet_of_one_long_text() -> bytes:
    return _parquet(pa.table({"a": pa.array(["x" * 1_500_000_000], pa.large_string())}), "zstd")


def parquet_of_many_columns() -> bytes:
    return _parquet(pa.table({f"c{place}": [1] for place in range(30_000)}), "zstd")


def feather_of_one_long_text() -> bytes:
    sink = io.BytesIO()
    table = pa.table({"a": pa.array(["x" * 1_500_000_000], pa.large_string())})
    pa.feather.write_feather(table, sink, compression="zstd")
    return sink.getvalue()


def _parquet(table: pa.Table, compression: str) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, compression=compression)
    return sink.getvalue()


def _varint(number: int) -> bytes:
    digits = []
    while number >= 0x80:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*digits, number])
