"""The index of the audit store: which verdicts were given, without opening every record.

One small JSON file a verdict, ``<root>/index/<DAG>/<time>~<verdict>~<data set>~<run>~<random>.json``, written once
and never changed: any number of gates may write at a time, also to object storage, which cannot append. The names
say enough to sort and filter by, so that of ten thousand entries only those on the page are read.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import secrets
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import PosixPath, WindowsPath
from typing import Any, TypeVar
from urllib.parse import quote

from local_cloaking.audit.store import write_whole
from local_cloaking.errors import InputError

FOLDER = "index"
VERDICTS = ("passed", "below_threshold", "not_assessable")

#: Far more than an entry has; a file that holds more is none.
_MAX_BYTES = 65_536
_MAX_FOLDER_NAME = 150
#: Object storage answers slowly, but many at a time.
_AT_A_TIME = 16
#: Up to so many DAGs, their folders are asked for by name; the others are looked up in one listing.
_FEW = 8

_NAME = re.compile(
    r"(?P<stamp>\d{8}T\d{6}\.\d{6}Z)~(?P<verdict>[a-z_]+)~(?P<data_set>[0-9a-f]{16})~(?P<run>[0-9a-f]{16})"
    r"~[0-9a-f]{16}\.json"
)

log = logging.getLogger(__name__)

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class IndexEntry:
    """One verdict, and where its record and report lie.

    Attributes
    ----------
    at
        When the verdict was given, ISO 8601 with offset.
    dag_id, run_id, task_id, map_index, try_number
        The try of the check that gave it.
    data_set
        The data set's name, if it has one.
    verdict
        One of `VERDICTS`.
    warning
        Whether it passed with a warning.
    local_cloaking
        None where it is not known.
    threshold, n
        The threshold in force, and how many individuals there were.
    record, report
        POSIX paths relative to the store's root; the report may be missing.
    record_sha256
        SHA-256 of the record's bytes.
    name
        The name of the entry's file, by which they sort; given when it is read, not written in it.
    """

    at: str
    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    try_number: int
    data_set: str | None
    verdict: str
    warning: bool
    local_cloaking: float | None
    threshold: float
    n: int
    record: str
    record_sha256: str
    report: str | None
    name: str = ""


def write_entry(root: Any, entry: IndexEntry) -> None:
    """File a verdict.

    Parameters
    ----------
    root
        The audit store: a `Path`, or anything with the same methods, such as an ``ObjectStoragePath``.
    entry
        The verdict.

    Raises
    ------
    InputError
        If the entry's time or verdict is none.
    OSError
        If the store cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> store = Path(tempfile.mkdtemp())
    >>> write_entry(store, IndexEntry(
    ...     at="2026-11-30T08:09:05.123456+01:00", dag_id="trial", run_id="manual", task_id="check", map_index=-1,
    ...     try_number=1, data_set="patients", verdict="passed", warning=False, local_cloaking=10.0, threshold=5.0,
    ...     n=2139, record="trial/record.json", record_sha256="0" * 64, report=None))
    >>> [(found.dag_id, found.local_cloaking) for found in entries(store)]
    [('trial', 10.0)]
    """
    if entry.verdict not in VERDICTS:
        raise InputError("the index holds no such verdict", remedy=f"give one of {', '.join(VERDICTS)}")
    name = "~".join(
        [
            _stamp(_moment(entry.at)),
            entry.verdict,
            _short_hash(entry.data_set),
            _short_hash(entry.run_id),
            f"{secrets.token_hex(8)}.json",
        ]
    )
    content = {key: value for key, value in asdict(entry).items() if key != "name"}
    text = json.dumps(content, allow_nan=False, ensure_ascii=False) + "\n"
    write_whole(root / FOLDER / _folder_of(entry.dag_id) / name, text.encode())


def entries(
    root: Any,
    *,
    dag_ids: Collection[str] | None = None,
    data_set: str | None = None,
    verdict: str | None = None,
    since: str | None = None,
    until: str | None = None,
    run_id: str | None = None,
    limit: int = 50,
    before: str | None = None,
    strict: bool = False,
) -> list[IndexEntry]:
    """Return entries of a store, newest first.

    Only the entries that are returned are read; one that is damaged is skipped, with a line in the log.

    Parameters
    ----------
    root
        The audit store.
    dag_ids
        Only verdicts of these DAGs; of all by default.
    data_set, verdict, run_id
        Only such verdicts.
    since, until
        Only verdicts from then and up to then: ISO 8601, in UTC where no offset is given; a day counts as a whole.
    limit
        How many at most.
    before
        The name of an entry: only those that sort before it, older than it.
    strict
        Whether an entry that cannot be reached is an error; else it is skipped, as one that is damaged.

    Raises
    ------
    InputError
        If ``since`` or ``until`` is no moment.
    OSError
        If the store cannot be read. One that is not there yet holds nothing.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> entries(Path(tempfile.mkdtemp()))
    []
    """
    return listing(root, dag_ids=dag_ids, strict=strict).newest(
        data_set=data_set, verdict=verdict, since=since, until=until, run_id=run_id, limit=limit, before=before
    )


def listing(root: Any, *, dag_ids: Collection[str] | None = None, strict: bool = False) -> Listing:
    """List a store once, for several questions; ``strict`` as in `entries`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> listing(Path(tempfile.mkdtemp())).latest()
    []
    """
    folders = _folders(root / FOLDER, None if dag_ids is None else {_folder_of(name) for name in dag_ids})
    names = _at_once(lambda folder: _names_in(root / FOLDER / folder), folders)
    filed = [
        _Filed(folder, found)
        for folder, of_folder in zip(folders, names, strict=True)
        for found in map(_NAME.fullmatch, of_folder)
        if found
    ]
    filed.sort(key=lambda one: one.name, reverse=True)
    return Listing(root, tuple(filed), None if dag_ids is None else frozenset(dag_ids), strict)


def read_entry(root: Any, dag_id: str, name: str) -> IndexEntry | None:
    """Return the entry of a name, or None where there is none.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> read_entry(Path(tempfile.mkdtemp()), "trial", "../../etc/passwd") is None
    True
    """
    found = _NAME.fullmatch(name)
    entry = _read(root, _Filed(_folder_of(dag_id), found)) if found else None
    return entry if entry is not None and entry.dag_id == dag_id else None


@dataclass(frozen=True)
class _Filed:
    """What the place of an entry says of it."""

    folder: str
    match: re.Match[str]

    @property
    def name(self) -> str:
        return self.match[0]


@dataclass(frozen=True)
class Listing:
    """The names in a store at one moment, newest first; made by `listing`.

    Attributes
    ----------
    root
        The audit store.
    filed
        The places of the entries.
    dag_ids
        Whose entries are listed; None for all.
    strict
        Whether an entry that cannot be reached is an error.
    """

    root: Any
    filed: tuple[_Filed, ...]
    dag_ids: frozenset[str] | None
    strict: bool = False
    _known: dict[tuple[str, str], IndexEntry | None] = field(default_factory=dict, repr=False, compare=False)

    def newest(
        self,
        *,
        data_set: str | None = None,
        verdict: str | None = None,
        since: str | None = None,
        until: str | None = None,
        run_id: str | None = None,
        limit: int = 50,
        before: str | None = None,
    ) -> list[IndexEntry]:
        """Return entries, newest first; see `entries`."""
        wanted = {"data_set": data_set, "run": run_id}
        hashes = {group: _short_hash(value) for group, value in wanted.items() if value is not None}
        if verdict is not None:
            hashes["verdict"] = verdict
        first = _stamp(_moment(since)) if since else ""
        last = _stamp(_moment(until, end=True)) if until else "~"
        chosen = (
            one
            for one in self.filed
            if first <= one.match["stamp"] <= last
            and (before is None or one.name < before)
            and all(one.match[group] == value for group, value in hashes.items())
        )

        def fits(entry: IndexEntry) -> bool:
            # What the hashes of the names said, without their collisions.
            return data_set in (None, entry.data_set) and run_id in (None, entry.run_id)

        return list(islice((entry for entry in self._read(chosen, limit) if fits(entry)), limit))

    def latest(self, limit: int = 50, *, data_set: str | None = None) -> list[IndexEntry]:
        """Return the last entry of each data set of each DAG, newest first."""
        wanted = None if data_set is None else _short_hash(data_set)
        series = [names for (_, of), names in self._series().items() if wanted in (None, of)]

        def last(names: list[_Filed]) -> IndexEntry | None:
            return next((entry for entry in map(self._checked, names) if entry is not None), None)

        found = _at_once(last, series[:limit])
        return [entry for entry in found if entry is not None]

    def courses(self, latest: Iterable[IndexEntry], length: int) -> list[list[IndexEntry]]:
        """Return, for the last entry of each of some series, the entries that led to it, oldest first."""
        of_series = self._series()
        wanted = [of_series[_folder_of(entry.dag_id), _short_hash(entry.data_set)][:length] for entry in latest]
        found = iter(_at_once(self._checked, [one for names in wanted for one in names]))
        courses = [list(islice(found, len(names))) for names in wanted]
        return [[entry for entry in reversed(course) if entry is not None] for course in courses]

    def _series(self) -> dict[tuple[str, str], list[_Filed]]:
        """Return the names of each data set of each DAG; that with the newest comes first."""
        series: dict[tuple[str, str], list[_Filed]] = defaultdict(list)
        for one in self.filed:
            series[one.folder, one.match["data_set"]].append(one)
        return series

    def _read(self, chosen: Iterator[_Filed], limit: int) -> Iterator[IndexEntry]:
        while some := list(islice(chosen, max(1, limit))):
            yield from (entry for entry in _at_once(self._checked, some) if entry is not None)

    def _checked(self, one: _Filed) -> IndexEntry | None:
        place = (one.folder, one.name)
        if place not in self._known:
            entry = _read(self.root, one, strict=self.strict)
            # A file system may take two names for one.
            wanted = entry is not None and (self.dag_ids is None or entry.dag_id in self.dag_ids)
            self._known[place] = entry if wanted else None
        return self._known[place]


def _at_once(function: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        return list(pool.map(function, items))


# Names ---------------------------------------------------------------------------------------------------------


def _folder_of(dag_id: str) -> str:
    """Return the folder of a DAG: its name, quoted; a long one cut, with its hash."""
    quoted = quote(dag_id, safe="", errors="surrogatepass")
    if quoted.startswith("."):
        quoted = f"%2E{quoted[1:]}"
    if len(quoted) <= _MAX_FOLDER_NAME:
        return quoted
    # No quoted name holds these two signs after each other.
    return f"{quoted[:80]}%~{hashlib.sha256(quoted.encode()).hexdigest()[:32]}"


def _short_hash(text: str | None) -> str:
    return hashlib.sha256(b"" if text is None else b"=" + text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _moment(iso: str, *, end: bool = False) -> datetime:
    try:
        moment = datetime.fromisoformat(iso)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        whole_day = len(iso) <= len("2026-11-30")
        return moment + timedelta(days=1, microseconds=-1) if end and whole_day else moment
    except (ValueError, OverflowError) as error:
        raise InputError("this is no moment", remedy="give a date, as 2026-11-30, or ISO 8601") from error


def _stamp(moment: datetime) -> str:
    # Not strftime, which some systems let write years before 1000 in fewer digits.
    return f"{moment.isoformat(timespec='microseconds')[:26].replace('-', '').replace(':', '')}Z"


# Reading -------------------------------------------------------------------------------------------------------


def is_local(path: Any) -> bool:
    """Return whether a path is of this machine's file system, and not of an object storage.

    Examples
    --------
    >>> from pathlib import Path
    >>> is_local(Path("/data"))
    True
    """
    # Not Path: some versions' object-storage paths are Paths, too.
    return isinstance(path, PosixPath | WindowsPath)


def _is_link(folder: Any) -> bool:
    # The store itself, and its index, lie where whoever set it up wants them.
    return bool(folder.name != FOLDER and folder.is_symlink())


def _folders(index: Any, wanted: set[str] | None) -> list[str]:
    if wanted is not None and len(wanted) <= _FEW:
        return sorted(wanted)
    there = set(_names_in(index))
    return sorted(there if wanted is None else there & wanted)


def _names_in(folder: Any) -> list[str]:
    """Return the names in a folder; of one that is not there, or a link, none."""
    try:
        if is_local(folder):
            return [] if _is_link(folder) else [found.name for found in folder.iterdir()]
        # A server that lives for weeks would go on seeing what it saw first.
        folder.fs.invalidate_cache()
        return [found.name for found in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _read(root: Any, one: _Filed, *, strict: bool = False) -> IndexEntry | None:
    path = root / FOLDER / one.folder / one.name
    # What is no plain file may keep whoever reads it waiting, as a pipe does.
    if is_local(path) and (path.is_symlink() or _is_link(path.parent) or not path.is_file()):
        return None
    try:
        with path.open("rb") as stream:
            content = stream.read(_MAX_BYTES + 1)
        return replace(_parsed(content), name=one.name)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        if strict and isinstance(error, OSError):
            raise
        log.warning("skipped an entry of the index: %s (%s)", one.name, type(error).__name__)
        return None


def _parsed(content: bytes) -> IndexEntry:
    if len(content) > _MAX_BYTES:
        raise ValueError("too long")
    found = json.loads(content)
    if not isinstance(found, dict):
        raise ValueError("not an object")  # noqa: TRY004 - it is the file that is wrong
    values: dict[str, Any] = {
        entry.name: found.get(entry.name) for entry in fields(IndexEntry) if entry.name != "name"
    }
    for name, value in values.items():
        _check(name, value)
    datetime.fromisoformat(values["at"])
    return IndexEntry(**values)


_NUMBERS = {"local_cloaking", "threshold"}
_WHOLE = {"map_index", "try_number", "n"}
#: No number of an entry is larger; those of JSON may have any number of digits.
_LARGEST = 2**53
_MAY_LACK = {"data_set", "local_cloaking", "report"}


def _is_text(value: str) -> bool:
    """Tell half a character from text: JSON can write one, and no address of the page can hold it."""
    return not any("\ud800" <= character <= "\udfff" for character in value)


def _check(name: str, value: Any) -> None:
    if value is None and name in _MAY_LACK:
        return
    if name == "warning":
        good = isinstance(value, bool)
    elif name in _WHOLE:
        good = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST
    elif name in _NUMBERS:
        good = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _LARGEST
    else:
        good = isinstance(value, str) and _is_text(value) and (name != "verdict" or value in VERDICTS)
    if not good:
        raise ValueError(name)
