"""Measure how often the rule for shuffled avatars errs, and print it as tables.

The rule (`local_cloaking.pairing.PairingEvidence`) must miss no shuffled table and refuse no honest one. Here
tables are drawn, avatars are made from them by the published avatarisation and projected again from their own
columns, and the rule is asked three times: about pairs that are right, about pairs shuffled wholly, and about
pairs shuffled in part. The result stands in ``docs/safeguards.md``.

    python scripts/shuffle_rates.py
    python scripts/shuffle_rates.py --repeats 60 --seed 7
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from local_cloaking.avatarisation import avatarise_in_space
from local_cloaking.neighbours import count_closer_avatars
from local_cloaking.pairing import association, pairing_evidence

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Answer = Literal["refused", "warned", "silent"]
Tally = Counter[Answer]

ANSWERS: tuple[Answer, ...] = ("refused", "warned", "silent")

SIZES = (50, 75, 100, 200, 500, 2000)
HONEST_SIZES = SIZES[:-1]
PARTS = (0.2, 0.3, 0.5)
K_SHARES = (0.1, 0.2, 0.3)
LARGE_K = (2, 20)
NCP = 5
SHUFFLES_PER_TABLE = 5


@dataclass(frozen=True)
class Pairs:
    """Coordinates of originals and avatars; row i of both is one individual."""

    originals: Floats
    avatars: Floats

    def answer(self, own: Integers) -> Answer:
        """Say what the rule says when ``own[i]`` is taken for the avatar of original i."""
        # The method that is fast where every ball holds half the table; the counts are the same.
        counts = count_closer_avatars(self.originals, self.avatars, own, method="blocks")
        evidence = pairing_evidence(
            association(self.originals, self.avatars[own]), counts.strictly_closer, len(own)
        )
        if evidence.reason is not None:
            return "refused"
        return "warned" if evidence.warning is not None else "silent"


def numbers(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Six numbers from a mixture of one to four groups."""
    centres = rng.normal(scale=2.0, size=(rng.integers(1, 5), 6))
    values = centres[rng.integers(len(centres), size=n)] + rng.normal(size=(n, 6))
    return pd.DataFrame(values, columns=[f"number {i}" for i in range(6)])


def categories(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Six categories of three levels that depend on one of three hidden classes: many rows are alike."""
    hidden = rng.integers(3, size=n)
    columns = {}
    for i in range(6):
        chances = rng.dirichlet([1.0, 1.0, 1.0], size=3).cumsum(axis=1)
        level = (rng.random(n)[:, None] > chances[hidden]).sum(axis=1).clip(0, 2)
        columns[f"category {i}"] = np.array(["a", "b", "c"])[level]
    return pd.DataFrame(columns)


def both(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Four of these numbers beside four of these categories."""
    return pd.concat([numbers(rng, n).iloc[:, :4], categories(rng, n).iloc[:, :4]], axis="columns")


KINDS: dict[str, Callable[[np.random.Generator, int], pd.DataFrame]] = {
    "numbers": numbers,
    "categories": categories,
    "mixed": both,
}


def made(kind: str, rng: np.random.Generator, n: int, k: int) -> Pairs:
    """Draw a table and make its avatars."""
    table = KINDS[kind](rng, n)
    result = avatarise_in_space(table, k=k, ncp=NCP, seed=int(rng.integers(2**32)))
    return Pairs(result.projection.transform(table), result.projection.transform(result.avatars))


def shuffled(rng: np.random.Generator, n: int, share: float = 1.0) -> Integers:
    """Return the rows 0 to n - 1, a share of which trade places at random."""
    own = np.arange(n)
    rows = rng.choice(n, round(share * n), replace=False)
    own[rows] = rng.permutation(rows)
    return own


@dataclass
class Tallies:
    """What the rule said of one kind of data at one n, and of the right pairs at each k."""

    honest: dict[int, Tally]
    shuffled: Tally
    partly: dict[float, Tally]


def ask(kind: str, n: int, repeats: int, rng: np.random.Generator) -> Tallies:
    """Draw ``repeats`` tables for each k, and ask about right, shuffled and partly shuffled pairs of each."""
    tallies = Tallies({k: Counter() for k in ks(n)}, Counter(), {share: Counter() for share in PARTS})
    for k in ks(n):
        for _ in range(repeats):
            pairs = made(kind, rng, n, k)
            tallies.honest[k][pairs.answer(np.arange(n))] += 1
            for _ in range(SHUFFLES_PER_TABLE):
                tallies.shuffled[pairs.answer(shuffled(rng, n))] += 1
            for share in PARTS:
                tallies.partly[share][pairs.answer(shuffled(rng, n, share))] += 1
    return tallies


def ks(n: int) -> tuple[int, ...]:
    """Return the values of k to try: 2, and up to 0.3 n; in a large table, where k is never so large, others."""
    return (2, *(int(share * n) for share in K_SHARES)) if n in HONEST_SIZES else LARGE_K


def _row(cells: Iterable[object]) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _table(head: list[str], rows: Iterable[list[str]]) -> Iterator[str]:
    yield _row(head)
    yield _row("---" for _ in head)
    for row in rows:
        yield _row(row)


def _of(count: int, tally: Tally) -> str:
    return f"{count} of {tally.total()}"


def report(repeats: int, seed: int) -> Iterator[str]:
    """Yield the printed lines; the same repeats and seed give the same lines."""
    rng = np.random.default_rng(seed)
    found = {(kind, n): ask(kind, n, repeats, rng) for kind in KINDS for n in SIZES}
    yield f"repeats {repeats}, seed {seed}, ncp {NCP}"
    yield ""
    yield "Wholly shuffled pairs that were missed:"
    yield ""
    yield from _table(
        ["data", *(f"n = {n}" for n in SIZES)],
        ([kind, *(_missed(found[kind, n].shuffled) for n in SIZES)] for kind in KINDS),
    )
    yield ""
    yield "Right pairs that were refused, by the kind of data, and warned of:"
    yield ""
    yield from _table(["n", "k", *KINDS, "warned of"], _honest_rows(found))
    yield ""
    yield "Partly shuffled pairs, all kinds of data together:"
    yield ""
    yield from _table(["shuffled", "n", "refused", "warned of", "neither"], _partial_rows(found))


def _honest_rows(found: dict[tuple[str, int], Tallies]) -> Iterator[list[str]]:
    for n in HONEST_SIZES:
        for k in ks(n):
            tallies = [found[kind, n].honest[k] for kind in KINDS]
            together = _sum(tallies)
            refused = (_of(tally["refused"], tally) for tally in tallies)
            yield [str(n), str(k), *refused, _of(together["warned"], together)]


def _partial_rows(found: dict[tuple[str, int], Tallies]) -> Iterator[list[str]]:
    for share in PARTS:
        for n in SIZES:
            together = _sum(found[kind, n].partly[share] for kind in KINDS)
            yield [f"{share:.0%}", str(n), *(_of(together[answer], together) for answer in ANSWERS)]


def _missed(tally: Tally) -> str:
    return _of(tally.total() - tally["refused"], tally)


def _sum(tallies: Iterable[Tally]) -> Tally:
    return sum(tallies, Counter())


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("not a whole number of at least 1")
    return number


def main(arguments: list[str] | None = None) -> None:
    """Read the options and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=_count, default=12, help="tables of each sort (default 12)")
    parser.add_argument("--seed", type=int, default=1, help="seed of everything that is drawn (default 1)")
    options = parser.parse_args(arguments)
    for line in report(options.repeats, options.seed):
        print(line, flush=True)


if __name__ == "__main__":
    main()
