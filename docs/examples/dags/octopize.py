"""Avatars from Octopize's platform, measured here before they leave.

The client (`octopize-avatar`, Python 3.12 or later) sends the originals to the platform, waits, and fetches the
avatars as they were before they are shuffled: only those can be paired.
"""

import os

from airflow.sdk import DAG, task

from local_cloaking.airflow import local_cloaking_gate, require_passed

ORIGINALS, AVATARS = "/data/patients.csv", "/data/avatars.csv"
K, NCP = 20, 5

with DAG("release_octopize", schedule=None) as dag:

    @task
    def avatarise() -> str:
        """Let the platform make avatars; keep them with the key, inside the trusted environment."""
        import pandas as pd
        from avatars.manager import Manager
        from avatars.models import JobKind

        originals = pd.read_csv(ORIGINALS, dtype={"patient_id": str})
        manager = Manager(os.environ["AVATAR_BASE_URL"], api_key=os.environ["AVATAR_API_KEY"])
        runner = manager.create_runner("patients")
        runner.add_table("patients", originals.drop(columns="patient_id"))
        runner.set_parameters("patients", k=K, ncp=NCP)
        runner.run(jobs_to_run=[JobKind.standard])
        avatars = runner.sensitive_unshuffled("patients")  # waits; in the order of the originals
        avatars.insert(0, "patient_id", originals["patient_id"].to_numpy())
        avatars.to_csv(AVATARS, index=False)
        return AVATARS

    gate = local_cloaking_gate(
        "gate", originals=ORIGINALS, avatars=avatarise(), key="patient_id", ncp=NCP, k=K, threshold=5
    )

    @task
    def publish(verdict):
        """Release the avatars: without the key, in random order."""
        import pandas as pd

        passed = pd.read_csv(require_passed(verdict, AVATARS))
        passed.drop(columns="patient_id").sample(frac=1).to_csv("/data/released.csv", index=False)

    publish(gate.verdict)
