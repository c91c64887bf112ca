"""The cluster of these tests, and a stand-in for one that runs every task at once, here."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

from local_cloaking.distributed.engine import Engine
from tests.cluster import cluster

__all__ = ["at_once", "cluster", "inline"]


class Inline(Engine):
    """Runs each task when it is submitted: for arithmetic that needs no cluster to be wrong."""

    def __init__(self) -> None:
        pass

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        return function(*args)

    def gather(self, future: Any, pulse: Any = None) -> Any:
        return future


@pytest.fixture
def inline() -> Inline:
    return Inline()


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a scheduler that is not one: every task runs here."""
    from local_cloaking.distributed import measure

    monkeypatch.setattr(measure, "connect", lambda _: nullcontext(Inline()))
    return "inline://"
