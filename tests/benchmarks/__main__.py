"""Measure ourselves against what else a user could take: ``make bench``.

Each measurement is a process of its own, ours and the rival's in turn; the table shows the ratio of the medians,
the seconds, and the peak memory of the process with its tables. ``--scale 0.1`` takes a tenth of the rows.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.benchmarks.cases import CASES, Case


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="names of lines; all by default")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the rows")
    parser.add_argument("--repeats", type=int, help="measurements of each; by default what the line says")
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks.md"), help="where the table goes")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        _measure_here(*options.one, options.scale)
        return
    chosen = [case for case in CASES if not options.only or case.name in options.only]
    lines = [
        "| work | seconds | peak memory | rival | seconds | peak memory | ratio | reach |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    print(*lines, sep="\n", flush=True)
    for line in _lines(chosen, options):
        print(line, flush=True)
        lines.append(line)
        options.output.write_text("\n".join(lines) + "\n")


def _lines(cases: list[Case], options: argparse.Namespace) -> Iterator[str]:
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            _run(case, "make", folder, options.scale)
            ours, rivals = [], []
            for _ in range(options.repeats or case.repeats):
                ours.append(_run(case, "ours", folder, options.scale))
                rivals.append(_run(case, "rival", folder, options.scale))
        yield _line(case, ours, rivals, options.scale)


def _line(case: Case, ours: list[dict[str, float]], rivals: list[dict[str, float]], scale: float) -> str:
    mine, theirs = (statistics.median(run["seconds"] for run in runs) for runs in (ours, rivals))
    memories = (max(run["megabytes"] for run in runs) for runs in (ours, rivals))
    ratio, bound = (mine / theirs, "at most") if case.at_most else (theirs / mine, "at least")
    what = case.work if scale == 1 else f"{scale:g} of {case.work}"
    cells = [
        what,
        f"{mine:.2f}",
        f"{next(memories):,.0f} MB",
        case.rival_name,
        f"{theirs:.2f}",
        f"{next(memories):,.0f} MB",
        f"{ratio:.2f}",
        f"{bound} {case.reach:g}",
    ]
    return f"| {' | '.join(cells)} |"


def _run(case: Case, who: str, folder: str, scale: float) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.benchmarks", "--scale", str(scale), "--one", case.name, who, folder]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{case.name}, {who}: the measurement failed")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _measure_here(name: str, who: str, folder: str, scale: float) -> None:
    case = next(case for case in CASES if case.name == name)
    result: dict[str, Any] = {}
    if who == "make":
        case.make(Path(folder), scale)
    else:
        result["seconds"] = (case.ours if who == "ours" else case.rival)(Path(folder))
        result["megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(result))


if __name__ == "__main__":
    main()
