"""What lies on the workers: encoded rows of a partition, as results that Dask can weigh."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from local_cloaking.safeguards import take
from local_cloaking.tables.columns import EncodedColumn

Integers = NDArray[np.int64]


class Weighed:
    """Tells Dask what it weighs: where to run a task, and when to spill, are decided by it."""

    def __sizeof__(self) -> int:
        from dask.sizeof import sizeof

        return 64 + sum(int(sizeof(value)) for value in vars(self).values())


@dataclass(frozen=True, repr=False)
class Part(Weighed):
    """Encoded rows of a table: their columns, their places in the table, and, to be paired by them, their keys."""

    columns: tuple[EncodedColumn, ...]
    rows: Integers
    keys: NDArray[np.object_] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def __sizeof__(self) -> int:
        # A key is a Python text of its own.
        keys = 0 if self.keys is None else 64 * len(self.keys)
        return (
            64
            + keys
            + int(self.rows.nbytes)
            + sum(int(cells.values.nbytes + cells.missing.nbytes) for cells in self.columns)
        )

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
