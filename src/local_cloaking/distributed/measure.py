"""From two partitioned data sets to a measure, on the workers of a Dask cluster."""

from __future__ import annotations

import operator
import secrets
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from local_cloaking.distributed.cells import summarise_table
from local_cloaking.distributed.counting import Cells
from local_cloaking.distributed.distribution import Distribution
from local_cloaking.distributed.engine import Engine, WorkerFault, connect
from local_cloaking.distributed.figures import chosen_rows, count_rows, near_copies, pairs_association
from local_cloaking.distributed.pairs import Pairs, Rows, pair_by_key, pair_by_order, sorted_columns
from local_cloaking.distributed.parts import Part
from local_cloaking.distributed.survey import Surveyed, encode_rows, learn, survey
from local_cloaking.errors import InputError
from local_cloaking.ladder import Ladder, ladder_sample, unknown, within_on_rungs
from local_cloaking.limits import MIN_GROUP_SIZE
from local_cloaking.metric import (
    ROW_ORDER,
    LocalCloaking,
    explained_by,
    key_warning,
    left_out_warnings,
    median_count,
    refuse_absent_key,
    refuse_dropped_key,
    used_projection,
    wanted_fit,
    warnings_of,
    widest_fit,
)
from local_cloaking.neighbours import Progress
from local_cloaking.pairing import evidence_of_samples, pairing_evidence
from local_cloaking.projection import FAMD, cross_products, shares_of
from local_cloaking.safeguards import judge_tables
from local_cloaking.sources import HeldTable, SqlTable, source_of
from local_cloaking.tables.cells import CellSummary
from local_cloaking.tables.files import AS_FOUND

if TYPE_CHECKING:
    from local_cloaking.measuring import Inputs, Measured

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def measure_partitions(
    inputs: Inputs,
    *,
    scheduler: str,
    ncp: Any = None,
    key: str | None = None,
    categorical: Collection[str] = (),
    drop: Collection[str] = (),
    groups: Sequence[str] = (),
    min_group_size: Any = MIN_GROUP_SIZE,
    data_set: str | None = None,
    k: int | None = None,
    zone: tzinfo | None = None,
    ladder: bool = True,
    remediation: bool = False,
    progress: Progress | None = None,
) -> Measured:
    """Measure Local Cloaking of data sets that no single machine holds.

    Parameters
    ----------
    inputs
        ``originals`` and ``avatars`` are folders of Parquet files, or single ones, that client and workers reach
        by the same path or URI; ``projection`` is read here. Nothing else can be given.
    scheduler
        Address of the Dask scheduler, as ``tcp://host:8786``.
    ncp, key, categorical, drop, min_group_size, data_set, k, zone, ladder
        As in `local_cloaking.measuring.measure_files`.
    groups, remediation
        Only on one machine: refused here.
    progress
        Called now and then, with about how many originals are counted and how many there are.

    Returns
    -------
    Measured
        As from `local_cloaking.measuring.measure_files`; its counts are sorted, not in the order of the originals.

    Raises
    ------
    InputError
        If an input is refused, or the workers have another version of this package.
    ClusterError
        If scheduler or workers cannot be reached, or are lost; an OSError.
    OSError
        If a file cannot be read.

    Examples
    --------
    >>> from local_cloaking.measuring import Inputs
    >>> measure_partitions(Inputs("/data/originals", "/data/avatars"), scheduler="nowhere")
    Traceback (most recent call last):
    ...
    local_cloaking.errors.InputError: ...
    """
    from local_cloaking.measuring import Measured, entries_of, parameters_of, read_projection

    started = time.perf_counter()
    _refuse_other_inputs(inputs)
    _refuse({"groups": bool(groups), "remediation": remediation})
    parameters = parameters_of(
        inputs.csv, ncp=ncp, key=key, categorical=categorical, drop=drop, min_group_size=min_group_size
    )
    refuse_dropped_key(key, drop)
    projection, described = None, {}
    if inputs.projection is not None:
        projection, described["projection"] = read_projection(inputs.projection)
    famd = wanted_fit(ncp, projection, categorical)
    with connect(scheduler) as engine:
        surveyed = _survey(engine, inputs, key, drop)
        result = _measure(engine, surveyed, famd, projection, progress, ladder=ladder)
    sources = {"originals": asdict(surveyed.originals.source), "avatars": asdict(surveyed.avatars.source)}
    entries = entries_of(result, {**sources, **described}, parameters, started, data_set=data_set, k=k, zone=zone)
    return Measured(result, entries)


