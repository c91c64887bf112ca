"""Which avatar belongs to which original, and whether the pairs look as if they were shuffled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from local_cloaking.errors import InputError
from local_cloaking.limits import (
    EARLY_STOP_MARGIN,
    EARLY_STOP_ROWS,
    EARLY_STOP_SAMPLES,
    MAX_FAR_SHARE,
    MAX_MEDIAN_SHARE,
    MIN_ASSOCIATION,
    WARN_FAR_SHARE,
)
from local_cloaking.tables.values import as_key

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def own_by_order(originals: pd.DataFrame, avatars: pd.DataFrame) -> Integers:
    """Pair row by row.

    Raises
    ------
    InputError
        If the tables have different numbers of rows.

    Examples
    --------
    >>> own_by_order(pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [1, 2]}))
    array([0, 1])
    """
    refuse_unequal(len(originals), len(avatars))
    return np.arange(len(originals))


def refuse_unequal(originals: int, avatars: int) -> None:
    """Refuse to pair by row order tables of different numbers of rows."""
    if originals != avatars:
        raise InputError(
            f"{originals} originals, {avatars} avatars",
            rows=abs(originals - avatars),
            remedy="give one avatar per original, or pair them with `key` or `pairing`",
        )


def own_by_key(originals: pd.Series[Any], avatars: pd.Series[Any], column: str) -> Integers:
    """Pair by a key that stands in both tables, compared as text.

    Returns
    -------
    int64 array of shape (n,): the row of each original's avatar.

    Raises
    ------
    InputError
        If a key is missing or stands twice, or a row of either table has no partner.

    Examples
    --------
    >>> own_by_key(pd.Series(["01", "02"]), pd.Series(["02", "01"]), "id")
    array([1, 0])
    """
    return _partners(_keys(originals, column, "originals"), _keys(avatars, column, "avatars"), column)


def own_by_pairing(
    originals: pd.Series[Any], avatars: pd.Series[Any], pairing: pd.DataFrame, columns: tuple[str, str]
) -> Integers:
    """Pair by a table of two columns: the key of the original, the key of its avatar.

    Parameters
    ----------
    originals, avatars
        The key columns of the two tables.
    pairing
        Two columns, one row per individual.
    columns
        The names of the two key columns, for messages.

    Raises
    ------
    InputError
        If the pairing table does not name each original and each avatar exactly once.

    Examples
    --------
    >>> pairing = pd.DataFrame({"patient": [1, 2], "avatar": ["x", "y"]})
    >>> own_by_pairing(pd.Series([1, 2]), pd.Series(["y", "x"]), pairing, ("patient", "avatar"))
    array([1, 0])
    """
    of_original = _keys(originals, columns[0], "originals")
    of_avatar = _keys(avatars, columns[1], "avatars")
    first = _keys(pairing.iloc[:, 0], columns[0], "pairing table")
    second = _keys(pairing.iloc[:, 1], columns[1], "pairing table")
    row_in_pairing = _partners(of_original, first, columns[0], other="pairing table")
    return _partners(second[row_in_pairing], of_avatar, columns[1], one="pairing table")


def _keys(series: pd.Series[Any], column: str, table: str) -> NDArray[np.object_]:
    keys = as_key(series, column)
    refuse_keys(int(keys.isna().sum()), int(keys.duplicated(keep=False).sum()), column, table)
    return keys.to_numpy()


def refuse_keys(missing: int, repeated: int, column: str, table: str) -> None:
    """Refuse a table of which so many rows have no key, or share it with another.

    Raises
    ------
    InputError
        If there is any such row.
    """
    if missing:
        raise InputError(
            f"{missing} rows of the {table} have no key",
            column=column,
            rows=missing,
            remedy="give each a key",
        )
    if repeated:
        raise InputError(
            f"{repeated} rows of the {table} share their key with another",
            column=column,
            rows=repeated,
            remedy="give each individual one row and a key of its own",
        )


def _partners(
    ones: NDArray[np.object_],
    others: NDArray[np.object_],
    column: str,
    *,
    one: str = "originals",
    other: str = "avatars",
) -> Integers:
    rows = pd.Index(others).get_indexer(pd.Index(ones))
    alone, surplus = int(np.count_nonzero(rows < 0)), len(others) - int(np.count_nonzero(rows >= 0))
    refuse_unpaired(alone, surplus, column, one=one, other=other)
    return rows.astype(np.int64)


def refuse_unpaired(
    alone: int, surplus: int, column: str, *, one: str = "originals", other: str = "avatars"
) -> None:
    """Refuse tables of which so many keys stand in one, or in the other, only.

    Raises
    ------
    InputError
        If there is any such key.
    """
    if alone or surplus:
        raise InputError(
            f"{alone} keys of the {one} are not in the {other}, {surplus} of the {other} are not in the {one}",
            column=column,
            rows=alone + surplus,
            remedy="give one avatar per original, with keys written alike (leading zeros count)",
        )


@dataclass(frozen=True)
class PairingEvidence:
    """How far the pairs of originals and avatars are from a random pairing.

    Attributes
    ----------
    association
        z, in standard deviations of a random pairing; None where a table has no variance.
    far_share
        F, the share of originals with more than half of the other avatars strictly closer, 0 to 1.
    median_share
        Median strict count divided by n - 1, 0 to 1; 0 for n = 1.
    n
        Number of individuals.
    sample
        Of how many originals the two shares speak, where not of all.
    """

    association: float | None
    far_share: float
    median_share: float
    n: int
    sample: int | None = None

    @property
    def reason(self) -> str | None:
        """Why the pairs cannot be relied on, in one sentence, or None."""
        if self.association is None:
            return "the originals or the avatars all stand in one place: nothing can be told apart"
        signs = []
        if not self.association >= MIN_ASSOCIATION:  # so that what is no number is a sign, too
            signs.append(f"originals go with their avatars no better than by chance (z = {self.association:.2f})")
        if self.far_share > MAX_FAR_SHARE:
            signs.append(f"{self.far_share:.0%} of the avatars are farther than half of all others")
        if self.median_share > MAX_MEDIAN_SHARE:
            signs.append(f"in the median {self.median_share:.0%} of all avatars are closer than the own one")
        if not signs:
            return None
        seen = "" if self.sample is None else f", by a sample of {self.sample} originals"
        return (
            "the avatars look shuffled, or belong to other individuals: "
            + ", ".join(signs)
            + seen
            + f" (if they are not, {self.n} individuals are too few for so large a k)"
        )

    @property
    def is_hopeless(self) -> bool:
        """Whether counting all originals could not make the pairs reliable; that it could is never certain."""
        if self.association is not None and not self.association >= MIN_ASSOCIATION:
            return True
        # A share of a sample has a standard deviation of half over its root, or less.
        deviation = 0.5 / np.sqrt(self.n if self.sample is None else self.sample)
        return self.far_share > MAX_FAR_SHARE + EARLY_STOP_MARGIN * float(deviation)

    @property
    def warning(self) -> str | None:
        """What stays doubtful although the pairs can be relied on, or None."""
        if self.reason is None and self.far_share > WARN_FAR_SHARE:
            return (
                f"{self.far_share:.0%} of the avatars are farther from their original than half of all others: "
                "part of the table may be shuffled or sorted"
            )
        return None


def pairing_evidence(association: float | None, strictly_closer: Integers, n: int) -> PairingEvidence:
    """Say how far the pairs are from a random pairing.

    Parameters
    ----------
    association
        `association` of all pairs.
    strictly_closer
        Strict counts of all originals, shape (n,), or of a sample.
    n
        Number of individuals.

    Examples
    --------
    >>> pairing_evidence(30.0, np.zeros(100, np.int64), 100).reason is None
    True
    """
    sample = None if len(strictly_closer) == n else len(strictly_closer)
    far = float(np.mean(strictly_closer > (n - 1) / 2)) if n else 0.0
    median_share = float(np.median(strictly_closer)) / (n - 1) if n > 1 else 0.0
    return PairingEvidence(association, far, median_share, n, sample)


def evidence_of_samples(
    z: float | None, n: int, strictly_closer: Callable[[Integers], Integers]
) -> PairingEvidence | None:
    """Count samples first, where a table is large: of shuffled avatars, every ball holds half the table.

    Parameters
    ----------
    z
        `association` of all pairs.
    n
        Number of individuals.
    strictly_closer
        Counts the strictly closer avatars of the originals in some rows.

    Returns
    -------
    What a sample says, where counting all originals would be in vain; else None.
    """
    for size in EARLY_STOP_SAMPLES if n >= EARLY_STOP_ROWS else ():
        # Always the same sample for the same number of rows: a record can be made again.
        rows = np.random.default_rng(0).choice(n, size, replace=False)
        evidence = pairing_evidence(z, strictly_closer(rows), n)
        if evidence.is_hopeless:
            return evidence
        if evidence.far_share <= MAX_FAR_SHARE:
            break
    return None


def association(originals: Floats, own_avatars: Floats) -> float | None:
    r"""Return how far originals go with their own avatars, in standard deviations of a random pairing.

    .. math:: z = \sum_i x_i \cdot y_{a(i)} \Big/ \sqrt{\tfrac{1}{n-1} \sum_{kl} (X'X)_{kl} (Y'Y)_{kl}}

    with both tables centred: under a random pairing the sum has mean 0 and this standard deviation.

    Parameters
    ----------
    originals, own_avatars
        Coordinates, shape (n, p); row i of ``own_avatars`` is the avatar of original i.

    Returns
    -------
    z, or None where a table has no variance.

    Examples
    --------
    >>> x = np.arange(100.0)[:, None]
    >>> association(x, x) > 4
    True
    """
    n = len(originals)
    if not n:
        return None
    x, y = (centred(a, PlaceSums.of(a)) for a in (originals, own_avatars))
    return association_of_sums([x.T @ x, y.T @ y], float(np.einsum("ij,ij->", x, y)), n)


@dataclass(frozen=True)
class PlaceSums:
    """Where the rows of a table, or of a part of it, stand: how many, sum, least and greatest per component."""

    rows: int
    total: Floats
    lowest: Floats
    highest: Floats

    @classmethod
    def of(cls, a: Floats) -> PlaceSums:
        """Add up coordinates of shape (n, p)."""
        return cls(len(a), a.sum(axis=0), a.min(axis=0), a.max(axis=0))

    def __add__(self, other: PlaceSums) -> PlaceSums:
        return PlaceSums(
            self.rows + other.rows,
            self.total + other.total,
            np.minimum(self.lowest, other.lowest),
            np.maximum(self.highest, other.highest),
        )


def centred(a: Floats, table: PlaceSums) -> Floats:
    """Centre coordinates around the middle of the table that they are a part of, with its width as the unit."""
    width = float((table.highest - table.lowest).max())
    # Rows that are all alike must give exactly zero: their mean may be off by one rounding. In its own unit, no
    # table is too large or too small for its squares; z does not depend on units.
    return np.where(table.lowest == table.highest, 0.0, (a - table.total / table.rows) / (width or 1.0))


def association_of_sums(squares: Sequence[Floats], product: float, n: int) -> float | None:
    """Return z, None where a table has no variance; see `association`.

    Parameters
    ----------
    squares
        X'X and Y'Y, of centred coordinates, each of shape (p, p).
    product
        The sum of x_i . y_a(i).
    n
        Number of individuals.
    """
    x_squares, y_squares = squares
    variance = float(np.sum(x_squares * y_squares)) / (n - 1) if n > 1 else 0.0
    if not (x_squares.any() and y_squares.any()) or variance <= 0:
        return None
    return product / float(np.sqrt(variance))


@dataclass(frozen=True)
class SortedRun:
    """Whether the values of a column, or of a part of it, rise or fall from row to row; parts follow each other.

    Examples
    --------
    >>> (SortedRun.of(np.array([1, 2])) + SortedRun.of(np.array([2, 5]))).sorted
    True
    """

    first: float
    last: float
    rises: bool
    falls: bool

    @classmethod
    def of(cls, values: NDArray[Any]) -> SortedRun:
        """Look at the values of at least one row."""
        steps = np.diff(values)
        return cls(float(values[0]), float(values[-1]), bool((steps > 0).any()), bool((steps < 0).any()))

    def __add__(self, then: SortedRun) -> SortedRun:
        return SortedRun(
            self.first,
            then.last,
            self.rises or then.rises or then.first > self.last,
            self.falls or then.falls or then.first < self.last,
        )

    @property
    def sorted(self) -> bool:
        """Whether the values only rise, or only fall, and are not all the same."""
        return self.rises != self.falls


def sorted_warnings(columns: Iterable[str]) -> list[str]:
    """Warn of columns by which both tables are sorted: row order may then pair by them, not by individual."""
    return [
        f"both tables are sorted by column {name!r}, and paired by row order: were they sorted apart?"
        for name in columns
    ]
