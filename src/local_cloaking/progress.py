"""How far the counting is: a bar for a terminal, now and then a line for a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from local_cloaking.threads import Progress

#: Seconds between two lines of a log.
EVERY = 5.0


class LoggedProgress:
    """Tells a log every few seconds how many originals are counted, and how long the rest will take.

    Parameters
    ----------
    say
        Takes a line.
    every
        Seconds between two lines; work that takes less says nothing.
    clock
        Returns the seconds that have passed since whenever.

    Examples
    --------
    >>> seconds = iter([0.0, 10.0])
    >>> progress = LoggedProgress(print, clock=lambda: next(seconds))
    >>> progress(250_000, 1_000_000)
    counted 250,000 of 1,000,000 originals (25 %), about 30 s left
    """

    def __init__(
        self, say: Callable[[str], None], every: float = EVERY, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._say, self._every, self._clock = say, every, clock
        self._started = self._said = clock()

    def __call__(self, done: int, total: int) -> None:
        """Take word of how many are done, and how many there are."""
        now = self._clock()
        if now - self._said < self._every or done >= total or not done:
            return
        self._said = now
        left = (now - self._started) * (total - done) / done
        self._say(
            f"counted {done:,} of {total:,} originals ({100 * done // total} %), about {_duration(left)} left"
        )


def first_calling(act: Callable[[], None], progress: Progress) -> Progress:
    """Return the same progress, which acts once when it first hears of the work.

    Examples
    --------
    >>> progress = first_calling(lambda: print("under way"), lambda done, total: print(done, "of", total))
    >>> progress(1, 2)
    under way
    1 of 2
    >>> progress(2, 2)
    2 of 2
    """
    acts = iter([act])

    def told(done: int, total: int) -> None:
        for waiting in acts:
            waiting()
        progress(done, total)

    return told


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Show a bar on standard error while the work goes on, where that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("counting"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    if not console.is_terminal:
        # Not even a bar that is switched off: in some versions of rich, it leaves a blank line.
        yield lambda done, total: None  # noqa: ARG005
        return
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("counting", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"
