"""Tables for these tests, whole and in partitions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from local_cloaking.measuring import Inputs, Measured, measure_files


@dataclass
class Both:
    """Originals and avatars, each as one file and as a folder of partitions."""

    files: Inputs
    folders: Inputs


def write_parts(frame: pd.DataFrame, folder: Path, cuts: Sequence[int]) -> Path:
    """Write a table in partitions that end before these rows, with the marks that other writers leave."""
    folder.mkdir(parents=True)
    edges = [0, *cuts, len(frame)]
    for number, (start, end) in enumerate(itertools.pairwise(edges)):
        frame.iloc[start:end].to_parquet(folder / f"part.{number}.parquet", index=False)
    (folder / "_SUCCESS").touch()
    return folder


def write_both(originals: pd.DataFrame, avatars: pd.DataFrame, folder: Path) -> Both:
    """Write both tables, in partitions of unlike sizes."""
    n, m = len(originals), len(avatars)
    originals.to_parquet(folder / "originals.parquet", index=False)
    avatars.to_parquet(folder / "avatars.parquet", index=False)
    return Both(
        Inputs(folder / "originals.parquet", folder / "avatars.parquet"),
        Inputs(
            write_parts(originals, folder / "originals", sorted({n // 4, n // 2})),
            write_parts(avatars, folder / "avatars", sorted({m // 3, m - m // 9})),
        ),
    )


def measured_both(both: Both, scheduler: str, **options: Any) -> tuple[Measured, Measured]:
    """Measure on one machine and on the cluster."""
    from local_cloaking.distributed import measure_partitions

    here = measure_files(both.files, **options)
    return here, measure_partitions(both.folders, scheduler=scheduler, **options)


def mixed(n: int = 300, seed: int = 0) -> pd.DataFrame:
    """Numbers, categories, truth values and dates, some missing."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)).round(3), columns=["a", "b", "c"])
    frame["size"] = rng.integers(150, 200, n)
    frame["arm"] = rng.choice(["placebo", "low", "high"], n)
    frame["smokes"] = rng.random(n) < 0.3
    frame["born"] = pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.integers(0, 20_000, n), unit="D")
    frame.loc[rng.random(n) < 0.03, "b"] = np.nan
    frame.loc[rng.random(n) < 0.02, "arm"] = None
    return frame


def noisy(originals: pd.DataFrame, share: float = 0.3, seed: int = 1) -> pd.DataFrame:
    """Stand-ins for avatars: numbers with noise, every fifth category that of somebody else."""
    rng = np.random.default_rng(seed)
    made = {}
    for name, series in originals.items():
        if series.dtype.kind == "f":
            made[name] = series + rng.normal(size=len(series)) * share * series.std()
        elif series.dtype.kind == "i":
            made[name] = (series + rng.integers(-3, 4, len(series))).clip(series.min(), series.max())
        else:
            others = series.sample(frac=1, random_state=seed).set_axis(series.index)
            made[name] = series.where(rng.random(len(series)) > 0.2, others)
    return pd.DataFrame(made)
