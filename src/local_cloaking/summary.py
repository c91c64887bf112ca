"""The short table that a person reads in a terminal or a task's log, made from a record or an advice."""

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


def advice_lines(advice: dict[str, Any], where: str | None = None) -> list[str]:
    r"""Return the lines that tell of the values of k that were tried: a table, and what follows from it.

    Parameters
    ----------
    advice
        As `local_cloaking.audit.advice` writes it down.
    where
        Where it lies, or None where it was not written.

    Examples
    --------
    >>> tried = {"k": 10, "local_cloaking": 6.0, "hidden_rate": 91.0, "moved": 0.25, "reaches": True,
    ...          "trials": [{"local_cloaking": 6.0}]}
    >>> advice = {"k": 10, "threshold": 5.0, "margin": 0.0, "seeds": [1], "ncp": 5, "n": 200, "reason": None,
    ...           "warnings": [], "tried": [tried]}
    >>> print(*advice_lines(advice)[:2], sep="\n")
        k  Local Cloaking  hidden rate   moved  reaches  each seed
       10               6         91 %   0.250      yes  6
    """
    lines = [f"{'k':>5}  Local Cloaking  hidden rate   moved  reaches  each seed"]
    for tried in advice["tried"]:
        seeds = " ".join(_number(trial["local_cloaking"]) for trial in tried["trials"])
        lines.append(
            f"{tried['k']:>5}  {_number(tried['local_cloaking']):>14}  {_number(tried['hidden_rate'], ' %'):>11}  "
            f"{tried['moved']:>6.3f}  {'yes' if tried['reaches'] else 'no':>7}  {seeds}"
        )
    rows = [
        ("k", "none" if advice["k"] is None else str(advice["k"])),
        ("threshold", f"{advice['threshold']:.15g}"),
        ("margin", f"{advice['margin']:.15g}"),
        ("seeds", ", ".join(str(seed) for seed in advice["seeds"])),
        ("ncp", str(advice["ncp"])),
        ("individuals", str(advice["n"])),
        *([("reason", advice["reason"])] if advice["reason"] else []),
    ]
    warnings = advice["warnings"] or ["none"]
    rows += [("warnings" if not i else "", warning) for i, warning in enumerate(warnings)]
    if where is not None:
        rows.append(("written to", where))
    return [*lines, "", *(f"{name:<14}  {value}" for name, value in rows)]


def _number(value: float | None, unit: str = "") -> str:
    return "not known" if value is None else f"{round(float(value), 2):g}{unit}"
