"""What passes and is told all the same: a second bound, and a fall since the run before."""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from local_cloaking import avatarise
from local_cloaking.audit.record import build_record, digest_of, to_bytes, verdict_again, warning_again
from local_cloaking.audit.verify import verify_record
from local_cloaking.cli import app
from local_cloaking.errors import InputError
from local_cloaking.gate import (
    Judgement,
    Watch,
    checked_max_drop,
    checked_threshold,
    checked_warn_below,
    judge,
    warnings_of_pass,
)

bounds = st.floats(0.01, 100)
values = st.integers(0, 200).map(lambda halves: halves / 2)


def before(value: float) -> dict[str, Any]:
    return {"local_cloaking": value, "at": "2026-11-29T08:09:05+01:00", "record_sha256": "0" * 64}


# The bounds ------------------------------------------------------------------------------------------------------


@given(bounds, bounds)
def test_the_second_bound_lies_above_the_threshold_or_is_refused(threshold: float, bound: float) -> None:
    if bound > threshold:
        assert checked_warn_below(str(bound), threshold) == checked_warn_below(bound, threshold) == bound
    else:
        with pytest.raises(InputError, match="warn_below"):
            checked_warn_below(bound, threshold)


@pytest.mark.parametrize("value", ["abc", "", "None", "nan", "inf", "-8", "8_0", "٨", True, None, [8], math.inf])
def test_what_is_no_number_is_refused(value: Any) -> None:
    for check in (checked_threshold, lambda given: checked_warn_below(given, 0.5), checked_max_drop):
        with pytest.raises(InputError):
            check(value)


def test_a_fall_of_nothing_may_be_asked_for() -> None:
    assert checked_max_drop("0") == 0.0
    with pytest.raises(InputError):
        checked_threshold("0")


# What is told ----------------------------------------------------------------------------------------------------


@given(values, bounds)
def test_a_pass_is_told_of_below_the_second_bound_and_only_there(value: float, bound: float) -> None:
    told = warnings_of_pass("passed", value, Watch(warn_below=bound))
    assert bool(told) == (value < bound)


@given(values, values, st.floats(0, 50))
def test_a_fall_is_told_of_when_it_is_larger_than_allowed(value: float, earlier: float, drop: float) -> None:
    told = warnings_of_pass("passed", value, Watch(max_drop=drop, previous=before(earlier)))
    assert bool(told) == (earlier - value > drop)


@given(
    st.sampled_from(["below_threshold", "not_assessable", None]),
    st.none() | values,
    st.none() | bounds,
    st.none() | st.floats(0, 50),
    st.none() | values.map(before),
)
def test_no_other_verdict_has_a_warning_of_its_own(
    verdict: Any, value: float | None, bound: float | None, drop: float | None, earlier: Any
) -> None:
    assert warnings_of_pass(verdict, value, Watch(bound, drop, earlier)) == []


def test_runs_that_are_not_compared_do_not_fall() -> None:
    assert warnings_of_pass("passed", 3.0, Watch(max_drop=None, previous=before(90))) == []
    assert warnings_of_pass("passed", 3.0, Watch(max_drop=1.0, previous=None)) == []


# The record ------------------------------------------------------------------------------------------------------

MEASURE = {"local_cloaking": 4.0, "reason": None, "warnings": ["told before"], "carried_over": None, "n": 9}


COUNTS = np.full(9, 4)


@cache
def judged(threshold: float) -> Judgement:
    return judge(COUNTS, individuals=9, threshold=threshold)


def record_of(threshold: float, watch: Watch) -> dict[str, Any]:
    return build_record(MEASURE, COUNTS, judged(threshold), watch=watch)


