"""Files in, tables out: hashes, formats and pairs."""

from __future__ import annotations

import gzip
import hashlib
import io
from pathlib import Path

import pandas as pd
import pytest

from local_cloaking.errors import InputError
from local_cloaking.tables import packing
from local_cloaking.tables.files import SourceFile, read_pair, read_table, sha256_of

FRENCH = "âge;taille\n41;1,5\n39;2,25\n"
DATES = {
    "clear": "d;x\n25/12/2020;1\n03/04/2021;2\n",
    "other": "d;x\n12/25/2020;1\n",
    "unclear": "d;x\n03/04/2021;1\n",
}


@pytest.fixture
def write(tmp_path: Path):
    def writer(content: bytes | str, name: str = "table.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return writer


class Remote:
    """As an object of object storage: neither a string nor a PathLike; counts how often it is opened."""

    name = "folder/avatars.csv"

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.opened = 0

    def open(self, mode: str) -> io.BytesIO:
        assert mode == "rb"
        self.opened += 1
        return io.BytesIO(self.content)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_french_file(write, encoding: str, pack) -> None:
    content = pack(FRENCH.encode(encoding))
    path = write(content, "données.csv")
    table = read_table(str(path))
    assert table.frame["taille"].tolist() == [1.5, 2.25]
    found = {"latin-1": "cp1252"}.get(encoding, encoding)
    digest = hashlib.sha256(content).hexdigest()
    assert table.source == SourceFile("données.csv", len(content), digest, 2, "csv", ";", ",", found)
    assert sha256_of(path) == digest


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_parquet_under_any_name(write, pack) -> None:
    buffer = io.BytesIO()
    pd.DataFrame({"x": [1, 2]}).to_parquet(buffer)
    table = read_table(write(pack(buffer.getvalue()), "table.txt"))
    assert table.frame["x"].tolist() == [1, 2]
    assert table.source is not None
    assert (table.source.format, table.source.rows, table.source.separator) == ("parquet", 2, None)


def test_object_storage_is_read_once() -> None:
    remote = Remote(b"a,b\n1,x\n")
    table = read_table(remote)
    assert remote.opened == 1
    assert table.source is not None
    assert table.source.name == "avatars.csv"
    assert sha256_of(remote) == table.source.sha256


def test_unreachable_files_are_no_refusal_but_an_empty_folder_is(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(InputError, match="holds no"):
        read_table(tmp_path)
    with pytest.raises(FileNotFoundError):
        sha256_of(tmp_path / "absent.csv")


PACKED = gzip.compress(b"a,b\n" + b"".join(b"%d,secret\n" % i for i in range(999)))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        gzip.compress(b""),
        PACKED[:-20],
        PACKED[:5],
        PACKED[:50] + b"\xff" * 30 + PACKED[80:],
        PACKED + b"junk",
        b"PAR1",
        b"PAR1" * 9,
    ],
    ids=["empty", "empty gzip", "cut short", "cut off", "damaged", "junk after", "magic", "magics"],
)
def test_broken_files(write, content: bytes) -> None:
    with pytest.raises(InputError) as caught:
        read_table(write(content))
    assert caught.value.remedy
    assert "secret" not in str(caught.value)


def test_decompression_stops_at_the_limit(write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "SMALLEST_LIMIT", 1000)
    with pytest.raises(InputError, match="unpacks to more"):
        read_table(write(gzip.compress(b"a,b\n" + b"1,2\n" * 1_000_000)))


def test_one_name_is_not_taken_letter_by_letter(write) -> None:
    table = read_table(write("key;k\n01;02\n1;2\n"), text_columns="key")
    assert table.frame["key"].tolist() == ["01", "1"]


@pytest.mark.parametrize(
    ("originals", "avatars"), [("clear", "unclear"), ("unclear", "clear"), ("clear", "clear")]
)
def test_dates_are_decided_from_both_files(write, originals: str, avatars: str) -> None:
    pair = read_pair(write(DATES[originals], "o.csv"), write(DATES[avatars], "a.csv"))
    assert [table.frame["d"].dt.month.tolist()[-1] for table in pair] == [4, 4]


