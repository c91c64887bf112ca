"""Tables of real people, as lifelines and scikit-learn ship them; lifelines itself is not imported."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

CATEGORIES = [
    "hemo", "homo", "drugs", "karnof", "oprior", "z30", "zprior", "race", "gender", "str2", "strat", "symptom",
    "treat", "offtrt", "r", "cens", "arms",
]  # fmt: skip


def actg175() -> pd.DataFrame:
    """Return 2,139 patients of ACTG 175, 26 columns: without lifelines' row number and the patients' numbers."""
    table = _of_lifelines("ACTG175.csv")
    return table.drop(columns=[table.columns[0], "pidnum"])


def lung_cancer() -> pd.DataFrame:
    """Return 228 patients with advanced lung cancer, cells missing in six of ten columns."""
    return _of_lifelines("lung.csv")


def breast_cancer() -> pd.DataFrame:
    """Return the 569 patients of scikit-learn's table, with what was found."""
    datasets = pytest.importorskip("sklearn.datasets")
    loaded = datasets.load_breast_cancer(as_frame=True)
    return loaded.data.assign(diagnosis=np.where(loaded.target == 1, "benign", "malignant"))


def _of_lifelines(name: str) -> pd.DataFrame:
    package = importlib.util.find_spec("lifelines")
    if package is None or package.origin is None:
        pytest.skip(f"lifelines, which ships {name}, is not installed (extra `demo`)")
    return pd.read_csv(Path(package.origin).parent / "datasets" / name)
