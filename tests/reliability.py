"""Figures of the README's reliability table: written by the tests that count them, read by `make reliability`."""

from __future__ import annotations

import json
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "build" / "reliability"


def note_figures(name: str, **figures: int | float) -> None:
    """Keep the figures of a test that has passed, in the place of those it wrote before.

    Parameters
    ----------
    name
        Of the row in the table, such as ``faults-local``.
    figures
        What was counted, such as ``injected=412, survived=412``.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(figures, indent=2) + "\n")
