"""An avatarisation that is a program of somebody else's, run once for each k and seed.

The command is a line with gaps, as ``make-avatars --k {k} --seed {seed} {originals} {output}``:

============== ======================================================================================
``{k}``         the k to try; needed
``{output}``    the file that the program is to write, one avatar per original; needed
``{seed}``      the seed
``{ncp}``       the components
``{originals}`` the originals: their file, or where they are a DataFrame, a Parquet file of them
``{projection}`` where the program may write the projection that it used, as ``local-cloaking avatarise`` does
============== ======================================================================================

No shell ever sees it: the line is cut into words first, as a shell would, and the gaps are filled afterwards,
within their words. Each run has a folder of its own, for its owner alone, which is gone afterwards.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from local_cloaking.audit.store import write_whole
from local_cloaking.avatarisation import Avatarisation
from local_cloaking.errors import InputError
from local_cloaking.projection import FAMD
from local_cloaking.tables import CsvOptions, Table, read_pair, read_table, table_bytes
from local_cloaking.tables.files import AS_FOUND

if TYPE_CHECKING:
    import pandas as pd

_GAPS = ("k", "output", "seed", "ncp", "originals", "projection")
_GAP = re.compile(r"\{(" + "|".join(_GAPS) + r")\}")
_NEEDED = ("k", "output")
_BY_HAND = "run the command by hand with this k and seed, and see what it says"


@dataclass(frozen=True)
class CommandAvatarisation:
    """A command that makes avatars.

    Attributes
    ----------
    words
        The command, cut into words, with its gaps.
    source
        The file of the originals, or None where they are a DataFrame.
    key, categorical, csv
        How tables are read.
    quiet
        Whether what the program prints is dropped, as it may speak of people; else it goes to standard error.

    Examples
    --------
    >>> CommandAvatarisation.of("make-avatars --k {k} -o {output}").words
    ('make-avatars', '--k', '{k}', '-o', '{output}')
    """

    words: tuple[str, ...]
    source: Path | None = None
    key: str | None = None
    categorical: Collection[str] = ()
    csv: CsvOptions = AS_FOUND
    quiet: bool = True
    #: Of the originals' file when it was read.
    sha256: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, command: str | Sequence[str], **options: Any) -> CommandAvatarisation:
        """Read a command, a line or a list of words.

        Raises
        ------
        InputError
            If it is no command, or lacks a gap that it needs.
        """
        words = _words(command)
        for name in _NEEDED:
            if not any(f"{{{name}}}" in word for word in words):
                raise InputError(
                    f"the command has no {{{name}}}",
                    remedy="give one as 'make-avatars --k {k} --seed {seed} {originals} {output}'",
                )
        return cls(words, **options)

    def __call__(self, originals: pd.DataFrame, *, k: int, seed: int, ncp: int) -> Avatarisation | pd.DataFrame:
        """Run the program, and read what it wrote.

        Raises
        ------
        InputError
            If the program cannot be started, fails, or writes no table.
        """
        with tempfile.TemporaryDirectory(prefix="local-cloaking-") as folder:
            places = self._places(Path(folder), originals)
            values = {"k": str(k), "seed": str(seed), "ncp": str(ncp)} | {
                name: str(place) for name, place in places.items()
            }
            self._run([_GAP.sub(lambda gap: values[gap[1]], word) for word in self.words])
            output, projection = places["output"], places["projection"]
            if not output.is_file() or not output.stat().st_size:
                raise InputError(
                    "the command ended, but wrote no avatars", remedy=f"let it write {{output}}: {_BY_HAND}"
                )
            avatars = self._read(output)
            if not projection.is_file():
                return avatars
            return Avatarisation(avatars, _projection(projection))

    def _places(self, folder: Path, originals: pd.DataFrame) -> Mapping[str, Path]:
        ending = ".parquet" if self.source is None else _ending(self.source)
        places = {
            "output": folder / f"avatars{ending}",
            "projection": folder / "projection.json",
            "originals": folder / "originals.parquet" if self.source is None else self.source.resolve(),
        }
        if self.source is None and any("{originals}" in word for word in self.words):
            write_whole(places["originals"], table_bytes(originals, "originals.parquet"), private=True)
        return places

    def _run(self, words: list[str]) -> None:
        shown = subprocess.DEVNULL if self.quiet else 2
        try:
            done = subprocess.run(  # noqa: S603 (the user's own command, without a shell)
                words, stdin=subprocess.DEVNULL, stdout=shown, stderr=shown, check=False
            )
        except OSError as error:
            raise InputError(
                f"the command cannot be started: {error.strerror or type(error).__name__}",
                remedy="give the path of the program",
            ) from error
        if done.returncode:
            ended = (
                f"was stopped by signal {-done.returncode}"
                if done.returncode < 0
                else f"ended with {done.returncode}"
            )
            raise InputError(f"the command {ended}", remedy=_BY_HAND)

    def _read(self, output: Path) -> pd.DataFrame:
        text_columns = () if self.key is None else (self.key,)
        options: dict[str, Any] = {
            "text_columns": text_columns,
            "categorical": self.categorical,
            **asdict(self.csv),
        }
        if self.source is None:
            return read_table(output, **options).frame
        # Together, so that dates and numbers are read the same way in both.
        originals, avatars = read_pair(self.source, output, **options)
        self._refuse_other_originals(originals)
        return avatars.frame

    def _refuse_other_originals(self, originals: Table) -> None:
        if self.sha256 is not None and originals.source is not None and originals.source.sha256 != self.sha256:
            raise InputError(
                "the originals were changed while values of k were tried",
                remedy="let the command write to {output} alone, and begin again",
                file=originals.source.name,
            )


def _words(command: str | Sequence[str]) -> tuple[str, ...]:
    try:
        words = shlex.split(command) if isinstance(command, str) else [os.fspath(word) for word in command]
    except (TypeError, ValueError) as error:
        raise InputError(
            "the avatarisation is neither a function nor a command", remedy="give a line, with its quotes closed"
        ) from error
    return tuple(words)


def _ending(source: Path) -> str:
    name = source.name.lower()
    return next((ending for ending in (".csv.gz", ".parquet") if name.endswith(ending)), ".csv")


def _projection(path: Path) -> FAMD:
    try:
        return FAMD.from_json(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(
            "the projection is not a text file", remedy="let the command write JSON, or none"
        ) from error
