"""Looks for what is known to be dangerous: in the sources, by bandit; in what is depended on, by pip-audit.

    make audit

The vulnerabilities are those of the OSV database. Where it cannot be reached, that is said and nothing fails: then
nothing is known. Every finding fails, and so does whatever else goes wrong.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("src", "dags", "plugins", "scripts")
#: How pip-audit's own errors end where nobody answers.
_OUT_OF_REACH = re.compile(
    r"(requests\.exceptions\.(ConnectionError|ConnectTimeout|ReadTimeout|ProxyError|SSLError)|ConnectionError|"
    r"Name or service not known|Failed to resolve|Max retries exceeded|Tunnel connection failed|timed out)"
)


def sources_are_clean() -> bool:
    """Let bandit look at the sources; it prints what it finds."""
    command = [
        sys.executable,
        "-m",
        "bandit",
        "--quiet",
        "--recursive",
        "--configfile",
        "pyproject.toml",
        *SOURCES,
    ]
    clean = subprocess.run(command, cwd=ROOT, check=False).returncode == 0
    print(f"bandit: {'nothing found' if clean else 'see above'} in {', '.join(SOURCES)}")
    return clean


def pins_are_clean(pins: Sequence[Path]) -> bool:
    """Let pip-audit ask for the vulnerabilities of each pin, and print what is known."""
    clean = True
    for path in pins:
        command = [sys.executable, "-m", "pip_audit", "--requirement", str(path), "--no-deps", "--disable-pip"]
        command += ["--vulnerability-service", "osv", "--format", "json", "--progress-spinner", "off"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        lines, fine = told(path.name, done.returncode, done.stdout, done.stderr)
        print("\n".join(lines))
        clean = clean and fine
    return clean


def told(name: str, code: int, printed: str, errors: str) -> tuple[list[str], bool]:
    """Say what pip-audit found, and whether that is fine.

    Examples
    --------
    >>> told("pins.txt", 0, '{"dependencies": [{"name": "a", "version": "1", "vulns": []}]}', "")
    (['pip-audit: pins.txt: 1 packages, no known vulnerability'], True)
    >>> told("pins.txt", 1, "", "requests.exceptions.ConnectionError: nobody answers")
    (['pip-audit: pins.txt: NOT LOOKED AT, the database of vulnerabilities cannot be reached from here'], True)
    """
    try:
        packages = json.loads(printed)["dependencies"]
    except (ValueError, LookupError, TypeError):
        if code and _OUT_OF_REACH.search(errors[-4000:]):
            return [
                f"pip-audit: {name}: NOT LOOKED AT, the database of vulnerabilities cannot be reached from here"
            ], True
        return [errors[-4000:], f"pip-audit: {name}: could not be looked at"], False
    lines = [
        f"pip-audit: {name}: {one['name']} {one['version']}: {found['id']}, mended in "
        f"{', '.join(found.get('fix_versions') or ['no version yet'])}"
        for one in packages
        for found in one.get("vulns", ())
    ]
    lines += [
        f"pip-audit: {name}: {one['name']} was skipped: {one['skip_reason']}"
        for one in packages
        if "skip_reason" in one
    ]
    if lines:
        return lines, False
    if code or not packages:
        return [errors[-4000:], f"pip-audit: {name}: could not be looked at"], False
    return [f"pip-audit: {name}: {len(packages)} packages, no known vulnerability"], True


def main() -> int:
    """Look at both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pins", nargs="*", type=Path, default=[ROOT / "constraints.txt"])
    clean = [sources_are_clean(), pins_are_clean(parser.parse_args().pins)]
    return 0 if all(clean) else 1


if __name__ == "__main__":
    sys.exit(main())
