r"""The rule that every method of counting keeps to, and the sum that decides in doubt.

.. math::

    s_{ij} = \sum_k (x_{ik} - y_{jk})^2, \quad d_i = \sqrt{s_{i\,a(i)}}, \quad
    r_i = d_i + \tau (|x_i| + d_i), \quad q_i = \max(0,\; d_i - \tau (|x_i| + d_i))

The columns are summed in their order in float64. Avatar *j* is **closer** when :math:`s_{ij} \le r_i^2` and
**strictly closer** when :math:`s_{ij} < q_i^2`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from local_cloaking.threads import in_threads

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Two distances that differ by less than this share of ``|x_i| + d_i`` are equal.
TIE_TOLERANCE = 1e-12

_PIECE = 8_192


@dataclass(frozen=True)
class CloserAvatars:
    """For each original, how many avatars other than its own are as near or nearer than its own.

    Attributes
    ----------
    closer
        int64, shape (n,): avatars at most as far away as the own one, ties included.
    strictly_closer
        int64, shape (n,): avatars nearer than the own one, ties left out.
    """

    closer: Integers
    strictly_closer: Integers


def squared_distances(x: Floats, y: Floats) -> Floats:
    """Sum the squared differences over the last axis, one column after the other: the s_ij of the rule."""
    total = np.zeros(np.broadcast_shapes(x.shape, y.shape)[:-1])
    for column in range(x.shape[-1]):
        difference = x[..., column] - y[..., column]
        total += difference * difference
    return total


def squared_lengths(x: Floats) -> Floats:
    """Sum the squares over the last axis, in the same way."""
    return squared_distances(x, np.zeros(x.shape[-1]))


def corner_sums(centres: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Sum, in the same way, for the corner of each box nearest to each original, and for the farthest.

    Rounding keeps the order of such sums: no avatar in a box has a smaller sum than the nearest corner, nor a
    larger one than the farthest.

    Parameters
    ----------
    centres
        Coordinates of originals, shape (n, p).
    low, high
        The least and the greatest corners of the boxes, shape (boxes, p).

    Returns
    -------
    nearest, farthest
        Shape (n, boxes).

    Examples
    --------
    >>> nearest, farthest = corner_sums(np.array([[0.0]]), np.array([[-1.0], [2.0]]), np.array([[1.0], [3.0]]))
    >>> nearest.tolist(), farthest.tolist()
    ([[0.0, 4.0]], [[1.0, 9.0]])
    """
    nearest, farthest = np.zeros((len(centres), len(low))), np.zeros((len(centres), len(low)))
    for column in range(centres.shape[1]):
        above, below = centres[:, column, None] - low[:, column], high[:, column] - centres[:, column, None]
        nearest += np.minimum(np.minimum(above, below), 0.0) ** 2
        farthest += np.maximum(above, below) ** 2
    return nearest, farthest


@dataclass(frozen=True)
class Balls:
    """Originals with the two radii of the rule: ``outer`` is r_i and ``inner`` is q_i; shapes (n, p) and (n,)."""

    centres: Floats
    outer: Floats
    inner: Floats

    @classmethod
    def around(cls, x: Floats, avatars: Floats, own: Integers | None = None) -> Balls:
        """Return the balls of originals that reach to ``avatars[own[i]]``, by default to ``avatars[i]``."""
        outer, inner = np.empty(len(x)), np.empty(len(x))

        def fill(rows: slice) -> None:
            centres, own_avatars = x[rows], avatars[rows] if own is None else avatars[own[rows]]
            distance = np.sqrt(squared_distances(centres, own_avatars))
            slack = TIE_TOLERANCE * (np.sqrt(squared_lengths(centres)) + distance)
            outer[rows], inner[rows] = distance + slack, np.maximum(0.0, distance - slack)

        # Piece by piece: what a piece needs stays in a core's cache.
        in_threads(fill, len(x), _PIECE)
        return cls(x, outer, inner)

    def __len__(self) -> int:
        return len(self.centres)

    def __getitem__(self, rows: Any) -> Balls:
        return Balls(self.centres[rows], self.outer[rows], self.inner[rows])


@dataclass(frozen=True)
class Within:
    """For each ball, how many avatars stand within its radii, the own one among them.

    Attributes
    ----------
    outer
        int64, shape (n,): avatars with s_ij at most r_i^2.
    inner
        int64, shape (n,): avatars with s_ij below q_i^2.
    """

    outer: Integers
    inner: Integers
