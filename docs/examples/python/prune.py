"""Delete evidence that is older than its period, from an audit store in a folder.

python prune.py /data/audit 730              # says what it would delete
python prune.py /data/audit 730 --delete     # deletes it
"""

import argparse
import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

from local_cloaking.audit.index import FOLDER, entries


def prune(store: Path, days: int, *, delete: bool) -> list[Path]:
    """Return the folders of verdicts given more than so many days ago; delete them where asked."""
    last = datetime.now(UTC) - timedelta(days=days)
    old = entries(store, until=last.isoformat(), limit=1_000_000)
    folders = [folder for entry in old for folder in folders_of(store, store / entry.record)]
    if delete:
        # The index first: the page never shows a verdict whose evidence is gone.
        for entry in old:
            for path in (store / FOLDER).glob(f"*/{entry.name}"):
                path.unlink()
        for folder in folders:
            shutil.rmtree(folder)
    return folders


def folders_of(store: Path, record: Path) -> list[Path]:
    """Return where a check, and the measure before it, left what they wrote; of what is gone, nothing."""
    if not record.is_file():
        return []
    counts = Path(json.loads(record.read_bytes())["counts"])
    found = [folder for folder in (record.parent, counts.parent) if folder.is_dir()]
    # A record says where its counts are: believed only within the store.
    return [folder for folder in found if store.resolve() in folder.resolve().parents]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path)
    parser.add_argument("days", type=int)
    parser.add_argument("--delete", action="store_true")
    asked = parser.parse_args()
    for folder in prune(asked.store, asked.days, delete=asked.delete):
        print("deleted" if asked.delete else "would delete", folder)