@pytest.mark.parametrize(
    ("originals", "avatars", "word"),
    [("clear", "other", "other"), ("unclear", "unclear", "day or with the month")],
)
def test_dates_that_cannot_be_decided(write, originals: str, avatars: str, word: str) -> None:
    with pytest.raises(InputError, match=word) as caught:
        read_pair(write(DATES[originals], "o.csv"), write(DATES[avatars], "a.csv"))
    assert caught.value.column == "d"
    assert caught.value.rows
    assert "ISO 8601" in caught.value.remedy
    assert "2021" not in str(caught.value)


def test_frames_can_be_written_to(write) -> None:
    frame = read_table(write("a,b\n1,2.5\n2,3.5\n")).frame
    frame.loc[0, "a"] = 9
    frame.to_numpy()
    frame["b"].fillna(0)
    assert frame["a"].tolist() == [9, 2]


GROUPED = "salary,arm\n30.123,a\n29.871,b\n900,c\n"
WHOLE = "salary,arm\n30123,a\n29871,b\n,c\n"


def parquet(frame: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.to_parquet(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("categorical", [[], ["salary"]])
@pytest.mark.parametrize(
    "whole",
    [
        WHOLE,
        WHOLE.replace(",", ";"),
        parquet(pd.DataFrame({"salary": [30123, 29871], "arm": ["a", "b"]})),
        parquet(pd.DataFrame({"salary": [30123, None], "arm": ["a", "b"]})),
    ],
    ids=["comma", "semicolon", "parquet", "parquet with a gap"],
)
def test_points_beside_whole_numbers_in_the_other_file(write, whole: bytes | str, categorical: list[str]) -> None:
    grouped, whole = write(GROUPED, "grouped.csv"), write(whole, "whole.csv")
    for pair in ((grouped, whole), (whole, grouped)):
        with pytest.raises(InputError) as caught:
            read_pair(*pair, categorical=categorical)
        error = caught.value
        assert (error.file, error.column, error.rows) == ("grouped.csv", "salary", 2)
        assert error.remedy == "give `decimal`, or write the numbers alike in both files"
        assert "30" not in str(error)
    one, _ = read_pair(grouped, whole, decimal=".")
    assert one.frame["salary"].tolist() == [30.123, 29.871, 900.0]
    assert read_pair(grouped, whole, text_columns=["salary"])[0].frame["salary"].tolist()[0] == "30.123"


def test_categories_with_points_stay_text_but_not_beside_whole_numbers(write) -> None:
    grouped = write(GROUPED.replace(",", ";"), "grouped.csv")
    one, other = read_pair(grouped, grouped, categorical=["salary"])
    assert one.frame["salary"].tolist() == other.frame["salary"].tolist() == ["30.123", "29.871", "900"]
    with pytest.raises(InputError, match="whole numbers only"):
        read_pair(grouped, write(WHOLE, "whole.csv"), categorical=["salary"])


@pytest.mark.parametrize(
    "other",
    [
        b"height,arm\n1.701,a\n1.815,b\n",
        b"height,arm\n1.7,a\n1.815,b\n",
        b"height,arm\n1.000,a\n2.000,b\n",
        b"height,arm\n,a\n,b\n",
        b"height,arm\ntall,a\nsmall,b\n",
        parquet(pd.DataFrame({"height": [1.701, 2.0], "arm": ["a", "b"]})),
        parquet(pd.DataFrame({"height": [None, None], "arm": ["a", "b"]})),
    ],
)
def test_heights_beside_others_that_are_not_whole_are_read(write, other: bytes) -> None:
    heights = write("height,arm\n1.750,a\n1.682,b\n", "o.csv")
    for pair in (read_pair(heights, write(other, "a.csv")), read_pair(write(other, "a.csv"), heights)[::-1]):
        assert pair[0].frame["height"].tolist() == [1.75, 1.682]
