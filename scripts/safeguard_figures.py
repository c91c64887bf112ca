"""Measure the figures in ``docs/safeguards.md``, and print one table for each safeguard.

How often the rule for shuffled avatars errs comes from ``scripts/shuffle_rates.py``; all other figures come from
here. ACTG 175 is the table that the package lifelines ships (extra ``demo``), WDBC is scikit-learn's breast cancer
table, and the others are drawn.

    python scripts/safeguard_figures.py
    python scripts/safeguard_figures.py --repeats 3 --seed 7
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from shuffle_rates import KINDS
from sklearn.datasets import load_breast_cancer

from local_cloaking import FAMD, LocalCloaking, local_cloaking, projection, safeguards
from local_cloaking.audit.record import verdict_again
from local_cloaking.avatarisation import Avatarisation, avatarise_in_space
from local_cloaking.tables import columns

NCP = 5
KS = (1, 2, 5, 20, 100)
NOISES = (0.001, 0.01, 0.1, 0.3)
#: The categories of ACTG 175, as in ``dags/local_cloaking_demo.py``.
CATEGORIES = [
    "hemo", "homo", "drugs", "karnof", "oprior", "z30", "zprior", "race", "gender", "str2", "strat", "symptom",
    "treat", "offtrt", "r", "cens", "arms",
]  # fmt: skip

Row = Iterable[object]


@dataclass(frozen=True)
class Section:
    """A printed table: its name, its head and its rows."""

    name: str
    head: list[str]
    rows: Callable[[int, int], Iterator[Row]]

    def lines(self, repeats: int, seed: int) -> Iterator[str]:
        """Measure, and yield the lines of the table."""
        yield f"{self.name}:"
        yield ""
        for cells in (self.head, ["---"] * len(self.head), *self.rows(repeats, seed)):
            yield "| " + " | ".join(str(cell) for cell in cells) + " |"
        yield ""


SECTIONS: list[Section] = []


def section(name: str, *head: str) -> Callable[[Callable[[int, int], Iterator[Row]]], None]:
    """Add a table, in the order in which they are printed."""
    return lambda rows: SECTIONS.append(Section(name, list(head), rows))


# --- tables, and what is done to them ---


def actg() -> pd.DataFrame:
    """ACTG 175: 2,139 patients, 26 columns. The package itself is not imported."""
    spec = importlib.util.find_spec("lifelines")
    if spec is None or spec.origin is None:
        raise SystemExit("ACTG 175 comes with lifelines: install the extra `demo`")
    table = pd.read_csv(Path(spec.origin).parent / "datasets" / "ACTG175.csv")
    return table.drop(columns=[table.columns[0], "pidnum"])


def wdbc() -> pd.DataFrame:
    """WDBC: 569 patients, 30 numbers and the diagnosis."""
    loaded = load_breast_cancer(as_frame=True)
    return loaded.data.assign(diagnosis=np.where(loaded.target == 1, "benign", "malignant"))


def declared(table: pd.DataFrame) -> list[str]:
    """Return the categories to declare: those of ACTG 175, of other tables none."""
    return [name for name in CATEGORIES if name in table.columns]


def made_from(table: pd.DataFrame, k: int, seed: int, ncp: int = NCP) -> Avatarisation:
    """Make avatars as published."""
    return avatarise_in_space(table, k=k, ncp=ncp, seed=seed, categorical=declared(table))


def measured(table: pd.DataFrame, avatars: pd.DataFrame, ncp: int = NCP) -> LocalCloaking:
    """Measure in the space of the originals, which is that of the avatarisation."""
    return local_cloaking(table, avatars, ncp=ncp, categorical=declared(table))


def shuffled(table: pd.DataFrame, share: float, seed: int) -> pd.DataFrame:
    """Let a share of the rows trade places at random."""
    rng = np.random.default_rng(seed)
    order = np.arange(len(table))
    rows = rng.choice(len(table), round(share * len(table)), replace=False)
    order[rows] = rng.permutation(rows)
    return table.iloc[order].reset_index(drop=True)


def noisy(table: pd.DataFrame, scale: float, seed: int) -> pd.DataFrame:
    """Add noise of so many standard deviations to each number; categories stay."""
    rng = np.random.default_rng(seed)
    names = [name for name in table.select_dtypes("number") if name not in CATEGORIES]
    return table.assign(
        **{name: table[name] + rng.normal(scale=scale * table[name].std(), size=len(table)) for name in names}
    )


def repeated(table: pd.DataFrame, times: int) -> pd.DataFrame:
    """Store each person so many times."""
    return table.loc[table.index.repeat(times)].reset_index(drop=True)


def neighbours(table: pd.DataFrame, rank: int) -> pd.DataFrame:
    """Give each person the row of their neighbour of that rank."""
    from scipy.spatial import cKDTree

    coordinates = FAMD(NCP, declared(table)).fit_transform(table)
    rows = cKDTree(coordinates).query(coordinates, k=rank + 1)[1][:, rank]
    return table.iloc[rows].reset_index(drop=True)


def blanked(table: pd.DataFrame, share: float, seed: int) -> pd.DataFrame:
    """Blank the same share of cells, rounded down, in each column."""
    rng = np.random.default_rng(seed)
    result = table.astype(float)
    for name in result:
        result.loc[rng.choice(len(table), math.floor(share * len(table)), replace=False), name] = np.nan
    return result


def verdict(result: LocalCloaking, threshold: float) -> str:
    """Say what the gate says, by the rule that computes a record's verdict again."""
    carried = result.findings.carried_over
    count, individuals = np.unique(result.counts, return_counts=True)
    record = {
        "distribution": {"count": count.tolist(), "individuals": individuals.tolist()},
        "n": result.n,
        "threshold": threshold,
        "unreliable_because": result.reason,
        "carried_over": None if carried is None else {"median_peers": carried.median_peers},
    }
    return str(verdict_again(record)).replace("_", " ")


