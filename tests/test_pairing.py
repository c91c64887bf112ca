"""Who belongs to whom, and whether the pairs look as if they were shuffled."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_cloaking.errors import InputError
from local_cloaking.neighbours import count_closer_avatars
from local_cloaking.pairing import (
    PairingEvidence,
    association,
    own_by_key,
    own_by_order,
    own_by_pairing,
    pairing_evidence,
)

#: pandas takes a NUL for the end of a text: keys that differ only beyond one are refused as repeated.
TEXT = st.text(max_size=5).filter(lambda text: "\0" not in text)


@settings(max_examples=60, deadline=None)
@given(keys=st.lists(TEXT, min_size=1, max_size=20, unique=True), seed=st.integers(0, 99))
def test_each_original_finds_the_row_with_its_key(keys: list[str], seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(keys))
    originals = pd.Series(keys, dtype=object)
    avatars = originals.iloc[order].reset_index(drop=True)
    own = own_by_key(originals, avatars, "id")
    assert own.dtype == np.int64
    assert avatars.iloc[own].tolist() == keys


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pd.Series([7, 8]), pd.Series([8.0, 7.0])),
        (pd.Series([7, 8]), pd.Series(["8", "7"], dtype=object)),
        (pd.Series([7, 8]), pd.Series([8, 7], dtype="Int64")),
        (pd.Series(["a", "b"], dtype=object), pd.Series(["b", "a"], dtype="category")),
        (pd.Series([2**60, 2**60 + 1]), pd.Series([2**60 + 1, 2**60])),
    ],
    ids=["float", "text", "nullable", "category", "large"],
)
def test_keys_of_other_types_are_compared_by_what_they_say(one: pd.Series, other: pd.Series) -> None:
    assert own_by_key(one, other, "id").tolist() == [1, 0]


def test_leading_zeros_make_another_key() -> None:
    with pytest.raises(InputError, match="1 keys of the originals are not in the avatars") as caught:
        own_by_key(pd.Series(["01", "2"], dtype=object), pd.Series(["1", "2"], dtype=object), "id")
    assert "leading zeros" in caught.value.remedy
    assert caught.value.rows == 2


@pytest.mark.parametrize(
    ("originals", "avatars", "rows", "text"),
    [
        (["a", "a", "b"], ["a", "b", "c"], 2, "of the originals share their key"),
        (["a", "b", "c"], ["a", "a", "a"], 3, "of the avatars share their key"),
        (["a", None, "c"], ["a", "b", "c"], 1, "of the originals have no key"),
        (["a", "b"], [None, None], 2, "of the avatars have no key"),
        (["a", "b"], ["a"], 1, "1 keys of the originals are not in the avatars"),
        (["a"], ["a", "b"], 1, "1 of the avatars are not in the originals"),
        (["a", "b"], ["c", "d"], 4, "2 keys of the originals are not in the avatars"),
    ],
)
def test_key_that_does_not_pair_is_refused(originals: Any, avatars: Any, rows: int, text: str) -> None:
    with pytest.raises(InputError, match=text) as caught:
        own_by_key(pd.Series(originals, dtype=object), pd.Series(avatars, dtype=object), "id")
    assert (caught.value.rows, caught.value.column) == (rows, "id")
    assert caught.value.remedy


def test_no_key_stands_in_a_message() -> None:
    with pytest.raises(InputError) as caught:
        own_by_key(pd.Series(["Jane Roe"], dtype=object), pd.Series(["John Doe"], dtype=object), "id")
    assert "Jane" not in str(caught.value)
    assert "John" not in str(caught.value)


def test_numbers_with_decimals_pair_too() -> None:
    one = pd.Series([Decimal("1.5"), Decimal("2")], dtype=object)
    assert own_by_key(one, pd.Series([2.0, 1.5]), "id").tolist() == [1, 0]


def test_order_pairs_tables_of_one_length_only() -> None:
    table = pd.DataFrame({"a": [1, 2, 3]})
    assert own_by_order(table, table).tolist() == [0, 1, 2]
    with pytest.raises(InputError) as caught:
        own_by_order(table, table.iloc[:1])
    assert caught.value.rows == 2


@pytest.mark.parametrize("seed", range(5))
def test_pairing_table_leads_from_each_original_to_its_avatar(seed: int) -> None:
    rng = np.random.default_rng(seed)
    patients, names = pd.Series(rng.permutation(30)), pd.Series([f"a{i}" for i in rng.permutation(30)])
    partner = {p: f"a{(7 * p + 3) % 30}" for p in range(30)}
    pairing = pd.DataFrame(list(partner.items()), columns=["p", "a"]).sample(frac=1, random_state=seed)
    own = own_by_pairing(patients, names, pairing, ("p", "a"))
    assert names.iloc[own].tolist() == [partner[p] for p in patients]


@pytest.mark.parametrize(
    "pairs",
    [
        [(1, "x")],
        [(1, "x"), (2, "x")],
        [(1, "x"), (1, "y")],
        [(1, "x"), (2, "z")],
        [(1, "x"), (3, "y")],
        [(1, "x"), (2, "y"), (3, "z")],
        [(1, "x"), (2, None)],
    ],
)
def test_pairing_table_that_does_not_name_each_exactly_once_is_refused(pairs: list[tuple[Any, Any]]) -> None:
    pairing = pd.DataFrame(pairs, columns=["p", "a"])
    with pytest.raises(InputError):
        own_by_pairing(pd.Series([1, 2]), pd.Series(["x", "y"]), pairing, ("p", "a"))


# Evidence ------------------------------------------------------------------------------------------------------


def evidence_of(x: np.ndarray, y: np.ndarray) -> PairingEvidence:
    return pairing_evidence(association(x, y), count_closer_avatars(x, y).strictly_closer, len(x))


def test_association_is_the_deviation_from_a_random_pairing() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3)) + 5
    y = x + rng.normal(size=x.shape) - 9
    centred = x - x.mean(axis=0), y - y.mean(axis=0)
    sums = [float((centred[0] * centred[1][rng.permutation(40)]).sum()) for _ in range(20_000)]
    assert np.mean(sums) == pytest.approx(0, abs=0.05 * np.std(sums))
    expected = float((centred[0] * centred[1]).sum()) / np.std(sums)
    assert evidence_of(x, y).association == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("n", [50, 300])
def test_full_shuffle_is_never_taken_for_pairs(n: int) -> None:
    rng = np.random.default_rng(n)
    for _ in range(150):
        x = rng.normal(size=(n, 3))
        y = x + rng.normal(scale=0.3, size=x.shape)
        evidence = evidence_of(x, y[rng.permutation(n)])
        assert "look shuffled" in evidence.reason
        assert evidence.warning is None


@pytest.mark.parametrize("share", [0.4, 0.5])
def test_shuffle_of_a_large_part_is_refused(share: float) -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        x = rng.normal(size=(1_000, 3))
        y = x + rng.normal(scale=0.3, size=x.shape)
        part = rng.permutation(1_000)[: int(share * 1_000)]
        y[part] = y[rng.permutation(part)]
        assert evidence_of(x, y).reason is not None


def test_shuffle_of_a_fifth_is_warned_of() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1_000, 3))
    y = x + rng.normal(scale=0.3, size=x.shape)
    part = np.arange(200)
    y[part] = y[rng.permutation(part)]
    evidence = evidence_of(x, y)
    assert evidence.reason is None
    assert "part of the table may be shuffled" in evidence.warning


def test_honest_pairs_give_no_reason_and_no_warning() -> None:
    rng = np.random.default_rng(2)
    for n in (75, 400):
        x = rng.normal(size=(n, 3))
        evidence = evidence_of(x, x + rng.normal(scale=0.4, size=x.shape))
        assert (evidence.reason, evidence.warning) == (None, None)


@pytest.mark.parametrize(
    ("entries", "sign"),
    [
        ((3.99, 0.0, 0.0), "z = 3.99"),
        ((9.0, 0.151, 0.0), "15% of the avatars are farther"),
        ((9.0, 0.0, 0.251), "in the median 25%"),
    ],
)
def test_each_sign_alone_is_a_reason(entries: tuple[float, float, float], sign: str) -> None:
    reason = PairingEvidence(*entries, n=100).reason
    assert sign in reason
    assert "100 individuals are too few" in reason


def test_the_bounds_themselves_are_allowed() -> None:
    evidence = PairingEvidence(4.0, 0.15, 0.25, 100)
    assert evidence.reason is None
    assert evidence.warning is not None
    assert PairingEvidence(4.0, 0.05, 0.25, 100).warning is None


@pytest.mark.parametrize("value", [0.0, 0.1, 1e5 + 0.1])
def test_table_in_one_place_has_no_association(value: float) -> None:
    rng = np.random.default_rng(0)
    x, same = rng.normal(size=(31, 2)), np.full((31, 2), value)
    for one, other in ((x, same), (same, x), (same, same)):
        evidence = evidence_of(one, other)
        assert evidence.association is None
        assert "nothing can be told apart" in evidence.reason


def test_one_individual_and_none_have_no_association() -> None:
    for n in (0, 1):
        evidence = pairing_evidence(association(np.ones((n, 2)), np.ones((n, 2))), np.zeros(n, np.int64), n)
        assert (evidence.association, evidence.far_share, evidence.median_share) == (None, 0.0, 0.0)
        assert evidence.reason is not None


@pytest.mark.parametrize("scale", [1e-160, 1e-30, 1e75, 1e90, 1e140])
def test_association_does_not_depend_on_the_unit(scale: float) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, 3))
    y = x[rng.permutation(300)]
    assert association(x * scale, y * scale) == pytest.approx(association(x, y))
    assert association(x * scale, y) == pytest.approx(association(x, y))


def test_an_association_that_is_no_number_is_no_sign_of_pairs() -> None:
    evidence = PairingEvidence(float("nan"), 0.0, 0.0, 100)
    assert evidence.reason is not None
    assert evidence.is_hopeless
