"""Data sets of many files: which files, in which order, with which hash."""

from __future__ import annotations

import hashlib
import json
import pickle
from pathlib import Path
from typing import ClassVar

import pytest

from local_cloaking import InputError
from local_cloaking.tables import sha256_of
from local_cloaking.tables.partitions import find_partitions, portable, read_partition


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "avatars"
    made.mkdir()
    for number in (0, 1, 2, 10):
        (made / f"part.{number}.parquet").write_bytes(b"%d" % number)
    return made


def names(folder: Path) -> list[str]:
    return [Path(path).name for path in find_partitions(folder).paths]


def test_numbers_in_names_count_as_numbers_and_marks_of_other_writers_are_passed_over(folder):
    for mark in ("_SUCCESS", "_started_42", "_committed_42"):
        (folder / mark).touch()
    (folder / ".part.0.parquet.crc").touch()
    assert names(folder) == ["part.0.parquet", "part.1.parquet", "part.2.parquet", "part.10.parquet"]


@pytest.mark.parametrize(
    "other",
    [
        "names.csv",
        "part.3.parquet.bak",
        "README",
        "year=2026/",
        "_part.3.parquet",
        "_part.3.PARQUET",
        "_originals.csv",
        "_metadata",
        ".key.parq",
        "._part.0.parquet",
        "_delta_log/",
        "_temporary/",
    ],
)
def test_what_nobody_would_measure_is_refused(folder, other):
    (folder / other).mkdir() if other.endswith("/") else (folder / other).touch()
    with pytest.raises(InputError, match=r"no \*.parquet"):
        find_partitions(folder)


def test_an_empty_folder_is_refused_and_a_missing_one_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"no \*.parquet file"):
        find_partitions(tmp_path)
    with pytest.raises(FileNotFoundError):
        find_partitions(tmp_path / "nothing")


def test_the_hash_is_that_of_names_sizes_and_hashes(folder):
    listed = [
        [name, (folder / name).stat().st_size, hashlib.sha256((folder / name).read_bytes()).hexdigest()]
        for name in names(folder)
    ]
    text = json.dumps(listed, separators=(",", ":"))
    assert sha256_of(folder) == hashlib.sha256(text.encode()).hexdigest()


def test_the_hash_is_the_same_from_what_was_read(folder):
    found = find_partitions(folder)
    assert found.sha256(read_partition(None, path)[1] for path in found.paths) == sha256_of(folder)


def test_a_single_file_keeps_its_own_hash(folder):
    found = find_partitions(folder / "part.1.parquet")
    assert found.sha256([read_partition(None, found.paths[0])[1]]) == hashlib.sha256(b"1").hexdigest()
    assert sha256_of(folder / "part.1.parquet") == hashlib.sha256(b"1").hexdigest()


@pytest.mark.parametrize("change", ["bytes", "name", "one more", "one less", "two swapped"])
def test_any_change_changes_the_hash(folder, change):
    before = sha256_of(folder)
    first, second = folder / "part.0.parquet", folder / "part.1.parquet"
    if change == "bytes":
        first.write_bytes(b"7")
    elif change == "name":
        first.rename(folder / "part.00.parquet")
    elif change == "one more":
        (folder / "part.11.parquet").write_bytes(b"0")
    elif change == "one less":
        first.unlink()
    else:
        one, other = first.read_bytes(), second.read_bytes()
        first.write_bytes(other)
        second.write_bytes(one)
    assert sha256_of(folder) != before


class Unportable:
    storage_options: ClassVar[dict[str, int]] = {"lock": 1}

    def __reduce__(self):
        raise TypeError("no")


def test_a_file_system_that_cannot_be_handed_over_is_refused():
    with pytest.raises(InputError, match="Unportable cannot be handed to the workers"):
        portable(Unportable())
    assert portable(None) is None


def test_a_session_is_handed_over_as_its_keys_alone(monkeypatch):
    session = pytest.importorskip("aiobotocore.session", reason="s3fs is not installed (extra `dev`)")
    s3fs = pytest.importorskip("s3fs")
    monkeypatch.setenv("SOMETHING_OF_THIS_PROCESS", "unmistakable-secret")
    made = session.get_session()
    made.set_credentials("tester", "key")
    sent = pickle.dumps(portable(s3fs.S3FileSystem(session=made, endpoint_url="http://127.0.0.1:1")))
    assert b"unmistakable-secret" not in sent
    assert {"key": "tester", "secret": "key"}.items() <= pickle.loads(sent).storage_options.items()
