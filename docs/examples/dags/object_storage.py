"""Tables and evidence in object storage: `lake` is an Airflow connection of the type `aws`."""

from airflow.sdk import DAG, task

from local_cloaking.airflow import local_cloaking_gate, require_passed

AVATARS = "s3://lake@clinic/avatars.csv"

with DAG("release_object_storage", schedule=None) as dag:
    gate = local_cloaking_gate(
        "gate",
        originals="s3://lake@clinic/patients.csv",
        avatars=AVATARS,
        key="patient_id",
        threshold=5,
        audit_path="s3://lake@clinic/audit",  # better for all DAGs: [local_cloaking] audit_path
    )

    @task
    def publish(verdict):
        from airflow.sdk import ObjectStoragePath

        passed = ObjectStoragePath(require_passed(verdict, AVATARS))
        return passed.stat().st_size

    publish(gate.verdict)
