"""Tables of a database: a real PostgreSQL, and SQLite."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.database import PASSWORD, Database, database, free_port

from local_cloaking import InputError, SqlTable
from local_cloaking.measuring import Inputs, measure_files
from local_cloaking.tables import read_table, sha256_of
from local_cloaking.tables.sql import read_sql

__all__ = ["database"]

ODD = 'of "them"; DROP TABLE x; -- %s :d é🙂'


@pytest.fixture
def patients(database: Database, monkeypatch: pytest.MonkeyPatch) -> Database:
    quoted = ODD.replace('"', '""').replace("%", "%%")
    database.execute(
        "DROP SCHEMA IF EXISTS trial CASCADE",
        "CREATE SCHEMA trial",
        "CREATE TYPE trial.arm AS ENUM ('placebo', 'low dose')",
        f"""CREATE TABLE trial."{quoted}" (
            id text, age integer, big bigint, dose numeric(6,2), weight double precision, single real,
            smoker boolean, born date, seen timestamptz, local timestamp, arm trial.arm, code char(4), u uuid)""",
        f"""INSERT INTO trial."{quoted}" VALUES
            ('007', 41, 9007199254740993, 1.50, 70.25, 0.5, true, '1980-12-25', '2026-01-31 10:00+02',
             '2026-01-31 10:00', 'low dose', '0012', '00000000-0000-0000-0000-000000000001'),
            ('008', NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)""",
    )
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    return database


def test_types_are_kept(patients):
    frame = read_sql(SqlTable(url=patients.url, schema="trial", table=ODD)).frame
    assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == {
        "id": str(frame["id"].dtype),
        "age": "float64",
        "big": "int64",
        "dose": "float64",
        "weight": "float64",
        "single": "float64",
        "smoker": "boolean",
        "born": "datetime64[us]",
        "seen": "datetime64[us, UTC]",
        "local": "datetime64[us]",
        "arm": str(frame["id"].dtype),
        "code": str(frame["id"].dtype),
        "u": str(frame["id"].dtype),
    }
    first = frame.iloc[0]
    assert (first["id"], first["code"], first["arm"], first["dose"]) == ("007", "0012", "low dose", 1.5)
    assert first["big"] == 9007199254740993
    assert str(first["seen"]) == "2026-01-31 08:00:00+00:00"
    assert frame.iloc[1].drop(["id", "big"]).isna().all()


def test_a_query_gives_the_same_types_and_means_nothing_to_anybody_but_the_database(patients):
    table = SqlTable(url=patients.url, schema="trial", table=ODD)
    query = f"""SELECT *, 'a:b' || '% %s :c' AS odd, age::text FROM trial."{ODD.replace('"', '""')}" """
    with pytest.raises(InputError, match="'age'"):
        read_sql(SqlTable(url=patients.url, sql=query))
    frame = read_sql(SqlTable(url=patients.url, sql=query.replace(", age::text", ""))).frame
    assert frame["odd"].tolist() == ["a:b% %s :c"] * 2
    pd.testing.assert_frame_equal(frame.drop(columns="odd"), read_sql(table).frame)


def test_the_text_form_names_the_same_table(patients):
    table = SqlTable(url=patients.url, schema="trial", table=ODD)
    again = SqlTable.of(str(table))
    assert (again.url, again.schema, again.table) == (patients.url, "trial", ODD)
    assert sha256_of(str(table)) == sha256_of(table) == read_table(str(table)).source.sha256


