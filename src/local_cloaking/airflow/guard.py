"""The guard of a publishing task: only the avatars that passed may leave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow.providers.common.compat.sdk import AirflowFailException

from local_cloaking.airflow.arguments import location, mapping
from local_cloaking.airflow.runs import refusals_are_final


def require_passed(verdict: Any, avatars: Any, *, accept_unverified: bool = False) -> str:
    """Return the path or URI of avatars that passed; raise for any others.

    For the first line of a publishing task. A task may have been marked a success by hand, an XCom edited, a
    file replaced: so the record is read, its hash compared with the check's, and the very bytes about to be
    published compared with those that were measured.

    :param verdict: The output of the check: ``gate.verdict`` or ``check.output``.
    :param avatars: Path or URI of the avatars about to be published, a file or a folder of Parquet files. Read it
        at once: what takes its place after this call was not looked at.
    :param accept_unverified: Also accept a verdict that does not speak of the whole table: from bare
        coordinates, or with columns that were left out.
    :return: The path, links resolved, or the URI.
    :raises AirflowFailException: If the record does not say ``passed`` for exactly these bytes.
    :raises OSError: If record or avatars cannot be read.
    """
    from local_cloaking.audit.record import RecordError, passed_record
    from local_cloaking.tables import sha256_of

    with refusals_are_final():
        given = mapping(verdict, "verdict", "check")
        place = location(avatars, "avatars")
        record = location(given.get("record"), "verdict")
        with record.open("rb") as stream:
            passed = passed_record(stream.read(), str(given.get("record_sha256")))
        if passed["avatars_table"] != "verified" and not accept_unverified:
            raise RecordError(
                "the verdict does not speak of the whole table: coordinates were given, or columns left out"
            )
        place = place.resolve() if isinstance(place, Path) else place
        found = sha256_of(place)
    if found != passed["avatars_sha256"]:
        raise AirflowFailException(
            f"{place.name} is not the file that passed: its hash differs; measure and check it before it leaves"
        )
    return str(place)
