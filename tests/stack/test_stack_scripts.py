"""What `make up` and the image's build run: the secrets, the constraints, the make targets; no engine."""

from __future__ import annotations

import base64
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.scripts import loaded
from tests.stack.expected import SECRETS

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What make needs of the checkout, in a place of its own."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(CHECKOUT / "scripts/stack_secrets.py", tmp_path / "scripts")
    shutil.copy(CHECKOUT / "Makefile", tmp_path)
    return tmp_path


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    """A stand-in for `docker compose`: writes down what it is asked, refuses what the file `refuses` names."""
    path = tmp_path / "compose"
    path.write_text(
        "#!/bin/sh\n"
        f"cd {tmp_path}\n"
        'echo "${COMPOSE_PROFILES:-none} ${AIRFLOW_EXECUTOR:-none} ${COMPOSE_PROJECT_NAME:-none} $*" >> asked\n'
        'case " $* " in *" exec "*) echo http://localhost:8080 ;; esac\n'
        'if [ -f refuses ]; then case " $* " in *" $(cat refuses) "*) exit 1 ;; esac; fi\n'
    )
    path.chmod(0o755)
    return path


def make(folder: Path, target: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "COMPOSE"))}
    return subprocess.run(
        ["make", "--no-print-directory", target, *options],
        cwd=folder, env={**kept, **environment}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def values(path: Path) -> dict[str, str]:
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


# Secrets ---------------------------------------------------------------------------------------------------------


def test_every_secret_is_fresh_long_and_taken_by_a_url_as_it_is(tmp_path):
    with loaded("stack_secrets") as script:
        made = []
        for name in ("one", "two"):
            assert script.write_secrets(tmp_path / name)
            made.append(values(tmp_path / name))
    assert set(made[0]) == SECRETS | {"AIRFLOW_UID"}
    for name in SECRETS:
        assert made[0][name] != made[1][name]
        assert len(made[0][name]) >= 24
        assert set(made[0][name]) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=")
    assert len(base64.urlsafe_b64decode(made[0]["AIRFLOW_FERNET_KEY"])) == 32


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_only_the_owner_may_read_them_whatever_the_umask(tmp_path, umask):
    path = tmp_path / ".env"
    before = os.umask(umask)
    try:
        with loaded("stack_secrets") as script:
            script.write_secrets(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [found.name for found in tmp_path.iterdir()] == [".env"]


@pytest.mark.parametrize("content", ["", "POSTGRES_PASSWORD=mine\n"])
def test_a_file_that_is_there_stays_as_it_is(tmp_path, content):
    path = tmp_path / ".env"
    path.write_text(content)
    with loaded("stack_secrets") as script:
        assert not script.write_secrets(path)
    assert path.read_text() == content
    assert [found.name for found in tmp_path.iterdir()] == [".env"]


def test_not_even_a_link_that_leads_nowhere_is_followed(tmp_path):
    (tmp_path / ".env").symlink_to(tmp_path / "elsewhere")
    with loaded("stack_secrets") as script:
        assert not script.write_secrets(tmp_path / ".env")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(("user", "expected"), [(0, "50000"), (1000, "1000")])
def test_the_stack_runs_as_who_wrote_them_but_never_as_root(monkeypatch, user, expected):
    with loaded("stack_secrets") as script:
        monkeypatch.setattr(os, "getuid", lambda: user)
        assert script.fresh()["AIRFLOW_UID"] == expected


def test_git_does_not_take_them():
    if not (CHECKOUT / ".git").exists():
        pytest.skip("not a checkout of git")
    asked = subprocess.run(["git", "check-ignore", "--quiet", ".env"], cwd=CHECKOUT, check=False)
    assert asked.returncode == 0


# Constraints of the image ----------------------------------------------------------------------------------------


def test_what_the_image_brings_of_airflow_stays_and_what_it_lacks_is_pinned():
    pins = [
        "apache-airflow==3.3.2",
        "apache-airflow-providers-http==6.3.0",
        "great-expectations==1.24.1",
        "numpy==2.4.6 ; python_full_version < '3.12'",
        "ruamel-yaml-clib==0.2.15",
        "Typing_Extensions==4.1",
        "",
    ]
    installed = {
        "apache-airflow": "3.3.2",
        "apache-airflow-providers-http": "6.1.0",
        "numpy": "2.3.0",
        "typing-extensions": "4.0",
    }
    with loaded("image_constraints") as script:
        assert script.canonical("Ruamel.YAML_clib") == "ruamel-yaml-clib"
        assert script.image_constraints(pins, installed) == [
            "apache-airflow==3.3.2",
            "apache-airflow-providers-http==6.1.0",
            "great-expectations==1.24.1",
            "ruamel-yaml-clib==0.2.15",
        ]


def test_the_constraints_are_printed_for_what_is_installed_here(tmp_path):
    (tmp_path / "pins.txt").write_text("pytest==0.1\nnot-installed-anywhere==1\n")
    script = CHECKOUT / "scripts/image_constraints.py"
    printed = subprocess.run(
        [sys.executable, script, tmp_path / "pins.txt"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert printed[-1] == "not-installed-anywhere==1"
    assert not any(line.startswith("pytest==") for line in printed)
    assert subprocess.run([sys.executable, script], capture_output=True, check=False).returncode == 2


# Make targets ----------------------------------------------------------------------------------------------------


def test_up_writes_the_secrets_once_builds_waits_and_says_where_to_go(checkout, engine):
    first = make(checkout, "up", COMPOSE=str(engine))
    assert first.returncode == 0, first.stderr
    secrets = (checkout / ".env").read_text()
    assert first.stdout.splitlines()[-3:] == [
        "Airflow    http://localhost:8080",
        "user       admin",
        "password   AIRFLOW_ADMIN_PASSWORD in .env",
    ]
    assert values(checkout / ".env")["AIRFLOW_ADMIN_PASSWORD"] not in first.stdout + first.stderr
    asked = (checkout / "asked").read_text()
    assert asked.index(" build\n") < asked.index(" up --detach --wait")

    again = make(checkout, "up", COMPOSE=str(engine))
    assert again.returncode == 0
    assert (checkout / ".env").read_text() == secrets


def test_up_with_profiles_sets_the_executor_that_celery_needs(checkout, engine):
    assert make(checkout, "up", "PROFILES=celery,dask", COMPOSE=str(engine)).returncode == 0
    assert "celery,dask CeleryExecutor none up --detach" in (checkout / "asked").read_text()
    (checkout / "asked").unlink()
    assert make(checkout, "up", "PROFILES=dask", COMPOSE=str(engine)).returncode == 0
    assert "dask none none up --detach" in (checkout / "asked").read_text()


def test_up_that_fails_shows_what_was_logged(checkout, engine):
    (checkout / "refuses").write_text("up")
    failed = make(checkout, "up", COMPOSE=str(engine))
    assert failed.returncode == 2
    assert "did not come up" in failed.stdout
    assert "password" not in failed.stdout
    assert "logs --no-color --tail 20 airflow-init" in (checkout / "asked").read_text()


@pytest.mark.parametrize("target", ["up", "down"])
def test_without_an_engine_they_say_what_is_needed(checkout, target):
    failed = make(checkout, target, COMPOSE="there-is-no-such-command")
    assert failed.returncode == 2
    assert "Docker with Compose" in failed.stdout
    assert not (checkout / ".env").exists()


def test_down_keeps_the_data_and_clean_does_not(checkout, engine):
    (checkout / ".env").touch()
    assert make(checkout, "down", COMPOSE=str(engine)).returncode == 0
    (down,) = [line for line in (checkout / "asked").read_text().splitlines() if " down " in line]
    assert down == "none none none --profile * down --remove-orphans"
    (checkout / "asked").unlink()
    assert make(checkout, "clean", COMPOSE=str(engine)).returncode == 0
    (clean,) = [line for line in (checkout / "asked").read_text().splitlines() if " down " in line]
    assert clean == "none none none --profile * down --volumes --remove-orphans"
    # The secrets may hold what a user has put there, and are no data.
    assert (checkout / ".env").exists()


def test_clean_finds_the_stack_without_its_secrets(checkout, engine):
    assert make(checkout, "clean", COMPOSE=str(engine)).returncode == 0
    assert "none none local-cloaking --profile * down --volumes" in (checkout / "asked").read_text()


def test_clean_works_where_there_is_no_engine(checkout):
    (checkout / ".venv").mkdir()
    assert make(checkout, "clean", COMPOSE="there-is-no-such-command").returncode == 0
    assert not (checkout / ".venv").exists()
