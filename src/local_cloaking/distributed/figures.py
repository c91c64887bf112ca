"""What the rows of both tables say, counted on the workers; see `local_cloaking.safeguards`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from local_cloaking.distributed.counting import Placed
from local_cloaking.distributed.distribution import Distribution
from local_cloaking.distributed.engine import Engine
from local_cloaking.distributed.parts import Pair, Part
from local_cloaking.neighbours import refuse_beyond, rows_beyond
from local_cloaking.pairing import PlaceSums, association, centred
from local_cloaking.safeguards import (
    CarriedOver,
    RowFigures,
    agree,
    are_copies,
    carried_columns,
    judge_near_copies,
    near_copy_sample,
    nearest_other,
    row_hashes,
)
from local_cloaking.tables.cells import CellSummary

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Hashes = NDArray[np.uint64]
#: Different hashes, and how many rows have each.
HashCounts = tuple[Hashes, Integers]


def pairs_association(engine: Engine, pairs: Sequence[Any]) -> float | None:
    """Return z of the pairs, from sums; see `local_cloaking.pairing.pairing_evidence`.

    Raises
    ------
    InputError
        If a coordinate is not finite, or too large to be squared.
    """
    beyond = engine.total([engine.submit(_beyond, pair) for pair in pairs], operator.add)
    for rows, table in zip(beyond.tolist(), ("originals", "avatars"), strict=True):
        refuse_beyond(rows, table)
    places = engine.total([engine.submit(_places, pair) for pair in pairs], _add_places)
    squares = engine.total([engine.submit(_products, pair, places) for pair in pairs], _add_products)
    return association(squares[:2], float(squares[2]), places[0].rows)


def count_rows(
    engine: Engine,
    originals: Sequence[Any],
    avatars: Sequence[Any],
    pairs: Sequence[Any],
    summaries: Sequence[CellSummary],
) -> RowFigures:
    """Count copies, real rows, duplicates, different rows, and peers in the columns that are carried over.

    Parameters
    ----------
    engine
        Where the parts lie.
    originals, avatars
        Futures of `Part`.
    pairs
        Futures of `Pair`.
    summaries
        The originals' columns, added up.
    """
    shared, n = engine.share(tuple(summaries)), summaries[0].rows
    agreeing: Integers = engine.total([engine.submit(_agreeing, pair, shared) for pair in pairs], operator.add)
    carried = carried_columns(agreeing[:-1].tolist(), n)
    every = list(range(len(summaries)))
    buckets = max(len(originals), len(avatars))
    ones = _hash_buckets(engine, originals, every, shared, buckets)
    others = _hash_buckets(engine, avatars, every, shared, buckets)
    compared = [engine.submit(_compare, one, other) for one, other in zip(ones, others, strict=True)]
    duplicates, real, different, different_avatars = engine.total(compared, operator.add).tolist()
    return RowFigures(
        copies=int(agreeing[-1]),
        real_rows=real,
        duplicates=duplicates,
        distinct_originals=different,
        distinct_avatars=different_avatars,
        carried_over=_carried_over(engine, avatars, pairs, carried, summaries, shared) if carried else None,
    )


def near_copies(
    engine: Engine, originals: Sequence[Any], rows: Sequence[int], avatars: Sequence[Any]
) -> str | None:
    """Say that the avatars are originals with a little noise; see `local_cloaking.safeguards.near_copies_reason`.

    Parameters
    ----------
    engine
        Where the parts lie.
    originals, avatars
        Futures of coordinates, those of the originals in the order of the table.
    rows
        Rows of each partition of the originals.
    """
    chosen, starts = near_copy_sample(sum(rows)), np.concatenate([[0], np.cumsum(rows)])
    samples = [
        engine.submit(_rows_of, part, chosen[(chosen >= start) & (chosen < start + count)] - start)
        for part, start, count in zip(originals, starts, rows, strict=False)
    ]
    sample = engine.add_up(samples, _rows_together)
    to_avatar = engine.total([engine.submit(_nearest, part, sample) for part in avatars], np.minimum)
    to_other = engine.total([engine.submit(_nearest_other, part, sample) for part in originals], np.minimum)
    return judge_near_copies(to_avatar, to_other)


def _beyond(pair: Placed) -> Integers:
    return np.array([rows_beyond(pair.originals), rows_beyond(pair.own_avatars)])


def _places(pair: Placed) -> list[PlaceSums]:
    return [PlaceSums.of(pair.originals), PlaceSums.of(pair.own_avatars)]


def _add_places(ones: list[PlaceSums], others: list[PlaceSums]) -> list[PlaceSums]:
    return [one + other for one, other in zip(ones, others, strict=True)]


def _products(pair: Placed, places: list[PlaceSums]) -> list[Any]:
    x, y = centred(pair.originals, places[0]), centred(pair.own_avatars, places[1])
    return [x.T @ x, y.T @ y, float(np.sum(x * y))]


def _add_products(ones: list[Any], others: list[Any]) -> list[Any]:
    return [one + other for one, other in zip(ones, others, strict=True)]


def _agreeing(pair: Pair, summaries: Sequence[CellSummary]) -> Integers:
    """Count, for each column, the pairs that agree in it; then the copies."""
    originals, avatars = pair.originals.columns, pair.own_avatars.columns
    agreements = agree(originals, avatars, summaries)
    copies = are_copies(originals, avatars, agreements)
    return np.array([np.count_nonzero(same) for same in (*agreements, copies)])


def _hash_buckets(
    engine: Engine, parts: Sequence[Any], columns: Sequence[int], summaries: Any, buckets: int
) -> list[Any]:
    splits = [engine.submit(_split_hashes, part, columns, summaries, buckets) for part in parts]
    return engine.shuffle(splits, buckets, _merge_hashes)


def _hashes(part: Part, columns: Sequence[int], summaries: Sequence[CellSummary]) -> Hashes:
    return row_hashes(part.only(columns), [summaries[place] for place in columns])


def _split_hashes(
    part: Part, columns: Sequence[int], summaries: Sequence[CellSummary], buckets: int
) -> dict[int, HashCounts]:
    return _in_buckets(_hashes(part, columns, summaries), buckets)


def _in_buckets(hashes: Hashes, buckets: int) -> dict[int, HashCounts]:
    different, counts = np.unique(hashes, return_counts=True)
    bucket = (different >> np.uint64(17)) % np.uint64(buckets)
    return {int(b): (different[bucket == b], counts[bucket == b].astype(np.int64)) for b in np.unique(bucket)}


def _merge_hashes(pieces: list[HashCounts]) -> HashCounts:
    if not pieces:
        return np.zeros(0, np.uint64), np.zeros(0, np.int64)
    different, place = np.unique(np.concatenate([hashes for hashes, _ in pieces]), return_inverse=True)
    counts = np.zeros(len(different), np.int64)
    np.add.at(counts, place, np.concatenate([counts for _, counts in pieces]))
    return different, counts


def _compare(originals: HashCounts, avatars: HashCounts) -> Integers:
    real = avatars[1][np.isin(avatars[0], originals[0])].sum()
    return np.array([originals[1][originals[1] > 1].sum(), real, len(originals[0]), len(avatars[0])])


def _carried_over(
    engine: Engine,
    avatars: Sequence[Any],
    pairs: Sequence[Any],
    carried: Sequence[int],
    summaries: Sequence[CellSummary],
    shared: Any,
) -> CarriedOver:
    buckets, n = max(len(avatars), len(pairs)), summaries[0].rows
    alike = _hash_buckets(engine, avatars, carried, shared, buckets)
    splits = [engine.submit(_split_kept, pair, carried, shared, buckets) for pair in pairs]
    kept = engine.shuffle(splits, buckets, _merge_hashes)
    peers: Distribution = engine.total(
        [engine.submit(_peers, one, other) for one, other in zip(kept, alike, strict=True)], operator.add
    )
    apart = n - int(peers.individuals.sum())
    others = np.array([n - 1])
    peers = peers + Distribution(others, others, np.array([apart]))
    names = tuple(summaries[place].column.name for place in carried)
    return CarriedOver(names, peers.median())


def _split_kept(
    pair: Pair, carried: Sequence[int], summaries: Sequence[CellSummary], buckets: int
) -> dict[int, HashCounts]:
    """Hash the originals whose own avatar has their values in the columns that are carried over."""
    originals = _hashes(pair.originals, carried, summaries)
    return _in_buckets(originals[originals == _hashes(pair.own_avatars, carried, summaries)], buckets)


def _peers(originals: HashCounts, avatars: HashCounts) -> Distribution:
    others = avatars[1][np.searchsorted(avatars[0], originals[0])] - 1
    return Distribution.of(others, others, originals[1])


def _rows_of(coordinates: Floats, rows: Integers) -> Floats:
    return coordinates[rows]


def _rows_together(one: Floats, other: Floats) -> Floats:
    return np.concatenate([one, other])


def _nearest(avatars: Floats, sample: Floats) -> Floats:
    from scipy.spatial import cKDTree

    distances: Floats = cKDTree(avatars).query(sample)[0]
    return distances


def _nearest_other(originals: Floats, sample: Floats) -> Floats:
    return nearest_other(originals, sample)
