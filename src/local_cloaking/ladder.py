"""Local Cloaking over the number of components: how much the figure depends on that choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from local_cloaking.limits import LADDER_SAMPLE, LADDER_SAMPLED_ROWS
from local_cloaking.neighbours import AvatarIndex, Balls
from local_cloaking.rows import fixed_sample

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Ladder:
    """Local Cloaking in the first component, in the first two, and so on.

    Attributes
    ----------
    individuals
        Originals whose counts the medians are taken of: all of them, or a sample.
    rungs
        Local Cloaking for ncp = 1, 2, ...; None where a cut after that component is arbitrary.
    """

    individuals: int
    rungs: tuple[float | None, ...]

    @classmethod
    def of(cls, within: Integers, cuts: Sequence[bool], known: dict[int, float]) -> Ladder:
        """Take the medians of what was counted, see `within_on_rungs`; figures known already stay as they are."""
        measured = {ncp: float(np.median(row - 1)) for ncp, row in enumerate(within, start=1)}
        figures = {**measured, **known}
        return cls(
            individuals=within.shape[1],
            rungs=tuple(figures[ncp] if possible else None for ncp, possible in enumerate(cuts, start=1)),
        )


def within_on_rungs(originals: Floats, own: Floats, avatars: Floats, wanted: Sequence[bool]) -> Integers:
    """Count the avatars within the ball around each original that reaches to its own avatar.

    Parameters
    ----------
    originals, own
        Coordinates of some originals and of their own avatars, shapes (s, p).
    avatars
        Coordinates of all avatars, or of a part of them, shape (m, p): counts of parts add up.
    wanted
        For each number of components from 1 on, whether to count.

    Returns
    -------
    int64 array, a row for each number of components, shape (len(wanted), s); the own avatar is counted, too. Rows
    that are not wanted are 0.

    Examples
    --------
    >>> x, y = np.array([[0.0, 0.0]]), np.array([[1.0, 5.0]])
    >>> within_on_rungs(x, y, np.array([[1.0, 5.0], [2.0, 0.0]]), [True, True])
    array([[1],
           [2]])
    """
    within = np.zeros((len(wanted), len(originals)), np.int64)
    for ncp in (ncp for ncp, is_wanted in enumerate(wanted, start=1) if is_wanted and len(avatars)):
        x, y, z = (np.ascontiguousarray(points[:, :ncp]) for points in (originals, own, avatars))
        within[ncp - 1] = AvatarIndex(z).within(Balls.around(x, y)).outer
    return within


def measure_ladder(
    originals: Floats, avatars: Floats, own: Integers, cuts: Sequence[bool], known: dict[int, float]
) -> Ladder:
    """Measure Local Cloaking for each number of components.

    Parameters
    ----------
    originals, avatars
        Coordinates, shapes (n, p) and (m, p).
    own
        Row of each original's own avatar.
    cuts
        For each number of components from 1 on, whether there is such a space; see `FAMD.cuts`.
    known
        Figures that were measured already, by their number of components; taken as they are.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(size=(50, 3))
    >>> ladder = measure_ladder(x, x + rng.normal(size=(50, 3)), np.arange(50), [True, False, True], {3: 7.0})
    >>> ladder.individuals, ladder.rungs[1:]
    (50, (None, 7.0))
    """
    rows = ladder_sample(len(originals))
    within = within_on_rungs(originals[rows], avatars[own[rows]], avatars, unknown(cuts, known))
    return Ladder.of(within, cuts, known)


def unknown(cuts: Sequence[bool], known: dict[int, float]) -> list[bool]:
    """Tell for which numbers of components there is a figure still to be measured.

    Examples
    --------
    >>> unknown([True, False, True], {3: 7.0})
    [True, False, False]
    """
    return [possible and ncp not in known for ncp, possible in enumerate(cuts, start=1)]


def ladder_sample(n: int) -> Integers:
    """Return the rows of the originals that are counted: all, or always the same of so many.

    Examples
    --------
    >>> len(ladder_sample(300)), len(ladder_sample(10**9))
    (300, 2000)
    """
    return np.arange(n) if n < LADDER_SAMPLED_ROWS else fixed_sample(n, LADDER_SAMPLE)
