"""The gate: a threshold, a Great Expectations suite, a verdict.

A verdict is `passed`, `below_threshold` or `not_assessable`. Whatever prevents a judgement (an invalid
threshold, an expectation that was not evaluated) is an error and no verdict: nothing passes by accident.
"""

from __future__ import annotations

import logging
import math
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from local_cloaking.errors import InputError, LocalCloakingError

if TYPE_CHECKING:
    from great_expectations import ExpectationSuite

Integers = NDArray[np.int64]
Outcome = Literal["passed", "below_threshold", "not_assessable"]

SUITE_NAME = "local_cloaking"
#: The column of the counts table that the suite judges.
COUNTS_COLUMN = "closer"

_PLAIN_NUMBER = r"[+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"


class GateError(LocalCloakingError):
    """The gate could not judge. This is no verdict."""


@dataclass(frozen=True)
class Expectation:
    """One expectation of the suite and what Great Expectations found.

    ``bounds`` holds what was expected (``value``, ``min_value``, ``max_value``), ``observed`` what was seen.
    """

    type: str
    bounds: dict[str, float]
    success: bool
    observed: float


@dataclass(frozen=True)
class Judgement:
    """What the gate says of one measure.

    Attributes
    ----------
    verdict
        ``passed``, ``below_threshold`` or ``not_assessable``.
    reason
        One sentence; None when passed.
    threshold
        The smallest Local Cloaking that passes.
    local_cloaking
        The median of the counts that were judged; None where nothing was counted.
    expectations
        The Great Expectations results; none where nothing was counted.
    """

    verdict: Outcome
    reason: str | None
    threshold: float
    local_cloaking: float | None
    expectations: tuple[Expectation, ...]


@dataclass(frozen=True)
class Watch:
    """What lets a verdict pass, and is told all the same.

    Attributes
    ----------
    warn_below
        A bound above the threshold; None for none.
    max_drop
        By how much Local Cloaking may fall untold since the run before; None where runs are not compared.
    previous
        The run before: ``local_cloaking``, ``at``, ``record_sha256``; None where there is none, or none is known.
    """

    warn_below: float | None = None
    max_drop: float | None = None
    previous: Mapping[str, Any] | None = None


def warnings_of_pass(verdict: Outcome | None, local_cloaking: float | None, watch: Watch) -> list[str]:
    """Say why a pass is to be told of; nothing of any other verdict, which says more itself.

    Parameters
    ----------
    verdict, local_cloaking
        As judged.
    watch
        What was asked for.

    Returns
    -------
    A sentence for each reason.

    Examples
    --------
    >>> warnings_of_pass("passed", 6.0, Watch(warn_below=8.0))
    ['Local Cloaking 6 passed, but is below 8, under which a warning was asked for']
    >>> warnings_of_pass("below_threshold", 4.0, Watch(warn_below=8.0))
    []
    """
    warnings: list[str] = []
    if verdict != "passed" or local_cloaking is None:
        return warnings
    if watch.warn_below is not None and local_cloaking < watch.warn_below:
        warnings.append(
            f"Local Cloaking {local_cloaking:g} passed, but is below {watch.warn_below:g}, under which a warning "
            "was asked for"
        )
    if watch.max_drop is not None and watch.previous is not None:
        before = float(watch.previous["local_cloaking"])
        if before - local_cloaking > watch.max_drop:
            warnings.append(
                f"Local Cloaking fell from {before:g} to {local_cloaking:g} since the run before, by more than "
                f"{watch.max_drop:g}"
            )
    return warnings


def checked_threshold(threshold: Any) -> float:
    """Return the threshold as a number.

    Parameters
    ----------
    threshold
        A number, or text that is one, above 0 and finite.

    Raises
    ------
    InputError
        If it is anything else: a gate that always passes is no gate.

    Examples
    --------
    >>> checked_threshold("5")
    5.0
    """
    number = _number(threshold)
    if not (math.isfinite(number) and number > 0):
        raise InputError(
            "the threshold is not a number above 0",
            remedy="give the smallest Local Cloaking that may pass, as 5",
        )
    return number


def checked_warn_below(warn_below: Any, threshold: float) -> float:
    """Return the second bound, below which a pass is told of, as a number.

    Parameters
    ----------
    warn_below
        A number, or text that is one, above the threshold and finite.
    threshold
        As `checked_threshold` returns it.

    Raises
    ------
    InputError
        If it is anything else: at or below the threshold, it would never tell.

    Examples
    --------
    >>> checked_warn_below("8", threshold=5.0)
    8.0
    """
    number = _number(warn_below)
    if not (math.isfinite(number) and number > threshold):
        raise InputError(
            "the bound `warn_below` is not a number above the threshold",
            remedy="give the Local Cloaking below which a pass is to be told of, as 8 with the threshold 5",
        )
    return number


