"""What a process reads and writes, recorded one by one as it happens; and one of it made to fail.

Python's own doors to files are watched: ``open`` with everything done to the stream, and the functions of ``os``.
An audit hook sees whatever opens a file by another door of Python's. What a task tells Airflow, and what it asks,
is recorded beside it, and so is each look at the clock.
"""

from __future__ import annotations

import builtins
import datetime as dt
import errno
import io
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: By which a clock steps back.
STEP_BACK = 3600.0


@dataclass(frozen=True)
class Operation:
    """One read or write."""

    number: int
    kind: str
    path: str
    size: int = 0


@dataclass(frozen=True)
class Fault:
    """Which operation fails, and how; see `WAYS`.

    It has a number, or is the first whose kind and path, as text, hold something.
    """

    number: int
    way: str
    holding: str = ""


class Unforeseen(RuntimeError):
    """An exception that nobody has thought of."""


_CREATING = frozenset({"create", "mkdir", "link", "rename", "write", "fsync", "close"})
_CHANGING = _CREATING - {"write", "fsync", "close"} | {"unlink", "chmod", "rmdir"}
_READING = frozenset({"open", "read", "stat", "list"})
_FILES = _CREATING | _CHANGING | _READING
_TELLING = frozenset({"tell", "ask"})
_EVERY = _FILES | _TELLING | {"clock", "other"}

#: The ways to fail, and the kinds of operations that can fail so.
WAYS: dict[str, frozenset[str]] = {
    "killed": _EVERY,
    "input/output error": _FILES | {"other"},
    "done, and an error told": frozenset({"mkdir", "link", "rename", "unlink", "chmod", "fsync", "close", "tell"}),
    "full disk from here on": _CREATING,
    "read-only from here on": _CHANGING,
    "refused": frozenset({"open", "create", "mkdir", "link", "list"}),
    "half, then a full disk": frozenset({"write"}),
    "half, then killed": frozenset({"write"}),
    "half at a time": frozenset({"write", "read"}),
    "cut off": frozenset({"read"}),
    "half, then an error": frozenset({"read"}),
    "out of memory": frozenset({"read", "write", "create"}),
    "unforeseen": frozenset({"open", "create", "read", "write", "tell", "ask"}),
    "timed out": frozenset({"open", "read", "write", "fsync", "link", "rename", "tell"}),
    "clock steps back": frozenset({"clock"}),
}
#: After which the very same try still succeeds: nothing was lost.
HARMLESS = frozenset({"half at a time", "clock steps back"})
_ERRORS = {
    "input/output error": errno.EIO,
    "full disk from here on": errno.ENOSPC,
    "half, then a full disk": errno.ENOSPC,
    "read-only from here on": errno.EROFS,
    "refused": errno.EACCES,
    "half, then an error": errno.EIO,
    "done, and an error told": errno.EIO,
}


def faults_of(operations: list[Operation]) -> list[Fault]:
    """Return every way in which each of the operations can fail."""
    return ways_of(operations, WAYS)


def ways_of(operations: list[Operation], ways: dict[str, frozenset[str]]) -> list[Fault]:
    """Return each operation in each of the ways that there are for its kind."""
    return [Fault(one.number, way) for one in operations for way, kinds in ways.items() if one.kind in kinds]


@dataclass(kw_only=True)
class Recorder:
    """Records operations, and says which of them is to fail."""

    fault: Fault | None = None
    operations: list[Operation] = field(default_factory=list)
    struck: bool = False
    _lock: Any = field(default_factory=threading.Lock)

    def meet(self, kind: str, path: str, size: int = 0) -> str | None:
        """Record an operation; return how it is to fail."""
        with self._lock:
            self.operations.append(Operation(len(self.operations), kind, path, size))
            fault = self.fault
            if fault is None or not (self._is_here(fault) or self._lasts(fault, kind)):
                return None
            self.struck = True
            return fault.way

    def _is_here(self, fault: Fault) -> bool:
        one = self.operations[-1]
        named = bool(fault.holding) and not self.struck and fault.holding in f"{one.kind} {one.path}"
        return named or fault.number == one.number

    def _lasts(self, fault: Fault, kind: str) -> bool:
        return self.struck and fault.way.endswith("from here on")


