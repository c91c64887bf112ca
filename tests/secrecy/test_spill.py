"""What workers of a Dask cluster spill to their disks: no key, for nobody else, and not for long."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

pytest.importorskip("distributed", reason="Dask is not installed (extra `dask`)")

from local_cloaking.distributed import measure_partitions
from local_cloaking.measuring import measure_files
from tests.cluster import start_cluster
from tests.partitioned import write_both
from tests.reliability import note_figures
from tests.secrecy.planting import AVATAR_KEY, KEY, NAMES, avatars_of, originals
from tests.secrecy.searching import Search, files_below, ways_to_write_text


class Looking:
    """Keeps the content of each file that appears in a folder, and the rights of the folders on the way to it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.seen, self.ended = folder, {}, threading.Event()
        self.open_to_others: set[str] = set()
        self.thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Looking:
        self.thread.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.ended.set()
        self.thread.join()

    def _look(self) -> None:
        while not self.ended.wait(0.01):
            for path in self.folder.glob("dask-scratch-space/*/storage/*"):
                try:
                    self.seen[path.name] = path.read_bytes()
                    if path.parent.parent.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                        self.open_to_others.add(str(path.parent.parent))
                except OSError:
                    continue


@pytest.mark.stack
def test_spilled_rows_hold_no_key_and_are_gone_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = originals()
    (tmp_path / "tables").mkdir()
    both = write_both(table.drop(columns="mail"), avatars_of(table), tmp_path / "tables")
    # Whatever is more than nothing is spilled.
    monkeypatch.setenv("DASK_DISTRIBUTED__WORKER__MEMORY__TARGET", "0.000001")
    monkeypatch.setenv("DASK_DISTRIBUTED__LOGGING__DISTRIBUTED", "debug")
    before = os.umask(0)
    try:
        running = start_cluster(tmp_path / "cluster")
    finally:
        os.umask(before)
    try:
        with Looking(tmp_path / "cluster") as looking:
            result = measure_partitions(both.folders, scheduler=running.address, key="file", ncp=3).result
        logged = running.log()
    finally:
        running.stop()
    here = measure_files(both.files, key="file", ncp=3).result
    assert sorted(result.counts.tolist()) == sorted(here.counts.tolist())
    assert len(looking.seen) > 20, "nothing was spilled"
    keys = Search({one: ways_to_write_text(one) for one in (KEY[:12], AVATAR_KEY[:12])})
    assert {name: keys.found_in(content) for name, content in looking.seen.items() if keys.found_in(content)} == {}
    assert keys.found_in(logged) == {}
    # Cells are there, as the documentation says: else the search would find nothing anywhere.
    cells = Search({name: ways_to_write_text(name) for name in NAMES})
    assert [name for name, content in looking.seen.items() if cells.found_in(content)]
    assert cells.found_in(logged) == {}
    assert looking.open_to_others == set()
    left = [path for path in files_below(tmp_path / "cluster") if cells.found_in(path.read_bytes())]
    assert left == []
    note_figures("secrecy-dask", spilled=len(looking.seen), places_searched=keys.places, found=0)


def test_keys_are_hashed_anew_for_each_measure() -> None:
    from local_cloaking.distributed.survey import _hashed

    keys = pd.Series(["7", "007", None, "7", "\ud800"], dtype=object)
    first, again, other = (_hashed(keys, salt) for salt in (b"a" * 32, b"a" * 32, b"b" * 32))
    assert first.tolist() == again.tolist()
    assert first[2] is None
    assert first[0] == first[3] != first[1]
    assert not set(first[[0, 1, 4]]) & set(other[[0, 1, 4]])
