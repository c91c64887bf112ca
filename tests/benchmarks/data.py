"""The tables that are counted: coordinates of originals and avatars, the same for the same seed.

*Near*: a mixture of 12 Gaussians with decaying variance; each avatar is the weighted barycentre of its 20
nearest others, as the published algorithm draws it. *Released*: the same originals; each avatar is one of those
neighbours plus Gaussian noise of a quarter of each column's spread, as avatars stand once they are mapped back to
columns. *Discrete*: five columns of 2, 2, 2, 5 and 5 levels; avatars take another row's value in a fifth of the
cells.
"""

from __future__ import annotations

import numpy as np
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


def near(n: int, p: int, seed: int = 0) -> tuple[Floats, Floats]:
    x = originals(n, p, seed)
    tree, rng = cKDTree(x), np.random.default_rng(seed + 1)
    avatars = np.empty_like(x)
    # Piece by piece: the distances to 20 neighbours take four times the memory of the coordinates.
    for start in range(0, n, _PIECE):
        piece = slice(start, start + _PIECE)
        distances, rows = tree.query(x[piece], k=K + 1, workers=-1)
        weights = random_weights(distances[:, 1:], rng)
        avatars[piece] = np.einsum("ij,ijk->ik", weights, x[rows[:, 1:]])
    return x, avatars


def released(n: int, p: int, seed: int = 0) -> tuple[Floats, Floats]:
    x = originals(n, p, seed)
    tree, rng = cKDTree(x), np.random.default_rng(seed + 1)
    rows = np.concatenate(
        [tree.query(x[start : start + _PIECE], k=K + 1, workers=-1)[1] for start in range(0, n, _PIECE)]
    )
    chosen = rows[np.arange(n), rng.integers(1, K + 1, size=n)]
    return x, x[chosen] + rng.normal(size=x.shape) * x.std(axis=0) / 4


def discrete(n: int, seed: int = 0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.integers(levels, size=n) for levels in _LEVELS]).astype(np.float64)
    other = np.column_stack([rng.permutation(column) for column in x.T])
    return x, np.where(rng.random(x.shape) < 0.2, other, x)


def shuffled(n: int, p: int, seed: int = 0) -> tuple[Floats, Floats]:
    x, avatars = near(n, p, seed)
    return x, np.random.default_rng(seed + 2).permutation(avatars)
