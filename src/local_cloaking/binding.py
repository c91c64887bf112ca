"""Whether coordinates that were handed over are those of the tables that they are said to be of.

Coordinates by themselves prove nothing about the table that leaves. They are bound to it where they agree, row by
row, with the principal space of the originals: the coordinates of the originals with their own rows, and those of
the avatars with the rows of the avatars' table, projected there. A space may be turned, mirrored, shifted and
scaled by one factor: none of that changes which avatar is the closer one.

So a space that is not the principal one of these originals is not believed, whoever computed it: on ACTG 175,
k = 20, an approximate decomposition of saiph gives more than 20 where the exact one gives 10.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from local_cloaking.limits import SAME_COORDINATES

Floats = NDArray[np.float64]


def binding_warnings(
    given: tuple[Floats, Floats], projected: tuple[Floats, Floats] | None, ncp: int
) -> tuple[str, ...]:
    """Say why the coordinates of originals and avatars are not bound to their tables; nothing where they are.

    Parameters
    ----------
    given
        The coordinates that were handed over, shapes (n, ncp) and (m, ncp).
    projected
        Those of the same rows in the principal space of the originals; None where the originals have none.
    ncp
        How many components there are.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(size=(50, 2)) * [2.0, 1.0]
    >>> x -= x.mean(axis=0)
    >>> turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    >>> binding_warnings((3 * x @ turn, 3 * x[::-1] @ turn), (x, x[::-1]), 2)
    ()
    >>> len(binding_warnings((x, np.zeros((50, 2))), (x, x[::-1]), 2))
    1
    """
    if projected is None:
        return (f"the originals have no principal space of {ncp} components that their coordinates could be of",)
    moved = [np.abs(rows).max(axis=1) for rows in _differences(given, projected)]
    wrong = [int(np.count_nonzero(~(rows <= SAME_COORDINATES))) for rows in moved]  # NaN is wrong, too.
    warnings = []
    if wrong[0]:
        warnings.append(
            f"the coordinates of {wrong[0]} originals are not those of their rows in the principal space of the "
            "originals"
        )
    if wrong[1]:
        warnings.append(
            f"the coordinates of {wrong[1]} avatars are not those of their rows in the principal space of the "
            "originals"
        )
    return tuple(warnings)


def _differences(given: tuple[Floats, Floats], projected: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Lay the principal space over the one handed over, and return what is left, in spreads of the originals."""
    (x, y), (own_x, own_y) = given, projected
    centre = x.mean(axis=0)
    # The orthogonal Procrustes problem: the turn from the singular vectors, the factor from the spreads.
    left, _, right = np.linalg.svd(np.nan_to_num(own_x.T @ (x - centre)))
    spread, own_spread = float(np.sqrt(np.square(x - centre).sum())), float(np.sqrt(np.square(own_x).sum()))
    if not (np.isfinite(spread) and spread > 0 and own_spread > 0):
        return np.full_like(x, np.inf), np.full_like(y, np.inf)
    turn = (left @ right) * (spread / own_spread)
    unit = spread / np.sqrt(len(x))
    return (x - centre - own_x @ turn) / unit, (y - centre - own_y @ turn) / unit
