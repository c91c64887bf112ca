"""Files with personal content are their owner's alone from the moment they exist, and logs show none of it."""

from __future__ import annotations

import json
import logging
import os
import pickle
import sqlite3
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from local_cloaking import InputError, advise
from local_cloaking.audit.store import write_whole
from local_cloaking.cli import app
from local_cloaking.errors import UnforeseenError, without_message
from local_cloaking.sources import SqlTable, stored_path
from local_cloaking.tables.sql import read_sql
from tests.secrecy.planting import KEY, NAMES, originals


@pytest.fixture
def no_mask() -> Iterator[None]:
    """A umask that keeps nobody out."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """What is made, with the rights that it has when it is: by the call that makes it."""
    seen: list[tuple[str, int]] = []
    really = os.open

    def opened(path: Any, flags: int, mode: int = 0o777, **options: Any) -> int:
        descriptor = really(path, flags, mode, **options)
        if flags & os.O_CREAT:
            seen.append((str(path), stat.S_IMODE(os.fstat(descriptor).st_mode)))
        return descriptor

    monkeypatch.setattr(os, "open", opened)
    return seen


@pytest.mark.parametrize("replace", [False, True])
def test_a_private_file_is_never_anybody_elses(
    tmp_path: Path, no_mask: None, made: list[tuple[str, int]], replace: bool
) -> None:
    path = tmp_path / "list.csv"
    if replace:
        path.write_text("an older one, which everybody could read")
        path.chmod(0o666)
    write_whole(path, b"id,count\n", private=True, replace=replace)
    assert {mode for name, mode in made if "list.csv" in name} == {0o600}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


MAKER = """
import os, sys
found = os.stat(sys.argv[1]), os.stat(os.path.dirname(sys.argv[2]))
open(sys.argv[3], "w").write(" ".join(oct(one.st_mode & 0o777) for one in found))
import pandas as pd
pd.read_parquet(sys.argv[1]).to_parquet(sys.argv[2])
"""


def test_what_a_command_is_given_is_its_owners_alone(tmp_path: Path, no_mask: None) -> None:
    maker, seen = tmp_path / "maker.py", tmp_path / "seen"
    maker.write_text(MAKER)
    table = originals()[["file", "weight", "dose", "town"]]
    command = [sys.executable, str(maker), "{originals}", "{output}", str(seen), "{k}"]
    advise(table, avatarisation=command, threshold=1, seeds=[1], k_min=5, k_max=5, ncp=3, key="file")
    assert seen.read_text() == "0o600 0o700"


# Logs ------------------------------------------------------------------------------------------------------------


def test_sqlalchemy_logs_no_row_while_a_table_is_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "trial.db"
    with sqlite3.connect(path) as connection:
        originals().astype({"born": str}).to_sql("patients", connection, index=False)
    caplog.set_level(logging.DEBUG)
    logging.getLogger("sqlalchemy.engine").setLevel(logging.DEBUG)
    try:
        frame = read_sql(SqlTable(url=f"sqlite:///{path}", table="patients")).frame
        assert frame["work"].isin(NAMES).any()
        assert "SELECT" in caplog.text
        assert not [name for name in (*NAMES, KEY[:12]) if name in caplog.text]
        # Of others' tables, it logs what it logged before.
        import sqlalchemy

        with sqlalchemy.create_engine(f"sqlite:///{path}").connect() as other:
            other.exec_driver_sql("SELECT 'somebody else''s'").fetchall()
        assert "somebody else's" in caplog.text.partition("SELECT 'somebody")[2].partition("\n")[2]
    finally:
        logging.getLogger("sqlalchemy.engine").setLevel(logging.NOTSET)


def test_what_is_sent_to_storage_is_shown_by_its_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("upath", reason="universal-pathlib is not installed (extra `storage`)")
    place = stored_path(f"memory://{tmp_path.name}/list.csv")
    sent: list[Any] = []
    pipe = type(place.fs).pipe_file

    def kept(self: Any, path: str, value: bytes, **options: Any) -> Any:
        sent.append(value)
        return pipe(self, path, value, **options)

    monkeypatch.setattr(type(place.fs), "pipe_file", kept)
    content = f"{KEY},3\n".encode() * 9
    write_whole(place, content)
    (value,) = sent
    shown = [repr(value), str(value), f"{value}", str({"Body": value}), repr([value[3:80], value[:9]])]
    assert not [text for text in shown if KEY[:6] in text]
    assert str(len(content)) in repr(value)
    assert (bytes(value), value[0], value[2:5]) == (content, content[0], content[2:5])
    assert place.read_bytes() == content


# What nobody foresaw ---------------------------------------------------------------------------------------------


def fails(*args: Any, **options: Any) -> Any:
    try:
        float(NAMES[0])
    except ValueError as error:
        raise KeyError(NAMES[1]) from error


def test_an_unforeseen_error_is_told_without_its_message_by_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    originals().to_csv(tmp_path / "o.csv", index=False)
    monkeypatch.setattr("local_cloaking.metric.local_cloaking", fails)
    ended = CliRunner().invoke(app, ["measure", str(tmp_path / "o.csv"), str(tmp_path / "o.csv"), "--key", "file"])
    assert ended.exit_code == 1
    assert isinstance(ended.exception, UnforeseenError)
    assert_says_nothing(ended.exception)


def test_and_by_a_task() -> None:
    pytest.importorskip("airflow", reason="apache-airflow is not installed (extra `airflow`)")
    from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException

    from local_cloaking.airflow.runs import refusals_are_final

    with pytest.raises(UnforeseenError) as caught, refusals_are_final():
        fails()
    assert_says_nothing(caught.value)
    # What is known to hold no cell is told as it is, and retried or not as it was.
    for error, told in (
        (OSError("the disk is full"), OSError),
        (MemoryError(), MemoryError),
        (AirflowException("no connection"), AirflowException),
        (InputError("wrong", remedy="correct it"), AirflowFailException),
    ):
        with pytest.raises(told, match=str(error)), refusals_are_final():
            raise error


def assert_says_nothing(error: BaseException) -> None:
    """See that what any log shows of an error, its causes among it, names nobody; but where it happened."""
    import traceback

    shown = "".join(traceback.format_exception(error))
    structlog = pytest.importorskip("structlog", reason="structlog comes with Airflow")
    # As Airflow writes a task's log.
    transformer = structlog.tracebacks.ExceptionDictTransformer(use_rich=False, show_locals=False)
    shown += json.dumps(transformer((type(error), error, error.__traceback__)), default=str)
    assert not [name for name in NAMES if name in shown]
    assert "KeyError, unforeseen" in shown
    assert "in fails" in shown


def test_it_can_be_sent_from_another_process() -> None:
    error = pickle.loads(pickle.dumps(without_message(ValueError(NAMES[0]))))
    assert str(error).startswith("ValueError, unforeseen")
