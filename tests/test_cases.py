"""How tools of this kind have failed in public: each report's input, and the right outcome here.

The tests bear the name of the report: the tool and the number of its issue or pull request. Each row stands for
a kind, so that its neighbours are tried beside it.
"""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from local_cloaking import InputError, LocalCloaking, avatarise, closer_avatar_counts, local_cloaking
from local_cloaking.cli import app
from local_cloaking.neighbours import count_closer_avatars

N = 120


def case(*reports: str) -> Callable[..., Any]:
    """Name a test by the report that it comes from."""
    return pytest.mark.parametrize("report", ["+".join(reports)])


def numbers(n: int = N, seed: int = 0) -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(seed).normal(size=(n, 3)), columns=["x", "y", "z"])


def with_column(values: Any, avatars: Any = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Originals and avatars near them, both with a column ``c``."""
    originals, noise = numbers(), np.random.default_rng(1).normal(scale=0.3, size=(N, 3))
    return originals.assign(c=values), (originals + noise).assign(c=values if avatars is None else avatars)


def cycle(*values: Any) -> list[Any]:
    return [values[i % len(values)] for i in range(N)]


def assert_measured(result: LocalCloaking) -> None:
    assert result.counts.dtype == np.int64
    assert ((result.counts >= 0) & (result.counts <= result.n - 1)).all()
    assert np.isfinite([result.median, result.strict_median, result.hidden_rate]).all()


def by_command(
    folder: Path, originals: pd.DataFrame, avatars: pd.DataFrame, *options: str, suffix: str = ".csv"
) -> tuple[int, dict[str, Any], str]:
    """Measure files: exit code, record (empty where refused), stderr."""
    files = []
    for name, frame in (("originals", originals), ("avatars", avatars)):
        files.append(folder / f"{name}{suffix}")
        if suffix == ".parquet":
            frame.to_parquet(files[-1], index=False)
        else:
            frame.to_csv(files[-1], index=False)
    record = folder / "record.json"
    record.unlink(missing_ok=True)
    arguments = ["measure", *map(str, files), "--ncp", "2", "--json", str(record), *options]
    result = CliRunner().invoke(app, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.stderr
    if result.exit_code == 2:
        assert len(result.stderr.splitlines()) == 1
        assert not record.exists()
    return result.exit_code, json.loads(record.read_text()) if record.exists() else {}, result.stderr


def distribution(result: LocalCloaking) -> dict[str, list[int]]:
    values, individuals = np.unique(result.counts, return_counts=True)
    return {"count": values.tolist(), "individuals": individuals.tolist()}


SUFFIXES = [".csv", ".parquet"]


# --- categories ---


@case("prince-169", "prince-117", "prince-134", "prince-56")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_category_absent_from_the_avatars_is_measured(report: str, suffix: str, tmp_path: Path) -> None:
    originals, avatars = with_column(cycle("a", "b", "c"), "a")
    result = local_cloaking(originals, avatars, ncp=2)
    assert_measured(result)
    code, record, _ = by_command(tmp_path, originals, avatars, suffix=suffix)
    # These avatars have lost so much that the pairs look random: measured, and a reason beside the figure.
    assert (code, record["distribution"]) == (0 if result.reason is None else 1, distribution(result))
    originals, avatars = (table.assign(x=table["x"] + 9 * (np.arange(N) < 60)) for table in (originals, avatars))
    assert local_cloaking(originals, avatars, ncp=4).reason is None


@case("prince-107", "prince-135", "synthcity-PR-300")
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("rows", [1, 7, N])
def test_an_unseen_category_is_refused_with_its_column_and_rows(
    report: str, suffix: str, rows: int, tmp_path: Path
) -> None:
    originals, avatars = with_column(cycle("a", "b", "c"))
    avatars.loc[: rows - 1, "c"] = "NEW"
    with pytest.raises(InputError) as refusal:
        local_cloaking(originals, avatars, ncp=2)
    assert (refusal.value.column, refusal.value.rows) == ("c", rows)
    assert refusal.value.remedy
    code, _, stderr = by_command(tmp_path, originals, avatars, suffix=suffix)
    assert code == 2
    assert f"column 'c': {rows} avatars have a category that no original has" in stderr
    # The value itself may be personal.
    assert "NEW" not in str(refusal.value) + stderr


@case("prince-107", "prince-135")
@pytest.mark.parametrize(
    ("values", "unseen"),
    [
        (cycle(1, 2), 3),
        (cycle(1.5, 2.5), 3.5),
        (cycle(10**30, 10**31), 10**32),
        (cycle(dt.date(2020, 1, 1), dt.date(2021, 1, 1)), dt.date(2022, 1, 1)),
    ],
    ids=["whole", "real", "huge", "date"],
)
def test_an_unseen_value_of_a_declared_category_is_refused(report: str, values: list[Any], unseen: Any) -> None:
    originals, avatars = with_column(
        pd.Series(values, dtype=object), pd.Series([unseen, *values[1:]], dtype=object)
    )
    with pytest.raises(InputError, match="1 avatars have a category that no original has"):
        local_cloaking(originals, avatars, ncp=2, categorical=["c"])
    assert_measured(local_cloaking(originals, originals, ncp=2, categorical=["c"]))


@case("prince-69", "prince-105")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_truth_values_count_as_any_category_of_two_levels(report: str, suffix: str, tmp_path: Path) -> None:
    flags, text = cycle(True, True, False), cycle("u", "v", "w", "w")
    as_flags, as_text, as_words = (
        [table.assign(t=text) for table in with_column(values)]
        for values in (flags, [str(int(flag)) for flag in flags], ["yes" if flag else "no" for flag in flags])
    )
    result = local_cloaking(*as_flags, ncp=2)
    for pair in (as_text, as_words):
        assert local_cloaking(*pair, ncp=2).counts.tolist() == result.counts.tolist()
    code, record, _ = by_command(tmp_path, *as_flags, suffix=suffix)
    assert (code, record["distribution"]) == (0, distribution(result))
    assert [column["kind"] for column in record["columns"]] == ["number"] * 3 + ["boolean", "text"]


@case("prince-69")
def test_truth_values_of_any_make(report: str) -> None:
    flags = cycle(True, True, False)
    expected = local_cloaking(*with_column(flags), ncp=2).counts.tolist()
    for dtype in (object, "boolean", "category"):
        assert local_cloaking(*with_column(pd.Series(flags, dtype=dtype)), ncp=2).counts.tolist() == expected


@case("prince-109")
@pytest.mark.parametrize(
    ("values", "categories"),
    [
        (("x", "y"), ["x", "y", "z"]),
        ((1, 2), [3, 2, 1]),
        ((0.5, 1.5), [1.5, 0.5, 9.0]),
        ((True, False), [True, False]),
    ],
    ids=["text", "whole", "real", "flags"],
)
@pytest.mark.parametrize("ordered", [False, True])
def test_pandas_categorical_with_an_unused_level(
    report: str, values: tuple[Any, ...], categories: list[Any], ordered: bool
) -> None:
    originals, avatars = with_column(pd.Categorical(cycle(*values), categories=categories, ordered=ordered))
    result = local_cloaking(originals, avatars, ncp=2)
    assert_measured(result)
    assert result.findings.columns[-1].levels == 2
    plain = [table.assign(c=table["c"].astype(type(values[0]))) for table in (originals, avatars)]
    assert local_cloaking(*plain, ncp=2, categorical=["c"]).counts.tolist() == result.counts.tolist()
    # The level that no original has stays unknown, although pandas declares it.
    if len(categories) > 2:
        unknown = next(level for level in categories if level not in values)
        avatars.loc[0, "c"] = unknown
        with pytest.raises(InputError, match="1 avatars have a category that no original has"):
            local_cloaking(originals, avatars, ncp=2)


@case("prince-109")
def test_pandas_categorical_from_parquet(report: str, tmp_path: Path) -> None:
    originals, avatars = with_column(pd.Categorical(cycle("x", "y"), categories=["x", "y", "z"]))
    code, record, _ = by_command(tmp_path, originals, avatars, suffix=".parquet")
    assert (code, record["distribution"]) == (0, distribution(local_cloaking(originals, avatars, ncp=2)))


# --- numbers only, numbers as text ---


@case("prince-40")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_all_numeric_table_is_measured_by_pca(report: str, suffix: str, tmp_path: Path) -> None:
    datasets, decomposition = pytest.importorskip("sklearn.datasets"), pytest.importorskip("sklearn.decomposition")
    iris = datasets.load_iris(as_frame=True).data
    avatars = avatarise(iris, k=5, ncp=2, seed=1)
    result = local_cloaking(iris, avatars, ncp=2)
    assert_measured(result)
    assert result.reason is None
    scaled = [(table - iris.mean()) / iris.std(ddof=0) for table in (iris, avatars)]
    pca = decomposition.PCA(2).fit(scaled[0])
    assert result.counts.tolist() == closer_avatar_counts(*map(pca.transform, scaled)).tolist()
    code, record, _ = by_command(tmp_path, iris, avatars, suffix=suffix)
    assert (code, record["distribution"]) == (0, distribution(result))


@case("prince-55")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_numbers_stored_as_text_are_refused_unless_declared(report: str, suffix: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    texts = [["1.2", "?", "3"][i] for i in rng.integers(3, size=2000)]
    originals = numbers(2000).assign(c=texts)
    avatars = numbers(2000).add(rng.normal(scale=0.3, size=(2000, 3))).assign(c=texts)
    with pytest.raises(InputError) as refusal:
        local_cloaking(originals, avatars, ncp=2)
    no_numbers = texts.count("?")
    assert (refusal.value.column, refusal.value.rows) == ("c", no_numbers)
    code, _, stderr = by_command(tmp_path, originals, avatars, suffix=suffix)
    assert code == 2
    assert f"column 'c': numbers written as text, and {no_numbers} values that are no numbers" in stderr
    assert "`categorical`" in stderr
    declared = local_cloaking(originals, avatars, ncp=2, categorical=["c"])
    assert declared.findings.columns[-1].levels == 3
    code, record, _ = by_command(tmp_path, originals, avatars, "--categorical", "c", suffix=suffix)
    assert (code, record["distribution"]) == (0, distribution(declared))


@case("prince-55")
def test_many_numbers_stored_as_text_are_refused(report: str) -> None:
    originals, avatars = with_column([f"{i % 40},5" for i in range(N)])
    with pytest.raises(InputError, match=f"column 'c': {N} numbers written as text would become 40 categories"):
        local_cloaking(originals, avatars, ncp=2)


# --- missing values ---


@case("SDV-645", "SDMetrics-58")
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("where", ["originals", "avatars", "both"])
@pytest.mark.parametrize("column", ["x", "c", "flag", "day"])
def test_one_missing_value(report: str, where: str, column: str, suffix: str, tmp_path: Path) -> None:
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(N) * 7 % 100, unit="D")
    tables = dict(zip(("originals", "avatars"), with_column(cycle("a", "b", "b")), strict=True))
    for name in tables:
        table = tables[name].assign(
            flag=pd.array(cycle(True, False, False, True, True), dtype="boolean"), day=days
        )
        if where in (name, "both"):
            table.loc[5, column] = None
        tables[name] = table
    result = local_cloaking(tables["originals"], tables["avatars"], ncp=2)
    assert_measured(result)
    said = next(entry for entry in result.findings.columns if entry.name == column)
    share = pytest.approx(1 / N)
    assert said.missing_originals == (share if where != "avatars" else 0)
    assert said.missing_avatars == (share if where != "originals" else 0)
    own_level = column in ("c", "flag") and where != "avatars"
    expected = "the originals' median" if column in ("x", "day") else "the originals' commonest category"
    assert said.filled_with == ("a category of its own" if own_level else expected)
    assert (result.without_filled is None) == own_level
    code, record, _ = by_command(tmp_path, tables["originals"], tables["avatars"], suffix=suffix)
    assert (code, record["distribution"]) == (0, distribution(result))
    assert next(c for c in record["columns"] if c["name"] == column)["filled_with"] == said.filled_with


@case("SDV-645")
@pytest.mark.parametrize("missing", [None, np.nan, pd.NA], ids=str)
def test_missing_values_of_any_make_are_alike(report: str, missing: Any) -> None:
    cells = ["a", "b", "b"] * (N // 3)
    expected = local_cloaking(*with_column([None, *cells[1:]]), ncp=2).counts.tolist()
    assert (
        local_cloaking(*with_column(pd.Series([missing, *cells[1:]], dtype=object)), ncp=2).counts.tolist()
        == expected
    )


@case("SDMetrics-58")
@pytest.mark.parametrize("values", [[None] * N, [np.nan] * N, [""] * N], ids=["none", "nan", "empty"])
def test_a_column_without_any_value(report: str, values: list[Any], tmp_path: Path) -> None:
    originals, avatars = with_column(values)
    if values[0] != "":
        with pytest.raises(InputError) as refusal:
            local_cloaking(originals, avatars, ncp=2)
        assert (refusal.value.column, refusal.value.rows) == ("c", N)
    code, _, stderr = by_command(tmp_path, originals, avatars)
    assert code == 2
    assert "column 'c': the originals have no value in it" in stderr


# --- types that differ ---


@case("SDV-647")
@pytest.mark.parametrize(
    ("originals", "avatars", "kinds"),
    [
        (cycle(1, 2, 3), cycle("x", "y", "z"), ("number", "text")),
        (cycle("x", "y"), cycle(1, 2), ("text", "number")),
        (cycle(True, False), cycle(1, 0), ("boolean", "number")),
        (cycle(*pd.date_range("2020", periods=9)), cycle("x", "y"), ("date", "text")),
        (cycle(1.5, 2.5), cycle(*pd.date_range("2020", periods=9)), ("number", "date")),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_types_that_differ_are_refused_naming_both(
    report: str, originals: list[Any], avatars: list[Any], kinds: tuple[str, str], suffix: str, tmp_path: Path
) -> None:
    tables = with_column(originals, avatars)
    with pytest.raises(InputError) as refusal:
        local_cloaking(*tables, ncp=2)
    assert refusal.value.column == "c"
    assert refusal.value.rows == N
    for kind, table in zip(kinds, ("originals", "avatars"), strict=True):
        assert f"{kind} (" in str(refusal.value)
        assert f"in the {table}" in str(refusal.value)
    code, _, stderr = by_command(tmp_path, *tables, suffix=suffix)
    assert code == 2
    assert "column 'c': " in stderr


@case("SDV-647")
@pytest.mark.parametrize("dtype", ["float64", "Int64", "Float64", "int8", "object", "float32"])
def test_the_same_numbers_in_another_type_are_the_same(report: str, dtype: str) -> None:
    values = pd.Series(cycle(1, 2, 5))
    expected = local_cloaking(*with_column(values), ncp=2).counts.tolist()
    assert local_cloaking(*with_column(values, values.astype(dtype)), ncp=2).counts.tolist() == expected
    assert local_cloaking(*with_column(values.astype(dtype), values), ncp=2).counts.tolist() == expected


@case("SDV-647")
@pytest.mark.parametrize(
    "values",
    [
        cycle(1, "a"),
        cycle(1j),
        cycle(b"a", b"b"),
        cycle([1]),
        cycle({}),
        cycle((1, 2)),
        cycle(dt.time(3)),
        cycle(object()),
    ],
    ids=lambda values: type(values[0]).__name__,
)
def test_columns_that_are_no_column_are_refused(report: str, values: list[Any]) -> None:
    originals, avatars = with_column(pd.Series(values, dtype=object))
    with pytest.raises(InputError) as refusal:
        local_cloaking(originals, avatars, ncp=2)
    assert refusal.value.column == "c"


# --- no variation ---


@case("SDMetrics-738", "SDMetrics-693")
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("columns", [{"a": 1.1}, {"a": "x"}, {"a": 0.1, "b": "x", "c": True, "d": 7}], ids=str)
def test_identical_rows(report: str, columns: dict[str, Any], suffix: str, tmp_path: Path) -> None:
    table = pd.DataFrame([columns] * 10)
    result = local_cloaking(table, table.copy(), ncp=2)
    assert result.counts.tolist() == [9] * 10
    assert result.strict_median == 0
    assert any("are alike" in warning for warning in result.warnings)
    assert "nothing can be told apart" in str(result.reason)
    code, record, _ = by_command(tmp_path, table, table, "--threshold", "5", suffix=suffix)
    assert (code, record["verdict"]) == (1, "not_assessable")
    assert record["distribution"] == {"count": [9], "individuals": [10]}
    assert any("are alike" in warning for warning in record["warnings"])


@case("SDMetrics-738")
def test_a_constant_column_changes_nothing(report: str) -> None:
    originals, avatars = with_column(0.1)
    expected = local_cloaking(originals.drop(columns="c"), avatars.drop(columns="c"), ncp=2).counts.tolist()
    assert local_cloaking(originals, avatars, ncp=2).counts.tolist() == expected
    assert local_cloaking(originals.assign(c="k"), avatars.assign(c="k"), ncp=2).counts.tolist() == expected


# --- size ---

_MEMORY = """
import resource, sys
from pathlib import Path
import numpy as np, pandas as pd
from local_cloaking.avatarisation import avatarise_in_space
from local_cloaking.measuring import Inputs, measure_files
n, folder = int(sys.argv[1]), Path(sys.argv[2])
rng = np.random.default_rng(0)
hidden = rng.normal(size=(n, 3))
mix = rng.normal(size=(3, 10))
table = pd.DataFrame(hidden @ mix + rng.normal(scale=0.1, size=(n, 10)), columns=[f"n{i}" for i in range(10)])
for i in range(2):
    table[f"c{i}"] = np.array(list("abcd"))[np.digitize(hidden[:, i], [-1, 0, 1])]
made = avatarise_in_space(table, k=5, ncp=3, seed=0)
table.to_csv(folder / "originals.csv", index=False)
made.avatars.to_parquet(folder / "avatars.parquet", index=False)
(folder / "projection.json").write_text(made.projection.to_json())
inputs = Inputs(folder / "originals.csv", folder / "avatars.parquet", projection=folder / "projection.json")
del table, made
result = measure_files(inputs).result
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(result.n, int(result.median), result.reason, peak * (1 if sys.platform == "darwin" else 1024))
"""


@case("SDMetrics-760")
@pytest.mark.parametrize("n", [32_500, 200_000])
def test_memory_stays_below_2_gb(report: str, n: int, tmp_path: Path) -> None:
    pytest.importorskip("resource")
    done = subprocess.run(
        [sys.executable, "-c", _MEMORY, str(n), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    individuals, median, reason, peak = done.stdout.split()
    assert (int(individuals), reason) == (n, "None")
    assert int(median) > 0
    assert int(peak) < 2 * 2**30


# --- names ---


@case("Anonymeter-37")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_names_of_any_sort_are_measured(report: str, suffix: str, tmp_path: Path) -> None:
    names = ["petal length (cm)", "a.b[0]; -", 'l\'âge "réel", été', "poids 🧪\n(kg)"]
    pair = with_column(cycle("a", "b", "b"))
    expected = local_cloaking(*pair, ncp=2)
    renamed = [table.set_axis(names, axis="columns") for table in pair]
    result = local_cloaking(*renamed, ncp=2)
    assert result.counts.tolist() == expected.counts.tolist()
    assert [column.name for column in result.findings.columns] == names
    code, record, _ = by_command(tmp_path, *renamed, suffix=suffix)
    assert (code, record["distribution"]) == (0, distribution(expected))
    assert [column["name"] for column in record["columns"]] == names


@case("Anonymeter-37")
@pytest.mark.parametrize(
    "names", [[0, 1, 2, 3], [1.5, True, "x", ("a", "b")], ["self", "class", "columns", "index"]]
)
def test_names_that_are_no_text_are_measured(report: str, names: list[Any]) -> None:
    pair = with_column(cycle("a", "b", "b"))
    renamed = [table.set_axis(pd.Index(names, tupleize_cols=False), axis="columns") for table in pair]
    assert local_cloaking(*renamed, ncp=2).counts.tolist() == local_cloaking(*pair, ncp=2).counts.tolist()
    # In another order, too: names, not places, say which column is which.
    turned = renamed[1].iloc[:, ::-1]
    assert (
        local_cloaking(renamed[0], turned, ncp=2).counts.tolist() == local_cloaking(*pair, ncp=2).counts.tolist()
    )


@case("Anonymeter-37")
@pytest.mark.parametrize("names", [["x", "x", "z", "c"], [1, "1", "z", "c"]], ids=["twice", "as text"])
def test_duplicate_names_are_refused(report: str, names: list[Any], tmp_path: Path) -> None:
    originals, avatars = (table.set_axis(names, axis="columns") for table in with_column(cycle("a", "b")))
    for pair in ((originals, avatars), (with_column(cycle("a", "b"))[0], avatars)):
        with pytest.raises(InputError, match="stand more than once") as refusal:
            local_cloaking(*pair, ncp=2)
        assert refusal.value.column == str(names[0])
    code, _, stderr = by_command(tmp_path, originals, avatars)
    assert code == 2
    assert "more than once" in stderr


# --- pairs ---


@case("LeakPro-182")
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("fewer", ["avatars", "originals"])
def test_one_row_fewer_is_refused(report: str, fewer: str, suffix: str, tmp_path: Path) -> None:
    pair = dict(zip(("originals", "avatars"), with_column(cycle("a", "b")), strict=True))
    pair[fewer] = pair[fewer].iloc[:-1]
    with pytest.raises(InputError) as refusal:
        local_cloaking(pair["originals"], pair["avatars"], ncp=2)
    assert refusal.value.rows == 1
    assert f"{len(pair['originals'])} originals, {len(pair['avatars'])} avatars" in str(refusal.value)
    code, _, stderr = by_command(tmp_path, pair["originals"], pair["avatars"], suffix=suffix)
    assert code == 2
    assert "originals, " in stderr
    with pytest.raises(InputError):
        closer_avatar_counts(np.zeros((3, 2)), np.zeros((2, 2)))


@case("LeakPro-182")
def test_one_row_fewer_is_refused_by_key(report: str) -> None:
    originals, avatars = (table.assign(id=range(N)) for table in with_column(cycle("a", "b")))
    for pair in ((originals, avatars.iloc[1:]), (originals.iloc[1:], avatars)):
        with pytest.raises(InputError) as refusal:
            local_cloaking(*pair, ncp=2, key="id")
        assert (refusal.value.column, refusal.value.rows) == ("id", 1)


@case("LeakPro-182")
def test_the_index_of_a_frame_pairs_nothing(report: str) -> None:
    originals, avatars = with_column(cycle("a", "b"))
    expected = local_cloaking(originals, avatars, ncp=2).counts.tolist()
    for index in ([0] * N, range(N, 0, -1), pd.MultiIndex.from_arrays([[1] * N, range(N)])):
        assert local_cloaking(originals, avatars.set_axis(index), ncp=2).counts.tolist() == expected


# --- floating-point numbers ---


@case("faiss-3245", "faiss-297", "faiss-5327", "faiss-563")
@pytest.mark.parametrize("method", ["tree", "blocks"])
@pytest.mark.parametrize("offset", [1e5, -1e5])
def test_an_offset_changes_no_count(report: str, method: Any, offset: float) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 5))
    y = x + rng.normal(scale=0.5, size=x.shape)
    counts = count_closer_avatars(x, y, method=method)
    moved = count_closer_avatars(x + offset, y + offset, method=method)
    assert counts.closer.tolist() == moved.closer.tolist()
    assert counts.strictly_closer.tolist() == moved.strictly_closer.tolist()
    # Nor does the size of a batch.
    some = slice(17, 230)
    part = count_closer_avatars(x[some] + offset, y + offset, np.arange(3000)[some], method=method)
    assert part.closer.tolist() == counts.closer[some].tolist()


@case("faiss-3245", "faiss-297", "faiss-5327", "faiss-563")
def test_an_offset_of_the_columns_changes_no_count(report: str) -> None:
    originals, avatars = with_column(cycle("a", "b", "b"))
    moved = [
        table.assign(**{name: table[name] + 100000 for name in ("x", "y", "z")}) for table in (originals, avatars)
    ]
    assert (
        local_cloaking(*moved, ncp=3).counts.tolist() == local_cloaking(originals, avatars, ncp=3).counts.tolist()
    )


@case("faiss-563")
def test_an_offset_keeps_ties(report: str) -> None:
    grid = np.stack(np.meshgrid(np.arange(12.0), np.arange(12.0)), axis=-1).reshape(-1, 2) / 3
    moved = np.roll(grid, 1, axis=0)
    expected = closer_avatar_counts(grid, moved).tolist()
    for offset in (1e5, 1e7, -3e6):
        assert closer_avatar_counts(grid + offset, moved + offset).tolist() == expected


# --- copies ---


@case("TorchDR-PR-295")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_own_avatar_is_left_out_by_identity(report: str, suffix: str, tmp_path: Path) -> None:
    table = numbers(40)
    table.loc[[3, 17, 38]] = table.loc[3].to_numpy()
    result = local_cloaking(table, table.copy(), ncp=2)
    assert result.counts[[3, 17, 38]].tolist() == [2, 2, 2]
    assert result.counts.sum() == 6
    # Whichever of the three rows a copy stands in, and whatever the order of the avatars.
    keyed = table.assign(id=range(40))
    turned = local_cloaking(keyed, keyed.iloc[::-1], ncp=2, key="id")
    assert turned.counts.tolist() == result.counts.tolist()
    _, record, _ = by_command(tmp_path, table, table, suffix=suffix)
    assert record["distribution"] == distribution(result)
    assert closer_avatar_counts(np.ones((3, 2)), np.ones((3, 2))).tolist() == [2, 2, 2]
    for own in ([2, 0, 1], [0, 0, 0]):
        assert closer_avatar_counts(np.ones((3, 2)), np.ones((3, 2)), own).tolist() == [2, 2, 2]


# --- dates, truth values, infinities, missing values that differ ---

DAYS = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.random.default_rng(3).integers(0, 3000, N), unit="D")


@case("octopize-changelog")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_dates_are_measured_as_numbers(report: str, suffix: str, tmp_path: Path) -> None:
    originals, avatars = with_column(DAYS, DAYS + pd.Timedelta(days=3))
    result = local_cloaking(originals, avatars, ncp=2)
    assert result.findings.columns[-1].kind == "date"
    seconds = [
        table.assign(c=table["c"].to_numpy("datetime64[s]").astype(float)) for table in (originals, avatars)
    ]
    assert local_cloaking(*seconds, ncp=2).counts.tolist() == result.counts.tolist()
    code, record, _ = by_command(tmp_path, originals, avatars, suffix=suffix)
    assert (code, record["distribution"]) == (0, distribution(result))


@case("octopize-changelog")
def test_dates_of_any_make_are_alike(report: str) -> None:
    expected = local_cloaking(*with_column(DAYS), ncp=2).counts.tolist()
    days = pd.Series(DAYS)
    makes = [
        days.astype("datetime64[s]"),
        days.astype("datetime64[ns]"),
        pd.Series(days.dt.date.tolist(), dtype=object),
    ]
    makes += [pd.Series(list(DAYS.to_pydatetime()), dtype=object)]
    for one in makes:
        for other in makes:
            assert local_cloaking(*with_column(one, other), ncp=2).counts.tolist() == expected
    zoned = days.dt.tz_localize("UTC")
    assert (
        local_cloaking(*with_column(zoned, zoned.dt.tz_convert("Asia/Tokyo")), ncp=2).counts.tolist() == expected
    )
    with pytest.raises(InputError, match="zoned date"):
        local_cloaking(*with_column(zoned, days), ncp=2)


@case("octopize-changelog")
@pytest.mark.parametrize(
    ("first", "others"),
    [
        (dt.date(9999, 12, 31), [moment.date() for moment in DAYS]),
        (dt.date(1, 1, 1), [moment.date() for moment in DAYS]),
        (dt.datetime(9999, 1, 1), list(DAYS.to_pydatetime())),
        (
            dt.datetime(9999, 1, 1, tzinfo=dt.UTC),
            [moment.replace(tzinfo=dt.UTC) for moment in DAYS.to_pydatetime()],
        ),
    ],
    ids=["9999", "1", "time", "zoned"],
)
def test_dates_at_the_ends_of_time_are_measured(
    report: str, first: dt.date, others: list[Any], tmp_path: Path
) -> None:
    cells = [first, *others[1:]]
    originals, avatars = with_column(pd.Series(cells, dtype=object))
    result = local_cloaking(originals, avatars, ncp=2)
    assert_measured(result)
    code, record, _ = by_command(tmp_path, originals, avatars)
    assert (code, record["distribution"]) == (0, distribution(result))


@case("octopize-changelog")
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("where", [0, 1], ids=["originals", "avatars"])
def test_infinities_are_refused(report: str, value: float, where: int, suffix: str, tmp_path: Path) -> None:
    pair = list(with_column(numbers()["x"].tolist()))
    pair[where].loc[[2, 3], "c"] = value
    with pytest.raises(InputError) as refusal:
        local_cloaking(*pair, ncp=2)
    assert (refusal.value.column, refusal.value.rows) == ("c", 2)
    code, _, stderr = by_command(tmp_path, *pair, suffix=suffix)
    assert code == 2
    assert f"column 'c': 2 values in the {['originals', 'avatars'][where]} are infinite" in stderr


@case("octopize-changelog")
@pytest.mark.parametrize(
    "values", [cycle(Decimal("Infinity"), Decimal(1)), cycle(np.inf, 1.0)], ids=["decimal", "real"]
)
def test_infinities_are_refused_in_categories_too(report: str, values: list[Any]) -> None:
    with pytest.raises(InputError, match=f"{N // 2} values in the originals are infinite"):
        local_cloaking(*with_column(pd.Series(values, dtype=object)), ncp=2, categorical=["c"])
    with pytest.raises(InputError, match=f"{N // 2} values in the originals are infinite"):
        local_cloaking(*with_column(pd.Series(values, dtype=object)), ncp=2)


@case("octopize-changelog")
@pytest.mark.parametrize("value", [1e200, 1e308])
def test_numbers_too_large_to_square_are_refused(report: str, value: float) -> None:
    for pair in (with_column(cycle(value, -value)), with_column(cycle(0.0, 1.0), cycle(value, -value))):
        with pytest.raises(InputError):
            local_cloaking(*pair, ncp=2)


@case("octopize-changelog")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_missing_values_that_differ_between_the_tables(report: str, suffix: str, tmp_path: Path) -> None:
    """One of each: dates, truth values, numbers and text, with gaps in other rows of either table."""
    pair = []
    for shift, table in enumerate(with_column(cycle("a", "b", "b"))):
        day, flag = pd.Series(DAYS), pd.array(cycle(True, False, False, True, True), dtype="boolean")
        mixed = table.assign(day=day, flag=flag)
        for place, name in enumerate(["x", "c", "day", "flag"]):
            mixed.loc[[shift + 2 * place, 50 + 3 * shift + place], name] = None
        pair.append(mixed)
    result = local_cloaking(*pair, ncp=3)
    assert_measured(result)
    assert result.reason is None or "missing" not in result.reason
    code, record, _ = by_command(tmp_path, *pair, "--ncp", "3", suffix=suffix)
    assert (code, record["distribution"]) == (0 if result.reason is None else 1, distribution(result))
    shares = {(column["missing_originals"], column["missing_avatars"]) for column in record["columns"][3:]}
    assert shares == {(2 / N, 2 / N)}


# --- avatars come back in the types of the originals ---


@case("octopize-changelog")
@pytest.mark.parametrize(
    ("values", "declared"),
    [
        (pd.Series(cycle(10**30, 10**31), dtype=object), True),
        (pd.Series(np.array(cycle(2**64 - 1, 2**64 - 2), dtype="uint64")), True),
        (pd.Series(cycle(2**63 - 1, 2**63 - 2)), True),
        (pd.Series(cycle(Decimal("1.5"), Decimal(2)), dtype=object), True),
        (pd.Series(np.array(cycle(-128, 127), dtype="int8")), False),
        (pd.Series(cycle(True, False)), False),
        (pd.Series(DAYS), False),
    ],
    ids=["huge", "uint64", "int64", "decimal", "int8", "flags", "dates"],
)
def test_avatars_in_the_types_of_the_originals(report: str, values: pd.Series, declared: bool) -> None:
    originals = numbers().assign(c=values)
    categorical = ["c"] if declared else None
    avatars = avatarise(originals, k=5, ncp=3, seed=1, categorical=categorical)
    assert avatars["c"].dtype == originals["c"].dtype
    assert_measured(local_cloaking(originals, avatars, ncp=3, categorical=categorical))


@case("octopize-changelog")
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32"])
def test_avatars_at_the_end_of_a_whole_type_do_not_turn_round(report: str, dtype: str) -> None:
    highest = int(np.iinfo(dtype).max)
    originals = numbers().assign(c=np.array(cycle(highest, highest - 1, highest - 9), dtype=dtype))
    avatars = avatarise(originals, k=5, ncp=3, seed=1)
    assert avatars["c"].min() > highest - 20


@case("octopize-changelog")
@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_whole_numbers_that_floats_take_for_one_are_refused(report: str, dtype: str) -> None:
    highest = int(np.iinfo(dtype).max)
    originals = numbers().assign(c=np.array(cycle(highest, highest - 1, highest - 9), dtype=dtype))
    with pytest.raises(InputError, match="too large"):
        avatarise(originals, k=5, ncp=3, seed=1)


@case("prince-69")
def test_avatars_of_a_table_with_more_copies_than_neighbours(report: str) -> None:
    """Each individual has more likes than k: all neighbours stand in the same place, and so does the avatar."""
    table = pd.DataFrame({"c": cycle("a", "b", "b"), "d": cycle("u", "v"), "n": cycle(1.5, 2.5, 2.5)})
    with np.errstate(all="raise"):
        avatars = avatarise(table, k=3, ncp=2, seed=1)
    assert avatars.notna().all().all()
    assert (avatars[["c", "d"]] == table[["c", "d"]]).all().all()
    assert np.allclose(avatars["n"], table["n"])
