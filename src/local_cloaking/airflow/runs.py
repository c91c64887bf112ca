"""Where a task's evidence lies, and which run it belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from airflow.providers.common.compat.sdk import AirflowFailException, conf

from local_cloaking.airflow.arguments import location
from local_cloaking.errors import LocalCloakingError, without_message

CONFIG_SECTION = "local_cloaking"
CONFIG_OPTION = "audit_path"


@contextmanager
def refusals_are_final() -> Iterator[None]:
    """Fail the task for good where this package refuses: the same input would be refused again.

    Whatever else goes wrong (storage, database, memory) may be tried again. What nobody foresaw is logged without
    its message.
    """
    try:
        yield
    except LocalCloakingError as error:
        raise AirflowFailException(str(error)) from error
    except (OSError, MemoryError):
        raise
    except Exception as error:
        if type(error).__module__.partition(".")[0] == "airflow":
            raise  # It knows no cell.
        raise without_message(error) from None


def run_of(context: Any) -> dict[str, Any]:
    """Return which run, task and try this is, as plain JSON values."""
    ti = context["ti"]
    return {
        "dag_id": str(ti.dag_id),
        "run_id": str(ti.run_id),
        "task_id": str(ti.task_id),
        "map_index": -1 if ti.map_index is None else int(ti.map_index),
        "try_number": int(ti.try_number),
    }


def zone_of(context: Any) -> Any:
    """Return the DAG's time zone, for times that carry its offset."""
    return getattr(context["dag"], "timezone", None)


def evidence_folder(audit_path: Any, context: Any) -> Any:
    """Return a folder of this try's own, under ``audit_path`` or the configured one.

    The last part of the task instance's identifier, which Airflow makes anew for each try, keeps tries of one
    number apart, as a cleared or repeated run has them.
    """
    root = evidence_root(audit_path)
    run, ti = run_of(context), context["ti"]
    parts = [run["dag_id"], run["run_id"], run["task_id"]]
    if run["map_index"] >= 0:
        parts.append(f"map-{run['map_index']}")
    parts.append(f"try-{run['try_number']}-{str(ti.id)[-12:]}")
    for part in parts:
        root = root / _file_name(part)
    return root


def evidence_root(audit_path: Any = None) -> Any:
    """Return where all evidence lies: ``audit_path``, or else what is configured."""
    if audit_path is not None:
        return location(audit_path, CONFIG_OPTION)
    configured = conf.get(CONFIG_SECTION, CONFIG_OPTION, fallback=None)
    if configured:
        return location(configured, CONFIG_OPTION)
    from airflow.configuration import AIRFLOW_HOME

    return Path(AIRFLOW_HOME) / "local_cloaking"


def _file_name(part: str) -> str:
    # Nothing that a shell, a URL or another file system takes for more than a name; no part is "..".
    return re.sub(r"[^A-Za-z0-9_.-]", "_", part).lstrip(".") or "_"
