"""Ways to a wrong ``passed``, one after the other, and what stands in each (``docs/safeguards.md``).

Three outcomes: refused (nothing is measured), not assessable (a verdict, with its reason) and warned (the verdict
stands). Where the way was first seen on the Wisconsin data of 683 women, scikit-learn's table of 569 stands in.
"""

from __future__ import annotations

import itertools
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from local_cloaking import InputError, LocalCloaking, gate, local_cloaking, local_cloaking_suite
from local_cloaking.audit.record import measure_entries
from local_cloaking.avatarisation import Avatarisation, avatarise_in_space
from local_cloaking.cli import app
from local_cloaking.gate import GateError, Judgement, checked_threshold, judge
from local_cloaking.limits import EQUAL_EIGENVALUES, MAX_COPY_SHARE, MAX_MISSING_EXCESS
from tests.people import CATEGORIES, actg175, breast_cancer
from tests.tampering import blanked, neighbour_swap, neighbours, shuffled, with_noise

REFITTED = "space: refitted; the avatarisation's own projection was not handed over"
SHUFFLED = "the avatars look shuffled"
PARTLY = "part of the table may be shuffled or sorted"
COPIES = "copies of their own original"
REAL_ROWS = "real people's rows"
COLLAPSED = "protected, but of little use"
MISSING = "is missing in"


# --- tables ---


@pytest.fixture(scope="module")
def actg() -> pd.DataFrame:
    """ACTG 175: 2139 patients, 26 columns. Only the file of lifelines is read; the package is not imported."""
    return actg175()


@pytest.fixture(scope="module")
def actg_made(actg: pd.DataFrame) -> dict[int, Avatarisation]:
    return {k: avatarise_in_space(actg, k=k, ncp=5, seed=1, categorical=CATEGORIES) for k in (2, 5, 20, 100)}


@pytest.fixture(scope="module")
def cancer() -> pd.DataFrame:
    return breast_cancer()


