"""The record: plain, of nobody in particular, and found out when it is changed."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from local_cloaking.audit.record import (
    RecordError,
    build_record,
    digest_of,
    measure_entries,
    passed_record,
    to_bytes,
    verdict_again,
    versions,
)
from local_cloaking.avatarisation import avatarise_in_space
from local_cloaking.gate import judge
from local_cloaking.measuring import parameters_of
from local_cloaking.metric import LocalCloaking, local_cloaking
from local_cloaking.tables.files import AS_FOUND


def measured() -> LocalCloaking:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(120, 3))
    originals = pd.DataFrame(
        {
            "id": [f"patient {i}" for i in range(120)],
            "âge": z[:, 0],
            "dose": z[:, 0] + z[:, 1],
            "arm": np.where(z[:, 2] > 0, "new", "old"),
        }
    )
    originals.loc[:3, "dose"] = np.nan
    made = avatarise_in_space(originals, k=20, ncp=3, seed=0, key="id")
    return local_cloaking(originals, made.avatars, projection=made.projection, key="id")


RESULT = measured()


SOURCE = {
    "name": "table.parquet",
    "size": 1,
    "sha256": "0" * 64,
    "rows": 120,
    "separator": None,
    "decimal": None,
    "encoding": None,
}


def record_of(threshold: float | None = 2, result: LocalCloaking = RESULT, **entries: Any) -> dict[str, Any]:
    measure = {
        **measure_entries(result),
        "k": 20,
        "data_set": "trial",
        "parameters": parameters_of(AS_FOUND, ncp=None, key="id", categorical=[], drop=[]),
        "inputs": {"originals": SOURCE, "avatars": SOURCE},
        "avatars_sha256": "0" * 64,
        "measured_at": "2026-11-30T12:00:00+01:00",
        "duration_seconds": 0.5,
        "run": None,
        **entries,
    }
    judgement = None
    if threshold is not None:
        judgement = judge(result.counts, individuals=result.n, threshold=threshold, reason=measure["reason"])
    return build_record(measure, result.counts, judgement, threshold_set_by="the officer", counts="c.parquet")


def read(record: dict[str, Any], sha256: str | None = None) -> dict[str, Any]:
    content = to_bytes(record)
    return passed_record(content, sha256 or hashlib.sha256(content).hexdigest())


def sealed(record: dict[str, Any]) -> dict[str, Any]:
    """Give a record the digest that belongs to it."""
    return {**record, "digest": digest_of(record)}


def changed(record: dict[str, Any], **entries: Any) -> dict[str, Any]:
    return sealed({**record, **entries})


# What it says --------------------------------------------------------------------------------------------------


def test_record_says_what_was_measured_and_judged() -> None:
    record = record_of(2)
    assert record["verdict"] == "passed"
    assert record["local_cloaking"] == RESULT.median
    assert record["strict_median"] == RESULT.strict_median
    assert record["hidden_rate"] == RESULT.hidden_rate
    assert (record["n"], record["ncp"], record["k"], record["threshold"]) == (120, 3, 20, 2.0)
    assert record["threshold_set_by"] == "the officer"
    assert record["tie_rule"]["tau"] == 1e-12
    assert len(record["expectations"]) == 4
    assert record["warnings"] == list(RESULT.warnings)
    assert record["remedy"] == ""
    below = record_of(100)
    assert below["verdict"] == "below_threshold"
    assert "now 20" in below["remedy"]


def test_distribution_holds_each_count_and_how_many_have_it() -> None:
    distribution = record_of()["distribution"]
    assert distribution["count"] == sorted(set(RESULT.counts.tolist()))
    assert np.repeat(distribution["count"], distribution["individuals"]).tolist() == sorted(RESULT.counts.tolist())


def test_record_does_not_depend_on_the_order_of_individuals() -> None:
    measure = {**measure_entries(RESULT), "k": None}
    judgement = judge(RESULT.counts, individuals=120, threshold=2)
    one = build_record(measure, RESULT.counts, judgement)
    assert build_record(measure, RESULT.counts[::-1], judgement) == one


def test_shuffled_avatars_have_no_figure() -> None:
    rng = np.random.default_rng(0)
    originals = pd.DataFrame(rng.normal(size=(80, 2)), columns=["a", "b"])
    result = local_cloaking(originals, originals.iloc[rng.permutation(80)], ncp=2)
    entries = measure_entries(result)
    assert (entries["local_cloaking"], entries["strict_median"], entries["hidden_rate"]) == (None, None, None)
    assert "shuffled" in entries["reason"]
    record = record_of(1, result)
    assert (record["verdict"], record["local_cloaking"]) == ("not_assessable", None)
    assert record["unreliable_because"] == record["reason"] == entries["reason"]


def test_record_without_threshold_has_no_verdict() -> None:
    record = record_of(None)
    assert (record["verdict"], record["threshold"], record["expectations"]) == (None, None, [])
    assert verdict_again(record) is None
    with pytest.raises(RecordError):
        read(record)


def test_versions_name_what_computed_the_figure() -> None:
    found = versions()
    assert {"python", "numpy", "pandas", "scipy", "scikit-learn"} <= set(found)
    assert found["numpy"] == np.__version__


# Plain, and private --------------------------------------------------------------------------------------------


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, dict):
        for key, entry in value.items():
            assert type(key) is str, path
            yield from leaves(entry, (*path, key))
    elif isinstance(value, list):
        for place, entry in enumerate(value):
            yield from leaves(entry, (*path, place))
    else:
        yield path, value


def plain(record: dict[str, Any]) -> dict[str, Any]:
    return json.loads(to_bytes(record))


@pytest.mark.parametrize("threshold", [2, 100, 1_000, None])
def test_record_is_plain_json_and_comes_back_as_it_was(threshold: float | None) -> None:
    record = record_of(threshold)
    for path, leaf in leaves(json.loads(json.dumps(record))):
        assert type(leaf) in (str, int, float, bool, type(None)), path
    for path, leaf in leaves({key: value for key, value in record.items() if key != "expectations"}):
        # No numpy number, no tuple, no Path: not even before it is written.
        assert type(leaf) in (str, int, float, bool, type(None)), path
    assert digest_of(plain(record)) == record["digest"]
    assert "âge".encode() in to_bytes(record)


def test_record_that_is_not_plain_json_is_not_written() -> None:
    with pytest.raises(ValueError, match="JSON"):
        to_bytes({"local_cloaking": float("nan")})
    with pytest.raises(ValueError, match="JSON"):
        record_of(hidden_rate=float("inf"))


def test_record_holds_no_key_no_cell_and_no_count_of_an_individual() -> None:
    record = record_of()
    text = to_bytes(record).decode()
    assert "patient" not in text
    assert '"new"' not in text
    lists = [value for _, value in lists_in(record) if len(value) >= 60]
    assert lists == []  # nothing with an entry per individual


def lists_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], list[Any]]]:
    if isinstance(value, list):
        yield path, value
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in entries:
        yield from lists_in(entry, (*path, key))


# Changed by hand -----------------------------------------------------------------------------------------------


def other_than(leaf: Any) -> Any:
    if isinstance(leaf, bool):
        return not leaf
    if isinstance(leaf, int | float):
        return leaf + 1
    return "another" if leaf is None or isinstance(leaf, str) else leaf


def test_digest_finds_any_edited_field() -> None:
    record = plain(record_of())
    edits = 0
    for path, leaf in leaves(record):
        if path == ("digest",):
            continue
        edited = copy.deepcopy(record)
        at = edited
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = other_than(leaf)
        assert digest_of(edited) != record["digest"], path
        with pytest.raises(RecordError):
            read(edited)
        edits += 1
    assert edits > 60


@pytest.mark.parametrize("name", sorted(set(record_of()) - {"digest"}))
def test_digest_finds_a_field_taken_out_or_added(name: str) -> None:
    record = plain(record_of())
    without = {key: value for key, value in record.items() if key != name}
    assert digest_of(without) != record["digest"]
    assert digest_of({**record, name + "2": record[name]}) != record["digest"]


def test_digest_does_not_depend_on_the_order_of_the_fields() -> None:
    record = record_of()
    assert digest_of(dict(reversed(record.items()))) == record["digest"]


# The verdict, computed again -------------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [0.5, 2, RESULT.median, RESULT.median + 0.01, 60, 119, 119.5, 500])
def test_verdict_follows_from_the_distribution_alone(threshold: float) -> None:
    record = record_of(threshold)
    assert verdict_again(plain(record)) == record["verdict"]
    assert (record["verdict"] == "passed") == (threshold <= RESULT.median)


BASE = {
    "n": 4,
    "threshold": 2.0,
    "unreliable_because": None,
    "carried_over": None,
    "distribution": {"count": [1, 3], "individuals": [2, 2]},
}


@pytest.mark.parametrize(
    ("entries", "verdict"),
    [
        ({}, "passed"),
        ({"threshold": 2.01}, "below_threshold"),
        ({"threshold": 3.0}, "below_threshold"),
        ({"threshold": 3.5}, "not_assessable"),
        ({"threshold": None}, None),
        ({"unreliable_because": "shuffled"}, "not_assessable"),
        ({"unreliable_because": ""}, "not_assessable"),
        ({"n": 5}, "not_assessable"),
        ({"n": 3}, "not_assessable"),
        ({"distribution": {"count": [1, 4], "individuals": [2, 2]}}, "not_assessable"),
        ({"distribution": {"count": [-1, 3], "individuals": [2, 2]}}, "not_assessable"),
        ({"distribution": {"count": [], "individuals": []}}, "not_assessable"),
        ({"distribution": {"count": [0, 3], "individuals": [1, 3]}}, "passed"),
    ],
)
def test_verdict_again(entries: dict[str, Any], verdict: str | None) -> None:
    assert verdict_again({**BASE, **entries}) == verdict


# What publishes ------------------------------------------------------------------------------------------------


def test_record_that_says_passed_is_read() -> None:
    record = record_of()
    assert read(record) == plain(record)
    assert read(changed(record, data_set="another")) != plain(record)  # the tests below do not fail by their seal


def test_other_bytes_than_those_of_the_check_are_refused() -> None:
    record = record_of()
    right = hashlib.sha256(to_bytes(record)).hexdigest()
    with pytest.raises(RecordError, match="hash"):
        read(changed(record, data_set="another"), right)
    for wrong in ("", "None", right.upper(), right[:-1]):
        with pytest.raises(RecordError, match="hash"):
            passed_record(to_bytes(record), wrong)


CONTRADICTIONS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "verdict turned": lambda _: changed(record_of(100), verdict="passed"),
    "verdict turned, no seal": lambda _: {**record_of(100), "verdict": "passed"},
    "threshold lowered": lambda _: {**record_of(100), "threshold": 1.0},
    "threshold raised": lambda record: changed(record, threshold=100.0),
    "threshold taken out": lambda record: changed(record, threshold=None),
    "reason kept quiet": lambda record: changed(record, unreliable_because="shuffled"),
    "individuals added": lambda record: changed(record, n=121),
    "distribution emptied": lambda record: changed(record, distribution={"count": [], "individuals": []}),
    "seal broken": lambda record: {**record, "digest": "0" * 64},
    "verdict unknown": lambda record: changed(record, verdict="fine"),
}


@pytest.mark.parametrize("change", CONTRADICTIONS)
def test_record_that_contradicts_itself_is_refused(change: str) -> None:
    with pytest.raises(RecordError, match="contradicts itself"):
        read(CONTRADICTIONS[change](record_of()))


@pytest.mark.parametrize(("threshold", "verdict"), [(100, "below_threshold"), (500, "not_assessable")])
def test_any_other_verdict_than_passed_is_refused_with_its_reason(threshold: float, verdict: str) -> None:
    record = record_of(threshold)
    with pytest.raises(RecordError, match=f"the verdict is {verdict}, not passed: ") as caught:
        read(record)
    assert record["reason"] in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"5",
        b'"passed"',
        b"{}",
        b'{"verdict": "passed"}',
        b'{"verdict": "passed", "digest": ""}',
        b"\xff\xfe",
        to_bytes(record_of())[:-10],
        to_bytes({key: value for key, value in record_of().items() if key != "distribution"}),
        to_bytes({**record_of(), "distribution": None}),
        to_bytes({**record_of(), "distribution": {"count": ["a"], "individuals": [120]}}),
        to_bytes({**record_of(), "distribution": {"count": [9], "individuals": [-120]}}),
        to_bytes({**record_of(), "distribution": {"count": [10**30], "individuals": [120]}}),
        to_bytes({**record_of(), "threshold": "2"}),
        to_bytes(record_of()).replace(b'"threshold": 2.0', b'"threshold": NaN'),
        b"[" * 100_000,
    ],
    ids=lambda content: repr(content[:20]),
)
def test_what_is_no_record_is_refused(content: bytes) -> None:
    with pytest.raises(RecordError):
        passed_record(content, hashlib.sha256(content).hexdigest())


@pytest.mark.parametrize("threshold", [0, -1, -1e9, True])
def test_threshold_that_the_gate_never_takes_does_not_pass_by_record(threshold: Any) -> None:
    with pytest.raises(RecordError):
        read(changed(record_of(), threshold=threshold))
