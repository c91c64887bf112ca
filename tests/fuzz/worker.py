"""The process that throws: it may be killed by what it is given, so it is a child of `tests.fuzz`.

Before each input it writes that down, with how many went before; it dies of an input that takes more than
`CPU_SECONDS` of work, also in C. What raises is noted, once for each place, and the throwing goes on.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.fuzz.targets import TARGETS, Target

FOLDER = Path(__file__).resolve().parents[2] / "build" / "fuzz"
#: What one input may take: work of the processor, not time, which other processes take away.
CPU_SECONDS = 5.0
#: What one input may add to the most memory that was ever used, and what all of the process may ask for beyond
#: what it has before the first.
MOST_GROWTH = 400 << 20
MOST_MEMORY = 16 << 30
#: Bytes of an input.
LONGEST = 32_768
#: As hypothesis remembers what it made, a run of it ends after so many.
_BATCH = 2_000


class TooMuchMemoryError(Exception):
    """An input took more than `MOST_GROWTH`."""


class Thrower:
    """Throws inputs, counts them, and notes what goes wrong."""

    def __init__(self, target: Target, inputs: int, seconds: float | None) -> None:
        self.target, self.inputs = target, inputs
        self.ends = None if seconds is None else time.monotonic() + seconds
        self.thrown = 0
        self._found: set[str] = set()
        self._once = target.once()
        FOLDER.mkdir(parents=True, exist_ok=True)
        self._current = os.open(FOLDER / f"{target.name}.current", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        self._peak = 0
        # What the package and others print is no finding.
        self._told = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)

    def ready(self) -> None:
        """Set the bounds, once everything is imported."""
        self._peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (size + MOST_MEMORY, resource.RLIM_INFINITY))
        # Its default action ends the process, whatever C code it is in.
        signal.signal(signal.SIGPROF, signal.SIG_DFL)

    def throw(self, data: bytes) -> None:
        """Throw one input; end the process after the last."""
        os.pwrite(self._current, struct.pack("<QQ", self.thrown, len(data)) + data, 0)
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        try:
            self._once(data)
            self._look_at_memory()
        except Exception as error:
            self._note(error, data)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        self.thrown += 1
        if self.thrown >= self.inputs or (self.ends is not None and time.monotonic() > self.ends):
            self.end()

    def end(self) -> None:
        """Leave the figures behind, and end the process."""
        (FOLDER / f"{self.target.name}.thrown").write_text(str(self.thrown))
        os._exit(0)

    def _look_at_memory(self) -> None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        grown, self._peak = peak - self._peak, peak
        if grown > MOST_GROWTH:
            raise TooMuchMemoryError(f"it took {grown >> 20} MB more than any before")

    def _note(self, error: Exception, data: bytes) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if "/local_cloaking/" in frame.filename] or frames
        place = f"{type(error).__name__} at {Path(own[-1].filename).name}:{own[-1].lineno}"
        if place in self._found:
            return
        self._found.add(place)
        kept = FOLDER / f"{self.target.name}-{hashlib.sha256(data).hexdigest()[:12]}"
        kept.write_bytes(data)
        kept.with_suffix(".txt").write_text("".join(traceback.format_exception(error)))
        said = f"{place}: {error!s:.200}".encode("ascii", "backslashreplace").decode()
        print(f"{self.target.name}: {said} ({kept.name})", file=self._told, flush=True)
        with (FOLDER / f"{self.target.name}.findings").open("a") as findings:
            findings.write(f"{place} {kept}\n")


def by_atheris(thrower: Thrower, seed: int) -> None:
    """Change the kept inputs, and what reaches something new, guided by what the package's own lines say."""
    import atheris

    mutate = thrower.target.mutate()

    def change(data: bytes, longest: int, number: int) -> bytes:
        if number % 3 == 0:
            return bytes(atheris.Mutate(data, longest))
        changed = mutate(data, random.Random(number))
        return changed if len(changed) <= longest else data

    corpus = tempfile.mkdtemp(prefix="fuzz-")
    for path in thrower.target.kept():
        shutil.copy(path, corpus)
    # Its own alarm goes off at any input after half the time: what takes long is ended by `CPU_SECONDS`.
    arguments = [f"-seed={seed}", f"-max_len={LONGEST}", "-timeout=1000000", "-rss_limit_mb=0", "-verbosity=0"]
    atheris.Setup([sys.argv[0], *arguments, corpus], thrower.throw, custom_mutator=change)
    thrower.ready()
    try:
        atheris.Fuzz()
    except BaseException:
        # What leaves it, of the target or of `change`, must not end Python in the usual way: what libFuzzer then
        # cleans up waits forever for Python, which is gone.
        traceback.print_exc()
        os._exit(70)


def by_hypothesis(thrower: Thrower, seed: int) -> None:
    """Throw the kept inputs, then make others."""
    import hypothesis

    strategy = thrower.target.strategy()
    # Before the kept ones, too: else the first is said to have taken what Airflow's import took.
    thrower.ready()
    for path in thrower.target.kept():
        thrower.throw(path.read_bytes())
    quiet = hypothesis.settings(
        max_examples=_BATCH,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )

    @quiet
    @hypothesis.given(strategy)
    def thrown(value: Any) -> None:
        for one in value if isinstance(value, list) else [value]:
            thrower.throw(json.dumps(one).encode())

    while True:
        hypothesis.seed(seed)(thrown)()
        seed += 1


def _instrumented(load: Callable[[], Any]) -> None:
    import atheris

    with atheris.instrument_imports(include=["local_cloaking"]):
        load()


def main() -> None:
    """Run as `tests.fuzz` says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("target")
    parser.add_argument("--inputs", type=int, required=True)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, required=True)
    given = parser.parse_args()
    target = TARGETS[given.target]
    if target.by == "atheris":
        _instrumented(target.once)
    thrower = Thrower(target, given.inputs, given.seconds)
    (by_atheris if target.by == "atheris" else by_hypothesis)(thrower, given.seed)


if __name__ == "__main__":
    main()