@dataclass
class Watch(Recorder):
    """Records the operations of this process, and lets one of them fail."""

    concerns: Callable[[str], bool]
    #: By how many seconds the clock is behind.
    back: float = 0.0
    _names: dict[int, str] = field(default_factory=dict)
    _inside: threading.local = field(default_factory=threading.local)

    # What happens to an operation ------------------------------------------------------------------------------

    def _lasts(self, fault: Fault, kind: str) -> bool:
        return super()._lasts(fault, kind) and kind in WAYS[fault.way]

    def pass_on(self, kind: str, path: str, act: Callable[[], Any]) -> Any:
        """Do an operation, or let it fail."""
        way = self.meet(kind, path)
        if way == "done, and an error told":
            with self.inside():
                act()
        if way is not None:
            self.strike(way, path)
        with self.inside():
            return act()

    def strike(self, way: str, path: str) -> None:
        """Raise what the way to fail raises, or end the process."""
        if way in ("killed", "half, then killed"):
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)
        if way == "out of memory":
            raise MemoryError
        if way == "unforeseen":
            raise Unforeseen("nobody has thought of this")
        if way == "timed out":
            from airflow.providers.common.compat.sdk import AirflowTaskTimeout

            raise AirflowTaskTimeout
        if way == "clock steps back":
            self.back = STEP_BACK
        elif way in _ERRORS:
            number = _ERRORS[way]
            raise OSError(number, os.strerror(number), path)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Within an operation that is recorded: what it does in turn is not."""
        before = getattr(self._inside, "yes", False)
        self._inside.yes = True
        try:
            yield
        finally:
            self._inside.yes = before

    @property
    def is_inside(self) -> bool:
        return bool(getattr(self._inside, "yes", False))

    # Doors -----------------------------------------------------------------------------------------------------

    def path_of(self, place: Any) -> str | None:
        """Return the path of what concerns this run, None for anything else."""
        if isinstance(place, bool):
            return None
        if isinstance(place, int):
            return self._names.get(place)
        try:
            path = os.path.abspath(os.fsdecode(place))  # noqa: PTH100 - follows no link
        except TypeError:
            return None
        return path if self.concerns(path) else None

    def forget(self, descriptor: int) -> None:
        """Take note that a descriptor is closed."""
        self._names.pop(descriptor, None)

    def install(self) -> None:
        """Watch all doors, from now on until the process ends."""
        for name, (kind, which) in _DOORS.items():
            setattr(os, name, self._watched(getattr(os, name), kind, which))
        os.open = self._opens(os.open)
        os.close = self._closes(os.close)
        builtins.open = io.open = self._stream
        self._watch_clocks()
        sys.addaudithook(self._heard)

    def _watched(self, function: Any, kind: str, which: int) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            path = None
            if not self.is_inside:
                path = self.path_of(args[which] if len(args) > which else kwargs.get("path", args and args[0]))
            if path is None:
                return function(*args, **kwargs)
            return self.pass_on(kind, path, lambda: function(*args, **kwargs))

        return call

    def _opens(self, function: Any) -> Any:
        def call(place: Any, flags: int, *args: Any, **kwargs: Any) -> int:
            path = None if self.is_inside else self.path_of(place)
            if path is None:
                return int(function(place, flags, *args, **kwargs))
            kind = "create" if flags & os.O_CREAT else "open"
            descriptor = int(self.pass_on(kind, path, lambda: function(place, flags, *args, **kwargs)))
            self._names[descriptor] = path
            return descriptor

        return call

    def _closes(self, function: Any) -> Any:
        def call(descriptor: int) -> None:
            self.forget(descriptor)
            function(descriptor)

        return call

    def _stream(self, file: Any, mode: str = "r", buffering: int = -1, *args: Any, **kwargs: Any) -> Any:
        path = None if self.is_inside else self.path_of(file)
        if path is None:
            return _OPEN(file, mode, buffering, *args, **kwargs)
        opener, closefd = kwargs.pop("opener", None), kwargs.pop("closefd", True)
        plain = mode.replace("b", "").replace("t", "")

        def opened() -> Any:
            return _Stream(file, plain, closefd, opener)

        if isinstance(file, int):
            raw = opened()  # It was recorded when it was opened.
        else:
            raw = self.pass_on("open" if plain == "r" else "create", path, opened)
        raw.watch, raw.path, raw.writes = self, path, plain != "r"
        if buffering == 0:
            return raw
        kind = io.BufferedRandom if "+" in plain else io.BufferedReader if plain == "r" else io.BufferedWriter
        stream = kind(raw)
        return stream if "b" in mode else io.TextIOWrapper(stream, *args, **kwargs)

    def _heard(self, event: str, args: tuple[Any, ...]) -> None:
        if event not in ("open", "sqlite3.connect") or self.is_inside or not args:
            return
        path = None if isinstance(args[0], int) else self.path_of(args[0])
        if path is not None:
            way = self.meet("other", path)
            if way is not None:
                self.strike(way, path)

    # Clocks ----------------------------------------------------------------------------------------------------

    def _watch_clocks(self) -> None:
        watch, now = self, time.time

        class Watched(dt.datetime):
            @classmethod
            def now(cls, tz: Any = None) -> Any:
                return cls.fromtimestamp(watch._tick(now), tz)

        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] == "local_cloaking" and getattr(module, "datetime", None) is dt.datetime:
                module.datetime = Watched  # type: ignore[attr-defined]

    def _tick(self, now: Callable[[], float]) -> float:
        way = self.meet("clock", "clock")
        if way is not None:
            self.strike(way, "clock")
        return now() - self.back


_OPEN = io.open
#: Functions of `os`, the kind of what they do, and which argument names the file that comes to be or is asked for.
_DOORS: dict[str, tuple[str, int]] = {
    "link": ("link", 1),
    "rename": ("rename", 1),
    "replace": ("rename", 1),
    "symlink": ("link", 1),
    "unlink": ("unlink", 0),
    "remove": ("unlink", 0),
    "mkdir": ("mkdir", 0),
    "rmdir": ("rmdir", 0),
    "chmod": ("chmod", 0),
    "truncate": ("write", 0),
    "fsync": ("fsync", 0),
    "stat": ("stat", 0),
    "lstat": ("stat", 0),
    "readlink": ("stat", 0),
    "scandir": ("list", 0),
    "listdir": ("list", 0),
}


class _Stream(io.FileIO):
    """An open file whose reads and writes are recorded."""

    watch: Watch
    path: str
    writes: bool
    _ended = False

    def readinto(self, buffer: Any) -> int | None:
        way = self.watch.meet("read", self.path, len(buffer))
        if way is None:
            return 0 if self._ended else super().readinto(buffer)
        if way in ("cut off", "half at a time", "half, then an error"):
            data = super().read(max(1, os.fstat(self.fileno()).st_size // 2))
            self._ended = way == "cut off"
            if way != "half, then an error":
                buffer[: len(data)] = data
                return len(data)
        self.watch.strike(way, self.path)
        return None

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0:
            return self.readall()
        buffer = bytearray(size)
        return bytes(buffer[: self.readinto(buffer) or 0])

    def readall(self) -> bytes:
        way = self.watch.meet("read", self.path)
        if way is None:
            return b"" if self._ended else super().readall()
        if way in ("cut off", "half at a time", "half, then an error"):
            data = super().read(max(1, os.fstat(self.fileno()).st_size // 2))
            if way == "cut off":
                self._ended = True
                return data
            if way == "half at a time":
                return data + super().readall()
        self.watch.strike(way, self.path)
        return b""

    def write(self, content: Any) -> int | None:
        way = self.watch.meet("write", self.path, len(content))
        if way is None:
            return super().write(content)
        if way.startswith("half"):
            done = super().write(memoryview(content)[: max(1, len(content) // 2)])
            if way == "half at a time":
                return done
        self.watch.strike(way, self.path)
        return None

    def close(self) -> None:
        if self.closed:
            return
        self.watch.forget(self.fileno())
        if not self.writes:
            super().close()
            return
        way = self.watch.meet("close", self.path)
        if way == "killed":
            self.watch.strike(way, self.path)
        with self.watch.inside():
            super().close()
        if way is not None:
            self.watch.strike(way, self.path)


def under(*folders: Path) -> Callable[[str], bool]:
    """Return whether a path lies in one of the folders."""
    roots = tuple(str(folder.resolve()) for folder in folders)
    return lambda path: any(path == root or path.startswith(f"{root}{os.sep}") for root in roots)
