"""Reading: what the partitions hold, what each column of the originals is, and the encoded rows on the workers.

A partition is read several times, since memory is dearer than reading; each time, the very bytes that are parsed
are hashed and compared with those of the first time, also when a task runs again because its worker died.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from local_cloaking.distributed.engine import Engine
from local_cloaking.distributed.parts import Part
from local_cloaking.distributed.selection import (
    Ranked,
    median_of,
    median_ranks,
    order_statistics,
    quartile_ranks,
)
from local_cloaking.errors import InputError
from local_cloaking.limits import IDENTIFIER_MIN_ROWS, MAX_LEVELS
from local_cloaking.tables.columns import (
    Column,
    ColumnSummary,
    Misfit,
    checked_declaration,
    encode_column,
    is_category,
    learn_column,
    places_of,
    refuse_misfit,
    summarise,
)
from local_cloaking.tables.files import SourceFile
from local_cloaking.tables.parquet import Footprint, footprint, read_parquet, refuse_other_schemas
from local_cloaking.tables.partitions import DataSet, Partition, find_partitions, portable, read_partition
from local_cloaking.tables.values import as_key, as_numbers

Floats = NDArray[np.float64]

#: Of a key's hash: with a billion keys, two are alike by chance once in 10^20 measures.
_KEY_BYTES = 16


@dataclass(frozen=True, repr=False)
class Reader:
    """Reads one partition on a worker, as it was when it was first read.

    Attributes
    ----------
    filesystem, path
        Where it lies.
    known
        Its name, size and hash.
    names
        The columns wanted, in the order of the table.
    key
        The column that pairs the rows, or None.
    salt
        Of the keys' hashes, the same for both tables, another for each measure.
    gaps
        Columns in which a cell is missing in any of the partitions.
    """

    filesystem: Any
    path: str
    known: Partition
    names: tuple[str, ...]
    key: str | None
    salt: bytes
    gaps: frozenset[str]

    def frame(self) -> pd.DataFrame:
        """Read it.

        Raises
        ------
        InputError
            If its bytes are others than those of the first time.
        """
        data, found = read_partition(self.filesystem, self.path)
        if found != self.known:
            raise InputError(
                "the partition was changed while it was measured",
                remedy="measure again when nobody writes to the data set",
                file=self.known.name,
            )
        with _in_file(found.name):
            return read_parquet(data, text_columns=_text_columns(self.key), gaps=self.gaps)


@dataclass(frozen=True)
class Surveyed:
    """A data set, before its cells are looked at.

    Attributes
    ----------
    readers
        Of the partitions that have rows.
    rows
        Rows of each of them.
    names
        All columns, in the order of the first partition.
    source
        For the record.
    """

    readers: tuple[Reader, ...] = field(repr=False)
    rows: tuple[int, ...]
    names: tuple[str, ...]
    source: SourceFile

    @property
    def n(self) -> int:
        """Rows of the table."""
        return sum(self.rows)

    def wanting(self, names: Sequence[str]) -> Surveyed:
        """Return the same, with some of the columns only."""
        return replace(self, readers=tuple(replace(reader, names=tuple(names)) for reader in self.readers))


def survey(engine: Engine, place: Any, key: str | None, table: str, salt: bytes) -> Surveyed:
    """Find and hash the partitions of a data set, and see that they are parts of one table; see `Reader`.

    Raises
    ------
    InputError
        If a partition is damaged, if their columns or types differ, or if there is no row.
    OSError
        If they cannot be read.
    """
    found = find_partitions(place)
    filesystem = portable(found.filesystem)
    looked = [engine.submit(_look, filesystem, path, key) for path in found.paths]
    seen: list[tuple[Partition, Footprint]] = engine.total(looked, operator.add)
    files, prints = [file for file, _ in seen], [seen_in for _, seen_in in seen]
    refuse_other_schemas([file.name for file in files], prints)
    rows = sum(seen_in.rows for seen_in in prints)
    if not rows:
        raise InputError(f"the {table} have no rows", rows=0, remedy="give at least one individual")
    names = tuple(prints[0].types)
    gaps = frozenset().union(*(seen_in.gaps for seen_in in prints))
    readers = tuple(
        Reader(filesystem, path, file, names, key, salt, gaps)
        for path, file, seen_in in zip(found.paths, files, prints, strict=True)
        if seen_in.rows
    )
    return Surveyed(readers, tuple(p.rows for p in prints if p.rows), names, _source(found, files, rows))


@dataclass(frozen=True)
class Learnt:
    """The columns of the originals.

    Attributes
    ----------
    columns, warnings
        As from `local_cloaking.tables.columns.learn_columns`.
    ranked
        For each column of numbers, those that medians and quartiles are made of.
    """

    columns: tuple[Column, ...]
    warnings: list[str]
    ranked: dict[str, Ranked]


def learn(engine: Engine, originals: Surveyed, categorical: Collection[str]) -> Learnt:
    """Learn the columns of the originals; errors are those of `local_cloaking.tables.columns.learn_columns`."""
    names = originals.readers[0].names
    declared = checked_declaration(categorical, names)
    looked = [engine.submit(_summarise, reader, declared) for reader in originals.readers]
    summaries: list[ColumnSummary] = engine.total([engine.submit(_first, both) for both in looked], _sum_columns)
    numbers = [engine.submit(_second, both) for both in looked]
    ranked = _ranked(engine, numbers, summaries, declared)
    summaries = [
        replace(summary, median=median_of(ranked[summary.name], summary.known))
        if summary.name in ranked
        else summary
        for summary in summaries
    ]
    summaries = _with_differences(engine, numbers, summaries)
    learnt = [learn_column(summary, declared=summary.name in declared) for summary in summaries]
    warnings = [warning for _, warnings in learnt for warning in warnings]
    return Learnt(tuple(column for column, _ in learnt), warnings, ranked)


def encode_rows(engine: Engine, table: Surveyed, columns: Sequence[Column], name: str) -> list[Any]:
    """Read the partitions as the columns say.

    Returns
    -------
    Futures of `Part`, one per partition, in their order.

    Raises
    ------
    InputError
        As `local_cloaking.tables.columns.encode`.
    """
    places_of(list(table.readers[0].names), columns, name)
    shared = engine.share(tuple(columns))
    starts = np.cumsum([0, *table.rows])
    both = [
        engine.submit(_encode, reader, shared, int(start))
        for reader, start in zip(table.readers, starts, strict=False)
    ]
    misfits: list[Misfit] = engine.total([engine.submit(_second, one) for one in both], _sum_misfits)
    for column, misfit in zip(columns, misfits, strict=True):
        refuse_misfit(column, misfit, name)
    return [engine.submit(_first, one) for one in both]


def _look(filesystem: Any, path: str, key: str | None) -> list[tuple[Partition, Footprint]]:
    data, found = read_partition(filesystem, path)
    with _in_file(found.name):
        return [(found, footprint(data, text_columns=_text_columns(key)))]


def _text_columns(key: str | None) -> tuple[str, ...]:
    return () if key is None else (key,)


@contextmanager
def _in_file(name: str) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise error.in_file(name) from None


def _source(found: DataSet, files: Sequence[Partition], rows: int) -> SourceFile:
    return SourceFile(found.name, sum(file.size for file in files), found.sha256(files), rows, "parquet")


def _summarise(reader: Reader, declared: set[str]) -> tuple[list[ColumnSummary], dict[str, Floats]]:
    """Add up each column of a partition; and sort its numbers, for their order statistics."""
    frame = reader.frame()
    summaries = [summarise(frame[name], name, declared=name in declared) for name in reader.names]
    numbers = {}
    for summary in summaries:
        if summary.known and not is_category(summary, declared=summary.name in declared):
            values = as_numbers(frame[summary.name], summary.kind)
            numbers[summary.name] = np.sort(values[~np.isnan(values)])
    return summaries, numbers


def _sum_columns(ones: list[ColumnSummary], others: list[ColumnSummary]) -> list[ColumnSummary]:
    return [_sum_column(one, other) for one, other in zip(ones, others, strict=True)]


def _sum_column(one: ColumnSummary, other: ColumnSummary) -> ColumnSummary:
    rows = one.rows + other.rows
    if not one.known or not other.known:
        return replace(one if one.known else other, rows=rows)
    words, counts = _sum_words(one, other)
    return replace(
        one,
        known=one.known + other.known,
        rows=rows,
        infinite=one.infinite + other.infinite,
        rounded=one.rounded + other.rounded,
        lowest=min(one.lowest, other.lowest),
        highest=max(one.highest, other.highest),
        # Within each partition; between them, see `_with_differences`.
        all_differ=one.all_differ and other.all_differ,
        words=words,
        counts=counts,
    )


def _sum_words(one: ColumnSummary, other: ColumnSummary) -> tuple[tuple[Any, ...] | None, tuple[int, ...]]:
    if one.words is None or other.words is None:
        return None, ()
    total = dict(zip(one.words, one.counts, strict=True))
    for word, count in zip(other.words, other.counts, strict=True):
        total[word] = total.get(word, 0) + count
    if len(total) > MAX_LEVELS:
        return None, ()
    words = tuple(sorted(total))
    return words, tuple(total[word] for word in words)


def _ranked(
    engine: Engine, numbers: Sequence[Any], summaries: Sequence[ColumnSummary], declared: set[str]
) -> dict[str, Ranked]:
    """Find what medians and quartiles are made of, of all columns at once."""
    wanted = [
        summary
        for summary in summaries
        if summary.known and not summary.infinite and not is_category(summary, declared=summary.name in declared)
    ]
    ranks = {one.name: median_ranks(one.known) | quartile_ranks(one.known, one.rows) for one in wanted}
    return order_statistics(engine, numbers, ranks, {one.name: (one.lowest, one.highest) for one in wanted})


def _with_differences(
    engine: Engine, numbers: Sequence[Any], summaries: Sequence[ColumnSummary]
) -> list[ColumnSummary]:
    return [
        replace(summary, all_differ=_differ_everywhere(engine, numbers, summary))
        if summary.all_differ
        else summary
        for summary in summaries
    ]


def _differ_everywhere(engine: Engine, numbers: Sequence[Any], summary: ColumnSummary) -> bool:
    """Tell whether whole numbers that differ within each partition differ between them, too."""
    if summary.known < IDENTIFIER_MIN_ROWS or summary.highest - summary.lowest + 1 < summary.known:
        return False
    buckets = len(numbers)
    splits = [engine.submit(_split_numbers, part, summary.name, buckets) for part in numbers]
    return bool(engine.total(engine.shuffle(splits, buckets, _all_differ), operator.and_))


def _split_numbers(part: dict[str, Floats], name: str, buckets: int) -> dict[int, Floats]:
    values = part.get(name, np.zeros(0))
    bucket = np.mod(values, buckets).astype(np.int64)
    return {b: values[bucket == b] for b in range(buckets)}


def _all_differ(pieces: list[Floats]) -> bool:
    values = np.concatenate(pieces)
    return len(np.unique(values)) == len(values)


def _encode(reader: Reader, columns: tuple[Column, ...], start: int) -> tuple[Part, list[Misfit]]:
    frame = reader.frame()
    cells, misfits = [], []
    for column in columns:
        encoded, misfit = encode_column(frame[column.name], column)
        misfits.append(misfit)
        if encoded is not None:
            cells.append(encoded)
    keys = None if reader.key is None else _hashed(as_key(frame[reader.key], reader.key), reader.salt)
    return Part(tuple(cells), np.arange(start, start + len(frame)), keys), misfits


def _hashed(keys: pd.Series[Any], salt: bytes) -> NDArray[np.object_]:
    """Hash the keys of rows: workers send each other what they hold, and spill it to their disks."""
    hashes = np.empty(len(keys), dtype=object)
    for row, name in enumerate(keys):
        if name is not None:
            text = name.encode("utf-8", "surrogatepass")
            hashes[row] = hashlib.blake2b(text, digest_size=_KEY_BYTES, key=salt).digest()
    return hashes


def _sum_misfits(ones: list[Misfit], others: list[Misfit]) -> list[Misfit]:
    return [
        replace(
            # Of the kind of the cells that have a value.
            other if one.kind == "missing" else one,
            known=one.known + other.known,
            infinite=one.infinite + other.infinite,
            rounded=one.rounded + other.rounded,
            unseen=one.unseen + other.unseen,
        )
        for one, other in zip(ones, others, strict=True)
    ]


def _first(both: tuple[Any, Any]) -> Any:
    return both[0]


def _second(both: tuple[Any, Any]) -> Any:
    return both[1]