def checked_max_drop(max_drop: Any) -> float:
    """Return by how much Local Cloaking may fall untold since the run before, as a number.

    Parameters
    ----------
    max_drop
        A number, or text that is one, of at least 0 and finite.

    Raises
    ------
    InputError
        If it is anything else.

    Examples
    --------
    >>> checked_max_drop("2.5")
    2.5
    """
    return _not_negative(
        max_drop, "the argument `max_drop`", "give by how much Local Cloaking may fall since the run before, as 2"
    )


def checked_margin(margin: Any) -> float:
    """Return by how much Local Cloaking is to exceed the threshold, as a number.

    Parameters
    ----------
    margin
        A number, or text that is one, of at least 0 and finite.

    Raises
    ------
    InputError
        If it is anything else.

    Examples
    --------
    >>> checked_margin("2")
    2.0
    """
    return _not_negative(
        margin,
        "the margin",
        "give by how much Local Cloaking is to exceed the threshold, as 2, or 0 for not at all",
    )


def _not_negative(value: Any, what: str, remedy: str) -> float:
    number = _number(value)
    if not (math.isfinite(number) and number >= 0):
        raise InputError(f"{what} is not a number of at least 0", remedy=remedy)
    return number


def _number(value: Any) -> float:
    """Return a number, or text that is one; not a number where it is neither."""
    if isinstance(value, bool | np.bool_) or not isinstance(
        value, str | int | float | Decimal | np.integer | np.floating
    ):
        return math.nan
    # float() also takes other scripts' digits and "5_0": what a reader may take for another number.
    if isinstance(value, str) and not re.fullmatch(_PLAIN_NUMBER, value.strip()):
        return math.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan


def local_cloaking_suite(threshold: Any, *, individuals: int) -> ExpectationSuite:
    """Build the Great Expectations suite that judges a table of counts.

    Parameters
    ----------
    threshold
        The smallest Local Cloaking that passes; equal passes.
    individuals
        Number of originals: the table must have one count for each.

    Returns
    -------
    A suite on the column ``closer``: as many counts as individuals, none missing, each between 0 and
    ``individuals - 1``, their median at or above the threshold. An unevaluated suite succeeds in Great
    Expectations: use `judge`, which requires that each expectation was evaluated.

    Raises
    ------
    InputError
        If the threshold is not a number above 0, or there is no individual.

    Examples
    --------
    >>> suite = local_cloaking_suite(5, individuals=2139)
    >>> len(suite.expectations)
    4
    """
    least = checked_threshold(threshold)
    if isinstance(individuals, bool) or not isinstance(individuals, int | np.integer) or individuals < 1:
        raise InputError(
            "the number of individuals is not a whole number of at least 1",
            remedy="give the number of originals that were measured",
        )
    gx = great_expectations()
    expect = gx.expectations
    return gx.ExpectationSuite(
        name=SUITE_NAME,
        expectations=[
            expect.ExpectTableRowCountToEqual(value=int(individuals)),
            expect.ExpectColumnValuesToNotBeNull(column=COUNTS_COLUMN),
            expect.ExpectColumnValuesToBeBetween(
                column=COUNTS_COLUMN, min_value=0, max_value=int(individuals) - 1
            ),
            expect.ExpectColumnMedianToBeBetween(column=COUNTS_COLUMN, min_value=least),
        ],
    )


