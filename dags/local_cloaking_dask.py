"""The demonstration beyond one machine: tables in partitions, measured by the workers of a Dask cluster.

Needs the extra ``dask``, and a scheduler: that of the stack (``make up PROFILES=dask``), or the one that the
parameter ``scheduler`` names. The figure is that of ``local_cloaking_demo``, integer for integer.
"""

from __future__ import annotations

import importlib.util
import os
from datetime import datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG, Param, task

from local_cloaking.airflow import AvatariseOperator, local_cloaking_gate, require_passed

#: As in local_cloaking_demo; the workers read it, too.
DATA = Path(os.environ.get("LOCAL_CLOAKING_DEMO_DATA", Path(os.environ.get("AIRFLOW_HOME", ".")) / "demo_data"))
CATEGORIES = [
    "hemo", "homo", "drugs", "karnof", "oprior", "z30", "zprior", "race", "gender", "str2", "strat", "symptom",
    "treat", "offtrt", "r", "cens", "arms",
]  # fmt: skip
PARTITIONS = 4


def actg175() -> str:
    """Return where lifelines keeps the table; the package itself is not imported."""
    spec = importlib.util.find_spec("lifelines")
    if spec is None or spec.origin is None:
        return "install-the-extra-demo/ACTG175.csv"
    return str(Path(spec.origin).parent / "datasets" / "ACTG175.csv")


with DAG(
    dag_id="local_cloaking_dask",
    description="Avatarises 2,139 patients, and measures their partitions on a Dask cluster.",
    schedule=None,
    start_date=datetime(2026, 1, 1),
    catchup=False,
    is_paused_upon_creation=False,
    default_args={"retries": 2, "retry_delay": timedelta(seconds=10)},
    params={
        "threshold": Param(5, type=["number", "string"], description="The smallest Local Cloaking that passes."),
        "scheduler": Param("tcp://dask-scheduler:8786", type="string", description="The Dask scheduler."),
    },
    tags=["local cloaking"],
    doc_md=__doc__,
) as dag:
    avatarise = AvatariseOperator(
        task_id="avatarise",
        originals=actg175(),
        avatars=f"{DATA}/{{{{ run_id }}}}/avatars.csv",
        seed=175,
        key="pidnum",
        categorical=CATEGORIES,
        drop=["Unnamed: 0"],  # lifelines' row number
    )

    @task(multiple_outputs=True)
    def partition(avatars: str) -> dict[str, str]:
        """Write both tables as folders of Parquet files, as a lake would hold them."""
        import pandas as pd

        folders = {}
        for name, path in (("originals", actg175()), ("avatars", avatars)):
            table = pd.read_csv(path).drop(columns="Unnamed: 0", errors="ignore")
            folder = Path(avatars).parent / name
            folder.mkdir(exist_ok=True)
            for number in range(PARTITIONS):
                part = table.iloc[number * len(table) // PARTITIONS : (number + 1) * len(table) // PARTITIONS]
                part.to_parquet(folder / f"part.{number}.parquet", index=False)
            folders[name] = str(folder)
        return folders

    folders = partition(avatarise.output["avatars"])
    gate = local_cloaking_gate(
        "gate",
        originals=folders["originals"],
        avatars=folders["avatars"],
        projection=avatarise.output["projection"],
        ncp=avatarise.output["ncp"],
        k=avatarise.output["k"],
        key="pidnum",
        data_set="ACTG 175 in partitions",
        threshold="{{ params.threshold }}",
        threshold_set_by="the parameters of the demonstration",
        dask_scheduler="{{ params.scheduler }}",
    )

    @task
    def publish(verdict: dict, avatars: str) -> str:
        """Release the avatars: without the patients' numbers, in random order."""
        import pandas as pd

        from local_cloaking.audit.store import write_whole

        folder = Path(require_passed(verdict, avatars))
        released = pd.read_parquet(folder).drop(columns="pidnum").sample(frac=1)
        target = folder.parent / "released" / "avatars.parquet"
        write_whole(target, released.to_parquet(index=False), replace=True)
        return str(target)

    publish(gate.verdict, folders["avatars"])
