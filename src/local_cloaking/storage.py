"""What goes wrong in object storage, told alike whichever package opens it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any

from local_cloaking.errors import LocalCloakingError


@contextmanager
def storage_errors(name: str) -> Iterator[None]:
    """Turn whatever a package for object storage raises into an OSError: the place may be reached later.

    Raises
    ------
    ConnectionError
        Where it was no OSError already.
    """
    try:
        yield
    except (OSError, LocalCloakingError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 (packages for storage raise anything)
        # Without what it says, which may hold more than the name of the place, also in a log.
        raise ConnectionError(f"{name}: the storage cannot be reached ({type(error).__name__})") from None


def read_whole(place: Any) -> bytes:
    """Return what lies at a place: a path, or what has the same methods, such as Airflow's ``ObjectStoragePath``.

    Raises
    ------
    OSError
        If it cannot be read; see `storage_errors`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> place = Path(tempfile.mkdtemp()) / "record.json"
    >>> _ = place.write_bytes(b"{}")
    >>> read_whole(place)
    b'{}'
    """
    with storage_errors(PurePosixPath(place.name).name), place.open("rb") as stream:
        return bytes(stream.read())
