"""The lines of the benchmark: what is done, against whom, on which table."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.benchmarks import data

Floats = NDArray[np.float64]
#: Does the work on the tables in a folder, and returns the seconds it took, or would take for all rows.
Contender = Callable[[Path], float]


@dataclass(frozen=True)
class Case:
    """One line: ``ours`` against ``rival``, both on tables that ``make`` writes into a folder.

    Attributes
    ----------
    reach
        What the ratio rival/ours should reach (``at least``), or ours/rival stay below (``at most``).
    repeats
        How often each is measured, alternating.
    """

    name: str
    work: str
    rival_name: str
    make: Callable[[Path, float], None]
    ours: Contender
    rival: Contender
    reach: float
    at_most: bool = False
    repeats: int = 3


def _seconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _coordinates(tables: dict[str, Callable[[float], tuple[Floats, Floats]]]) -> Callable[[Path, float], None]:
    def write(folder: Path, scale: float) -> None:
        for name, make in tables.items():
            x, y = make(scale)
            np.save(folder / f"{name}-originals.npy", x)
            np.save(folder / f"{name}-avatars.npy", y)

    return write


def _load(folder: Path, name: str) -> tuple[Floats, Floats]:
    return np.load(folder / f"{name}-originals.npy"), np.load(folder / f"{name}-avatars.npy")


def _radii(x: Floats, y: Floats) -> Floats:
    return np.sqrt(((x - y) ** 2).sum(axis=1))


def _sample(n: int, size: int) -> NDArray[np.int64]:
    return np.random.default_rng(1).permutation(n)[:size]


def counting(name: str, method: Any = None) -> Contender:
    def work(folder: Path) -> float:
        from local_cloaking.neighbours import COMPILED_MIN_AVATARS, count_closer_avatars

        small = np.random.default_rng(0).normal(size=(COMPILED_MIN_AVATARS, 2))
        count_closer_avatars(small, small, method=method)  # imports, and what is compiled, are not counting
        x, y = _load(folder, name)
        return _seconds(lambda: count_closer_avatars(x, y, method=method))

    return work


def sklearn_tree(name: str) -> Contender:
    def work(folder: Path) -> float:
        from sklearn.neighbors import KDTree

        x, y = _load(folder, name)
        return _seconds(lambda: KDTree(y).query_radius(x, _radii(x, y), count_only=True))

    return work


def scipy_tree(name: str, sample: int | None = None) -> Contender:
    def work(folder: Path) -> float:
        from scipy.spatial import cKDTree

        x, y = _load(folder, name)
        rows: Any = slice(None) if sample is None else _sample(len(x), sample)
        tree: list[Any] = []
        building = _seconds(lambda: tree.append(cKDTree(y)))
        asking = _seconds(
            lambda: tree[0].query_ball_point(x[rows], _radii(x, y)[rows], return_length=True, workers=-1)
        )
        return building + asking * (1 if sample is None else len(x) / len(rows))

    return work


def sklearn_chunks(name: str, sample: int) -> Contender:
    def work(folder: Path) -> float:
        from sklearn.metrics import pairwise_distances_chunked

        x, y = _load(folder, name)
        rows = _sample(len(x), sample)
        radii = _radii(x, y)[rows]

        def count() -> None:
            start = 0
            for distances in pairwise_distances_chunked(x[rows], y):
                (distances <= radii[start : start + len(distances), None]).sum(axis=1)
                start += len(distances)

        return _seconds(count) * len(x) / len(rows)

    return work


def measuring(name: str) -> Contender:
    """The whole measure of tables of numbers, in memory: projection, counting, safeguards."""

    def work(folder: Path) -> float:
        import pandas as pd

        from local_cloaking import local_cloaking
        from local_cloaking.neighbours import COMPILED_MIN_AVATARS

        small = pd.DataFrame(np.random.default_rng(0).normal(size=(COMPILED_MIN_AVATARS, 5)))
        local_cloaking(small, small)
        x, y = (pd.DataFrame(table) for table in _load(folder, name))
        return _seconds(lambda: local_cloaking(x, y))

    return work


def measuring_files(folder: Path) -> float:
    """``local-cloaking measure`` from its start to the verdict, without the time in which it counted."""
    from typer.testing import CliRunner

    from local_cloaking import metric, neighbours

    spent: list[float] = []
    for name in ("all", "some", "__init__"):
        inner = getattr(neighbours.CloserAvatarCounter, name)

        def timed(*args: Any, inner: Any = inner, **kwargs: Any) -> Any:
            started = time.perf_counter()
            try:
                return inner(*args, **kwargs)
            finally:
                spent.append(time.perf_counter() - started)

        setattr(metric.CloserAvatarCounter, name, timed)
    from local_cloaking.cli import app

    tables = [str(folder / "originals.parquet"), str(folder / "avatars.parquet")]
    started = time.perf_counter()
    result = CliRunner().invoke(app, ["measure", *tables, "--threshold", "1"])
    total = time.perf_counter() - started
    if result.exit_code != 0:
        raise RuntimeError(result.output)
    return total - sum(spent)


def saiph_alone(folder: Path) -> float:
    import pandas as pd
    import saiph

    originals, avatars = (pd.read_parquet(folder / f"{name}.parquet") for name in ("originals", "avatars"))

    def work() -> None:
        model = saiph.fit(originals)
        saiph.transform(originals, model)
        saiph.transform(avatars, model)

    return _seconds(work)


def _mixed_files(folder: Path, scale: float) -> None:
    originals, avatars = data.mixed(int(1_000_000 * scale))
    originals.to_parquet(folder / "originals.parquet", index=False)
    avatars.to_parquet(folder / "avatars.parquet", index=False)


def _near(n: int, p: int) -> Callable[[float], tuple[Floats, Floats]]:
    return lambda scale: data.near(int(n * scale), p)


def _released(n: int, p: int) -> Callable[[float], tuple[Floats, Floats]]:
    return lambda scale: data.released(int(n * scale), p)


CASES = (
    Case(
        "near-100k",
        "100,000 x 5 near",
        "scikit-learn KDTree.query_radius",
        _coordinates({"t": _near(100_000, 5)}),
        counting("t"),
        sklearn_tree("t"),
        3,
        repeats=5,
    ),
    Case(
        "near-1m",
        "1,000,000 x 5 near",
        "scipy query_ball_point",
        _coordinates({"t": _near(1_000_000, 5)}),
        counting("t"),
        scipy_tree("t"),
        2,
    ),
    Case(
        "released-300k",
        "300,000 x 5 released",
        "scipy query_ball_point",
        _coordinates({"t": _released(300_000, 5)}),
        counting("t"),
        scipy_tree("t"),
        3,
    ),
    Case(
        "released-1m",
        "1,000,000 x 5 released",
        "scipy, 10,000 rows scaled up",
        _coordinates({"t": _released(1_000_000, 5)}),
        counting("t"),
        scipy_tree("t", 10_000),
        3,
    ),
    Case(
        "near-100k-20",
        "100,000 x 20 near",
        "scikit-learn KDTree.query_radius",
        _coordinates({"t": _near(100_000, 20)}),
        counting("t"),
        sklearn_tree("t"),
        5,
    ),
    Case(
        "near-50k-50",
        "50,000 x 50 near",
        "scikit-learn pairwise_distances_chunked, 5,000 rows scaled up",
        _coordinates({"t": _near(50_000, 50)}),
        counting("t"),
        sklearn_chunks("t", 5_000),
        5,
    ),
    Case(
        "discrete-1m",
        "1,000,000 x 5 discrete",
        "1,000,000 x 5 near",
        _coordinates({"t": lambda scale: data.discrete(int(1_000_000 * scale)), "near": _near(1_000_000, 5)}),
        counting("t"),
        counting("near"),
        1.5,
        at_most=True,
    ),
    Case(
        "shuffled-1m",
        "1,000,000 x 5 near, shuffled: whole measure",
        "the same, honest",
        _coordinates({"t": lambda scale: data.shuffled(int(1_000_000 * scale), 5), "near": _near(1_000_000, 5)}),
        measuring("t"),
        measuring("near"),
        1,
        at_most=True,
    ),
    Case(
        "files-1m",
        "measure of 1,000,000 rows, 15 numeric and 10 categorical columns, without counting",
        "saiph's exact fit and two transforms",
        _mixed_files,
        measuring_files,
        saiph_alone,
        1,
    ),
    Case(
        "near-10m",
        "10,000,000 x 5 near",
        "1,000,000 x 5 near",
        _coordinates({"t": _near(10_000_000, 5), "near": _near(1_000_000, 5)}),
        counting("t"),
        counting("near"),
        15,
        at_most=True,
    ),
    Case(
        "plain-near-100k",
        "100,000 x 5 near, without numba",
        "scikit-learn KDTree.query_radius",
        _coordinates({"t": _near(100_000, 5)}),
        counting("t", "tree"),
        sklearn_tree("t"),
        1,
    ),
    Case(
        "plain-near-50k-50",
        "50,000 x 50 near, without numba",
        "scikit-learn pairwise_distances_chunked, 5,000 rows scaled up",
        _coordinates({"t": _near(50_000, 50)}),
        counting("t", "blocks"),
        sklearn_chunks("t", 5_000),
        5,
    ),
)
