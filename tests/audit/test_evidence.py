"""The counts file: of nobody in particular, and the very one that was measured."""

from __future__ import annotations

import hashlib
import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_cloaking.audit.evidence import Evidence, EvidenceError

CLOSER, STRICTLY = np.array([7, 0, 3, 3, 12]), np.array([5, 0, 3, 1, 12])
MEASURE = {"n": 5, "reason": None, "warnings": ["é"], "columns": [{"name": "age", "missing": 0.1}]}


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def written() -> bytes:
    return Evidence.of(CLOSER, STRICTLY, MEASURE).to_bytes()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30), st.randoms())
def test_counts_are_sorted_so_that_no_row_is_an_individual(pairs: list[tuple[int, int]], random: Any) -> None:
    evidence = Evidence.of(*np.array(pairs).T, MEASURE)
    found = list(zip(evidence.closer.tolist(), evidence.strictly_closer.tolist(), strict=True))
    assert found == sorted(pairs)
    random.shuffle(pairs)
    # Another order of individuals gives the same file.
    assert Evidence.of(*np.array(pairs).T, MEASURE).to_bytes() == evidence.to_bytes()


def test_file_gives_back_counts_and_measure() -> None:
    content = written()
    again = Evidence.from_bytes(content, sha(content))
    assert again.closer.tolist() == [0, 3, 3, 7, 12]
    assert again.strictly_closer.tolist() == [0, 1, 3, 5, 12]
    assert again.closer.dtype == again.strictly_closer.dtype == np.int64
    assert again.measure == MEASURE
    assert list(pq.read_table(io.BytesIO(content)).column_names) == ["closer", "strictly_closer"]


def test_arrays_of_the_caller_are_not_sorted() -> None:
    closer = CLOSER.copy()
    Evidence.of(closer, STRICTLY, MEASURE)
    assert closer.tolist() == CLOSER.tolist()


def test_any_edited_byte_is_refused() -> None:
    content = written()
    right = sha(content)
    for place in range(len(content)):
        edited = bytearray(content)
        edited[place] ^= 1
        with pytest.raises(EvidenceError, match="hash"):
            Evidence.from_bytes(bytes(edited), right)


@pytest.mark.parametrize("end", [0, 4, -1])
def test_file_that_is_cut_short_is_refused(end: int) -> None:
    content = written()
    with pytest.raises(EvidenceError):
        Evidence.from_bytes(content[:end], sha(content))


def test_counts_of_another_measure_are_refused() -> None:
    other = Evidence.of(CLOSER + 100, STRICTLY, MEASURE).to_bytes()
    with pytest.raises(EvidenceError, match="hash"):
        Evidence.from_bytes(other, sha(written()))
    renamed = Evidence.of(CLOSER, STRICTLY, {**MEASURE, "reason": "shuffled"}).to_bytes()
    assert sha(renamed) != sha(written())


def stored(columns: dict[str, Any], metadata: dict[bytes, bytes] | None) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), sink)
    return sink.getvalue()


GOOD = {"closer": pa.array([1, 2]), "strictly_closer": pa.array([1, 2])}
WRITTEN = {b"local_cloaking": b"{}"}


def test_the_file_that_is_spoilt_below_is_read() -> None:
    content = stored(GOOD, WRITTEN)
    assert Evidence.from_bytes(content, sha(content)).measure == {}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PAR1",
        b"closer,strictly_closer\n1,1\n",
        stored(GOOD, None),
        stored(GOOD, {b"other": b"{}"}),
        stored(GOOD, {b"local_cloaking": b"{"}),
        stored(GOOD, {b"local_cloaking": b"\xff"}),
        stored({"closer": pa.array([1, 2])}, WRITTEN),
        stored({**GOOD, "closer": pa.array([1.0, 2.0])}, WRITTEN),
        stored({**GOOD, "closer": pa.array(["1", "2"])}, WRITTEN),
        stored({**GOOD, "closer": pa.array([1, None])}, WRITTEN),
        stored({**GOOD, "strictly_closer": pa.array([None, 2])}, WRITTEN),
        stored({**GOOD, "closer": pa.array([True, False])}, WRITTEN),
        stored({**GOOD, "closer": pa.array([1, 2], pa.int32())}, WRITTEN),
    ],
    ids=[
        "empty",
        "magic alone",
        "csv",
        "no metadata",
        "other metadata",
        "metadata cut",
        "metadata no text",
        "one column",
        "floats",
        "text",
        "gap",
        "strict gap",
        "booleans",
        "narrow",
    ],
)
def test_file_that_no_measure_wrote_is_refused_though_its_hash_is_right(content: bytes) -> None:
    with pytest.raises(EvidenceError):
        Evidence.from_bytes(content, sha(content))


def test_measure_that_is_not_plain_json_is_not_written() -> None:
    with pytest.raises(ValueError, match="JSON"):
        Evidence.of(CLOSER, STRICTLY, {"n": float("nan")}).to_bytes()