def _refuse_other_inputs(inputs: Inputs) -> None:
    for name in ("originals", "avatars"):
        if isinstance(source_of(getattr(inputs, name)), SqlTable | HeldTable):
            _refuse({f"{name} that are no folder of Parquet files": True})
    _refuse(
        {
            "pairing": inputs.pairing is not None,
            "original_coordinates": inputs.original_coordinates is not None,
            "avatar_coordinates": inputs.avatar_coordinates is not None,
            "separator, decimal and encoding": inputs.csv != AS_FOUND,
        }
    )


def _refuse(given: dict[str, bool]) -> None:
    for name in (name for name, is_given in given.items() if is_given):
        raise InputError(
            f"not with Dask: {name}",
            remedy="give Parquet data sets that are paired by row order or by `key`, or measure on one machine",
        )


@dataclass(frozen=True)
class _Survey:
    """Both data sets, with the columns that are measured; ``whole`` if none of the avatars' was left out."""

    originals: Surveyed
    avatars: Surveyed
    key: str | None
    whole: bool
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class _Tables:
    """Both tables on the workers, paired, and their columns, added up."""

    pairs: Pairs
    original_columns: list[CellSummary]
    avatar_columns: list[CellSummary]


@dataclass(frozen=True)
class _Space:
    """The projection that is measured in, the one fitted on the originals, and the cross-products of that fit."""

    used: FAMD
    fitted: FAMD
    products: Floats
    warnings: list[str]


def _survey(engine: Engine, inputs: Inputs, key: str | None, drop: Collection[str]) -> _Survey:
    salt = secrets.token_bytes(32)
    originals = survey(engine, inputs.originals, key, "originals", salt)
    avatars = survey(engine, inputs.avatars, key, "avatars", salt)
    warnings = left_out_warnings(drop, originals.names, avatars.names)
    whole, left_out = not warnings, {str(name) for name in drop}
    if key is not None:
        refuse_absent_key(key, originals.names, "originals")
        refuse_absent_key(key, avatars.names, "avatars")
        warnings.append(key_warning(key))
        left_out.add(key)
    one, other = (
        table.wanting([name for name in table.names if name not in left_out]) for table in (originals, avatars)
    )
    return _Survey(one, other, key, whole, tuple(warnings))


def _measure(
    engine: Engine,
    surveyed: _Survey,
    famd: FAMD,
    projection: FAMD | None,
    progress: Progress | None,
    *,
    ladder: bool,
) -> LocalCloaking:
    space, tables = _prepared(engine, surveyed, famd, projection)
    pairs, n = tables.pairs, surveyed.originals.n
    originals, avatars = _placed(engine, pairs, space.used, int(space.fitted.n_components))
    z = pairs_association(engine, originals, avatars)
    rows = count_rows(engine, pairs, tables.original_columns)
    noisy = near_copies(engine, pairs, originals, avatars, n)
    findings = judge_tables(tables.original_columns, tables.avatar_columns, rows)
    places = [] if surveyed.key is not None else sorted_columns(engine, pairs)
    both_sorted = [space.used.columns_[place].name for place in places]
    cells = Cells(engine, avatars, n)

    def of_sample(rows: Integers) -> Integers:
        one, other = (chosen_rows(engine, pairs, table, rows) for table in (originals, avatars))
        return _counted(cells.count([one], [other]), len(rows)).counts()[1]

    evidence = evidence_of_samples(z, n, of_sample)
    closer, strictly = np.zeros((2, 0), np.int64)
    if evidence is None:
        closer, strictly = _counted(cells.count(originals, avatars, progress), n).counts()
        evidence = pairing_evidence(z, strictly, n)
    result = LocalCloaking(
        counts=closer,
        strict_counts=strictly,
        ncp=int(space.fitted.n_components),
        space="refitted" if projection is None else "handed over",
        avatars_table="verified" if surveyed.whole else "not verified",
        explained=explained_by(space.used)[: space.fitted.n_components],
        pairing=ROW_ORDER if surveyed.key is None else f"key {surveyed.key!r}",
        evidence=evidence,
        findings=findings,
        near_copies=noisy,
        without_filled=_without_filled(engine, tables, space) if len(closer) else None,
        warnings=(
            *surveyed.warnings,
            *space.warnings,
            *warnings_of(evidence, both_sorted, findings, median_count(closer)),
        ),
    )
    if not ladder or result.looks_shuffled or not len(closer):
        return result
    return replace(result, ladder=_ladder(engine, pairs, space.fitted, n, {result.ncp: result.median}))


