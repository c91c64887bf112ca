"""Which k reaches the threshold: the remedy for a low Local Cloaking, found by trying.

What a k is held against stands in `local_cloaking.trying`, in which order values are tried in
`local_cloaking.search`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from local_cloaking.limits import SMALLEST_ADVISED_K
from local_cloaking.search import doubts, next_values, smallest_reaching
from local_cloaking.tables.columns import without
from local_cloaking.trying import (
    PUBLISHED,
    SEEDS,
    Aim,
    MakeAvatars,
    Search,
    TriedK,
    checked_aim,
    kind_of,
    maker,
    reaching,
)


@dataclass(frozen=True)
class Advice:
    """The k that was found, and all that were tried.

    Attributes
    ----------
    k
        The smallest k that was tried and reaches the aim with every seed; None where none does.
    reason
        Why there is none, in one sentence; None where there is one.
    warnings
        What speaks against relying on the k found, and what the measure warned of at it, a sentence each.
    aim
        What was looked for.
    n
        Number of individuals.
    tried
        All that were tried, by rising k.

    avatarisation
        ``published algorithm``, ``function`` or ``command``.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [i * 37 % 101 for i in range(100)], "dose": [i * i % 89 for i in range(100)]})
    >>> advice = advise(table, threshold=2, ncp=2, seeds=[1, 2])
    >>> advice.k is not None and advice.at(advice.k).local_cloaking >= 2
    True
    """

    k: int | None
    reason: str | None
    warnings: tuple[str, ...]
    aim: Aim
    n: int
    tried: tuple[TriedK, ...] = field(repr=False)
    avatarisation: str = PUBLISHED

    def at(self, k: int) -> TriedK:
        """Return what was found with one k.

        Raises
        ------
        KeyError
            If it was not tried.
        """
        return {tried.k: tried for tried in self.tried}[k]

    def to_json(self) -> str:
        """Write all that was tried as JSON; its schema is ``audit/advice.schema.json``."""
        from local_cloaking.audit.advice import advice_entries
        from local_cloaking.audit.record import to_bytes

        return to_bytes(advice_entries(self)).decode()

    def to_html(self, language: str | None = None) -> str:
        """Draw all that was tried as a page of its own, with its plots, in English or another language."""
        from local_cloaking.audit.advice import advice_entries
        from local_cloaking.audit.advice_report import draw_advice

        return draw_advice(advice_entries(self), language=language).decode()


def advise(
    originals: pd.DataFrame,
    *,
    threshold: float,
    margin: float = 0.0,
    k_min: int = SMALLEST_ADVISED_K,
    k_max: int | None = None,
    seeds: Sequence[int] = SEEDS,
    avatarisation: MakeAvatars | Callable[..., Any] | str | Sequence[str] | None = None,
    ncp: int = 5,
    key: str | None = None,
    categorical: Collection[str] | None = None,
    drop: Collection[str] = (),
    told: Callable[[TriedK], object] | None = None,
) -> Advice:
    """Find the smallest k whose Local Cloaking reaches a threshold.

    A growing series of k (5, 10, 20, ...) brackets it, and bisection narrows the bracket; the neighbours of the k
    found are tried, too, as Local Cloaking does not grow with every step (see `local_cloaking.search`). It is the
    smallest of those that were tried: with a noisy avatarisation, one that was not tried may reach the aim, too.

    Parameters
    ----------
    originals
        One row per individual.
    threshold
        The smallest Local Cloaking that is to pass.
    margin
        By how much each seed is to exceed the threshold.
    k_min, k_max
        The smallest and the largest k that may be tried; by default 2, and 0.3 n but 500 at most.
    seeds
        Tried with each k, as avatarisations are random; each must reach threshold + margin.
    avatarisation
        None for the published algorithm. Else a function ``f(originals, *, k, seed)`` (``seed`` only if it takes
        one) that returns one avatar per original, or a command, as
        ``"make-avatars --k {k} --seed {seed} {originals} {output}"``; see `local_cloaking.commands`.
    ncp
        Components in which neighbours are sought and Local Cloaking is measured.
    key
        Column that pairs the tables and is not measured; the avatars must have it. Without it, row order pairs.
    categorical
        Columns to treat as categories whatever their type.
    drop
        Columns to leave out of the originals; the avatarisation does not see them.
    told
        Called with each k when it was tried.

    Returns
    -------
    Advice

    Raises
    ------
    InputError
        If the table or an argument is refused, if nobody could reach the threshold, or the avatarisation fails, or
        returns what cannot be measured.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [i * 37 % 101 for i in range(100)], "dose": [i * i % 89 for i in range(100)]})
    >>> advise(table, threshold=60, ncp=2, k_max=10, seeds=[1]).k is None
    True
    """
    table = without(originals, drop)
    aim = checked_aim(
        len(table), threshold=threshold, margin=margin, k_min=k_min, k_max=k_max, seeds=seeds, ncp=ncp
    )
    search = Search(table, aim, maker(avatarisation, key, categorical), key=key, categorical=categorical)
    search.refuse_unmeasurable()
    return conclude(find(search, told), aim, len(table), kind_of(avatarisation))


def find(search: Search, told: Callable[[TriedK], object] | None = None) -> list[TriedK]:
    """Try one k after the other until the smallest that reaches the aim is found, or none does.

    Parameters
    ----------
    search
        Tries a k.
    told
        Called with each k when it was tried.

    Returns
    -------
    All that were tried, in the order of trying.
    """
    tried: dict[int, TriedK] = {}
    while wanted := next_values(reaching(tried.values()), search.aim.bounds):
        for k in wanted:
            tried[k] = search.at(k)
            if told is not None:
                told(tried[k])
    return list(tried.values())


def conclude(tried: Iterable[TriedK], aim: Aim, n: int, avatarisation: str = PUBLISHED) -> Advice:
    """Say what follows from what was tried.

    Parameters
    ----------
    tried
        In any order.
    aim, n
        What was looked for, and among how many individuals.
    avatarisation
        What made the avatars; see `kind_of`.
    """
    by_k = sorted(tried, key=lambda one: one.k)
    found = smallest_reaching(reaching(by_k))
    warnings = doubts(reaching(by_k), aim.bounds)
    for one in by_k:
        if one.k == found:
            warnings += dict.fromkeys(warning for trial in one.trials for warning in trial.warnings)
    reason = None if found is not None else _reason_for_none(by_k, aim)
    return Advice(found, reason, tuple(warnings), aim, n, tuple(by_k), avatarisation)


def _reason_for_none(tried: Sequence[TriedK], aim: Aim) -> str:
    best = max(tried, key=lambda one: -1.0 if one.local_cloaking is None else one.local_cloaking)
    if best.local_cloaking is None:
        reason = f"no k tried up to {aim.bounds.highest} could be assessed"
    else:
        reason = (
            f"no k tried up to {aim.bounds.highest} reaches {aim.bound:g} with every seed: with k = {best.k}, the "
            f"least favourable seed has {best.local_cloaking:g}, which is the most"
        )
    unassessable = [one for one in tried if one.reason is not None]
    return f"{reason}; {unassessable[-1].reason}" if unassessable else reason
