"""Who is told of a verdict, on loopback: a real SMTP server, a receiver of webhooks, a StatsD receiver."""

from __future__ import annotations

import email
import email.policy
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


@contextmanager
def mail_server() -> Iterator[tuple[list[EmailMessage], str]]:
    """Serve SMTP; yield the mails received so far, and Airflow's connection to it, as JSON."""
    pytest.importorskip("airflow.providers.smtp", reason="apache-airflow-providers-smtp is not installed")
    controller = pytest.importorskip("aiosmtpd.controller", reason="aiosmtpd is not installed")
    received: list[EmailMessage] = []

    class Handler:
        async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
            received.append(email.message_from_bytes(envelope.content, policy=email.policy.default))
            return "250 OK"

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = controller.Controller(Handler(), hostname="127.0.0.1", port=port)
    server.start()
    connection = {
        "conn_type": "smtp",
        "host": "127.0.0.1",
        "port": port,
        "extra": {"disable_ssl": True, "disable_tls": True, "from_email": "gate@example.org"},
    }
    try:
        yield received, json.dumps(connection)
    finally:
        server.stop()


class Hook(ThreadingHTTPServer):
    """A receiver of webhooks that keeps what it was sent."""

    def __init__(self) -> None:
        self.received: list[dict[str, Any]] = []
        super().__init__(("127.0.0.1", 0), _Receiver)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/told"


class _Receiver(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        self.server.received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def webhook() -> Iterator[Hook]:
    """Receive webhooks."""
    server = Hook()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def statsd_server() -> Iterator[tuple[Callable[[], list[str]], dict[str, str]]]:
    """Receive StatsD's packets; yield what gives this package's gauges so far, and Airflow's settings for it."""
    received: list[str] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(0.2)
        # Airflow sends hundreds of its own while it runs: they are taken in as they come.
        ended = threading.Event()

        def take_in() -> None:
            quiet = False
            while not (ended.is_set() and quiet):
                try:
                    received.append(receiver.recv(65536).decode())
                    quiet = False
                except TimeoutError:
                    quiet = True

        thread = threading.Thread(target=take_in, daemon=True)
        thread.start()

        def gauges() -> list[str]:
            ended.set()
            thread.join(30)
            return [line for line in received if line.startswith("airflow.local_cloaking.")]

        try:
            yield (
                gauges,
                {
                    "AIRFLOW__METRICS__STATSD_ON": "True",
                    "AIRFLOW__METRICS__STATSD_HOST": "127.0.0.1",
                    "AIRFLOW__METRICS__STATSD_PORT": str(receiver.getsockname()[1]),
                    "AIRFLOW__METRICS__STATSD_INFLUXDB_ENABLED": "True",
                },
            )
        finally:
            gauges()


@pytest.fixture
def mails(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[EmailMessage]]:
    """What a real SMTP server on loopback, the connection `smtp_default`, was sent."""
    with mail_server() as (received, connection):
        monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", connection)
        yield received


@pytest.fixture
def hook() -> Iterator[Hook]:
    """A receiver of webhooks."""
    with webhook() as server:
        yield server
