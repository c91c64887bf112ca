"""The wheel alone, in clean environments: without Airflow, and beside a stock Airflow at both ends."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.package.conftest import ROOT, Built
from tests.package.environments import Environment, new_environment

import local_cloaking

pytestmark = pytest.mark.package

#: Originals and avatars, as a user has them.
MAKE_TABLES = """
import numpy as np, pandas as pd
from local_cloaking import avatarise
random = np.random.default_rng(7)
originals = pd.DataFrame(random.normal(size=(400, 6)).round(4), columns=list("abcdef"))
originals["arm"] = random.choice(["placebo", "low", "high"], size=400)
avatars = avatarise(originals, k=20, ncp=5, seed=1)
for name, table in (("originals", originals), ("avatars", avatars)):
    table.insert(0, "id", [f"{i:04d}" for i in range(400)])
    table.to_csv(f"{name}.csv", index=False)
"""

DAG = """
import pendulum
from airflow.sdk import DAG, task
from local_cloaking.airflow import *

with DAG("gated", schedule=None, start_date=pendulum.datetime(2026, 1, 1, tz="UTC"), params={{"threshold": 2}}):
    gate = local_cloaking_gate("gate", originals="{folder}/originals.csv", avatars="{folder}/avatars.csv",
                               key="id", threshold="{{{{ params.threshold }}}}", language="fr")

    @task
    def publish(verdict):
        print(require_passed(verdict, "{folder}/avatars.csv"))

    publish(gate.verdict)
"""

#: Airflow's own API server, with the plugin that it finds, asked by somebody who is logged in.
ASK_THE_PAGE = """
import json
from airflow.api_fastapi.app import create_app
from starlette.testclient import TestClient
client = TestClient(create_app(apps="core"), base_url="http://testserver")
nobody = client.get("/local-cloaking/").status_code
token = client.post("/auth/token", json={"username": "admin", "password": "secret"}).json()["access_token"]
client.cookies = {"_token": token}
answers = {name: client.get(f"/local-cloaking/{name}") for name in ("", "static/page.css", "static/page.js")}
print(json.dumps([nobody, {name: [found.status_code, len(found.text)] for name, found in answers.items()}]))
"""

TYPED = """
from local_cloaking import LocalCloaking, local_cloaking

def measure(originals, avatars):
    result: LocalCloaking = local_cloaking(originals, avatars, ncp=2)
    median: float = result.median
    wrong: str = result.n
