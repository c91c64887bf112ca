"""Pairing on the workers: by row order, the avatars cut like the originals; by key, a shuffle join."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from local_cloaking.distributed.engine import Engine
from local_cloaking.distributed.parts import Pair, Part, together
from local_cloaking.pairing import SortedRun, refuse_keys, refuse_unequal, refuse_unpaired

Integers = NDArray[np.int64]


def pair_by_order(
    engine: Engine,
    originals: Sequence[Any],
    original_rows: Sequence[int],
    avatars: Sequence[Any],
    avatar_rows: Sequence[int],
) -> list[Any]:
    """Pair row by row.

    Parameters
    ----------
    engine
        Where the parts lie.
    originals, avatars
        Futures of `Part`, in the order of the tables.
    original_rows, avatar_rows
        Rows of each of them.

    Returns
    -------
    Futures of `Pair`.

    Raises
    ------
    InputError
        If the tables have different numbers of rows.
    """
    refuse_unequal(sum(original_rows), sum(avatar_rows))
    ends = np.cumsum(original_rows).tolist()
    starts = [0, *np.cumsum(avatar_rows).tolist()]
    pairs = []
    for part, rows, end in zip(originals, original_rows, ends, strict=True):
        pieces, cuts = [], []
        for place, avatar_part in enumerate(avatars):
            first, last = max(end - rows, starts[place]), min(end, starts[place + 1])
            if first < last:
                pieces.append(avatar_part)
                cuts.append((first - starts[place], last - starts[place]))
        pairs.append(engine.submit(_pair_rows, part, pieces, cuts))
    return pairs


def pair_by_key(engine: Engine, originals: Sequence[Any], avatars: Sequence[Any], column: str) -> list[Any]:
    """Pair by the keys of the rows: a shuffle join on the key as text.

    Returns
    -------
    Futures of `Pair`, in no particular order.

    Raises
    ------
    InputError
        As `local_cloaking.pairing.own_by_key`.
    """
    buckets = max(len(originals), len(avatars))
    sides = []
    for table, parts in (("originals", originals), ("avatars", avatars)):
        missing = engine.total([engine.submit(_keyless, part) for part in parts], operator.add)
        refuse_keys(missing, 0, column, table)
        splits = [engine.submit(_split_by_key, part, buckets) for part in parts]
        gathered = engine.shuffle(splits, buckets, _together_or_none)
        repeated = engine.total([engine.submit(_repeated, part) for part in gathered], operator.add)
        refuse_keys(0, repeated, column, table)
        sides.append(gathered)
    joined = list(zip(*sides, strict=True))
    alone = engine.total([engine.submit(_unpaired, one, other) for one, other in joined], operator.add)
    refuse_unpaired(int(alone[0]), int(alone[1]), column)
    filled = engine.total([engine.submit(_has_rows, one) for one, _ in joined], operator.add)
    return [
        engine.submit(_pair_keys, one, other)
        for (one, other), has_rows in zip(joined, filled, strict=True)
        if has_rows
    ]


def sorted_columns(engine: Engine, originals: Sequence[Any], avatars: Sequence[Any]) -> list[int]:
    """Return the places of the columns by which both tables are sorted."""
    tables = [
        engine.total([engine.submit(_runs, part) for part in parts], _follow) for parts in (originals, avatars)
    ]
    return [place for place, both in enumerate(zip(*tables, strict=True)) if all(run.sorted for run in both)]


def _pair_rows(originals: Part, pieces: list[Part], cuts: list[tuple[int, int]]) -> Pair:
    cut = [
        piece if (first, last) == (0, len(piece)) else piece.take(slice(first, last))
        for piece, (first, last) in zip(pieces, cuts, strict=True)
    ]
    return Pair(originals, cut[0] if len(cut) == 1 else together(cut))


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


def _pair_keys(originals: Part, avatars: Part) -> Pair:
    own = pd.Index(_keys(avatars)).get_indexer(pd.Index(_keys(originals)))
    return Pair(Part(originals.columns), Part(avatars.take(own).columns))


def _runs(part: Part) -> list[SortedRun]:
    return [SortedRun.of(cells.values) for cells in part.columns]


def _follow(ones: list[SortedRun], others: list[SortedRun]) -> list[SortedRun]:
    return [one + other for one, other in zip(ones, others, strict=True)]
