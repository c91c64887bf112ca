"""A message to Slack: the connection `slack_webhook` holds the address of an incoming webhook."""

from airflow.providers.slack.notifications.slack_webhook import SlackWebhookNotifier
from airflow.sdk import DAG

from local_cloaking.airflow import LocalCloakingNotifier, local_cloaking_gate

slack = SlackWebhookNotifier(slack_webhook_conn_id="slack_webhook", text="{{ local_cloaking.text }}")

with DAG("release_with_slack", schedule=None) as dag:
    local_cloaking_gate(
        "gate",
        originals="/data/patients.csv",
        avatars="/data/avatars.csv",
        key="patient_id",
        threshold=50,
        notify=LocalCloakingNotifier(via=[slack]),
    )
