"""Write the secrets of the stack to .env: once, with fresh random values, readable by their owner alone.

A file that is there is never changed. Only the standard library is used.
"""

from __future__ import annotations

import base64
import os
import secrets
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
_HEAD = """\
# Secrets of the stack, made at random by `make up`. Who reads them reads its data.
# Settings may stand here, too: see docs/stack.md.
"""


def fresh() -> dict[str, str]:
    """Return new values for all that docker-compose.yml asks for, which a URL takes as they are."""
    return {
        "AIRFLOW_ADMIN_PASSWORD": secrets.token_urlsafe(18),
        # What Fernet takes: 32 bytes in the alphabet of URLs.
        "AIRFLOW_FERNET_KEY": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        "AIRFLOW_JWT_SECRET": secrets.token_hex(64),
        "AIRFLOW_SECRET_KEY": secrets.token_hex(32),
        "POSTGRES_PASSWORD": secrets.token_hex(24),
        "REDIS_PASSWORD": secrets.token_hex(24),
        # Who owns the checkout can read dags/ and plugins/, whatever their rights; but nothing runs as root.
        "AIRFLOW_UID": str(os.getuid() or 50000),
    }


def write_secrets(path: Path) -> bool:
    """Write the file, whole or not at all; return whether it was not there yet."""
    text = _HEAD + "".join(f"{name}={value}\n" for name, value in fresh().items())
    # Made with owner-only rights by the standard library; a link never takes the place of a file that is there.
    with tempfile.NamedTemporaryFile("w", prefix=".env.", dir=path.parent) as beside:
        beside.write(text)
        beside.flush()
        os.fsync(beside.fileno())
        try:
            os.link(beside.name, path)
        except FileExistsError:
            return False
    return True


def main() -> int:
    """Write .env, or the file that is named."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else CHECKOUT / ".env"
    if write_secrets(path):
        print(f"Fresh secrets were written to {path}, readable by you alone.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
