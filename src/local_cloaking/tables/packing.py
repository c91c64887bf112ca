"""Packed files: gzip and zstd, unpacked up to a limit that no table reaches."""

from __future__ import annotations

import gzip
import io
import zlib
from typing import Any

from local_cloaking.errors import InputError

LARGEST_UNPACKED = 8 << 30
LARGEST_RATIO = 200
SMALLEST_LIMIT = 256 << 20
_CHUNK = 1 << 20
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


def unpacked(data: bytes) -> bytes:
    """Decompress a file that is packed; return any other as it is.

    Raises
    ------
    InputError
        If it is damaged, or unpacks to more than a table could hold: a few megabytes can unpack to more than the
        memory.

    Examples
    --------
    >>> unpacked(gzip.compress(b"a,b")), unpacked(b"a,b")
    (b'a,b', b'a,b')
    """
    kind = next((kind for magic, kind in _MAGIC.items() if data.startswith(magic)), None)
    if kind is None:
        return data
    limit = largest_unpacked(len(data))
    content = _up_to(data, kind, limit + 1)
    if content is None:
        raise InputError(
            f"the {kind} file is damaged or incomplete", remedy="write it again, or hand it over unpacked"
        )
    if len(content) > limit:
        raise InputError(
            f"the {kind} file unpacks to more than {limit >> 20} MB, {LARGEST_RATIO} times its size or more",
            remedy="hand it over unpacked if it is a table",
        )
    return content


def largest_unpacked(size: int) -> int:
    """Return how many bytes a packed file of some size may hold.

    Examples
    --------
    >>> largest_unpacked(10) >> 20
    256
    """
    return min(LARGEST_UNPACKED, largest_plausible(size))


def largest_plausible(size: int) -> int:
    """Return how many bytes a file of some size may say that it unpacks to, however large it is.

    Examples
    --------
    >>> largest_plausible(100 << 30) // largest_unpacked(100 << 30)
    2500
    """
    return max(SMALLEST_LIMIT, LARGEST_RATIO * size)


def _up_to(data: bytes, kind: str, size: int) -> bytes | None:
    content, chunk = io.BytesIO(), memoryview(bytearray(_CHUNK))
    try:
        with _opened(data, kind) as file:
            # Not `read`: Arrow never gives back what that has taken for a damaged file.
            while count := file.readinto(chunk[: size - content.tell()]):
                content.write(chunk[:count])
    except (OSError, EOFError, zlib.error):
        # The bytes are in memory: an OSError speaks of their content.
        return None
    return content.getvalue()


def _opened(data: bytes, kind: str) -> Any:
    if kind == "gzip":
        return gzip.GzipFile(fileobj=io.BytesIO(data))
    import pyarrow as pa

    return pa.CompressedInputStream(pa.BufferReader(data), "zstd")
