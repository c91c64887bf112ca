"""Print the figures of ``docs/scaling.md``: what a measure on Dask costs, part by part, at 100 million rows too.

Starts a scheduler and two workers of one thread each on this machine, and writes its tables to a temporary folder.

    python scripts/scaling_figures.py                        # some minutes on two cores
    python scripts/scaling_figures.py --rows 100000 200000   # less
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil

from local_cloaking.distributed import measure
from local_cloaking.measuring import Inputs

WORKERS = 2
PART_ROWS = 125_000
NUMBERS, CATEGORIES = 10, 5
#: Share of a column's spread by which avatars differ from their originals.
NOISE = {"near": 0.1, "released": 0.25}
#: What `measure` calls, and the part of the work under which its time is told.
PARTS = {
    "survey": "read and hash",
    "learn": "learn columns",
    "encode_rows": "encode",
    "summarise_table": "encode",
    "pair_by_order": "pair",
    "pair_by_key": "pair",
    "pairs_association": "fit and project",
    "count_rows": "compare rows",
    "near_copies": "compare rows",
    "sorted_columns": "compare rows",
    "Cells": "divide",
    "count": "count",
}
ORDER = ("read and hash", "learn columns", "encode", "pair", "fit and project", "compare rows", "divide", "count")


@dataclass
class Cost:
    """Seconds of each part, in all, and the greatest memory of a worker in bytes."""

    rows: int
    kind: str
    seconds: dict[str, float]
    total: float
    memory: int
    median: float


def write_tables(folder: Path, rows: int, kind: str) -> Inputs:
    """Write originals (a mixture of 12 Gaussians and categories that go with it) and avatars, part by part."""
    centres = np.random.default_rng(0).normal(size=(12, NUMBERS)) * 3
    for part, start in enumerate(range(0, rows, PART_ROWS)):
        rng = np.random.default_rng(part + 1)
        n = min(PART_ROWS, rows - start)
        group = rng.integers(0, 12, n)
        x = centres[group] + rng.normal(size=(n, NUMBERS)) * 0.9 ** np.arange(NUMBERS)
        levels = (group[:, None] + rng.integers(0, 2, (n, CATEGORIES))) % (3 + np.arange(CATEGORIES))
        y = x + rng.normal(size=x.shape) * x.std(axis=0) * NOISE[kind]
        moved = rng.random(levels.shape) < NOISE[kind] / 2
        others = np.where(moved, rng.permutation(levels), levels)
        keys = np.arange(start, start + n)
        for name, numbers, places in (("originals", x, levels), ("avatars", y, others)):
            frame = pd.DataFrame(numbers, columns=[f"x{i}" for i in range(NUMBERS)])
            for column in range(CATEGORIES):
                frame[f"c{column}"] = np.array(list("abcdefg"))[places[:, column]]
            (folder / name).mkdir(parents=True, exist_ok=True)
            frame.assign(id=keys).to_parquet(folder / name / f"part-{part:04d}.parquet", index=False)
    return Inputs(folder / "originals", folder / "avatars")


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, list[psutil.Process]]]:
    """Start a scheduler and workers, and end them."""
    file = folder / "scheduler.json"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    log = (folder / "cluster.log").open("wb")

    def start(*arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", *arguments, "--scheduler-file", str(file)]
        return subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)

    processes = [start("scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0")]
    while not file.exists():
        time.sleep(0.1)
    options = ("--nthreads", "1", "--no-nanny", "--memory-limit", "8GB", "--local-directory", str(folder))
    processes += [start("worker", *options) for _ in range(WORKERS)]
    try:
        from distributed import Client

        with Client(scheduler_file=str(file), set_as_default=False) as client:
            client.wait_for_workers(WORKERS, timeout=60)
            yield client.scheduler.address, [psutil.Process(process.pid) for process in processes[1:]]
    finally:
        for process in processes:
            process.kill()
        log.close()


@contextmanager
def timed() -> Iterator[dict[str, float]]:
    """Add up the seconds of each part of a measure; a part includes what it waits for."""
    seconds = dict.fromkeys(ORDER, 0.0)
    kept = {name: getattr(measure, name) for name in PARTS if name != "count"}
    count = measure.Cells.count

    def watched(name: str, function: Any) -> Any:
        def run(*args: Any, **options: Any) -> Any:
            started = time.perf_counter()
            try:
                return function(*args, **options)
            finally:
                seconds[PARTS[name]] += time.perf_counter() - started

        return run

    try:
        for name, function in kept.items():
            setattr(measure, name, watched(name, function))
        kept["Cells"].count = watched("count", count)
        yield seconds
    finally:
        kept["Cells"].count = count
        for name, function in kept.items():
            setattr(measure, name, function)


@contextmanager
def greatest_memory(workers: list[psutil.Process]) -> Iterator[list[int]]:
    """Watch the memory of the workers."""
    greatest, over = [0], threading.Event()

    def watch() -> None:
        while not over.wait(0.2):
            greatest[0] = max(greatest[0], *(worker.memory_info().rss for worker in workers))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield greatest
    finally:
        over.set()
        watcher.join()


def cost(folder: Path, rows: int, kind: str, key: str | None) -> Cost:
    """Measure once, on a cluster of its own, after a small measure that makes the workers import and compile."""
    inputs = write_tables(folder / "tables", rows, kind)
    warm = write_tables(folder / "warm", 4_000, kind)
    options: dict[str, Any] = {"key": key} if key else {"drop": ["id"]}
    with cluster(folder) as (address, workers):
        measure.measure_partitions(warm, scheduler=address, **options)
        with greatest_memory(workers) as memory, timed() as seconds:
            started = time.perf_counter()
            measured = measure.measure_partitions(inputs, scheduler=address, **options)
            total = time.perf_counter() - started
    return Cost(rows, kind, seconds, total, memory[0], measured.result.median)


def print_costs(costs: list[tuple[str, Cost]]) -> None:
    """Print seconds, memory and Local Cloaking of each measure."""
    print(f"| avatars | rows | {' | '.join(ORDER)} | in all | worker | Local Cloaking |")
    print("| --- " * (len(ORDER) + 5) + "|")
    for name, one in costs:
        seconds = " | ".join(f"{one.seconds[part]:.1f}" for part in ORDER)
        memory = f"{one.memory / 1e9:.2f} GB"
        print(f"| {name} | {one.rows:,} | {seconds} | {one.total:.1f} s | {memory} | {one.median:g} |")


def print_forecast(costs: list[tuple[str, Cost]]) -> None:
    """Print what 100 million rows would take, from the two sizes that were measured of each kind."""
    print("\n| avatars | counting grows as | seconds of a core | hours on 16 | on 64 | on 256 |")
    print("| --- | --- | --- | --- | --- | --- |")
    for kind in NOISE:
        small, large = (one for name, one in costs if name == kind)
        growth = math.log(large.seconds["count"] / small.seconds["count"]) / math.log(large.rows / small.rows)
        times = 100_000_000 / large.rows
        rest = (large.total - large.seconds["count"]) * times
        work = WORKERS * (rest + large.seconds["count"] * times ** max(1.0, growth))
        hours = " | ".join(f"{work / cores / 3600:.2g}" for cores in (16, 64, 256))
        print(f"| {kind} | n^{growth:.2f} | {work:,.0f} | {hours} |")
    small, large = (one for name, one in costs if name == "near")
    per_row = (large.memory - small.memory) * WORKERS / (large.rows - small.rows)
    print(f"\nMemory of all workers: {per_row:,.0f} bytes a row; 100 million rows: {per_row / 10:,.0f} GB.")


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, nargs=2, default=(250_000, 1_000_000))
    rows = parser.parse_args().rows
    costs: list[tuple[str, Cost]] = []
    for kind, key in (("near", None), ("released", None), ("near", "id")):
        for n in rows if key is None else rows[1:]:
            with tempfile.TemporaryDirectory() as folder:
                name = f"{kind}, by key" if key else kind
                costs.append((name, cost(Path(folder), n, kind, key)))
                print(f"{name}, {n:,} rows: {costs[-1][1].total:.0f} s", file=sys.stderr)
    columns = f"{NUMBERS} numbers, {CATEGORIES} categories"
    print(f"{WORKERS} workers of one thread, {columns}, ncp 5, partitions of {PART_ROWS:,} rows; seconds\n")
    print_costs(costs)
    print_forecast([(name, one) for name, one in costs if name in NOISE])


if __name__ == "__main__":
    main()