def warned(result: LocalCloaking, words: str) -> bool:
    """Tell whether a warning has these words."""
    return any(words in warning for warning in result.warnings)


def span(values: Iterable[float], digits: str = ".0f") -> str:
    """Write the smallest and the largest value, or the only one."""
    found = list(values)
    low, high = (format(value, digits) for value in (min(found), max(found)))
    return low if low == high else f"{low} to {high}"


def percent(share: float) -> str:
    """Write a share as a whole percentage."""
    return f"{100 * share:.0f} %"


# --- one table for each safeguard ---


@section("Avatars shuffled: Local Cloaking", "data", "k", "honest", "20 %", "30 %", "50 %", "100 % shuffled")
def _shuffled(repeats: int, seed: int) -> Iterator[Row]:
    for name, table, k in (("ACTG 175", actg(), 20), ("WDBC", wdbc(), 20)):
        made = made_from(table, k, seed)
        yield (
            name,
            k,
            *(
                span(measured(table, shuffled(made.avatars, share, seed + i)).median for i in range(repeats))
                for share in (0, 0.2, 0.3, 0.5, 1)
            ),
        )


@section(
    "Tables sorted apart: what is said",
    "sorted by", "tried", "not assessable", "warned of far avatars", "of the order", "nothing",
)  # fmt: skip
def _sorted(repeats: int, seed: int) -> Iterator[Row]:
    table = actg()
    avatars = made_from(table, 20, seed).avatars
    mixed_up = shuffled(avatars, 1, seed)
    # With few repeats, some of the columns only.
    names = [name for name in table if table[name].nunique() > 1][: 9 * repeats]

    def sort(frame: pd.DataFrame, name: str) -> pd.DataFrame:
        return frame.sort_values(name, kind="stable", ignore_index=True)

    def said(label: str, pairs: Iterable[tuple[pd.DataFrame, pd.DataFrame]]) -> Row:
        found = Counter(_said_of_pairs(measured(*pair)) for pair in pairs)
        return label, found.total(), *(found[one] for one in ("not assessable", "far", "order", "nothing"))

    yield said("each column of ACTG 175", ((sort(table, name), sort(mixed_up, name)) for name in names))
    yield said("the same, ties kept together", ((sort(table, name), sort(avatars, name)) for name in names))
    groups = [_in_groups(seed + i) for i in range(repeats)]
    yield said("the number of one of 40 distant groups", groups)
    yield said(
        "the same, and the number left out",
        ((one.drop(columns="group"), other.drop(columns="group")) for one, other in groups),
    )


