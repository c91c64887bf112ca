"""The space divided into cells that hold about as many avatars each, and which cells a ball touches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from local_cloaking.neighbours.rule import Balls, corner_sums

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Cut:
    """A cell, or a cut of the space in two: at most ``bound`` in this column, or more."""

    cell: int | None = None
    column: int = 0
    bound: float = 0.0
    below: Cut | None = None
    above: Cut | None = None


@dataclass(frozen=True)
class Division:
    """A division of the space, with the number of its cells."""

    root: Cut
    cells: int

    def cells_of(self, points: Floats) -> Integers:
        """Return the cell of each point, shape (m,)."""
        found = np.zeros(len(points), np.int64)
        waiting = [(self.root, np.arange(len(points)))]
        while waiting:
            cut, rows = waiting.pop()
            if cut.below is None or cut.above is None:
                found[rows] = cut.cell or 0
                continue
            below = points[rows, cut.column] <= cut.bound
            waiting += [(cut.below, rows[below]), (cut.above, rows[~below])]
        return found


def divide(sample: Floats, cells: int) -> Division:
    """Divide the space so that each cell holds about as many points of a sample.

    Points in one place fall into one cell, so that there may be fewer cells.

    Parameters
    ----------
    sample
        Coordinates, shape (s, p).
    cells
        How many cells are wanted.

    Examples
    --------
    >>> division = divide(np.arange(8.0)[:, None], 4)
    >>> division.cells_of(np.arange(8.0)[:, None]).tolist()
    [0, 0, 1, 1, 2, 2, 3, 3]
    """
    numbers = iter(range(cells))
    root = _cut(sample, cells, numbers)
    return Division(root, next(numbers, cells))


def _cut(points: Floats, cells: int, numbers: Iterator[int]) -> Cut:
    spread = np.ptp(points, axis=0) if len(points) else np.zeros(1)
    column = int(np.argmax(spread))
    if cells == 1 or spread[column] <= 0:
        return Cut(cell=next(numbers))
    values = np.sort(points[:, column])
    bound = values[(len(values) - 1) * (cells // 2) // cells]
    if bound == values[-1]:
        bound = values[np.searchsorted(values, bound) - 1]
    below = points[:, column] <= bound
    return Cut(
        column=column,
        bound=float(bound),
        below=_cut(points[below], cells // 2, numbers),
        above=_cut(points[~below], cells - cells // 2, numbers),
    )


@dataclass(frozen=True)
class Box:
    """Where the avatars of a cell, or of several, stand: how many, and the corners of the space that they fill."""

    avatars: int
    low: Floats
    high: Floats

    @classmethod
    def around(cls, points: Floats) -> Box:
        """Return the box of points, shape (m, p); of none, one that no ball touches."""
        if not len(points):
            return cls(0, np.full(points.shape[1], np.inf), np.full(points.shape[1], -np.inf))
        return cls(len(points), points.min(axis=0), points.max(axis=0))

    def __add__(self, other: Box) -> Box:
        return Box(
            self.avatars + other.avatars, np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        )


@dataclass(frozen=True)
class Routes:
    """Where balls must be counted, and what is known without.

    Attributes
    ----------
    outer, inner
        int64, shape (n,): avatars of cells that lie wholly within a ball's radii.
    visits
        For each cell that some balls' bounds run through, the rows of these balls.
    """

    outer: Integers
    inner: Integers
    visits: dict[int, Integers]


def route(division: Division, boxes: Sequence[Box], balls: Balls) -> Routes:
    """Find the cells that each ball touches.

    A box is judged by the sum of the rule itself; see `local_cloaking.neighbours.rule.corner_sums`.

    Parameters
    ----------
    division
        The cells.
    boxes
        Of the avatars of each cell.
    balls
        The balls.
    """
    routes = Routes(np.zeros(len(balls), np.int64), np.zeros(len(balls), np.int64), {})
    around = {id(cut): box for cut, box in _boxes(division.root, boxes)}
    outer_square, inner_square = balls.outer**2, balls.inner**2
    waiting = [(division.root, np.arange(len(balls)))]
    while waiting:
        cut, rows = waiting.pop()
        box = around[id(cut)]
        if not box.avatars or not len(rows):
            continue
        sums = corner_sums(balls.centres[rows], box.low[None], box.high[None])
        nearest, farthest = (of_box[:, 0] for of_box in sums)
        touched = nearest <= outer_square[rows]
        within = farthest < inner_square[rows]
        whole = touched & (farthest <= outer_square[rows]) & (within | (nearest >= inner_square[rows]))
        routes.outer[rows[whole]] += box.avatars
        routes.inner[rows[whole & within]] += box.avatars
        crossed = rows[touched & ~whole]
        if cut.below is not None and cut.above is not None:
            waiting += [(cut.below, crossed), (cut.above, crossed)]
        elif len(crossed) and cut.cell is not None:
            routes.visits[cut.cell] = crossed
    return routes


def _boxes(cut: Cut, boxes: Sequence[Box]) -> list[tuple[Cut, Box]]:
    """Return the box of each cut, that of the root first."""
    if cut.below is None or cut.above is None:
        return [(cut, boxes[cut.cell or 0])]
    below, above = _boxes(cut.below, boxes), _boxes(cut.above, boxes)
    return [(cut, below[0][1] + above[0][1]), *below, *above]
