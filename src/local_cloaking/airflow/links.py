"""The page's address, and the buttons "Report" and "Record" on a check's task."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode, urlsplit

from airflow.providers.common.compat.sdk import BaseOperatorLink, conf

#: Where the page's application hangs in Airflow's API server.
PREFIX = "/local-cloaking"


def page_path(route: str = "", **query: Any) -> str:
    """Return the path of the page, or of one of its routes, below the API server's own base path.

    Without the host: a link within Airflow leads to wherever the user found Airflow.

    Examples
    --------
    >>> page_path("report", dag_id="trial", run_id="manual__2026-11-30T07:12:03+00:00")
    '/local-cloaking/report?dag_id=trial&run_id=manual__2026-11-30T07%3A12%3A03%2B00%3A00'
    """
    base = urlsplit(conf.get("api", "base_url", fallback="") or "").path.rstrip("/")
    return f"{base}{PREFIX}/{route}" + (f"?{urlencode(query)}" if query else "")


class _TryLink(BaseOperatorLink):
    """A link to what one try of a check left behind."""

    route: str

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Return the link of this very try."""
        del operator
        return page_path(
            self.route,
            dag_id=ti_key.dag_id,
            run_id=ti_key.run_id,
            task_id=ti_key.task_id,
            map_index=-1 if ti_key.map_index is None else ti_key.map_index,
            try_number=ti_key.try_number,
        )


class ReportLink(_TryLink):
    """To the report of this try, among the run's other tries."""

    name = "Report"
    xcom_key = "_link_local_cloaking_report"
    route = "report"


class RecordLink(_TryLink):
    """To the record of this try, as the JSON file that it is."""

    name = "Record"
    xcom_key = "_link_local_cloaking_record"
    route = "record.json"
