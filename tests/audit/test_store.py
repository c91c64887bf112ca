"""Evidence is written whole or not at all, and never over another's."""

from __future__ import annotations

import errno
import io
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local_cloaking.audit import store
from local_cloaking.audit.store import EvidenceExistsError, write_whole
from local_cloaking.sources import stored_path


def names_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask() -> Any:
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


@pytest.mark.parametrize("content", [b"", b"{}", bytes(range(256)) * 10_000])
@pytest.mark.parametrize("replace", [False, True])
def test_file_holds_the_bytes_and_nothing_stands_beside_it(tmp_path: Path, content: bytes, replace: bool) -> None:
    path = tmp_path / "run" / "deeper" / "record.json"
    write_whole(path, content, replace=replace)
    assert path.read_bytes() == content
    assert names_in(path.parent) == ["record.json"]


def test_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    write_whole(path, b"first")
    with pytest.raises(EvidenceExistsError):
        write_whole(path, b"second")
    assert path.read_bytes() == b"first"
    assert names_in(tmp_path) == ["record.json"]


def test_file_that_is_there_is_replaced_only_where_asked(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    write_whole(path, b"first")
    write_whole(path, b"second", replace=True)
    assert path.read_bytes() == b"second"
    assert names_in(tmp_path) == ["record.json"]


def test_dangling_link_is_not_written_through(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EvidenceExistsError):
        write_whole(path, b"{}")
    assert names_in(tmp_path) == ["record.json"]


def test_of_many_writers_one_wins_and_its_file_stays_whole(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    contents = [bytes([65 + i]) * 200_000 for i in range(8)]
    outcomes: list[tuple[int, bool]] = []
    start = threading.Barrier(len(contents))

    def write(i: int) -> None:
        start.wait()
        try:
            write_whole(path, contents[i])
        except EvidenceExistsError:
            outcomes.append((i, False))
        else:
            outcomes.append((i, True))

    threads = [threading.Thread(target=write, args=(i,)) for i in range(len(contents))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = [i for i, won in outcomes if won]
    assert len(outcomes) == len(contents)
    assert len(winners) == 1
    assert path.read_bytes() == contents[winners[0]]
    assert names_in(tmp_path) == ["record.json"]


# Failures ------------------------------------------------------------------------------------------------------


class _FullDisk(io.RawIOBase):
    """A stream that takes a few bytes, and then the disk is full."""

    def __init__(self, descriptor: int, *_: Any) -> None:
        self._descriptor = descriptor

    def write(self, content: Any) -> int:
        os.write(self._descriptor, bytes(content[:3]))
        raise OSError(errno.ENOSPC, "no space left")

    def close(self) -> None:
        if not self.closed:
            os.close(self._descriptor)
        super().close()


def failing(*_: Any, **__: Any) -> Any:
    raise OSError(errno.EIO, "input/output error")


FAILURES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "write": lambda patch: patch.setattr(store.os, "fdopen", _FullDisk),
    "fsync": lambda patch: patch.setattr(store.os, "fsync", failing),
    "chmod": lambda patch: patch.setattr(Path, "chmod", failing),
    "link": lambda patch: patch.setattr(store.os, "link", failing),
}


@pytest.mark.parametrize("step", FAILURES)
def test_failure_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    FAILURES[step](monkeypatch)
    with pytest.raises(OSError, match=r"no space|input/output"):
        write_whole(tmp_path / "record.json", b"content")
    monkeypatch.undo()
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("step", [*(step for step in FAILURES if step != "link"), "rename"])
@pytest.mark.parametrize("replace", [True, False])
def test_failure_does_not_touch_the_file_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, replace: bool
) -> None:
    path = tmp_path / "record.json"
    write_whole(path, b"first")
    steps = {**FAILURES, "rename": lambda patch: patch.setattr(Path, "replace", failing)}
    steps[step](monkeypatch)
    with pytest.raises((OSError, EvidenceExistsError)):
        write_whole(path, b"second", replace=replace)
    monkeypatch.undo()
    assert path.read_bytes() == b"first"
    assert names_in(tmp_path) == ["record.json"]


def test_interruption_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(store.os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "record.json", b"content")
    monkeypatch.undo()
    assert names_in(tmp_path) == []


@pytest.mark.parametrize(("number", "is_told"), [(errno.EIO, True), (errno.ENOSPC, True), (errno.EINVAL, False)])
@pytest.mark.parametrize("replace", [True, False])
def test_a_name_that_may_be_lost_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, is_told: bool, replace: bool
) -> None:
    """Not where a file system only says that its folders are written of their own accord."""
    sync = os.fsync

    def of_folders(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, "not this folder")
        sync(descriptor)

    monkeypatch.setattr(store.os, "fsync", of_folders)
    if is_told:
        with pytest.raises(OSError, match="not this folder"):
            write_whole(tmp_path / "record.json", b"{}", replace=replace)
    else:
        write_whole(tmp_path / "record.json", b"{}", replace=replace)
    assert (tmp_path / "record.json").read_bytes() == b"{}"  # It is whole, told or not.
    assert names_in(tmp_path) == ["record.json"]


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS])
def test_file_system_without_links_writes_whole_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def no_links(*_: Any, **__: Any) -> None:
        raise OSError(number, "no links here")

    monkeypatch.setattr(store.os, "link", no_links)
    path = tmp_path / "record.json"
    write_whole(path, b"first")
    with pytest.raises(EvidenceExistsError):
        write_whole(path, b"second")
    assert path.read_bytes() == b"first"
    assert names_in(tmp_path) == ["record.json"]


