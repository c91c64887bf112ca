"""The index: entries are found again, newest first, by what they say; and nothing of it is ever rewritten."""

from __future__ import annotations

import errno
import json
import string
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_cloaking.audit import index
from local_cloaking.audit.index import VERDICTS, IndexEntry, entries, listing, read_entry, write_entry
from local_cloaking.errors import InputError

START = datetime(2026, 11, 1, 8, 0, tzinfo=UTC)


def entry_of(number: int = 0, **values: Any) -> IndexEntry:
    plain: dict[str, Any] = {
        "at": (START + timedelta(hours=number)).isoformat(timespec="microseconds"),
        "dag_id": "trial",
        "run_id": f"run {number}",
        "task_id": "gate.check",
        "map_index": -1,
        "try_number": 1,
        "data_set": "patients",
        "verdict": "passed",
        "warning": False,
        "local_cloaking": float(number),
        "threshold": 5.0,
        "n": 2139,
        "record": "trial/run/record.json",
        "record_sha256": "ab" * 32,
        "report": "trial/run/report.html",
    }
    return IndexEntry(**{**plain, **values})


def fill(root: Path, *filed: IndexEntry) -> None:
    for entry in filed:
        write_entry(root, entry)


def runs(found: list[IndexEntry]) -> list[str]:
    return [entry.run_id for entry in found]


def files_in(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file())


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    read = index._read

    def counted(root: Any, one: Any, **options: Any) -> Any:
        names.append(one.name)
        return read(root, one, **options)

    monkeypatch.setattr(index, "_read", counted)
    return names


# Written, and found again --------------------------------------------------------------------------------------


@given(
    dag_id=st.text(min_size=1, max_size=250),
    data_set=st.none() | st.text(max_size=300),
    run_id=st.text(min_size=1, max_size=250),
    value=st.none() | st.floats(0, 1e12),
    verdict=st.sampled_from(VERDICTS),
    hours=st.integers(-12, 14),
)
@settings(deadline=None, max_examples=60)
def test_what_is_written_is_found_whatever_it_is_called(
    tmp_path_factory: pytest.TempPathFactory,
    dag_id: str,
    data_set: str | None,
    run_id: str,
    value: float | None,
    verdict: str,
    hours: int,
) -> None:
    try:
        (dag_id + run_id + (data_set or "")).encode()
    except UnicodeEncodeError:
        return  # no text that a JSON file in UTF-8 holds
    root = tmp_path_factory.mktemp("store")
    written = entry_of(
        at=START.astimezone(timezone(timedelta(hours=hours))).isoformat(),
        dag_id=dag_id,
        data_set=data_set,
        run_id=run_id,
        local_cloaking=value,
        verdict=verdict,
    )
    fill(root, written, entry_of(dag_id=f"{dag_id}x", data_set="other"))
    (found,) = entries(root, dag_ids=[dag_id], data_set=data_set, run_id=run_id, verdict=verdict)
    assert found == IndexEntry(**{**vars(written), "name": found.name})
    assert read_entry(root, dag_id, found.name) == found
    assert read_entry(root, f"{dag_id}x", found.name) is None
    (path,) = (path for path in files_in(root) if path.name == found.name)
    assert path.parent.parent == root / "index"
    assert set(path.parent.name) <= set(string.ascii_letters + string.digits + "_.-~%")


@pytest.mark.parametrize("dag_id", [".", "..", "../../etc", "a/b", "C:\\x", "%2E", "é日本" * 60, "x" * 250])
def test_no_name_of_a_dag_leads_out_of_the_index(tmp_path: Path, dag_id: str) -> None:
    root = tmp_path / "store"
    fill(root, entry_of(dag_id=dag_id))
    (path,) = files_in(tmp_path)
    assert path.parent.parent == root / "index"
    assert [entry.dag_id for entry in entries(root)] == [dag_id]


def test_long_names_that_begin_alike_are_kept_apart(tmp_path: Path) -> None:
    one, other = "é" * 200 + "a", "é" * 200 + "b"
    fill(tmp_path, entry_of(1, dag_id=one), entry_of(2, dag_id=other))
    assert runs(entries(tmp_path, dag_ids=[one])) == ["run 1"]
    assert runs(entries(tmp_path, dag_ids=[other])) == ["run 2"]


