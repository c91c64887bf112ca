"""What an Airflow connection opens: a database, a place in object storage."""

from __future__ import annotations

from typing import Any

from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook

from local_cloaking.errors import InputError


def engine_of(conn_id: str) -> Any:
    """Return the SQLAlchemy engine of a connection, by its provider's hook.

    Raises
    ------
    InputError
        If there is no such connection, or it is not one of a database.
    """
    try:
        hook = BaseHook.get_connection(conn_id).get_hook()
    except AirflowNotFoundException as error:
        raise InputError(
            f"there is no Airflow connection {conn_id!r}", remedy="define it, or correct its name"
        ) from error
    if not hasattr(hook, "get_sqlalchemy_engine"):
        raise InputError(
            f"the Airflow connection {conn_id!r} is not one of a database",
            remedy="name one whose provider has a hook for SQL",
        )
    return hook.get_sqlalchemy_engine()
