"""From a file of originals to a k: what the command line and the DAG share."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any

from local_cloaking.errors import InputError
from local_cloaking.limits import SMALLEST_ADVISED_K
from local_cloaking.tables.files import AS_FOUND, CsvOptions

if TYPE_CHECKING:
    from local_cloaking.trying import Search, TriedK


@dataclass(frozen=True)
class Request:
    """What is asked for: the arguments of `local_cloaking.advise`, on a file.

    Attributes
    ----------
    originals
        A path or an object with ``open``.
    threshold, margin, k_min, k_max, seeds, ncp, key, categorical, drop
        As in `local_cloaking.advise`; no seeds for its own.
    command
        A command that makes avatars, see `local_cloaking.commands`; None for the published algorithm.
    show_output
        Whether what the command prints goes to standard error.
    csv
        How CSV files are written.
    data_set
        A name for what is written down.
    """

    originals: Any
    threshold: Any
    margin: Any = 0.0
    k_min: Any = SMALLEST_ADVISED_K
    k_max: Any = None
    seeds: Sequence[Any] = ()
    ncp: Any = 5
    key: str | None = None
    categorical: Collection[str] = ()
    drop: Collection[str] = ()
    command: str | Sequence[str] | None = field(default=None, repr=False)
    show_output: bool = False
    csv: CsvOptions = AS_FOUND
    data_set: str | None = None


@dataclass(frozen=True)
class Opened:
    """A request whose originals were read, and whose arguments were checked.

    Attributes
    ----------
    request
        What was asked for.
    search
        Tries a k.
    described
        The originals' file, for what is written down.
    """

    request: Request
    search: Search = field(repr=False)
    described: dict[str, Any]

    @property
    def n(self) -> int:
        """Number of individuals."""
        return len(self.search.originals)

    def plan(self) -> dict[str, Any]:
        """Return what other tasks need to go on with the same search, as plain JSON values."""
        return {
            **self.search.aim.arguments,
            "n": self.n,
            "originals_sha256": self.described["sha256"],
        }

    def entries(self, tried: Iterable[TriedK], context: Mapping[str, Any]) -> dict[str, Any]:
        """Return what follows from what was tried, see `local_cloaking.audit.advice`."""
        from local_cloaking.advice import conclude
        from local_cloaking.audit.advice import advice_entries
        from local_cloaking.trying import kind_of

        request = self.request
        return advice_entries(
            conclude(tried, self.search.aim, self.n, kind_of(request.command)),
            {
                "data_set": request.data_set,
                "parameters": {
                    "key": request.key,
                    "categorical": sorted(str(name) for name in request.categorical),
                    "drop": sorted(str(name) for name in request.drop),
                    **asdict(request.csv),
                },
                "inputs": {"originals": self.described},
                **context,
            },
        )


def open_request(request: Request, *, originals_sha256: str | None = None) -> Opened:
    """Read the originals, and check what is asked for.

    Parameters
    ----------
    request
        What is asked for.
    originals_sha256
        The hash of the originals that the search began with, or None where it begins now.

    Raises
    ------
    InputError
        If an argument or the originals are refused, or they are not those that the search began with.
    OSError
        If the file cannot be read.
    """
    from local_cloaking.commands import CommandAvatarisation
    from local_cloaking.tables import read_table
    from local_cloaking.tables.columns import without
    from local_cloaking.trying import SEEDS, Search, checked_aim, maker

    table = read_table(
        request.originals,
        text_columns=() if request.key is None else (request.key,),
        categorical=request.categorical,
        **asdict(request.csv),
    )
    described = {} if table.source is None else asdict(table.source)
    if originals_sha256 is not None and described.get("sha256") != originals_sha256:
        raise InputError(
            "the originals were changed while values of k were tried",
            remedy="begin again, and leave them as they are meanwhile",
            file=described.get("name"),
        )
    frame = without(table.frame, request.drop)
    aim = checked_aim(
        len(frame),
        threshold=request.threshold,
        margin=request.margin,
        k_min=request.k_min,
        k_max=request.k_max,
        seeds=request.seeds or SEEDS,
        ncp=request.ncp,
    )
    command = None
    if request.command is not None:
        command = CommandAvatarisation.of(
            request.command,
            source=request.originals if isinstance(request.originals, Path) else None,
            key=request.key,
            categorical=request.categorical,
            csv=request.csv,
            quiet=not request.show_output,
            sha256=described.get("sha256"),
        )
    make = maker(command, request.key, request.categorical)
    search = Search(frame, aim, make, key=request.key, categorical=request.categorical)
    if originals_sha256 is None:
        search.refuse_unmeasurable()
    return Opened(request, search, described)


def advise_file(
    request: Request, *, told: Callable[[TriedK], object] | None = None, zone: tzinfo | None = None
) -> dict[str, Any]:
    """Find the smallest k whose Local Cloaking reaches the threshold.

    Parameters
    ----------
    request
        What is asked for.
    told
        Called with each k when it was tried.
    zone
        Time zone of the times; None for the machine's.

    Returns
    -------
    Plain JSON values; see `local_cloaking.audit.advice`.

    Raises
    ------
    InputError
        If something is refused; see `local_cloaking.advise`.
    OSError
        If the file cannot be read.
    """
    from local_cloaking.advice import find
    from local_cloaking.measuring import now

    started = time.perf_counter()
    opened = open_request(request)
    tried = find(opened.search, told)
    return opened.entries(
        tried, {"advised_at": now(zone), "duration_seconds": round(time.perf_counter() - started, 3)}
    )
