"""Two small tables whose Local Cloaking is known, and an audit store that already holds a run."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults import invariants

#: Files that are their owner's alone.
PRIVATE = ("weak.csv", "made.csv", "made.csv.projection.json")
#: Small, as they are measured thousands of times.
N = 80
#: Local Cloaking of the avatars lies between them.
PASSING, FAILING = 1.0, 30.0
VERDICTS = {PASSING: "passed", FAILING: "below_threshold"}


def write_tables(folder: Path, k: int = 12) -> tuple[Path, Path, Path]:
    """Write originals, avatars and projection, and return where they lie."""
    import numpy as np
    import pandas as pd

    from local_cloaking.measuring import avatarise_file

    rng = np.random.default_rng(7)
    originals = pd.DataFrame(rng.normal(size=(N, 5)).round(4), columns=list("abcde"))
    originals["arm"] = rng.choice(["placebo", "low", "high"], size=N)
    originals.insert(0, "id", [f"{i:04d}" for i in range(N)])
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / "originals.csv", folder / "avatars.csv", folder / "projection.json"
    originals.to_csv(paths[0], index=False)
    made = avatarise_file(paths[0], "avatars.csv", k=k, ncp=3, seed=1, key="id")
    paths[1].write_bytes(made.avatars)
    paths[2].write_bytes(made.projection)
    return paths


@dataclass
class Workshop:
    """A folder that is brought back to how it was, as often as wanted."""

    root: Path
    kept: Path
    _states: dict[str, dict[Any, Any]] = field(default_factory=dict)

    @property
    def tables(self) -> Path:
        return self.root / "tables"

    @property
    def audit(self) -> Path:
        return self.root / "audit"

    def nothing_half_written(self, *, leftovers: bool) -> None:
        """See `tests.faults.invariants`."""
        invariants.nothing_half_written(self.root, leftovers=leftovers, private=PRIVATE)

    def keep(self, name: str, xcoms: dict[Any, Any]) -> None:
        """Keep everything as it is now."""
        shutil.copytree(self.root, self.kept / name)
        self._states[name] = dict(xcoms)

    def restore(self, name: str) -> dict[Any, Any]:
        """Bring back what was kept, and return the XComs of then."""
        shutil.rmtree(self.root)
        shutil.copytree(self.kept / name, self.root)
        return dict(self._states[name])

    def files(self) -> dict[str, str]:
        """Return the hash of each file."""
        return {
            str(path): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.root.rglob("*"))
            if path.is_file()
        }
