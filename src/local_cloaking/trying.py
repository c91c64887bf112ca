"""One k tried: avatars made with each seed, measured, and held against the threshold.

An avatarisation is random, so each k is tried with several seeds, and the least favourable seed counts: a k
reaches the aim where every seed gives a Local Cloaking of at least threshold + margin. A seed whose figure cannot
be assessed (avatars that look shuffled, are copies, carry over columns that single people out, ...) never does,
however high the figure. So a release made later with one of these seeds passes the gate; with another seed it need
not, and that is what the margin is for.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Protocol

import pandas as pd

from local_cloaking.avatarisation import Avatarisation, avatarise_in_space, checked_k, checked_seed
from local_cloaking.commands import CommandAvatarisation
from local_cloaking.errors import InputError
from local_cloaking.gate import carried_over_reason, checked_margin, checked_threshold
from local_cloaking.limits import LARGEST_ADVISED_K, LARGEST_ADVISED_SHARE, SMALLEST_ADVISED_K
from local_cloaking.metric import LocalCloaking, key_warning, local_cloaking, refuse_absent_key
from local_cloaking.projection import FAMD, checked_ncp
from local_cloaking.search import Bounds
from local_cloaking.tables.columns import without
from local_cloaking.utility import Origin, Shift

#: Seeds where the user names none.
SEEDS = (1, 2, 3)

PUBLISHED, FUNCTION, COMMAND = "published algorithm", "function", "command"


class MakeAvatars(Protocol):
    """An avatarisation that takes k."""

    def __call__(self, originals: pd.DataFrame, *, k: int, seed: int) -> pd.DataFrame | Avatarisation:
        """Return one avatar per original: row by row, or with the key of each original."""


@dataclass(frozen=True)
class Trial:
    """One k tried with one seed.

    Attributes
    ----------
    seed
        The seed.
    local_cloaking, hidden_rate
        As measured; None where nothing was counted, or the pairs cannot be relied on.
    utility
        How far the avatars moved.
    reason
        Why the figure cannot be assessed, or None; then the trial does not reach the aim.
    reaches
        Whether the gate would pass it with a threshold of threshold + margin.
    warnings
        What the measure warned of.
    """

    seed: int
    local_cloaking: float | None
    hidden_rate: float | None
    utility: Shift
    reason: str | None
    reaches: bool
    warnings: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class TriedK:
    """One k tried with every seed; its figures are those of the least favourable seed."""

    k: int
    trials: tuple[Trial, ...]

    @property
    def reaches(self) -> bool:
        """Whether every seed reaches the aim."""
        return all(trial.reaches for trial in self.trials)

    @property
    def local_cloaking(self) -> float | None:
        """The lowest Local Cloaking of a seed; None where a seed has none."""
        return _lowest([trial.local_cloaking for trial in self.trials])

    @property
    def hidden_rate(self) -> float | None:
        """The lowest hidden rate of a seed, in per cent; None where a seed has none."""
        return _lowest([trial.hidden_rate for trial in self.trials])

    @property
    def moved(self) -> float:
        """How far the avatars of the seed that moved farthest moved over all; see `local_cloaking.utility`."""
        return max(trial.utility.overall for trial in self.trials)

    @property
    def reason(self) -> str | None:
        """Why the first seed that cannot be assessed cannot, or None."""
        return next((trial.reason for trial in self.trials if trial.reason is not None), None)


@dataclass(frozen=True)
class Aim:
    """What is looked for, and where.

    Attributes
    ----------
    threshold, margin
        Every seed must reach their sum.
    bounds
        The smallest and the largest k that may be tried.
    seeds
        Tried with each k.
    ncp
        Components of the avatarisation and of the measure.
    """

    threshold: float
    margin: float
    bounds: Bounds
    seeds: tuple[int, ...]
    ncp: int

    @property
    def bound(self) -> float:
        """The smallest Local Cloaking that reaches."""
        return self.threshold + self.margin

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments by which `checked_aim` makes it again, as plain JSON values."""
        return {
            "threshold": self.threshold,
            "margin": self.margin,
            "k_min": self.bounds.lowest,
            "k_max": self.bounds.highest,
            "seeds": list(self.seeds),
            "ncp": self.ncp,
        }


def checked_aim(
    n: int,
    *,
    threshold: Any,
    margin: Any = 0.0,
    k_min: Any = SMALLEST_ADVISED_K,
    k_max: Any = None,
    seeds: Iterable[Any] = SEEDS,
    ncp: Any = 5,
) -> Aim:
    """Return what is looked for in a table of n individuals; see `advise`.

    Raises
    ------
    InputError
        If an argument is refused, or nobody could reach the threshold.

    Examples
    --------
    >>> checked_aim(2139, threshold=15).bounds
    Bounds(lowest=2, highest=500)
    """
    aim = Aim(
        checked_threshold(threshold),
        checked_margin(margin),
        _checked_bounds(n, k_min, k_max),
        _checked_seeds(seeds),
        checked_ncp(ncp),
    )
    if n - 1 < aim.bound:
        raise InputError(
            f"{n} individuals can reach {n - 1} at most, below the threshold with its margin, {aim.bound:g}",
            rows=n,
            remedy="take more individuals, or a lower threshold",
        )
    return aim


def _checked_bounds(n: int, k_min: Any, k_max: Any) -> Bounds:
    lowest = checked_k(k_min, n)
    if k_max is None:
        return Bounds(lowest, max(lowest, min(int(LARGEST_ADVISED_SHARE * n), LARGEST_ADVISED_K)))
    highest = checked_k(k_max, n)
    if highest < lowest:
        raise InputError(
            f"the largest k to try, {highest}, is below the smallest, {lowest}", remedy="correct one of the two"
        )
    return Bounds(lowest, highest)


