"""The documentation says what is so: its commands and examples run, and its names exist."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import local_cloaking
from local_cloaking.cli import app
from tests.documented import DOCS, EXAMPLES, FOLDER, PAGES, ROOT, SOURCES, Block, blocks, included, write_tables

pytestmark = pytest.mark.package

#: Commands that need what no test of this file starts; others do (tests/distributed, tests/test_cli_*.py).
ELSEWHERE = ("tcp://", "s3://", "make-avatars")


def run(*command: Any, folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [str(part) for part in command],
        cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tables, and what the command line made of them."""
    folder = tmp_path_factory.mktemp("measured")
    write_tables(folder)
    shutil.copy(folder / "avatars-made.csv", folder / "avatars.csv")
    said = CliRunner().invoke(
        app,
        ["measure", str(folder / "originals.csv"), str(folder / "avatars.csv"), "--key", "id", "--threshold", "5",
         "--json", str(folder / "record.json")],
    )  # fmt: skip
    assert said.exit_code == 0, said.output
    return folder


# Commands -----------------------------------------------------------------------------------------------------


def commands() -> list[tuple[Block, str]]:
    found = []
    for block in blocks():
        for line in block.text.replace("\\\n", " ").splitlines():
            command = line.split("  #")[0].strip()
            if command.startswith("local-cloaking ") and not any(sign in command for sign in ELSEWHERE):
                found.append((block, command))
    return found


def test_commands_are_found() -> None:
    pages = {block.page.name for block, _ in commands()}
    assert {"README.md", "record.md", "dpo.md", "dpo.fr.md"} <= pages


@pytest.mark.parametrize(
    ("block", "command"), commands(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_command_of_a_page_runs(block: Block, command: str, measured: Path, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    shutil.copytree(measured, folder)
    record = (folder / "record.json").read_bytes()
    given = command.replace("HASH", hashlib.sha256(record).hexdigest())
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        said = CliRunner().invoke(app, shlex.split(given)[1:])
    assert said.exit_code == 0, said.output


# Examples -----------------------------------------------------------------------------------------------------


def test_every_example_stands_on_a_page_and_every_page_shows_the_file_itself() -> None:
    examples = {path for path in EXAMPLES.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert examples == {path for path in included() if EXAMPLES in path.parents}


@pytest.mark.parametrize("name", ["measure", "formula"])
def test_script_prints_what_the_page_says(name: str, tmp_path: Path) -> None:
    done = run(sys.executable, EXAMPLES / "python" / f"{name}.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (EXAMPLES / "python" / f"{name}.txt").read_text()


def test_first_commands_measure_verify_and_report(measured: Path, tmp_path: Path) -> None:
    shutil.copy(measured / "originals.csv", tmp_path)
    done = run("sh", "-e", EXAMPLES / "shell" / "first_measure.sh", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "verdict         passed" in done.stdout
    assert '<html lang="fr"' in (tmp_path / "rapport.html").read_text()


def plain_blocks() -> list[Block]:
    """Blocks of Python that are no DAG."""
    return [
        block
        for block in blocks()
        if (block.kind == "python" or block.text.startswith("import "))
        and "airflow" not in block.text
        and block.page != SOURCES
    ]


@pytest.mark.parametrize("block", plain_blocks(), ids=lambda block: block.name)
def test_block_of_python_runs(block: Block, measured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(measured)
    exec(compile(block.text.replace(FOLDER, str(measured)), block.name, "exec"), {})


def test_blocks_of_python_are_found() -> None:
    assert {"README.md", "record.md", "page.md"} <= {block.page.name for block in plain_blocks()}


# Names --------------------------------------------------------------------------------------------------------


def public_elsewhere() -> set[str]:
    page = (DOCS / "reference" / "index.md").read_text()
    return set(re.findall(r"`(local_cloaking(?:\.\w+)+)`", page)) - {
        "local_cloaking.__all__",
        "local_cloaking.airflow.__all__",
    }


def test_listed_names_exist_and_are_described() -> None:
    reference = (DOCS / "reference" / "python.md").read_text()
    names = public_elsewhere()
    assert names
    for name in names:
        module, _, attribute = name.rpartition(".")
        assert getattr(import_module(module), attribute).__doc__
        assert f"::: {name}\n" in reference, name


def test_pages_use_public_names_alone() -> None:
    for page in PAGES:
        text = page.read_text()
        used = set(re.findall(r"local_cloaking\.audit\.\w+\.\w+", text))
        imported = re.findall(r"from (local_cloaking[\w.]*) import ([\w, ]+)", text)
        for module, names in imported:
            used |= {f"{module}.{name.strip()}" for name in names.split(",")}
        public = public_elsewhere() | {f"{room.__name__}.{name}" for room in rooms() for name in room.__all__}
        assert used - public == set(), page.name


def rooms() -> list[Any]:
    return [local_cloaking, import_module("local_cloaking.airflow")]


def test_reference_describes_both_rooms_whole() -> None:
    assert "::: local_cloaking\n" in (DOCS / "reference" / "python.md").read_text()
    assert "::: local_cloaking.airflow\n" in (DOCS / "reference" / "airflow.md").read_text()


# What is installed elsewhere ----------------------------------------------------------------------------------


def test_files_of_the_installing_page_name_this_version_and_the_newest_airflow() -> None:
    folder = EXAMPLES / "install"
    version = local_cloaking.__version__
    for path in folder.iterdir():
        named = re.findall(r"local[_-]cloaking[^\n]*?(\d+\.\d+\.\d+)|tag: \"([^\"]+)\"", path.read_text())
        assert {one or other for one, other in named} == {version}, path.name
    pinned = re.search(r"^apache-airflow==(.+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert pinned
    assert f"FROM apache/airflow:{pinned[1]}\n" in (folder / "Dockerfile").read_text()
    assert f"local-cloaking:{version}" in (EXAMPLES / "dags" / "pod.py").read_text()


def test_values_of_the_helm_chart_mount_what_they_configure() -> None:
    yaml = pytest.importorskip("yaml")
    values = yaml.safe_load((EXAMPLES / "install" / "values.yaml").read_text())
    store = values["config"]["local_cloaking"]["audit_path"]
    for component, read_only in (("workers", False), ("apiServer", True)):
        (mount,) = values[component]["extraVolumeMounts"]
        (volume,) = values[component]["extraVolumes"]
        assert (mount["mountPath"], mount.get("readOnly", False)) == (store, read_only)
        assert mount["name"] == volume["name"]
        assert volume["persistentVolumeClaim"]["claimName"]


@pytest.mark.parametrize(
    "path", sorted((EXAMPLES / "install").glob("requirements-*.txt")), ids=lambda path: path.name
)
def test_requirements_are_requirements(path: Path) -> None:
    requirements = pytest.importorskip("packaging.requirements")
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith(("#", "--"))]
    (line,) = lines
    if line.startswith("/"):
        wheel, _, extra = line.partition("[")
        assert wheel.endswith("-py3-none-any.whl")
        assert extra == "airflow]"
    else:
        assert requirements.Requirement(line).extras == {"airflow"}


def test_changelog_tells_of_this_version() -> None:
    assert f"\n## {local_cloaking.__version__}" in (ROOT / "CHANGELOG.md").read_text()
