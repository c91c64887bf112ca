r"""Local Cloaking of groups, told so that nothing is told of a few.

The counts are those of all individuals among all avatars; a group only gathers the counts of its members.
Whoever reads the record may hold the originals, and so know the groups of everybody; what must stay hidden is
what the counts of a few are. Published are, for each group of each column named, its size, the median of its
counts, and an interval around its share of individuals without a closer avatar (count 0); and, elsewhere in the
record, the exact distribution of all counts. Three rules stand between these and a few individuals; what they
do not cover stands below.

**Levels.** Levels of fewer than m = ``min_group_size`` individuals are merged, two at least and m individuals at
least, and not named. Else subtracting the other groups from the whole table would give them back.

**Subtraction.** Let the cells be the combinations of published groups, over all columns, in which there is
anybody, and M the matrix of groups by cells, 1 where the cell lies in the group. Any sum over individuals that
were published for the groups (their sizes are) can be had for a combination of cells v, and only for such, as

.. math:: v = y^\top M \quad \text{for some } y;

the whole table is the sum of any column's groups. A set of fewer than m individuals that is a union of cells is
made of small cells, those of fewer than m, alone; a set that is not never is a combination. So there is no such
v if no y but those with y'M = 0 makes y'M vanish on all large cells, which is to say: the rank of M on the large
cells is the rank of M. That is demanded. It is a little more than needed: it also forbids differences of small
cells. (With N a basis of the null space of M, it is the same as linearly independent rows of N at the small
cells.)

That sizes are never negative adds nothing: the true sizes lie in the inside of all the sizes that fit the
published ones, since every cell has somebody in it, and there a sum is fixed by the published ones only if it is
a combination of them. Who knows less of which combinations are empty can only compute less. Not covered: whoever
knows of every combination that there is somebody can sometimes conclude, since sizes are whole, that it is one
person; no count of theirs follows.

**Count 0.** The number of individuals without a closer avatar is known exactly for the whole table, shares and
medians say something of it for each group. Of no individual must it follow that they are without a closer
avatar, nor that they are not, even where the groups of everybody are known. Within a cell nothing published
tells one individual from another; so where both kinds are in it, each may be of either. For each cell, however
small, in which all are without, or none is, an exchange of counts is demanded that changes that and leaves
everything published, in every column, as it is. Two kinds of exchange are looked for:

- an individual of the cell and one of another, one without a closer avatar and one with, exchange their counts;
  their groups' shares stay in their intervals and their medians where they are;
- the same within one group of every column but one, and a second such exchange elsewhere makes up for it: no
  group's number without a closer avatar changes, and no more does its number of counts on either side of a
  median.

After it, any of the cell may be the one who exchanged. Other exchanges could do, too, so this is a little more
than needed. It follows for groups, and all unions of cells, that neither all nor none need be without.

Shares lie on a grid of at least 5 per cent and at least 3 individuals, made of steps that are multiples of one
number that does not divide the total: however many groups are taken off that total at the low ends of their
intervals, something is left for the last. Where the rule is broken the shares of the column being added are not
told (0 to 100), and where the medians alone break it, it is merged or withheld as below. Where the total is none
or all, everybody knows anyway, and nothing is demanded.

Columns are taken as they were named; one that breaks a rule together with those before it has its two smallest
groups merged, again and again, and is withheld if that does not help.

What is not covered:

- Medians are no sums. Those of nested groups (one column divides a group of another) tell something of the
  difference between the two, which the second rule keeps at m individuals or none: for example that at least
  half of them lie below a number. Whether an individual's count is 0 is all that the third rule hides: that all
  of a group, or of a smaller cell, have a count of more than so and so, or less, can still follow where groups
  hardly overlap; so can that of two individuals of different cells one at least is without a closer avatar; and
  of likelihood no rule speaks.
- Each call stands for itself. Two reports of the same originals and avatars with other groups, with the columns
  in another order or with another m are not guarded against each other: taken together they may tell what
  neither does.
- Whoever knows individual counts already, their own among them, can compute more than the rules allow for.
- That a column was merged or withheld, or its shares are not told, says that a rule would have been broken. In a
  small table, whoever goes through all the ways in which that could be may at times find out by which cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from local_cloaking.errors import InputError
from local_cloaking.limits import MIN_GROUP_SIZE
from local_cloaking.tables.values import as_words, kind_of
from local_cloaking.whole import whole_number

Booleans = NDArray[np.bool_]
Integers = NDArray[np.int64]

#: A column of more levels is refused: hardly one of them would be a group.
MAX_LEVELS = 100
#: A column that divides the table into more cells, together with those before it, is merged further or withheld.
MAX_CELLS = 10_000
#: Only so many cells, the largest, are looked at for what shows that no subtraction is one of a few.
_CELLS_LOOKED_AT = 4_000
#: Each cell of which all or none have count 0 is compared with so many others at most: those with most to give.
_CELLS_EXCHANGED_WITH = 1_000
#: Exchanges among four cells are looked for among so many cells at most: the work grows fast.
_CELLS_OF_RECTANGLES = 2_000
#: What a user may ask for at least: the median of fewer is next to the count of one of them.
_SMALLEST_GROUP_SIZE = 5
#: A step of the grid of shares holds at least so many individuals, and at least one in so many.
_STEP_INDIVIDUALS, _STEP_SHARE = 3, 20

_NOBODY = np.iinfo(np.int64).max
#: The kind of the count 0; see `_kinds`.
_ZERO = 1


def checked_min_group_size(value: Any) -> int:
    """Return the number of individuals from which on a group is told of.

    Parameters
    ----------
    value
        A whole number of at least 5, or text that is one.

    Raises
    ------
    InputError
        If it is anything else. The median of two is a figure of these two, and of four it still is nearly one.

    Examples
    --------
    >>> checked_min_group_size("10")
    10
    """
    size = whole_number(value)
    if size is None or size < _SMALLEST_GROUP_SIZE:
        raise InputError(
            f"the smallest group that may be told of is no whole number of at least {_SMALLEST_GROUP_SIZE}",
            remedy=f"give `min_group_size` as one, {MIN_GROUP_SIZE} for example; the median of fewer tells of "
            "single people",
        )
    return size


def checked_group_columns(frame: pd.DataFrame, columns: Sequence[str], key: str | None = None) -> list[str]:
    """Return the columns whose groups are wanted.

    Parameters
    ----------
    frame
        The originals.
    columns
        Names of columns, in the order in which they shall be told.
    key
        The column that pairs originals and avatars, if there is one.

    Raises
    ------
    InputError
        If a column is not in the table, is named twice, is the key, or makes no groups: it holds dates, durations
        or more than 100 levels.

    Examples
    --------
    >>> checked_group_columns(pd.DataFrame({"arm": ["a", "b"], "age": [40, 50]}), ["arm"])
    ['arm']
    """
    names = [str(column) for column in columns]
    for i, name in enumerate(names):
        if name not in frame.columns:
            raise InputError(
                "groups were asked for, but it is not among the columns", column=name, remedy="correct the name"
            )
        if name in names[:i]:
            raise InputError("its groups were asked for twice", column=name, remedy="name it once")
        if name == key:
            raise InputError(
                "it is the key, which tells each individual from all others",
                column=name,
                remedy="name columns whose levels are shared by many",
            )
        _levels_of(frame[name], name)
    return names


def group_entries(
    frame: pd.DataFrame, columns: Sequence[str], counts: Integers, *, min_group_size: int = MIN_GROUP_SIZE
) -> dict[str, Any]:
    """Return the Local Cloaking of each group, as far as it can be told without telling it of a few.

    Parameters
    ----------
    frame
        The originals.
    columns
        Names of columns; those named first are told in more detail where not all can be told.
    counts
        The counts of all individuals, in the order of the originals.
    min_group_size
        Groups of fewer individuals are merged or withheld, and none can be had by subtraction. It is 2 at least;
        what a user asks for goes through `checked_min_group_size` before.

    Returns
    -------
    The entry ``groups`` of the record, made of plain JSON values. For each column: why it was ``withheld``
    (``too_few``: no two groups are large enough; ``with_others``: together with what else the record tells, it
    would tell of fewer; or None), and its ``groups`` in the order of their first level. A group has ``levels``
    (those of at least ``min_group_size`` individuals, by name; None stands for a missing cell), the number of
    ``others`` merged into it, ``individuals``, ``local_cloaking``, and ``share_without``: the share in per cent
    of individuals without a closer avatar, as an interval.

    Raises
    ------
    InputError
        See `checked_group_columns`.
    ValueError
        If nothing was counted, or not for each original, or ``min_group_size`` is less than 2.

    Examples
    --------
    >>> arms = pd.DataFrame({"arm": ["a"] * 20 + ["b"] * 30})
    >>> entry = group_entries(arms, ["arm"], np.arange(50) % 25)
    >>> [(group["levels"], group["local_cloaking"]) for group in entry["columns"][0]["groups"]]
    [(['a'], 9.5), (['b'], 14.5)]
    >>> entry["columns"][0]["groups"][0]["share_without"]
    {'at_least': 0.0, 'at_most': 15.0}
    """
    if not len(counts) or len(counts) != len(frame):
        raise ValueError(
            f"{len(counts)} counts for {len(frame)} originals: there is one for each, and at least one"
        )
    if min_group_size < 2:
        raise ValueError(f"groups of {min_group_size} are no groups")
    smallest = int(min_group_size)
    published = _nothing_published(counts)
    entries: list[dict[str, Any]] = []
    for name in checked_group_columns(frame, columns):
        levels = _levels_of(frame[name], name)
        merged = _merged_levels(levels.sizes, smallest)
        groups, published = _published_with(published, levels, merged, counts, smallest)
        reason = "too_few" if len(merged) < 2 else "with_others"
        told = [_group_entry(group, levels, smallest) for group in groups]
        entries.append({"column": name, "withheld": None if told else reason, "groups": told})
    return {"min_group_size": smallest, "columns": entries}


def worst_group(groups_entry: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Return the column and the group of the lowest Local Cloaking, the first of equals; None if there is none.

    Examples
    --------
    >>> arms = pd.DataFrame({"arm": ["a"] * 20 + ["b"] * 30})
    >>> column, group = worst_group(group_entries(arms, ["arm"], np.arange(50) % 25))
    >>> column, group["levels"]
    ('arm', ['a'])
    """
    told = [(column["column"], group) for column in groups_entry["columns"] for group in column["groups"]]
    return min(told, key=lambda pair: float(pair[1]["local_cloaking"]), default=None)


