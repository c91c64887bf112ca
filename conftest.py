"""An Airflow of the tests' own: set before anything imports airflow, which reads its settings on import."""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

# Looking for examples in a module imports it; this one needs numba (extra `fast`).
collect_ignore = [] if importlib.util.find_spec("numba") else ["src/local_cloaking/neighbours/compiled.py"]

_HOME = Path(tempfile.mkdtemp(prefix="local-cloaking-tests-"))
_OWNER = os.getpid()


def _remove() -> None:
    if os.getpid() == _OWNER:  # not in a forked task
        shutil.rmtree(_HOME, ignore_errors=True)


atexit.register(_remove)

for _name in [name for name in os.environ if name.startswith("AIRFLOW")]:
    del os.environ[_name]
(_HOME / "dags").mkdir()
os.environ.update(
    {
        "AIRFLOW_HOME": str(_HOME),
        "AIRFLOW__CORE__DAGS_FOLDER": str(_HOME / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{_HOME / 'airflow.db'}",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
        "AIRFLOW__LOCAL_CLOAKING__AUDIT_PATH": str(_HOME / "audit"),
        "LOCAL_CLOAKING_DEMO_DATA": str(_HOME / "demo_data"),
    }
)
