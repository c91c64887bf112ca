"""What is thrown at what. Each target takes bytes, so that any input can be kept in a file and thrown again.

A target's ``once`` returns where the outcome is right (a measure, a clear refusal, an answer of the page that is
no 5xx) and raises where it is not.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parent / "corpus"

Mutate = Callable[[bytes, random.Random], bytes]


@dataclass(frozen=True)
class Target:
    """Something that inputs are thrown at.

    Attributes
    ----------
    name
        As on the command line; also the folder of its corpus.
    module
        Where it is: it has ``once``, or ``once_<name>``, and what makes inputs.
    by
        ``atheris`` changes bytes, guided by what they reach; ``hypothesis`` makes values.
    """

    name: str
    module: str
    by: str

    def once(self) -> Callable[[bytes], None]:
        """Return what takes an input, with all imported that it takes."""
        self._part("prepare")()
        return self._part("once")

    def mutate(self) -> Mutate:
        """Return what changes an input, for atheris."""
        return self._part("mutate")

    def strategy(self) -> Any:
        """Return what makes inputs as JSON values, or lists of some, for hypothesis."""
        return self._part("strategy")()

    def kept(self) -> list[Path]:
        """Return the files of the corpus."""
        return sorted(path for path in (CORPUS / self.name).iterdir() if path.is_file())

    def _part(self, what: str) -> Any:
        module = importlib.import_module(f"tests.fuzz.{self.module}")
        own = f"{what}_{self.name.replace('-', '_')}"
        return getattr(module, own) if hasattr(module, own) else getattr(module, what)


TARGETS = {
    target.name: target
    for target in (
        Target("csv", "tables", "atheris"),
        Target("parquet", "tables", "atheris"),
        Target("statistical", "tables", "atheris"),
        Target("options", "options", "hypothesis"),
        Target("verify", "records", "atheris"),
        Target("handed-over", "handed_over", "atheris"),
        Target("page-records", "page", "atheris"),
        Target("page-requests", "page", "hypothesis"),
    )
}