@settings(deadline=None)  # the first judgement loads Great Expectations
@given(st.sampled_from([3.0, 4.0, 5.0, 20.0]), st.none() | bounds, st.none() | st.floats(0, 9), st.none() | values)
def test_the_record_says_it_and_is_computed_again(
    threshold: float, bound: float | None, drop: float | None, earlier: float | None
) -> None:
    watch = Watch(bound, drop, None if earlier is None else before(earlier))
    record = json.loads(to_bytes(record_of(threshold, watch)))
    assert warning_again(record) == record["warning"]
    assert verdict_again(record) == record["verdict"]
    assert record["verdict"] == "passed" or not record["warning"]
    assert record["warnings"][0] == "told before"
    assert (len(record["warnings"]) > 1) == record["warning"]
    assert (record["warn_below"], record["max_drop"]) == (bound, drop)


def test_a_measure_keeps_its_own_warnings() -> None:
    record_of(3.0, Watch(warn_below=8.0))
    assert MEASURE["warnings"] == ["told before"]


# The command line ------------------------------------------------------------------------------------------------


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    originals = pd.DataFrame(np.random.default_rng(3).normal(size=(300, 4)), columns=list("abcd"))
    originals.to_csv(tmp_path / "originals.csv", index=False)
    avatarise(originals, k=20, ncp=2, seed=1).to_csv(tmp_path / "avatars.csv", index=False)
    return tmp_path


def measure(folder: Path, *options: str) -> Any:
    files = [str(folder / "originals.csv"), str(folder / "avatars.csv")]
    record = ["--json", str(folder / "record.json"), "--report", str(folder / "report.html")]
    return CliRunner().invoke(app, ["measure", *files, "--ncp", "2", *record, *options])


def test_a_pass_below_the_second_bound_is_still_a_pass(tables: Path) -> None:
    done = measure(tables, "--threshold", "1", "--warn-below", "250", "--lang", "fr")
    assert done.exit_code == 0, done.output
    assert "warns below     250" in done.output
    assert "under which a warning was asked for" in done.output
    record = json.loads((tables / "record.json").read_text())
    assert (record["verdict"], record["warning"], record["warn_below"]) == ("passed", True, 250.0)
    page = (tables / "report.html").read_text()
    assert "Conforme, avec un avertissement" in page
    assert "un avertissement a été demandé" in page


def test_at_the_second_bound_nothing_is_told(tables: Path) -> None:
    assert measure(tables, "--threshold", "1").exit_code == 0
    value = json.loads((tables / "record.json").read_text())["local_cloaking"]
    assert measure(tables, "--threshold", "1", "--warn-below", str(value)).exit_code == 0
    record = json.loads((tables / "record.json").read_text())
    assert (record["warning"], record["warn_below"]) == (False, value)
    assert "avertissement" not in (tables / "report.html").read_text()
    assert "Passed, with a warning" not in (tables / "report.html").read_text()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--threshold", "5", "--warn-below", "5"], "above the threshold"),
        (["--threshold", "5", "--warn-below", "much"], "above the threshold"),
        (["--warn-below", "8"], "without --threshold"),
    ],
)
def test_a_second_bound_that_never_tells_is_refused(tables: Path, options: list[str], said: str) -> None:
    done = measure(tables, *options)
    assert done.exit_code == 2
    assert said in done.output
    assert not (tables / "record.json").exists()


def test_a_warning_is_verified_from_the_record_and_from_the_files(tables: Path) -> None:
    assert measure(tables, "--threshold", "1", "--warn-below", "250").exit_code == 0
    files = ["--originals", str(tables / "originals.csv"), "--avatars", str(tables / "avatars.csv")]
    again = CliRunner().invoke(app, ["verify", str(tables / "record.json"), *files])
    assert again.exit_code == 0, again.output
    assert "agrees   warning, from the figures" in again.output


def test_a_warning_that_was_taken_out_is_found(tables: Path) -> None:
    measure(tables, "--threshold", "1", "--warn-below", "250")
    record = {**json.loads((tables / "record.json").read_text()), "warning": False}
    content = to_bytes({**record, "digest": digest_of(record)})
    differing = [finding.what for finding in verify_record(content) if not finding.agrees]
    assert differing == ["warning, from the figures"]
