"""What the values of a column are, whatever way pandas holds them.

pandas keeps the same values in many types (``int64``, ``Int64``, ``float64`` with gaps, ``object``, ``str``,
``category``, Arrow's). Here each column becomes one of two plain things: numbers (float64, NaN where
missing) or words (any hashable values, None where missing).
"""

from __future__ import annotations

from datetime import UTC
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from local_cloaking.errors import InputError

#: From here on, float64 takes a whole number and its successor for one.
LARGEST_EXACT_FLOAT = 2**53

#: ``missing``: a column without a single value, which fits any kind.
Kind = Literal["number", "boolean", "text", "date", "zoned date", "duration", "missing"]

_INFERRED_KINDS: dict[str, Kind] = {
    "string": "text",
    "boolean": "boolean",
    "integer": "number",
    "floating": "number",
    "mixed-integer-float": "number",
    "decimal": "number",
    "date": "date",
    "datetime": "date",
    "datetime64": "date",
    "timedelta": "duration",
    "timedelta64": "duration",
    "empty": "missing",
}


def kind_of(series: pd.Series[Any], column: str) -> Kind:
    """Tell the kind of a column's values.

    Raises
    ------
    InputError
        If the column mixes kinds, or holds what is neither number, date, truth value nor text.

    Examples
    --------
    >>> kind_of(pd.Series([1.5, None]), "dose")
    'number'
    >>> kind_of(pd.Series(["a", None]), "arm")
    'text'
    """
    if isinstance(series.dtype, pd.CategoricalDtype):
        series = pd.Series(series.cat.categories)
    known = _kind_from_dtype(series)
    if known is not None:
        return known
    inferred = pd.api.types.infer_dtype(series, skipna=True)
    kind = _INFERRED_KINDS.get(inferred)
    if kind is None:
        raise InputError(
            f"its values are of mixed or unknown types ({inferred})",
            column=column,
            rows=int(series.notna().sum()),
            remedy="give it one type: numbers, text, truth values or dates",
        )
    if kind == "date":
        return _kind_of_timestamps(series, column)
    return kind


def _kind_from_dtype(series: pd.Series[Any]) -> Kind | None:
    dtype, types = series.dtype, pd.api.types
    if types.is_complex_dtype(dtype):
        return None
    if isinstance(dtype, pd.DatetimeTZDtype):
        return "zoned date"
    checks: list[tuple[Any, Kind]] = [
        (types.is_bool_dtype, "boolean"),
        (types.is_numeric_dtype, "number"),
        (types.is_datetime64_dtype, "date"),
        (types.is_timedelta64_dtype, "duration"),
    ]
    for check, kind in checks:
        if not pd.api.types.is_object_dtype(dtype) and check(dtype):
            return "missing" if kind == "number" and bool(series.isna().all()) and len(series) else kind
    return None


def _kind_of_timestamps(series: pd.Series[Any], column: str) -> Kind:
    zoned = series.dropna().map(lambda moment: getattr(moment, "tzinfo", None) is not None)
    if zoned.nunique() > 1:
        raise InputError(
            "dates with and without a time zone are mixed",
            column=column,
            rows=int(zoned.sum()),
            remedy="give all of them a time zone, or none",
        )
    return "zoned date" if bool(zoned.all()) else "date"


def as_numbers(series: pd.Series[Any], kind: Kind) -> NDArray[np.float64]:
    """Return the values as float64: dates as seconds since 1970 (UTC), durations as seconds, NaN where missing.

    Examples
    --------
    >>> as_numbers(pd.Series(pd.to_datetime(["1970-01-02", None])), "date")
    array([86400., nan])
    """
    if isinstance(series.dtype, pd.CategoricalDtype):
        # Not series.astype(categories' dtype): that refuses whole numbers with gaps.
        numbers = as_numbers(pd.Series(series.cat.categories), kind)
        codes = series.cat.codes.to_numpy()
        return np.where(codes >= 0, np.append(numbers, np.nan)[codes], np.nan)
    if kind in ("date", "zoned date"):
        return _seconds(_moments(series).astype("datetime64[us, UTC]").astype("int64"), series)
    if kind == "duration":
        return _seconds(pd.to_timedelta(series).astype("timedelta64[us]").astype("int64"), series)
    return pd.to_numeric(series).to_numpy(dtype=np.float64, na_value=np.nan)


