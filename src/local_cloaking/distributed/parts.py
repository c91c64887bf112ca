"""What lies on the workers: encoded rows of a partition.

They tell Dask what they weigh: where it runs a task, and when it spills to disk, depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from local_cloaking.safeguards import take
from local_cloaking.tables.columns import EncodedColumn

Integers = NDArray[np.int64]

#: Bytes of a key's hash: a Python object of its own.
_KEY_BYTES = 64


@dataclass(frozen=True, repr=False)
class Part:
    """Encoded rows of a table: their columns, their places in it, and, to be paired by, hashes of their keys."""

    columns: tuple[EncodedColumn, ...]
    rows: Integers
    keys: NDArray[np.object_] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def __sizeof__(self) -> int:
        keys = 0 if self.keys is None else _KEY_BYTES * len(self.keys)
        return int(self.rows.nbytes) + keys + sum(int(c.values.nbytes + c.missing.nbytes) for c in self.columns)

    def take(self, rows: Any) -> Part:
        """Return some rows, in their order."""
        keys = None if self.keys is None else self.keys[rows]
        return Part(tuple(take(cells, rows) for cells in self.columns), self.rows[rows], keys)

    def only(self, places: Sequence[int]) -> tuple[EncodedColumn, ...]:
        """Return some of the columns."""
        return tuple(self.columns[place] for place in places)


def together(parts: Sequence[Part]) -> Part:
    """Return the rows of several parts, one after the other; at least one part."""
    columns = tuple(
        EncodedColumn(
            pieces[0].column,
            np.concatenate([piece.values for piece in pieces]),
            np.concatenate([piece.missing for piece in pieces]),
        )
        for pieces in zip(*(part.columns for part in parts), strict=True)
    )
    keys = [part.keys for part in parts if part.keys is not None]
    rows = np.concatenate([part.rows for part in parts])
    return Part(columns, rows, np.concatenate(keys) if keys else None)
