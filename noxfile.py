"""The matrix: each supported Python with each supported pandas. `make test-matrix`.

A part of the tests, chosen to touch what differs between them: the measure, the tables, the command line, and runs
of DAGs. The whole suite runs with one Python (`make test`, `make test-oldest`).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import nox

nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"

ROOT = Path(__file__).parent
#: The pandas of the matrix; fewer by PANDAS=3.
PANDAS = os.environ.get("PANDAS", "2.3 3").split()
TESTS = [
    "tests/test_import.py",
    "tests/test_metric.py",
    "tests/test_projection.py",
    "tests/test_gate.py",
    "tests/test_cli.py",
    "tests/tables/test_csv.py",
    "tests/tables/test_parquet.py",
    "tests/audit/test_kept_records.py",
    "tests/integration/test_documentation.py::test_first_gate_lets_the_avatars_leave_without_key_and_order",
]
#: What the tests need beside the package, pinned in constraints.txt as well.
COMPANIONS = ["pytest", "pytest-xdist", "hypothesis", "jsonschema", "packaging", "pyyaml"]


@nox.session(python=["3.11", "3.12", "3.13"])
@nox.parametrize("pandas", PANDAS)
def matrix(session: nox.Session, pandas: str) -> None:
    """Install the package, not its checkout, and run a part of the tests."""
    pins = (ROOT / "constraints.txt").read_text()
    constraints = Path(session.create_tmp()) / "constraints.txt"
    constraints.write_text(re.sub(r"(?m)^pandas==.*$", f"pandas=={pandas}.*", pins))
    session.install(".[airflow]", *COMPANIONS, "-c", str(constraints))
    session.run(
        "python", "-c", f"import pandas; assert pandas.__version__.startswith('{pandas}.'), pandas.__version__"
    )
    # What the interpreters lack is no failure here, whatever the environment asks of the other tests.
    session.run(
        "pytest",
        "-q",
        "-n",
        "2",
        "-p",
        "no:cacheprovider",
        "-m",
        "not stack",
        *TESTS,
        env={"LOCAL_CLOAKING_TEST_ALL": ""},
    )


@nox.session(python="3.12")
def client(session: nox.Session) -> None:
    """Hold the documentation's DAG around Octopize's client to the client itself, which the pins exclude."""
    newest = re.search(r"(?m)^apache-airflow==.*$", (ROOT / "constraints.txt").read_text())
    assert newest
    session.install(".[airflow]", newest[0], "octopize-avatar>=1.30", "pytest")
    test = "tests/integration/test_documentation.py::test_octopize_calls_the_client_as_it_is"
    session.run("pytest", "-q", "-p", "no:cacheprovider", "-m", "not stack", test)
