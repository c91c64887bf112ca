"""Order statistics, division and counts over partitions, against the plain way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from local_cloaking.distributed import counting, selection
from local_cloaking.distributed.counting import Cells
from local_cloaking.distributed.distribution import Distribution
from local_cloaking.distributed.division import Box, divide, route
from local_cloaking.neighbours import count_closer_avatars
from local_cloaking.neighbours.rule import Balls


def parts_of(values: np.ndarray, parts: int) -> list[np.ndarray]:
    return [part for part in np.array_split(values, parts) if len(part)]


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(1).normal(size=1001),
        np.random.default_rng(2).normal(size=1000) * 1e300,
        np.random.default_rng(3).integers(-3, 4, 500).astype(float),
        np.array([-0.0, 0.0, 5e-324, -5e-324, 1.0]),
        np.array([7.0]),
    ],
    ids=["odd", "huge", "ties", "around zero", "one"],
)
def test_order_statistics_are_exact(values, inline):
    ordered = np.sort(values)
    ranks = sorted({0, len(values) // 3, len(values) // 2, len(values) - 1})
    parts = [{"a": np.sort(part)} for part in parts_of(values, 7)] + [{}]
    found = selection.order_statistics(inline, parts, {"a": ranks}, {"a": (ordered[0], ordered[-1])})
    assert found == {"a": {rank: ordered[rank] for rank in ranks}}


@pytest.mark.parametrize("gaps", [0, 1, 7, 50, 400])
@pytest.mark.parametrize("known", [1, 2, 9, 100])
def test_medians_and_quartiles_with_fills_are_those_of_numpy(known, gaps):
    values = np.sort(np.random.default_rng(known + gaps).integers(0, 12, known).astype(float))
    fill, rows = float(np.median(values)), known + gaps
    ranked = {rank: values[rank] for rank in selection.quartile_ranks(known, rows) | selection.median_ranks(known)}
    filled = np.concatenate([values, np.full(gaps, fill)])
    assert selection.median_of(ranked, known) == fill
    assert selection.quartiles_of(ranked, known, rows, fill) == tuple(np.quantile(filled, [0.25, 0.75]))


def near(n: int, p: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    x = rng.normal(size=(n, p)) * np.arange(p, 0, -1)
    return x, x + rng.normal(size=(n, p)) * 0.3


def far(n: int, p: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return rng.normal(size=(n, p)), rng.normal(size=(n, p))


def ties(n: int, p: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return rng.integers(0, 3, (n, p)) / 3 + 1e5, rng.integers(0, 3, (n, p)) / 3 + 1e5


def one_place(n: int, p: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return np.ones((n, p)), np.ones((n, p))


def two_places(n: int, p: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    side = rng.integers(0, 2, (n, 1)) * 10.0
    return side + rng.normal(size=(n, p)), np.where(rng.random((n, 1)) < 0.9, 0.0, 10.0) + np.zeros((n, p))


@pytest.mark.parametrize("components", [1, 3, 9])
@pytest.mark.parametrize("make", [near, far, ties, one_place, two_places])
@pytest.mark.parametrize(("parts", "cells"), [(1, 4), (5, 16), (3, 200)])
def test_counts_are_those_of_one_machine(make, components, parts, cells, inline, monkeypatch):
    rng = np.random.default_rng(components)
    x, y = make(600, components, rng)
    own = rng.permutation(600)
    monkeypatch.setattr(counting, "FEWEST_CELLS", cells)
    monkeypatch.setattr(counting, "SAMPLE", 150)
    cells_of_avatars = Cells(inline, parts_of(y, parts + 1), 600)
    found = cells_of_avatars.count(parts_of(x, parts), parts_of(y[own], parts))
    expected = count_closer_avatars(x, y, own)
    alone = Distribution.of(expected.closer, expected.strictly_closer, np.ones(600, np.int64))
    assert all(np.array_equal(getattr(found, name), getattr(alone, name)) for name in vars(alone))


def test_an_original_visits_only_the_cells_that_its_ball_touches():
    rng = np.random.default_rng(5)
    x, y = near(2000, 2, rng)
    division = divide(y, 64)
    cells = division.cells_of(y)
    boxes = [Box.around(y[cells == cell]) for cell in range(division.cells)]
    routes = route(division, boxes, Balls.around(x, y))
    visits = sum(len(rows) for rows in routes.visits.values())
    assert visits < 5 * len(x)
    wide = Balls(x, np.full(len(x), 100.0), np.full(len(x), 99.0))
    routes = route(division, boxes, wide)
    assert not routes.visits
    assert (routes.outer == len(y)).all()
    assert (routes.inner == len(y)).all()


def test_cells_hold_about_as_many_avatars_each():
    y = np.random.default_rng(6).normal(size=(4000, 3)) ** 3
    counts = np.bincount(divide(y[:1000], 16).cells_of(y))
    assert len(counts) == 16
    assert counts.max() < 2 * counts.min()


@pytest.mark.parametrize("individuals", [[1], [2, 3], [0, 4, 1], [5, 0, 0]])
def test_the_median_of_a_distribution_is_that_of_its_counts(individuals: Sequence[int]):
    values = np.arange(len(individuals)) * 3
    distribution = Distribution(values, values, np.array(individuals))
    assert distribution.median() == np.median(distribution.counts()[0])
