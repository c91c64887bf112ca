"""What docker-compose.yml is expected to have."""

from __future__ import annotations

ALWAYS = {
    "postgres",
    "airflow-init",
    "airflow-apiserver",
    "airflow-scheduler",
    "airflow-dag-processor",
    "airflow-triggerer",
}
PROFILES = {"celery": {"redis", "airflow-worker"}, "dask": {"dask-scheduler", "dask-worker"}}
SECRETS = {
    "AIRFLOW_ADMIN_PASSWORD",
    "AIRFLOW_FERNET_KEY",
    "AIRFLOW_JWT_SECRET",
    "AIRFLOW_SECRET_KEY",
    "POSTGRES_PASSWORD",
    "REDIS_PASSWORD",
}