# Levels and groups of one column -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Levels:
    """The levels of a column: one code per individual; name (None for missing cells) and size per code."""

    codes: Integers
    names: list[str | None]
    sizes: Integers


def _levels_of(series: pd.Series[Any], column: str) -> _Levels:
    kind = kind_of(series, column)
    if kind in ("date", "zoned date", "duration"):
        raise InputError(
            "dates and durations make no groups",
            column=column,
            remedy="cut it into classes first, years for example",
        )
    codes, words = as_words(series, kind)
    names: list[str | None] = [str(word) for word in words]
    if bool((codes < 0).any()):
        codes = np.where(codes < 0, len(names), codes)
        names.append(None)
    if len(names) > MAX_LEVELS:
        raise InputError(
            f"its {len(names)} levels are too many for groups ({MAX_LEVELS} at most)",
            column=column,
            remedy="cut it into classes first",
        )
    return _Levels(codes, names, np.bincount(codes, minlength=len(names)))


def _merged_levels(sizes: Integers, smallest: int) -> list[tuple[int, ...]]:
    """Return the codes of each group: one per level, and one of all small levels with what they need."""
    small = np.flatnonzero(sizes < smallest).tolist()
    large = sorted(np.flatnonzero(sizes >= smallest).tolist(), key=lambda code: (sizes[code], code))
    # One small level alone is too small, too: there are two at least in the end.
    while small and large and sizes[small].sum() < smallest:
        small.append(large.pop(0))
    return [(code,) for code in large] + ([tuple(small)] if small else [])