"""
#: What else is installed takes mypy minutes to read, and is no matter of this package's annotations.
TYPED_SETTINGS = """
[mypy]
check_untyped_defs = True
follow_imports = skip
[mypy-local_cloaking.*]
follow_imports = normal
"""


def not_python(folder: Path) -> set[str]:
    """Templates, catalogues, schemas, style and script, marker of types: what a wheel easily lacks."""
    tracked = subprocess.run(
        ["git", "ls-files", "."], cwd=folder, capture_output=True, text=True, check=False
    ).stdout.splitlines()
    there = [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]
    found = {name for name in (tracked or there) if not name.endswith((".py", ".pyc"))}
    for kind in (".html.j2", ".css", ".js", ".po", ".schema.json"):
        assert any(name.endswith(kind) for name in found), kind
    return found


def test_the_wheel_holds_the_package_and_nothing_else(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        names = set(wheel.namelist())
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"local_cloaking"}
    source = ROOT / "src" / "local_cloaking"
    wanted = not_python(source) | {str(path.relative_to(source)) for path in source.rglob("*.py")}
    assert sorted(f"local_cloaking/{name}" for name in wanted) == sorted(
        name for name in names if name.startswith("local_cloaking/")
    )
    assert "local_cloaking/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert built.wheel.name == f"local_cloaking-{local_cloaking.__version__}-py3-none-any.whl"


def test_the_sdist_holds_what_its_tests_and_its_documentation_need(built: Built) -> None:
    with tarfile.open(built.sdist) as sdist:
        names = {name.split("/", 1)[1] for name in sdist.getnames()}
    for name in ("LICENSE", "CHANGELOG.md", "mkdocs.yml", "docs/index.md", "tests/test_metric.py", "Makefile"):
        assert name in names
    assert not any(name.startswith((".ci", ".git/", ".venv")) for name in names)


# Without Airflow ----------------------------------------------------------------------------------------------


def test_the_measure_report_and_command_line_need_no_airflow(alone: Environment) -> None:
    alone.check()
    assert not any(name.startswith("apache-airflow") for name in alone.installed())
    alone.run("python", "-c", MAKE_TABLES)
    record, report = alone.folder / "record.json", alone.folder / "rapport.html"
    measure = ("measure", "originals.csv", "avatars.csv", "--key", "id", "--json", record, "--report", report)
    alone.run("local-cloaking", *measure, "--lang", "fr", "--threshold", "2")
    assert json.loads(record.read_text())["verdict"] == "passed"
    assert "Seuil" in report.read_text()
    alone.run(
        "local-cloaking", "verify", "record.json", "--originals", "originals.csv", "--avatars", "avatars.csv"
    )
    alone.run("local-cloaking", "report", "record.json", "-o", "report.html")
    failed = ("local-cloaking", "measure", "originals.csv", "avatars.csv", "--key", "id", "--threshold", "300")
    alone.run(*failed, expected=1)


def test_import_loads_the_package_and_the_standard_library_alone(alone: Environment) -> None:
    code = (
        "import sys; before = set(sys.modules); import local_cloaking\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(new - set(sys.stdlib_module_names)))"
    )
    assert alone.run("python", "-c", code).strip() == "['local_cloaking']"
    # The same question finds others once a name is used.
    assert "numpy" in alone.run(
        "python", "-c", code.replace("import local_cloaking", "from local_cloaking import FAMD")
    )


def test_a_type_checker_reads_the_annotations_of_the_installed_package(alone: Environment) -> None:
    (alone.folder / "typed.py").write_text(TYPED)
    (alone.folder / "mypy.ini").write_text(TYPED_SETTINGS)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--python-executable", str(alone.python),
         "typed.py"],
        cwd=alone.folder, env=alone.variables, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    (error,) = [line for line in done.stdout.splitlines() if ": error:" in line] or [done.stdout + done.stderr]
    assert error.startswith("typed.py:7: error: Incompatible types in assignment"), error


# Beside a stock Airflow ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Beside:
    """An environment with a stock Airflow, and the wheel installed afterwards."""

    environment: Environment
    airflow: str
    before: dict[str, str] = field(repr=False)


@pytest.fixture(scope="session", params=["constraints-oldest.txt", "constraints.txt"], ids=["oldest", "newest"])
def beside(request: Any, built: Built, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    constraints = ROOT / request.param
    environment = new_environment(tmp_path_factory.mktemp("beside"))
    environment.install("apache-airflow", constraints=constraints)
    before = environment.installed()
    environment.install(f"local-cloaking[airflow] @ {built.wheel.as_uri()}", constraints=constraints)
    environment.run("airflow", "db", "migrate")
    yield Beside(environment, before["apache-airflow"], before)
    shutil.rmtree(environment.folder)


def test_a_stock_airflow_stays_as_it_was(beside: Beside) -> None:
    beside.environment.check()
    after = beside.environment.installed()
    assert {name: after.get(name) for name in beside.before} == beside.before
    assert beside.airflow == "3.1.1" or beside.airflow.startswith("3.3.")


def test_airflow_finds_the_provider_and_its_configuration(beside: Beside) -> None:
    (told,) = json.loads(
        beside.environment.run("airflow", "providers", "get", "local-cloaking", "--full", "-o", "json")
    )
    assert told["name"] == "Local Cloaking"
    assert told["versions"] == [local_cloaking.__version__]
    assert set(told["config"]["local_cloaking"]["options"]) == {"audit_path"}


def test_airflow_finds_the_plugin_by_its_entry_point(beside: Beside) -> None:
    plugins = json.loads(beside.environment.run("airflow", "plugins", "-o", "json"))
    (plugin,) = [found for found in plugins if found["name"] == "local_cloaking"]
    assert plugin["source"].startswith(f"local-cloaking=={local_cloaking.__version__}")
    assert [view["destination"] for view in plugin["external_views"]] == ["nav", "dag", "dag_run"]


def test_a_dag_runs_and_leaves_record_and_report(beside: Beside) -> None:
    environment = beside.environment
    environment.run("python", "-c", MAKE_TABLES)
    (environment.folder / "dags" / "gated.py").write_text(DAG.format(folder=environment.folder))
    environment.run("airflow", "dags", "test", "gated")
    (record,) = (environment.folder / "airflow" / "local_cloaking").rglob("record.json")
    assert json.loads(record.read_text())["verdict"] == "passed"
    # Templates and catalogue came with the wheel.
    assert '<html lang="fr"' in (record.parent / "report.html").read_text()
    environment.run("local-cloaking", "verify", record)


def test_the_api_server_serves_the_page_with_style_and_script(beside: Beside) -> None:
    passwords = beside.environment.folder / "passwords.json"
    passwords.write_text('{"admin": "secret"}')
    answered = beside.environment.run(
        *("python", "-c", ASK_THE_PAGE),
        AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS="admin:admin",
        AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE=str(passwords),
    )
    nobody, answers = json.loads(answered.splitlines()[-1])
    assert nobody == 401
    assert all(status == 200 and size > 500 for status, size in answers.values()), answers
