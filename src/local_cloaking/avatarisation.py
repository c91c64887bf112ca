r"""The published avatarisation, for demonstrations and for choosing k.

Each original is projected; its avatar is a random barycentre of its k nearest other originals in the first
``ncp`` components, mapped back to the original columns.

References
----------
Guillaudeux, M. et al. (2023). Patient-centric synthetic data generation, no reason to risk re-identification
in biomedical data analysis. npj Digital Medicine 6, 37. doi:10.1038/s41746-023-00771-5
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from local_cloaking.errors import InputError
from local_cloaking.projection import FAMD
from local_cloaking.whole import whole_number

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Avatarisation:
    """Avatars, row by row those of the originals, and the projection they were made in."""

    avatars: pd.DataFrame
    projection: FAMD


def avatarise(
    originals: pd.DataFrame,
    *,
    k: int = 20,
    ncp: int = 5,
    seed: int | None = None,
    categorical: Collection[str] | None = None,
) -> pd.DataFrame:
    """Make one avatar per original.

    Parameters
    ----------
    originals
        One row per individual, without key.
    k
        Number of neighbours that each avatar draws on, 1 to n - 1. More neighbours hide better.
    ncp
        Number of components in which neighbours are sought and barycentres taken.
    seed
        Seed of the random weights; None for different avatars each time.
    categorical
        Columns to treat as categories whatever their type.

    Returns
    -------
    A table with the columns, order and types of the originals; row i is the avatar of original i, so shuffle
    it before it leaves. Missing numbers come out filled.

    Raises
    ------
    InputError
        If k or ``ncp`` do not fit the table, or a column has no usable role.

    Examples
    --------
    >>> originals = pd.DataFrame({"age": range(20, 60), "dose": [d % 7 for d in range(40)]})
    >>> avatarise(originals, k=5, ncp=2, seed=1).shape
    (40, 2)
    """
    return avatarise_in_space(originals, k=k, ncp=ncp, seed=seed, categorical=categorical).avatars


def avatarise_in_space(
    originals: pd.DataFrame,
    *,
    k: int = 20,
    ncp: int = 5,
    seed: int | None = None,
    categorical: Collection[str] | None = None,
    key: str | None = None,
) -> Avatarisation:
    """Make avatars as `avatarise` does, and keep the projection to hand it to the measure.

    With ``key``, a column that pairs the tables, each avatar carries the key of its original: it is needed to
    measure, and must be taken out before the avatars leave.

    Examples
    --------
    >>> originals = pd.DataFrame({"age": range(20, 60), "dose": [d % 7 for d in range(40)]})
    >>> made = avatarise_in_space(originals, k=5, ncp=2, seed=1)
    >>> made.projection.n_components
    2
    """
    neighbours_wanted = checked_k(k, len(originals))
    rng = np.random.default_rng(checked_seed(seed))
    if key is not None and key not in originals.columns:
        raise InputError("the key is not in the originals", column=key, remedy="correct `key`")
    measured = originals if key is None else originals.drop(columns=key)
    projection = FAMD(ncp, categorical)
    coordinates = projection.fit_transform(measured)
    neighbours, distances = _nearest_others(coordinates, neighbours_wanted)
    weights = random_weights(distances, rng)
    barycentres = np.zeros_like(coordinates)
    for rank in range(neighbours_wanted):
        barycentres += weights[:, rank, None] * coordinates[neighbours[:, rank]]
    avatars = projection.inverse_transform(barycentres).set_axis(measured.columns, axis="columns")
    if key is not None:
        avatars.insert(list(originals.columns).index(key), key, originals[key].to_numpy())
    return Avatarisation(avatars, projection)


def checked_k(k: Any, n: int) -> int:
    """Return k as an int.

    Raises
    ------
    InputError
        If it is not a whole number from 1 to n - 1.

    Examples
    --------
    >>> checked_k("20", 100)
    20
    """
    number = whole_number(k)
    if number is None or not 1 <= number <= n - 1:
        raise InputError(
            f"k is not a whole number from 1 to {n - 1}, the number of other originals",
            remedy="give the number of neighbours that an avatar draws on",
        )
    return number


def checked_seed(seed: Any) -> int | None:
    """Return the seed as an int, or None for other avatars each time.

    Raises
    ------
    InputError
        If it is not a whole number of at least 0.

    Examples
    --------
    >>> checked_seed("7")
    7
    """
    if seed is None:
        return None
    number = whole_number(seed)
    if number is None or number < 0:
        raise InputError("the seed is not a whole number of at least 0", remedy="give one, or leave it out")
    return number


def _nearest_others(coordinates: Floats, k: int) -> tuple[Integers, Floats]:
    from scipy.spatial import cKDTree

    distances, rows = cKDTree(coordinates).query(coordinates, k=k + 1, workers=-1)
    itself = rows == np.arange(len(rows))[:, None]
    # Among more than k copies of it, a row may not find itself: then the farthest is one too many.
    itself[~itself.any(axis=1), -1] = True
    others = ~itself
    return rows[others].reshape(-1, k), distances[others].reshape(-1, k)


def random_weights(distances: Floats, rng: np.random.Generator) -> Floats:
    """Weights P_j = (1/d_j) R_j C_j, R_j ~ Exp(1), C_j = 1/2^r, r a random permutation of 1..k; sum 1."""
    n, k = distances.shape
    ranks = rng.permuted(np.tile(np.arange(1.0, k + 1), (n, 1)), axis=1)
    # As shares of the largest one: where all neighbours stand in the same place, 1/d would overflow.
    largest = distances.max(axis=1, keepdims=True)
    relative = np.divide(distances, largest, out=np.zeros_like(distances), where=largest > 0)
    # A neighbour in the same place weighs infinitely more than the others; so much more is enough.
    weights: Floats = rng.exponential(size=(n, k)) * 0.5**ranks / np.maximum(relative, 1e-12)
    total: Floats = weights.sum(axis=1, keepdims=True)
    return weights / total
