"""Counting on scipy's k-d tree: for few components, where nothing is compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from local_cloaking.neighbours.rule import Balls, CloserAvatars, Floats, Integers, cores, squared_distances

#: The square of a smaller radius vanishes, and with it what scipy compares.
SMALLEST_RADIUS = 1e-140

_EPSILON = float(np.finfo(np.float64).eps)


def count_by_tree(balls: Balls, avatars: Floats) -> CloserAvatars:
    """Count with radius queries a hair wider and narrower than the rule's radii.

    Where the two agree, rounding cannot matter.
    """
    from scipy.spatial import cKDTree

    order = cKDTree(balls.centres, compact_nodes=False, balanced_tree=False).indices
    balls = balls[order]  # neighbours one after the other: they visit the same nodes
    tree = cKDTree(avatars, leafsize=24, compact_nodes=True, balanced_tree=False)
    hair = (avatars.shape[1] + 16) * _EPSILON

    def within(radii: Floats, rows: Any) -> Integers:
        found = tree.query_ball_point(balls.centres[rows], radii[rows], return_length=True, workers=cores())
        return np.where(radii[rows] > 0, found, 0).astype(np.int64)

    closer, strictly = within(balls.outer * (1 + hair), ...), within(balls.inner * (1 - hair), ...)
    # Between the two bounds stands the own avatar; if nothing else does, both counts are settled.
    open_rows = np.flatnonzero((closer - strictly != 1) | (balls.outer < SMALLEST_RADIUS))
    if len(open_rows):
        unsure = within(balls.outer * (1 - hair), open_rows) != closer[open_rows]
        unsure |= within(balls.inner * (1 + hair), open_rows) != strictly[open_rows]
        unsure |= balls.outer[open_rows] < SMALLEST_RADIUS
        for row in open_rows[unsure]:
            s = squared_distances(balls.centres[row], avatars)
            closer[row] = np.count_nonzero(s <= balls.outer[row] ** 2)
            strictly[row] = np.count_nonzero(s < balls.inner[row] ** 2)
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return CloserAvatars(closer[back] - 1, strictly[back])
