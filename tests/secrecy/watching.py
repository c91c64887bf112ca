"""Keeps what a run writes and takes away again, and how each file came into being.

In the process itself: each file that is opened to be written, with its rights at that moment; each that is
removed, as it was then; each connection that is opened. Beside it, a thread that links what others write into the
watched folders (libraries in C++, programs that were started) to where it stays.
"""

from __future__ import annotations

import builtins
import io
import json
import os
import shutil
import stat
import sys
import threading
import time
from pathlib import Path
from typing import Any


class Watch:
    """Watches this process.

    Parameters
    ----------
    kept
        A folder for what was there for a moment only.
    folders
        The folders to look into while it lasts.
    """

    def __init__(self, kept: Path, *folders: Path) -> None:
        self.kept, self.folders = kept, folders
        self.made: dict[str, int] = {}
        self.called: list[str] = []
        self._inside = threading.local()
        self._ended = threading.Event()
        self._linked: set[tuple[int, int]] = set()
        kept.mkdir(parents=True, exist_ok=True)

    def start(self) -> None:
        """Begin; there is no end but that of the process for what is hooked."""
        self._open, self._os_open = io.open, os.open
        builtins.open = io.open = self._opened  # type: ignore[assignment]
        os.open = self._os_opened  # type: ignore[assignment]
        sys.addaudithook(self._heard)
        self._thread = threading.Thread(target=self._look_around, daemon=True)
        self._thread.start()

    def end(self, told: Path) -> None:
        """Stop looking around, and write down what was seen."""
        self._ended.set()
        self._thread.join()
        self._link_all()
        told.write_text(json.dumps({"made": self.made, "called": sorted(set(self.called))}))

    # How a file comes into being ---------------------------------------------------------------------------------

    def _opened(self, file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
        fresh = not isinstance(file, int) and set(mode) & set("wxa") and not os.path.lexists(file)
        stream = self._open(file, mode, *args, **options)
        if fresh:
            self._note(os.fspath(file), stream.fileno())
        return stream

    def _os_opened(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        fresh = flags & os.O_CREAT and not (dir_fd is None and os.path.lexists(path))
        descriptor = self._os_open(path, flags, mode, dir_fd=dir_fd)
        if fresh or flags & os.O_TMPFILE == os.O_TMPFILE:
            self._note(os.fspath(path), descriptor)
        return descriptor

    def _note(self, path: Any, descriptor: int) -> None:
        name = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 (links stay)
        self.made.setdefault(name, stat.S_IMODE(os.fstat(descriptor).st_mode))

    # What is taken away ------------------------------------------------------------------------------------------

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if getattr(self._inside, "busy", False):
            return
        self._inside.busy = True
        try:
            if event == "os.remove":
                self._keep(arguments[0], arguments[1])
            elif event == "socket.connect":
                self.called.append(str(arguments[1]))
            elif event == "subprocess.Popen":
                self.called.append(f"program {arguments[0]}")
        except OSError:
            pass
        finally:
            self._inside.busy = False

    def _keep(self, path: Any, folder: int) -> None:
        name = os.fsdecode(path)
        if folder not in (-1, None):
            name = str(Path(f"/proc/self/fd/{folder}").readlink() / name)
        name = os.path.abspath(name)  # noqa: PTH100 (links stay)
        if any(name.startswith(f"{one}{os.sep}") for one in self.folders):
            self._copy(name)

    def _copy(self, name: str) -> None:
        target = self.kept / f"{time.monotonic_ns()}{name.replace(os.sep, '!')[-150:]}"
        shutil.copyfile(name, target)

    # What others write -------------------------------------------------------------------------------------------

    def _look_around(self) -> None:
        self._inside.busy = True
        while not self._ended.wait(0.02):
            self._link_all()

    def _link_all(self) -> None:
        for folder in self.folders:
            for place, _, names in os.walk(folder):
                for name in names:
                    self._link(f"{place}/{name}")

    def _link(self, path: str) -> None:
        try:
            known = os.lstat(path)
            if not stat.S_ISREG(known.st_mode) or (known.st_dev, known.st_ino) in self._linked:
                return
            self._linked.add((known.st_dev, known.st_ino))
            self.made.setdefault(path, stat.S_IMODE(known.st_mode))
            os.link(path, self.kept / f"{known.st_ino}{path.replace(os.sep, '!')[-150:]}")
        except OSError:
            return
