"""The first gate: two CSV files, a key that pairs them, a threshold."""

from airflow.sdk import DAG, task

from local_cloaking.airflow import local_cloaking_gate, require_passed

with DAG("release", schedule=None) as dag:
    gate = local_cloaking_gate(
        "gate",
        originals="/data/patients.csv",
        avatars="/data/avatars.csv",
        key="patient_id",
        threshold=5,
        threshold_set_by="the data protection committee, 12 March 2026",
    )

    @task
    def publish(verdict, avatars):
        """Release the avatars: without the key, in random order."""
        import pandas as pd

        passed = pd.read_csv(require_passed(verdict, avatars))  # raises unless these very bytes passed
        passed.drop(columns="patient_id").sample(frac=1).to_csv("/data/released.csv", index=False)

    publish(gate.verdict, "/data/avatars.csv")