def mixed(n: int = 400, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    group = rng.integers(3, size=n)
    table = pd.DataFrame(rng.normal(size=(n, 4)) + 2.0 * group[:, None], columns=["age", "dose", "weight", "rate"])
    table["arm"] = np.array(["a", "b", "c"])[(group + (rng.random(n) < 0.2)) % 3]
    table["site"] = rng.choice(["north", "south", "west"], n, p=[0.5, 0.3, 0.2])
    return table


def discrete(n: int, seed: int) -> pd.DataFrame:
    """Six categories of three levels: many rows are alike."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(3, size=n)
    columns = {
        f"c{i}": np.array(["x", "y", "z"])[(hidden + (rng.random(n) < 0.3) * rng.integers(3, size=n)) % 3]
        for i in range(6)
    }
    return pd.DataFrame(columns)


# --- outcomes ---


def verdict(result: LocalCloaking, threshold: float = 1.0) -> Judgement:
    return judge(result.counts, individuals=result.n, threshold=threshold, reason=result.reason)


def assert_not_assessable(result: LocalCloaking, reason: str) -> None:
    assert result.reason is not None
    assert reason in result.reason
    assert "\n" not in result.reason
    judgement = verdict(result)
    assert (judgement.verdict, judgement.reason) == ("not_assessable", result.reason)


def assert_warned(result: LocalCloaking, warning: str) -> None:
    assert result.reason is None
    assert any(warning in text for text in result.warnings), result.warnings
    assert verdict(result, 1e-9 + result.median if not result.median else result.median).verdict in (
        "passed",
        "below_threshold",
    )


def is_warned(result: LocalCloaking, warning: str) -> bool:
    return any(warning in text for text in result.warnings)


def by_command(
    folder: Path, originals: pd.DataFrame, avatars: pd.DataFrame, *options: str
) -> tuple[int, dict[str, Any], str]:
    """Measure files from the command line: exit code, record (empty where none was written), stderr."""
    originals.to_csv(folder / "originals.csv", index=False)
    avatars.to_csv(folder / "avatars.csv", index=False)
    record = folder / "record.json"
    arguments = ["measure", str(folder / "originals.csv"), str(folder / "avatars.csv"), "--json", str(record)]
    result = CliRunner().invoke(app, [*arguments, *options])
    return result.exit_code, json.loads(record.read_text()) if record.exists() else {}, result.stderr


# --- honest avatars: no rule below may stand in their way ---


@pytest.mark.parametrize("k", [2, 5, 20, 100])
def test_honest_avatars_of_actg_are_measured_without_reason_or_warning(
    actg: pd.DataFrame, actg_made: dict[int, Avatarisation], k: int
) -> None:
    made = actg_made[k]
    result = local_cloaking(actg, made.avatars, projection=made.projection)
    assert result.reason is None
    assert result.warnings == ()
    assert verdict(result, result.median).verdict == "passed"
    assert verdict(result, result.median + 0.5).verdict == "below_threshold"


# --- avatars shuffled, wholly or in part; the wrong table ---


@pytest.mark.parametrize("k", [2, 20, 100])
@pytest.mark.parametrize("seed", [1, 2])
def test_shuffled_wholly(actg: pd.DataFrame, actg_made: dict[int, Avatarisation], k: int, seed: int) -> None:
    made = actg_made[k]
    result = local_cloaking(actg, shuffled(made.avatars, seed=seed), projection=made.projection)
    assert_not_assessable(result, SHUFFLED)
    assert result.looks_shuffled
    # The figure looks splendid, so it is not told.
    assert result.median > 900
    assert [measure_entries(result)[name] for name in ("local_cloaking", "strict_median", "hidden_rate")] == [
        None
    ] * 3


@pytest.mark.parametrize(("k", "ncp"), [(5, 5), (20, 2)])
def test_shuffled_wholly_another_table(cancer: pd.DataFrame, k: int, ncp: int) -> None:
    made = avatarise_in_space(cancer, k=k, ncp=ncp, seed=1)
    assert local_cloaking(cancer, made.avatars, projection=made.projection).reason is None
    assert_not_assessable(local_cloaking(cancer, shuffled(made.avatars), projection=made.projection), SHUFFLED)


@pytest.mark.parametrize("seed", range(4))
def test_shuffled_in_part_20_percent_warns(
    actg: pd.DataFrame, actg_made: dict[int, Avatarisation], seed: int
) -> None:
    made = actg_made[20]
    result = local_cloaking(actg, shuffled(made.avatars, 0.2, seed), projection=made.projection)
    assert result.median > local_cloaking(actg, made.avatars, projection=made.projection).median
    assert_warned(result, PARTLY)


@pytest.mark.parametrize("seed", range(4))
def test_shuffled_in_part_30_percent_is_never_silent(
    actg: pd.DataFrame, actg_made: dict[int, Avatarisation], seed: int
) -> None:
    # Half of the shuffled share stands far away: 15 %, where the bound lies; either side is right.
    made = actg_made[20]
    result = local_cloaking(actg, shuffled(made.avatars, 0.3, seed), projection=made.projection)
    assert result.looks_shuffled or is_warned(result, PARTLY)
    assert 0.1 < result.evidence.far_share < 0.2


@pytest.mark.parametrize("seed", range(4))
def test_shuffled_in_part_50_percent(actg: pd.DataFrame, actg_made: dict[int, Avatarisation], seed: int) -> None:
    made = actg_made[20]
    result = local_cloaking(actg, shuffled(made.avatars, 0.5, seed), projection=made.projection)
    assert_not_assessable(result, SHUFFLED)


@pytest.mark.parametrize("n", [50, 100, 500])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_shuffled_discrete_table(n: int, seed: int) -> None:
    table = discrete(n, seed)
    made = avatarise_in_space(table, k=5, ncp=3, seed=seed)
    assert local_cloaking(table, made.avatars, projection=made.projection).reason is None
    result = local_cloaking(table, shuffled(made.avatars, seed=seed), projection=made.projection)
    assert_not_assessable(result, SHUFFLED)


@pytest.mark.parametrize(
    "columns", [["age"], ["str2"], ["gender", "race"], ["cd40"], None], ids=["age", "str2", "two", "cd40", "all"]
)
def test_tables_sorted_separately_are_never_silent(
    actg: pd.DataFrame, actg_made: dict[int, Avatarisation], columns: list[str] | None
) -> None:
    made = actg_made[20]
    by = columns or list(actg.columns)
    originals = actg.sort_values(by, kind="stable").reset_index(drop=True)
    avatars = made.avatars.sort_values(by, kind="stable").reset_index(drop=True)
    result = local_cloaking(originals, avatars, projection=made.projection)
    assert result.looks_shuffled or is_warned(result, PARTLY)


def test_the_wrong_table_same_columns_other_people(
    actg: pd.DataFrame, actg_made: dict[int, Avatarisation]
) -> None:
    half = len(actg) // 2
    here = actg.iloc[:half].reset_index(drop=True)
    others = actg_made[20].avatars.iloc[half : 2 * half].reset_index(drop=True)
    assert_not_assessable(local_cloaking(here, others, categorical=CATEGORIES), SHUFFLED)


def test_shuffled_from_the_command_line(tmp_path: Path) -> None:
    table = mixed()
    made = avatarise_in_space(table, k=5, ncp=3, seed=1)
    code, record, _ = by_command(tmp_path, table, shuffled(made.avatars), "--ncp", "3", "--threshold", "5")
    assert (code, record["verdict"], record["local_cloaking"]) == (1, "not_assessable", None)
    assert SHUFFLED in record["reason"]
    # The same without a threshold: there is nothing that may pass.
    code, record, _ = by_command(tmp_path, table, shuffled(made.avatars), "--ncp", "3")
    assert (code, record["verdict"], record["local_cloaking"]) == (1, None, None)
    assert SHUFFLED in record["reason"]


def test_shuffled_rows_with_a_key_are_paired_again() -> None:
    table = mixed().assign(id=[f"{i:03}" for i in range(400)])
    made = avatarise_in_space(table, k=5, ncp=3, seed=1, key="id")
    straight = local_cloaking(table, made.avatars, ncp=3, key="id")
    again = local_cloaking(table, shuffled(made.avatars), ncp=3, key="id")
    assert straight.counts.tolist() == again.counts.tolist()
    assert again.reason is None


@pytest.mark.parametrize("k", [2, 7, 22])
@pytest.mark.parametrize("kind", [mixed, discrete], ids=["mixed", "discrete"])
def test_small_honest_tables_pass(kind: Any, k: int) -> None:
    for seed in range(6):
        table = kind(75, seed)
        made = avatarise_in_space(table, k=k, ncp=3, seed=seed)
        result = local_cloaking(table, made.avatars, projection=made.projection)
        assert result.reason is None, (seed, result.reason)


def test_a_k_too_large_for_n_is_named_in_the_reason() -> None:
    table = mixed(60)
    made = avatarise_in_space(table, k=59, ncp=3, seed=1)
    result = local_cloaking(table, shuffled(made.avatars), projection=made.projection)
    assert_not_assessable(result, "60 individuals are too few for so large a k")


# --- n - 1 below the threshold ---


def test_threshold_that_n_cannot_reach(tmp_path: Path) -> None:
    counts = np.full(12, 11)
    beyond = judge(counts, individuals=12, threshold=11.5)
    assert beyond.verdict == "not_assessable"
    assert beyond.reason == "12 individuals can reach 11 at most, below the threshold 11.5"
    assert judge(counts, individuals=12, threshold=11).verdict == "passed"
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(12, 4)), columns=["age", "dose", "weight", "rate"])
    code, record, _ = by_command(tmp_path, table, with_noise(table, 0.3), "--ncp", "3", "--threshold", "12")
    assert (code, record["verdict"]) == (1, "not_assessable")
    assert "12 individuals can reach 11 at most" in record["reason"]


# --- avatars that are copies ---


@pytest.fixture(scope="module")
def six_times() -> pd.DataFrame:
    """300 people, each six times."""
    people = mixed(300)
    return people.loc[people.index.repeat(6)].reset_index(drop=True)


def test_copies(six_times: pd.DataFrame, tmp_path: Path) -> None:
    result = local_cloaking(six_times, six_times.copy(), ncp=3)
    # Every count is 5, which a threshold of 5 would let pass; the strict median tells.
    assert (result.counts.min(), result.counts.max(), result.strict_median) == (5, 5, 0)
    assert_not_assessable(result, COPIES)
    code, record, _ = by_command(tmp_path, six_times, six_times, "--ncp", "3", "--threshold", "5")
    assert (code, record["verdict"], record["copy_share"], record["strict_median"]) == (1, "not_assessable", 1, 0)


@pytest.mark.parametrize("scale", [1e-12, 1e-9, 1e-8])
def test_copies_with_tiny_noise(six_times: pd.DataFrame, scale: float) -> None:
    assert_not_assessable(local_cloaking(six_times, with_noise(six_times, scale), ncp=3), COPIES)


def test_copies_with_tiny_noise_in_a_constant_column(six_times: pd.DataFrame) -> None:
    originals = six_times.assign(unit=1000.0)
    avatars = originals.assign(unit=with_noise(originals, 1e-9)["unit"])
    assert_not_assessable(local_cloaking(originals, avatars, ncp=3), COPIES)


@pytest.mark.parametrize("column", ["age", "arm"])
def test_copies_whose_missing_cells_were_filled(six_times: pd.DataFrame, column: str) -> None:
    originals = blanked(six_times, 0.4, columns=[column])
    fill = originals[column].median() if column == "age" else "b"
    avatars = originals.assign(**{column: originals[column].fillna(fill)})
    assert_not_assessable(local_cloaking(originals, avatars, ncp=3), COPIES)


@pytest.mark.parametrize("name", ["dates", "truth values", "whole numbers"])
def test_copies_of_other_types(name: str) -> None:
    rng = np.random.default_rng(0)
    columns = {
        "dates": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 5000, 60), unit="D"),
        "truth values": rng.random(60) < 0.5,
        "whole numbers": rng.integers(0, 9, 60),
    }
    table = pd.DataFrame({"one": columns[name], "age": rng.normal(size=60)})
    assert_not_assessable(local_cloaking(table, table.copy(), ncp=1), COPIES)


def test_copies_of_individuals_without_any_value_do_not_count() -> None:
    originals = mixed(100)[["age", "arm"]]
    originals.loc[:94] = None
    avatars = with_noise(originals.assign(age=originals["age"].astype(float)), 0.1)
    result = local_cloaking(originals, avatars, ncp=1)
    assert result.findings.copy_share == 0


def test_copies_the_bound(actg: pd.DataFrame, actg_made: dict[int, Avatarisation]) -> None:
    def with_copies(share: float) -> LocalCloaking:
        avatars = actg_made[20].avatars.astype(float)
        copied = round(share * len(actg))
        avatars.iloc[:copied] = actg.iloc[:copied].astype(float)
        return local_cloaking(actg, avatars, categorical=CATEGORIES)

    above, below = with_copies(MAX_COPY_SHARE + 0.01), with_copies(MAX_COPY_SHARE - 0.01)
    assert above.findings.copy_share == pytest.approx(0.91, abs=1e-3)
    assert_not_assessable(above, COPIES)
    assert below.reason is None
    # Nothing is hidden, and the median says so by itself.
    assert below.median == 0


# --- avatars that are other people's real rows ---


def test_neighbour_swap_warns(actg: pd.DataFrame, tmp_path: Path) -> None:
    avatars = actg.iloc[neighbours(actg, 11, CATEGORIES)].reset_index(drop=True)
    result = local_cloaking(actg, avatars, categorical=CATEGORIES)
    assert result.median >= 5
    assert result.findings.real_row_share == 1
    assert_warned(result, REAL_ROWS)
    table = mixed()
    code, record, _ = by_command(tmp_path, table, neighbour_swap(table), "--ncp", "3", "--threshold", "1")
    assert (code, record["verdict"], record["real_row_share"]) == (0, "passed", 1)
    assert any(REAL_ROWS in warning for warning in record["warnings"])


def test_neighbour_swap_with_tiny_noise_is_not_assessable() -> None:
    """Whoever they are paired with, the avatars are copies of people with noise."""
    table = mixed()
    result = local_cloaking(table, with_noise(neighbour_swap(table), 1e-7), ncp=3)
    assert result.findings.real_row_share > 0.8
    assert any(REAL_ROWS in warning for warning in result.warnings)
    assert "copies of originals with a little noise" in str(result.reason)


def test_neighbour_swap_with_filled_cells_warns() -> None:
    table = blanked(mixed(), 0.5, columns=["age"])
    swapped = table.iloc[neighbours(mixed())].reset_index(drop=True)
    result = local_cloaking(table, swapped.assign(age=swapped["age"].fillna(table["age"].median())), ncp=3)
    assert result.findings.real_row_share == 1
    assert_warned(result, REAL_ROWS)


def test_real_rows_that_duplicates_explain_do_not_warn() -> None:
    people = mixed(200)
    table = people.loc[people.index.repeat(2)].reset_index(drop=True)
    result = local_cloaking(table, neighbour_swap(table, rank=4), ncp=3)
    assert (result.findings.real_row_share, result.findings.duplicate_share) == (1, 1)
    assert not is_warned(result, REAL_ROWS)


# --- missing cells in the avatars only ---


@pytest.mark.parametrize("percent", [5, 10, 30, 60])
def test_missing_cells_in_the_avatars_only(
    actg: pd.DataFrame, actg_made: dict[int, Avatarisation], percent: int
) -> None:
    made = actg_made[20]
    avatars = blanked(made.avatars, percent / 100)
    result = local_cloaking(actg, avatars, projection=made.projection)
    shares = {column.name: column for column in result.findings.columns}
    assert shares["age"].missing_avatars == pytest.approx(percent / 100, abs=1e-3)
    assert shares["age"].missing_originals == 0
    assert shares["age"].filled_with == "the originals' median"
    assert shares["gender"].filled_with == "the originals' commonest category"
    # Filling raises the figure, so that it looks better than what leaves.
    assert result.median > local_cloaking(actg, made.avatars, projection=made.projection).median
    if percent <= 100 * MAX_MISSING_EXCESS:
        assert result.reason is None
        assert verdict(result, 5).verdict == "passed"
    else:
        assert_not_assessable(result, MISSING)


def test_missing_cells_already_in_the_originals_do_not_count(
    actg: pd.DataFrame, actg_made: dict[int, Avatarisation]
) -> None:
    made = actg_made[20]
    avatars = made.avatars.assign(cd496=made.avatars["cd496"].where(actg["cd496"].notna()))
    result = local_cloaking(actg, avatars, projection=made.projection)
    assert result.reason is None
    column = next(column for column in result.findings.columns if column.name == "cd496")
    assert column.missing_originals == column.missing_avatars > 0.3
    # Without the filled column, too, there is a figure, and the record holds it.
    assert result.without_filled is not None
    assert measure_entries(result)["local_cloaking_without_filled"] == result.without_filled


@pytest.mark.parametrize("n", [20, 40, 60, 100, 2000])
def test_missing_cells_exactly_at_the_bound_are_measured(n: int) -> None:
    table = with_noise(mixed(n), 0.0)
    for share in (0.0, 0.05, 0.1, 0.15, 0.2, 0.35):
        originals, avatars = table.copy(), with_noise(table, 0.1)
        originals.loc[: round(share * n) - 1, "age"] = np.nan
        avatars.loc[: round((share + 0.05) * n) - 1, "age"] = np.nan
        result = local_cloaking(originals, avatars, ncp=2)
        assert result.reason is None or MISSING not in result.reason, share
        avatars.loc[round((share + 0.05) * n), "age"] = np.nan
        assert_not_assessable(local_cloaking(originals, avatars, ncp=2), MISSING)


def test_both_tables_are_filled_with_the_values_of_the_originals() -> None:
    originals = mixed()
    avatars = with_noise(originals, 0.1)
    avatars.loc[:9, "age"] = np.nan
    by_hand = avatars.assign(age=avatars["age"].fillna(originals["age"].median()))
    measured = local_cloaking(originals, avatars, ncp=3)
    assert measured.counts.tolist() == local_cloaking(originals, by_hand, ncp=3).counts.tolist()


def test_missing_cells_from_the_command_line(tmp_path: Path) -> None:
    table = mixed()
    avatars = blanked(with_noise(table, 0.3), 0.3)
    code, record, _ = by_command(tmp_path, table, avatars, "--ncp", "3", "--threshold", "1")
    assert (code, record["verdict"]) == (1, "not_assessable")
    assert "column 'age' is missing in 30.0% of the avatars, but in 0.0% of the originals" in record["reason"]
    assert {column["missing_avatars"] for column in record["columns"]} == {0.3}


# --- a missing category ---


def test_missing_category_is_a_level_of_its_own_learnt_from_the_originals() -> None:
    originals = blanked(mixed(), 0.2, columns=["arm"])
    avatars = with_noise(originals, 0.1)
    result = local_cloaking(originals, avatars, ncp=3)
    named = originals.assign(arm=originals["arm"].fillna("none"))
    as_level = local_cloaking(named, with_noise(named, 0.1), ncp=3)
    assert result.counts.tolist() == as_level.counts.tolist()
    assert next(c for c in result.findings.columns if c.name == "arm").filled_with == "a category of its own"


def test_missing_category_in_the_avatars_only_within_the_bound() -> None:
    originals = mixed()
    avatars = blanked(with_noise(originals, 0.1), 0.05, columns=["site"])
    commonest = originals["site"].value_counts().idxmax()
    by_hand = avatars.assign(site=avatars["site"].fillna(commonest))
    result = local_cloaking(originals, avatars, ncp=3)
    assert result.reason is None
    assert result.counts.tolist() == local_cloaking(originals, by_hand, ncp=3).counts.tolist()


@pytest.mark.parametrize("in_originals", [0.0, 0.2])
def test_missing_category_in_the_avatars_beyond_the_bound(in_originals: float) -> None:
    originals = mixed()
    avatars = blanked(with_noise(originals, 0.1), in_originals + 0.06, columns=["site"])
    if in_originals:
        originals = blanked(originals, in_originals, columns=["site"])
    assert_not_assessable(local_cloaking(originals, avatars, ncp=3), "column 'site' is missing in")


# --- another number of components ---


def test_another_number_of_components(actg: pd.DataFrame, actg_made: dict[int, Avatarisation]) -> None:
    made = actg_made[2]
    handed_over = local_cloaking(actg, made.avatars, projection=made.projection)
    assert (handed_over.ncp, handed_over.space, handed_over.warnings) == (5, "handed over", ())
    ladder = {ncp: local_cloaking(actg, made.avatars, projection=made.projection, ncp=ncp) for ncp in range(1, 5)}
    # Fewer components than the avatarisation used flatter the figure many times over.
    assert ladder[1].median > ladder[2].median > ladder[3].median > 3 * handed_over.median
    for ncp, result in ladder.items():
        assert is_warned(result, f"ncp is {ncp}, but the projection handed over has 5 components")
    refitted = local_cloaking(actg, made.avatars, categorical=CATEGORIES, ncp=2)
    assert refitted.space == "refitted"
    assert REFITTED in refitted.warnings
    assert refitted.counts.tolist() == ladder[2].counts.tolist()
    with pytest.raises(InputError, match=r"`ncp` is 6, but the projection handed over has 5 components"):
        local_cloaking(actg, made.avatars, projection=made.projection, ncp=6)


def test_a_projection_of_another_table_is_refused(actg: pd.DataFrame, actg_made: dict[int, Avatarisation]) -> None:
    half = actg.iloc[::2].reset_index(drop=True)
    other = avatarise_in_space(half, k=5, ncp=5, seed=1, categorical=CATEGORIES)
    with pytest.raises(InputError, match="projection handed over was fitted on"):
        local_cloaking(actg, actg_made[2].avatars, projection=other.projection)


# --- equal eigenvalues at the cut ---


@pytest.fixture(scope="module")
def factorial() -> pd.DataFrame:
    """Balanced: each combination of three categories ten times; all five components explain the same."""
    rows = list(itertools.product("ab", "xyz", "uvw")) * 10
    return pd.DataFrame(rows, columns=["p", "q", "r"])


@pytest.mark.parametrize("ncp", [1, 2, 3, 4])
def test_equal_eigenvalues_are_refused(factorial: pd.DataFrame, ncp: int, tmp_path: Path) -> None:
    message = f"components {ncp} and {ncp + 1} explain equal shares of the variance"
    for order in (factorial, factorial[["r", "p", "q"]], shuffled(factorial)):
        with pytest.raises(InputError, match=message) as refusal:
            local_cloaking(order, order, ncp=ncp)
        assert refusal.value.remedy == "use ncp=5"
    code, record, stderr = by_command(tmp_path, factorial, factorial, "--ncp", str(ncp))
    assert (code, record) == (2, {})
    assert message in stderr
    assert "use ncp=5" in stderr


def test_equal_eigenvalues_the_nearest_ncp_works(factorial: pd.DataFrame) -> None:
    avatars = shuffled(factorial)
    one = local_cloaking(factorial, avatars, ncp=5)
    order = np.random.default_rng(1).permutation(len(factorial))
    other = local_cloaking(factorial.iloc[order][["r", "q", "p"]], avatars.iloc[order][["q", "r", "p"]], ncp=5)
    assert one.median == other.median
    assert sorted(one.counts) == sorted(other.counts)


def test_equal_eigenvalues_the_bound() -> None:
    def gap(size: float) -> pd.DataFrame:
        # Four uncorrelated numbers by construction; a small correlation parts the first two eigenvalues.
        signs = np.array(list(itertools.product([-1.0, 1.0], repeat=4)))
        signs[:, 1] = size * signs[:, 0] + math.sqrt(1 - size**2) * signs[:, 1]
        return pd.DataFrame(signs, columns=list("abcd"))

    with pytest.raises(InputError, match="equal shares"):
        local_cloaking(gap(EQUAL_EIGENVALUES / 10), gap(EQUAL_EIGENVALUES / 10), ncp=1)
    assert local_cloaking(gap(EQUAL_EIGENVALUES * 10), gap(EQUAL_EIGENVALUES * 10), ncp=1).n == 16


# --- a column with all values different ---


@pytest.mark.parametrize("values", ["name", "identifier"])
def test_identifier_text_column_is_refused(values: str, tmp_path: Path) -> None:
    table = mixed()
    table["who"] = [f"{values}-{chr(97 + i % 26)}{i}" for i in range(len(table))]
    with pytest.raises(InputError) as refusal:
        local_cloaking(table, table, ncp=3)
    assert refusal.value.column == "who"
    assert refusal.value.rows == 400
    assert "`key`" in refusal.value.remedy
    assert "leave it out" in refusal.value.remedy
    code, record, stderr = by_command(tmp_path, table, table, "--ncp", "3")
    assert (code, record) == (2, {})
    assert "column 'who'" in stderr
    # Both remedies work.
    avatars = with_noise(table, 0.3)
    by_key = local_cloaking(table, avatars, ncp=3, key="who")
    dropped = local_cloaking(table, avatars, ncp=3, drop=["who"])
    assert by_key.counts.tolist() == dropped.counts.tolist()
    assert is_warned(dropped, "column 'who' was left out: it stands in the avatars")


def test_integer_column_that_numbers_the_rows_warns() -> None:
    table = mixed()
    for numbers in (np.arange(400), np.random.default_rng(0).permutation(400) + 1000):
        numbered = table.assign(row=numbers)
        assert_warned(
            local_cloaking(numbered, with_noise(numbered, 0.3).round({"row": 0}).astype({"row": int})),
            "column 'row' numbers the rows",
        )
    assert not any("number" in text for text in local_cloaking(table, with_noise(table, 0.3)).warnings)


# --- bare coordinates ---


def test_coordinates_of_the_tables_are_as_good_as_their_projection(
    actg: pd.DataFrame, actg_made: dict[int, Avatarisation]
) -> None:
    made = actg_made[20]
    x, y = made.projection.transform(actg), made.projection.transform(made.avatars)
    result = local_cloaking(actg, made.avatars, categorical=CATEGORIES, coordinates=(x, y))
    projected = local_cloaking(actg, made.avatars, projection=made.projection)
    assert result.counts.tolist() == projected.counts.tolist()
    assert (result.space, result.avatars_table) == ("coordinates", "verified")
    assert (projected.space, projected.avatars_table) == ("handed over", "verified")
    assert measure_entries(result)["avatars_table"] == "verified"
    # Turned, shifted and scaled by one factor, and written with six digits: the same distances.
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0]
    moved = [np.round(7 * values @ turn + 3, 6) for values in (x, y)]
    assert (
        local_cloaking(actg, made.avatars, categorical=CATEGORIES, coordinates=moved).avatars_table == "verified"
    )


@pytest.mark.parametrize("change", ["one avatar", "one cell", "axis", "stretched", "another table"])
def test_coordinates_of_another_table_or_space_are_not_verified(
    actg: pd.DataFrame, actg_made: dict[int, Avatarisation], change: str
) -> None:
    made = actg_made[20]
    avatars, (x, y) = made.avatars, (made.projection.transform(actg), made.projection.transform(made.avatars))
    if change == "one avatar":
        y[7] = y[8]
    elif change == "one cell":
        avatars = avatars.assign(age=avatars["age"] + (np.arange(len(avatars)) == 7))
    elif change == "axis":  # a space in which all are much alike
        x, y = np.repeat(x[:, 4:], 5, axis=1), np.repeat(y[:, 4:], 5, axis=1)
    elif change == "stretched":
        x, y = x * [1, 1, 1, 1, 1.001], y * [1, 1, 1, 1, 1.001]
    else:
        avatars = actg_made[100].avatars
    result = local_cloaking(actg, avatars, categorical=CATEGORIES, coordinates=(x, y))
    assert_warned(result, "avatars_table: not verified")
    assert_warned(result, "in the principal space of the originals")
    assert measure_entries(result)["avatars_table"] == "not verified"


def test_an_approximate_space_scores_higher_and_is_not_verified(
    actg: pd.DataFrame, actg_made: dict[int, Avatarisation]
) -> None:
    """saiph's decomposition is approximate when few components are asked for, and exact when all are."""
    saiph = pytest.importorskip("saiph", reason="saiph is not installed (extra `dev`)")
    as_text = dict.fromkeys(CATEGORIES, str)
    filled = (table.fillna({"cd496": actg["cd496"].median()}) for table in (actg, actg_made[20].avatars))
    one, other = (table.astype(as_text) for table in filled)
    medians = {}
    for ncp in (5, None):
        model = saiph.fit(one, nf=ncp, seed=4)
        coordinates = [saiph.transform(table, model).to_numpy() for table in (one, other)]
        result = local_cloaking(one, other, ncp=5, coordinates=coordinates)
        assert result.avatars_table == ("verified" if ncp is None else "not verified")
        medians[ncp] = result.median
    assert medians[5] > medians[None] + 5


def test_bare_coordinates_all_zeros_never_pass(actg: pd.DataFrame, actg_made: dict[int, Avatarisation]) -> None:
    made = actg_made[20]
    x = made.projection.transform(actg)
    result = local_cloaking(actg, made.avatars, categorical=CATEGORIES, coordinates=(x, np.zeros_like(x)))
    assert result.median == 2138
    assert is_warned(result, "avatars_table: not verified")
    assert_not_assessable(result, "all stand in one place")


def test_bare_coordinates_beside_a_projection_are_refused(
    actg: pd.DataFrame, actg_made: dict[int, Avatarisation]
) -> None:
    made = actg_made[20]
    x = made.projection.transform(actg)
    with pytest.raises(InputError, match="both a projection and bare coordinates"):
        local_cloaking(actg, made.avatars, projection=made.projection, coordinates=(x, x))


# --- collapsed avatars ---


def test_collapsed_numbers_filled_with_the_median_warn(
    actg: pd.DataFrame, actg_made: dict[int, Avatarisation]
) -> None:
    made = actg_made[2]
    numbers = [name for name in actg.columns if name not in CATEGORIES]
    avatars = made.avatars.assign(**{name: actg[name].median() for name in numbers})
    result = local_cloaking(actg, avatars, categorical=CATEGORIES)
    assert result.median > 50
    assert_warned(result, "the avatars have lost nearly all spread in 'age', 'wtkg'")
    assert is_warned(result, COLLAPSED)


@pytest.mark.parametrize("noise", [0.0, 1e-9])
def test_collapsed_to_few_rows_warns(noise: float) -> None:
    table = mixed()
    means = table.groupby(["arm", "site"])[["age", "dose", "weight", "rate"]].transform("mean")
    result = local_cloaking(table, with_noise(table.assign(**means), noise), ncp=3)
    assert_warned(result, "different rows where the originals have 400: protected, but of little use")


def test_collapsed_category_warns() -> None:
    table = mixed()
    result = local_cloaking(table, with_noise(table, 0.3).assign(site="north"), ncp=3)
    assert_warned(result, "the avatars have lost nearly all spread in 'site'")


# --- a threshold that always passes, or never means anything ---

INVALID_THRESHOLDS = [
    0,
    0.0,
    -0.0,
    -1,
    -5.5,
    math.inf,
    -math.inf,
    math.nan,
    True,
    False,
    None,
    "",
    " ",
    "0",
    "-5",
    "nan",
    "inf",
    "Infinity",
    "1e999",
    "1e-999",
    "True",
    "None",
    "abc",
    "5%",
    "{{ params.threshold }}",
    b"5",
    [5],
    {"threshold": 5},
    np.bool_(True),
    np.float64("nan"),
    np.float32("inf"),
    np.int64(0),
    np.array(5),
    Decimal("NaN"),
    Decimal("Infinity"),
    Decimal(0),
    10**400,
    5 + 0j,
]


@pytest.mark.parametrize("threshold", INVALID_THRESHOLDS, ids=lambda t: f"{type(t).__name__}-{str(t)[:12]}")
def test_invalid_threshold_is_refused(threshold: Any) -> None:
    for refuse in (
        checked_threshold,
        lambda value: local_cloaking_suite(value, individuals=10),
        lambda value: judge(np.full(10, 9), individuals=10, threshold=value),
    ):
        with pytest.raises(InputError, match="the threshold is not a number above 0"):
            refuse(threshold)


@pytest.mark.parametrize("threshold", [5, 5.0, "5", " 5 ", "5e0", np.int64(5), np.float32(5), Decimal(5)])
def test_valid_threshold(threshold: Any) -> None:
    assert checked_threshold(threshold) == 5.0


@pytest.mark.parametrize("threshold", ["0", "-1", "inf", "nan", "true", "None", "", "abc"])
def test_invalid_threshold_on_the_command_line(threshold: str, tmp_path: Path) -> None:
    code, record, stderr = by_command(tmp_path, mixed(), mixed(), f"--threshold={threshold}")
    assert (code, record) == (2, {})
    assert "the threshold is not a number above 0" in stderr


# --- an empty suite, or expectations that were not evaluated ---

PASSING = {"individuals": 3, "threshold": 1}


def test_empty_suite_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from great_expectations import ExpectationSuite

    monkeypatch.setattr(gate, "local_cloaking_suite", lambda *_, **__: ExpectationSuite(name="empty"))
    with pytest.raises(GateError):
        judge(np.array([1, 2, 2]), **PASSING)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda results: [],
        lambda results: results[:-1],
        lambda results: [{**r, "exception_info": {"raised_exception": True}} for r in results],
        lambda results: [{**r, "exception_info": {"('metric',)": {"raised_exception": True}}} for r in results],
        lambda results: [{**r, "result": {}} for r in results],
        lambda results: [{**r, "success": None} for r in results],
        lambda results: [{**r, "result": {**r["result"], "observed_value": 99}} for r in results],
    ],
    ids=[
        "no results",
        "one too few",
        "raised",
        "raised in a metric",
        "observed nothing",
        "no success",
        "other median",
    ],
)
def test_expectations_that_were_not_evaluated_are_refused(monkeypatch: pytest.MonkeyPatch, spoil: Any) -> None:
    from great_expectations.datasource.fluent.interfaces import Batch

    class Spoilt:
        def __init__(self, results: Any) -> None:
            self.content = results.to_json_dict()

        def to_json_dict(self) -> dict[str, Any]:
            return {"success": True, "results": spoil(self.content["results"])}

    evaluate = Batch.validate
    monkeypatch.setattr(Batch, "validate", lambda *args, **options: Spoilt(evaluate(*args, **options)))
    with pytest.raises(GateError):
        judge(np.array([1, 2, 2]), **PASSING)


def test_each_expectation_was_evaluated() -> None:
    judgement = judge(np.array([1, 2, 2]), **PASSING)
    assert judgement.verdict == "passed"
    assert len(judgement.expectations) == 4
    assert all(expectation.success for expectation in judgement.expectations)


@pytest.mark.parametrize("counts", [[], [[1, 2]], [1.0, 2.0], [None], ["5"], [True, False]])
def test_counts_that_are_none_are_no_verdict(counts: Any) -> None:
    with pytest.raises(GateError):
        judge(np.array(counts), **PASSING)


@pytest.mark.parametrize("counts", [[5, 5], [5, 5, 5, 5], [5, 5, 3], [5, 5, -1]])
def test_counts_that_do_not_fit_n_are_not_assessable(counts: list[int]) -> None:
    assert judge(np.array(counts), **PASSING).verdict == "not_assessable"
