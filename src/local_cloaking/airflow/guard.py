"""The guard of a publishing task: only the avatars that passed may leave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow.providers.common.compat.sdk import AirflowFailException

from local_cloaking.airflow.arguments import location, mapping, table
from local_cloaking.airflow.runs import refusals_are_final
from local_cloaking.sources import HeldTable, SqlTable
from local_cloaking.storage import read_whole


def require_passed(verdict: Any, avatars: Any, *, accept_unverified: bool = False) -> Any:
    """Return the path or URI of avatars that passed, or the table itself where it is no file; raise for others.

    For the first line of a publishing task. A task may have been marked a success by hand, an XCom edited, a
    file replaced: so the record is read, its hash compared with the check's, and the very bytes about to be
    published compared with those that were measured.

    :param verdict: The output of the check: ``gate.verdict`` or ``check.output``.
    :param avatars: What names the avatars about to be published, as for the measure. Read it at once: what takes
        its place after this call was not looked at.
        Of what Octopize's platform writes, its shuffled table may be given where the unshuffled one was measured:
        it has the same rows, which are compared.
    :param accept_unverified: Also accept a verdict that does not speak of the whole table: from bare
        coordinates, or with columns that were left out.
    :return: The path, links resolved, or the URI; a `SqlTable` or a table in memory as it was given.
    :raises AirflowFailException: If the record does not say ``passed`` for exactly these bytes.
    :raises OSError: If record or avatars cannot be read.
    """
    from local_cloaking.audit.record import RecordError, passed_record
    from local_cloaking.tables import sha256_of

    with refusals_are_final():
        given = mapping(verdict, "verdict", "check")
        place = table(avatars, "avatars")
        record = location(given.get("record"), "verdict")
        passed = passed_record(read_whole(record), str(given.get("record_sha256")))
        if passed["avatars_table"] != "verified" and not accept_unverified:
            raise RecordError(
                "the verdict does not speak of the whole table: coordinates were given, or columns left out"
            )
        place = place.resolve() if isinstance(place, Path) else place
        is_it = sha256_of(place) == passed["avatars_sha256"] or _has_the_rows(place, passed)
    if not is_it:
        raise AirflowFailException(
            f"{place.name} is not the file that passed: its hash differs; measure and check it before it leaves"
        )
    if isinstance(place, HeldTable):
        return place.table
    return avatars if isinstance(place, SqlTable) else str(place)


def _has_the_rows(place: Any, record: dict[str, Any]) -> bool:
    """Tell whether a table has the very rows that passed, in whatever order."""
    from local_cloaking.tables import read_table, rows_sha256_of

    rows = record["inputs"]["avatars"].get("rows_sha256")
    if rows is None:
        return False
    written = {name: record["parameters"][name] for name in ("separator", "decimal", "encoding")}
    return rows_sha256_of(read_table(place, **written).frame) == str(rows)
