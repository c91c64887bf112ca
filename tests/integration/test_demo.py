"""The demonstration as a user runs it, and its DAG in other hands."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from tests.integration.conftest import run_file

CHECKOUT = Path(__file__).resolve().parents[2]
DAG_FILE = CHECKOUT / "dags" / "local_cloaking_demo.py"

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("lifelines") is None, reason="lifelines is not installed (extra `demo`)"
)


def demo(home: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(CHECKOUT / "scripts" / "demo.py"), "--home", str(home), *options],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
        timeout=300,
        check=False,
    )


@pytest.mark.stack
def test_the_demonstration_passes_and_then_fails_as_the_readme_says(tmp_path):
    passed = demo(tmp_path)
    assert passed.returncode == 0, passed.stdout + passed.stderr
    lines = dict(line.split(None, 1) for line in passed.stdout.splitlines() if len(line.split(None, 1)) == 2)
    assert lines["verdict"].strip() == "passed"
    for name in ("Local Cloaking", "hidden rate", "individuals", "ncp", "k", "threshold", "warnings", "record"):
        assert any(line.startswith(name) for line in passed.stdout.splitlines()), name
    assert len(passed.stdout.splitlines()) < 20
    assert "Traceback" not in passed.stdout + passed.stderr
    released = list((tmp_path / "demo_data").rglob("released/avatars.csv"))
    assert len(released) == 1

    failed = demo(tmp_path, "--threshold", "50")
    assert failed.returncode != 0
    last = "\n".join(failed.stdout.splitlines()[-3:])
    assert "Measured 10, threshold 50." in last
    assert "raise k" in last
    assert "now 20" in last
    assert "Airflow makes its database" not in failed.stdout
    assert list((tmp_path / "demo_data").rglob("released/avatars.csv")) == released
    verdicts = [json.loads(path.read_text()) for path in (tmp_path / "local_cloaking").rglob("record.json")]
    assert sorted(record["verdict"] for record in verdicts) == ["below_threshold", "passed"]


@pytest.fixture
def demo_dag(airflow_home: Path):
    link = airflow_home / "dags" / DAG_FILE.name
    link.write_text(DAG_FILE.read_text())
    yield link
    link.unlink()


def test_the_dag_of_the_demonstration(demo_dag):
    run = run_file(demo_dag)
    assert run.state == "success"
    assert list(run.states) == ["avatarise", "local_cloaking", "check", "publish"] or set(run.states) == {
        "avatarise",
        "local_cloaking",
        "check",
        "publish",
    }
    measured = run.result("local_cloaking")
    assert (measured["n"], measured["ncp"], measured["k"], measured["space"]) == (2139, 5, 20, "handed over")
    assert 9 <= measured["local_cloaking"] <= 11
    released = pd.read_csv(run.result("publish"))
    avatars = pd.read_csv(run.result("avatarise")["avatars"])
    assert "pidnum" not in released.columns
    assert list(released.columns) == [name for name in avatars.columns if name != "pidnum"]
    assert not released["wtkg"].equals(avatars["wtkg"])
    assert sorted(released["wtkg"]) == sorted(avatars["wtkg"])


def test_a_larger_k_reaches_a_higher_threshold(demo_dag):
    run = run_file(demo_dag, {"k": 50, "threshold": 15, "ncp": 5})
    assert run.state == "success"
    assert 16 <= run.result("local_cloaking")["local_cloaking"] <= 20


def test_below_the_threshold_nothing_is_published(demo_dag):
    run = run_file(demo_dag, {"threshold": 50})
    assert run.state == "failed"
    assert run.tries["check"] == 1
    assert run.states["publish"] == "upstream_failed"
