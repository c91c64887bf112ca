"""Counting on the workers: the avatars divided in space, an original counted only where its ball touches them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from local_cloaking.distributed.distribution import Distribution
from local_cloaking.distributed.division import Box, Division, Routes, divide, route
from local_cloaking.distributed.engine import Engine, WorkerFault
from local_cloaking.neighbours import AvatarIndex, Progress, Within, different_places, pairs_of_places
from local_cloaking.neighbours.rule import Balls

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Avatars in a cell, about; few cells make few tasks, small cells fit in memory beside everything else.
CELL_AVATARS = 500_000
#: So that small tables, too, are divided, and large ones not into more tasks than a scheduler likes.
FEWEST_CELLS, MOST_CELLS = 4, 512
#: Avatars that the division is learnt from.
SAMPLE = 50_000


class Cell:
    """The avatars of a cell, prepared for counting; what was prepared is made again where it is sent."""

    def __init__(self, points: Floats) -> None:
        self.points = points
        self.index = AvatarIndex(points) if len(points) else None

    def __reduce__(self) -> tuple[Any, ...]:
        return (Cell, (self.points,))

    def __sizeof__(self) -> int:
        return 64 + 3 * int(self.points.nbytes)


@dataclass(frozen=True, repr=False)
class _Routed:
    """The different balls of a partition, how many individuals have each, and where they are counted."""

    balls: Balls
    individuals: Integers
    routes: Routes

    def __sizeof__(self) -> int:
        rows = sum(int(rows.nbytes) for rows in self.routes.visits.values())
        return 64 + rows + int(self.balls.centres.nbytes + 5 * self.balls.outer.nbytes)


class Cells:
    """All avatars, divided in space and prepared on the workers.

    Parameters
    ----------
    engine
        Where the parts lie.
    avatars
        Futures of their coordinates, one per partition.
    m
        Number of avatars.
    """

    def __init__(self, engine: Engine, avatars: Sequence[Any], m: int) -> None:
        self._engine, self._m = engine, m
        per_part = -(-SAMPLE // len(avatars))
        sample = engine.total([engine.submit(_sample, part, per_part) for part in avatars], rows_together)
        division = divide(sample, min(MOST_CELLS, max(FEWEST_CELLS, -(-m // CELL_AVATARS))))
        self._division = engine.share(division)
        splits = [engine.submit(_split_in_space, part, self._division) for part in avatars]
        self._cells = engine.shuffle(splits, division.cells, _cell, sample.shape[1])
        self._boxes = engine.add_up([engine.submit(_box, cell) for cell in self._cells], operator.add)
        boxes: list[Box] = engine.gather(self._boxes)
        if sum(box.avatars for box in boxes) != m:
            raise WorkerFault("avatars were lost or doubled between the workers: nothing was measured")

    def count(
        self, originals: Sequence[Any], own_avatars: Sequence[Any], progress: Progress | None = None
    ) -> Distribution:
        """Count the closer avatars of originals.

        Parameters
        ----------
        originals, own_avatars
            Futures of coordinates, row by row; all originals or some.
        progress
            Called now and then, with about how many originals are counted, where all are, and how many there are.
        """
        submit = self._engine.submit
        routed = [
            submit(_route, one, other, self._division, self._boxes)
            for one, other in zip(originals, own_avatars, strict=True)
        ]
        touched: list[list[int]] = self._engine.total([submit(_touched, part) for part in routed], operator.add)
        counted = []
        for part, its_cells in zip(routed, touched, strict=True):
            within = [submit(_count_in, self._cells[cell], submit(_visitors, part, cell)) for cell in its_cells]
            counted.append(submit(_distribution, part, its_cells, within))

        def told(done: int, parts: int) -> None:
            if progress is not None:
                progress(done * self._m // parts, self._m)

        distribution: Distribution = self._engine.total(counted, operator.add, told)
        return distribution


def _sample(avatars: Floats, rows: int) -> Floats:
    # Always the same: the division says nothing of anyone, but a run should be the same twice.
    chosen = np.random.default_rng(0).choice(len(avatars), min(rows, len(avatars)), replace=False)
    return avatars[chosen]


def rows_together(one: Floats, other: Floats) -> Floats:
    """Put coordinates of some rows under those of others."""
    return np.concatenate([one, other])


def _split_in_space(avatars: Floats, division: Division) -> dict[int, Floats]:
    cells = division.cells_of(avatars)
    return {int(cell): avatars[cells == cell] for cell in np.unique(cells)}


def _cell(pieces: list[Floats], components: int) -> Cell:
    return Cell(np.concatenate([np.zeros((0, components)), *pieces]))


def _box(cell: Cell) -> list[Box]:
    return [Box.around(cell.points)]


def _route(originals: Floats, own_avatars: Floats, division: Division, boxes: list[Box]) -> _Routed:
    """Find the cells of the different balls: of discrete data, there are few."""
    different = pairs_of_places(originals, different_places(own_avatars), None)
    if different is None:
        balls = Balls.around(originals, own_avatars)
        individuals = np.ones(len(balls), np.int64)
    else:
        balls = Balls.around(originals[different.rows], own_avatars[different.rows])
        individuals = np.bincount(different.of_row, minlength=len(balls)).astype(np.int64)
    return _Routed(balls, individuals, route(division, boxes, balls))


def _touched(routed: _Routed) -> list[list[int]]:
    return [sorted(routed.routes.visits)]


def _visitors(routed: _Routed, cell: int) -> Balls:
    return routed.balls[routed.routes.visits[cell]]


def _count_in(cell: Cell, balls: Balls) -> Within:
    if cell.index is None:
        return Within(np.zeros(len(balls), np.int64), np.zeros(len(balls), np.int64))
    return cell.index.within(balls)


def _distribution(routed: _Routed, cells: list[int], within: list[Within]) -> Distribution:
    outer, inner = routed.routes.outer.copy(), routed.routes.inner.copy()
    for cell, found in zip(cells, within, strict=True):
        rows = routed.routes.visits[cell]
        outer[rows] += found.outer
        inner[rows] += found.inner
    if not (outer >= 1).all():
        # The own avatar is always within its own distance.
        raise WorkerFault("an avatar was lost between the workers: nothing was measured")
    return Distribution.of(outer - 1, inner, routed.individuals)
