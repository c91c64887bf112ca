r"""The rule that every method of counting keeps to, and the sum that decides in doubt.

.. math::

    s_{ij} = \sum_k (x_{ik} - y_{jk})^2, \quad d_i = \sqrt{s_{i\,a(i)}}, \quad
    r_i = d_i + \tau (|x_i| + d_i), \quad q_i = \max(0,\; d_i - \tau (|x_i| + d_i))

The columns are summed in their order in float64. Avatar *j* is **closer** when :math:`s_{ij} \le r_i^2` and
**strictly closer** when :math:`s_{ij} < q_i^2`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Two distances that differ by less than this share of ``|x_i| + d_i`` are equal.
TIE_TOLERANCE = 1e-12


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


@dataclass(frozen=True)
class Balls:
    """Originals with the two radii of the rule: ``outer`` is r_i and ``inner`` is q_i; shapes (n, p) and (n,)."""

    centres: Floats
    outer: Floats
    inner: Floats

    @classmethod
    def around(cls, x: Floats, own_avatars: Floats) -> Balls:
        """Return the balls of originals whose own avatars are given row by row."""
        distance = np.sqrt(squared_distances(x, own_avatars))
        slack = TIE_TOLERANCE * (np.sqrt(squared_distances(x, np.zeros_like(x))) + distance)
        return cls(x, distance + slack, np.maximum(0.0, distance - slack))

    def __len__(self) -> int:
        return len(self.centres)

    def __getitem__(self, rows: Any) -> Balls:
        return Balls(self.centres[rows], self.outer[rows], self.inner[rows])


def in_threads(work: Callable[[slice], Any], rows: int, step: int) -> list[Any]:
    """Do the work on slices of so many rows each, on all cores; the results come in the order of the rows."""
    with ThreadPoolExecutor(cores()) as pool:
        return list(pool.map(work, [slice(start, start + step) for start in range(0, rows, step)]))


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
