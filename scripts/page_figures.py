"""Print how long the page's first 50 verdicts take, of ten thousand in the audit store, and what it would take
without the index: every record opened.

Asks Airflow's own application, as a browser does, with an Airflow of its own in a temporary folder.

    python scripts/page_figures.py                    # a minute or two, most of it to file the verdicts
    python scripts/page_figures.py --verdicts 1000    # less
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # tests/ has what makes an audit store

DATA_SETS = 20
PAGE = "/local-cloaking/"


def file_verdicts(store: Path, number: int) -> None:
    """Fill a store with verdicts, records and entries, as so many runs of a gate leave them."""
    from tests.page import file_verdict

    from local_cloaking.audit import store as writing
    from local_cloaking.audit.index import write_entry
    from local_cloaking.audit.record import to_bytes

    writing.os.fsync = lambda _: None  # ten thousand times is a matter of the disk
    filed = file_verdict(store, 0)
    record = json.loads((store / filed.record).read_bytes())
    for i in range(1, number):
        at = (datetime.fromisoformat(filed.at) + timedelta(hours=i)).isoformat()
        place = f"evidence/{i}-1/record.json"
        (store / place).parent.mkdir()
        (store / place).write_bytes(to_bytes({**record, "judged": {**record["judged"], "at": at}}))
        run = {"run_id": f"manual__{i}", "data_set": f"table {i % DATA_SETS}"}
        write_entry(store, replace(filed, name="", at=at, record=place, **run))


def every_record(store: Path) -> list[Any]:
    """Return the newest 50 without an index."""
    records = [json.loads(path.read_bytes()) for path in store.glob("evidence/*/record.json")]
    return sorted(records, key=lambda record: record["judged"]["at"])[-50:]


def seconds(work: Callable[[], Any], repeats: int) -> float:
    """Return the median time of some repeats, the first one not counted."""
    taken = []
    for _ in range(repeats + 1):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken[1:])


def main(arguments: list[str] | None = None) -> None:
    """Print the two times and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verdicts", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        home, store = Path(folder) / "airflow", Path(folder) / "store"
        os.environ["AIRFLOW_HOME"] = str(home)
        os.environ["AIRFLOW__CORE__PLUGINS_FOLDER"] = str(home / "plugins")
        os.environ["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] = f"sqlite:///{home / 'airflow.db'}"
        os.environ["AIRFLOW__LOGGING__LOGGING_LEVEL"] = "ERROR"
        home.mkdir()
        from airflow.utils.db import initdb

        initdb()
        compare(home, store, asked.verdicts, asked.repeats)


def compare(home: Path, store: Path, verdicts: int, repeats: int) -> None:
    """Fill a store and ask for its page."""
    import pytest
    from tests.page import OPEN, know_dags, serving

    file_verdicts(store, verdicts)
    know_dags(OPEN)
    with pytest.MonkeyPatch.context() as patch, serving(home, store, patch) as served:
        client = served.client("viewer")

        def ask() -> None:
            answer = client.get(PAGE)
            assert answer.status_code == 200
            assert answer.text.count("<tr") > min(50, verdicts)

        page, rival = seconds(ask, repeats), seconds(lambda: every_record(store), repeats)
    print(
        f"first page (50) of {verdicts:,} verdicts of {DATA_SETS} data sets: {page:.2f} s; "
        f"every record opened: {rival:.2f} s; {rival / page:.1f} times"
    )


if __name__ == "__main__":
    main()