def _checked_seeds(seeds: Iterable[Any]) -> tuple[int, ...]:
    if isinstance(seeds, str) or not isinstance(seeds, Iterable):
        raise InputError("the seeds are not a list", remedy="give some whole numbers, as [1, 2, 3]")
    numbers = [checked_seed(seed) for seed in seeds]
    known = tuple(number for number in numbers if number is not None)
    if not known or len(known) < len(numbers) or len(set(known)) < len(known):
        raise InputError(
            "the seeds are none, or one stands twice", remedy="give some different whole numbers, as 1, 2, 3"
        )
    return known


def maker(avatarisation: Any, key: str | None, categorical: Collection[str] | None) -> Callable[..., Any]:
    """Return the avatarisation as a function of originals, ``k``, ``seed`` and ``ncp``; see `advise`.

    Raises
    ------
    InputError
        If it is neither None, nor a function that takes k, nor a command.
    """
    if avatarisation is None:
        return partial(avatarise_in_space, key=key, categorical=categorical)
    if isinstance(avatarisation, CommandAvatarisation):
        return avatarisation
    if callable(avatarisation):
        return _Called(avatarisation)
    return CommandAvatarisation.of(avatarisation, key=key, categorical=categorical or ())


def kind_of(avatarisation: Any) -> str:
    """Return what a record calls an avatarisation."""
    if avatarisation is None:
        return PUBLISHED
    is_command = isinstance(avatarisation, CommandAvatarisation) or not callable(avatarisation)
    return COMMAND if is_command else FUNCTION


class _Called:
    """A function of the user's: it is given a table of its own, and the seed if it takes one."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        names = _parameters(function)
        if names is not None and "k" not in names:
            raise InputError(
                "the avatarisation does not take `k`", remedy="give a function f(originals, *, k, seed)"
            )
        self._takes_seed = names is None or "seed" in names

    def __call__(self, originals: pd.DataFrame, *, k: int, seed: int, ncp: int) -> Any:  # noqa: ARG002
        seeded = {"seed": seed} if self._takes_seed else {}
        return self._function(originals.copy(), k=k, **seeded)


def _parameters(function: Callable[..., Any]) -> Collection[str] | None:
    """Return the names of a function's arguments, or None where it takes any, or does not tell."""
    try:
        parameters: Mapping[str, inspect.Parameter] = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return None
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return None
    return parameters.keys()


@dataclass(frozen=True)
class Search:
    """The originals, and how avatars of them are made and measured."""

    originals: pd.DataFrame = field(repr=False)
    aim: Aim
    make: Callable[..., Any] = field(repr=False)
    key: str | None = None
    categorical: Collection[str] | None = None

    def refuse_unmeasurable(self) -> None:
        """Refuse originals that cannot be measured before anything is made of them.

        Raises
        ------
        InputError
            If there is no such key, a column has no usable role, or ``ncp`` does not fit the table.
        """
        if self.key is not None:
            refuse_absent_key(self.key, [str(name) for name in self.originals.columns], "originals")
        FAMD(self.aim.ncp, self.categorical).fit(self._measured(self.originals))

    def at(self, k: int) -> TriedK:
        """Try one k with every seed."""
        return TriedK(k, tuple(self._trial(k, seed) for seed in self.aim.seeds))

    def _trial(self, k: int, seed: int) -> Trial:
        try:
            made = self.make(self.originals, k=k, seed=seed, ncp=self.aim.ncp)
            avatars, projection = (
                (made.avatars, made.projection) if isinstance(made, Avatarisation) else (made, None)
            )
            result = local_cloaking(
                self.originals,
                avatars,
                # With a projection handed over, the components are its own.
                ncp=self.aim.ncp,
                key=self.key,
                categorical=self.categorical,
                projection=projection,
            )
        except InputError as error:
            raise error.with_problem(f"with k = {k} and seed {seed}: {error.problem}") from error
        return self._told(result, seed, self._origin.shift_of(self._measured(avatars)))

    @cached_property
    def _origin(self) -> Origin:
        return Origin.of(self._measured(self.originals), categorical=self.categorical or ())

    def _measured(self, table: pd.DataFrame) -> pd.DataFrame:
        return table if self.key is None else without(table, [self.key])

    def _told(self, result: LocalCloaking, seed: int, moved: Shift) -> Trial:
        known = not result.looks_shuffled and len(result.counts) > 0
        told = {key_warning(str(self.key))}  # These avatars do not leave.
        reason = self._reason(result)
        return Trial(
            seed=seed,
            local_cloaking=result.median if known else None,
            hidden_rate=result.hidden_rate if known else None,
            utility=moved,
            reason=reason,
            reaches=reason is None and result.median >= self.aim.bound,
            warnings=tuple(warning for warning in result.warnings if warning not in told),
        )

    def _reason(self, result: LocalCloaking) -> str | None:
        """Say why the gate would not assess this with a threshold of threshold + margin, or None."""
        carried = result.findings.carried_over
        if result.reason is not None or carried is None or not result.median >= self.aim.bound:
            return result.reason
        return carried_over_reason(carried.median_peers, self.aim.bound)


def reaching(tried: Iterable[TriedK]) -> dict[int, bool]:
    """Tell, for each k that was tried, whether it reaches the aim."""
    return {one.k: one.reaches for one in tried}


def _lowest(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return min(known) if len(known) == len(values) else None
