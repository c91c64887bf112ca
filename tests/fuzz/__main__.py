"""Throw inputs at the package: `python -m tests.fuzz [--inputs N] [--seconds S] [--again FILE] [TARGET ...]`.

Prints for each target how many inputs were thrown and what was found. Ends with 1 where anything was: the input
lies in build/fuzz, and ``--again`` throws it once more, with the traceback.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import secrets
import signal
import struct
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from tests.fuzz.targets import TARGETS, Target
from tests.fuzz.worker import CPU_SECONDS, FOLDER
from tests.reliability import note_figures

INPUTS = 100_000
#: So often may the process die of what it is given before the target is given up.
_DEATHS = 5
#: An input that takes so long is a hang, also where it does no work, whose time the child bounds.
HANG_SECONDS = 300.0


def main(arguments: list[str] | None = None) -> int:
    """Return 0 where nothing was found, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; all by default")
    parser.add_argument("--inputs", type=int, default=INPUTS, help="for each target; %(default)s by default")
    parser.add_argument("--seconds", type=float, help="stop each target after so many, whatever was thrown")
    parser.add_argument("--seed", type=int, help="of what is made at random; another each time by default")
    parser.add_argument("--again", type=Path, metavar="FILE", help="throw this input once more at one target")
    given = parser.parse_args(arguments)
    unknown = set(given.targets) - set(TARGETS)
    if unknown or (given.again and len(given.targets) != 1):
        parser.error("name targets that there are; with --again, one")
    targets = [TARGETS[name] for name in given.targets or TARGETS]
    if given.again:
        targets[0].once()(given.again.read_bytes())
        print("nothing is wrong with it")
        return 0
    seed = secrets.randbelow(1 << 31) if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    found = [_run(target, given.inputs, given.seconds, seed) for target in targets]
    return 1 if any(found) else 0


def _run(target: Target, inputs: int, seconds: float | None, seed: int) -> int:
    """Throw at one target, also after inputs that its process dies of; return how much was found."""
    started, thrown, deaths = time.monotonic(), 0, []
    noted = FOLDER / f"{target.name}.findings"
    noted.parent.mkdir(parents=True, exist_ok=True)
    noted.write_text("")
    while thrown < inputs and len(deaths) < _DEATHS:
        left = None if seconds is None else seconds - (time.monotonic() - started)
        if left is not None and left <= 0:
            break
        more, died = _worker(target, inputs - thrown, left, seed + len(deaths))
        thrown += more
        if died is None:
            break
        deaths.append(died)
    found = [*noted.read_text().splitlines(), *deaths]
    minutes = (time.monotonic() - started) / 60
    print(f"{target.name}: {thrown} inputs, {len(found)} findings, {minutes:.1f} minutes", flush=True)
    for finding in found:
        print(f"  {finding}", flush=True)
    if not found and thrown >= INPUTS:
        note_figures(f"fuzz-{target.name}", inputs=thrown, findings=0)
    return len(found)


def _worker(target: Target, inputs: int, seconds: float | None, seed: int) -> tuple[int, str | None]:
    """Run the child; return how many inputs it threw, and what it died of, or None."""
    said, current = (FOLDER / f"{target.name}.{what}" for what in ("thrown", "current"))
    log = FOLDER / f"{target.name}-{seed}.log"
    for left in (said, current):
        left.unlink(missing_ok=True)
    command = [sys.executable, "-m", "tests.fuzz.worker", target.name, f"--inputs={inputs}", f"--seed={seed}"]
    with log.open("wb") as errors:
        child = subprocess.Popen(
            [*command, *([] if seconds is None else [f"--seconds={seconds}"])],
            # Arrow's own pool takes addresses for more than it uses, which are counted.
            env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"},
            stderr=errors,
        )
        hung = _hangs(child, current)
    if said.exists():
        return int(said.read_text()), None
    thrown, data = _last_input(current)
    kept = FOLDER / f"{target.name}-{hashlib.sha256(data).hexdigest()[:12]}"
    kept.write_bytes(data)
    how = signal.Signals(-child.returncode).name if child.returncode < 0 else f"code {child.returncode}"
    if hung:
        how = f"nothing for {HANG_SECONDS:g} s"
    elif how == "SIGPROF":
        how = f"more than {CPU_SECONDS:g} s of work"
    died = f"died: {how}; the input is {kept}, what it said {log}"
    print(f"{target.name}: {died}", flush=True)
    return thrown + 1, died


def _hangs(child: subprocess.Popen[bytes], current: Path) -> bool:
    """Wait for the child to end; end it where it has not gone on to another input for long."""
    last = time.time()
    try:
        while time.time() - last < HANG_SECONDS:
            with suppress(subprocess.TimeoutExpired):
                child.wait(timeout=HANG_SECONDS / 60)
                return False
            with suppress(FileNotFoundError):
                last = max(last, current.stat().st_mtime)
        return True
    finally:
        # Also where this process is interrupted. Nothing is done to a child that has ended.
        child.kill()
        child.wait()


def _last_input(current: Path) -> tuple[int, bytes]:
    content = current.read_bytes() if current.exists() else b""
    if len(content) < 16:
        return 0, b""
    thrown, size = struct.unpack_from("<QQ", content)
    return thrown, content[16 : 16 + size]


if __name__ == "__main__":
    sys.exit(main())
