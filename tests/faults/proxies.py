"""What stands between a task and a server on loopback: it records what passes, and lets one thing fail."""

from __future__ import annotations

import http.client
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.faults.operations import Fault, Recorder


@dataclass
class Line(Recorder):
    """What passes between a task and a server."""

    #: Ends the task's process.
    kill: Callable[[], Any] = lambda: None

    def begin(self, fault: Fault | None) -> None:
        """Record from the start, and let this fail."""
        with self._lock:
            self.operations, self.struck, self.fault = [], False, fault

    def meet(self, kind: str, path: str, size: int = 0) -> str | None:
        """Record what passes; return how it is to fail, now or for good."""
        way = super().meet(kind, path, size)
        if way == "killed":
            self.kill()
        return way and way.removesuffix(" from here on")


# Object storage ------------------------------------------------------------------------------------------------

_EVERY = frozenset({"GET", "HEAD", "PUT", "POST", "DELETE", "LIST"})
#: The ways in which a request to object storage can fail.
STORAGE_WAYS: dict[str, frozenset[str]] = {
    "killed": _EVERY,
    "500": _EVERY,
    "503 from here on": _EVERY,
    "403 from here on": _EVERY,
    "cut before it arrives": _EVERY,
    "cut before it arrives from here on": _EVERY,
    "done, and no answer": frozenset({"PUT", "POST"}),
    "done, and no answer from here on": frozenset({"PUT", "POST"}),
    "cut in the middle": frozenset({"GET", "LIST"}),
    "cut in the middle from here on": frozenset({"GET", "LIST"}),
    "half, told as the whole": frozenset({"GET"}),
    "nonsense": frozenset({"LIST", "HEAD", "PUT"}),
}


@contextmanager
def storage_proxy(endpoint: str) -> Iterator[tuple[Line, str]]:
    """Stand before an S3 server; give the line to it, and the address."""
    line = Line()
    handler = type("Handler", (_StorageDoor,), {"line": line, "behind": urlsplit(endpoint).netloc})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield line, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _StorageDoor(BaseHTTPRequestHandler):
    """Passes requests on to what is behind it, but for one."""

    protocol_version = "HTTP/1.1"
    line: Line
    behind: str

    def log_message(self, *_: Any) -> None:
        pass

    def handle_one_request(self) -> None:
        with suppress(OSError):
            super().handle_one_request()

    def answer(self) -> None:
        body = self._body()
        parts = urlsplit(self.path)
        query = parse_qs(parts.query)
        listing = self.command == "GET" and "list-type" in query
        path = f"{parts.path}/{query.get('prefix', [''])[0]}" if listing else parts.path
        way = self.line.meet("LIST" if listing else self.command, path, len(body))
        if way in ("killed", "cut before it arrives"):
            self._cut()
        elif way in ("500", "503", "403"):
            self._tell(int(way), {}, b"")
        else:
            self._pass_on(body, way)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _pass_on(self, body: bytes, way: str | None) -> None:
        headers = _without(self.headers.items(), "transfer-encoding", "content-length")
        if body or self.command in ("PUT", "POST"):
            headers["Content-Length"] = str(len(body))
        connection = http.client.HTTPConnection(self.behind, timeout=60)
        connection.request(self.command, self.path, body or None, headers)
        with connection.getresponse() as answer:
            content = answer.read()
        connection.close()
        told = _without(answer.getheaders(), "transfer-encoding", "connection")
        if way == "done, and no answer":
            self._cut()
        elif way == "nonsense":
            self._tell(200, {}, b"<html>this is no answer of a storage</html>")
        elif way == "half, told as the whole":
            told = _without(told.items(), "content-length", "content-range")
            self._tell(answer.status, told, content[: len(content) // 2])
        else:
            self._tell(answer.status, told, content, half=way == "cut in the middle")

    def _tell(self, status: int, headers: dict[str, str], content: bytes, *, half: bool = False) -> None:
        self.send_response(status)
        for name, value in _without(headers.items(), "content-length", "server", "date").items():
            self.send_header(name, value)
        length = {name.lower(): value for name, value in headers.items()}.get("content-length", str(len(content)))
        self.send_header("Content-Length", length if self.command == "HEAD" else str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content[: len(content) // 2] if half else content)
        if half:
            self.wfile.flush()
            self._cut()

    def _cut(self) -> None:
        self.close_connection = True
        reset(self.connection)


def _without(headers: Iterable[tuple[str, str]], *names: str) -> dict[str, str]:
    return {name: value for name, value in headers if name.lower() not in names}


def reset(connection: socket.socket) -> None:
    """End a connection as a machine does that goes away."""
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RDWR)
        connection.close()


# A database ----------------------------------------------------------------------------------------------------

#: The ways in which what passes between a task and its database can fail.
DATABASE_WAYS: dict[str, frozenset[str]] = {
    "killed": frozenset({"asked", "answered"}),
    "gone": frozenset({"asked", "answered"}),
    "gone from here on": frozenset({"asked"}),
    "closed": frozenset({"asked", "answered"}),
    "cut in the middle": frozenset({"answered"}),
    "ended by the server": frozenset({"asked"}),
}


@contextmanager
def database_proxy(port: int, end: Callable[[], Any]) -> Iterator[tuple[Line, int]]:
    """Stand before a database; give the line to it, and the port.

    :param end: Ends all connections of the server's, as its administrator does.
    """
    line = Line()
    with socket.create_server(("127.0.0.1", 0)) as door:
        passing = _DatabaseDoor(line, door, port, end)
        threading.Thread(target=passing.serve, daemon=True).start()
        yield line, door.getsockname()[1]


@dataclass
class _DatabaseDoor:
    """Passes on whatever is said, but for one piece of it."""

    line: Line
    door: socket.socket
    port: int
    end: Callable[[], Any]

    def serve(self) -> None:
        with suppress(OSError):
            while True:
                task, _ = self.door.accept()
                server = socket.create_connection(("127.0.0.1", self.port))
                for come, go, kind in ((task, server, "asked"), (server, task, "answered")):
                    threading.Thread(target=self._pass_on, args=(come, go, kind), daemon=True).start()

    def _pass_on(self, come: socket.socket, go: socket.socket, kind: str) -> None:
        with suppress(OSError):
            while data := come.recv(1 << 20):
                way = self.line.meet(kind, kind, len(data))
                if way in ("gone", "killed"):
                    reset(come)
                    reset(go)
                elif way == "closed":
                    break
                elif way == "cut in the middle":
                    go.sendall(data[: len(data) // 2])
                    break
                elif way == "ended by the server":
                    self.end()
                go.sendall(data)
        for side in (come, go):
            with suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)