def test_newest_first_across_dags_and_offsets(tmp_path: Path) -> None:
    fill(
        tmp_path,
        entry_of(2, dag_id="b"),
        entry_of(1, dag_id="a"),
        entry_of(run_id="last", at="2026-11-01T09:30:00-02:00"),
        entry_of(run_id="first", at="2026-11-01T09:30:00+02:00"),
    )
    assert runs(entries(tmp_path)) == ["last", "run 2", "run 1", "first"]


def test_many_writers_at_one_moment_lose_nothing(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda number: write_entry(tmp_path, entry_of(run_id=f"r{number}")), range(100)))
    assert sorted(runs(entries(tmp_path, limit=200))) == sorted(f"r{number}" for number in range(100))


def test_an_entry_is_never_written_over(tmp_path: Path) -> None:
    fill(tmp_path, entry_of(1))
    before = {path: path.read_bytes() for path in files_in(tmp_path)}
    fill(tmp_path, entry_of(1), entry_of(1, local_cloaking=0.0))
    assert len(files_in(tmp_path)) == 3
    assert all(path.read_bytes() == content for path, content in before.items())


@pytest.mark.parametrize("wrong", [{"verdict": "../x"}, {"at": "yesterday"}])
def test_what_is_no_verdict_is_not_filed(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        write_entry(tmp_path, entry_of(**wrong))
    assert files_in(tmp_path) == []


# Filters -------------------------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> Path:
    for number in range(30):
        write_entry(
            tmp_path,
            entry_of(
                number,
                dag_id="ab"[number % 2],
                data_set=["patients", "visits", None][number % 3],
                verdict=VERDICTS[number % 3 % 2],
            ),
        )
    return tmp_path


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ({"dag_ids": ["a"]}, lambda i: i % 2 == 0),
        ({"dag_ids": []}, lambda i: False),
        ({"dag_ids": ["A", "c"]}, lambda i: False),
        ({"dag_ids": ["a", *(f"x{i}" for i in range(20))]}, lambda i: i % 2 == 0),
        ({"data_set": "visits"}, lambda i: i % 3 == 1),
        ({"verdict": "below_threshold", "dag_ids": ["b"]}, lambda i: i % 3 == 1 and i % 2 == 1),
        ({"verdict": "no such"}, lambda i: False),
        ({"since": "2026-11-02"}, lambda i: i >= 16),
        ({"until": "2026-11-01"}, lambda i: i < 16),
        ({"since": "2026-11-01T10:00:00+01:00", "until": "2026-11-01T12:00:00"}, lambda i: 1 <= i <= 4),
        ({"run_id": "run 7"}, lambda i: i == 7),
    ],
)
def test_entries_are_chosen_by_what_they_say(store: Path, asked: dict[str, Any], wanted: Any) -> None:
    assert runs(entries(store, **asked)) == [f"run {i}" for i in reversed(range(30)) if wanted(i)]


@pytest.mark.parametrize("day", ["tomorrow", "2026-13-01", "9999-12-31T23:59:59-10:00"])
def test_a_day_that_is_none_is_refused(store: Path, day: str) -> None:
    with pytest.raises(InputError, match="no moment"):
        entries(store, until=day)


def test_pages_follow_each_other_without_gap_or_repetition(store: Path) -> None:
    seen: list[IndexEntry] = []
    while page := entries(store, limit=7, before=seen[-1].name if seen else None):
        seen += page
    assert runs(seen) == [f"run {i}" for i in reversed(range(30))]


def test_only_what_is_returned_is_read(store: Path, opened: list[str]) -> None:
    found = entries(store, limit=4, verdict="below_threshold", data_set="visits")
    assert opened == [entry.name for entry in found]


def test_last_verdict_and_course_of_each_data_set(store: Path) -> None:
    listed = listing(store, dag_ids=["a"])
    latest = listed.latest()
    assert runs(latest) == ["run 28", "run 26", "run 24"]
    assert [entry.data_set for entry in latest] == ["visits", None, "patients"]
    assert runs(listed.latest(1)) == ["run 28"]
    assert runs(listed.latest(data_set="patients")) == ["run 24"]
    assert [runs(course) for course in listed.courses(latest[::2], 3)] == [
        ["run 16", "run 22", "run 28"],
        ["run 12", "run 18", "run 24"],
    ]


# What does not belong there ------------------------------------------------------------------------------------


