"""A real cluster: a scheduler and two workers, each a process of its own, on loopback."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip, with the reason, where Dask is not installed."""
    if importlib.util.find_spec("distributed") is None:
        here = Path(__file__).parent
        for item in items:
            if here in item.path.parents:
                item.add_marker(pytest.mark.skip(reason="Dask is not installed (extra `dask`)"))


@dataclass
class Cluster:
    """The processes of a cluster, and the files that they log to."""

    address: str
    folder: Path
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def add_worker(self) -> subprocess.Popen[bytes]:
        """Start a worker."""
        name = f"worker-{len(self.workers)}"
        arguments = [
            "--nthreads",
            "1",
            "--memory-limit",
            "1GB",
            "--dashboard-address",
            "127.0.0.1:0",
            "--no-nanny",
            "--name",
            name,
        ]
        arguments += ["--local-directory", str(self.folder / name), "--host", "127.0.0.1"]
        worker = start(["worker", self.address, *arguments], self.folder / f"{name}.log")
        self.workers.append(worker)
        return worker

    def log(self) -> str:
        """Return all that scheduler and workers have logged."""
        return "".join(path.read_text() for path in sorted(self.folder.glob("*.log")))

    def stop(self) -> None:
        """End every process of the cluster."""
        for process in (*self.workers, self.scheduler):
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait(timeout=10)


def start(arguments: list[str], log: Path) -> subprocess.Popen[bytes]:
    """Start ``dask ...`` as a process of its own."""
    # Workers compute with one thread each, whatever the machine has.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    with log.open("wb") as stream:
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *arguments], stdout=stream, stderr=subprocess.STDOUT, env=environment
        )


def start_cluster(folder: Path, workers: int = 2) -> Cluster:
    """Start a scheduler and workers, and wait until the scheduler listens."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    scheduler = start(
        ["scheduler", "--host", "127.0.0.1", "--port", str(port), "--dashboard-address", "127.0.0.1:0"],
        folder / "scheduler.log",
    )
    cluster = Cluster(f"tcp://127.0.0.1:{port}", folder, scheduler)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and scheduler.poll() is None:
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


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster for all tests of this process; those that kill something start their own."""
    running = start_cluster(tmp_path_factory.mktemp("cluster"))
    yield running
    running.stop()
