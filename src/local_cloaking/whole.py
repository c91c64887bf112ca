"""Whole numbers, as people and templates write them."""

from __future__ import annotations

from typing import Any


def whole_number(value: Any) -> int | None:
    """Return a whole number as an int, or None for anything else.

    Parameters
    ----------
    value
        A number, or text that is one. Truth values are no numbers here, and nothing is rounded.

    Examples
    --------
    >>> whole_number("20"), whole_number(20.0), whole_number(2.5), whole_number(True)
    (20, 20, None, None)
    """
    # numpy's truth values, too, without importing numpy for it.
    if type(value).__name__ in ("bool", "bool_"):
        return None
    try:
        number = int(value)
        return number if number == float(value) or isinstance(value, str) else None
    except (TypeError, ValueError, OverflowError):
        return None
