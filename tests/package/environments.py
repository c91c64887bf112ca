"""Clean environments, as a user makes them: outside the checkout, with nothing of this process in them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

#: What would let this checkout, or this machine's Airflow, into an environment that is to be clean.
_OURS = ("AIRFLOW", "PYTHON", "LOCAL_CLOAKING", "VIRTUAL_ENV")


@dataclass(frozen=True)
class Environment:
    """A virtual environment in a folder of its own."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "venv" / "bin" / "python"

    @property
    def variables(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        return {
            **kept,
            "PATH": f"{self.python.parent}{os.pathsep}{kept['PATH']}",
            "COLUMNS": "200",
            "AIRFLOW_HOME": str(self.folder / "airflow"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.folder / "dags"),
            "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
        }

    def run(self, *command: str | Path, expected: int = 0, **variables: str) -> str:
        """Run one of its commands in its folder; return what it printed."""
        done = subprocess.run(
            [str(self.python.parent / command[0]), *map(str, command[1:])],
            cwd=self.folder,
            env={**self.variables, **variables},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == expected, done.stdout + done.stderr
        return done.stdout

    def install(self, *requirements: str, constraints: Path) -> None:
        """Install from the package index, with uv where it is there."""
        _call(*self._pip("install", "--quiet"), *requirements, "-c", str(constraints))

    def installed(self) -> dict[str, str]:
        """Return names and versions of what is in it."""
        listed = json.loads(_call(*self._pip("list", "--format=json")))
        return {entry["name"]: entry["version"] for entry in listed}

    def check(self) -> None:
        """Fail if a package's requirements are not met."""
        _call(*self._pip("check"))

    def _pip(self, command: str, *options: str) -> list[str]:
        if uv := shutil.which("uv"):
            return [uv, "pip", command, *options, "--python", str(self.python)]
        return [str(self.python), "-m", "pip", "--disable-pip-version-check", command, *options]


def new_environment(folder: Path) -> Environment:
    """Make an environment of this Python, without any package."""
    # Of a virtual environment's own Python the new one would know nothing.
    interpreter = str(Path(sys.executable).resolve())
    _call(interpreter, "-m", "venv", str(folder / "venv"))
    (folder / "dags").mkdir()
    return Environment(folder)


def _call(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
