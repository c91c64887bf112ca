"""Writing evidence: whole or not at all, and never over another's.

Paths are local (`pathlib.Path`) or anything with the same methods, such as Airflow's ``ObjectStoragePath``.
"""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path, PosixPath, WindowsPath
from typing import Any

from local_cloaking.errors import LocalCloakingError
from local_cloaking.storage import storage_errors

#: Errors by which a file system says that it has no hard links.
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
#: Errors by which it says that a folder cannot be opened, or written through, as a file is.
_NO_FOLDER_SYNC = {
    errno.EACCES,
    errno.EBADF,
    errno.EINVAL,
    errno.EISDIR,
    errno.ENOSYS,
    errno.ENOTSUP,
    errno.EOPNOTSUPP,
    errno.EPERM,
}


class EvidenceExistsError(LocalCloakingError):
    """Evidence already lies at this path; it is not overwritten."""


def write_whole(path: Any, content: bytes, *, private: bool = False, replace: bool = False) -> None:
    """Write a file so that nobody ever sees half of it.

    Parameters
    ----------
    path
        Where to write; missing folders are made.
    content
        The bytes.
    private
        Readable by the owner alone, from the moment the file exists (local files).
    replace
        Whether a file that is already there may be replaced.

    Raises
    ------
    EvidenceExistsError
        If a file is already there and may not be replaced.
    OSError
        If the place cannot be written. Nothing is left behind.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_whole(folder / "run" / "record.json", b"{}")
    >>> (folder / "run" / "record.json").read_text()
    '{}'
    """
    if isinstance(path, PosixPath | WindowsPath):  # not Path: some versions' object-storage paths are Paths too
        _write_local(path, content, private=private, replace=replace)
        return
    with storage_errors(path.name):
        taken = not replace and path.exists()
    if taken:
        raise EvidenceExistsError(f"{path} is already there and is not overwritten")
    # An object appears when its upload is complete, not before. Not by a stream: closed by an error in the middle,
    # it would leave what came so far.
    with storage_errors(path.name):
        path.fs.pipe_file(path.path, _Unshown(content))


class _Unshown(bytes):
    """Bytes of which a log shows how many they are: at DEBUG, some versions of botocore log what they send."""

    def __repr__(self) -> str:
        return f"<{len(self)} bytes>"

    __str__ = __repr__

    def __getitem__(self, key: Any) -> Any:
        piece = super().__getitem__(key)
        return _Unshown(piece) if isinstance(piece, bytes) else piece  # Uploaded in parts.


def _write_local(path: Path, content: bytes, *, private: bool, replace: bool) -> None:
    if replace:
        path = path.resolve()  # What a link leads to is replaced, not the link.
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    try:
        # Made with owner-only rights by the standard library; widened only at the end.
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", dir=path.parent)
    except OSError as error:
        # The name that a user knows, not the one beside it.
        error.filename = str(path)
        raise
    beside = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        if not private:
            beside.chmod(0o666 & ~_umask())
        _give_name(beside, path, replace=replace)
    finally:
        beside.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _give_name(beside: Path, path: Path, *, replace: bool) -> None:
    if replace:
        beside.replace(path)
        return
    try:
        # Unlike a rename, a link never takes the place of a file that is there.
        os.link(beside, path)
    except FileExistsError as error:
        raise EvidenceExistsError(f"{path} is already there and is not overwritten") from error
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if path.exists():
            raise EvidenceExistsError(f"{path} is already there and is not overwritten") from error
        beside.replace(path)


def _umask() -> int:
    # The only way to read it is to set it; /proc tells it without that race.
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    except OSError:
        pass
    return 0o022


def _sync_folder(folder: Path) -> None:
    # So that the name survives a power cut, as the content does.
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        # A disk that fails here may have lost the name.
        if error.errno not in _NO_FOLDER_SYNC:
            raise
