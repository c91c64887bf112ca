"""Mail to the data protection officer: the connection is `smtp_default`."""

from airflow.providers.smtp.notifications.smtp import SmtpNotifier
from airflow.sdk import DAG

from local_cloaking.airflow import LocalCloakingNotifier, local_cloaking_gate

mail = SmtpNotifier(
    to="officer@example.org", subject="{{ local_cloaking.subject }}", html_content="{{ local_cloaking.html }}"
)

with DAG("release_with_mail", schedule=None) as dag:
    local_cloaking_gate(
        "gate",
        originals="/data/patients.csv",
        avatars="/data/avatars.csv",
        key="patient_id",
        data_set="patients",
        threshold=50,
        notify=LocalCloakingNotifier(via=[mail], language="fr"),
    )
