"""A real cluster: a scheduler and two workers, each a process of its own, on loopback."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest


@dataclass
class Cluster:
    """A running scheduler, and the folder in which its workers log."""

    address: str
    folder: Path
    processes: list[int] = field(default_factory=list)

    def add_worker(self) -> int:
        """Start a worker, and return its process."""
        name = f"worker-{len(list(self.folder.glob('worker-*.log')))}"
        arguments = ["--nthreads", "1", "--memory-limit", "1GB", "--no-nanny", "--name", name, "--no-dashboard"]
        # Should nobody end it, it ends itself when its scheduler is gone.
        arguments += ["--local-directory", str(self.folder), "--host", "127.0.0.1", "--death-timeout", "60"]
        worker = _start(["worker", self.address, *arguments], self.folder / f"{name}.log")
        self.processes.append(worker)
        return worker

    def await_workers(self, client: Any, at_least: int) -> None:
        """Wait until so many workers are there."""
        deadline = time.monotonic() + 90
        while len(client.run_on_scheduler(_held)) < at_least:
            assert time.monotonic() < deadline, "the workers did not start"
            time.sleep(0.2)

    @property
    def scheduler(self) -> int:
        """The scheduler's process."""
        return self.processes[0]

    def log(self) -> str:
        """Return all that scheduler and workers have logged."""
        return "".join(path.read_text() for path in sorted(self.folder.glob("*.log")))

    def stop(self) -> None:
        """End every process of the cluster."""
        for process in self.processes:
            kill(process)


def kill_the_fullest(client: Any) -> None:
    """Kill, at once, the worker that holds the most results."""
    held = client.run_on_scheduler(_held)
    fullest = max(held, key=held.__getitem__)
    assert held[fullest] > 0, "the worker that is killed holds nothing"
    kill(client.run(os.getpid, workers=[fullest])[fullest])


def _held(dask_scheduler: Any) -> dict[str, int]:
    return {address: len(worker.has_what) for address, worker in dask_scheduler.workers.items()}


def kill(process: int) -> None:
    """End a process at once."""
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(process, 0)


def _start(arguments: list[str], log: Path) -> int:
    # Workers compute with one thread each, whatever the machine has.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", *arguments], stdout=stream, stderr=subprocess.STDOUT, env=environment
        )
    process.returncode = 0  # ended by its number, perhaps by another process
    return process.pid


def start_cluster(folder: Path, workers: int = 2) -> Cluster:
    """Start a scheduler and workers, and wait until the scheduler listens."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    cluster = Cluster(f"tcp://127.0.0.1:{port}", folder)
    arguments = ["--host", "127.0.0.1", "--port", str(port), "--dashboard-address", "127.0.0.1:0"]
    arguments += ["--idle-timeout", "300"]
    cluster.processes.append(_start(["scheduler", *arguments], folder / "scheduler.log"))
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)
    for _ in range(workers):
        cluster.add_worker()
    return cluster


def free_port() -> int:
    """Return a port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _locked(path: Path) -> Iterator[list[str]]:
    """Read the lines of a file and write them back, one process at a time."""
    with path.open("a+") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        stream.seek(0)
        lines = stream.read().splitlines()
        yield lines
        stream.truncate(0)
        stream.write("\n".join(lines))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One cluster for all processes of a test run; tests that kill something start, or add, their own."""
    pytest.importorskip("distributed", reason="Dask is not installed (extra `dask`)")
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cluster"
    folder.mkdir(exist_ok=True)
    with _locked(folder / "users") as lines:
        if not lines:
            started = start_cluster(folder)
            lines[:] = ["0", started.address, *map(str, started.processes)]
        lines[0] = str(int(lines[0]) + 1)
        running = Cluster(lines[1], folder, [int(line) for line in lines[2:]])
    yield running
    with _locked(folder / "users") as lines:
        lines[0] = str(int(lines[0]) - 1)
        if lines[0] == "0":
            running.stop()
            lines.clear()
