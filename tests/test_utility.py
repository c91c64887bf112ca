"""How far avatars moved: formulas, against numpy and pandas, and what must not matter."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_cloaking import InputError, avatarise
from local_cloaking.utility import Shift, shift


def table(n: int = 200, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    frame["b"] += frame["a"]
    frame["arm"] = np.where(frame["c"] + rng.normal(size=n) > 0, "x", rng.choice(["y", "z"], n))
    return frame


def test_numbers_by_the_formula() -> None:
    x, y = table(seed=1)[["a", "b", "c"]], table(150, seed=2)[["a", "b", "c"]] * 0.5 + 1
    moved = shift(x, y)
    deviation = x.std(ddof=0)
    assert moved.means == pytest.approx(((y.mean() - x.mean()).abs() / deviation).mean())
    assert moved.spreads == pytest.approx((y.std(ddof=0) / deviation - 1).abs().mean())
    pairs = [abs(y.corr().loc[one, other] - x.corr().loc[one, other]) for one, other in combinations("abc", 2)]
    assert moved.correlations == pytest.approx(np.mean(pairs))
    assert moved.overall == pytest.approx((moved.means + moved.spreads + moved.correlations) / 3)


def test_categories_by_the_formula() -> None:
    x, y = table(seed=1)[["a", "arm"]], table(seed=2)[["a", "arm"]]
    moved = shift(x, y)
    p, q = (t["arm"].value_counts(normalize=True).reindex(list("xyz")).to_numpy() for t in (x, y))
    spreads = [np.sqrt(1 - (shares**2).sum()) for shares in (p, q)]
    means = [abs(y["a"].mean() - x["a"].mean()) / x["a"].std(ddof=0), np.linalg.norm(q - p) / spreads[0]]
    assert moved.means == pytest.approx(np.mean(means))
    ratios = [y["a"].std(ddof=0) / x["a"].std(ddof=0), spreads[1] / spreads[0]]
    assert moved.spreads == pytest.approx(np.mean(np.abs(np.array(ratios) - 1)))
    levels = [
        abs(y["a"].corr((y["arm"] == level).astype(float)) - x["a"].corr((x["arm"] == level).astype(float)))
        for level in "xyz"
    ]
    assert moved.correlations == pytest.approx(np.mean(levels))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.floats(0.1, 0.9))
def test_zeros_and_ones_give_the_same_as_numbers_and_as_categories(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    x, y = (table(80, seed + i).assign(flag=(rng.random(80) < share).astype(int)) for i in (0, 1))
    x.loc[0, "flag"], x.loc[1, "flag"] = 0, 1
    numbers, categories = shift(x, y), shift(x, y, categorical=["flag"])
    for part in ("means", "spreads", "correlations"):
        assert getattr(numbers, part) == pytest.approx(getattr(categories, part), abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.floats(0.01, 1000), st.floats(-1000, 1000))
def test_units_and_order_do_not_matter(seed: int, scale: float, offset: float) -> None:
    x, y = table(60, seed), table(60, seed + 1)
    moved = shift(x, y)
    other = shift(
        x.assign(a=x["a"] * scale + offset).sample(frac=1, random_state=1),
        y.assign(a=y["a"] * scale + offset)[["arm", "c", "b", "a"]].sample(frac=1, random_state=2),
    )
    assert other == Shift(
        *(pytest.approx(getattr(moved, part), abs=1e-9) for part in ("means", "spreads", "correlations"))
    )


def test_nothing_moved_is_zero_and_a_larger_k_moves_more() -> None:
    x = table()
    assert shift(x, x.sample(frac=1, random_state=0)).overall == pytest.approx(0, abs=1e-12)
    near, far = (shift(x, avatarise(x, k=k, ncp=3, seed=1)).overall for k in (3, 150))
    assert 0 < near < far


def test_what_does_not_vary() -> None:
    x = pd.DataFrame({"a": [1.0, 2.0, 3.0], "same": [5.0] * 3})
    assert shift(x, x) == Shift(0.0, 0.0, 0.0)
    moved = shift(x, x.assign(same=[5.0, 5.0, 6.0]))
    assert (moved.means, moved.spreads) == (0.5, 0.5)
    collapsed = shift(x[["a"]], pd.DataFrame({"a": [2.0] * 3}))
    assert collapsed == Shift(means=0.0, spreads=1.0, correlations=0.0)


def test_missing_cells_are_filled_as_the_measure_does() -> None:
    x = pd.DataFrame({"a": [1.0, 2.0, 9.0, None], "arm": ["u", "v", None, "u"]})
    y = pd.DataFrame({"a": [1.0, 2.0, 9.0, 2.0], "arm": ["u", "v", None, "u"]})
    assert shift(x, y).overall == 0


def test_other_columns_are_refused() -> None:
    with pytest.raises(InputError):
        shift(table(), table().drop(columns="a"))
