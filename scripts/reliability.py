"""Fill the README's reliability table from what the tests counted: `make reliability` runs them first."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "build" / "reliability"
BEGIN, END = "<!-- reliability: make reliability writes what follows -->", "<!-- end of reliability -->"

#: Name of the files, figure, row, what became of it, which figure says so.
ROWS = (
    (
        "faults*",
        "injected",
        "faults injected, one at a time, at every read and write of a run",
        "survived",
        "ended in a failure or the right verdict, nothing half-written",
    ),
    ("fuzz*", "inputs", "inputs made up at random", "findings", "ended in a traceback, a hang or a wrong pass"),
    (
        "soak-gates",
        "at_once",
        "gates at once on one audit store",
        "verdicts",
        "left a verdict and a record of their own",
    ),
    (
        "soak-scheduler",
        "runs_in_a_row",
        "runs in a row of one scheduler",
        "runs_in_a_row",
        "with the right verdict; memory and open files did not grow",
    ),
    (
        "soak-process",
        "runs_in_a_row",
        "runs in a row in one process",
        "runs_in_a_row",
        "with the right verdict; memory and open files did not grow",
    ),
    ("secrecy*", "planted", "secrets planted in tables and connections", "found", "found in what runs leave"),
)


def table(folder: Path) -> str:
    """Return the table of the figures that lie in a folder.

    Raises
    ------
    FileNotFoundError
        If a test has left no figures: a table that lacks a row says too little.
    """
    lines = ["| what | how many | outcome |", "| --- | --- | --- |"]
    for pattern, number, what, outcome, words in ROWS:
        files = sorted(folder.glob(f"{pattern}.json"))
        if not files:
            raise FileNotFoundError(f"no figures of {pattern!r} in {folder}: run `make reliability`")
        figures = [json.loads(path.read_text()) for path in files]
        total, after = (sum(entry.get(name, 0) for entry in figures) for name in (number, outcome))
        lines.append(f"| {what} | {total:,} | {after:,} {words} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Print the table; with ``--readme``, also put it into the README."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--readme", type=Path, help="the page that has the table between its two marks")
    parser.add_argument("--figures", type=Path, default=FIGURES)
    options = parser.parse_args(arguments)
    try:
        written = table(options.figures)
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    print(written)
    if options.readme is not None:
        page, between = options.readme.read_text(), re.compile(f"(?s){re.escape(BEGIN)}.*?{re.escape(END)}")
        if not between.search(page):
            print(f"{options.readme.name} has no place for the table", file=sys.stderr)
            return 1
        options.readme.write_text(between.sub(lambda _: f"{BEGIN}\n\n{written}\n\n{END}", page))
    return 0


if __name__ == "__main__":
    sys.exit(main())
