"""Dask, as the measure uses it: tasks, sums over partitions, shuffles, and an end to every wait.

Results of the size of a table stay on the workers, as futures; what `Engine.gather` fetches was added up there.
"""

from __future__ import annotations

import errno
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import metadata
from typing import Any

from local_cloaking.errors import InputError, LocalCloakingError
from local_cloaking.threads import on_cores

#: Seconds to reach the scheduler, and to wait for workers where there are none.
CONNECT_SECONDS = 20.0
WORKERS_SECONDS = 60.0
#: Seconds between two looks at whether the cluster is still there.
PULSE_SECONDS = 2.0
#: Results that one task adds up.
FAN_IN = 8

_PACKAGE = "local-cloaking"


class ClusterError(ConnectionError):
    """The cluster is not there, or went away. The same measure may succeed later."""

    def __init__(self, problem: str, address: str) -> None:
        super().__init__(errno.ECONNABORTED, problem, address)
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.filename}: {self.problem}"


class WorkerFault(LocalCloakingError):  # noqa: N818 (a fault of this package, in a worker)
    """A task failed for a reason that this package did not foresee; the message holds no cell."""


class Engine:
    """A connection to a Dask scheduler.

    Parameters
    ----------
    client
        A ``distributed.Client``.
    address
        Of the scheduler, for messages.
    """

    def __init__(self, client: Any, address: str) -> None:
        self._client = client
        self._address = address
        self._version = metadata.version(_PACKAGE)

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        """Run a function on a worker; futures among the arguments are waited for. Returns a future."""
        name = f"{function.__name__.strip('_')}-{uuid.uuid4().hex}"
        return self._client.submit(_run, self._version, function, *args, key=name, pure=False)

    def share(self, value: Any) -> Any:
        """Put a value where all tasks can have it. Unlike one that is scattered, it outlives any worker."""
        return self.submit(_same, value)

    def gather(self, future: Any, pulse: Callable[[], None] | None = None) -> Any:
        """Fetch one result, which must not be of the size of a table.

        Parameters
        ----------
        future
            Of the result.
        pulse
            Called now and then while it is waited for.

        Raises
        ------
        InputError, OSError
            As they were raised on the worker.
        ClusterError
            If scheduler or workers are lost.
        """
        with self._losses():
            self._wait(future, pulse)
            try:
                return future.result(timeout=WORKERS_SECONDS)
            except TimeoutError:
                if future.status != "error":
                    raise
                raise ClusterError("the storage did not answer a worker in time", self._address) from None
            except (ImportError, RuntimeError, AttributeError) as error:
                if "Actor" in str(error):
                    # So Dask says (there is no actor) when a task that ran again, for a lost worker, failed.
                    problem = "a worker was lost, and what it held cannot be made again: was a partition changed?"
                    raise ClusterError(problem, self._address) from None
                # As where a worker lacks a package that opens the storage; its message may show what was sent.
                name = type(error).__name__
                raise WorkerFault(f"{name} on a worker: is the same software installed everywhere?") from None

    def add_up(self, futures: Sequence[Any], add: Callable[[Any, Any], Any]) -> Any:
        """Add up results of partitions, in their order, some at a time. Returns a future."""
        level = list(futures)
        while len(level) > 1:
            level = [
                self.submit(_added, add, level[start : start + FAN_IN]) for start in range(0, len(level), FAN_IN)
            ]
        return level[0]

    def total(
        self,
        futures: Sequence[Any],
        add: Callable[[Any, Any], Any],
        progress: Callable[[int, int], None] | None = None,
    ) -> Any:
        """Add up results of partitions, and fetch the sum; ``progress`` is told how many are done, of how many."""

        def pulse() -> None:
            if progress is not None:
                progress(sum(future.done() for future in futures), len(futures))

        return self.gather(self.add_up(futures, add), pulse)

    def shuffle(self, splits: Sequence[Any], buckets: int, join: Callable[..., Any], *args: Any) -> list[Any]:
        """Bring together what belongs together.

        Parameters
        ----------
        splits
            Futures of dicts, one per partition: the piece for each bucket, by its number.
        buckets
            How many there are.
        join
            Makes one result of the pieces of a bucket, a list, which may be empty.
        args
            Further arguments of ``join``.

        Returns
        -------
        Futures, one per bucket.
        """
        return [
            self.submit(_joined, join, [self.submit(_piece, split, bucket) for split in splits], *args)
            for bucket in range(buckets)
        ]

    def check_versions(self) -> None:
        """Refuse workers that have another version of this package: their counts may be others.

        Raises
        ------
        InputError
            If a worker has another one, or none.
        ClusterError
            If there is no worker.
        """
        from distributed import TimeoutError as DaskTimeoutError

        with self._losses():
            try:
                self._client.wait_for_workers(1, timeout=WORKERS_SECONDS)
            except (DaskTimeoutError, TimeoutError):
                raise ClusterError("the scheduler has no workers", self._address) from None
            found = self._client.run(metadata.version, _PACKAGE, on_error="return")
        others = sorted({v if isinstance(v, str) else "none" for v in found.values()} - {self._version})
        if others:
            _refuse_version(others[0], self._version)

    def _wait(self, future: Any, pulse: Callable[[], None] | None) -> None:
        from distributed import TimeoutError as DaskTimeoutError

        last_seen = time.monotonic()
        while True:
            try:
                future.exception(timeout=PULSE_SECONDS)  # waits, and fetches nothing
            except (DaskTimeoutError, TimeoutError):
                if pulse is not None:
                    pulse()
                if self._client.status == "running" and self._client.scheduler_info()["workers"]:
                    last_seen = time.monotonic()
                elif time.monotonic() - last_seen > WORKERS_SECONDS:
                    raise ClusterError("no worker is left", self._address) from None
            else:
                return

    @contextmanager
    def _losses(self) -> Iterator[None]:
        """Say in words that the cluster was lost."""
        from concurrent.futures import CancelledError

        from distributed.comm import CommClosedError

        from distributed import CancelledError as DaskCancelledError
        from distributed import KilledWorker
        from distributed import TimeoutError as DaskTimeoutError

        try:
            yield
        except KilledWorker:
            raise ClusterError(
                "workers died again and again over the same task: give them more memory, or smaller partitions",
                self._address,
            ) from None
        except (CancelledError, DaskCancelledError, CommClosedError, DaskTimeoutError, TimeoutError):
            raise ClusterError("the scheduler was lost", self._address) from None


