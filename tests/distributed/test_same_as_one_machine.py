"""On the cluster as on one machine: the same counts, the same entries of the record, the same refusals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from local_cloaking import FAMD, InputError
from local_cloaking.measuring import Inputs, measure_files
from tests.partitioned import Both, measured_both, mixed, noisy, write_both, write_parts

#: What differs: where the tables lie, and when they were measured.
APART = {"inputs", "avatars_sha256", "measured_at", "duration_seconds"}

Tables = tuple[pd.DataFrame, pd.DataFrame]


def assert_alike(one: Any, other: Any) -> None:
    if isinstance(one, float) and isinstance(other, float):
        assert other == pytest.approx(one, rel=1e-9, abs=1e-12, nan_ok=True)
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            assert_alike(one[name], other[name])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for mine, yours in zip(one, other, strict=True):
            assert_alike(mine, yours)
    else:
        assert one == other


def honest() -> Tables:
    originals = mixed()
    return originals, noisy(originals)


def with_key() -> Tables:
    originals, avatars = honest()
    keys = [f"{i:04d}" for i in range(len(originals))]
    order = np.random.default_rng(3).permutation(len(originals))
    return originals.assign(id=keys), avatars.assign(id=keys).iloc[order].reset_index(drop=True)


def with_number_keys() -> Tables:
    """Whole numbers in one table, the same as decimal numbers in the other."""
    originals, avatars = with_key()
    return originals.assign(id=originals["id"].astype(int)), avatars.assign(id=avatars["id"].astype(float))


def discrete() -> Tables:
    """Few different rows, many ties."""
    rng = np.random.default_rng(4)
    levels = {"a": 2, "b": 2, "c": 3, "d": 5}
    originals = pd.DataFrame({name: rng.integers(0, count, 500) for name, count in levels.items()})
    avatars = originals.copy()
    for name in avatars:
        moved = rng.random(500) < 0.2
        avatars.loc[moved, name] = rng.permutation(avatars[name])[moved]
    return originals.astype({"d": str}), avatars.astype({"d": str})


def shuffled() -> Tables:
    originals, avatars = honest()
    return originals, avatars.sample(frac=1, random_state=1).reset_index(drop=True)


def partly_shuffled() -> Tables:
    originals, avatars = honest()
    part = avatars.iloc[:60].sample(frac=1, random_state=1)
    return originals, pd.concat([part, avatars.iloc[60:]], ignore_index=True)


def copies() -> Tables:
    originals = mixed()
    return originals, originals.copy()


def copies_with_noise() -> Tables:
    originals, _ = honest()
    numbers = originals[["a", "c"]]
    return numbers, numbers + np.random.default_rng(5).normal(size=numbers.shape) * 0.001


def other_peoples_rows() -> Tables:
    originals = mixed().dropna()
    return originals, originals.iloc[[*range(1, len(originals)), 0]].reset_index(drop=True)


def missing_excess() -> Tables:
    originals, avatars = honest()
    avatars.loc[avatars.index[:40], "c"] = np.nan
    return originals, avatars


def carried_over() -> Tables:
    originals, avatars = honest()
    return originals, avatars.assign(size=originals["size"], born=originals["born"])


def carried_over_in_single_precision() -> Tables:
    originals, avatars = honest()
    originals["c"] += 1_000 * originals["c"].std()
    return originals, avatars.assign(c=originals["c"].astype("float32").astype("float64"), arm=originals["arm"])


def collapsed() -> Tables:
    originals, avatars = honest()
    return originals, avatars.assign(
        a=0.0, b=0.0, c=0.0, size=170, arm="low", smokes=False, born=originals["born"][0]
    )


def sorted_apart() -> Tables:
    originals, avatars = honest()
    return tuple(frame.sort_values("a", ignore_index=True) for frame in (originals, avatars))  # type: ignore[return-value]


def constant() -> Tables:
    originals, avatars = honest()
    return originals.assign(same=1.0), avatars.assign(same=1.0).replace({"same": {1.0: 2.0}})


def numbered() -> Tables:
    """Whole numbers that name the rows, or might."""
    originals, avatars = honest()
    n = len(originals)
    numbers = {"row": np.arange(n), "number": np.arange(n) * 7 % 3001}
    return originals.assign(**numbers), avatars.assign(**numbers)


def gaps_in_one_partition() -> Tables:
    """Types that hold no gap come out as others where another partition has one; and levels that nobody has."""
    types = {"size": "Int64", "smokes": "boolean", "arm": pd.CategoricalDtype(["low", "high", "none", "placebo"])}
    originals, avatars = (frame.assign(size=frame["size"] // 10).astype(types) for frame in honest())
    originals.loc[originals.index[-9:], ["size", "smokes", "born"]] = pd.NA
    avatars.loc[avatars.index[-5:], ["size", "smokes", "a"]] = pd.NA
    return originals, avatars


def alike() -> Tables:
    same = pd.DataFrame({"age": [50.0] * 30, "arm": ["a"] * 30})
    return same, same


CASES = [
    (honest, {}),
    (honest, {"ncp": 2, "categorical": ["smokes"], "drop": ["a"], "k": 7, "data_set": "trial"}),
    (with_key, {"key": "id"}),
    (with_number_keys, {"key": "id"}),
    (discrete, {"ncp": 3}),
    (shuffled, {}),
    (partly_shuffled, {}),
    (copies, {}),
    (copies_with_noise, {"ncp": 2}),
    (other_peoples_rows, {}),
    (missing_excess, {}),
    (carried_over, {}),
    (carried_over_in_single_precision, {}),
    (collapsed, {}),
    (sorted_apart, {}),
    (constant, {}),
    (numbered, {}),
    (gaps_in_one_partition, {}),
    (gaps_in_one_partition, {"categorical": ["size"], "ncp": 3}),
    (alike, {"ncp": 1}),
]
#: Those that cross the wire in all the ways there are.
ON_A_CLUSTER = (honest, with_key, discrete, carried_over, numbered, gaps_in_one_partition)


def named(value: Any) -> str:
    return value.__name__ if callable(value) else ""


@pytest.mark.parametrize(("make", "options"), CASES, ids=named)
def test_counts_and_record_are_the_same(make: Callable[[], Tables], options: dict[str, Any], at_once, tmp_path):
    assert_measured_alike(write_both(*make(), tmp_path), at_once, **options)


@pytest.mark.parametrize(("make", "options"), [case for case in CASES if case[0] in ON_A_CLUSTER], ids=named)
def test_on_a_real_cluster_too(make: Callable[[], Tables], options: dict[str, Any], cluster, tmp_path):
    assert_measured_alike(write_both(*make(), tmp_path), cluster.address, **options)


@pytest.mark.parametrize("cuts", [[], [1], [299], list(range(1, 40)), [100, 200]], ids=len)
def test_any_number_of_partitions_will_do(cuts, at_once, tmp_path):
    originals, avatars = honest()
    both = write_both(originals, avatars, tmp_path)
    both.folders = Inputs(
        write_parts(originals, tmp_path / "o", cuts), write_parts(avatars, tmp_path / "a", [150])
    )
    assert_measured_alike(both, at_once)


def assert_measured_alike(both: Both, scheduler: str, **options: Any) -> None:
    here, there = measured_both(both, scheduler, **options)
    pairs = [np.lexsort((m.result.strict_counts, m.result.counts)) for m in (here, there)]
    for name in ("counts", "strict_counts"):
        one, other = (getattr(m.result, name)[order] for m, order in zip((here, there), pairs, strict=True))
        assert np.array_equal(one, other)
    for name in here.entries.keys() - APART:
        assert_alike({name: here.entries[name]}, {name: there.entries[name]})
    assert here.entries.keys() == there.entries.keys()


def test_the_doctored_tables_do_what_they_are_named_for():
    """Without this, the comparison above might compare nothing."""
    from local_cloaking import local_cloaking

    result = {make.__name__: local_cloaking(*make()) for make in (shuffled, copies, missing_excess, constant)}
    assert "look shuffled" in str(result["shuffled"].reason)
    assert "copies of their own" in str(result["copies"].reason)
    assert "is missing in" in str(result["missing_excess"].reason)
    assert "no weight" in str(result["constant"].reason)
    warned = {
        make.__name__: " ".join(local_cloaking(*make()).warnings)
        for make in (other_peoples_rows, collapsed, sorted_apart, numbered)
    }
    assert "real people's rows" in warned["other_peoples_rows"]
    assert local_cloaking(*carried_over()).findings.carried_over is not None
    assert "c" in local_cloaking(*carried_over_in_single_precision()).findings.carried_over.columns
    assert "of little use" in warned["collapsed"]
    assert "both tables are sorted" in warned["sorted_apart"]
    assert "numbers the rows" in warned["numbered"]
    assert "is it an identifier" in warned["numbered"]
    assert local_cloaking(*copies_with_noise(), ncp=2).near_copies is not None


def test_a_projection_handed_over_is_used_and_checked(at_once, tmp_path):
    originals, avatars = honest()
    both = write_both(originals, avatars, tmp_path)
    (tmp_path / "projection.json").write_text(FAMD(4).fit(originals).to_json())
    handed = Both(
        *(replace(inputs, projection=tmp_path / "projection.json") for inputs in (both.files, both.folders))
    )
    here, there = measured_both(handed, at_once, ncp=3)
    assert np.array_equal(np.sort(here.result.counts), there.result.counts)
    assert there.entries["space"] == "handed over"
    assert here.entries["warnings"] == there.entries["warnings"]
    assert here.entries["inputs"]["projection"] == there.entries["inputs"]["projection"]
    (tmp_path / "projection.json").write_text(FAMD(4).fit(originals.assign(a=originals["a"] + 1)).to_json())
    assert_refused_alike(handed, at_once)


# --- refusals ---


def changed(column: str, rows: int, value: Any, *, table: int = 1) -> Callable[[], Tables]:
    """Return tables with another value in some rows of a column, in the last partition."""

    def make() -> Tables:
        tables = list(with_key())
        frame = tables[table].copy()
        if isinstance(value, str):
            frame[column] = frame[column].astype(object)
        frame.loc[frame.index[-rows:], column] = value
        tables[table] = frame
        return tables[0], tables[1]

    make.__name__ = f"{column}_{value}"
    return make


def identifier() -> Tables:
    originals, avatars = with_key()
    return originals.assign(name=originals["id"] + "x"), avatars.assign(name=avatars["id"] + "x")


def numbers_as_text() -> Tables:
    originals, avatars = with_key()
    return originals.assign(size=originals["size"].astype(str)), avatars.assign(size=avatars["size"].astype(str))


def without_a_column() -> Tables:
    originals, avatars = with_key()
    return originals, avatars.drop(columns="c")


def without_a_value() -> Tables:
    originals, avatars = with_key()
    return originals.assign(a=np.nan), avatars


def other_kind() -> Tables:
    originals, avatars = with_key()
    return originals, avatars.assign(a=avatars["arm"])


def fewer_avatars() -> Tables:
    originals, avatars = honest()
    return originals, avatars.iloc[:-3]


def balanced() -> Tables:
    """Equal eigenvalues: a full factorial."""
    levels = np.array(np.meshgrid(*[[0.0, 1.0]] * 4)).reshape(4, -1).T
    frame = pd.DataFrame(np.tile(levels, (4, 1)), columns=list("abcd"))
    return frame, frame


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (changed("arm", 3, "unheard of"), {"key": "id"}),
        (changed("a", 2, math.inf), {"key": "id"}),
        (changed("a", 2, math.inf, table=0), {"key": "id"}),
        (changed("id", 2, None), {"key": "id"}),
        (changed("id", 2, "0007", table=0), {"key": "id"}),
        (changed("id", 1, "9999"), {"key": "id"}),
        (identifier, {"key": "id"}),
        (numbers_as_text, {"key": "id"}),
        (without_a_column, {"key": "id"}),
        (without_a_value, {"key": "id"}),
        (other_kind, {"key": "id"}),
        (fewer_avatars, {}),
        (balanced, {"ncp": 2}),
        (honest, {"ncp": 99}),
        (honest, {"key": "id"}),
        (honest, {"drop": ["nothing"]}),
        (honest, {"categorical": ["nothing"]}),
    ],
    ids=named,
)
def test_refusals_are_the_same(make: Callable[[], Tables], options: dict[str, Any], at_once, tmp_path):
    assert_refused_alike(write_both(*make(), tmp_path), at_once, **options)


def test_a_refusal_crosses_the_wire(cluster, tmp_path):
    make = changed("arm", 3, "unheard of")
    assert_refused_alike(write_both(*make(), tmp_path), cluster.address, key="id")


def assert_refused_alike(both: Both, scheduler: str, **options: Any) -> None:
    from local_cloaking.distributed import measure_partitions

    with pytest.raises(InputError) as here:
        measure_files(both.files, **options)
    with pytest.raises(InputError) as there:
        measure_partitions(both.folders, scheduler=scheduler, **options)
    for name in ("problem", "remedy", "column", "rows"):
        assert getattr(here.value, name) == getattr(there.value, name)
