"""What is depended on: each with its reason, and a licence that lets others use what is built on it."""

from __future__ import annotations

import json
import re
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest

from tests.scripts import loaded

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
#: Of what a user installs.
PERMISSIVE = re.compile(
    r"Apache|MIT\b|BSD|0BSD|ISC\b|Zlib|CC0|Python Software Foundation|PSF|HPND|Unlicense", re.IGNORECASE
)
#: Also of what only the project's own work needs.
FOR_WORK = re.compile(rf"{PERMISSIVE.pattern}|MPL-2\.0|Mozilla Public License 2", re.IGNORECASE)
WORK = ("dev", "fuzz", "docs")
#: Said in their repositories, and not in what is installed.
SAID_ELSEWHERE = {"atheris": "Apache-2.0"}
#: matplotlib calls its own licence so; it is that of Python.
STRONG = re.compile(r"\b(A|L)?GPL|GNU|SSPL|BUSL|Commons Clause|proprietary", re.IGNORECASE)


def direct() -> dict[str, set[str]]:
    """Return the packages depended on, each with the extras that ask for it."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    asked = {"": project["dependencies"], **project["optional-dependencies"]}
    found: dict[str, set[str]] = {}
    for extra, requirements in asked.items():
        for requirement in requirements:
            name = re.match(r"[A-Za-z0-9_.-]+", requirement)
            assert name is not None
            found.setdefault(name[0], set()).add(extra)
    found.pop("local-cloaking")
    return found


def test_each_has_a_reason_beside_it() -> None:
    lines = PROJECT.read_text().splitlines()
    for name in direct():
        places = [
            place for place, line in enumerate(lines) if re.match(rf'\s+"{re.escape(name)}[^A-Za-z0-9_.-]', line)
        ]
        assert places, f"{name} does not stand on a line of its own"
        for place in places:
            reason = re.search(r'",? +# (.{3,})', lines[place]) or re.match(r"\s+# (.{3,})", lines[place - 1])
            assert reason, f"{name} is depended on without a reason"


@pytest.mark.parametrize("name", sorted(direct()))
def test_each_has_a_licence_that_lets_others_use_it(name: str) -> None:
    licence = SAID_ELSEWHERE.get(name) or licence_of(name)
    allowed = FOR_WORK if direct()[name] <= set(WORK) else PERMISSIVE
    assert allowed.search(licence), f"{name}: {licence[:200]}"
    assert not STRONG.search(licence), f"{name}: {licence[:200]}"


def licence_of(name: str) -> str:
    """Return what an installed package says of its licence, in few words."""
    try:
        said = metadata(name)
    except PackageNotFoundError:
        pytest.skip(f"{name} is not installed")
    if said.get("License-Expression"):
        return str(said["License-Expression"])
    named = [line for line in said.get_all("Classifier") or [] if line.startswith("License ::")]
    # Some give the whole text: its first line names it.
    return " ".join([*named, (said.get("License") or "").strip().partition("\n")[0][:100]])


# What `make audit` makes of pip-audit ----------------------------------------------------------------------------


def told(code: int, packages: list[dict[str, object]] | None = None, errors: str = "") -> tuple[str, bool]:
    printed = "" if packages is None else json.dumps({"dependencies": packages})
    with loaded("audit") as script:
        lines, fine = script.told("pins.txt", code, printed, errors)
    return "\n".join(lines), fine


def test_a_known_vulnerability_fails_the_audit() -> None:
    found = {"name": "jinja2", "version": "3.0", "vulns": [{"id": "CVE-1", "fix_versions": ["3.1"]}]}
    said, fine = told(1, [{"name": "fine", "version": "1", "vulns": []}, found])
    assert not fine
    assert said == "pip-audit: pins.txt: jinja2 3.0: CVE-1, mended in 3.1"


def test_without_a_way_to_the_database_it_says_so_and_fails_nothing() -> None:
    errors = "...\nrequests.exceptions.ConnectionError: HTTPSConnectionPool(...): Max retries exceeded"
    said, fine = told(1, None, errors)
    assert fine
    assert "NOT LOOKED AT" in said


@pytest.mark.parametrize(
    ("code", "packages", "errors"),
    [
        (1, None, "ERROR: invalid requirement in pins.txt"),
        (1, None, ""),
        (0, [], ""),
        (0, None, ""),
        (1, [{"name": "a", "version": "1", "vulns": []}], "something else"),
        (0, [{"name": "a", "skip_reason": "not found on the index"}], ""),
    ],
)
def test_whatever_else_goes_wrong_fails_the_audit(
    code: int, packages: list[dict[str, object]] | None, errors: str
) -> None:
    assert not told(code, packages, errors)[1]
