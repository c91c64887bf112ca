"""docker-compose.yml, held to the compose specification and to the rules of this stack, without an engine."""

from __future__ import annotations

import importlib.resources
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.stack.expected import ALWAYS, PROFILES, SECRETS

CHECKOUT = Path(__file__).parents[2]
TEXT = (CHECKOUT / "docker-compose.yml").read_text(encoding="utf-8")
#: As it is written; anchors and merge keys are resolved by the reader.
FILE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = FILE["services"]
RUNS_TASKS = {"airflow-scheduler", "airflow-worker"}
DOCKERFILE: str = SERVICES["airflow-init"]["build"]["dockerfile_inline"]

each_service = pytest.mark.parametrize("name", sorted(SERVICES))


def volumes_of(name: str) -> dict[str, tuple[str, bool]]:
    """Return, for each place in the container, what is mounted there, and whether it can only be read."""
    mounts = [volume.split(":") for volume in SERVICES[name].get("volumes", [])]
    return {mount[1]: (mount[0], mount[2:] == ["ro"]) for mount in mounts}


def default(value: Any) -> str:
    """Return a value as it is where no variable is set."""
    text = str(value)
    while (plain := re.sub(r"\$\{\w+:-([^${}]*)\}", r"\1", text)) != text:
        text = plain
    return text


# The specification -----------------------------------------------------------------------------------------------


def specification() -> dict[str, Any]:
    pytest.importorskip("check_jsonschema", reason="check-jsonschema is not installed (extra `dev`)")
    found = importlib.resources.files("check_jsonschema") / "builtin_schemas/vendor/compose-spec.json"
    return json.loads(found.read_text(encoding="utf-8"))


def violations(file: Any) -> list[str]:
    schema = specification()
    validator = jsonschema.validators.validator_for(schema)(schema)
    return [f"{'/'.join(map(str, error.absolute_path))}: {error.message}" for error in validator.iter_errors(file)]


def test_it_follows_the_compose_specification():
    assert violations(FILE) == []


@pytest.mark.parametrize("wrong", [{"image": 5}, {"restrat": "always"}, {"healthcheck": {"test": {}}}])
def test_the_specification_would_find_a_mistake(wrong):
    services = {**SERVICES, "redis": {**SERVICES["redis"], **wrong}}
    assert violations({**FILE, "services": services})


def test_there_are_no_obsolete_keys():
    assert "version" not in FILE
    for name, service in SERVICES.items():
        assert not {"links", "container_name", "volumes_from", "mem_limit", "cpus"} & set(service), name


# The services ----------------------------------------------------------------------------------------------------


def test_these_are_the_services_and_each_profile_adds_its_own():
    by_profile: dict[str, set[str]] = {}
    for name, service in SERVICES.items():
        for profile in service.get("profiles", [""]):
            by_profile.setdefault(profile, set()).add(name)
    assert by_profile == {"": ALWAYS, **PROFILES}


def test_tasks_run_in_the_scheduler_unless_asked_otherwise():
    for name in ALWAYS - {"postgres"}:
        assert default(SERVICES[name]["environment"]["AIRFLOW__CORE__EXECUTOR"]) == "LocalExecutor"


@each_service
def test_each_service_is_checked_restarted_limited_and_logs_little(name):
    service = SERVICES[name]
    check = service["healthcheck"]
    assert check["test"][0] in ("CMD", "CMD-SHELL")
    assert not check.get("disable")
    assert {"interval", "timeout", "retries"} <= set(check)
    # What ends must not start again.
    assert service["restart"] == ("no" if name == "airflow-init" else "unless-stopped")
    limits = service["deploy"]["resources"]["limits"]
    assert {"cpus", "memory", "pids"} <= set(limits)
    # An engine refuses more processors than the machine has.
    assert float(default(limits["cpus"])) <= 2
    assert service["logging"]["driver"] == "json-file"
    assert set(service["logging"]["options"]) == {"max-size", "max-file"}


@each_service
def test_no_service_is_root_or_can_become_it(name):
    service = SERVICES[name]
    user = default(service["user"]).split(":")[0]
    assert user not in ("", "0", "root")
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "cap_add", "devices", "pid", "ipc", "network_mode"} & set(service)


def test_the_image_is_not_root_either():
    assert re.findall(r"^USER (.*)$", DOCKERFILE, re.MULTILINE) in ([], ["airflow"])


def test_ports_are_open_on_this_machine_alone_unless_asked_otherwise():
    ports = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert list(ports) == ["airflow-apiserver"]
    assert [default(port) for port in ports["airflow-apiserver"]] == ["127.0.0.1:8080:8080"]