@dataclass(frozen=True)
class _Group:
    """A group: the codes of its levels, its counts in ascending order, and a step of its grid of shares."""

    codes: tuple[int, ...]
    counts: Integers
    step: int

    @property
    def size(self) -> int:
        return len(self.counts)

    @property
    def without(self) -> int:
        """Number of individuals without a closer avatar."""
        return int(np.searchsorted(self.counts, 0, side="right"))

    @property
    def steps(self) -> int:
        # A step left over at the end joins the one before: alone, it could be the number "all".
        return max(1, (self.size + 1) // self.step)

    @property
    def place(self) -> int:
        return min(self.without // self.step, self.steps - 1)

    @property
    def lowest(self) -> int:
        """The lowest number of individuals without a closer avatar that looks like the true one."""
        return self.place * self.step

    @property
    def highest(self) -> int:
        return self.size if self.place == self.steps - 1 else self.lowest + self.step - 1

    @property
    def middle(self) -> tuple[int, int]:
        """Where in the counts the two of which the median is the mean stand."""
        return (self.size - 1) // 2, self.size // 2

    @property
    def median(self) -> float:
        return float(self.counts[list(self.middle)].mean())

    def may_lose_zero_for(self, counts: Integers) -> Booleans:
        """Tell for which counts nothing published changes when one replaces a 0."""
        same = np.full(len(counts), self.without > self.lowest)
        for i in self.middle:
            # Those between the 0 and the new count move down by one place.
            same &= (counts <= self.counts[i]) | (i + 1 < self.size and self.counts[i] == self.counts[i + 1])
        return same

    def may_win_zero_for(self, counts: Integers) -> Booleans:
        """Tell for which counts nothing published changes when a 0 replaces one."""
        same = np.full(len(counts), self.without < self.highest)
        for i in self.middle:
            # Those between the 0 and the old count move up by one place.
            same &= (counts < self.counts[i]) | (self.counts[i] == (self.counts[i - 1] if i else 0))
        return same


def _step(size: int, total_without: int) -> int:
    """Return a step of the grid of shares, from what is public anyway."""
    base = _STEP_INDIVIDUALS
    while total_without and not total_without % base:
        base += 1
    wanted = max(_STEP_INDIVIDUALS, -(-size // _STEP_SHARE))
    return base * -(-wanted // base)


def _group_entry(group: _Group, levels: _Levels, smallest: int) -> dict[str, Any]:
    named = sorted(code for code in group.codes if levels.sizes[code] >= smallest)
    # In tenths of a per cent, rounded outwards.
    at_least = 1000 * group.lowest // group.size
    last = group.place == group.steps - 1
    at_most = 1000 if last else -(-1000 * (group.lowest + group.step) // group.size)
    return {
        "levels": [levels.names[code] for code in named],
        "others": len(group.codes) - len(named),
        "individuals": group.size,
        "local_cloaking": group.median,
        "share_without": {"at_least": at_least / 10, "at_most": at_most / 10},
    }


# All columns together ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Published:
    """The groups that are published, and the cells: the combinations of them in which there is anybody.

    Attributes
    ----------
    groups
        Those of all columns.
    parts
        Which of its column's groups each cell lies in, shape (columns, cells).
    member
        Which cell lies in which group, shape (groups, cells).
    cells
        The cell of each individual.
    sizes, without, least
        Of each cell: individuals, those of count 0, and the smallest other count (`_NOBODY` where all are 0).
    """

    groups: tuple[_Group, ...]
    parts: Integers
    member: Booleans
    cells: Integers
    sizes: Integers
    without: Integers
    least: Integers


def _nothing_published(counts: Integers) -> _Published:
    everybody = np.zeros(len(counts), np.int64)
    nothing = np.zeros((0, 1), np.int64)
    return _Published((), nothing, nothing.astype(bool), everybody, *_sums(everybody, counts, 1))


def _sums(cells: Integers, counts: Integers, number: int) -> tuple[Integers, Integers, Integers]:
    least = np.full(number, _NOBODY)
    np.minimum.at(least, cells, np.where(counts > 0, counts, _NOBODY))
    return (
        np.bincount(cells, minlength=number),
        np.bincount(cells[counts == 0], minlength=number),
        least,
    )


def _published_with(
    published: _Published, levels: _Levels, merged: list[tuple[int, ...]], counts: Integers, smallest: int
) -> tuple[list[_Group], _Published]:
    """Add the groups of a column, merged as far as it takes; none where that does not help."""
    order = np.lexsort((counts, levels.codes))
    of_level = np.split(counts[order], np.cumsum(levels.sizes)[:-1])
    total_without = int(np.count_nonzero(counts == 0))
    while len(merged) > 1:
        merged = sorted(merged, key=lambda codes: _order_of(codes, levels, smallest))
        divided = _divided(published, levels.codes, merged, counts)
        if len(divided.sizes) <= MAX_CELLS and _withstands_subtraction(divided.member, divided.sizes, smallest):
            parts = [np.sort(np.concatenate([of_level[code] for code in codes])) for codes in merged]
            sizes = [len(part) for part in parts]
            # The second time with a step of more than everybody: shares from 0 to 100 per cent.
            for steps in ([_step(size, total_without) for size in sizes], [size + 1 for size in sizes]):
                groups = [_Group(*group) for group in zip(merged, parts, steps, strict=True)]
                candidate = replace(divided, groups=(*published.groups, *groups))
                if _hides_zeros(candidate, counts):
                    return groups, candidate
        merged = _two_smallest_merged(merged, levels.sizes)
    return [], published


def _order_of(codes: tuple[int, ...], levels: _Levels, smallest: int) -> tuple[bool, int]:
    """Order groups by their first named level, those without one last."""
    named = [code for code in codes if levels.sizes[code] >= smallest]
    return not named, min(named, default=0)


def _two_smallest_merged(merged: list[tuple[int, ...]], sizes: Integers) -> list[tuple[int, ...]]:
    first, second, *rest = sorted(merged, key=lambda codes: (sizes[list(codes)].sum(), min(codes)))
    return [first + second, *rest]


def _divided(
    published: _Published, codes: Integers, merged: list[tuple[int, ...]], counts: Integers
) -> _Published:
    """Divide the cells by the groups of one more column."""
    group_of = np.empty(sum(len(group) for group in merged), np.int64)
    for i, group in enumerate(merged):
        group_of[list(group)] = i
    combined = published.cells * len(merged) + group_of[codes]
    taken = np.bincount(combined, minlength=len(published.sizes) * len(merged)) > 0
    cells = (np.cumsum(taken) - 1)[combined]
    before, added = np.divmod(np.flatnonzero(taken), len(merged))
    parts = np.vstack([published.parts[:, before], added])
    member = np.vstack([published.member[:, before], np.arange(len(merged))[:, None] == added])
    return _Published(published.groups, parts, member, cells, *_sums(cells, counts, len(before)))


def _withstands_subtraction(member: Booleans, sizes: Integers, smallest: int) -> bool:
    """Tell whether no sum or difference of groups is a set of fewer individuals; see the top of this file."""
    if bool((sizes >= smallest).all()):
        return True
    large = _largest(sizes)
    large = large[sizes[large] >= smallest]
    if not len(large):
        return False
    return bool(np.linalg.matrix_rank(member[:, large].astype(np.float64)) == _rank(member))


def _rank(member: Booleans) -> int:
    """Return the rank of all groups, or for many cells the highest that groups of so many columns can have."""
    groups, cells = member.shape
    if cells <= _CELLS_LOOKED_AT:
        return int(np.linalg.matrix_rank(member.astype(np.float64)))
    # Each cell lies in one group of each column, and those of each column add up to the same whole table.
    columns = int(np.count_nonzero(member[:, 0]))
    return int(groups - columns + 1)


def _largest(sizes: Integers) -> Integers:
    return np.argsort(-sizes, kind="stable")[:_CELLS_LOOKED_AT]


def _hides_zeros(published: _Published, counts: Integers) -> bool:
    """Tell whether it follows for no cell that all, or that none, in it are without a closer avatar."""
    if published.without.sum() in (0, len(counts)):
        return True
    # In other cells, those with and those without may change places, and nothing published sees it.
    left = np.flatnonzero((published.without == 0) | (published.without == published.sizes))
    left = left[~_may_exchange_with_another(published, left)]
    if len(left) and len(published.sizes) <= _CELLS_OF_RECTANGLES:
        left = left[~_may_exchange_in_rectangles(published, left, counts)]
    return not len(left)


def _may_exchange_with_another(published: _Published, cells: Integers) -> Booleans:
    """Tell which cells may give their only kind of count, 0 or other, to another cell for one that is not."""
    have_others = published.without[cells] == 0
    found = np.zeros(len(cells), dtype=bool)
    givers = _most(published.without)
    found[have_others] = _unseen_exchanges(published, givers, cells[have_others]).any(axis=0)
    takers = _most(published.sizes - published.without)
    found[~have_others] = _unseen_exchanges(published, cells[~have_others], takers).any(axis=1)
    return found


def _most(numbers: Integers) -> Integers:
    """Return the cells of the highest numbers, none of them 0."""
    first = np.argsort(-numbers, kind="stable")[:_CELLS_EXCHANGED_WITH]
    return first[numbers[first] > 0]


def _unseen_exchanges(published: _Published, first: Integers, second: Integers) -> Booleans:
    """Tell for cells with a 0, and others with another count, whether it and the least other may change places.

    Only groups that hold one of the two cells see anything of it, and each of them must stay as it is published.
    """
    in_first, in_second, least = published.member[:, first], published.member[:, second], published.least[second]
    loses = np.array([group.may_lose_zero_for(least) for group in published.groups])
    wins = np.array([group.may_win_zero_for(least) for group in published.groups])
    # Products of matrices count the groups that would change; float32, since numpy is slow at those of integers.
    seen_by_first = in_first.T.astype(np.float32) @ (~in_second & ~loses).astype(np.float32)
    seen_by_second = (~in_first).T.astype(np.float32) @ (in_second & ~wins).astype(np.float32)
    exchangeable: Booleans = seen_by_first + seen_by_second == 0
    return exchangeable


def _may_exchange_in_rectangles(published: _Published, cells: Integers, counts: Integers) -> Booleans:
    """Tell which cells may exchange a 0 and another count so that three more cells make up for it.

    The four cells are the corners of a rectangle: two groups u and v of one column, and two combinations r and s
    of groups of all others. A 0 and another count change places between (u, r) and (v, r), and a 0 and a count of
    the same kind between (v, s) and (u, s), the other way round: each group has as many of each kind as before.
    """
    kinds = _kinds(published, counts)
    present = np.zeros((len(published.sizes), int(kinds.max()) + 1), dtype=np.float32)
    present[published.cells, kinds] = 1
    have_others = published.without[cells] == 0
    found = np.zeros(len(cells), dtype=bool)
    for column in range(len(published.parts)):
        u = published.parts[column]
        _, r = np.unique(np.delete(published.parts, column, axis=0), axis=1, return_inverse=True)
        r = r.reshape(-1)
        grid = np.zeros((present.shape[1], u.max() + 1, r.max() + 1), dtype=np.float32)
        grid[:, u, r] = present.T
        zeros = grid[_ZERO]
        for kind in np.flatnonzero(present[:, _ZERO + 1 :].any(axis=0)) + _ZERO + 1:
            others = grid[kind]
            # Which corners have three others as they have to be: sums of products over all v and s.
            wins = ((zeros @ others.T @ zeros) > 0)[u[cells], r[cells]] & (present[cells, kind] > 0)
            loses = ((others @ zeros.T @ others) > 0)[u[cells], r[cells]]
            found |= np.where(have_others, wins, loses)
    return found


def _kinds(published: _Published, counts: Integers) -> Integers:
    """Return the kind of each count: `_ZERO`, or higher; those of one kind are the same to all medians.

    Two counts are of one kind if they are equal, or if no count that makes a median lies between them or is one.
    """
    middles = {int(group.counts[i]) for group in published.groups for i in group.middle}
    bounds = np.array(sorted(middles | {0}))
    return np.searchsorted(bounds, counts, side="left") + np.searchsorted(bounds, counts, side="right")
