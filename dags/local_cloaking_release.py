"""A release that starts when avatars have passed, and only then.

It waits for the asset that the check of ``local_cloaking_demo`` updates with a pass. The event holds the verdict:
where the record lies, and its hash. So the release needs nothing of the other DAG but the asset and the avatars'
place, and still releases only the very bytes that passed.
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from airflow.sdk import DAG, Asset, task

from local_cloaking.airflow import require_passed

#: As in local_cloaking_demo.
DATA = Path(os.environ.get("LOCAL_CLOAKING_DEMO_DATA", Path(os.environ.get("AIRFLOW_HOME", ".")) / "demo_data"))
PASSED = Asset("local_cloaking_demo_passed")

with DAG(
    dag_id="local_cloaking_release",
    description="Hands over avatars whose Local Cloaking was measured, and passed.",
    schedule=[PASSED],
    start_date=datetime(2026, 1, 1),
    catchup=False,
    is_paused_upon_creation=False,
    tags=["local cloaking"],
    doc_md=__doc__,
) as dag:

    @task
    def hand_over(triggering_asset_events=None) -> list[str]:
        """Write the avatars of each pass, without the patients' numbers, in random order."""
        import pandas as pd

        from local_cloaking.audit.store import write_whole

        handed_over = []
        # Several passes since the last release start one run of it.
        for event in triggering_asset_events[PASSED]:
            avatars = require_passed(event.extra, DATA / event.source_run_id / "avatars.csv")
            released = pd.read_csv(avatars).drop(columns="pidnum").sample(frac=1)
            target = DATA / "handed_over" / event.source_run_id / "avatars.csv"
            write_whole(target, released.to_csv(index=False).encode(), replace=True)
            handed_over.append(str(target))
        return handed_over

    hand_over()
