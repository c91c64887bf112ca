"""The plugin `local_cloaking`: a page in Airflow's navigation, and a tab on each DAG and run."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from airflow.providers.common.compat.sdk import AirflowPlugin

from local_cloaking.airflow.links import PREFIX, page_path


def _view(destination: str, url_route: str, query: str = "") -> dict[str, Any]:
    return {
        "name": "Local Cloaking",
        "href": page_path() + query,
        "destination": destination,
        "url_route": url_route,
    }


class LocalCloakingPlugin(AirflowPlugin):
    """What Airflow loads; scheduler and workers load it, too, and never ask for the application."""

    name = "local_cloaking"
    external_views = [  # noqa: RUF012 - as Airflow declares it
        _view("nav", "local-cloaking"),
        _view("dag", "local-cloaking-dag", "?dag_id={DAG_ID}"),
        _view("dag_run", "local-cloaking-run", "?dag_id={DAG_ID}&run_id={RUN_ID}"),
    ]

    @cached_property
    def fastapi_apps(self) -> list[dict[str, Any]]:
        """The application, made where it is served."""
        from local_cloaking.airflow.page.application import create_application

        return [{"app": create_application(), "url_prefix": PREFIX, "name": "Local Cloaking"}]
