"""Imported by the process that all tasks are forked from: whatever they need is there, and was used once."""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.faults.tasks import TASKS, WARM, Gate, Job, run_task


class _Nobody:
    """Keeps what the tasks tell."""

    def __init__(self) -> None:
        self.xcoms: dict[tuple[str, str], str] = {}

    def send(self, message: tuple[Any, ...]) -> None:
        self.xcoms[message[1], message[2]] = message[3]


def _drawn_once(draw: Callable[..., str]) -> Callable[..., str]:
    """Return what draws a figure, and next time has it already: it reads and writes nothing."""
    drawn: dict[str, str] = {}

    def figure(*args: Any) -> str:
        key = repr(args)
        if key not in drawn:
            drawn[key] = draw(*args)
        return drawn[key]

    return figure


def _warm_up() -> None:
    # Threads would be lost in the fork, and so whatever waits for them.
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))
    from local_cloaking import airflow
    from local_cloaking.audit import report
    from tests.faults.made import FAILING, PASSING, write_tables
    from tests.faults.operations import Watch

    logging.disable(logging.CRITICAL)
    for name in ("draw_histogram", "draw_cumulative", "draw_ladder"):
        setattr(report, name, _drawn_once(getattr(report, name)))
    for name in airflow.__all__:
        getattr(airflow, name)
    for module in (
        "airflow.providers.amazon.aws.fs.s3",
        "aiobotocore.session",
        "s3fs",
        "psycopg2",
        "airflow.providers.postgres.hooks.postgres",
    ):
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    told: Any = _Nobody()
    with tempfile.TemporaryDirectory() as folder:
        originals, avatars, projection = write_tables(Path(folder))
        more = {"key": "id", "projection": str(projection), "groups": ["arm"], "compare_with_previous": True}
        for threshold in (FAILING, PASSING):
            gate = Gate(str(originals), str(avatars), threshold, f"{folder}/audit", more)
            for task_id in TASKS:
                job = Job(gate, task_id, "warm", 1, 1, told.xcoms, ())
                state = run_task(told, job, Watch(lambda _: False))[0]
        assert state == "success"


if WARM in os.environ:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        _warm_up()
    # None of it is looked through again, and so copied, in each task.
    gc.collect()
    gc.freeze()
