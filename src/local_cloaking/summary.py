"""The short table that a person reads in a terminal or a task's log, made from a record."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

_COLOURS = {"passed": "green", "below_threshold": "red", "not_assessable": "red"}


def summary_rows(record: dict[str, Any], where: str | None = None) -> list[tuple[str, str]]:
    """Return the lines of the table: what it is, and its value.

    Parameters
    ----------
    record
        A record.
    where
        Where it lies, or None where it was not written.

    Examples
    --------
    >>> record = {"local_cloaking": 10.0, "hidden_rate": 93.25, "n": 2139, "ncp": 5, "k": 20, "threshold": 5.0,
    ...           "verdict": "passed", "reason": None, "remedy": "", "warnings": []}
    >>> summary_rows(record)[0]
    ('Local Cloaking', '10')
    """
    rows = [
        ("Local Cloaking", _number(record["local_cloaking"])),
        ("hidden rate", _number(record["hidden_rate"], " %")),
        ("individuals", str(record["n"])),
        ("ncp", str(record["ncp"])),
        ("k", _number(record["k"])),
        ("threshold", "not known" if record["threshold"] is None else f"{record['threshold']:.15g}"),
        *([("warns below", f"{record['warn_below']:.15g}")] if record.get("warn_below") is not None else []),
        ("verdict", str(record["verdict"] or "none: no threshold was given")),
    ]
    rows += [(name, str(record[name])) for name in ("reason", "remedy") if record[name]]
    warnings = record["warnings"] or ["none"]
    rows += [("warnings" if not i else "", str(warning)) for i, warning in enumerate(warnings)]
    if where is not None:
        rows.append(("record", where))
    return rows


def summary_table(record: dict[str, Any], where: str | None = None) -> Table:
    """Return the same as a table for a terminal."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for name, value in summary_rows(record, where):
        colour = _COLOURS.get(value, "") if name == "verdict" else ""
        # Text, not markup: names of columns may hold brackets.
        table.add_row(Text(name, style="bold"), Text(value, style=colour, overflow="fold"))
    return table


def print_summary(record: dict[str, Any], where: str | None = None) -> None:
    """Print the table to standard output: wrapped for a reader, one line an entry for a program."""
    if not sys.stdout.isatty():
        print(*(f"{name:<14}  {value}" for name, value in summary_rows(record, where)), sep="\n")
        return
    from rich.console import Console

    Console(highlight=False).print(summary_table(record, where))


def _number(value: float | None, unit: str = "") -> str:
    return "not known" if value is None else f"{round(float(value), 2):g}{unit}"
