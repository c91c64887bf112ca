"""Counting on scipy's k-d tree: for few components, where nothing is compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from local_cloaking.neighbours.rule import Balls, Floats, Integers, Within, squared_distances
from local_cloaking.threads import Progress, cores

#: The square of a smaller radius vanishes, and with it what scipy compares.
SMALLEST_RADIUS = 1e-140

_EPSILON = float(np.finfo(np.float64).eps)
_PIECE = 16_384


class ScipyTree:
    """Avatars on scipy's k-d tree.

    Parameters
    ----------
    avatars
        Coordinates, shape (m, p), m at least 1: each counts as often as it stands there.
    """

    def __init__(self, avatars: Floats) -> None:
        from scipy.spatial import cKDTree

        self._avatars = avatars
        self._tree = cKDTree(avatars, leafsize=24, compact_nodes=True, balanced_tree=False)
        self._hair = (avatars.shape[1] + 16) * _EPSILON

    def within(self, balls: Balls, progress: Progress | None = None) -> Within:
        """Count with radius queries a hair wider and narrower than the rule's radii.

        Where the two agree, rounding cannot matter.
        """
        from scipy.spatial import cKDTree

        # Neighbours one after the other: they visit the same nodes.
        order = cKDTree(balls.centres, compact_nodes=False, balanced_tree=False).indices
        found = Within(np.empty(len(balls), np.int64), np.empty(len(balls), np.int64))
        for start in range(0, len(balls), _PIECE):
            rows = order[start : start + _PIECE]
            found.outer[rows], found.inner[rows] = self._count(balls[rows])
            if progress is not None:
                progress(start + len(rows), len(balls))
        return found

    def _count(self, balls: Balls) -> tuple[Integers, Integers]:
        hair = self._hair
        outer = self._inside(balls, balls.outer * (1 + hair))
        inner = self._inside(balls, balls.inner * (1 - hair))
        # Between the two bounds stands the own avatar; if nothing else does, both counts are settled.
        open_rows = np.flatnonzero((outer - inner != 1) | (balls.outer < SMALLEST_RADIUS))
        some = balls[open_rows]
        unsure = self._inside(some, some.outer * (1 - hair)) != outer[open_rows]
        unsure |= self._inside(some, some.inner * (1 + hair)) != inner[open_rows]
        unsure |= some.outer < SMALLEST_RADIUS
        for row in open_rows[unsure]:
            s = squared_distances(balls.centres[row], self._avatars)
            outer[row] = np.count_nonzero(s <= balls.outer[row] ** 2)
            inner[row] = np.count_nonzero(s < balls.inner[row] ** 2)
        return outer, inner

    def _inside(self, balls: Balls, radii: NDArray[Any]) -> Integers:
        if not len(balls):
            return np.zeros(0, np.int64)
        found = self._tree.query_ball_point(balls.centres, radii, return_length=True, workers=cores())
        return np.where(radii > 0, found, 0).astype(np.int64)
