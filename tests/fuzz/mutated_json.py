"""JSON, changed where it means something."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import random
from collections.abc import Callable
from typing import Any

VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    5,
    5.0,
    0.5,
    -0.0,
    1e-320,
    1e308,
    -1e308,
    2**31,
    2**53 + 1,
    2**63,
    -(2**63),
    10**30,
    float("nan"),
    float("inf"),
    float("-inf"),
    10**400,
    "",
    " ",
    "0",
    "5",
    "NaN",
    "x" * 3000,
    "passed",
    "not_assessable",
    "<script>alert(1)</script>",
    '" onload="alert(1)',
    "{{ 7 * 7 }}",
    "%(n)s %s {0}",
    "\ud800",
    "\u202e\x1b[31m",
    "\x00",
    "../../etc/passwd",
    "2026-11-30",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59",
    "a\nb",
    "\x9b",
    "é",
    [],
    {},
    [[]],
    [None],
    {"": None},
    ["passed"],
    [0] * 200,
    {"value": 1},
    [1.5],
    [True],
    ["\udfff"],
)


def mutate_json(data: bytes, rng: random.Random, seal: Callable[[dict[str, Any]], None] | None = None) -> bytes:
    """Change some values, names or lists of it.

    Parameters
    ----------
    data
        The JSON; where it is none, it is bitten into.
    rng
        What chooses.
    seal
        Makes the changed object look whole again, where it can: most of what is changed is sealed.
    """
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return _bitten(data, rng)
    if rng.random() < 0.1:
        return _bitten(data, rng)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        value = _changed(value, rng)
    if seal is not None and isinstance(value, dict) and rng.random() < 0.9:
        with contextlib.suppress(ValueError, RecursionError):
            seal(value)
    return json.dumps(value, separators=(",", ":")).encode()


def _bitten(data: bytes, rng: random.Random) -> bytes:
    if not data:
        return b"{}"
    place, size = rng.randrange(len(data)), rng.randint(0, 6)
    put = rng.choice(
        (b"", b"[" * 2000, b'{"a":' * 2000, b'"', b"1e999", b"\xff", b"NaN", b"\\ud800", b",", b"9" * 5000)
    )
    return data[:place] + put + data[place + size :]


def _changed(value: Any, rng: random.Random) -> Any:
    """Change one thing somewhere."""
    places = list(_places(value, ()))
    path = rng.choice(places)
    if not path:
        return rng.choice(VALUES) if rng.random() < 0.05 else value
    holder = value
    for step in path[:-1]:
        holder = holder[step]
    _change(holder, path[-1], value, rng)
    return value


def _as_floats(number: float) -> tuple[float, ...]:
    try:
        return number / 2, float(number), number + 1e-12
    except OverflowError:  # A whole number larger than any of them.
        return (math.inf,)


def _change(holder: Any, step: Any, whole: Any, rng: random.Random) -> None:
    way = rng.random()
    old = holder[step]
    if way < 0.35:
        holder[step] = copy.deepcopy(rng.choice(VALUES))
    elif way < 0.6 and isinstance(old, int | float) and not isinstance(old, bool):
        holder[step] = rng.choice((old + 1, old - 1, -old, old * 10, *_as_floats(old), str(old)))
    elif way < 0.7:
        del holder[step]
    elif way < 0.8 and isinstance(holder, dict):
        holder[rng.choice(("new", "", "\ud800", "<b>", step + "_"))] = old
    elif way < 0.8:
        holder.insert(rng.randrange(len(holder) + 1), copy.deepcopy(old))
    elif way < 0.9:
        # A value from elsewhere in it: of the right kind more often than not.
        other: Any = whole
        for part in rng.choice(list(_places(whole, ()))):
            other = other[part]
        holder[step] = copy.deepcopy(other)
    elif isinstance(old, str):
        holder[step] = old + rng.choice(("", "x", "<", "\u202e", "0"))
    else:
        holder[step] = [old]


def _places(value: Any, path: tuple[Any, ...]) -> Any:
    yield path
    if len(path) > 30:
        return
    if isinstance(value, dict):
        for name, held in value.items():
            yield from _places(held, (*path, name))
    elif isinstance(value, list):
        for place, held in enumerate(value):
            yield from _places(held, (*path, place))