def _said_of_pairs(result: LocalCloaking) -> str:
    if result.reason is not None:
        return "not assessable"
    if warned(result, "may be shuffled or sorted"):
        return "far"
    return "order" if warned(result, "sorted by column") else "nothing"


def _in_groups(seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return forty distant groups of forty, in order in both tables; the avatars are shuffled within each."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(40), 40)
    values = rng.normal(scale=20, size=(40, 6))[group] + rng.normal(size=(1600, 6))
    table = pd.DataFrame(values, columns=list("abcdef"))
    avatars = made_from(table, 20, seed).avatars
    within = np.lexsort((rng.random(1600), group))
    return table.assign(group=group), avatars.iloc[within].reset_index(drop=True).assign(group=group)


@section(
    "Copies: 300 people, the avatars are the originals",
    "each stored", "noise, sd", "copied", "copy share", "Local Cloaking", "strict median", "threshold 5",
)  # fmt: skip
def _copies(repeats: int, seed: int) -> Iterator[Row]:  # noqa: ARG001
    people = KINDS["mixed"](np.random.default_rng(seed), 300)
    for times, scale, share in ((6, 0, 1), (6, 1e-9, 1), (6, 0, 0.92), (6, 0, 0.88), (6, 0, 0.6), (1, 0, 0.88)):
        table = repeated(people, times)
        avatars = noisy(table, scale, seed)
        own = made_from(table, 20, seed).avatars
        rows = np.random.default_rng(seed).permutation(len(table))[round(share * len(table)) :]
        avatars.iloc[rows] = own.iloc[rows]
        result = measured(table, avatars)
        yield (
            f"{times} times" if times > 1 else "once",
            f"{scale:g}",
            percent(share),
            percent(result.findings.copy_share),
            f"{result.median:g}",
            f"{result.strict_median:g}",
            verdict(result, 5),
        )


@section(
    "Honest avatars of ACTG 175",
    "k", "Local Cloaking", "copies", "real rows", "warnings", "carried over", "median peers",
)  # fmt: skip
def _honest(repeats: int, seed: int) -> Iterator[Row]:
    table = actg()
    for k in (2, 5, 20, 100):
        results = []
        for i in range(repeats):
            made = made_from(table, k, seed + i)
            results.append(local_cloaking(table, made.avatars, projection=made.projection))
        carried = [result.findings.carried_over for result in results]
        yield (
            k,
            span(result.median for result in results),
            span(100 * result.findings.copy_share for result in results) + " %",
            span(100 * result.findings.real_row_share for result in results) + " %",
            span(len(result.warnings) for result in results),
            span(len(one.columns) if one else 0 for one in carried) + " columns",
            span(one.median_peers if one else math.nan for one in carried),
        )


@section(
    "Columns carried over: ACTG 175, k = 20",
    "carried over", "of the rows", "Local Cloaking", "columns found", "median peers", "threshold 5",
)  # fmt: skip
def _carried(repeats: int, seed: int) -> Iterator[Row]:  # noqa: ARG001
    table = actg()
    made = made_from(table, 20, seed)
    rows = np.random.default_rng(seed).permutation(len(table))
    for names, share in (
        ([], 1), (["age"], 1), (["cd40"], 1), (["age", "wtkg"], 1), (["gender", "race"], 1), (CATEGORIES, 1),
        (["age", "wtkg"], 0.96), (["age", "wtkg"], 0.9), (["age", "wtkg"], 0.5),
    ):  # fmt: skip
        avatars = made.avatars.astype(float)
        kept = rows[: round(share * len(table))]
        avatars.loc[kept, names] = table.loc[kept, names].astype(float)
        result = local_cloaking(table, avatars, projection=made.projection)
        carried = result.findings.carried_over
        yield (
            "the 17 categories" if names == CATEGORIES else ", ".join(names) or "nothing",
            percent(share),
            f"{result.median:g}",
            len(carried.columns) if carried else 0,
            f"{carried.median_peers:g}" if carried else "none",
            verdict(result, 5),
        )


@section(
    "A column that is the same for all originals: ACTG 175, k = 20",
    "in the avatars",
    "Local Cloaking",
    "threshold 5",
)
def _constant(repeats: int, seed: int) -> Iterator[Row]:  # noqa: ARG001
    table = actg().assign(site=1.0)
    avatars = made_from(table, 20, seed).avatars
    for name, site in (("the same", 1.0), ("the number of the row", np.arange(float(len(table))))):
        result = measured(table, avatars.assign(site=site))
        yield name, f"{result.median:g}", verdict(result, 5)


def ratio(table: pd.DataFrame, avatars: pd.DataFrame, ncp: int = NCP) -> float:
    """Return the figure that NEAR_COPY_RATIO bounds; infinite where the rule does not look at it."""
    space = FAMD(ncp, declared(table)).fit(table)
    with mock.patch.object(safeguards, "NEAR_COPY_RATIO", math.inf):
        reason = safeguards.near_copies_reason(space.transform(table), space.transform(avatars))
    found = re.search(r"at ([0-9.]+)%", reason or "")
    return float(found[1]) / 100 if found else math.inf


def _people(name: str, seed: int, n: int) -> pd.DataFrame:
    if name in KINDS:
        return KINDS[name](np.random.default_rng(seed), n)
    return {"ACTG 175": actg, "WDBC": wdbc}[name]()


def _low(values: Iterable[float]) -> str:
    found = min(values)
    return f"{found:.2f}" if math.isfinite(found) else "not looked at"


@section(
    "Copies with noise, honest avatars: the smallest ratio",
    "data", "n", "ncp", *(f"k = {k}" for k in KS),
)  # fmt: skip
def _near_honest(repeats: int, seed: int) -> Iterator[Row]:
    for name, n in (("ACTG 175", 2139), ("WDBC", 569), *itertools.product(KINDS, (300,))):
        tables = [_people(name, seed + i, n) for i in range(repeats)]
        for ncp in (1, 2, NCP):
            yield (
                name,
                n,
                ncp,
                *(
                    _low(ratio(t, made_from(t, k, seed + i, ncp).avatars, ncp) for i, t in enumerate(tables))
                    for k in KS
                ),
            )


@section(
    "Copies with noise: Local Cloaking and ratio",
    "data", "each stored", "ncp", *(f"noise {scale} sd" for scale in NOISES),
)  # fmt: skip
def _near_noise(repeats: int, seed: int) -> Iterator[Row]:  # noqa: ARG001
    for name, times, ncp in (
        ("ACTG 175", 1, 2), ("ACTG 175", 1, NCP), ("WDBC", 1, 2), ("WDBC", 1, NCP), ("numbers", 1, 1),
        ("numbers", 1, 2), ("numbers", 1, NCP), ("numbers", 12, NCP), ("mixed", 12, NCP), ("WDBC", 12, NCP),
    ):  # fmt: skip
        table = repeated(_people(name, seed, 300), times)
        cells = []
        for scale in NOISES:
            avatars = noisy(table, scale, seed)
            result = measured(table, avatars, ncp)
            said = verdict(result, 5)
            cells.append(f"{result.median:g}, {_low([ratio(table, avatars, ncp)])}, {said}")
        yield name, f"{times} times" if times > 1 else "once", ncp, *cells


@section("Other people's real rows", "data", "avatars", "Local Cloaking", "real rows", "duplicates", "warned of")
def _real_rows(repeats: int, seed: int) -> Iterator[Row]:
    table = actg()
    for rank in (2, 5, 11):
        swapped = neighbours(table, rank)
        yield "ACTG 175", f"neighbour {rank}", *_real_row_cells([measured(table, swapped)])
    for scale in (1e-9, 1e-8, 1e-7):
        swapped = noisy(neighbours(table, 11), scale, seed)
        yield "ACTG 175", f"neighbour 11, noise {scale:g} sd", *_real_row_cells([measured(table, swapped)])
    tables = [KINDS["categories"](np.random.default_rng(seed + i), 500) for i in range(repeats)]
    for k in (5, 20):
        results = [measured(t, made_from(t, k, seed + i).avatars) for i, t in enumerate(tables)]
        yield "6 categories, n = 500", f"honest, k = {k}", *_real_row_cells(results)


def _real_row_cells(results: list[LocalCloaking]) -> Row:
    warned_of = sum(warned(result, "real people's rows") for result in results)
    return (
        span(result.median for result in results),
        span((100 * result.findings.real_row_share for result in results), ".1f") + " %",
        span((100 * result.findings.duplicate_share for result in results), ".1f") + " %",
        f"{warned_of} of {len(results)}",
    )


@section("Cells blanked in the avatars: ACTG 175, k = 20", "blanked", "Local Cloaking", "outcome at 5")
def _blanked(repeats: int, seed: int) -> Iterator[Row]:
    table = actg()
    avatars = made_from(table, 20, seed).avatars
    for share in (0, 0.05, 0.1, 0.3, 0.6):
        results = [measured(table, blanked(avatars, share, seed + i)) for i in range(repeats)]
        outcomes = Counter(verdict(result, 5) for result in results)
        yield percent(share), span(result.median for result in results), ", ".join(outcomes)


@section("Another number of components: ACTG 175, k = 2, ncp = 5", *(f"ncp = {ncp}" for ncp in range(1, NCP + 1)))
def _ladder(repeats: int, seed: int) -> Iterator[Row]:
    table = actg()
    made = [made_from(table, 2, seed + i) for i in range(repeats)]
    yield tuple(
        span(local_cloaking(table, one.avatars, projection=one.projection, ncp=ncp).median for one in made)
        for ncp in range(1, NCP + 1)
    )


@section("Equal eigenvalues at the cut", "data", "what", "value")
def _eigenvalues(repeats: int, seed: int) -> Iterator[Row]:
    rows = pd.DataFrame(list(itertools.product("ab", "xyz", "uvw")) * 10, columns=["p", "q", "r"])
    avatars = shuffled(rows, 0.3, seed)
    rng = np.random.default_rng(seed)
    medians = []
    with mock.patch.object(projection, "EQUAL_EIGENVALUES", -1.0):
        for names in itertools.permutations(rows.columns):
            for _ in range(repeats):
                order = rng.permutation(len(rows))
                pair = (frame.iloc[order][list(names)].reset_index(drop=True) for frame in (rows, avatars))
                medians.append(local_cloaking(*pair, ncp=1).median)
    yield "balanced design, ncp = 1", "Local Cloaking, by the order of rows and columns", span(medians)
    for name, table in (("ACTG 175", actg()), ("WDBC", wdbc())):
        values = np.sort(_all_eigenvalues(table))[::-1] / _all_eigenvalues(table).max()
        counted = values[values > projection.RANK_TOLERANCE]
        # Below that it depends on the processor.
        rounding = max(1e-15, float(np.abs(values[len(counted) :]).max(initial=0)))
        yield name, "smallest gap between two components", f"{-np.diff(counted).max():.0e} of the largest"
        yield name, "smallest component that counts", f"{counted.min():.0e} of the largest"
        yield (
            name,
            "largest component that does not",
            f"{rounding:.0e} of the largest or less",
        )


def _all_eigenvalues(table: pd.DataFrame) -> np.ndarray:
    fitted = FAMD(1, declared(table))
    encoded = fitted.fit_encoded(table)
    products = projection.cross_products(encoded, fitted.shares_)
    return np.linalg.eigvalsh(projection.covariance_of(products, fitted.columns_, fitted.shares_, len(table)))


@section("A column with all values different: WDBC, k = 20", "the column of names", "Local Cloaking")
def _identifier(repeats: int, seed: int) -> Iterator[Row]:
    table = wdbc()
    names = [f"patient {i}" for i in range(len(table))]
    made = [made_from(table, 20, seed + i).avatars for i in range(min(repeats, 2))]
    yield "left out", span(measured(table, avatars).median for avatars in made)
    with mock.patch.multiple(columns, IDENTIFIER_SHARE=1.0):
        named = table.assign(name=names)
        yield (
            "in both tables, as a category",
            span(measured(named, avatars.assign(name=names)).median for avatars in made),
        )
        drawn = np.random.default_rng(seed).permutation(names)
        yield (
            "in both tables, mixed up in the avatars",
            span(measured(named, avatars.assign(name=drawn)).median for avatars in made),
        )


@section("Collapsed avatars", "data", "k", "avatars", "Local Cloaking", "warned of")
def _collapsed(repeats: int, seed: int) -> Iterator[Row]:
    table = actg()
    medians = {name: table[name].median() for name in table if name not in CATEGORIES}
    filled = [measured(table, made_from(table, 2, seed + i).avatars.assign(**medians)) for i in range(repeats)]
    yield "ACTG 175", 2, "numbers filled with the median", *_collapsed_cells(filled)
    for k in (2, 20, 100, 200):
        results = []
        for i in range(10 * repeats):
            values = np.random.default_rng(seed + i).normal(size=(500, 10))
            noise = pd.DataFrame(values, columns=list("abcdefghij"))
            results.append(measured(noise, made_from(noise, k, seed + i, 2).avatars, 2))
        yield "10 independent numbers, n = 500, ncp = 2", k, "honest", *_collapsed_cells(results)


def _collapsed_cells(results: list[LocalCloaking]) -> Row:
    warned_of = sum(warned(result, "protected, but of little use") for result in results)
    return span(result.median for result in results), f"{warned_of} of {len(results)}"


@section("Who matches all at once: right links, ncp = 5", "data", "k", "each to the nearest", "all at once")
def _matching(repeats: int, seed: int) -> Iterator[Row]:
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    table = wdbc()
    for k in (5, 20):
        nearest, matched = [], []
        for i in range(repeats):
            made = made_from(table, k, seed + i)
            result = local_cloaking(table, made.avatars, projection=made.projection)
            nearest.append(100 - result.hidden_rate)
            distances = cdist(made.projection.transform(table), made.projection.transform(made.avatars))
            # The smallest sum of squares: the likeliest matching where avatars scatter evenly around originals.
            matched.append(100 * float(np.mean(linear_sum_assignment(distances**2)[1] == np.arange(len(table)))))
        yield "WDBC", k, span(nearest) + " %", span(matched) + " %"


def report(repeats: int, seed: int) -> Iterator[str]:
    """Yield the printed lines; the same repeats and seed give the same lines."""
    yield f"repeats {repeats}, seed {seed}"
    yield ""
    for part in SECTIONS:
        yield from part.lines(repeats, seed)


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("not a whole number of at least 1")
    return number


def main(arguments: list[str] | None = None) -> None:
    """Read the options and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=_count, default=3, help="avatarisations of each sort (default 3)")
    parser.add_argument("--seed", type=int, default=1, help="seed of everything that is drawn (default 1)")
    options = parser.parse_args(arguments)
    for line in report(options.repeats, options.seed):
        print(line, flush=True)


if __name__ == "__main__":
    main()
