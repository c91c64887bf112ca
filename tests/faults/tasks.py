"""The real tasks of a gated DAG, by Airflow's own task runner, each in a process of its own.

The process is forked from one in which everything is imported and warm, so that thousands of tasks take minutes,
and one may be killed. Airflow's supervisor, which would put the task's XComs into its database, is played by the
test: what a task has told before it is killed is kept.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import traceback
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.faults.operations import Fault, Operation, Watch, under

DAG_ID = "faults"
AVATARISE = "avatarise"
MEASURE, CHECK, PUBLISH = "gate.local_cloaking", "gate.check", "publish"
#: In which they run.
TASKS = (MEASURE, CHECK, PUBLISH)
#: No task of these tables takes a tenth of it.
TOO_LONG = 120.0

#: Says to the process that tasks are forked from that it is the one.
WARM = "LOCAL_CLOAKING_TESTS_WARM"

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tests.faults.warm"])


@dataclass(frozen=True)
class Gate:
    """A gated DAG; see `dag_of`."""

    originals: str
    avatars: str
    threshold: float
    audit: str
    more: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    """One try of one task."""

    gate: Gate
    task_id: str
    run_id: str
    try_number: int
    retries: int
    xcoms: dict[tuple[str, str], str]
    watched: tuple[Path, ...]
    fault: Fault | None = None
    #: Called in the process before the task begins.
    beforehand: Callable[[], Any] | None = None
    environment: dict[str, str] = field(default_factory=dict)
    log: Path | None = None
    #: By how many seconds the clock is behind.
    back: float = 0.0


@dataclass
class Attempt:
    """What became of a try: ``success``, ``failed``, ``up_for_retry``, or ``killed``."""

    task_id: str
    state: str
    said: str = ""
    operations: list[Operation] = field(default_factory=list, repr=False)
    struck: bool = False
    outlets: list[Any] = field(default_factory=list, repr=False)


def forked(target: Callable[..., None], *args: Any) -> tuple[Connection, Any]:
    """Start a process from the warm one; return what it is heard by, and the process."""
    os.environ[WARM] = "yes"
    here, there = _context.Pipe(duplex=False)
    process = _context.Process(target=target, args=(there, *args))
    process.start()
    there.close()
    return here, process


def attempt(
    job: Job, xcoms: dict[tuple[str, str], str], started: Callable[[Any], None] = lambda _: None
) -> Attempt:
    """Try a task in a process of its own; what it tells is put into ``xcoms``.

    :param started: Is given the process.
    """
    here, process = forked(_carry_out, job)
    started(process)
    ended = None
    try:
        while here.poll(TOO_LONG):
            kind, *rest = here.recv()
            if kind == "told":
                xcoms[rest[0], rest[1]] = rest[2]
            elif kind == "cleared":
                xcoms.pop((rest[0], rest[1]), None)
            else:
                ended = Attempt(job.task_id, *rest)
                break
    except EOFError:
        pass
    process.join(TOO_LONG)
    hangs = process.is_alive()
    if hangs:
        process.kill()
        process.join()
    assert not hangs, f"{job.task_id} hangs with {job.fault}"
    if ended is None:
        assert process.exitcode == -9, f"{job.task_id} ended with {process.exitcode} with {job.fault}"
        return Attempt(job.task_id, "killed", struck=job.fault is not None)
    return ended


def dag_of(gate: Gate, retries: int) -> Any:
    """Return a gate before a task that publishes, and beside them one that makes avatars."""
    from airflow.sdk import DAG, Asset, task

    from local_cloaking.airflow import AvatariseOperator, local_cloaking_gate, require_passed

    with DAG(
        DAG_ID, schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC), default_args={"retries": retries}
    ) as dag:
        # By itself: the avatars that are measured are there already.
        AvatariseOperator(
            task_id=AVATARISE,
            originals=gate.originals,
            avatars=str(Path(gate.audit).parent / "made" / "made.csv"),
            k=12,
            ncp=3,
            seed=1,
            key="id",
        )
        made = local_cloaking_gate(
            "gate",
            originals=gate.originals,
            avatars=gate.avatars,
            threshold=gate.threshold,
            audit_path=gate.audit,
            outlet=Asset("released"),
            **gate.more,
        )

        @task
        def publish(verdict: Any, avatars: Any) -> Any:
            return require_passed(verdict, avatars)

        publish(made.verdict, gate.avatars)
    return dag


# In the process of the task ------------------------------------------------------------------------------------


def _carry_out(connection: Connection, job: Job) -> None:
    log = os.open(job.log or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.environ.update(job.environment)
    watch = Watch(under(*job.watched), back=job.back, fault=job.fault)
    if job.beforehand is not None:
        job.beforehand()
    watch.install()
    try:
        state, said, outlets = run_task(connection, job, watch)
    except BaseException:  # noqa: BLE001
        # Airflow would take the process for dead.
        state, said, outlets = "killed", traceback.format_exc(), []
    with watch.inside():
        connection.send(("end", state, said, watch.operations, watch.struck, outlets))
        connection.close()
        os._exit(0)


def run_task(connection: Connection, job: Job, watch: Watch) -> tuple[str, str, list[Any]]:
    """Run a task in this process, as Airflow's task runner does; return its state, error and asset events."""
    import structlog
    from airflow.sdk.execution_time import task_runner

    task = dag_of(job.gate, job.retries).get_task(job.task_id)
    runner: Any = task_runner
    comms = _Supervisor(connection, dict(job.xcoms), watch)
    runner.SUPERVISOR_COMMS = comms
    ti = _task_instance(job, task)
    log = structlog.get_logger(logger_name="task")
    context = ti.get_template_context()
    state, message, error = task_runner.run(ti, context, log)
    context["exception"] = error
    with contextlib.suppress(Exception):
        task_runner.finalize(ti, state, context, log, error)
    if comms.lost_state:
        # What the task runner's process does, and how its supervisor takes it.
        state = "killed" if getattr(ti, "_terminal_state_send_failed", True) else state
    said = "" if error is None else f"{type(error).__name__}: {error}"
    outlets = [] if comms.lost_state else list(getattr(message, "outlet_events", None) or [])
    return str(getattr(state, "value", state)), said, json.loads(json.dumps(outlets, default=str))