def changed(**values: Any) -> bytes:
    return json.dumps({**vars(entry_of(3)), **values}).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 60_000,
        b" " * 70_000 + changed(),
        changed(n="many"),
        changed(n=True),
        changed(n=None),
        changed(warning=1),
        changed(threshold=None),
        changed(threshold="5"),
        changed(threshold=float("nan")),
        changed(at="now"),
        changed(verdict="fine"),
        changed(dag_id=7),
        changed(record=["x"]),
    ],
)
def test_a_damaged_entry_is_skipped_and_told(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    fill(tmp_path, entry_of(1), entry_of(2), entry_of(3))
    newest = files_in(tmp_path)[-1]
    newest.write_bytes(content)
    assert runs(entries(tmp_path, limit=2)) == ["run 2", "run 1"]
    assert runs(listing(tmp_path).latest()) == ["run 2"]
    assert newest.name in caplog.text


def test_an_entry_out_of_reach_is_skipped_unless_none_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, entry_of(0), entry_of(1))
    (newest,) = entries(tmp_path, limit=1)
    opens = Path.open

    def lost(path: Path, *args: Any, **options: Any) -> Any:
        if path.name == newest.name:
            raise OSError(errno.EIO, "input/output error")
        return opens(path, *args, **options)

    monkeypatch.setattr(Path, "open", lost)
    assert runs(entries(tmp_path)) == ["run 0"]
    with pytest.raises(OSError, match="input/output"):
        entries(tmp_path, strict=True)
    monkeypatch.undo()
    (tmp_path / "index" / "trial" / newest.name).write_bytes(b"{")
    assert runs(entries(tmp_path, strict=True)) == ["run 0"]  # Damaged: it would be tomorrow, too.


def test_files_of_others_and_half_written_ones_are_nothing(tmp_path: Path) -> None:
    fill(tmp_path, entry_of(1))
    (path,) = files_in(tmp_path)
    for name in ("README", f".{path.name}.x1y2", f"{path.name}.tmp", "index.json"):
        (path.parent / name).write_bytes(path.read_bytes())
    (tmp_path / "index" / "stray.json").write_bytes(b"{}")
    assert runs(entries(tmp_path)) == ["run 1"]


def test_links_are_not_followed(tmp_path: Path) -> None:
    store, elsewhere = tmp_path / "store", tmp_path / "elsewhere"
    fill(store, entry_of(1))
    fill(elsewhere, entry_of(2), entry_of(3, dag_id="other"))
    inside = store / "index" / "trial"
    for path in files_in(elsewhere):
        if path.parent.name == "trial":
            (inside / path.name).symlink_to(path)
    (store / "index" / "other").symlink_to(elsewhere / "index" / "other")
    assert runs(entries(store)) == ["run 1"]
    assert runs(entries(store, dag_ids=["other", "trial"])) == ["run 1"]
    (name,) = (path.name for path in files_in(elsewhere / "index" / "other"))
    assert read_entry(store, "other", name) is None


@pytest.mark.parametrize("name", ["", ".", "../x.json", "/etc/passwd", "x.json\n", "~~~~.json"])
def test_a_name_that_is_none_reads_nothing(tmp_path: Path, opened: list[str], name: str) -> None:
    assert read_entry(tmp_path, "trial", name) is None
    assert opened == []


def test_an_entry_in_the_folder_of_another_dag_is_not_shown(tmp_path: Path) -> None:
    fill(tmp_path, entry_of(1, dag_id="secret"))
    (path,) = files_in(tmp_path)
    moved = tmp_path / "index" / "trial" / path.name
    moved.parent.mkdir()
    path.rename(moved)
    assert entries(tmp_path, dag_ids=["trial"]) == []


def test_a_store_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert entries(tmp_path / "none") == entries(tmp_path / "none", dag_ids=["a"]) == []


def test_of_ten_thousand_entries_a_page_is_read(tmp_path: Path, opened: list[str]) -> None:
    folder = tmp_path / "index" / "trial"
    fill(tmp_path, entry_of(0))
    (first,) = files_in(tmp_path)
    rest = first.name.split("~", 1)[1]
    for number in range(1, 10_000):
        at = START + timedelta(minutes=number)
        (folder / f"{at:%Y%m%dT%H%M%S}.000000Z~{rest}").hardlink_to(first)
    assert len(entries(tmp_path)) == 50
    assert len(opened) == 50
