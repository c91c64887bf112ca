"""The command line in a process of its own, which fails at one of its reads and writes."""

from __future__ import annotations

import io
import os
import sys
import traceback
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from tests.faults.operations import Fault, Operation, Watch, under
from tests.faults.tasks import TOO_LONG, forked


@dataclass(frozen=True)
class Command:
    """Arguments of ``local-cloaking``; what it prints goes into a file that is watched, too."""

    arguments: tuple[str, ...]
    watched: Path
    fault: Fault | None = None


@dataclass
class Ended:
    """How it ended: its exit code, -9 where it was killed."""

    code: int
    said: str = ""
    operations: list[Operation] = field(default_factory=list, repr=False)
    struck: bool = False


def run_command(command: Command) -> Ended:
    """Run the command in a process of its own."""
    here, process = forked(_carry_out, command)
    try:
        ended = Ended(*here.recv()) if here.poll(TOO_LONG) else None
    except EOFError:
        ended = None
    process.join(TOO_LONG)
    if process.is_alive():
        process.kill()
        process.join()
        raise AssertionError(f"the command hangs with {command.fault}")
    if ended is not None:
        return ended
    assert process.exitcode == -9, f"ended with {process.exitcode} with {command.fault}"
    return Ended(-9, struck=True)


def _carry_out(connection: Connection, command: Command) -> None:
    from local_cloaking.cli import app

    printed = command.watched.parent / "printed"
    printed.mkdir(exist_ok=True)
    watch = Watch(under(command.watched, printed))
    watch.install()
    errors = io.StringIO()
    sys.stdout, sys.stderr = open(printed / "stdout", "w"), errors  # noqa: SIM115, PTH123
    # The shell opens that; what the command does begins here.
    watch.operations.clear()
    watch.fault = command.fault
    sys.argv = ["local-cloaking", *command.arguments]
    code = 0
    try:
        app()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:  # noqa: BLE001
        errors.write(traceback.format_exc())
        code = 1
    try:
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001
        code = 120  # As Python ends then.
    with watch.inside():
        connection.send((code, errors.getvalue(), watch.operations, watch.struck))
        connection.close()
        os._exit(0)
