"""Who may see what: Airflow's own users, and the DAGs that Airflow lets them read.

Airflow asks nobody who they are before it hands a request to a plugin's application: each route does.
"""

from __future__ import annotations

from typing import Annotated, Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.core_api.security import get_user
from fastapi import Depends


def readable_dags(user: Annotated[Any, Depends(get_user)]) -> frozenset[str]:
    """Return the DAGs that the user may read; without a user, Airflow answers 401 or 403."""
    return frozenset(get_auth_manager().get_authorized_dag_ids(user=user, method="GET"))


Readable = Annotated[frozenset[str], Depends(readable_dags)]
