"""The command line in a pod: workers need neither the tables nor this package's dependencies."""

from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator
from airflow.sdk import DAG, task
from kubernetes.client import models as k8s

from local_cloaking.airflow import require_passed

#: Exit code 1 (not passed) or 2 (refused) ends the script, and fails the task.
MEASURE = """
set -eu
mkdir -p "/data/audit/$RUN"
local-cloaking measure /data/patients.csv /data/avatars.csv --key patient_id --threshold 5 \\
    --json "/data/audit/$RUN/record.json" --report "/data/audit/$RUN/report.html"
sha256=$(sha256sum "/data/audit/$RUN/record.json" | cut -d ' ' -f 1)
printf '{"record": "/data/audit/%s/record.json", "record_sha256": "%s"}' "$RUN" "$sha256" \\
    > /airflow/xcom/return.json
"""

with DAG("release_from_pod", schedule=None) as dag:
    measured = KubernetesPodOperator(
        task_id="measure",
        image="registry.example.org/local-cloaking:0.1.0",
        cmds=["sh", "-c", MEASURE],
        env_vars={"RUN": "{{ run_id | replace(':', '_') }}_{{ ti.try_number }}"},
        volumes=[
            k8s.V1Volume(
                name="data", persistent_volume_claim=k8s.V1PersistentVolumeClaimVolumeSource(claim_name="data")
            )
        ],
        volume_mounts=[k8s.V1VolumeMount(name="data", mount_path="/data")],
        container_resources=k8s.V1ResourceRequirements(requests={"memory": "2Gi"}, limits={"memory": "2Gi"}),
        do_xcom_push=True,
        retries=0,  # a verdict is final
    )

    @task
    def publish(verdict):
        return require_passed(verdict, "/data/avatars.csv")

    publish(measured.output)
