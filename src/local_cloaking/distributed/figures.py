"""What the rows of both tables say, counted on the workers; see `local_cloaking.safeguards`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from local_cloaking.distributed.counting import rows_together
from local_cloaking.distributed.distribution import Distribution
from local_cloaking.distributed.engine import Engine
from local_cloaking.distributed.pairs import Pairs
from local_cloaking.distributed.parts import Part
from local_cloaking.neighbours import refuse_beyond, rows_beyond
from local_cloaking.pairing import PlaceSums, association_of_sums, centred
from local_cloaking.safeguards import (
    CarriedOver,
    RowFigures,
    agree,
    agree_in_all,
    are_copies,
    carried_columns,
    hash_cells,
    judge_near_copies,
    near_copy_sample,
    nearest,
    nearest_other,
)
from local_cloaking.tables.cells import CellSummary

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Hashes = NDArray[np.uint64]
#: Different hashes, and how many rows have each.
HashCounts = tuple[Hashes, Integers]


def pairs_association(engine: Engine, originals: Sequence[Any], avatars: Sequence[Any]) -> float | None:
    """Return z of the pairs, from sums; see `local_cloaking.pairing.pairing_evidence`.

    Parameters
    ----------
    engine
        Where the parts lie.
    originals, avatars
        Futures of coordinates, the avatars row by row as the originals.

    Raises
    ------
    InputError
        If a coordinate is not finite, or too large to be squared.
    """
    middles = []
    for table, parts in (("originals", originals), ("avatars", avatars)):
        refuse_beyond(engine.total([engine.submit(rows_beyond, part) for part in parts], operator.add), table)
        middles.append(engine.total([engine.submit(PlaceSums.of, part) for part in parts], operator.add))
    products = [
        engine.submit(_products, one, other, middles) for one, other in zip(originals, avatars, strict=True)
    ]
    x_squares, y_squares, product = engine.total(products, _add_products)
    return association_of_sums([x_squares, y_squares], product, middles[0].rows)


def count_rows(engine: Engine, pairs: Pairs, summaries: Sequence[CellSummary]) -> RowFigures:
    """Count copies, real rows, duplicates, different rows, and peers in the columns that are carried over.

    Parameters
    ----------
    engine
        Where the parts lie.
    pairs
        All rows.
    summaries
        The originals' columns, added up.
    """
    shared, n = engine.share(tuple(summaries)), summaries[0].rows
    agreeing: Integers = engine.total(
        [
            engine.submit(_agreeing, one, other, shared)
            for one, other in zip(pairs.originals, pairs.avatars, strict=True)
        ],
        operator.add,
    )
    carried = carried_columns(agreeing[:-1].tolist(), n)
    every = list(range(len(summaries)))
    ones = _hash_buckets(engine, pairs.originals, every, shared)
    others = _hash_buckets(engine, pairs.avatars, every, shared)
    compared = [engine.submit(_compare, one, other) for one, other in zip(ones, others, strict=True)]
    duplicates, real, different, different_avatars = engine.total(compared, operator.add).tolist()
    return RowFigures(
        copies=int(agreeing[-1]),
        real_rows=real,
        duplicates=duplicates,
        distinct_originals=different,
        distinct_avatars=different_avatars,
        carried_over=_carried_over(engine, pairs, carried, summaries, shared) if carried else None,
    )


def near_copies(
    engine: Engine, pairs: Pairs, originals: Sequence[Any], avatars: Sequence[Any], n: int
) -> str | None:
    """Say that the avatars are originals with a little noise; see `local_cloaking.safeguards.near_copies_reason`.

    Parameters
    ----------
    engine
        Where the parts lie.
    pairs
        All rows.
    originals, avatars
        Futures of their coordinates.
    n
        Number of originals.
    """
    sample = chosen_rows(engine, pairs, originals, near_copy_sample(n))
    to_avatar = engine.total([engine.submit(nearest, part, sample) for part in avatars], np.minimum)
    to_other = engine.total([engine.submit(nearest_other, part, sample) for part in originals], np.minimum)
    return judge_near_copies(to_avatar, to_other)


def chosen_rows(engine: Engine, pairs: Pairs, coordinates: Sequence[Any], chosen: Integers) -> Any:
    """Return a future of the coordinates of some rows of the originals, or of their avatars.

    Parameters
    ----------
    engine
        Where the parts lie.
    pairs
        All rows.
    coordinates
        Futures of the coordinates of the originals, or of the avatars.
    chosen
        Rows of the table of originals. They come in the same order for originals and avatars, but in no other.
    """
    shared = engine.share(chosen)
    rows = [
        engine.submit(_rows_of, part, places, shared)
        for part, places in zip(pairs.originals, coordinates, strict=True)
    ]
    return engine.add_up(rows, rows_together)


def _rows_of(originals: Part, coordinates: Floats, chosen: Integers) -> Floats:
    return coordinates[np.isin(originals.rows, chosen)]


def _products(one: Floats, other: Floats, middles: Sequence[PlaceSums]) -> tuple[Floats, Floats, float]:
    x, y = centred(one, middles[0]), centred(other, middles[1])
    return x.T @ x, y.T @ y, float(np.sum(x * y))


def _add_products(
    one: tuple[Floats, Floats, float], other: tuple[Floats, Floats, float]
) -> tuple[Floats, Floats, float]:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def _agreeing(one: Part, other: Part, summaries: Sequence[CellSummary]) -> Integers:
    """Count, for each column, the pairs that agree in it; then the copies."""
    agreements = agree(one.columns, other.columns, summaries)
    copies = are_copies(one.columns, other.columns, agreements)
    return np.array([np.count_nonzero(same) for same in (*agreements, copies)])


def _hash_buckets(engine: Engine, parts: Sequence[Any], columns: Sequence[int], summaries: Any) -> list[Any]:
    buckets = len(parts)
    splits = [engine.submit(_split_hashes, part, columns, summaries, buckets) for part in parts]
    return engine.shuffle(splits, buckets, _merge_hashes)


def _hashes(part: Part, columns: Sequence[int], summaries: Sequence[CellSummary]) -> Hashes:
    return hash_cells(part.only(columns), [summaries[place] for place in columns])


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
    engine: Engine, pairs: Pairs, carried: Sequence[int], summaries: Sequence[CellSummary], shared: Any
) -> CarriedOver:
    alike = _hash_buckets(engine, pairs.avatars, carried, shared)
    splits = [
        engine.submit(_split_kept, one, other, carried, shared, len(alike))
        for one, other in zip(pairs.originals, pairs.avatars, strict=True)
    ]
    kept = engine.shuffle(splits, len(alike), _merge_hashes)
    peers: Distribution = engine.total(
        [engine.submit(_peers, one, other) for one, other in zip(kept, alike, strict=True)], operator.add
    )
    n = summaries[0].rows
    others, apart = np.array([n - 1]), np.array([n - int(peers.individuals.sum())])
    names = tuple(summaries[place].column.name for place in carried)
    return CarriedOver(names, (peers + Distribution(others, others, apart)).median())


def _split_kept(
    one: Part, other: Part, carried: Sequence[int], summaries: Sequence[CellSummary], buckets: int
) -> dict[int, HashCounts]:
    """Hash the own avatars of those whose values they have in the columns that are carried over."""
    same = agree_in_all(agree(one.columns, other.columns, summaries), carried)
    return _in_buckets(_hashes(other, carried, summaries)[same], buckets)


def _peers(kept: HashCounts, avatars: HashCounts) -> Distribution:
    # Those kept are avatars themselves: each hash stands among all of them.
    others = avatars[1][np.searchsorted(avatars[0], kept[0])] - 1
    return Distribution.of(others, others, kept[1])
