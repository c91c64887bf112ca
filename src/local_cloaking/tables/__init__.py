"""Tables: reading files, column roles, missing values, writing."""

from __future__ import annotations

from local_cloaking.tables.files import (
    CsvOptions,
    SourceFile,
    Table,
    read_bytes,
    read_pair,
    read_table,
    rows_sha256_of,
    sha256_of,
)
from local_cloaking.tables.writing import checked_format, table_bytes

__all__ = [
    "CsvOptions",
    "SourceFile",
    "Table",
    "checked_format",
    "read_bytes",
    "read_pair",
    "read_table",
    "rows_sha256_of",
    "sha256_of",
    "table_bytes",
]
