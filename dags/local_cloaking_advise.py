"""Which k reaches the threshold on 2,139 real patients: one mapped task a value of k.

Trigger it with another ``threshold``, ``margin`` or ``k_max``. The growing series of k is tried at once; in the
bracket that it leaves, two rounds try as many values as it takes; a last one tries those beside the k found. Tasks
of a round run beside each other, as far as the workers have room.

The task ``advise`` leaves ``advice.json`` and the page ``advice.html`` with its plots, and fails where no k
reaches the threshold. Its ``k`` can be handed on: ``AvatariseOperator(k=advice.k, ...)``.
"""

from __future__ import annotations

import importlib.util
from datetime import datetime
from pathlib import Path

from airflow.sdk import DAG, Param

from local_cloaking.airflow import local_cloaking_advice

CATEGORIES = [
    "hemo", "homo", "drugs", "karnof", "oprior", "z30", "zprior", "race", "gender", "str2", "strat", "symptom",
    "treat", "offtrt", "r", "cens", "arms",
]  # fmt: skip
#: Another avatarisation: a command with {k}, {seed}, {originals} and {output}. Here, and not a parameter of the
#: run: who may start a run must not thereby run programs on the workers.
COMMAND = None


def actg175() -> str:
    """Return where lifelines keeps the table; the package itself is not imported."""
    spec = importlib.util.find_spec("lifelines")
    if spec is None or spec.origin is None:
        return "install-the-extra-demo/ACTG175.csv"
    return str(Path(spec.origin).parent / "datasets" / "ACTG175.csv")


with DAG(
    dag_id="local_cloaking_advise",
    description="Finds the smallest k whose Local Cloaking reaches the threshold, on 2,139 patients.",
    schedule=None,
    start_date=datetime(2026, 1, 1),
    catchup=False,
    params={
        "threshold": Param(15, type=["number", "string"], description="The smallest Local Cloaking that passes."),
        "margin": Param(0, type=["number", "string"], description="By how much each seed is to exceed it."),
        "k_max": Param(100, type="integer", minimum=1, description="The largest k to try."),
        "ncp": Param(5, type="integer", minimum=1, description="Components of the projected space."),
        "seeds": Param("1,2,3", type="string", description="Seeds tried with each k."),
    },
    tags=["local cloaking"],
    doc_md=__doc__,
) as dag:
    advice = local_cloaking_advice(
        "choose_k",
        data_set="ACTG 175",
        originals=actg175(),
        threshold="{{ params.threshold }}",
        margin="{{ params.margin }}",
        k_max="{{ params.k_max }}",
        ncp="{{ params.ncp }}",
        seeds="{{ params.seeds }}",
        key="pidnum",
        categorical=CATEGORIES,
        drop=["Unnamed: 0"],  # lifelines' row number
        command=COMMAND,
    )
