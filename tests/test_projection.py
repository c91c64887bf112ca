"""The projected space: exact, the same for a row wherever it stands, and faithful to the table it came from."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from local_cloaking.errors import InputError
from local_cloaking.neighbours import count_closer_avatars
from local_cloaking.projection import FAMD, check_same_space, checked_ncp


def mixed(n: int = 200, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 4))
    return pd.DataFrame(
        {
            "age": z[:, 0] * 10 + 50,
            "weight": z[:, 0] * 5 + z[:, 1] * 8 + 70,
            "dose": np.exp(z[:, 2]),
            "arm": np.where(z[:, 1] > 0.4, "new", np.where(z[:, 3] > 0, "old", "none")),
            "site": np.array(["a", "b", "c", "d"])[(np.abs(z[:, 3]) * 2).astype(int).clip(0, 3)],
            "smoker": z[:, 2] + rng.normal(size=n) > 0.5,
        }
    )


def jostled(table: pd.DataFrame, seed: int = 1) -> pd.DataFrame:
    """Something like avatars: numbers moved a little, some categories taken from other rows."""
    rng = np.random.default_rng(seed)
    other = table.copy()
    for name in table:
        if pd.api.types.is_float_dtype(table[name]):
            other[name] = table[name] + rng.normal(scale=0.5 * table[name].std(), size=len(table))
        else:
            drawn = table[name].to_numpy()[rng.integers(len(table), size=len(table))]
            other[name] = np.where(rng.random(len(table)) < 0.2, drawn, table[name])
    return other


NUMBERS, CATEGORIES = ["age", "weight", "dose"], ["arm", "site", "smoker"]


# The space ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [NUMBERS, CATEGORIES, NUMBERS + CATEGORIES], ids=["pca", "mca", "famd"])
@pytest.mark.parametrize("ncp", [1, 2, 3])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.filterwarnings("ignore")
def test_counts_are_those_in_the_space_of_saiph(columns: list[str], ncp: int, seed: int) -> None:
    saiph = pytest.importorskip("saiph")
    originals = mixed(seed=seed)[columns]
    avatars = jostled(originals, seed)
    # All components: only then does it decompose exactly.
    model = saiph.fit(originals.copy(), nf=None)
    theirs = [saiph.transform(t.copy(), model).to_numpy()[:, :ncp] for t in (originals, avatars)]
    famd = FAMD(ncp).fit(originals)
    ours = [famd.transform(t) for t in (originals, avatars)]
    expected, found = count_closer_avatars(*theirs), count_closer_avatars(*ours)
    np.testing.assert_array_equal(found.closer, expected.closer)
    np.testing.assert_array_equal(found.strictly_closer, expected.strictly_closer)


def scaled_by_hand(table: pd.DataFrame) -> np.ndarray:
    parts = []
    for name in table:
        if pd.api.types.is_float_dtype(table[name]):
            column = table[name].to_numpy()
            parts.append((column - column.mean()) / column.std())
            continue
        for level in sorted(table[name].unique()):
            indicator = (table[name] == level).to_numpy(float)
            parts.append((indicator - indicator.mean()) / np.sqrt(indicator.mean()))
    return np.column_stack(parts)


@pytest.mark.parametrize("columns", [NUMBERS, CATEGORIES, NUMBERS + CATEGORIES], ids=["pca", "mca", "famd"])
def test_coordinates_are_those_of_a_singular_value_decomposition(columns: list[str]) -> None:
    table = mixed()[columns]
    left, values, _ = np.linalg.svd(scaled_by_hand(table), full_matrices=False)
    famd = FAMD(3).fit(table)
    np.testing.assert_allclose(famd.eigenvalues_, values[:3] ** 2 / len(table), rtol=1e-12)
    # Up to the sign of each component, which no distance depends on.
    np.testing.assert_allclose(
        np.abs(famd.transform(table)), np.abs(left[:, :3] * values[:3]), rtol=1e-8, atol=1e-9
    )


def test_components_are_orthonormal_and_their_signs_do_not_depend_on_the_order_of_rows() -> None:
    table = mixed()
    famd = FAMD(4).fit(table)
    np.testing.assert_allclose(famd.components_ @ famd.components_.T, np.eye(4), atol=1e-12)
    other = FAMD(4).fit(table.sample(frac=1, random_state=3))
    np.testing.assert_allclose(other.components_, famd.components_, atol=1e-9)


@pytest.mark.parametrize("columns", [NUMBERS, CATEGORIES, NUMBERS + CATEGORIES], ids=["pca", "mca", "famd"])
def test_explained_variance_adds_up_to_the_variance_of_the_scaled_table(columns: list[str]) -> None:
    table = mixed()[columns]
    # One per number, and one less than its levels per category.
    rank = sum(1 if pd.api.types.is_float_dtype(table[c]) else table[c].nunique() - 1 for c in table)
    famd = FAMD(rank).fit(table)
    assert famd.total_variance_ == pytest.approx(rank)
    assert famd.eigenvalues_.sum() == pytest.approx(rank)
    assert (np.diff(famd.eigenvalues_) <= 0).all()
    np.testing.assert_allclose(famd.transform(table).var(axis=0), famd.eigenvalues_, rtol=1e-9)
    part = FAMD(2).fit(table)
    assert part.eigenvalues_.sum() / part.total_variance_ < 1


def test_table_larger_than_a_chunk_projects_like_its_rows() -> None:
    table = mixed(70_000)
    famd = FAMD(3).fit(table)
    coordinates = famd.transform(table)
    tail = table.tail(3_000)
    assert coordinates[-3_000:].tobytes() == famd.transform(tail).tobytes()
    np.testing.assert_allclose(coordinates.var(axis=0), famd.eigenvalues_, rtol=1e-9)


# A row's coordinates are its own -------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(rows=st.lists(st.integers(0, 199), min_size=1, max_size=40), seed=st.integers(0, 3))
def test_row_projects_to_the_same_bits_alone_and_in_any_table(rows: list[int], seed: int) -> None:
    table = mixed(seed=seed)
    famd = FAMD(5).fit(table)
    whole = famd.transform(table)
    assert famd.transform(table.iloc[rows]).tobytes() == whole[rows].tobytes()
    assert famd.transform(table.iloc[[rows[0]]]).tobytes() == whole[rows[0]].tobytes()


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.1, 0.7, -3.3]), st.sampled_from([1e5, 1e5 + 0.1]), st.sampled_from("xyz")),
        min_size=20,
        max_size=60,
    ).filter(lambda rows: all(len(set(column)) > 1 for column in zip(*rows, strict=True)))
)
def test_identical_rows_get_identical_coordinates_wherever_they_stand(
    rows: list[tuple[float, float, str]],
) -> None:
    table = pd.DataFrame(rows, columns=["a", "b", "c"])
    coordinates = FAMD(1).fit_transform(table)
    place: dict[Any, bytes] = {}
    for row, at in zip(rows, coordinates, strict=True):
        assert place.setdefault(row, at.tobytes()) == at.tobytes()


def test_columns_are_found_by_name_not_by_place() -> None:
    table = mixed()
    famd = FAMD(3).fit(table)
    assert famd.transform(table[table.columns[::-1]]).tobytes() == famd.transform(table).tobytes()


# The file ------------------------------------------------------------------------------------------------------


def with_gaps(table: pd.DataFrame) -> pd.DataFrame:
    gaps = table.copy()
    gaps.loc[3, "age"] = np.nan
    gaps.loc[[5, 9], "arm"] = None
    return gaps


def test_json_round_trip_transforms_to_the_same_bits() -> None:
    table = with_gaps(mixed())
    table["when"] = pd.Timestamp("2020-02-29") + pd.to_timedelta(np.arange(len(table)) ** 2, unit="h")
    famd = FAMD(5, categorical=["site"]).fit(table)
    text = famd.to_json()
    again = FAMD.from_json(text)
    assert again.transform(table).tobytes() == famd.transform(table).tobytes()
    assert again.columns_ == famd.columns_
    assert again.to_json() == text
    coordinates = famd.transform(table)
    pd.testing.assert_frame_equal(again.inverse_transform(coordinates), famd.inverse_transform(coordinates))
    check_same_space(again, famd)


def test_json_keeps_odd_names_and_categories() -> None:
    table = pd.DataFrame({'"é\n': ["ü", "a\\b", "日本", "ü"] * 5, "": [0.1, 1 / 3, 5.1, -2.2] * 5})
    famd = FAMD(3).fit(table)
    again = FAMD.from_json(famd.to_json())
    assert [column.name for column in again.columns_] == ['"é\n', ""]
    assert again.columns_[0].levels == ("a\\b", "ü", "日本")
    assert again.transform(table).tobytes() == famd.transform(table).tobytes()


def edited(**entries: Any) -> str:
    content = json.loads(FAMD(2).fit(mixed()).to_json())
    return json.dumps({**content, **entries})


def edited_column(place: int, **entries: Any) -> str:
    content = json.loads(edited())
    content["columns"][place].update(entries)
    return json.dumps(content)


def without(entry: str) -> str:
    content = json.loads(edited())
    del content[entry]
    return json.dumps(content)


def components() -> list[list[float]]:
    return json.loads(edited())["components"]


def one_changed(value: float) -> list[list[float]]:
    changed = components()
    changed[0][0] = value
    return changed


DAMAGED = {
    "nothing": lambda: "",
    "cut short": lambda: edited()[:-20],
    "cut in half": lambda: edited()[: len(edited()) // 2],
    "no object": lambda: "[]",
    "null": lambda: "null",
    "a number": lambda: "5",
    "text": lambda: '"local-cloaking/projection"',
    "nested lists": lambda: "[" * 200_000,
    "nested objects": lambda: '{"format":' * 200_000,
    "nested inside": lambda: edited()[:-1] + ', "more": ' + "[" * 200_000,
    "other format": lambda: edited(format="pickle"),
    "other version": lambda: edited(version=2),
    "no format": lambda: without("format"),
    "no components": lambda: without("components"),
    "no columns": lambda: without("columns"),
    "fewer components than said": lambda: edited(n_components=3),
    "number of components as text": lambda: edited(n_components="2"),
    "one row of components": lambda: edited(components=components()[:1], eigenvalues=[1.0]),
    "not orthonormal": lambda: edited(components=one_changed(0.9)),
    "twice as long": lambda: edited(components=[[2 * v for v in row] for row in components()]),
    "twice the same direction": lambda: edited(components=[components()[0]] * 2),
    "ragged": lambda: edited(components=[components()[0], components()[1][:-1]]),
    "flat": lambda: edited(components=components()[0]),
    "NaN in components": lambda: edited(components=one_changed(float("nan"))),
    "infinity in components": lambda: edited(components=one_changed(float("inf"))),
    "NaN in eigenvalues": lambda: edited(eigenvalues=[1.0, float("nan")]),
    "NaN as variance": lambda: edited(total_variance=float("nan")),
    "variance beyond a float": lambda: edited(total_variance=10**400),
    "infinitely many rows": lambda: edited(n_rows=float("inf")),
    "text as components": lambda: edited(components="abc"),
    "no shares": lambda: edited(shares=[]),
    "shares of another width": lambda: edited(shares=[[0.5]] * 6),
    "negative shares": lambda: edited(shares=[*json.loads(edited())["shares"][:5], [-0.5, 1.5]]),
    "negative deviation": lambda: edited(shares=[[50.0, -1.0], *json.loads(edited())["shares"][1:]]),
    "negative eigenvalue": lambda: edited(eigenvalues=[1.0, -1.0]),
    "NaN in shares": lambda: edited(shares=[[float("nan"), 1.0], *json.loads(edited())["shares"][1:]]),
    "column with an unknown entry": lambda: edited_column(0, code="print()"),
    "columns as text": lambda: edited(columns="abc"),
    "unknown role": lambda: edited_column(3, role="other"),
    "a category made a number": lambda: edited_column(3, role="number"),
    "fewer levels": lambda: edited_column(3, levels=["new", "none"]),
    "one level twice": lambda: edited_column(3, levels=["new", "none", "none"]),
    "NaN as a number's fill": lambda: edited_column(0, fill=float("nan")),
    "no fill": lambda: edited_column(0, fill=None),
    "a fill that is no level": lambda: edited_column(3, fill=7.0),
    "all directions zero": lambda: edited(components=[[0.0] * len(row) for row in components()]),
    "negative variance": lambda: edited(total_variance=-1.0),
    "unknown kind": lambda: edited_column(0, kind="other"),
    "a kind that no column has": lambda: edited_column(0, kind="missing"),
    "a kind that is no text": lambda: edited_column(0, kind=["number"]),
    "a name that is no text": lambda: edited_column(0, name=5),
    "no name": lambda: edited_column(0, name=None),
    "levels as text": lambda: edited_column(5, levels="ft"),
    "levels as an object": lambda: edited_column(5, levels={"f": 1, "t": 2}),
    "a dtype that is no text": lambda: edited_column(0, dtype=64),
    "whole as text": lambda: edited_column(0, whole="false"),
    "missing level as text": lambda: edited_column(3, missing_level=""),
}


def test_the_file_that_is_damaged_below_is_whole() -> None:
    assert FAMD.from_json(edited()).n_components == 2


@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_or_edited_file_is_refused(damage: str) -> None:
    with pytest.raises(InputError) as caught:
        FAMD.from_json(DAMAGED[damage]())
    assert "unchanged" in caught.value.remedy


# Back to the table ---------------------------------------------------------------------------------------------


def many_types(n: int = 90) -> pd.DataFrame:
    rng = np.random.default_rng(4)
    category = pd.Categorical(rng.choice(["low", "high"], n), categories=["low", "high", "never"])
    return pd.DataFrame(
        {
            "int": rng.integers(0, 50, n),
            "small int": rng.integers(-9, 9, n).astype("int8"),
            "float": rng.normal(size=n),
            "float32": rng.normal(size=n).astype("float32"),
            "bool": rng.random(n) < 0.4,
            "text": rng.choice(["x", "y", "z"], n),
            "category": category,
            "date": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 10**6, n), unit="s"),
            "zoned": pd.Timestamp("2020-01-01", tz="Europe/Paris") + pd.to_timedelta(rng.integers(0, 999, n), "h"),
            "duration": pd.to_timedelta(rng.integers(0, 10**6, n), unit="s"),
            "nullable int": pd.array(rng.integers(0, 50, n), dtype="Int64"),
            "nullable bool": pd.array(rng.random(n) < 0.5, dtype="boolean"),
            "nullable text": pd.array(rng.choice(["p", "q"], n), dtype="string"),
        }
    )


def full_rank(table: pd.DataFrame, **options: Any) -> FAMD:
    """Keep all components: then no information is lost."""
    with pytest.raises(InputError) as caught:
        FAMD(999, **options).fit(table)
    return FAMD(int(re.search(r"ncp=(\d+)", caught.value.remedy)[1]), **options).fit(table)


def test_names_order_and_types_come_back() -> None:
    table = many_types()
    for famd in (FAMD(2).fit(table), full_rank(table)):
        back = famd.inverse_transform(famd.transform(table))
        assert list(back.columns) == list(table.columns)
        for name in table:
            if name != "category":
                assert back[name].dtype == table[name].dtype, name
        assert isinstance(back["category"].dtype, pd.CategoricalDtype)
        assert back.notna().all().all()


def test_all_components_give_the_table_back() -> None:
    table = many_types()
    famd = full_rank(table)
    back = famd.inverse_transform(famd.transform(table))
    for name in ("int", "small int", "bool", "text", "nullable int", "nullable bool", "nullable text"):
        assert (back[name] == table[name]).all(), name
    assert (back["category"].astype(str) == table["category"].astype(str)).all()
    for name in ("float", "float32"):
        np.testing.assert_allclose(back[name], table[name], rtol=1e-5, atol=1e-9)
    for name in ("date", "zoned", "duration"):
        assert (back[name] - table[name]).abs().max() < pd.Timedelta("1ms"), name


@pytest.mark.parametrize("kind", ["text", "category", "nullable bool", "nullable text"])
def test_missing_category_is_one_of_its_own_and_comes_back_missing(kind: str) -> None:
    table = many_types()[["float", kind]].copy()
    table.loc[10:40, kind] = None
    famd = full_rank(table)
    back = famd.inverse_transform(famd.transform(table))
    assert back[kind].isna().tolist() == table[kind].isna().tolist()
    known = table[kind].notna()
    assert (back[kind][known].astype(str) == table[kind][known].astype(str)).all()
    assert isinstance(back[kind].dtype, type(table[kind].dtype))


@pytest.mark.parametrize("name", ["float", "nullable int", "date", "zoned", "duration"])
def test_missing_number_comes_back_as_the_median(name: str) -> None:
    table = many_types()[[name, "int"]].copy()
    table.loc[5, name] = None
    famd = full_rank(table)
    back = famd.inverse_transform(famd.transform(table))
    assert back[name].dtype == table[name].dtype
    distance = abs(back[name][5] - table[name].median())
    assert distance < (pd.Timedelta("1s") if name in ("date", "zoned", "duration") else 1)


def test_whole_numbers_stay_within_their_type() -> None:
    table = pd.DataFrame({"tiny": np.array([0, 255] * 20, "uint8"), "x": np.arange(40.0) ** 2})
    famd = FAMD(2).fit(table)
    back = famd.inverse_transform(famd.transform(table) * 1_000)
    assert back["tiny"].dtype == np.uint8
    assert set(back["tiny"]) == {0, 255}


def test_one_component_gives_the_category_with_the_largest_indicator() -> None:
    table = pd.DataFrame({"x": [0.0, 0.0, 0.0, 9.0, 9.0], "s": ["a", "a", "a", "b", "b"]})
    famd = FAMD(1).fit(table)
    assert famd.inverse_transform(famd.transform(table))["s"].tolist() == ["a", "a", "a", "b", "b"]
    assert famd.inverse_transform([[0.0]])["s"].tolist() == ["a"]  # the commonest one, at the centre


# What cannot be cut --------------------------------------------------------------------------------------------


def remedy_of(table: pd.DataFrame, ncp: Any) -> int:
    with pytest.raises(InputError) as caught:
        FAMD(ncp).fit(table)
    return int(re.fullmatch(r"use ncp=(\d+)", caught.value.remedy)[1])


def test_ncp_above_the_rank_is_refused_naming_one_that_works() -> None:
    table = mixed()[NUMBERS]
    table["twice"] = 2 * table["age"] + 1
    assert remedy_of(table, 4) == 3
    FAMD(3).fit(table)


def factorial() -> pd.DataFrame:
    a, b, c = np.meshgrid([0, 1], [0, 1], [0, 1])
    return pd.DataFrame({"a": a.ravel(), "b": b.ravel(), "c": c.ravel()}).astype(str).replace({"0": "n", "1": "y"})


@pytest.mark.parametrize("ncp", [1, 2])
def test_cut_between_equal_eigenvalues_is_refused_naming_one_that_works(ncp: int) -> None:
    table = factorial()
    assert remedy_of(table, ncp) == 3
    assert FAMD(3).fit(table).n_components == 3


def test_nearest_possible_ncp_is_named() -> None:
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 4)).reshape(4, -1)
    table = pd.DataFrame(signs.T, columns=list("abcd"))
    table["x"] = table["a"] + table["a"] * table["b"] * table["c"]
    # x goes with a and with nothing else: eigenvalues 1 + r, 1, 1, 1, 1 - r.
    for ncp, named in ((2, 1), (3, 4), (6, 5)):
        assert remedy_of(table, ncp) == named
        FAMD(named).fit(table)


@pytest.mark.parametrize(
    "ncp", [0, -1, 2.5, True, False, np.bool_(True), None, "", "two", "2.5", float("nan"), float("inf"), 10**400]
)
def test_ncp_that_is_no_whole_number_from_one_on_is_refused(ncp: Any) -> None:
    with pytest.raises(InputError):
        checked_ncp(ncp)
    with pytest.raises(InputError):
        FAMD(ncp).fit(mixed())


@pytest.mark.parametrize("ncp", [3, 3.0, "3", np.int32(3), np.float32(3)])
def test_ncp_may_be_any_whole_number(ncp: Any) -> None:
    assert checked_ncp(ncp) == 3
    assert type(checked_ncp(ncp)) is int


def test_fractions_of_other_number_types_are_not_rounded_to_an_ncp() -> None:
    with pytest.raises(InputError):
        checked_ncp(np.float32(2.5))


# Tables with little in them ------------------------------------------------------------------------------------


def test_constant_columns_change_nothing() -> None:
    table = mixed()
    more = table.assign(one=1.1, same="s", also=True)
    assert FAMD(3).fit(more).total_variance_ == pytest.approx(FAMD(3).fit(table).total_variance_)
    ours, theirs = FAMD(3).fit_transform(more), FAMD(3).fit_transform(table)
    np.testing.assert_allclose(ours, theirs, atol=1e-9)
    back = FAMD(3).fit(more).inverse_transform(ours)
    assert (back["one"] == 1.1).all()
    assert (back["same"] == "s").all()


def test_constant_column_of_the_originals_does_not_move_avatars_that_differ_in_it() -> None:
    table = pd.DataFrame({"one": [0.1] * 30, "x": np.arange(30.0)})
    famd = FAMD(1).fit(table)
    assert famd.transform(table.assign(one=7.0)).tobytes() == famd.transform(table).tobytes()


def test_constant_table_stands_in_one_place() -> None:
    table = pd.DataFrame({"x": [0.1] * 12, "s": ["a"] * 12})
    famd = FAMD(2).fit(table)
    assert not famd.transform(table).any()
    assert famd.total_variance_ == 0
    assert FAMD.from_json(famd.to_json()).transform(table).tobytes() == famd.transform(table).tobytes()
    pd.testing.assert_frame_equal(famd.inverse_transform(famd.transform(table)), table)


def test_unused_level_of_a_category_changes_nothing() -> None:
    table = mixed()
    unused = table.assign(arm=pd.Categorical(table["arm"], categories=["zzz", "old", "new", "none", "aaa"]))
    ours = FAMD(3).fit_transform(unused)
    assert np.isfinite(ours).all()
    assert ours.tobytes() == FAMD(3).fit_transform(table).tobytes()


@pytest.mark.parametrize("values", [[1e300, 2.0, 3.0], [1e-200, 2e-200, 3e-200], [1.7e308, 1.7e308, -1.7e308]])
def test_numbers_whose_spread_no_float_holds_are_refused(values: list[float]) -> None:
    with pytest.raises(InputError) as caught:
        FAMD(1).fit(pd.DataFrame({"x": [1.0, 2.0, 4.0], "odd": values}))
    assert caught.value.column == "odd"


def test_one_row_has_no_variance() -> None:
    assert FAMD(1).fit_transform(pd.DataFrame({"x": [3.0]})).tolist() == [[0.0]]


# scikit-learn, and names ---------------------------------------------------------------------------------------


def test_parameters_can_be_read_and_the_estimator_cloned() -> None:
    famd = FAMD(3, categorical=["site"]).fit(mixed())
    assert famd.get_params() == {"n_components": 3, "categorical": ["site"]}
    copy = clone(famd)
    assert copy.get_params() == famd.get_params()
    assert not hasattr(copy, "components_")
    assert copy.set_params(n_components=2).fit_transform(mixed()).shape == (200, 2)
    assert famd.get_feature_names_out().tolist() == ["famd0", "famd1", "famd2"]


def test_nothing_is_projected_before_the_fit() -> None:
    from sklearn.exceptions import NotFittedError

    for call in (lambda: FAMD().transform(mixed()), lambda: FAMD().inverse_transform([[0.0]]), FAMD().to_json):
        with pytest.raises(NotFittedError):
            call()


def test_integer_and_odd_column_names_are_only_names() -> None:
    table = mixed()
    names = [0, 1.5, "", "n_components", 'a"b\nc', "日本"]
    renamed = table.set_axis(names, axis="columns")
    famd = FAMD(3).fit(renamed)
    assert famd.transform(renamed).tobytes() == FAMD(3).fit_transform(table).tobytes()
    assert list(famd.inverse_transform(famd.transform(renamed)).columns) == [str(name) for name in names]
    assert list(famd.feature_names_in_) == [str(name) for name in names]


def test_declared_categories_are_categories_whatever_their_type() -> None:
    table = pd.DataFrame({"x": np.arange(40.0) ** 1.5, "code": [1, 2, 30, 2] * 10})
    as_text = table.assign(code=table["code"].map({1: "a", 2: "b", 30: "c"}))
    declared = FAMD(2, categorical=["code"]).fit_transform(table)
    np.testing.assert_allclose(declared, FAMD(2).fit_transform(as_text), atol=1e-12)
    back = FAMD(3, categorical=["code"]).fit(table)
    assert back.inverse_transform(back.transform(table))["code"].tolist() == table["code"].tolist()


# Whose projection is it ----------------------------------------------------------------------------------------


def dated(n: int = 200) -> pd.DataFrame:
    table = mixed(n)
    # Far from zero, and little spread: mean 1.7e9, standard deviation some hundred.
    table["when"] = 1.7e9 + 300 * np.random.default_rng(5).normal(size=n)
    table["visits"] = np.random.default_rng(6).poisson(9, n)
    table["same"] = 7.5
    return table


def of(content: dict[str, Any]) -> FAMD:
    return FAMD.from_json(json.dumps(content))


def refused(projection: FAMD, fitted: FAMD) -> InputError:
    with pytest.raises(InputError) as caught:
        check_same_space(projection, fitted)
    assert "projection of the avatarisation" in caught.value.remedy
    return caught.value


def test_projection_of_another_table_is_refused() -> None:
    fitted = FAMD(2).fit(mixed())
    assert "another table" in str(refused(FAMD(2).fit(mixed(seed=9)), fitted))
    assert "other columns" in str(refused(FAMD(2).fit(mixed().drop(columns="dose")), fitted))


def test_projection_of_the_same_rows_in_another_order_is_the_same() -> None:
    for table in (dated(), with_gaps(dated()), dated(5_000)):
        check_same_space(FAMD(4).fit(table.sample(frac=1, random_state=3)), FAMD(4).fit(table))


@pytest.mark.parametrize("name", ["when", "age", "dose", "same"])
@pytest.mark.parametrize(
    "edit",
    [
        lambda mean, deviation: [mean, 1e-9],
        lambda mean, deviation: [mean, deviation * 1.001 + 1e-9],
        lambda mean, deviation: [mean + (0.001 * deviation or 0.001), deviation],
    ],
    ids=["deviation near 0", "deviation", "mean"],
)
def test_edited_mean_or_deviation_is_refused(name: str, edit: Any) -> None:
    table = dated()
    fitted = FAMD(3).fit(table)
    content = json.loads(fitted.to_json())
    place = list(table).index(name)
    content["shares"][place] = edit(*content["shares"][place])
    assert refused(of(content), fitted).column == name


def test_edited_share_of_a_rare_level_is_refused() -> None:
    table = pd.DataFrame({"x": np.arange(4_000.0) ** 1.5, "s": ["common"] * 3_999 + ["rare"]})
    fitted = FAMD(2).fit(table)
    content = json.loads(fitted.to_json())
    content["shares"][1][1] /= 1.001
    assert refused(of(content), fitted).column == "s"


@pytest.mark.parametrize(("name", "fill"), [("when", 1.7e9 + 500), ("age", 55.0), ("same", 7.6), ("site", 3.0)])
def test_edited_fill_is_refused(name: str, fill: float) -> None:
    table = dated()
    fitted = FAMD(3).fit(table)
    content = json.loads(fitted.to_json())
    content["columns"][list(table).index(name)]["fill"] = fill
    assert refused(of(content), fitted).column == name


def test_whole_is_compared_where_the_type_is_the_same() -> None:
    table = dated()
    fitted = FAMD(3).fit(table)
    content = json.loads(fitted.to_json())
    content["columns"][list(table).index("visits")]["whole"] = False
    assert refused(of(content), fitted).column == "visits"
    # Fitted in Python on whole numbers with a gap, measured from a file, where they are floats.
    gaps = table.assign(visits=table["visits"].astype("Int64").mask(table.index == 3))
    read = gaps.assign(visits=gaps["visits"].astype("float64"))
    check_same_space(FAMD(3).fit(gaps), FAMD(3).fit(read))


def components_of(famd: FAMD, places: list[int], *, variances: bool = True) -> FAMD:
    """Write only these components of a projection into the file, in this order."""
    content = json.loads(famd.to_json())
    content["components"] = [content["components"][place] for place in places]
    if variances:
        content["eigenvalues"] = [content["eigenvalues"][place] for place in places]
    else:
        content["eigenvalues"] = content["eigenvalues"][: len(places)]
    return of({**content, "n_components": len(places)})


@pytest.mark.parametrize("variances", [True, False], ids=["with their variances", "with the first variances"])
@pytest.mark.parametrize("places", [[1, 0, 2], [2, 1, 0], [4, 5, 6], [0, 1, 3], [0, 2, 3]])
def test_other_components_than_the_first_in_order_are_refused(places: list[int], variances: bool) -> None:
    table = dated()
    wide, fitted = FAMD(7).fit(table), FAMD(3).fit(table)
    assert "not the principal space" in str(refused(components_of(wide, places, variances=variances), fitted))


def test_edited_variances_are_refused() -> None:
    fitted = FAMD(3).fit(mixed())
    content = json.loads(fitted.to_json())
    for entries in ({"total_variance": 2 * content["total_variance"]}, {"eigenvalues": [3.0, 2.0, 1.0]}):
        assert "not the principal space" in str(refused(of({**content, **entries}), fitted))


def test_random_directions_are_refused() -> None:
    fitted = FAMD(2).fit(mixed())
    content = json.loads(fitted.to_json())
    width = len(content["components"][0])
    directions, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(width, 2)))
    for components in (np.eye(width)[:2], directions.T):
        altered = of({**content, "components": components.tolist()})
        assert "not the principal space" in str(refused(altered, fitted))


def test_more_or_fewer_components_and_other_signs_are_the_same_space() -> None:
    table = dated()
    wide, narrow = FAMD(7).fit(table), FAMD(3).fit(table)
    check_same_space(wide, narrow)
    check_same_space(narrow, wide)
    content = json.loads(narrow.to_json())
    content["components"] = (-np.array(content["components"])).tolist()
    check_same_space(of(content), wide)


def test_directions_of_equal_eigenvalues_may_be_turned_among_themselves_only() -> None:
    fitted = FAMD(3).fit(factorial())
    content = json.loads(fitted.to_json())
    turn, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))
    check_same_space(of({**content, "components": (turn @ fitted.components_).tolist()}), fitted)
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 4)).reshape(4, -1)
    table = pd.DataFrame(signs.T, columns=list("abcd"))
    table["x"] = table["a"] + table["a"] * table["b"] * table["c"]
    # One eigenvalue apart, then three equal ones.
    fitted = FAMD(4).fit(table)
    content = json.loads(fitted.to_json())
    equal = np.eye(4)
    equal[1:, 1:] = turn
    check_same_space(of({**content, "components": (equal @ fitted.components_).tolist()}), fitted)
    apart = fitted.components_[[1, 0, 2, 3]].tolist()
    assert "not the principal space" in str(refused(of({**content, "components": apart}), fitted))


def test_without_variance_there_is_one_space_only() -> None:
    fitted = FAMD(2).fit(pd.DataFrame({"x": [0.1] * 12, "s": ["a"] * 12}))
    content = json.loads(fitted.to_json())
    check_same_space(of(content), fitted)
    check_same_space(of({**content, "components": np.zeros((2, 2)).tolist()}), fitted)


# Numbers at the end of the floats --------------------------------------------------------------------------------


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("far", [1e308, -1.7e308, [1.7e308, -1.7e308, 1e308]])
def test_avatars_beyond_the_floats_are_projected_without_a_noise_and_refused_when_counted(far: Any) -> None:
    table = mixed()
    table[["weight", "dose"]] *= 1e-6
    famd = FAMD(3).fit(table)
    avatars = table.copy()
    avatars.loc[7, NUMBERS] = far
    coordinates = famd.transform(avatars)
    with pytest.raises(InputError, match="1 avatars have a coordinate"):
        count_closer_avatars(famd.transform(table), coordinates)
