"""Pairing on the workers: by row order, the avatars cut like the originals; by key, a shuffle join."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from local_cloaking.distributed.engine import Engine
from local_cloaking.distributed.parts import Part, together
from local_cloaking.pairing import SortedRun, refuse_keys, refuse_unequal, refuse_unpaired

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """A table on the workers: futures of `Part`, in its order, and how many rows each has."""

    parts: Sequence[Any]
    counts: Sequence[int]


@dataclass(frozen=True)
class Pairs:
    """All originals, and row by row their avatars, which are all avatars: futures of `Part`, as many of each."""

    originals: list[Any]
    avatars: list[Any]


def pair_by_order(engine: Engine, one: Rows, other: Rows) -> Pairs:
    """Pair row by row.

    Parameters
    ----------
    engine
        Where the parts lie.
    one, other
        The originals and the avatars.

    Raises
    ------
    InputError
        If the tables have different numbers of rows.
    """
    refuse_unequal(sum(one.counts), sum(other.counts))
    ends, starts = np.cumsum(one.counts).tolist(), [0, *np.cumsum(other.counts).tolist()]
    own_avatars = []
    for count, end in zip(one.counts, ends, strict=True):
        pieces, cuts, whole = [], [], []
        for place, part in enumerate(other.parts):
            first, last = max(end - count, starts[place]), min(end, starts[place + 1])
            if first < last:
                pieces.append(part)
                cuts.append((first - starts[place], last - starts[place]))
                whole.append((0, other.counts[place]))
        as_it_is = len(cuts) == 1 and cuts == whole
        own_avatars.append(pieces[0] if as_it_is else engine.submit(_cut, pieces, cuts))
    return Pairs(list(one.parts), own_avatars)


def pair_by_key(engine: Engine, one: Rows, other: Rows, column: str) -> Pairs:
    """Pair by the keys of the rows, as text, of which the workers hold hashes: a shuffle join.

    Raises
    ------
    InputError
        As `local_cloaking.pairing.own_by_key`.
    """
    buckets = max(len(one.parts), len(other.parts))
    sides = []
    for table, side in (("originals", one), ("avatars", other)):
        missing = engine.total([engine.submit(_keyless, part) for part in side.parts], operator.add)
        refuse_keys(missing, 0, column, table)
        splits = [engine.submit(_split_by_key, part, buckets) for part in side.parts]
        gathered = engine.shuffle(splits, buckets, _together_or_none)
        repeated = engine.total([engine.submit(_repeated, part) for part in gathered], operator.add)
        refuse_keys(0, repeated, column, table)
        sides.append(gathered)
    joined = list(zip(*sides, strict=True))
    alone = engine.total([engine.submit(_unpaired, *both) for both in joined], operator.add)
    refuse_unpaired(int(alone[0]), int(alone[1]), column)
    filled = engine.total([engine.submit(_has_rows, part) for part, _ in joined], operator.add)
    kept = [both for both, has_rows in zip(joined, filled, strict=True) if has_rows]
    return Pairs(
        [engine.submit(_without_keys, originals) for originals, _ in kept],
        [engine.submit(_in_order_of, avatars, originals) for originals, avatars in kept],
    )


def sorted_columns(engine: Engine, pairs: Pairs) -> list[int]:
    """Return the places of the columns by which both tables are sorted, as they stand."""
    tables = [
        engine.total([engine.submit(_runs, part) for part in parts], _follow)
        for parts in (pairs.originals, pairs.avatars)
    ]
    return [place for place, both in enumerate(zip(*tables, strict=True)) if all(run.sorted for run in both)]


def _cut(pieces: list[Part], cuts: list[tuple[int, int]]) -> Part:
    cut = [
        piece if (first, last) == (0, len(piece)) else piece.take(slice(first, last))
        for piece, (first, last) in zip(pieces, cuts, strict=True)
    ]
    return cut[0] if len(cut) == 1 else together(cut)


def _keyless(part: Part) -> int:
    return int(np.count_nonzero(pd.isna(_keys(part))))


def _split_by_key(part: Part, buckets: int) -> dict[int, Part]:
    bucket = pd.util.hash_array(_keys(part), categorize=False) % np.uint64(buckets)
    return {int(b): part.take(np.flatnonzero(bucket == b)) for b in np.unique(bucket)}


def _together_or_none(pieces: list[Part]) -> Part | None:
    return together(pieces) if pieces else None


def _repeated(part: Part | None) -> int:
    return 0 if part is None else int(pd.Series(_keys(part)).duplicated(keep=False).sum())


def _unpaired(one: Part | None, other: Part | None) -> Integers:
    """Count the keys of each that are not in the other."""
    ones, others = (pd.Index(_keys(part)) for part in (one, other))
    both = int(ones.isin(others).sum())
    return np.array([len(ones) - both, len(others) - both])


def _keys(part: Part | None) -> NDArray[np.object_]:
    return np.zeros(0, object) if part is None or part.keys is None else part.keys


def _has_rows(part: Part | None) -> list[bool]:
    return [part is not None]


def _without_keys(part: Part) -> Part:
    return Part(part.columns, part.rows)


def _in_order_of(avatars: Part, originals: Part) -> Part:
    own = pd.Index(_keys(avatars)).get_indexer(pd.Index(_keys(originals)))
    return _without_keys(avatars.take(own))


def _runs(part: Part) -> list[SortedRun]:
    return [SortedRun.of(cells.values) for cells in part.columns]


def _follow(ones: list[SortedRun], others: list[SortedRun]) -> list[SortedRun]:
    return [one + other for one, other in zip(ones, others, strict=True)]
