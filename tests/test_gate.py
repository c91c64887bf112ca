"""The gate: what it passes, what it does not, and that nothing passes by accident."""

from __future__ import annotations

import copy
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from great_expectations.core.expectation_validation_result import ExpectationSuiteValidationResult

from local_cloaking.errors import InputError
from local_cloaking.gate import GateError, Judgement, checked_threshold, judge, local_cloaking_suite, remedy


def counts_of(median: int, n: int = 101) -> np.ndarray:
    """Counts with this median, none the same as another's neighbour."""
    return np.clip(np.arange(n) - n // 2 + median, 0, n - 1)


def judged(counts: Any, threshold: Any = 5, **options: Any) -> Judgement:
    return judge(np.asarray(counts), **{"individuals": len(counts), "threshold": threshold, **options})


# The threshold -------------------------------------------------------------------------------------------------

REFUSED = [
    0,
    0.0,
    -0.0,
    -5,
    "0",
    "-1",
    float("inf"),
    float("-inf"),
    float("nan"),
    "inf",
    "nan",
    np.nan,
    Decimal("NaN"),
    Decimal("Infinity"),
    10**400,
    True,
    False,
    np.bool_(True),
    np.bool_(False),
    None,
    "None",
    "abc",
    "",
    " ",
    "5,5",
    "5 %",
    [5],
    (5,),
    {"threshold": 5},
    np.array([5]),
    5j,
    b"5",
]


@pytest.mark.parametrize("threshold", REFUSED, ids=repr)
def test_threshold_that_is_no_number_above_0_is_refused(threshold: Any) -> None:
    for refusing in (
        lambda: checked_threshold(threshold),
        lambda: local_cloaking_suite(threshold, individuals=10),
        lambda: judged(counts_of(50), threshold),
    ):
        with pytest.raises(InputError) as caught:
            refusing()
        assert caught.value.remedy


@pytest.mark.parametrize(
    ("threshold", "number"),
    [
        (5, 5.0),
        ("5", 5.0),
        (" 5 ", 5.0),
        (5.5, 5.5),
        ("5.5", 5.5),
        (Decimal("5.5"), 5.5),
        (np.int64(5), 5.0),
        (np.float32(5.5), 5.5),
        (5e-324, 5e-324),
    ],
)
def test_threshold_may_be_any_number_above_0(threshold: Any, number: float) -> None:
    assert checked_threshold(threshold) == number
    assert type(checked_threshold(threshold)) is float


@pytest.mark.parametrize("individuals", [0, -1, 2.0, True, None, "10"])
def test_suite_needs_a_number_of_individuals(individuals: Any) -> None:
    with pytest.raises(InputError):
        local_cloaking_suite(5, individuals=individuals)


# Verdicts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [5, "5", 5.0, Decimal(5), np.int64(5)])
def test_median_equal_to_the_threshold_passes(threshold: Any) -> None:
    judgement = judged(counts_of(5), threshold)
    assert (judgement.verdict, judgement.reason) == ("passed", None)
    assert (judgement.local_cloaking, judgement.threshold) == (5.0, 5.0)


@pytest.mark.parametrize("threshold", [np.nextafter(5, 6), 5.001, 5.5, 6])
def test_median_just_below_the_threshold_does_not_pass(threshold: float) -> None:
    judgement = judged(counts_of(5), threshold)
    assert judgement.verdict == "below_threshold"
    assert judgement.reason.startswith("Local Cloaking 5 is below the threshold")


def test_median_between_two_counts_is_judged_as_it_is() -> None:
    counts = [5] * 10 + [6] * 10
    assert judged(counts, 5.5).verdict == "passed"
    assert judged(counts, 5.6).verdict == "below_threshold"


def test_median_of_0_is_below_the_threshold_not_absent() -> None:
    judgement = judged([0] * 30)
    assert judgement.verdict == "below_threshold"
    assert judgement.reason == "Local Cloaking 0 is below the threshold 5"
    assert judgement.local_cloaking == 0.0


def test_too_few_individuals_for_the_threshold_are_not_assessable() -> None:
    judgement = judged([11] * 12, 12)
    assert judgement.verdict == "not_assessable"
    assert judgement.reason == "12 individuals can reach 11 at most, below the threshold 12"
    assert judged([11] * 12, 11).verdict == "passed"
    assert judged([0], 1).verdict == "not_assessable"


@pytest.mark.parametrize("individuals", [100, 102, 1])
def test_counts_for_another_number_of_individuals_are_not_assessable(individuals: int) -> None:
    judgement = judged(counts_of(50), 5, individuals=individuals)
    assert judgement.verdict == "not_assessable"
    assert "do not fit" in judgement.reason


@pytest.mark.parametrize("impossible", [-1, 101])
def test_counts_that_no_individual_can_have_are_not_assessable(impossible: int) -> None:
    counts = counts_of(50)
    counts[7] = impossible
    assert judged(counts).verdict == "not_assessable"


@pytest.mark.parametrize("reason", ["the avatars look shuffled", ""])
def test_nothing_passes_with_a_reason_against_it(reason: str) -> None:
    judgement = judged(counts_of(50), 5, reason=reason)
    assert (judgement.verdict, judgement.reason) == ("not_assessable", reason)
    assert judgement.local_cloaking == 50


@pytest.mark.parametrize(
    "counts",
    [
        [],
        np.zeros(0, np.int64),
        [6.0] * 20,
        [6.5] * 20,
        [np.nan] * 20,
        [6.0] * 19 + [np.nan],
        [True] * 20,
        ["6"] * 20,
        [None] * 20,
        [[6] * 20],
        6,
        None,
    ],
    ids=repr,
)
def test_what_is_no_list_of_whole_numbers_is_an_error_and_no_verdict(counts: Any) -> None:
    with pytest.raises(GateError):
        judge(counts, individuals=20, threshold=5)


def test_order_and_type_of_the_counts_do_not_matter() -> None:
    counts = counts_of(5)
    shuffled = np.random.default_rng(0).permutation(counts)
    for other in (shuffled, counts.astype(np.int32), counts.astype(np.uint8), counts.tolist()):
        assert judge(other, individuals=101, threshold=5) == judged(counts)


# Great Expectations --------------------------------------------------------------------------------------------


def test_judgement_tells_what_was_expected_and_observed() -> None:
    judgement = judged(counts_of(5), 7)
    found = {expectation.type: expectation for expectation in judgement.expectations}
    assert {name: (e.bounds, e.observed, e.success) for name, e in found.items()} == {
        "expect_table_row_count_to_equal": ({"value": 101}, 101, True),
        "expect_column_values_to_not_be_null": ({}, 0, True),
        "expect_column_values_to_be_between": ({"min_value": 0, "max_value": 100}, 0, True),
        "expect_column_median_to_be_between": ({"min_value": 7.0}, 5.0, False),
    }
    assert all(type(e.success) is bool and type(e.observed) in (int, float) for e in judgement.expectations)


MEDIAN = "expect_column_median_to_be_between"
TYPES = [
    "expect_table_row_count_to_equal",
    "expect_column_values_to_not_be_null",
    "expect_column_values_to_be_between",
    MEDIAN,
]


def tampered(monkeypatch: pytest.MonkeyPatch, change: Callable[[dict[str, Any]], None]) -> None:
    """Let Great Expectations return another result than it found, always successful."""
    original = ExpectationSuiteValidationResult.to_json_dict

    def to_json_dict(self: ExpectationSuiteValidationResult) -> dict[str, Any]:
        content = copy.deepcopy(original(self))
        change(content)
        content["success"] = True
        return content

    monkeypatch.setattr(ExpectationSuiteValidationResult, "to_json_dict", to_json_dict)


def entry(content: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(r for r in content["results"] if r["expectation_config"]["type"] == kind)


def test_suite_is_judged_by_the_results_that_the_tests_below_change(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    tampered(monkeypatch, lambda content: seen.extend(r["expectation_config"]["type"] for r in content["results"]))
    assert judged(counts_of(50)).verdict == "passed"
    assert seen == TYPES


def test_no_result_at_all_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    tampered(monkeypatch, lambda content: content.update(results=[]))
    with pytest.raises(GateError, match="did not evaluate"):
        judged(counts_of(50))


@pytest.mark.parametrize("kind", TYPES)
def test_expectation_without_a_result_is_an_error(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    tampered(monkeypatch, lambda content: content["results"].remove(entry(content, kind)))
    with pytest.raises(GateError, match=kind):
        judged(counts_of(50))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(
    "info",
    [
        {"raised_exception": True, "exception_message": "x", "exception_traceback": "y"},
        {"('column.median', '1', ())": {"raised_exception": True, "exception_message": "x"}},
    ],
    ids=["flat", "per metric"],
)
def test_expectation_that_raised_is_an_error(
    monkeypatch: pytest.MonkeyPatch, kind: str, info: dict[str, Any]
) -> None:
    tampered(monkeypatch, lambda content: entry(content, kind).update(exception_info=info))
    with pytest.raises(GateError, match=kind):
        judged(counts_of(50))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("result", [{}, {"observed_value": None}, {"observed_value": "50"}])
def test_expectation_that_observed_nothing_is_an_error(
    monkeypatch: pytest.MonkeyPatch, kind: str, result: dict[str, Any]
) -> None:
    tampered(monkeypatch, lambda content: entry(content, kind).update(result=result))
    with pytest.raises(GateError, match=kind):
        judged(counts_of(50))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("success", [None, "true", 1])
def test_success_that_is_no_truth_value_is_an_error(
    monkeypatch: pytest.MonkeyPatch, kind: str, success: Any
) -> None:
    tampered(monkeypatch, lambda content: entry(content, kind).update(success=success))
    with pytest.raises(GateError, match=kind):
        judged(counts_of(50))


@pytest.mark.parametrize("kind", TYPES)
def test_result_without_success_is_an_error(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    tampered(monkeypatch, lambda content: entry(content, kind).pop("success"))
    with pytest.raises(GateError, match=kind):
        judged(counts_of(50))


def test_another_median_than_that_of_the_counts_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    tampered(
        monkeypatch, lambda content: entry(content, MEDIAN).update(success=True, result={"observed_value": 9})
    )
    with pytest.raises(GateError, match="another median"):
        judged([0] * 30)


def test_success_that_the_counts_do_not_bear_out_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    tampered(monkeypatch, lambda content: entry(content, MEDIAN).update(success=True))
    assert judged([0] * 30).verdict == "below_threshold"


@pytest.mark.parametrize("kind", TYPES)
def test_failure_of_any_expectation_does_not_pass(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    tampered(monkeypatch, lambda content: entry(content, kind).update(success=False))
    assert judged(counts_of(50)).verdict == ("below_threshold" if kind == MEDIAN else "not_assessable")


# Remedies ------------------------------------------------------------------------------------------------------


def test_remedy_names_k_where_it_helps() -> None:
    assert remedy("passed", 20) == ""
    assert "raise k" in remedy("below_threshold")
    assert "now" not in remedy("below_threshold")
    assert "(now 20)" in remedy("below_threshold", 20)
    assert "k" not in remedy("not_assessable", 20).split()