def _moments(series: pd.Series[Any]) -> pd.Series[Any]:
    try:
        return pd.to_datetime(series, utc=True)
    except pd.errors.OutOfBoundsDatetime:
        # Python's own dates reach from year 1 to 9999; some versions of pandas try nanoseconds, which do not.
        moments = [_in_utc(moment) for moment in series]
        return pd.Series(np.array(moments, dtype="datetime64[us]"), index=series.index).dt.tz_localize("UTC")


def _in_utc(moment: Any) -> Any:
    if pd.isna(moment):
        return None
    zoned = getattr(moment, "tzinfo", None) is not None
    return moment.astimezone(UTC).replace(tzinfo=None) if zoned else moment


def _seconds(microseconds: pd.Series[Any], series: pd.Series[Any]) -> NDArray[np.float64]:
    return np.where(series.isna(), np.nan, microseconds.to_numpy() / 1e6)


def from_seconds(seconds: NDArray[np.float64], kind: Kind) -> pd.Series[Any]:
    """Turn seconds back into dates, zoned dates (UTC) or durations.

    Examples
    --------
    >>> str(from_seconds(np.array([86400.0]), "date")[0])
    '1970-01-02 00:00:00'
    """
    gone = np.isnan(seconds)
    # The smallest integer is how numpy writes a missing moment.
    microseconds = np.round(np.where(gone, 0, seconds) * 1e6).astype(np.int64)
    microseconds[gone] = np.iinfo(np.int64).min
    if kind == "duration":
        return pd.Series(microseconds.astype("timedelta64[us]"))
    dates = pd.Series(microseconds.astype("datetime64[us]"))
    return dates.dt.tz_localize("UTC") if kind == "zoned date" else dates


def as_words(series: pd.Series[Any], kind: Kind) -> tuple[NDArray[np.int64], list[Any]]:
    """Give each different value of a column a number.

    Returns
    -------
    codes
        int64, one per row, -1 where missing.
    words
        The different values, sorted: text, truth values, or numbers (whole ones as int, so that 1 and 1.0
        are one category; dates as their seconds).

    Examples
    --------
    >>> codes, words = as_words(pd.Series(["b", "a", None]), "text")
    >>> codes.tolist(), words
    ([1, 0, -1], ['a', 'b'])
    """
    if kind == "missing":
        return np.full(len(series), -1, np.int64), []
    if kind != "text" and is_whole(series):
        # Not by way of float64: see LARGEST_EXACT_FLOAT.
        try:
            codes, integers = pd.factorize(series.astype("Int64"), sort=True)
        except (OverflowError, TypeError):
            # Beyond int64: as Python's own numbers.
            codes, integers = pd.factorize(series.astype(object), sort=True)
        return codes.astype(np.int64), [int(v) for v in integers]
    if kind not in ("text", "boolean"):
        codes, numbers = pd.factorize(as_numbers(series, kind), sort=True)
        return codes.astype(np.int64), [int(v) if float(v).is_integer() else float(v) for v in numbers]
    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.cat.remove_unused_categories()
        series = series.cat.reorder_categories(sorted(series.cat.categories))
        return series.cat.codes.to_numpy().astype(np.int64), list(series.cat.categories)
    codes, words = pd.factorize(series, use_na_sentinel=True)
    plain = [bool(w) if kind == "boolean" else str(w) for w in words]
    order = sorted(range(len(plain)), key=plain.__getitem__)
    rank = np.empty(len(plain) + 1, np.int64)
    rank[order], rank[-1] = np.arange(len(plain)), -1
    return rank[codes], [plain[i] for i in order]


def as_key(series: pd.Series[Any], column: str) -> pd.Series[Any]:
    """Return a key column as text, None where missing: leading zeros stay, 7 and 7.0 are one key.

    Examples
    --------
    >>> as_key(pd.Series([7.0, None]), "id").tolist()
    ['7', None]
    """
    codes, words = as_words(series, kind_of(series, column))
    labels = np.array([str(word) for word in words] + [None], dtype=object)
    return pd.Series(labels[codes], dtype=object)


def is_whole(series: pd.Series[Any]) -> bool:
    """Tell whether a numeric column is of an integer type, or of whole Python numbers."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        return False
    return pd.api.types.is_integer_dtype(series.dtype) or (
        series.dtype == object and pd.api.types.infer_dtype(series, skipna=True) == "integer"
    )
