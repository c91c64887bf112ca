"""What a Parquet file is read as, and what is refused."""

from __future__ import annotations

import datetime
import decimal
import io

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from local_cloaking.errors import InputError
from local_cloaking.tables.parquet import read_parquet


def stored(table: pa.Table | pd.DataFrame, **options: object) -> bytes:
    buffer = io.BytesIO()
    if isinstance(table, pd.DataFrame):
        table.to_parquet(buffer, **options)
    else:
        pq.write_table(table, buffer, **options)
    return buffer.getvalue()


def refusal(data: bytes, **options: object) -> InputError:
    with pytest.raises(InputError) as caught:
        read_parquet(data, **options)
    assert caught.value.remedy
    return caught.value


DAY = datetime.date(2021, 1, 31)
MOMENT = datetime.datetime(2021, 1, 31, 10)


@pytest.mark.parametrize(
    ("values", "kind", "dtype"),
    [
        ([1, 2], pa.int8(), "int64"),
        ([1, None], pa.int32(), "float64"),
        ([1, 2], pa.uint64(), "int64"),
        ([1.5, None], pa.float32(), "float64"),
        ([decimal.Decimal("1.5"), None], pa.decimal128(10, 2), "float64"),
        ([True, False], pa.bool_(), "bool"),
        ([True, None], pa.bool_(), "boolean"),
        ([DAY, None], pa.date32(), "datetime64[us]"),
        ([MOMENT], pa.timestamp("ms"), "datetime64[us]"),
        ([MOMENT], pa.timestamp("ns"), "datetime64[ns]"),
        ([MOMENT], pa.timestamp("us", "Europe/Paris"), "datetime64[us, UTC]"),
        (["a", "b"], pa.dictionary(pa.int8(), pa.string()), "category"),
        ([None, None], pa.null(), "float64"),
    ],
)
def test_type_of_a_column(values: list[object], kind: pa.DataType, dtype: str) -> None:
    table = read_parquet(stored(pa.table({"x": pa.array(values, kind)})))
    assert str(table["x"].dtype) == dtype
    assert table["x"].isna().tolist() == [value is None for value in values]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_text(kind: pa.DataType) -> None:
    table = read_parquet(stored(pa.table({"x": pa.array(["01", None], kind)})))
    assert table["x"].tolist()[0] == "01"
    assert table["x"].isna().tolist() == [False, True]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([["secret"]]),
        pa.array([{"y": "secret"}]),
        pa.array([b"secret"]),
        pa.array([datetime.time(10)]),
        pa.array([datetime.timedelta(1)]),
        pa.array([b"0123456789abcdef"], pa.binary(16)),
    ],
)
def test_columns_that_are_not_flat(values: pa.Array) -> None:
    error = refusal(stored(pa.table({"good": [1], "x": values})))
    assert (error.column, error.rows) == ("x", 1)
    assert "secret" not in str(error)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([2**63, 1], pa.uint64()),
        pa.array([2**60 + 1, None], pa.int64()),
        pa.array([decimal.Decimal(2**60 + 1), None], pa.decimal128(30, 0)),
    ],
)
def test_whole_numbers_that_would_be_rounded(values: pa.Array) -> None:
    error = refusal(stored(pa.table({"x": values})))
    assert (error.column, error.rows) == ("x", 1)
    assert str(values[0].as_py()) not in str(error)


def test_names() -> None:
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    assert refusal(stored(twice)).column == "a"
    assert list(read_parquet(stored(pa.table({"petal (cm)": [1], "🙂": [2]}))).columns) == [
        "petal (cm)",
        "🙂",
    ]


def test_no_rows() -> None:
    assert refusal(stored(pa.table({"x": pa.array([], pa.int64())}))).rows == 0
    assert refusal(stored(pa.table({}))).rows == 0


def test_stored_index() -> None:
    frame = pd.DataFrame({"age": [41, 39]}, index=pd.Index([7, 5], name="person"))
    error = refusal(stored(frame))
    assert (error.column, error.rows) == ("person", 2)
    assert set(read_parquet(stored(frame), text_columns=["person"]).columns) == {"age", "person"}
    assert refusal(stored(frame.rename_axis(None))).rows == 2
    assert list(read_parquet(stored(frame.reset_index(drop=True))).columns) == ["age"]


def test_odd_metadata_is_no_obstacle() -> None:
    for metadata in (b"{", b"[]", b'{"index_columns": 3}', b'{"index_columns": ["gone"]}'):
        table = pa.table({"x": [1]}).replace_schema_metadata({b"pandas": metadata})
        assert read_parquet(stored(table))["x"].tolist() == [1]


@pytest.mark.parametrize("cut", [4, 20, 200, -1, -9])
def test_incomplete_file(cut: int) -> None:
    assert "damaged" in refusal(stored(pa.table({"x": list(range(500))}))[:cut]).problem


def test_damaged_page() -> None:
    data = bytearray(
        stored(pa.table({"x": [f"secret {i}" for i in range(500)]}), compression="gzip", write_page_checksum=True)
    )
    data[100:110] = b"\xff" * 10
    error = refusal(bytes(data))
    assert "secret" not in str(error)


def test_absurd_size_is_refused_before_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("local_cloaking.tables.arrow.LARGEST_CELLS", 5)
    monkeypatch.setattr(pq.ParquetFile, "read", lambda *_, **__: pytest.fail("read"))
    assert refusal(stored(pa.table({"x": [1, 2, 3], "y": [1, 2, 3]}))).rows == 3