@contextmanager
def connect(address: str) -> Iterator[Engine]:
    """Connect to a scheduler for a while.

    Parameters
    ----------
    address
        As ``tcp://host:8786``.

    Raises
    ------
    InputError
        If Dask is not installed, the address is none, or the workers have another version of this package.
    ClusterError
        If the scheduler cannot be reached, or has no workers.
    """
    try:
        from distributed import Client
    except ImportError:
        raise InputError("Dask is not installed", remedy="pip install 'local-cloaking[dask]'") from None
    try:
        client = Client(
            address, timeout=CONNECT_SECONDS, set_as_default=False, direct_to_workers=False, name=_PACKAGE
        )
    except (ValueError, TypeError):
        raise InputError(
            "the address of the Dask scheduler is none", remedy="give it as tcp://host:8786"
        ) from None
    except OSError:
        raise ClusterError("no Dask scheduler answers", address) from None
    try:
        engine = Engine(client, address)
        engine.check_versions()
        yield engine
    finally:
        # Of a lost scheduler, there is nothing to take leave.
        with suppress(Exception):
            client.close(timeout=PULSE_SECONDS)


def _run(version: str, function: Callable[..., Any], *args: Any) -> Any:
    """Run a task on a worker."""
    here = metadata.version(_PACKAGE)
    if here != version:
        _refuse_version(here, version)
    try:
        # One task, one core: the scheduler has given the others to other tasks.
        with on_cores(1):
            return function(*args)
    except (LocalCloakingError, OSError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 (whatever it is, its message may show a cell, and Dask logs it)
        name = f"{function.__module__}.{function.__name__}"
        raise WorkerFault(f"{type(error).__name__} in {name} on a worker") from None


def _refuse_version(theirs: str, ours: str) -> None:
    raise InputError(
        f"a worker has local-cloaking {theirs}, but {ours} measures", remedy="install one version everywhere"
    )


def _same(value: Any) -> Any:
    return value


def _added(add: Callable[[Any, Any], Any], values: Sequence[Any]) -> Any:
    total = values[0]
    for value in values[1:]:
        total = add(total, value)
    return total


def _piece(split: dict[int, Any], bucket: int) -> Any:
    return split.get(bucket)


def _joined(join: Callable[..., Any], pieces: Sequence[Any], *args: Any) -> Any:
    return join([piece for piece in pieces if piece is not None], *args)
