"""Run the DAG local_cloaking_demo with Airflow itself, and show what it measured.

Everything lies in a folder of its own, ``.airflow`` in the checkout: database, log, tables and records.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
DAG_ID = "local_cloaking_demo"


def environment(home: Path) -> dict[str, str]:
    """Return the environment of an Airflow of its own: SQLite, this checkout's DAGs, no examples."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    return {
        **kept,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(CHECKOUT / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}",
        "AIRFLOW__LOCAL_CLOAKING__AUDIT_PATH": str(home / "local_cloaking"),
        "LOCAL_CLOAKING_DEMO_DATA": str(home / "demo_data"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}",
    }


def migrate(home: Path, env: dict[str, str], log: Path) -> None:
    """Make Airflow's database, once for each version of Airflow."""
    from importlib.metadata import version

    done = home / f"migrated-{version('apache-airflow')}"
    if done.exists():
        return
    print("Airflow makes its database ...", flush=True)
    if run(["airflow", "db", "migrate"], env, log) != 0:
        sys.exit(f"Airflow could not make its database: see {log}")
    done.touch()


def run(command: list[str], env: dict[str, str], log: Path) -> int:
    """Run a command with its output in the log."""
    with log.open("ab") as stream:
        return subprocess.run(command, env=env, stdout=stream, stderr=subprocess.STDOUT, check=False).returncode


def record_of_this_run(home: Path, before: set[Path]) -> Path | None:
    """Return the record that was not there before."""
    new = sorted(set(records(home)) - before)
    return new[-1] if new else None


def records(home: Path) -> list[Path]:
    """Return all records of the DAG."""
    return list((home / "local_cloaking" / DAG_ID).rglob("record.json"))


def at_least_one(text: str) -> int:
    """Return a whole number of at least 1, as the DAG asks for."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("give a whole number of at least 1")
    return number


def main() -> int:
    """Run, show, and return the exit code: Airflow's own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threshold", default="5")
    parser.add_argument("--k", type=at_least_one, default=20)
    parser.add_argument("--ncp", type=at_least_one, default=5)
    parser.add_argument("--home", type=Path, default=CHECKOUT / ".airflow")
    options = parser.parse_args()

    home: Path = options.home.resolve()
    home.mkdir(parents=True, exist_ok=True)
    log, env = home / "demo.log", environment(home)
    log.write_bytes(b"")
    migrate(home, env, log)
    before = set(records(home))
    conf = {"threshold": options.threshold, "k": options.k, "ncp": options.ncp}
    print(f"Airflow runs the DAG {DAG_ID}: avatarise > local_cloaking > check > publish ...", flush=True)
    started = time.monotonic()
    code = run(["airflow", "dags", "test", DAG_ID, "--conf", json.dumps(conf)], env, log)
    print(f"The run ended after {time.monotonic() - started:.0f} s. Airflow's log: {log}\n", flush=True)
    show(record_of_this_run(home, before), code, log)
    return code


def show(record: Path | None, code: int, log: Path) -> None:
    """Print the table of a record, or the end of the log where there is none."""
    if record is None:
        refusals = [
            line for line in log.read_text(errors="replace").splitlines() if "AirflowFailException" in line
        ]
        print(*(refusals[-1:] or log.read_text(errors="replace").splitlines()[-20:]), sep="\n")
        print("\nNothing was judged, and nothing was published.")
        return
    from local_cloaking.summary import print_summary

    content = json.loads(record.read_bytes())
    print_summary(content, str(record))
    if content["verdict"] == "passed" and code == 0:
        print("\nThe check passed; the avatars were published, without key and in random order.")
    elif content["verdict"] == "passed":
        print(f"\nThe check passed, but the run failed: see {log}")
    else:
        measured, bound = content["local_cloaking"], content["threshold"]
        print("\nThe check stopped the DAG; nothing was published.")
        print(f"Measured {measured:g}, threshold {bound:g}." if measured is not None else content["reason"])
        print(f"Remedy: {content['remedy']}.")


if __name__ == "__main__":
    sys.exit(main())
