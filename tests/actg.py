"""The table of ACTG 175, from the file that lifelines ships; the package itself is not imported."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pandas as pd
import pytest

CATEGORIES = [
    "hemo", "homo", "drugs", "karnof", "oprior", "z30", "zprior", "race", "gender", "str2", "strat", "symptom",
    "treat", "offtrt", "r", "cens", "arms",
]  # fmt: skip


def actg175() -> pd.DataFrame:
    """Return 2,139 patients, 26 columns: without lifelines' row number and the patients' numbers."""
    package = importlib.util.find_spec("lifelines")
    if package is None or package.origin is None:
        pytest.skip("lifelines, which ships the table of ACTG 175, is not installed (extra `demo`)")
    table = pd.read_csv(Path(package.origin).parent / "datasets" / "ACTG175.csv")
    return table.drop(columns=[table.columns[0], "pidnum"])
