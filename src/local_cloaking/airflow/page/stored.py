"""Reading records and reports from the audit store, and nothing that lies outside it."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import PurePosixPath
from typing import Any

from local_cloaking.audit.index import IndexEntry, is_local

#: What the check makes of the names of DAG, run and task; neither hidden, nor a way up.
_PART = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,254}")
#: As object storage has it.
_LONGEST = 1024


class NotTheEvidenceError(Exception):
    """What lies there is not what the check wrote."""


def stored_record(root: Any, entry: IndexEntry) -> bytes:
    """Return the bytes of an entry's record.

    Raises
    ------
    FileNotFoundError
        If there is no such file in the store.
    NotTheEvidenceError
        If the file is not the one that the check wrote, or belongs to another DAG.
    """
    content = stored(root, entry.record)
    if hashlib.sha256(content).hexdigest() != entry.record_sha256 or _dag_of(content) != entry.dag_id:
        raise NotTheEvidenceError
    return content


def stored_report(root: Any, entry: IndexEntry) -> bytes:
    """Return the bytes of an entry's report; of one that was not written, drawn from the record.

    Raises
    ------
    FileNotFoundError
        If record or report are not in the store.
    NotTheEvidenceError
        If the record is not the one that the check wrote, or the report does not lie beside it.
    """
    record = stored_record(root, entry)
    if entry.report is None:
        return _drawn(record, entry.record_sha256)
    if PurePosixPath(entry.report).parent != PurePosixPath(entry.record).parent:
        raise NotTheEvidenceError
    return stored(root, entry.report)


def stored(root: Any, relative: str) -> bytes:
    """Return the bytes of a file, given by its POSIX path below the store's root.

    Raises
    ------
    FileNotFoundError
        If there is no such file, or it lies outside, be it by a link.

    Examples
    --------
    >>> from pathlib import Path
    >>> stored(Path("/tmp"), "../etc/passwd")
    Traceback (most recent call last):
        ...
    FileNotFoundError: not in the store
    """
    parts = relative.split("/")
    if len(relative) > _LONGEST or not all(_PART.fullmatch(part) for part in parts):
        raise FileNotFoundError("not in the store")
    path = root.joinpath(*parts)
    if is_local(root):
        path = path.resolve()
        if not path.is_relative_to(root.resolve()) or not path.is_file():
            raise FileNotFoundError("not in the store")
    with path.open("rb") as stream:
        content: bytes = stream.read()
    return content


def _drawn(record: bytes, sha256: str) -> bytes:
    from local_cloaking.audit.consistency import agrees_with_itself, read_record
    from local_cloaking.audit.record import RecordError
    from local_cloaking.audit.report import draw_report

    try:
        entries = read_record(record)
    except RecordError as error:
        raise NotTheEvidenceError from error
    if not agrees_with_itself(entries):
        raise NotTheEvidenceError
    return draw_report(entries, sha256=sha256)


def _dag_of(record: bytes) -> str | None:
    try:
        dag_id = json.loads(record)["judged"]["run"]["dag_id"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return dag_id if isinstance(dag_id, str) else None
