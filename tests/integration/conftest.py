"""Real Airflow runs: a migrated SQLite database, and DAGs run from a file as `airflow dags test` runs them."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.cluster import cluster
from tests.storage import endpoint

__all__ = ["cluster", "endpoint"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip, with the reason, where Airflow is not installed."""
    if importlib.util.find_spec("airflow") is None:
        here = Path(__file__).parent
        for item in items:
            if here in item.path.parents:
                item.add_marker(pytest.mark.skip(reason="apache-airflow is not installed (extra `airflow`)"))


def airflow_version() -> tuple[int, ...]:
    """Return the first two numbers of it, for what differs between versions."""
    return tuple(map(int, version("apache-airflow").split(".")[:2]))


@dataclass
class Run:
    """What is left of a run."""

    state: str
    states: dict[str, str]
    tries: dict[str, int]
    xcoms: dict[tuple[str, str], Any] = field(repr=False)

    def result(self, task: str) -> Any:
        """Return what a task pushed; tasks of a mapped one are named ``task[0]``."""
        return self.xcoms.get((task, "return_value"))


@pytest.fixture(scope="session")
def airflow_home() -> Path:
    """An AIRFLOW_HOME with a migrated database."""
    from airflow.utils.db import initdb

    initdb()
    return Path(os.environ["AIRFLOW_HOME"])


@pytest.fixture
def run_dag(airflow_home: Path) -> Iterator[Callable[..., Run]]:
    """Run a DAG given as the source of a file that names it ``dag``."""
    written: list[Path] = []

    def run(source: str, conf: dict[str, Any] | None = None, **options: Any) -> Run:
        for path in written:
            path.unlink(missing_ok=True)
        # A name of its own for each shape: Airflow 3.1 keeps the first shape of a name in memory.
        shape = hashlib.sha256(source.encode()).hexdigest()[:8]
        path = airflow_home / "dags" / f"dag_{shape}.py"
        path.write_text(textwrap.dedent(source).replace('DAG("', f'DAG("{shape}_'))
        written.append(path)
        return run_file(path, conf, **options)

    yield run
    for path in written:
        path.unlink(missing_ok=True)


def run_file(path: Path, conf: dict[str, Any] | None = None, **options: Any) -> Run:
    """Run the DAG of a file and return what is left of the run."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    dag_run = module.dag.test(run_conf=conf, **options)
    return _what_is_left(dag_run)


def _what_is_left(dag_run: Any) -> Run:
    from airflow import settings
    from airflow.models.taskinstance import TaskInstance
    from airflow.models.xcom import XComModel
    from sqlalchemy import select

    with settings.Session() as session:
        of_run = (TaskInstance.dag_id == dag_run.dag_id, TaskInstance.run_id == dag_run.run_id)
        tasks = session.scalars(select(TaskInstance).where(*of_run)).all()
        pushed = session.scalars(
            select(XComModel).where(XComModel.dag_id == dag_run.dag_id, XComModel.run_id == dag_run.run_id)
        ).all()
        return Run(
            state=str(dag_run.state),
            states={_name(task): str(task.state) for task in tasks},
            tries={_name(task): task.try_number for task in tasks},
            xcoms={(_name(x), x.key): XComModel.deserialize_value(x) for x in pushed},
        )


def _name(row: Any) -> str:
    return row.task_id if row.map_index < 0 else f"{row.task_id}[{row.map_index}]"


@dataclass
class Tables:
    """Two files, and how they were made."""

    originals: Path
    avatars: Path
    folder: Path


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    """Originals and avatars whose Local Cloaking lies between 2 and 50."""
    return make_tables(tmp_path)


def make_tables(folder: Path) -> Tables:
    """Write originals and avatars whose Local Cloaking lies between 2 and 50."""
    rng = np.random.default_rng(7)
    originals = pd.DataFrame(rng.normal(size=(400, 6)).round(4), columns=list("abcdef"))
    originals["arm"] = rng.choice(["placebo", "low", "high"], size=400)
    from local_cloaking import avatarise

    avatars = avatarise(originals, k=20, ncp=3, seed=1)
    for frame in (originals, avatars):
        frame.insert(0, "id", [f"{i:04d}" for i in range(400)])
    originals.to_csv(folder / "originals.csv", index=False)
    avatars.sample(frac=1, random_state=2).to_csv(folder / "avatars.csv", index=False)
    return Tables(folder / "originals.csv", folder / "avatars.csv", folder)
