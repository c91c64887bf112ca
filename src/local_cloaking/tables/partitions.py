"""A table that lies in many Parquet files: which ones, in which order, and the hash of them all.

The hash of a folder is the SHA-256 of the JSON list of ``[name, size, sha256]`` of its partitions, in their order:
it changes with any byte of any of them, and when one comes, goes or is renamed. A single file keeps its own hash.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any
from urllib.parse import unquote

from local_cloaking.errors import InputError
from local_cloaking.storage import storage_errors

SUFFIX = ".parquet"
_CHUNK = 1 << 20
#: How other writers say that a row has no value in the column that a folder stands for.
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_OF_A_VALUE = re.compile(r"[^=._/][^=/]*=[^/]*")
#: Files without rows, by which a writer says that it is done, or checks what it wrote.
_MARK = re.compile(r"_SUCCESS|_(started|committed)_[0-9]+|\..*\.crc")


@dataclass(frozen=True)
class Partition:
    """One file of a data set, as it was when it was first read."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class DataSet:
    """Where the partitions of a table lie.

    Attributes
    ----------
    name
        Name of the folder, or of the single file, without what lies above it.
    paths
        The partitions in the order of their names; numbers in names count as numbers.
    folder
        Whether it is a folder.
    filesystem
        An fsspec file system, or None for local files.
    """

    name: str
    paths: tuple[str, ...] = field(repr=False)
    folder: bool
    filesystem: Any = field(repr=False, default=None)
    root: str = field(repr=False, default="")

    def label(self, path: str) -> str:
        """Return the name of a partition: with the folders of its own, as ``year=2026/part-0.parquet``."""
        return _slashed(path).removeprefix(_slashed(self.root)).lstrip("/") if self.folder else _name(path)

    def values(self, path: str) -> dict[str, str | None]:
        """Return what the folders of a partition say of its rows, the value being None where it is missing."""
        pairs = [part.split("=", 1) for part in self.label(path).split("/")[:-1]]
        return {unquote(name): None if value == _NO_VALUE else unquote(value) for name, value in pairs}

    def sha256(self, partitions: Iterable[Partition]) -> str:
        """Return the hash of the whole, from those of its partitions in their order."""
        listed = [[part.name, part.size, part.sha256] for part in partitions]
        if not self.folder:
            return str(listed[0][2])
        text = json.dumps(listed, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def find_partitions(place: Any, *, by_value: bool = False) -> DataSet:
    """Find the partitions of a data set.

    Parameters
    ----------
    place
        A folder of ``*.parquet`` files or one such file: a path, a URI, or an object with ``fs`` and ``path`` such
        as Airflow's ``ObjectStoragePath``. Marks of writers (``_SUCCESS``, ``_started_1``, ``_committed_1``,
        ``.part-0.parquet.crc``) are passed over.
    by_value
        Whether folders in the folder are looked into, whose names tell the value of a column: ``year=2026``.

    Raises
    ------
    InputError
        If a folder has no partition, or holds something else beside them, which nobody would measure.
    OSError
        If the place cannot be reached.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("part-10.parquet", "part-9.parquet", "_SUCCESS"):
    ...     (folder / name).touch()
    >>> [Path(path).name for path in find_partitions(folder).paths]
    ['part-9.parquet', 'part-10.parquet']
    """
    if hasattr(place, "fs") and hasattr(place, "path"):
        return _find_stored(place.fs, str(place.path), by_value=by_value)
    location = os.fspath(place)
    if "://" in location and not location.startswith("file://"):
        from fsspec.core import url_to_fs

        return _find_stored(*url_to_fs(location), by_value=by_value)
    return _find_local(Path(location.removeprefix("file://")), by_value=by_value)


def is_folder(place: Any) -> bool:
    """Tell whether a path, local or in object storage, is a folder."""
    if not hasattr(place, "is_dir"):
        return False
    with storage_errors(place.name):
        return bool(place.is_dir())


def sha256_of_folder(place: Any) -> str:
    """Return the hash of a folder of partitions, reading them piece by piece.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "part-0.parquet").write_bytes(b"PAR1")
    >>> sha256_of_folder(folder)[:8]
    '1744a952'
    """
    found = find_partitions(place, by_value=True)
    return found.sha256(_hashed(found, path) for path in found.paths)


def hashed(stream: IO[bytes]) -> tuple[int, str]:
    """Read a stream piece by piece, and return its size and its SHA-256.

    Examples
    --------
    >>> import io
    >>> hashed(io.BytesIO(b"PAR1"))[0]
    4
    """
    size, digest = 0, hashlib.sha256()
    while chunk := stream.read(_CHUNK):
        size += len(chunk)
        digest.update(chunk)
    return size, digest.hexdigest()


def read_partition(filesystem: Any, path: str) -> tuple[bytes, Partition]:
    """Read a partition once, whole, and hash the very bytes that were read."""
    data: bytes = Path(path).read_bytes() if filesystem is None else filesystem.cat_file(path)
    return data, Partition(_name(path), len(data), hashlib.sha256(data).hexdigest())


def portable(filesystem: Any) -> Any:
    """Return a file system that another process can open: with its credentials, and with nothing else of this one.

    Raises
    ------
    InputError
        If there is no such thing.
    """
    if filesystem is None:
        return None
    options = getattr(filesystem, "storage_options", {})
    if options.get("session") is not None:
        # Airflow's S3 holds a session, which drags along this process's environment.
        filesystem = type(filesystem)(**_without_session(options))
    try:
        pickle.dumps(filesystem)
    except (pickle.PicklingError, AttributeError, TypeError):
        raise InputError(
            f"the file system {type(filesystem).__name__} cannot be handed to the workers",
            remedy="give a folder that all workers share, or storage that is reached by keys",
        ) from None
    return filesystem


def _without_session(options: dict[str, Any]) -> dict[str, Any]:
    from fsspec.asyn import get_loop, sync

    session = options["session"]

    async def credentials() -> Any:
        found = await session.get_credentials()
        return None if found is None else await found.get_frozen_credentials()

    plain = {name: value for name, value in options.items() if name != "session"}
    region = session.get_config_variable("region")
    if region:
        plain["client_kwargs"] = {"region_name": region, **plain.get("client_kwargs", {})}
    keys = sync(get_loop(), credentials)
    if keys is not None:
        plain |= {"key": keys.access_key, "secret": keys.secret_key, "token": keys.token}
    return plain


def _find_local(place: Path, *, by_value: bool) -> DataSet:
    if not place.is_dir():
        with place.open("rb"):  # where it is not there, it says so
            return DataSet(place.name, (str(place.absolute()),), folder=False)

    def entries(folder: str) -> list[tuple[str, bool]]:
        return [(str(entry.absolute()), entry.is_dir()) for entry in Path(folder).iterdir()]

    root = str(place.absolute())
    paths = _ordered(_walked(entries, root, by_value=by_value), place.name, root)
    return DataSet(place.resolve().name, paths, folder=True, root=root)


def _find_stored(filesystem: Any, path: str, *, by_value: bool) -> DataSet:
    filesystem.invalidate_cache()
    path = path.rstrip("/")
    name = _name(path)
    if filesystem.info(path)["type"] != "directory":
        return DataSet(name, (path,), folder=False, filesystem=filesystem)

    def entries(folder: str) -> list[tuple[str, bool]]:
        listed = [entry for entry in filesystem.ls(folder, detail=True) if entry["name"].rstrip("/") != folder]
        return [(entry["name"].rstrip("/"), entry["type"] == "directory") for entry in listed]

    paths = _ordered(_walked(entries, path, by_value=by_value), name, path)
    return DataSet(name, paths, folder=True, filesystem=filesystem, root=path)


def _walked(
    entries: Callable[[str], list[tuple[str, bool]]], folder: str, *, by_value: bool
) -> list[tuple[str, bool]]:
    """List a folder, and in place of each folder of a value what that holds."""
    found = []
    for path, is_folder in entries(folder):
        deeper = by_value and is_folder and _OF_A_VALUE.fullmatch(_name(path))
        found += _walked(entries, path, by_value=True) if deeper else [(path, is_folder)]
    return found


def _ordered(entries: list[tuple[str, bool]], name: str, root: str) -> tuple[str, ...]:
    # Other hidden files may hold what nobody measured. A hidden folder, as that of a Delta table, says which files
    # beside it are no longer part of the table.
    seen = [(path, is_folder) for path, is_folder in entries if is_folder or not _MARK.fullmatch(_name(path))]
    other = [path for path, is_folder in seen if is_folder or _is_hidden(path) or not path.endswith(SUFFIX)]
    if other:
        raise InputError(
            f"the folder holds {len(other)} files or folders that are no *{SUFFIX}, or hidden ones",
            remedy="take them out, so that nothing leaves unmeasured",
            file=name,
        )
    if not seen:
        raise InputError(f"the folder holds no *{SUFFIX} file", remedy="name the folder of a data set", file=name)
    below = len(_slashed(root))
    return tuple(sorted((path for path, _ in seen), key=lambda path: _by_number(_slashed(path)[below:])))


def _is_hidden(path: str) -> bool:
    return _name(path).startswith(("_", "."))


def _by_number(name: str) -> tuple[list[tuple[int, str]], str]:
    parts = re.split(r"([0-9]+)", name)
    return [(int(part), "") if place % 2 else (0, part) for place, part in enumerate(parts)], name


def _name(path: str) -> str:
    return PurePosixPath(_slashed(path)).name


def _slashed(path: str) -> str:
    return path.replace(os.sep, "/")


def _hashed(found: DataSet, path: str) -> Partition:
    stream: IO[bytes]
    with Path(path).open("rb") if found.filesystem is None else found.filesystem.open(path, "rb") as stream:
        return Partition(found.label(path), *hashed(stream))
