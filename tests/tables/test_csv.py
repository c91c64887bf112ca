"""What a CSV file is read as, and what is refused."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_cloaking.errors import InputError
from local_cloaking.tables.csv import Dialect, parse_csv, to_frame
from local_cloaking.tables.csv_columns import LARGEST_EXACT_FLOAT

FRENCH = "âge;taille;prénom\n41;1,5;Zoé\n39;2,25;Noël\n"


def frame(data: bytes | str, **options: object) -> pd.DataFrame:
    content = data.encode() if isinstance(data, str) else data
    return to_frame(parse_csv(content, **options))


def column(*cells: str, **options: object) -> pd.Series:
    """Read one column of these cells beside another one."""
    return frame("x;other\n" + "".join(f"{cell};word\n" for cell in cells), **options)["x"]


def refusal(data: bytes | str, **options: object) -> InputError:
    with pytest.raises(InputError) as caught:
        frame(data, **options)
    assert caught.value.remedy
    return caught.value


def kind(series: pd.Series) -> str:
    return "text" if series.dtype == object or str(series.dtype) in ("str", "string") else str(series.dtype)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "-2", "0"], "int64"),
        (["+5", "3"], "int64"),
        (["-0", "3"], "int64"),
        (["1", "", "3"], "float64"),
        (["9223372036854775807", "1"], "int64"),
        (["9223372036854775808", "1"], "text"),
        (["9007199254740993", ""], "text"),
        (["9007199254740993", "1.5"], "text"),
        (["1e300", "1.5"], "float64"),
        (["01", "10"], "text"),
        (["007", "1.5"], "text"),
        (["01.11", "10.50"], "text"),
        (["0.5", "10", ".5", "5."], "float64"),
        (["1e5", "-2E-3"], "float64"),
        (["inf", "-Infinity", "1"], "float64"),
        (["NAN", "1"], "text"),
        (["0x1F", "3"], "text"),
        (["1_000", "3"], "text"),
        (["?", "3"], "text"),
        (["12%", "3%"], "text"),
        (["True", "false", "TRUE"], "bool"),
        (["True", "", "FALSE"], "boolean"),
        (["yes", "no"], "text"),
        (["", "NA"], "float64"),
        (["2021-01-31", "2020-02-29"], "datetime64[us]"),
        (["2021-01-31", "9999-12-31 23:59"], "datetime64[us]"),
        (["2021-01-31T10:00:00.1234567", "2021-01-31"], "datetime64[ns]"),
        (["2021-01-31T10:00Z", "2021-01-31 10:00:00.5+02:00"], "datetime64[us, UTC]"),
        (["2021-02-30", "2021-01-01"], "text"),
        (["31/02/2021", "01/01/2021"], "text"),
        (["25/12/2021", "03/04/2021"], "datetime64[us]"),
        (["10:30", "11:45"], "text"),
        (["1.2.3", "1.2"], "text"),
    ],
)
def test_type_of_a_column(cells: list[str], expected: str) -> None:
    assert kind(column(*cells)) == expected


@pytest.mark.parametrize(
    "marker", ["", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "#N/A", "<NA>", " NA "]
)
@pytest.mark.parametrize("text_columns", [(), ("x",)])
def test_missing_markers(marker: str, text_columns: tuple[str, ...]) -> None:
    assert column("a", marker, text_columns=text_columns).isna().tolist() == [False, True]
    assert column("1", marker).isna().tolist() == [False, True]


def test_text_stays_as_it_stands() -> None:
    assert column("01", " b", "é").tolist() == ["01", " b", "é"]
    assert column("01", "2", "3,5", "True", text_columns=["x"]).tolist() == ["01", "2", "3,5", "True"]


def test_blanks_around_numbers_do_not_count() -> None:
    assert column(" 1", "2 ", "  ").tolist()[:2] == [1.0, 2.0]


def test_times_with_offsets_come_out_in_utc() -> None:
    assert column("2021-01-31T10:00+02:00", "2021-01-31T10:00Z").dt.hour.tolist() == [8, 10]


def test_order_of_day_and_month() -> None:
    assert column("03/04/2021 9:05", "25/12/2021 10:00:30").dt.month.tolist() == [4, 12]
    assert column("03/04/2021", "12/25/2021").dt.month.tolist() == [3, 12]
    assert column("03.04.2021", "25.12.2021").dt.month.tolist() == [4, 12]
    assert column("05/05/2021", "06/06/2021").dt.month.tolist() == [5, 6]


@pytest.mark.parametrize(
    ("cells", "rows", "word"),
    [
        (["1.5", "1,5", "2"], 1, "comma"),
        (["1,234", "1,567", "3"], 2, "`decimal`"),
        (["1,234,567", "1,234"], 1, "thousands"),
        (["1.234", "1.234.567"], 1, "thousands"),
        (["30.123", "29.871"], 2, "decimal='.'"),
        (["+30.123", "-29.871", "7", "12000"], 2, "decimal='.'"),
        ([" 1.750", "1.682 "], 2, "decimal='.'"),
        (["1.234,56", "7,5"], 1, "thousands"),
        (["1,234.56", "7.5"], 1, "thousands"),
        (["1 234,5", "7,5"], 1, "thousands"),
        (["1'234", "7"], 1, "thousands"),
        (["03/04/2021", "05/06/2021"], 2, "ISO 8601"),
        (["25/12/2021", "12/25/2021"], 1, "ISO 8601"),
        (["2021-01-01T10:00Z", "2021-01-02T11:00"], 1, "offset"),
    ],
)
def test_a_column_with_two_readings_is_refused(cells: list[str], rows: int, word: str) -> None:
    error = refusal("x;other\n" + "".join(f"{cell};word\n" for cell in cells))
    assert (error.column, error.rows) == ("x", rows)
    assert word in str(error)
    assert "`categorical`" in error.remedy
    assert not any(cell in str(error) for cell in cells if len(cell) > 1)
    assert column(*cells, text_columns=["x"]).tolist() == cells


def test_decimal_given() -> None:
    assert column("1,234", "1,567", decimal=",").tolist() == [1.234, 1.567]
    assert refusal("x;y\n1.5;2\n", decimal=",").column == "x"
    assert refusal("x;y\n1,5;2\n", decimal=".").column == "x"
    assert refusal("x;y\n1,5;2\n", decimal="").remedy


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_points_that_may_separate_thousands(separator: str) -> None:
    data = f"x{separator}y\n30.123{separator}1.5\n29.871{separator}2.5\n900{separator}3.5\n"
    error = refusal(data)
    assert (error.column, error.rows) == ("x", 2)
    assert "2 of its numbers" in error.problem
    assert "`decimal`" in error.remedy
    assert frame(data, decimal=".")["x"].tolist() == [30.123, 29.871, 900.0]
    assert (refusal(data, decimal=",").column, refusal(data, decimal=",").rows) == ("x", 2)
    assert frame(data, categorical=["x"])["x"].tolist() == ["30.123", "29.871", "900"]
    assert frame(data, text_columns=["x"])["x"].tolist() == ["30.123", "29.871", "900"]
    assert refusal("x\n1.750\n1.682\n").column == "x"


@pytest.mark.parametrize("other", ["0.750", "1.75", "1234.5", "1.7500", "1e3", ".5", "0.5e1", "1."])
def test_one_number_may_show_that_points_are_decimal_points(other: str) -> None:
    assert column("1.750", "1.682", other).tolist() == [1.75, 1.682, float(other)]
    assert column(*["1.750"] * 300, other).tolist()[-1] == float(other)


def test_heights_in_a_comma_file_are_decimals() -> None:
    assert frame("height,arm\n1.750,a\n1.682,b\n2,c\n")["height"].tolist() == [1.75, 1.682, 2.0]


def test_point_beside_comma_in_one_file() -> None:
    error = refusal("a;b\n1,5;1.234\n2,5;2.345\n")
    assert (error.column, error.rows) == ("b", 2)
    assert "'a'" in error.problem


def test_quoted_commas_in_a_comma_file() -> None:
    data = 'a,b\n"1,5",x\n"2,5",y\n'
    assert (refusal(data).column, refusal(data).rows) == ("a", 2)
    assert frame(data, decimal=",")["a"].tolist() == [1.5, 2.5]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_separators_and_line_ends(separator: str, end: str) -> None:
    lines = [f"a{separator}b", f'1{separator}"x""y{separator}z\nw"', f"2{separator}v", "", ""]
    table = frame(end.join(lines))
    assert table["a"].tolist() == [1, 2]
    assert table["b"].tolist() == [f'x"y{separator}z\nw', "v"]


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (FRENCH.encode(), "utf-8"),
        (FRENCH.encode("utf-8-sig"), "utf-8-sig"),
        (FRENCH.encode("utf-16"), "utf-16"),
        (FRENCH.encode("latin-1"), "cp1252"),
    ],
)
def test_french_file(content: bytes, encoding: str) -> None:
    parsed = parse_csv(content)
    assert parsed.dialect == Dialect(";", ",", encoding)
    table = to_frame(parsed)
    assert list(table.columns) == ["âge", "taille", "prénom"]
    assert table["taille"].tolist() == [1.5, 2.25]
    assert table["prénom"].tolist() == ["Zoé", "Noël"]


def test_encoding_given() -> None:
    assert list(frame("é;b\n1;2\n".encode("cp850"), encoding="cp850").columns) == ["é", "b"]


@pytest.mark.parametrize("encoding", ["no-such", "hex", "ascii", ""])
def test_encoding_refused(encoding: str) -> None:
    error = refusal(FRENCH.encode(), encoding=encoding)
    assert "`encoding`" in error.remedy
    assert "Zoé" not in str(error)


@pytest.mark.parametrize(
    "content", [b"a,b\n1,\x002\n", "a,b\n1,2\n".encode("utf-16-le"), b"PK\x03\x04junk", b"\x81,b\n1,2\n"]
)
def test_no_text_is_refused(content: bytes) -> None:
    assert refusal(content).remedy


def test_one_column() -> None:
    parsed = parse_csv(b"x\n1\n\n3\n\n")
    assert parsed.dialect.separator is None
    assert to_frame(parsed)["x"].isna().tolist() == [False, True, False]
    assert frame(b"x\n1,5\n2,5\n", decimal=",")["x"].tolist() == [1.5, 2.5]


@pytest.mark.parametrize("content", ["a,b;c\n1,5;2\n", "x\n1,5\n2,5\n"])
def test_unclear_separator(content: str) -> None:
    error = refusal(content)
    assert "`separator`" in error.remedy
    assert error.rows
    assert "1,5" not in str(error)


@pytest.mark.parametrize("separator", ["", "ab", "1", '"', "\n", "é"])
def test_separator_refused(separator: str) -> None:
    assert "`separator`" in str(refusal("a,b\n1,2\n", separator=separator))


@pytest.mark.parametrize("before", ["\n", "\r\n\r\n", "\r", "\n\n\n"])
@pytest.mark.parametrize("table", ["a,b\n1,2\n\n3,4\n", '"a",b\n1,"2"\n3,4\n', "a\n1\n3\n"])
def test_empty_lines_before_the_header(before: str, table: str) -> None:
    assert frame(before + table)["a"].tolist() == [1, 3]


def test_excel_hint() -> None:
    assert frame("sep=;\na;b\n1,5;2\n")["a"].tolist() == [1.5]
    assert "lines 4" in refusal("sep=;\na;b\n1;2\n3\n").problem


def test_names_are_kept() -> None:
    names = ["petal length (cm)", "é.[x]", "🙂", " b", "1"]
    assert list(frame(",".join(names) + "\n1,2,3,4,5\n").columns) == names
    assert list(frame(",a,\n1,2,3\n").columns) == ["Unnamed: 0", "a", "Unnamed: 2"]


def test_duplicate_names() -> None:
    error = refusal("a,b,a\n1,2,3\n")
    assert error.column == "a"
    assert "1, 3" in error.problem
    assert "1888" not in str(refusal("Zoe,1888,1888\nNoe,2,3\n"))


@pytest.mark.parametrize("content", ["5.1,3.5\n4.9,3\n", "5,1;3\n4;3\n", "5,NA\n1,2\n", ",\n1,2\n"])
def test_file_without_header(content: str) -> None:
    assert "first line" in refusal(content).remedy


def test_ragged_rows() -> None:
    error = refusal('a,b\n1,"x\ny"\n8888\n1,2\n7777,8,9\n')
    assert error.rows == 2
    assert "lines 4, 6" in error.problem
    assert "8888" not in str(error)
    assert "7777" not in str(error)


@pytest.mark.parametrize("content", ['a,b\n1,"2\n3,4\n', 'a,b\n1,"x"y\n', 'a,b\n1,5" pipe\n', 'a,b\n1, "x,y"\n'])
def test_stray_quotes(content: str) -> None:
    error = refusal(content)
    assert "line 2" in error.problem
    assert error.rows == 1


@pytest.mark.parametrize("content", [b"", b"\n\n", b"a,b\n", b"a\n", b"\xef\xbb\xbf"])
def test_nothing_to_read(content: bytes) -> None:
    assert refusal(content).rows == 0


def test_blocks_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    content = "a,b\n" + "".join(f'{i},"x""{i}\né"\n' for i in range(200))
    whole = frame(content)
    monkeypatch.setattr("local_cloaking.tables.csv._BLOCK", 64)
    pd.testing.assert_frame_equal(frame(content), whole)


def test_limit_of_exact_floats() -> None:
    assert kind(column(str(LARGEST_EXACT_FLOAT - 1), "")) == "float64"


NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=32).map(float)
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=8).map(
    lambda word: f"w{word}w"
)


@settings(deadline=None, max_examples=60)
@given(
    rows=st.lists(st.tuples(NUMBERS, st.integers(-(2**63), 2**63 - 1), WORDS), min_size=1, max_size=8),
    separator=st.sampled_from([";", "\t", "|"]),
    decimal=st.sampled_from([".", ","]),
    end=st.sampled_from(["\n", "\r\n"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_what_was_written_is_read(
    rows: list[tuple[float, int, str]], separator: str, decimal: str, end: str, encoding: str
) -> None:
    written = pd.DataFrame(rows, columns=["number", "whole", "word"])
    text = io.StringIO()
    written.to_csv(text, sep=separator, decimal=decimal, lineterminator=end, index=False)
    read = frame(text.getvalue().encode(encoding), separator=separator, decimal=decimal)
    np.testing.assert_array_equal(read["number"], written["number"])
    assert read["whole"].tolist() == written["whole"].tolist()
    assert read["word"].tolist() == written["word"].tolist()
