"""What is done in the process of a task before it begins: here, so that nothing else is imported for it."""

from __future__ import annotations

from tests.faults.made import N

#: So few rows at a time that a table of a database comes in several answers.
CHUNK_ROWS = N // 4


def ask_only_twice() -> None:
    """Let a request to object storage that failed be made once more, not five times with pauses."""
    import s3fs

    s3fs.S3FileSystem.retries = s3fs.S3File.retries = 2


def few_rows_at_a_time() -> None:
    """Read a table of a database in several pieces."""
    from local_cloaking.tables import sql

    sql.CHUNK_ROWS = CHUNK_ROWS
