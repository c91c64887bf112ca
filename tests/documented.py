"""The documentation's examples, and the tables that they speak of."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
EXAMPLES = DOCS / "examples"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted(DOCS.rglob("*.md"))]
#: The folder that the examples' tables lie in.
FOLDER = "/data"

_FENCE = re.compile(r"^```(?P<kind>\w*)[^\n]*\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:^ {4}[^\n]*\n|(?<=\n)\n(?= {4}))+", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A block of code on a page."""

    page: Path
    kind: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(ROOT)}: {self.text.strip().splitlines()[0][:60]}"


#: The page whose blocks, examples and pieces of DAGs, `tests/test_docs_sources.py` runs.
SOURCES = DOCS / "sources.md"


def blocks() -> Iterator[Block]:
    """Return every block that stands on a page itself; one that includes a file is that file's matter."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for found in _FENCE.finditer(text):
            if "--8<--" not in found["text"]:
                yield Block(page, found["kind"], found["text"])
        for found in _INDENTED.finditer(_FENCE.sub("", text)):
            yield Block(page, "", textwrap.dedent(found[0]).strip("\n"))


def included() -> set[Path]:
    """Return the files that pages include."""
    found = re.findall(r'^--8<-- "([^"]+)"$', "".join(page.read_text() for page in PAGES), re.MULTILINE)
    return {ROOT / path for path in found}


def write_tables(folder: Path) -> None:
    """Write what the examples read: originals and avatars in several forms, whose Local Cloaking is about 12."""
    from local_cloaking import avatarise_in_space

    random = np.random.default_rng(7)
    originals = pd.DataFrame(random.normal(size=(400, 6)).round(4), columns=list("abcdef"))
    originals["arm"] = random.choice(["placebo", "low", "high"], 400)
    originals["centre"] = random.integers(1, 4, 400)
    made = avatarise_in_space(originals, k=60, ncp=5, seed=1, categorical=["centre"])
    avatars = made.avatars
    keys = [f"{number:04d}" for number in range(400)]
    for table in (originals, avatars):
        table.insert(0, "patient_id", keys)
    originals.to_csv(folder / "patients.csv", index=False)
    originals.to_parquet(folder / "patients.parquet", index=False)
    avatars.to_csv(folder / "avatars.csv", index=False)
    avatars.to_parquet(folder / "avatars.parquet", index=False)
    (folder / "projection.json").write_text(made.projection.to_json())
    renamed = avatars.rename(columns={"patient_id": "avatar_id"}).assign(avatar_id=[f"a{key}" for key in keys])
    renamed.sample(frac=1, random_state=1).to_csv(folder / "renamed.csv", index=False)
    pd.DataFrame({"patient_id": keys, "avatar_id": renamed["avatar_id"]}).to_csv(
        folder / "pairing.csv", index=False
    )
    for name, table in (("originals", originals), ("avatars", avatars)):
        named = table.rename(columns={"patient_id": "id"})
        named.to_csv(folder / f"{name}{'-made' if name == 'avatars' else ''}.csv", index=False)
