"""Parquet files, the projection of the avatarisation, and a column of numbers that are codes."""

from airflow.sdk import DAG

from local_cloaking.airflow import local_cloaking_gate

with DAG("release_parquet", schedule=None) as dag:
    local_cloaking_gate(
        "gate",
        originals="/data/patients.parquet",
        avatars="/data/{{ run_id }}/avatars.parquet",
        projection="/data/{{ run_id }}/projection.json",
        categorical=["centre"],
        key="patient_id",
        threshold=5,
    )
