"""A gated pipeline on 2,139 real patients: avatarise, measure, check, publish.

The patients are those of the trial ACTG 175, as the package lifelines ships them. Trigger it with other
parameters to see the gate close: ``threshold=50``. A pass updates an asset, which starts the DAG
``local_cloaking_release``.
"""

from __future__ import annotations

import importlib.util
import os
from datetime import datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG, Asset, Param, task

from local_cloaking.airflow import (
    AvatariseOperator,
    LocalCloakingCheckOperator,
    LocalCloakingOperator,
    require_passed,
)

#: Where the tables of a run lie. They hold the patients' numbers: a place inside the trusted environment.
DATA = Path(os.environ.get("LOCAL_CLOAKING_DEMO_DATA", Path(os.environ.get("AIRFLOW_HOME", ".")) / "demo_data"))
#: Updated when avatars have passed, and only then.
PASSED = Asset("local_cloaking_demo_passed")
CATEGORIES = [
    "hemo", "homo", "drugs", "karnof", "oprior", "z30", "zprior", "race", "gender", "str2", "strat", "symptom",
    "treat", "offtrt", "r", "cens", "arms",
]  # fmt: skip


def actg175() -> str:
    """Return where lifelines keeps the table; the package itself is not imported."""
    spec = importlib.util.find_spec("lifelines")
    if spec is None or spec.origin is None:
        return "install-the-extra-demo/ACTG175.csv"
    return str(Path(spec.origin).parent / "datasets" / "ACTG175.csv")


with DAG(
    dag_id="local_cloaking_demo",
    description="Avatarises 2,139 patients, and publishes the avatars only if their Local Cloaking suffices.",
    schedule=None,
    start_date=datetime(2026, 1, 1),
    catchup=False,
    is_paused_upon_creation=False,
    default_args={"retries": 2, "retry_delay": timedelta(seconds=10)},
    params={
        "threshold": Param(5, type=["number", "string"], description="The smallest Local Cloaking that passes."),
        "k": Param(20, type="integer", minimum=1, description="Neighbours that an avatar draws on."),
        "ncp": Param(5, type="integer", minimum=1, description="Components of the projected space."),
    },
    tags=["local cloaking"],
    doc_md=__doc__,
) as dag:
    avatarise = AvatariseOperator(
        task_id="avatarise",
        originals=actg175(),
        avatars=f"{DATA}/{{{{ run_id }}}}/avatars.csv",
        k="{{ params.k }}",
        ncp="{{ params.ncp }}",
        seed=175,
        key="pidnum",
        categorical=CATEGORIES,
        drop=["Unnamed: 0"],  # lifelines' row number
    )

    measured = LocalCloakingOperator(
        task_id="local_cloaking",
        data_set="ACTG 175",
        originals=actg175(),
        avatars=avatarise.output["avatars"],
        projection=avatarise.output["projection"],
        ncp=avatarise.output["ncp"],
        k=avatarise.output["k"],
        key="pidnum",
        drop=["Unnamed: 0"],
    )

    check = LocalCloakingCheckOperator(
        task_id="check",
        measured=measured.output,
        threshold="{{ params.threshold }}",
        threshold_set_by="the parameters of the demonstration",
        outlets=[PASSED],
    )

    @task
    def publish(verdict: dict, avatars: str, run_id: str | None = None) -> str:
        """Release the avatars: without the patients' numbers, in random order."""
        import pandas as pd

        from local_cloaking.audit.store import write_whole

        passed = pd.read_csv(require_passed(verdict, avatars))
        released = passed.drop(columns="pidnum").sample(frac=1)
        target = DATA / str(run_id) / "released" / "avatars.csv"
        write_whole(target, released.to_csv(index=False).encode(), replace=True)
        return str(target)

    publish(check.output, avatarise.output["avatars"])