def test_the_hash_is_of_the_rows_in_whatever_order(database, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    database.execute("DROP TABLE IF EXISTS h", "CREATE TABLE h (a int, b numeric, c text)")
    table = SqlTable(url=database.url, table="h")
    database.execute("INSERT INTO h SELECT i, i / 7.0, i::text FROM generate_series(1, 25000) i")
    first = sha256_of(table)
    database.execute("DELETE FROM h WHERE a = 5", "INSERT INTO h VALUES (5, 5 / 7.0, '5')")
    assert (
        sha256_of(table) == first == sha256_of(SqlTable(url=database.url, sql="SELECT * FROM h ORDER BY a DESC"))
    )
    # A digit that no float has, a row that comes twice, a row less.
    for change in ("UPDATE h SET b = b + 1e-19 WHERE a = 7", "INSERT INTO h VALUES (5, 5 / 7.0, '5')"):
        database.execute(change)
        assert sha256_of(table) != first
        first = sha256_of(table)


def test_only_the_columns_needed_are_read_and_the_avatars_hash_is_of_all(database, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    database.execute(
        "DROP TABLE IF EXISTS n", "CREATE TABLE n (a int, j jsonb)", "INSERT INTO n VALUES (1, '{}'), (2, '[]')"
    )
    table = SqlTable(url=database.url, table="n")
    with pytest.raises(InputError, match="'j'"):
        read_sql(table)
    few = read_sql(table, leave_out=["j"], hash_all=False)
    assert few.frame.columns.tolist() == ["a", "j"]
    database.execute("UPDATE n SET j = '{\"x\": 1}'")
    assert read_sql(table, leave_out=["j"], hash_all=False).sha256 == few.sha256


@pytest.mark.parametrize(
    ("statement", "column"),
    [
        ("SELECT ARRAY[1, 2] AS x", "x"),
        ("SELECT '10:00'::time AS x", "x"),
        ("SELECT '1 day'::interval AS x", "x"),
        ("SELECT '\\x00'::bytea AS x", "x"),
        ("SELECT 12345678901234567890::numeric AS x", "x"),
        ("SELECT 1 AS x WHERE false", None),
        ("SELECT 1 AS x, 2 AS x", "x"),
        ("SELECT 1 / (SELECT 0)", None),
        ("SELECT unmistakable FROM nowhere", None),
        ("SELEC 1", None),
        ("SELECT 'unmistakable'::int", None),
    ],
)
def test_a_wrong_source_is_refused_without_a_word_of_its_cells(database, monkeypatch, statement, column):
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with pytest.raises(InputError) as caught:
        read_sql(SqlTable(url=database.url, sql=statement))
    assert caught.value.column == column
    assert caught.value.remedy
    chain, said = caught.value, ""
    while chain is not None:
        said += str(chain)
        chain = chain.__cause__ or (None if chain.__suppress_context__ else chain.__context__)
    assert "unmistakable" not in said
    assert "12345678901234567890" not in said


def test_out_of_reach_is_an_error_that_may_be_retried(database, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    elsewhere = database.url.replace(str(database.port), str(free_port()))
    with pytest.raises(ConnectionError, match="refused"):
        read_sql(SqlTable(url=elsewhere, table="h"))
    monkeypatch.setenv("PGPASSWORD", "wrong")
    with pytest.raises(ConnectionError, match="password authentication failed"):
        read_sql(SqlTable(url=database.url, table="h"))
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with pytest.raises(InputError, match="no such table"):
        read_sql(SqlTable(url=database.url, table="nowhere"))


def test_a_password_in_a_url_is_refused_and_shown_nowhere(database):
    url = database.url.replace("tester@", "tester:unmistakable-secret@")
    for attempt in (lambda: SqlTable.of(f"{url}#patients"), lambda: read_sql(SqlTable(url=url, table="patients"))):
        with pytest.raises(InputError, match="password") as caught:
            attempt()
        assert "unmistakable" not in str(caught.value)
    assert "unmistakable" not in repr(SqlTable(url=url, table="patients"))


def test_the_rows_come_by_a_cursor_of_the_server(database, monkeypatch):
    """Not all of them at once: while they are read, the server has a cursor open."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    seen = []
    from local_cloaking.tables import sql

    plain = sql._array

    def looking(values, name):
        with database.engine.connect() as connection:
            seen.append(
                connection.exec_driver_sql(
                    "SELECT query FROM pg_stat_activity WHERE query LIKE 'FETCH FORWARD%%'"
                ).fetchall()
            )
        return plain(values, name)

    monkeypatch.setattr(sql, "_array", looking)
    for table in (
        SqlTable(url=database.url, sql="SELECT generate_series(1, 25000) AS x"),
        SqlTable(url=database.url, table="series"),
    ):
        database.execute(
            "DROP VIEW IF EXISTS series", "CREATE VIEW series AS SELECT generate_series(1, 25000) AS x"
        )
        seen.clear()
        assert len(read_sql(table).frame) == 25000
        assert len(seen) == 3
        assert all(seen)


# --- SQLite ---


@pytest.fixture
def lite(tmp_path: Path) -> str:
    with sqlite3.connect(tmp_path / "trial.db") as connection:
        connection.execute(
            'CREATE TABLE "patients %" '
            "(id TEXT, n INTEGER, x REAL, d DECIMAL(10,2), b BOOLEAN, born DATE, seen TIMESTAMP)"
        )
        connection.execute(
            'INSERT INTO "patients %" VALUES (?,?,?,?,?,?,?)',
            ("007", 2**53 + 1, 0.1234567890123, 1.1234567890123, 1, "2026-01-31", "2026-01-31 10:00:00"),
        )
    return f"sqlite:///{tmp_path / 'trial.db'}"


def test_types_of_sqlite(lite):
    frame = read_sql(SqlTable.of(f"{lite}#patients %25")).frame
    assert [str(dtype) for dtype in frame.dtypes][1:] == [
        "int64",
        "float64",
        "float64",
        "bool",
        "datetime64[us]",
        "datetime64[us]",
    ]
    assert frame.iloc[0, :4].tolist() == ["007", 2**53 + 1, 0.1234567890123, 1.1234567890123]


def test_mixed_cells_of_sqlite_are_refused(tmp_path):
    with sqlite3.connect(tmp_path / "m.db") as connection:
        connection.execute("CREATE TABLE m (n INTEGER, x REAL, d DATE)")
        connection.execute("INSERT INTO m VALUES (1, 1, '2026-01-31'), ('secret', 2, 'secret')")
    url = f"sqlite:///{tmp_path / 'm.db'}"
    with pytest.raises(InputError, match="more than one type"):
        read_sql(SqlTable(url=url, sql="SELECT n FROM m"))
    with pytest.raises(InputError) as caught:
        read_sql(SqlTable(url=url, table="m"), leave_out=["n"], hash_all=False)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_wrong_names_of_sqlite(lite, tmp_path):
    with pytest.raises(InputError, match="no such table"):
        read_sql(SqlTable.of(f"{lite}#patients"))
    with pytest.raises(InputError, match="SQLITE_ERROR"):
        read_sql(SqlTable(url=lite, sql="SELECT x FROM nowhere"))
    with pytest.raises(ConnectionError, match="unable to open"):
        read_sql(SqlTable.of(f"sqlite:///{tmp_path / 'no' / 'where.db'}#patients"))
    with pytest.raises(InputError, match="no database that can be opened"):
        read_sql(SqlTable.of("nothing://host/db#patients"))


# --- pairing ---


def test_rows_of_a_database_are_paired_by_key_never_by_order(tmp_path):
    rng = np.random.default_rng(1)
    originals = pd.DataFrame(rng.normal(size=(80, 3)), columns=list("abc"))
    avatars = originals + rng.normal(scale=0.4, size=(80, 3))
    for frame in (originals, avatars):
        frame.insert(0, "id", [f"{i:03d}" for i in range(80)])
    with sqlite3.connect(tmp_path / "trial.db") as connection:
        originals.to_sql("originals", connection, index=False)
        avatars.sample(frac=1, random_state=1).to_sql("avatars", connection, index=False)
    url = f"sqlite:///{tmp_path / 'trial.db'}"
    inputs = Inputs(f"{url}#originals", SqlTable(url=url, table="avatars"))
    with pytest.raises(InputError, match="have no order"):
        measure_files(inputs, ncp=2)
    measured = measure_files(inputs, ncp=2, key="id")
    assert measured.result.median == measure_files(Inputs(originals, avatars), ncp=2, key="id").result.median
    assert measured.entries["inputs"]["originals"]["format"] == "sql"
    assert measured.entries["avatars_sha256"] == sha256_of(f"{url}#avatars")