def test_every_service_waits_for_a_database_that_is_ready():
    assert SERVICES["airflow-init"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    for name in set(SERVICES) - {"postgres", "redis", "airflow-init", "dask-worker"}:
        first = SERVICES[name]["depends_on"]["airflow-init"]
        assert first == {"condition": "service_completed_successfully"}, name
    assert SERVICES["airflow-worker"]["depends_on"]["redis"] == {"condition": "service_healthy"}
    assert SERVICES["dask-worker"]["depends_on"] == {"dask-scheduler": {"condition": "service_healthy"}}


# Volumes ---------------------------------------------------------------------------------------------------------


def test_evidence_lies_on_a_volume_that_tasks_and_api_server_share():
    for name in ALWAYS - {"postgres"} | {"airflow-worker"}:
        assert SERVICES[name]["environment"]["AIRFLOW__LOCAL_CLOAKING__AUDIT_PATH"] == "/opt/airflow/audit"
    for name in RUNS_TASKS:
        assert volumes_of(name)["/opt/airflow/audit"] == ("audit", False)
    assert volumes_of("airflow-apiserver")["/opt/airflow/audit"] == ("audit", True)
    assert "audit" in FILE["volumes"]


def test_who_has_no_business_with_personal_data_does_not_see_it():
    place = SERVICES["airflow-scheduler"]["environment"]["LOCAL_CLOAKING_DEMO_DATA"]
    with_tables = {name for name in SERVICES if place in volumes_of(name)}
    assert with_tables == RUNS_TASKS | {"airflow-init", "dask-worker"}
    assert volumes_of("dask-worker")[place] == ("data", True)


def test_dags_and_plugins_can_only_be_read():
    mounted = {"dags": set(), "plugins": set()}
    for name in SERVICES:
        for place, (source, read_only) in volumes_of(name).items():
            if source.startswith((".", "/")):
                folder = Path(source).name
                assert (place, read_only) == (f"/opt/airflow/{folder}", True), f"{name}: {source}"
                mounted[folder].add(name)
    assert mounted["dags"] == RUNS_TASKS | {"airflow-dag-processor", "airflow-triggerer"}
    assert mounted["plugins"] == mounted["dags"] | {"airflow-apiserver"}
    for folder in mounted:
        assert (CHECKOUT / folder).is_dir()


def test_each_named_volume_is_used_and_declared():
    used = {source for name in SERVICES for source, _ in volumes_of(name).values() if source[0] not in "./"}
    assert used == set(FILE["volumes"])


def test_every_setting_is_documented():
    documented = (CHECKOUT / "docs/stack.md").read_text(encoding="utf-8")
    settings = set(re.findall(r"\$\{(\w+):-", TEXT))
    assert settings
    assert [name for name in sorted(settings) if f"`{name}`" not in documented] == []


# Secrets ---------------------------------------------------------------------------------------------------------


def test_each_secret_is_asked_for_and_none_has_a_default():
    asked = dict(re.findall(r"\$\{(\w+):\?([^}]*)\}", TEXT))
    assert set(asked) == SECRETS
    for name, message in asked.items():
        assert "make up" in message, name
    for name in SECRETS:
        assert not re.search(rf"\$\{{{name}:?-", TEXT), name


@each_service
def test_no_service_holds_a_secret_of_its_own(name):
    for variable, value in SERVICES[name].get("environment", {}).items():
        if re.search(r"PASSWORD|SECRET|KEY|AUTH$|_CONN$|BROKER|BACKEND", variable):
            assert re.search(r"\$\{(" + "|".join(SECRETS) + r")\b", value), f"{name}: {variable}"


def test_dask_whose_port_runs_code_has_no_secret_and_a_network_of_tasks_alone():
    for name in PROFILES["dask"]:
        assert set(SERVICES[name]["environment"]) == {"CONNECTION_CHECK_MAX_COUNT", "OMP_NUM_THREADS"}
        assert SERVICES[name]["networks"] == ["dask"]
    there = {name for name in SERVICES if "dask" in SERVICES[name].get("networks", [])}
    assert there == RUNS_TASKS | PROFILES["dask"]


# The image -------------------------------------------------------------------------------------------------------


def pinned_airflow() -> str:
    return re.search(r"^apache-airflow==(\S+)$", (CHECKOUT / "constraints.txt").read_text(), re.MULTILINE)[1]


def test_there_is_one_image_of_the_airflow_that_the_package_is_pinned_to():
    version = pinned_airflow()
    assert re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) == [f"apache/airflow:{version}-python3.12"]
    assert [name for name in SERVICES if "build" in SERVICES[name]] == ["airflow-init"]
    images = {SERVICES[name]["image"] for name in SERVICES} - {"postgres:17-bookworm", "redis:7.2-bookworm"}
    assert images == {f"local-cloaking-airflow:{version}"}
    # Repeated, so that no dependency takes Airflow to another version.
    assert f'"apache-airflow=={version}"' in DOCKERFILE
    classifiers = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["classifiers"]
    assert "Programming Language :: Python :: 3.12" in classifiers


def test_the_image_has_the_package_with_its_demonstration():
    assert default(SERVICES["airflow-init"]["build"]["args"]["EXTRAS"]).split(",") == ["demo", "dask"]
    assert "<<" not in DOCKERFILE, "older engines know no here-documents"


def test_a_change_of_source_does_not_install_the_dependencies_again():
    dependencies, package, *more = DOCKERFILE.split("pip install")[:-1]
    assert not more
    assert copied_in(dependencies) == {"pyproject.toml", "constraints.txt", "scripts/image_constraints.py"}
    assert copied_in(package) == {"LICENSE", "README.md", "src"}
    assert "--no-deps" in DOCKERFILE.split("pip install")[-1]


def copied_in(dockerfile: str) -> set[str]:
    return {name for line in dockerfile.splitlines() if line.startswith("COPY") for name in line.split()[2:-1]}


def test_the_engine_gets_what_is_copied_and_nothing_else():
    lines = (CHECKOUT / ".dockerignore").read_text().splitlines()
    allowed = {line[1:] for line in lines if line.startswith("!")}
    copied = copied_in(DOCKERFILE)
    assert "*" in lines
    assert allowed == copied
    for name in copied:
        assert (CHECKOUT / name).exists(), name
