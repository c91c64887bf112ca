"""What a measure leaves for the gate: the sorted counts, and what was measured, in one Parquet file.

One hash covers both, so that neither the counts nor what stands beside them (the number of individuals, the
reason why they cannot be relied on) can be changed unnoticed between measure and gate. Counts are sorted: they
say nothing of anyone.
"""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from local_cloaking.errors import LocalCloakingError

Integers = NDArray[np.int64]

_METADATA_KEY = b"local_cloaking"


class EvidenceError(LocalCloakingError):
    """The counts file is not what the measure wrote: there is nothing to judge."""


@dataclass(frozen=True)
class Evidence:
    """Counts and measure.

    Attributes
    ----------
    closer, strictly_closer
        int64, shape (n,): the pairs of counts, sorted; row i is no particular individual.
    measure
        What was measured, as plain JSON values; see `local_cloaking.audit.record.measure_entries`.
    """

    closer: Integers
    strictly_closer: Integers
    measure: dict[str, Any]

    @classmethod
    def of(cls, closer: Integers, strictly_closer: Integers, measure: dict[str, Any]) -> Evidence:
        """Sort the counts, so that no row points at an individual."""
        order = np.lexsort((strictly_closer, closer))
        return cls(closer[order], strictly_closer[order], measure)

    def to_bytes(self) -> bytes:
        """Write as a Parquet file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table({"closer": self.closer, "strictly_closer": self.strictly_closer})
        text = json.dumps(self.measure, allow_nan=False, ensure_ascii=False, sort_keys=True)
        sink = io.BytesIO()
        pq.write_table(table.replace_schema_metadata({_METADATA_KEY: text.encode()}), sink)
        return sink.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes, sha256: str) -> Evidence:
        """Read a file that `to_bytes` wrote.

        Raises
        ------
        EvidenceError
            If the bytes are not those of the hash, or not a counts file.
        """
        if hashlib.sha256(content).hexdigest() != sha256:
            raise EvidenceError("the counts file is not the one that was measured: its hash differs")
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pq.read_table(pa.BufferReader(content))
            closer, strictly = (table[name] for name in ("closer", "strictly_closer"))
            measure = json.loads(table.schema.metadata[_METADATA_KEY])
        except (pa.ArrowException, OSError, KeyError, TypeError, ValueError, RecursionError) as error:
            # The bytes are in memory: an OSError of Arrow speaks of their content.
            raise EvidenceError("the counts file is not one that a measure wrote") from error
        if not isinstance(measure, dict):
            raise EvidenceError("the counts file is not one that a measure wrote")
        if closer.type != pa.int64() or strictly.type != pa.int64() or closer.null_count or strictly.null_count:
            raise EvidenceError("the counts file holds something else than whole numbers")
        return cls(closer.to_numpy(), strictly.to_numpy(), measure)