def test_nobody_sees_the_name_before_the_content_is_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "record.json"
    seen = []
    sync = os.fsync

    def watched(descriptor: int) -> None:
        seen.append((path.exists(), [p.stat().st_size for p in tmp_path.iterdir()]))
        sync(descriptor)

    monkeypatch.setattr(store.os, "fsync", watched)
    write_whole(path, b"content")
    assert seen[0] == (False, [7])  # the bytes are there, under another name


# Rights --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("replace", [False, True])
def test_private_file_is_the_owners_alone_from_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, umask: Callable[[int], int], replace: bool
) -> None:
    umask(0)
    path = tmp_path / "weak.csv"
    if replace:
        path.write_bytes(b"open to all")
        path.chmod(0o666)
    modes = []
    sync = os.fsync

    def watched(descriptor: int) -> None:
        modes.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        sync(descriptor)

    monkeypatch.setattr(store.os, "fsync", watched)
    write_whole(path, b"content", private=True, replace=replace)
    assert modes[0] == 0o600
    assert mode_of(path) == 0o600
    assert path.read_bytes() == b"content"


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664), (0, 0o666)])
def test_other_files_get_the_rights_that_the_user_gives(
    tmp_path: Path, umask: Callable[[int], int], mask: int, mode: int
) -> None:
    umask(mask)
    write_whole(tmp_path / "record.json", b"{}")
    assert mode_of(tmp_path / "record.json") == mode
    assert umask(mask) == mask  # reading the mask has not changed it


# Names, and other stores ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a b.json", "é日本.json", "x" * 200, ".hidden", "100%{}.json"])
def test_names_may_be_odd(tmp_path: Path, name: str) -> None:
    write_whole(tmp_path / name, b"{}")
    assert names_in(tmp_path) == [name]


def test_folder_in_the_way_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "record.json").mkdir()
    with pytest.raises((OSError, EvidenceExistsError)):
        write_whole(tmp_path / "record.json", b"{}", replace=True)
    assert names_in(tmp_path) == ["record.json"]


def test_object_storage_is_written_in_one_upload_and_not_overwritten() -> None:
    one = stored_path("memory://bucket/one")
    write_whole(one, b"first")
    assert one.read_bytes() == b"first"
    with pytest.raises(EvidenceExistsError):
        write_whole(one, b"second")
    assert one.read_bytes() == b"first"
    write_whole(one, b"third", replace=True)
    assert one.read_bytes() == b"third"


def test_storage_that_cannot_be_written_is_an_oserror_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class LostError(Exception):
        """As a package for object storage raises them."""

    def lost(*_: Any, **__: Any) -> None:
        raise LostError("unmistakable")

    two = stored_path("memory://bucket/two")
    monkeypatch.setattr(type(two.fs), "pipe_file", lost)
    with pytest.raises(ConnectionError, match="two: the storage cannot be reached") as caught:
        write_whole(two, b"content")
    assert "unmistakable" not in str(caught.value)
    assert not two.exists()
