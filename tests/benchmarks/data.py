"""The tables that are counted: coordinates of originals and avatars, the same for the same seed.

*Near*: a mixture of 12 Gaussians with decaying variance; each avatar is the weighted barycentre of its 20
nearest others, as the published algorithm draws it. *Released*: the same originals; each avatar is one of those
neighbours plus Gaussian noise of a quarter of each column's spread, as avatars stand once they are mapped back to
columns. *Discrete*: five columns of 2, 2, 2, 5 and 5 levels; avatars take another row's value in a fifth of the
cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from local_cloaking.avatarisation import random_weights

Floats = NDArray[np.float64]

K = 20
_CLUSTERS = 12
_DECAY = 0.8
_LEVELS = (2, 2, 2, 5, 5)
_PIECE = 200_000


def originals(n: int, p: int, seed: int = 0) -> Floats:
    """Shape (n, p): column k has ``_DECAY ** k`` of the first one's spread, within and between the Gaussians."""
    rng = np.random.default_rng(seed)
    spread = _DECAY ** np.arange(p)
    centres = 3.0 * rng.normal(size=(_CLUSTERS, p)) * spread
    points = rng.normal(size=(n, p)) * spread
    points += centres[rng.integers(_CLUSTERS, size=n)]
    return points


def _neighbours(x: Floats) -> Iterator[tuple[NDArray[np.int64], Floats, NDArray[np.int64]]]:
    """Yield rows, and the distances and rows of their K nearest others, piece by piece to spare memory."""
    tree = cKDTree(x)
    for start in range(0, len(x), _PIECE):
        rows = tree.indices[start : start + _PIECE]  # neighbours one after the other are found faster
        distances, found = tree.query(x[rows], k=K + 1, workers=-1)
        yield rows, distances[:, 1:], found[:, 1:]


def near(n: int, p: int, seed: int = 0) -> tuple[Floats, Floats]:
    x, rng = originals(n, p, seed), np.random.default_rng(seed + 1)
    avatars = np.empty_like(x)
    for rows, distances, neighbours in _neighbours(x):
        avatars[rows] = np.einsum("ij,ijk->ik", random_weights(distances, rng), x[neighbours])
    return x, avatars


def released(n: int, p: int, seed: int = 0) -> tuple[Floats, Floats]:
    x, rng = originals(n, p, seed), np.random.default_rng(seed + 1)
    avatars = rng.normal(size=x.shape) * x.std(axis=0) / 4
    for rows, _, neighbours in _neighbours(x):
        avatars[rows] += x[neighbours[np.arange(len(rows)), rng.integers(K, size=len(rows))]]
    return x, avatars


def discrete(n: int, seed: int = 0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.integers(levels, size=n) for levels in _LEVELS]).astype(np.float64)
    other = np.column_stack([rng.permutation(column) for column in x.T])
    return x, np.where(rng.random(x.shape) < 0.2, other, x)


def shuffled(n: int, p: int, seed: int = 0) -> tuple[Floats, Floats]:
    x, avatars = near(n, p, seed)
    return x, np.random.default_rng(seed + 2).permutation(avatars)


def mixed(n: int, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Fifteen numbers, ten categories of 2 to 6 levels, led by four hidden numbers that avatars keep nearly."""
    rng = np.random.default_rng(seed)
    hidden, loads = rng.normal(size=(n, 4)), rng.normal(size=(4, 25))
    tables = []
    for shift in (0.0, 0.1):
        seen = (hidden + shift * rng.normal(size=hidden.shape)) @ loads
        columns: dict[str, Any] = {f"number {i}": seen[:, i] for i in range(15)}
        for i in range(10):
            cuts = np.linspace(-3, 3, 3 + i % 5)[1:-1]
            words = np.array([f"level {level}" for level in range(len(cuts) + 1)], dtype=object)
            columns[f"category {i}"] = words[np.digitize(seen[:, 15 + i], cuts)]
        tables.append(pd.DataFrame(columns))
    return tables[0], tables[1]
