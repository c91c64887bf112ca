"""Print the constraints with which this package is added to an image that has Airflow already.

What the image brings is Airflow's affair: its distributions stay as they are, and what they need is changed only
where this package cannot do with it. All else is what constraints.txt says. Only the standard library is used:
the script runs inside the image, before anything is installed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import distributions
from pathlib import Path


def canonical(name: str) -> str:
    """Return the one name of a distribution that may be written in several ways."""
    return re.sub(r"[-_.]+", "-", name).lower()


def image_constraints(pins: Iterable[str], installed: Mapping[str, str]) -> list[str]:
    """Return constraints: Airflow's distributions as installed, and the pins of what is not installed.

    ``installed`` has a version for each canonical name.
    """
    of_airflow = [
        f"{name}=={version}"
        for name, version in sorted(installed.items())
        if name == "apache-airflow" or name.startswith("apache-airflow-")
    ]
    lines = (line.strip() for line in pins)
    others = [line for line in lines if line and canonical(re.split(r"[=;\[ ]", line)[0]) not in installed]
    return of_airflow + others


def main() -> int:
    """Read the file that is named, look at what is installed, and print."""
    if len(sys.argv) != 2:
        print("usage: image_constraints.py CONSTRAINTS", file=sys.stderr)
        return 2
    installed = {canonical(found.metadata["Name"]): found.version for found in distributions()}
    print(*image_constraints(Path(sys.argv[1]).read_text().splitlines(), installed), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
