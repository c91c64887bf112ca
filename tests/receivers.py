"""What alerts are sent to: a real SMTP server and a real HTTP receiver, on loopback."""

from __future__ import annotations

import email
import email.policy
import json
import socket
import threading
from collections.abc import Iterator
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


@pytest.fixture
def mails(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[EmailMessage]]:
    """What a real SMTP server on loopback, the connection `smtp_default`, was sent."""
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
    monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", json.dumps(connection))
    yield received
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


@pytest.fixture
def hook() -> Iterator[Hook]:
    server = Hook()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()
