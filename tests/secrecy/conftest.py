"""The searches share the migrated database, and the servers, of the other tests."""

from __future__ import annotations

from tests.cluster import cluster
from tests.integration.conftest import airflow_home, run_dag
from tests.receivers import hook, mails
from tests.storage import endpoint

__all__ = ["airflow_home", "cluster", "endpoint", "hook", "mails", "run_dag"]
