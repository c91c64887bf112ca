r"""Local Cloaking: how many other avatars stand between an original and its own.

.. math::

    c_i = \#\{\, j \ne a(i) : d(x_i, y_j) \le d(x_i, y_{a(i)}) \,\}, \qquad
    \text{Local Cloaking} = \operatorname{median}_i c_i

x_i is original i and y_j avatar j, both in the first ``ncp`` components of the projected space; a(i) is i's own
avatar; d is the Euclidean distance. Ties count. Higher is better; it is a count, not a rate.

References
----------
Guillaudeux, M. et al. (2023). Patient-centric synthetic data generation, no reason to risk re-identification
in biomedical data analysis. npj Digital Medicine 6, 37. doi:10.1038/s41746-023-00771-5
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from local_cloaking.binding import binding_warnings
from local_cloaking.errors import InputError
from local_cloaking.groups import checked_group_columns, checked_min_group_size, group_entries
from local_cloaking.ladder import Ladder, measure_ladder
from local_cloaking.limits import LADDER_COMPONENTS, MIN_GROUP_SIZE
from local_cloaking.neighbours import CloserAvatarCounter, CloserAvatars, Progress, count_closer_avatars
from local_cloaking.pairing import (
    PairingEvidence,
    SortedRun,
    association,
    evidence_of_samples,
    own_by_key,
    own_by_order,
    own_by_pairing,
    pairing_evidence,
    sorted_warnings,
)
from local_cloaking.projection import FAMD, check_same_space, checked_ncp
from local_cloaking.safeguards import CarriedOver, TableFindings, examine, near_copies_reason
from local_cloaking.sources import names_a_table, refuse_rows_without_order
from local_cloaking.tables.columns import EncodedColumn, encode, learn_columns, names_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Components used where neither the user nor a projection handed over says how many.
DEFAULT_NCP = 5

ROW_ORDER = "row order"


@dataclass(frozen=True)
class LocalCloaking:
    """A measured Local Cloaking, with what it takes to judge and to report it.

    Attributes
    ----------
    counts
        int64, shape (n,): closer avatars per original, ties included, in the order of the originals. Empty where
        the avatars look shuffled beyond doubt, which a sample tells: no figure would come of counting all.
    strict_counts
        int64, shape (n,): strictly closer avatars per original; empty with ``counts``.
    ncp
        Components used.
    space
        ``handed over`` (the avatarisation's projection), ``refitted`` (fitted anew on the originals), or
        ``coordinates`` (handed over row by row).
    avatars_table
        ``verified`` where the avatars were projected from all of their own columns, or the coordinates handed over
        are those of all of their own columns, see `local_cloaking.binding`; ``not verified`` for other
        coordinates, and where a column of theirs was left out.
    explained
        Share of the variance that each component explains; empty for bare coordinates.
    pairing
        How the tables were paired.
    evidence
        How far the pairs are from a random pairing.
    findings
        What the cells of both tables say.
    near_copies
        That the avatars are originals with a little noise, in one sentence, or None.
    without_filled
        Local Cloaking without the columns in which a cell was filled; None where none was, or where the
        other columns have no ``ncp`` components.
    warnings
        What a reader should know, a sentence each.
    ladder
        Local Cloaking over the number of components; None where it was not asked for, and where the avatars
        look shuffled.
    groups
        Local Cloaking of groups; see `local_cloaking.groups.group_entries`. None as `ladder`.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> originals = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    >>> result = local_cloaking(originals, originals + rng.normal(scale=0.3, size=(200, 3)), ncp=2)
    >>> result.n, result.median > 0, result.reason
    (200, True, None)
    """

    counts: Integers = field(repr=False)
    strict_counts: Integers = field(repr=False)
    ncp: int
    space: str
    avatars_table: str
    explained: tuple[float, ...]
    pairing: str
    evidence: PairingEvidence
    findings: TableFindings = field(repr=False)
    near_copies: str | None
    without_filled: float | None
    warnings: tuple[str, ...]
    ladder: Ladder | None = field(default=None, repr=False)
    groups: dict[str, Any] | None = field(default=None, repr=False)

    @property
    def n(self) -> int:
        """Number of individuals."""
        return self.evidence.n

    @property
    def median(self) -> float:
        """Local Cloaking: the median of the counts, 0 to n - 1; NaN where nothing was counted."""
        return median_count(self.counts)

    @property
    def strict_median(self) -> float:
        """The median of the strict counts: avatars strictly nearer than the own one; NaN without counts."""
        return median_count(self.strict_counts)

    @property
    def hidden_rate(self) -> float:
        """Expected share of originals, in per cent, whose nearest avatar is not their own; NaN without counts."""
        return hidden_rate(self.counts, self.strict_counts)

    @property
    def looks_shuffled(self) -> bool:
        """Whether the pairs cannot be relied on, so that the median measures nothing."""
        return self.evidence.reason is not None and self.evidence.association is not None

    @property
    def reason(self) -> str | None:
        """Why Local Cloaking cannot be assessed on these tables, or None."""
        reasons = [self.evidence.reason, *self.findings.reasons]
        if self.median > 0:  # With a median of 0 nothing passes, and that figure says it better.
            reasons.append(self.near_copies)
        return "; ".join(reason for reason in reasons if reason is not None) or None


def local_cloaking(
    originals: pd.DataFrame | Any,
    avatars: pd.DataFrame | Any,
    *,
    ncp: int | None = None,
    key: str | None = None,
    categorical: Collection[str] | None = None,
    projection: FAMD | None = None,
    pairing: pd.DataFrame | None = None,
    drop: Collection[str] = (),
    coordinates: tuple[ArrayLike, ArrayLike] | None = None,
    ladder: bool = False,
    groups: Sequence[str] = (),
    min_group_size: int = MIN_GROUP_SIZE,
    progress: Progress | None = None,
) -> LocalCloaking:
    """Measure Local Cloaking.

    Parameters
    ----------
    originals, avatars
        One row per individual, the same columns in any order: DataFrames, or what names a table, see
        `local_cloaking.sources`. Text, truth values and pandas categoricals
        are categories; numbers and dates are numbers. Missing cells are filled with the originals' median
        or commonest category; a missing category of the originals is a category of its own.
    ncp
        Components used, 1 to the table's rank; by default the projection's, else 5.
    key
        Column in both tables that pairs them and is not projected; without it, row order pairs them.
    categorical
        Columns to treat as categories whatever their type.
    projection
        The fitted projection of the avatarisation; without it, one is fitted on the originals (warned).
    pairing
        Two columns, the keys of originals and of their avatars. With ``key``, both tables hold their keys
        in that column; without it, the two columns' names say which columns of the tables hold them.
    drop
        Columns to leave out of the measure; warned where the avatars have them.
    coordinates
        Bare coordinates of originals and avatars, each of shape (n, p), p at least ``ncp``, row by row as
        the tables, instead of a projection. Warned where they are not those of the tables: they say nothing about
        the table that leaves then.
    ladder
        Whether to measure with 1 to 10 components, too.
    groups
        Columns of the originals; Local Cloaking is also told for the individuals of each of their levels.
    min_group_size
        Groups of fewer individuals are merged or withheld; at least 5.
    progress
        Called now and then while originals are counted, with how many are done and how many there are.

    Returns
    -------
    LocalCloaking

    Raises
    ------
    InputError
        If the input would give no figure, or one that means nothing. Nothing was measured then.

    Examples
    --------
    >>> same = pd.DataFrame({"age": [50.0] * 10})
    >>> result = local_cloaking(same, same)
    >>> result.median, result.reason is None
    (9.0, False)
    """
    if names_a_table(originals) or names_a_table(avatars):
        originals, avatars = _read(originals, avatars, key, pairing, categorical or (), set(drop) - set(groups))
    paired = _pair(originals, avatars, key=key, pairing=pairing, drop=drop)
    wanted_groups = checked_group_columns(originals, groups, key)
    smallest = checked_min_group_size(min_group_size)
    if coordinates is not None:
        space = _bare_space(paired, coordinates, ncp, projection, categorical)
    else:
        space = _projected_space(paired, ncp, projection, categorical)
    counts, evidence = _count(space, paired.own, progress)
    findings = examine(space.original_cells, space.avatar_cells, paired.own)
    near_copies = near_copies_reason(space.originals, space.avatars)
    both_sorted = _sorted_columns(space) if paired.by == ROW_ORDER else []
    result = LocalCloaking(
        counts=counts.closer,
        strict_counts=counts.strictly_closer,
        ncp=space.ncp,
        space=space.kind,
        avatars_table="verified" if paired.whole and space.bound else "not verified",
        explained=space.explained,
        pairing=paired.by,
        evidence=evidence,
        findings=findings,
        near_copies=near_copies,
        without_filled=_without_filled(paired, space) if len(counts.closer) else None,
        warnings=(
            *paired.warnings,
            *space.warnings,
            *warnings_of(evidence, both_sorted, findings, median_count(counts.closer)),
        ),
    )
    if result.looks_shuffled or not len(result.counts):
        return result
    return replace(
        result,
        ladder=_ladder(space, paired.own, result.median) if ladder else None,
        groups=group_entries(originals, wanted_groups, result.counts, min_group_size=smallest)
        if wanted_groups
        else None,
    )


def _read(
    originals: Any,
    avatars: Any,
    key: str | None,
    pairing: pd.DataFrame | None,
    categorical: Collection[str],
    leave_out: Collection[str],
) -> tuple[pd.DataFrame, pd.DataFrame]:
    from local_cloaking.tables import read_pair

    keys = [str(key)] if key is not None else [] if pairing is None else [str(name) for name in pairing.columns]
    refuse_rows_without_order({"originals": originals, "avatars": avatars}, paired_by_key=bool(keys))
    one, other = read_pair(originals, avatars, text_columns=keys, categorical=categorical, leave_out=leave_out)
    return one.frame, other.frame


def hidden_rate(counts: Integers, strict_counts: Integers) -> float:
    r"""Return the expected hidden rate, in per cent: 0 to 100.

    The attacker links each original to the nearest avatar. If t others are exactly as near as the own one and
    none is nearer, the guess is right once in t + 1:
    :math:`100\,(1 - \operatorname{mean}_i h_i)`, with h_i = 0 if some avatar is strictly nearer, else
    1 / (t_i + 1).

    Examples
    --------
    >>> hidden_rate(np.array([0, 1, 3]), np.array([0, 0, 2]))
    50.0
    """
    if not len(counts):
        return math.nan
    right = np.where(strict_counts > 0, 0.0, 1.0 / (counts + 1))
    return float(100.0 * (1.0 - right.mean()))


def median_count(counts: Integers) -> float:
    """Return the median of counts; NaN where nothing was counted."""
    return float(np.median(counts)) if len(counts) else math.nan


def _count(space: _Space, own: Integers, progress: Progress | None) -> tuple[CloserAvatars, PairingEvidence]:
    """Count the closer avatars of all originals, or of none where a sample says that it would be in vain."""
    counter = CloserAvatarCounter(space.originals, space.avatars, own)
    z = association(space.originals, space.avatars[own])
    hopeless = evidence_of_samples(z, len(own), lambda rows: counter.some(rows).strictly_closer)
    if hopeless is not None:
        none = np.zeros(0, np.int64)
        return CloserAvatars(none, none), hopeless
    counts = counter.all(progress)
    return counts, pairing_evidence(z, counts.strictly_closer, len(own))


@dataclass(frozen=True)
class _Paired:
    originals: pd.DataFrame
    avatars: pd.DataFrame
    own: Integers
    by: str
    whole: bool
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class _Space:
    kind: str
    originals: Floats
    avatars: Floats
    original_cells: list[EncodedColumn]
    avatar_cells: list[EncodedColumn]
    ncp: int
    explained: tuple[float, ...]
    warnings: tuple[str, ...]
    #: Of more components: the fit on the originals, or the bare coordinates.
    fitted: FAMD | None = None
    bare: tuple[Floats, Floats] | None = None
    #: Whether the avatars' coordinates are known to be those of their table.
    bound: bool = True


def _pair(
    originals: pd.DataFrame,
    avatars: pd.DataFrame,
    *,
    key: str | None,
    pairing: pd.DataFrame | None,
    drop: Collection[str],
) -> _Paired:
    tables = {"originals": _named(originals, "originals"), "avatars": _named(avatars, "avatars")}
    refuse_dropped_key(key, drop)
    warnings = left_out_warnings(drop, *(list(table.columns) for table in tables.values()))
    tables = {name: _without(table, drop) for name, table in tables.items()}
    whole = not warnings
    if key is None and pairing is None:
        one, other = tables["originals"], tables["avatars"]
        return _Paired(one, other, own_by_order(one, other), ROW_ORDER, whole, tuple(warnings))
    if pairing is None:
        names = (str(key), str(key))
        by = f"key {key!r}"
        warnings.append(key_warning(str(key)))
    else:
        if pairing.shape[1] != 2:
            raise InputError(
                f"the pairing table has {pairing.shape[1]} columns",
                remedy="give two: the keys of the originals, the keys of their avatars",
            )
        names = (str(pairing.columns[0]), str(pairing.columns[1])) if key is None else (str(key), str(key))
        by = f"pairing table ({names[0]!r}, {names[1]!r})"
    one, original_keys = _take_key(tables["originals"], names[0], "originals")
    other, avatar_keys = _take_key(tables["avatars"], names[1], "avatars")
    if pairing is None:
        own = own_by_key(original_keys, avatar_keys, names[0])
    else:
        own = own_by_pairing(original_keys, avatar_keys, pairing, names)
    return _Paired(one, other, own, by, whole, tuple(warnings))


def _named(frame: pd.DataFrame, table: str) -> pd.DataFrame:
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"the {table} are not a DataFrame", remedy="give a pandas DataFrame")
    names = names_of(frame, table)
    if not len(frame):
        raise InputError(f"the {table} have no rows", rows=0, remedy="give at least one individual")
    named = frame.copy(deep=False)
    named.columns = pd.Index(names)
    return named


def _without(frame: pd.DataFrame, drop: Collection[str]) -> pd.DataFrame:
    left_out = {str(name) for name in drop}
    return frame[[column for column in frame.columns if column not in left_out]] if left_out else frame


def refuse_dropped_key(key: str | None, drop: Collection[str]) -> None:
    """Refuse a key that is to be dropped as well."""
    if key is not None and str(key) in {str(name) for name in drop}:
        raise InputError("both the key and to be dropped", column=str(key), remedy="give it as one of the two")


def left_out_warnings(drop: Collection[str], originals: Sequence[str], avatars: Sequence[str]) -> list[str]:
    """Warn of columns that leave with the avatars unmeasured; refuse to drop what is in neither table."""
    left_out = sorted({str(name) for name in drop})
    for name in left_out:
        if name not in originals and name not in avatars:
            raise InputError("to be dropped, but in neither table", column=name, remedy="correct the name")
    return [
        f"column {name!r} was left out: it stands in the avatars but was not measured"
        for name in left_out
        if name in avatars
    ]


def key_warning(key: str) -> str:
    """Say that avatars with their key are not yet fit to leave."""
    return f"the avatars carry the key {key!r}: take it out, and shuffle the rows, before they leave"


def refuse_absent_key(key: str, names: Sequence[str], table: str) -> None:
    """Refuse a key that is no column of the table."""
    if key not in names:
        raise InputError(f"the key is not in the {table}", column=key, remedy="correct `key`, or add the column")


def _take_key(frame: pd.DataFrame, key: str, table: str) -> tuple[pd.DataFrame, pd.Series[Any]]:
    refuse_absent_key(key, list(frame.columns), table)
    return frame.drop(columns=key), frame[key].reset_index(drop=True)


def _projected_space(
    paired: _Paired, ncp: int | None, projection: FAMD | None, categorical: Collection[str] | None
) -> _Space:
    fitted = wanted_fit(ncp, projection, categorical)
    original_cells = fitted.fit_encoded(paired.originals)
    used, warnings = used_projection(fitted, projection)
    wanted = fitted.n_components
    if used.columns_ != fitted.columns_:
        # The same but for rounding of the fills, and for types of numbers; what was handed over is what is used.
        original_cells = encode(paired.originals, used.columns_, "originals")
    avatar_cells = encode(paired.avatars, used.columns_, "avatars")
    return _Space(
        kind="refitted" if projection is None else "handed over",
        originals=used.project(original_cells)[:, :wanted],
        avatars=used.project(avatar_cells)[:, :wanted],
        original_cells=original_cells,
        avatar_cells=avatar_cells,
        ncp=wanted,
        explained=explained_by(used)[:wanted],
        warnings=tuple(warnings),
        fitted=fitted,
    )


def wanted_fit(ncp: Any, projection: FAMD | None, categorical: Collection[str] | None) -> FAMD:
    """Return the projection that is to be fitted on the originals, not yet fitted."""
    if projection is None:
        return FAMD(checked_ncp(DEFAULT_NCP if ncp is None else ncp), categorical)
    return FAMD(_ncp_of(projection, ncp), _categories_of(projection, categorical))


def used_projection(fitted: FAMD, projection: FAMD | None) -> tuple[FAMD, list[str]]:
    """Return the projection to measure in, and what a reader should know about it.

    Parameters
    ----------
    fitted
        Fitted on the originals.
    projection
        The one handed over, or None.

    Raises
    ------
    InputError
        If the projection handed over is not that of these originals.
    """
    warnings = list(fitted.warnings_)
    if projection is None:
        warnings.append("space: refitted; the avatarisation's own projection was not handed over")
        return fitted, warnings
    check_same_space(projection, fitted)
    held = len(projection.components_)
    if fitted.n_components < held:
        warnings.append(f"ncp is {fitted.n_components}, but the projection handed over has {held} components")
    return projection, warnings


def explained_by(famd: FAMD) -> tuple[float, ...]:
    """Return the share of the variance that each component explains."""
    total = famd.total_variance_
    return tuple(float(variance) / total if total > 0 else 0.0 for variance in famd.eigenvalues_)


def _ncp_of(projection: FAMD, ncp: int | None) -> int:
    held = len(projection.components_)
    wanted = held if ncp is None else checked_ncp(ncp)
    if wanted > held:
        raise InputError(
            f"`ncp` is {wanted}, but the projection handed over has {held} components",
            remedy=f"use ncp={held}",
        )
    return wanted


def _categories_of(projection: FAMD, categorical: Collection[str] | None) -> list[str]:
    categories = [column.name for column in projection.columns_ if column.role == "category"]
    other = sorted({str(name) for name in categorical or ()} - set(categories))
    if other:
        raise InputError(
            "declared as categorical, but a number in the projection handed over",
            column=other[0],
            remedy="declare the same columns as in the avatarisation",
        )
    return categories


def _bare_space(
    paired: _Paired,
    coordinates: tuple[ArrayLike, ArrayLike],
    ncp: int | None,
    projection: FAMD | None,
    categorical: Collection[str] | None,
) -> _Space:
    if projection is not None:
        raise InputError(
            "both a projection and bare coordinates are given",
            remedy="give the projection, which proves more",
        )
    wanted = checked_ncp(DEFAULT_NCP if ncp is None else ncp)
    columns, warnings = learn_columns(paired.originals, categorical or ())
    try:
        x, y = (np.asarray(values, dtype=np.float64) for values in coordinates)
    except (TypeError, ValueError):
        # Without the cause: its message shows the cell.
        raise InputError(
            "the bare coordinates are not two tables of numbers",
            remedy="give one for the originals, one for the avatars, one column per component",
        ) from None
    for values, table, name in ((x, paired.originals, "originals"), (y, paired.avatars, "avatars")):
        if values.ndim != 2 or len(values) != len(table) or values.shape[1] < wanted:
            raise InputError(
                f"the coordinates of the {name} are of shape {values.shape}, not ({len(table)}, {wanted} or more)",
                remedy="give one row per row of the table, and at least ncp components",
            )
    original_cells = encode(paired.originals, columns, "originals")
    avatar_cells = encode(paired.avatars, columns, "avatars")
    used = x[:, :wanted], y[:, :wanted]
    principal = _principal_space(paired.originals, wanted, categorical)
    projected = principal and (principal.project(original_cells), principal.project(avatar_cells))
    not_bound = binding_warnings(used, projected, wanted)
    if not_bound:
        warnings.append("avatars_table: not verified; bare coordinates prove nothing about the table that leaves")
    return _Space(
        kind="coordinates",
        originals=used[0],
        avatars=used[1],
        original_cells=original_cells,
        avatar_cells=avatar_cells,
        ncp=wanted,
        explained=(),
        warnings=(*warnings, *not_bound),
        bare=(x[:, :LADDER_COMPONENTS], y[:, :LADDER_COMPONENTS]),
        bound=not not_bound,
    )


def _principal_space(originals: pd.DataFrame, ncp: int, categorical: Collection[str] | None) -> FAMD | None:
    """Fit the space that coordinates are compared with; nothing is measured in it."""
    try:
        return FAMD(ncp, categorical).fit(originals)
    except InputError:
        return None  # Fewer components, or a cut between equal ones: there is no such space.


def warnings_of(
    evidence: PairingEvidence, both_sorted: Iterable[str], findings: TableFindings, median: float
) -> list[str]:
    """Return what a reader should know of the pairs and of the cells.

    Parameters
    ----------
    evidence
        How far the pairs are from a random pairing.
    both_sorted
        The columns by which both tables are sorted, where row order pairs them.
    findings
        What the cells of both tables say.
    median
        Local Cloaking; NaN where nothing was counted.
    """
    nothing = ["all originals, or all avatars, are alike"] if evidence.association is None else []
    shuffled = [evidence.warning] if evidence.warning else []
    carried = _carried_over_warnings(findings.carried_over, median)
    return [*nothing, *shuffled, *sorted_warnings(both_sorted), *carried, *findings.warnings]


def _carried_over_warnings(carried: CarriedOver | None, median: float) -> list[str]:
    if carried is None or not carried.median_peers < median:  # NaN where nothing was counted
        return []
    named = ", ".join(repr(name) for name in carried.columns[:5])
    more = f" and {len(carried.columns) - 5} more" if len(carried.columns) > 5 else ""
    return [
        f"{named}{more} carried over unchanged: by these values alone, the median individual has "
        f"{carried.median_peers:g} other avatars alike, fewer than its Local Cloaking says"
    ]


def _ladder(space: _Space, own: Integers, median: float) -> Ladder:
    """Measure with other numbers of components, in the space of the originals, whichever was handed over."""
    known = {space.ncp: median}
    if space.bare is not None:
        return measure_ladder(*space.bare, own, [True] * space.bare[0].shape[1], known)
    fitted = cast(FAMD, space.fitted)
    widest = widest_fit(fitted)
    return measure_ladder(
        widest.project(space.original_cells), widest.project(space.avatar_cells), own, fitted.cuts(), known
    )


def widest_fit(fitted: FAMD) -> FAMD:
    """Return the same fit with as many components as the highest cut of the ladder has, if it has any."""
    possible = [ncp for ncp, is_possible in enumerate(fitted.cuts(), start=1) if is_possible]
    return fitted.with_components(possible[-1]) if possible else fitted


def _sorted_columns(space: _Space) -> list[str]:
    return [
        one.column.name
        for one, other in zip(space.original_cells, space.avatar_cells, strict=True)
        if SortedRun.of(one.values).sorted and SortedRun.of(other.values).sorted
    ]


def _without_filled(paired: _Paired, space: _Space) -> float | None:
    """Measure again without the columns in which a cell of either table was filled."""
    kept = [
        one.column
        for one, other in zip(space.original_cells, space.avatar_cells, strict=True)
        if not (one.filled.any() or other.filled.any())
    ]
    if not kept or len(kept) == len(space.original_cells):
        return None
    names = [column.name for column in kept]
    famd = FAMD(space.ncp, [column.name for column in kept if column.role == "category"])
    try:
        x = famd.fit_transform(paired.originals[names])
    except InputError:
        return None  # Too few independent components without them: there is no such figure.
    counts: CloserAvatars = count_closer_avatars(x, famd.transform(paired.avatars[names]), paired.own)
    return float(np.median(counts.closer))
