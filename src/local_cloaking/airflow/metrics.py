"""Gauges of a verdict, through Airflow's own metrics: to StatsD, Datadog or OpenTelemetry, as it is configured."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping
from typing import Any

log = logging.getLogger(__name__)

#: The gauges, and the entries of a verdict that they show.
GAUGES = {
    "local_cloaking.median": "local_cloaking",
    "local_cloaking.hidden_rate": "hidden_rate",
    "local_cloaking.threshold": "threshold",
}
#: Airflow drops a metric whose name, with its tags, has more than 250 characters.
_LONGEST_TAG = 90


def send_gauges(verdict: Mapping[str, Any], dag_id: str) -> None:
    """Send the gauges of a verdict, tagged by DAG and data set; what is not known is not sent.

    A metrics system that cannot be reached is logged, and changes nothing.
    """
    tags = {"dag_id": tag(dag_id), "data_set": tag(verdict["data_set"])}
    try:
        from airflow.providers.common.compat.sdk import Stats

        for gauge, name in GAUGES.items():
            value = verdict[name]
            if value is not None and math.isfinite(value):
                Stats.gauge(gauge, value, tags=tags)
    except Exception:
        log.exception("the gauges of Local Cloaking could not be sent")


def tag(name: str | None) -> str:
    """Return a name as the value of a tag: Airflow drops a metric with signs that StatsD does not take.

    Examples
    --------
    >>> tag("ACTG 175, k=20")
    'ACTG_175__k_20'
    """
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name or "")[:_LONGEST_TAG] or "_"