def _ladder(engine: Engine, pairs: Pairs, fitted: FAMD, n: int, known: dict[int, float]) -> Ladder:
    """Measure with other numbers of components: some originals, each part of the avatars by itself."""
    cuts, widest = fitted.cuts(), widest_fit(fitted)
    originals, avatars = _placed(engine, pairs, widest, len(widest.components_))
    rows = ladder_sample(n)
    chosen, own = (chosen_rows(engine, pairs, table, rows) for table in (originals, avatars))
    wanted = unknown(cuts, known)
    within = [engine.submit(within_on_rungs, chosen, own, part, wanted) for part in avatars]
    return Ladder.of(engine.total(within, operator.add), cuts, known)


def _prepared(engine: Engine, surveyed: _Survey, famd: FAMD, projection: FAMD | None) -> tuple[_Space, _Tables]:
    """Learn the columns, fit the projection, and pair the rows. What was only needed for it is let go."""
    learnt = learn(engine, surveyed.originals, famd.categorical or ())
    originals = encode_rows(engine, surveyed.originals, learnt.columns, "originals")
    summaries = summarise_table(engine, originals, learnt.columns, learnt.ranked)
    shares = [shares_of(summary) for summary in summaries]
    shared = engine.share(shares)
    products = engine.total([engine.submit(_cross_products, part, shared) for part in originals], operator.add)
    famd.fit_sums(learnt.columns, learnt.warnings, shares, products, surveyed.originals.n)
    used, warnings = used_projection(famd, projection)
    if used.columns_ != famd.columns_:
        # The projection handed over is that of these originals, up to rounding: its types and fills hold.
        originals = encode_rows(engine, surveyed.originals, used.columns_, "originals")
        summaries = summarise_table(engine, originals, used.columns_, learnt.ranked)
    avatars = encode_rows(engine, surveyed.avatars, used.columns_, "avatars")
    one, other = Rows(originals, surveyed.originals.rows), Rows(avatars, surveyed.avatars.rows)
    if surveyed.key is None:
        pairs = pair_by_order(engine, one, other)
    else:
        pairs = pair_by_key(engine, one, other, surveyed.key)
    avatar_summaries = summarise_table(engine, pairs.avatars, used.columns_)
    return _Space(used, famd, products, warnings), _Tables(pairs, summaries, avatar_summaries)


def _placed(
    engine: Engine, pairs: Pairs, famd: FAMD, ncp: int, columns: Sequence[int] | None = None
) -> tuple[list[Any], list[Any]]:
    """Return futures of the coordinates of originals and avatars, by some of the columns or by all."""
    shared = engine.share((famd, tuple(range(len(famd.columns_))) if columns is None else tuple(columns), ncp))
    originals, avatars = (
        [engine.submit(_place, part, shared) for part in parts] for parts in (pairs.originals, pairs.avatars)
    )
    return originals, avatars


def _counted(distribution: Distribution, n: int) -> Distribution:
    if int(distribution.individuals.sum()) != n:
        raise WorkerFault("an individual was lost between the workers: nothing was measured")
    return distribution


def _without_filled(engine: Engine, tables: _Tables, space: _Space) -> float | None:
    """Measure again without the columns in which a cell of either table was filled."""
    both = zip(tables.original_columns, tables.avatar_columns, strict=True)
    kept = [place for place, (one, other) in enumerate(both) if not (one.filled or other.filled)]
    fitted, n = space.fitted, space.fitted.n_rows_
    if not kept or len(kept) == len(fitted.columns_):
        return None
    # Which rows and columns of the cross-products are theirs.
    of_column = np.repeat(np.arange(len(fitted.columns_)), [column.width for column in fitted.columns_])
    theirs = np.flatnonzero(np.isin(of_column, kept))
    famd = FAMD(fitted.n_components)
    columns, shares = [fitted.columns_[place] for place in kept], [fitted.shares_[place] for place in kept]
    try:
        famd.fit_sums(columns, [], shares, space.products[np.ix_(theirs, theirs)], n)
    except InputError:
        return None  # Too few independent components without them: there is no such figure.
    originals, avatars = _placed(engine, tables.pairs, famd, int(fitted.n_components), kept)
    return _counted(Cells(engine, avatars, n).count(originals, avatars), n).median()


def _cross_products(part: Part, shares: list[Floats]) -> Floats:
    return cross_products(part.columns, shares)


def _place(part: Part, space: tuple[FAMD, tuple[int, ...], int]) -> Floats:
    famd, places, ncp = space
    return np.ascontiguousarray(famd.project(part.only(places))[:, :ncp])
