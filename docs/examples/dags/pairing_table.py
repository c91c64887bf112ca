"""Avatars with keys of their own, and a table that says which avatar belongs to which original."""

from airflow.sdk import DAG

from local_cloaking.airflow import local_cloaking_gate

with DAG("release_pairing_table", schedule=None) as dag:
    local_cloaking_gate(
        "gate",
        originals="/data/patients.csv",
        avatars="/data/renamed.csv",
        pairing="/data/pairing.csv",  # two columns, named as the keys in the tables: patient_id, avatar_id
        threshold=5,
    )