def judge(
    counts: Integers,
    *,
    individuals: int,
    threshold: Any,
    reason: str | None = None,
    peers: float | None = None,
) -> Judgement:
    """Judge measured counts against a threshold.

    Parameters
    ----------
    counts
        Closer avatars per individual, whole numbers, shape (n,), in any order. Empty where counting was stopped,
        and then there is a reason.
    individuals
        Number of originals.
    threshold
        The smallest Local Cloaking that passes; equal passes.
    reason
        Why the measure could not be relied on, or None. With a reason, nothing passes.
    peers
        Median number of other avatars with the original's values in the columns that were carried over
        unchanged; None where there are none. Below the threshold, nothing passes.

    Raises
    ------
    InputError
        If the threshold is not a number above 0.
    GateError
        If the counts are no whole numbers, or an expectation was not evaluated.

    Examples
    --------
    >>> judge(np.array([0, 1, 2]), individuals=3, threshold=1).verdict
    'passed'
    >>> judge(np.array([0, 1, 2]), individuals=30, threshold=1).verdict
    'not_assessable'
    """
    least = checked_threshold(threshold)
    values = np.asarray(counts)
    if reason is not None and values.shape == (0,):
        return Judgement("not_assessable", reason, least, None, ())
    if values.ndim != 1 or not values.size or not np.issubdtype(values.dtype, np.integer):
        raise GateError("the counts are not a list of whole numbers: they cannot be judged")
    suite = local_cloaking_suite(least, individuals=individuals)
    expectations = _evaluate(suite, pd.DataFrame({COUNTS_COLUMN: values.astype(np.int64)}))
    if not expectations:
        raise GateError("the suite holds no expectation: nothing was judged")
    median = float(np.median(values))
    *fitting, on_median = expectations
    if on_median.observed != median:
        raise GateError("Great Expectations observed another median than the counts have: nothing was judged")
    if reason is None and not all(expectation.success for expectation in fitting):
        reason = f"the counts do not fit {individuals} individuals"
    if reason is None and individuals - 1 < least:
        reason = f"{individuals} individuals can reach {individuals - 1} at most, below the threshold {least:g}"
    # Great Expectations and plain comparison must both agree before anything passes.
    enough = on_median.success and median >= least
    if reason is None and enough:
        reason = carried_over_reason(peers, least)
    if reason is not None:
        return Judgement("not_assessable", reason, least, median, expectations)
    if enough:
        return Judgement("passed", None, least, median, expectations)
    return Judgement(
        "below_threshold",
        f"Local Cloaking {median:g} is below the threshold {least:g}",
        least,
        median,
        expectations,
    )


def carried_over_reason(peers: float | None, least: float) -> str | None:
    """Say why nobody is hidden by the columns that were carried over unchanged, or None where all are.

    Parameters
    ----------
    peers
        As in `judge`.
    least
        The smallest Local Cloaking that passes.

    Examples
    --------
    >>> carried_over_reason(None, 5.0) is None, carried_over_reason(5.0, 5.0) is None
    (True, True)
    >>> carried_over_reason(4.0, 5.0)[-36:]
    'avatars alike, below the threshold 5'
    """
    if peers is None or not peers < least:
        return None
    return (
        f"by the columns that are carried over unchanged alone, the median individual has {peers:g} other "
        f"avatars alike, below the threshold {least:g}"
    )


def remedy(verdict: Outcome, k: int | None = None) -> str:
    """Say what to do about a verdict that is not ``passed``.

    Examples
    --------
    >>> remedy("below_threshold", k=20)
    'raise k, the number of neighbours that an avatar draws on (now 20), and avatarise again'
    """
    if verdict == "passed":
        return ""
    if verdict == "not_assessable":
        return (
            "mend what the reason names (too few individuals: take more, or a lower threshold), and measure again"
        )
    now = f" (now {k})" if k is not None else ""
    return f"raise k, the number of neighbours that an avatar draws on{now}, and avatarise again"


def _evaluate(suite: ExpectationSuite, table: pd.DataFrame) -> tuple[Expectation, ...]:
    gx = great_expectations()
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    asset = context.data_sources.add_pandas("counts").add_dataframe_asset("counts")
    batch = asset.add_batch_definition_whole_dataframe("counts").get_batch({"dataframe": table})
    results = batch.validate(suite, result_format="BASIC").to_json_dict()["results"]
    found = {result["expectation_config"]["type"]: result for result in results}
    wanted = [expectation.configuration.type for expectation in suite.expectations]
    return tuple(_evaluated(name, found.get(name)) for name in wanted)


def _evaluated(name: str, result: dict[str, Any] | None) -> Expectation:
    if result is None or _raised(result.get("exception_info", {})):
        raise GateError(f"Great Expectations did not evaluate {name}: nothing was judged")
    details, bounds = result.get("result", {}), result["expectation_config"]["kwargs"]
    observed = details.get("observed_value", details.get("unexpected_count"))
    if not isinstance(observed, int | float) or not isinstance(result.get("success"), bool):
        raise GateError(f"Great Expectations observed nothing for {name}: nothing was judged")
    return Expectation(
        type=name,
        bounds={key: bounds[key] for key in ("value", "min_value", "max_value") if bounds.get(key) is not None},
        success=result["success"],
        observed=int(observed) if isinstance(observed, int) else float(observed),
    )


def _raised(exception_info: dict[str, Any]) -> bool:
    # One flat entry, or one entry per failed metric.
    entries: Sequence[Any] = [exception_info, *exception_info.values()]
    return any(isinstance(entry, dict) and entry.get("raised_exception") for entry in entries)


def great_expectations() -> Any:
    """Import Great Expectations, which takes seconds, and keep it quiet.

    Examples
    --------
    >>> great_expectations().__name__
    'great_expectations'
    """
    # Its usage statistics would leave the trusted environment; its log and its imports' warnings bury ours.
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    logging.getLogger("great_expectations").setLevel(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import great_expectations as gx

    return gx