def _task_instance(job: Job, task: Any) -> Any:
    from airflow.sdk.api.datamodels._generated import DagRun, TIRunContext
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    moment = datetime(2026, 11, 30, tzinfo=UTC)
    run = DagRun.model_construct(
        dag_id=DAG_ID, run_id=job.run_id, logical_date=None, data_interval_start=None, data_interval_end=None,
        run_after=moment, start_date=moment, end_date=None, run_type="manual", state="running", conf={},
        consumed_asset_events=[], partition_key=None, team_name=None,
    )  # fmt: skip
    told = TIRunContext.model_construct(
        dag_run=run, max_tries=job.retries, should_retry=job.try_number <= job.retries, xcom_keys_to_clear=[],
        variables=[], connections=[], task_reschedule_count=0, next_method=None, next_kwargs=None,
        upstream_map_indexes=None,
    )  # fmt: skip
    return RuntimeTaskInstance.model_construct(
        id=uuid.uuid4(), task_id=job.task_id, dag_id=DAG_ID, run_id=job.run_id, try_number=job.try_number,
        dag_version_id=uuid.uuid4(), map_index=-1, hostname="", task=task, bundle_instance=None,
        _ti_context_from_server=told, max_tries=job.retries, start_date=datetime.now(UTC), state="running",
        is_mapped=False, sentry_integration="",
    )  # fmt: skip


class _Supervisor:
    """Answers a task as Airflow's supervisor does, and keeps what it tells."""

    def __init__(self, connection: Connection, xcoms: dict[tuple[str, str], str], watch: Watch) -> None:
        self._connection = connection
        self._xcoms = xcoms
        self._watch = watch
        self.lost_state = False

    def send(self, msg: Any) -> Any:
        kind = type(msg).__name__
        asks = kind.startswith(("Get", "Validate"))
        try:
            return self._watch.pass_on(
                "ask" if asks else "tell", f"{kind} {getattr(msg, 'key', '')}", lambda: self._answer(kind, msg)
            )
        except BaseException:
            self.lost_state |= kind in ("SucceedTask", "TaskState", "RetryTask")
            raise

    def _answer(self, kind: str, msg: Any) -> Any:
        from airflow.sdk.execution_time import comms

        if kind == "SetXCom":
            self._connection.send(("told", msg.task_id, msg.key, json.dumps(msg.value, allow_nan=False)))
        elif kind == "DeleteXCom":
            self._connection.send(("cleared", msg.task_id, msg.key))
        elif kind == "GetXCom":
            found = self._xcoms.get((msg.task_id, msg.key))
            return comms.XComResult(key=msg.key, value=None if found is None else json.loads(found))
        elif kind == "ValidateInletsAndOutlets":
            return comms.InactiveAssetsResult(inactive_assets=[])
        elif kind in ("GetConnection", "GetVariable"):
            from airflow.sdk.exceptions import ErrorType

            missing = ErrorType.CONNECTION_NOT_FOUND if kind == "GetConnection" else ErrorType.VARIABLE_NOT_FOUND
            return comms.ErrorResponse(error=missing)
        elif kind.startswith("Get"):
            raise NotImplementedError(kind)
        return None
