"""Wheel and sdist, built once, and the environments that they are installed into."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.package.environments import Environment, new_environment

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Built:
    """What `python -m build` made."""

    wheel: Path
    sdist: Path


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Build the sdist, and from it the wheel, as a release does."""
    folder = tmp_path_factory.mktemp("built")
    installer = ["--installer", "uv"] if shutil.which("uv") else []
    done = subprocess.run(
        [sys.executable, "-m", "build", *installer, "--outdir", str(folder), str(ROOT)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return Built(wheel, sdist)


@pytest.fixture(scope="session")
def alone(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """The wheel without Airflow."""
    environment = new_environment(tmp_path_factory.mktemp("alone"))
    environment.install(str(built.wheel), constraints=ROOT / "constraints.txt")
    yield environment
    shutil.rmtree(environment.folder)
