"""Work on many rows, on all cores, with word of how far it is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

#: Told, as work goes on, how many rows are done and how many there are.
Progress = Callable[[int, int], None]

_AT_MOST: ContextVar[int | None] = ContextVar("cores", default=None)


Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(
    work: Callable[[slice], Result], rows: int, step: int, progress: Progress | None = None
) -> list[Result]:
    """Do the work on slices of so many rows each, on all cores; the results come in the order of the rows.

    Examples
    --------
    >>> in_threads(lambda rows: rows.stop, 5, 2)
    [2, 4, 5]
    """
    slices = [slice(start, min(start + step, rows)) for start in range(0, rows, step)]
    return each_in_threads(work, slices, None if progress is None else lambda done: progress(done.stop, rows))


def each_in_threads(
    work: Callable[[Item], Result], items: Iterable[Item], told: Callable[[Item], object] | None = None
) -> list[Result]:
    """Do the work on each item, on all cores; the results come in the order of the items.

    Parameters
    ----------
    work
        Takes an item.
    items
        What to work on.
    told
        Called with each item when it and all before it are done.

    Examples
    --------
    >>> each_in_threads(str.upper, "ab")
    ['A', 'B']
    """
    with ThreadPoolExecutor(cores()) as pool:
        waiting = [(item, pool.submit(work, item)) for item in items]
        results = []
        try:
            for item, future in waiting:
                results.append(future.result())
                if told is not None:
                    told(item)
        except BaseException:
            # What has not begun must not hold up the error, or the reader's Ctrl-C.
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return results


def cores() -> int:
    """Return how many cores the work may use."""
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(here, _AT_MOST.get() or here)


@contextmanager
def on_cores(at_most: int) -> Iterator[None]:
    """Use no more cores than so many for a while, where others work beside us.

    Examples
    --------
    >>> with on_cores(1):
    ...     cores()
    1
    """
    token = _AT_MOST.set(at_most)
    try:
        yield
    finally:
        _AT_MOST.reset(token)
