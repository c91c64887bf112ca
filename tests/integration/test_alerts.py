"""Alerts, gauges, assets and drift of real runs: told to a real SMTP server, HTTP receiver and StatsD receiver."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

pytest.importorskip("airflow", reason="apache-airflow is not installed (extra `airflow`)")

from tests.integration.conftest import airflow_version, run_file
from tests.receivers import Hook, hook, mails, statsd_server

__all__ = ["hook", "mails"]

CHECKOUT = Path(__file__).resolve().parents[2]
PASSING, FAILING = "3", "50"  # the tables' Local Cloaking is 4
#: Airflow 3.1 tells callbacks in a worker what was raised, but not in `dag.test()`.
KNOWS_WHY = airflow_version() >= (3, 2)

HEAD = """
from datetime import timedelta
import json, urllib.request
import pendulum
from airflow.sdk import DAG, Asset, task
from airflow.providers.common.compat.sdk import BaseNotifier
from local_cloaking.airflow import *

OPTIONS = dict(schedule=None, start_date=pendulum.datetime(2026, 1, 1, tz="Europe/Paris"),
               default_args=dict(retries=2, retry_delay=timedelta(seconds=0)))


class Webhook(BaseNotifier):
    # A team's own notifier: what it sends is rendered as any notifier's.
    template_fields = ("address", "said")

    def __init__(self, address, said="{{ local_cloaking.text }}"):
        super().__init__()
        self.address, self.said = address, said

    def notify(self, context):
        told = context["local_cloaking"]
        body = json.dumps({"said": self.said, **told}).encode()
        urllib.request.urlopen(urllib.request.Request(self.address, body), timeout=30).close()
"""


def gated(tables: Any, threshold: str = PASSING, *, more: str = "", before: str = "", **options: Any) -> str:
    """A DAG with a gate; `more` are its arguments, `before` comes before it."""
    said = {"key": "id", "ncp": 3, "k": 20, "data_set": "trial & <b>arms</b>", "threshold": threshold, **options}
    arguments = ", ".join(f"{name}={value!r}" for name, value in said.items())
    return f"""{HEAD}
{before}
with DAG("alerting", **OPTIONS) as dag:
    gate = local_cloaking_gate(
        "gate", originals="{tables.originals}", avatars="{tables.avatars}",
        audit_path="{tables.folder}/audit", {arguments}, {more})
"""


def notifier(hook: Hook, *options: str) -> str:
    return f"notify=LocalCloakingNotifier(via=Webhook({hook.address!r}), {', '.join(options)})"


MAILER = """
from airflow.providers.smtp.notifications.smtp import SmtpNotifier

TOLD = LocalCloakingNotifier(via=[SmtpNotifier(
    to="officer@example.org", subject="{{ local_cloaking.subject }}", html_content="{{ local_cloaking.html }}")])
"""


# What is told ----------------------------------------------------------------------------------------------------


def test_a_failing_gate_sends_a_mail_that_says_what_to_do(run_dag, tables, mails):
    run = run_dag(gated(tables, FAILING, before=MAILER, more="notify=TOLD"))
    assert run.state == "failed"
    assert len(mails) == 1
    mail = mails[0]
    assert mail["To"] == "officer@example.org"
    assert mail["Subject"].startswith("Local Cloaking: below the threshold (trial & <b>arms</b>, ")
    page = mail.get_body(("html",)).get_content()
    verdict = run.result("gate.check")
    for said in (
        "_alerting",
        "gate.check",
        "trial &amp; &lt;b&gt;arms&lt;/b&gt;",
        "Local Cloaking 4 is below the threshold 50",
        "raise k, the number of neighbours that an avatar draws on (now 20)",
        verdict["report"],
        verdict["record"],
        "/runs/",
    ):
        assert said in page, said
    assert "<b>" not in page


def test_the_message_is_in_the_language_of_the_report_or_in_the_notifiers(run_dag, tables, mails, hook):
    french = gated(tables, FAILING, before=MAILER, more="notify=TOLD", language="fr")
    run_dag(french)
    assert mails[0]["Subject"].startswith("Local Cloaking\u00a0: sous le seuil (")
    assert "augmenter k" in mails[0].get_body(("html",)).get_content()
    run_dag(gated(tables, FAILING, more=notifier(hook, "language='fr'")))
    assert "le Local Cloaking (4) est inférieur au seuil (50)" in hook.received[0]["said"]
    run_dag(gated(tables, FAILING, more=notifier(hook, "language='en'"), language="fr"))
    assert "below the threshold 50" in hook.received[1]["said"]
    run_dag(gated(tables, FAILING, more=notifier(hook, "language='xx'")))
    assert "below the threshold 50" in hook.received[2]["said"]


def test_a_webhook_gets_each_entry_and_its_own_template(run_dag, tables, hook):
    run = run_dag(gated(tables, FAILING, more=notifier(hook)))
    verdict = run.result("gate.check")
    (told,) = hook.received
    assert told["verdict"] == "below_threshold"
    assert (told["value"], told["threshold"], told["warning"]) == (4.0, 50.0, False)
    assert told["data_set"] == "trial & <b>arms</b>"
    assert (told["report"], told["record"]) == (verdict["report"], verdict["record"])
    assert told["said"] == told["text"]
    assert "Data set: trial & <b>arms</b>" in told["text"]


def test_the_report_is_linked_to_where_airflow_has_an_address(run_dag, tables, hook, monkeypatch):
    from airflow.providers.common.compat.sdk import conf

    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example.org/base")
    monkeypatch.setenv("AIRFLOW__LOCAL_CLOAKING__AUDIT_PATH", f"{tables.folder}/audit")
    assert conf.get("api", "base_url") == "https://airflow.example.org/base"
    run = run_dag(gated(tables, FAILING, more=notifier(hook)))
    monkeypatch.setenv("AIRFLOW__LOCAL_CLOAKING__AUDIT_PATH", f"{tables.folder}/another")
    run_dag(gated(tables, FAILING, more=notifier(hook)))
    shown, elsewhere = (told["report"] for told in hook.received)
    assert shown.startswith("https://airflow.example.org/base/local-cloaking/report?dag_id=")
    assert "task_id=gate.check&map_index=-1&try_number=1" in shown
    assert f'<a href="{shown.replace("&", "&amp;")}">' in hook.received[0]["html"]
    assert elsewhere.startswith(f"{tables.folder}/audit/")
    assert run.result("gate.check")["report"].startswith(f"{tables.folder}/audit/")


def test_a_measure_that_fails_says_that_nothing_was_measured(run_dag, tables, hook):
    """A check that is `upstream_failed` calls nobody."""
    tables.avatars.unlink()
    run = run_dag(gated(tables, more=notifier(hook), language="fr"))
    assert (run.states["gate.check"], run.tries["gate.local_cloaking"]) == ("upstream_failed", 3)
    (told,) = hook.received
    assert told["verdict"] is None
    assert "rien n’a été mesuré, et le contrôle n’a pas été exécuté" in told["text"]
    assert "trial & <b>arms</b>" in told["subject"]
    # An error that is not this package's may quote anything.
    assert "avatars.csv" not in json.dumps(told)


def test_a_refusal_is_told_with_its_remedy_and_no_value(run_dag, tables, hook):
    avatars = pd.read_csv(tables.avatars, dtype={"id": str})
    avatars.loc[3, "arm"] = "Mme Dupont, Lyon"
    avatars.to_csv(tables.avatars, index=False)
    run_dag(gated(tables, more=notifier(hook)))
    (told,) = hook.received
    assert "nothing was measured" in told["subject"]
    assert not KNOWS_WHY or "column 'arm'" in told["reason"]
    assert "Dupont" not in json.dumps(told)


def test_a_check_without_a_verdict_says_so(run_dag, tables, hook):
    run_dag(gated(tables, "much", more=notifier(hook)))
    (told,) = hook.received
    assert told["verdict"] is None
    assert "the check gave no verdict" in told["subject"]
    assert not KNOWS_WHY or "the threshold is not a number above 0" in told["reason"]


def test_a_name_of_two_lines_makes_no_second_header(run_dag, tables, mails):
    run_dag(gated(tables, FAILING, before=MAILER, more="notify=TOLD", data_set="trial\r\nBcc: all@example.org"))
    assert mails[0]["Bcc"] is None
    assert "trial Bcc: all@example.org" in mails[0]["Subject"]


# When it is told -------------------------------------------------------------------------------------------------


def test_a_pass_is_told_of_with_a_warning_or_where_always_is_asked_for(run_dag, tables, hook):
    assert run_dag(gated(tables, more=notifier(hook))).state == "success"
    assert hook.received == []
    run = run_dag(gated(tables, more=notifier(hook), warn_below="6"))
    assert run.state == "success"
    assert [told["subject"].split(" (")[0] for told in hook.received] == ["Local Cloaking: passed, with a warning"]
    assert "is below 6" in hook.received[0]["text"]
    run_dag(gated(tables, more=notifier(hook, "always=True")))
    assert [told["verdict"] for told in hook.received] == ["passed", "passed"]
    assert hook.received[1]["warning"] is False


def test_each_of_three_mapped_gates_is_told_of_once(run_dag, tables, hook):
    run_dag(f"""{HEAD}
with DAG("mapped", **OPTIONS) as dag:
    told = LocalCloakingNotifier(via=[Webhook({hook.address!r}, "{{{{ local_cloaking.map_index }}}}")])
    measured = LocalCloakingOperator.partial(
        task_id="measure", originals="{tables.originals}", avatars="{tables.avatars}", key="id",
        on_failure_callback=told,
    ).expand(ncp=[2, 3, 4])
    LocalCloakingCheckOperator.partial(
        task_id="check", threshold={FAILING}, on_failure_callback=told, on_success_callback=told,
    ).expand(measured=measured.output)
""")
    assert sorted(told["said"] for told in hook.received) == ["0", "1", "2"]


def test_the_callbacks_of_the_dag_are_called_beside_it(run_dag, tables, hook, tmp_path):
    mark = f'OPTIONS["default_args"]["on_failure_callback"] = lambda context: open("{tmp_path}/own", "w").close()'
    run_dag(gated(tables, FAILING, before=mark, more=notifier(hook)))
    assert (tmp_path / "own").exists()
    assert len(hook.received) == 1


def test_a_notifier_that_cannot_deliver_keeps_no_other_from_it(run_dag, tables, hook, capsys):
    broken = """
class Broken(BaseNotifier):
    def notify(self, context):
        raise RuntimeError("https://secret@example.org refused " + context["local_cloaking"]["text"])

def mistaken(context):
    context["local_cloaking"].clear()
    raise SystemError("no")
"""
    more = f"notify=LocalCloakingNotifier(via=[Broken(), mistaken, Webhook({hook.address!r})])"
    run = run_dag(gated(tables, FAILING, before=broken, more=more))
    assert run.tries["gate.check"] == 1
    assert run.result("gate.check")["verdict"] == "below_threshold"
    assert [told["verdict"] for told in hook.received] == ["below_threshold"]
    logged = [line for line in "".join(capsys.readouterr()).splitlines() if "could not tell" in line]
    assert ["Broken could not tell of Local Cloaking: RuntimeError" in line for line in logged] == [True, False]
    assert "mistaken could not tell of Local Cloaking: SystemError" in logged[1]
    assert all("error" in line and "secret" not in line for line in logged)


# Drift -----------------------------------------------------------------------------------------------------------


def avatars_of(tables: Any, k: int) -> None:
    from local_cloaking import avatarise

    originals = pd.read_csv(tables.originals, dtype={"id": str})
    made = avatarise(originals.drop(columns="id"), k=k, ncp=3, seed=1)
    made.insert(0, "id", originals["id"])
    made.to_csv(tables.avatars, index=False)


def test_a_fall_since_the_run_before_is_a_warning(run_dag, tables, hook):
    def verdict(**options: Any) -> dict[str, Any]:
        return run_dag(gated(tables, more=notifier(hook), **options)).result("gate.check")

    avatars_of(tables, k=80)
    high = verdict(compare_with_previous=True, max_drop="1")
    assert (high["verdict"], high["warning"]) == ("passed", False)
    avatars_of(tables, k=20)
    assert verdict(compare_with_previous=True, max_drop="90")["warning"] is False
    avatars_of(tables, k=80)
    verdict()
    avatars_of(tables, k=20)
    assert verdict()["warning"] is False  # not asked for
    avatars_of(tables, k=80)
    last = verdict()
    avatars_of(tables, k=20)
    low = verdict(compare_with_previous="True")
    assert (low["verdict"], low["warning"]) == ("passed", True)
    fell = f"Local Cloaking fell from {last['local_cloaking']:g} to {low['local_cloaking']:g} "
    assert low["warnings"][-1].startswith(fell)
    record = json.loads(Path(low["record"]).read_text())
    assert record["previous"]["record_sha256"] == last["record_sha256"]
    assert record["max_drop"] == 0.0
    assert len(hook.received) == 1


def test_another_data_set_is_not_compared_with(run_dag, tables):
    avatars_of(tables, k=80)
    run_dag(gated(tables, data_set="one"))
    avatars_of(tables, k=20)
    verdict = run_dag(gated(tables, data_set="other", max_drop="0")).result("gate.check")
    assert verdict["warning"] is False
    assert json.loads(Path(verdict["record"]).read_text())["previous"] is None


def test_while_the_runs_before_cannot_be_read_nothing_passes_uncompared(run_dag, tables, monkeypatch):
    """A pass would lose its warning, and is tried again; a verdict that stops the DAG does so all the same."""
    from local_cloaking.audit import index

    def unreadable(*args: Any, **kwargs: Any) -> None:
        raise PermissionError("no")

    monkeypatch.setattr(index, "entries", unreadable)
    run = run_dag(gated(tables, compare_with_previous=True))
    assert (run.states["gate.check"], run.tries["gate.check"]) == ("failed", 3)
    assert run.result("gate.check") is None
    failing = run_dag(gated(tables, FAILING, compare_with_previous=True))
    assert failing.tries["gate.check"] == 1
    assert failing.result("gate.check")["verdict"] == "below_threshold"


@pytest.mark.parametrize(
    "wrong",
    [{"max_drop": "-1"}, {"warn_below": "3"}, {"warn_below": "{{ none }}"}, {"compare_with_previous": "?"}],
)
def test_what_is_no_bound_is_refused_before_anything_is_written(run_dag, tables, wrong):
    run = run_dag(gated(tables, **wrong))
    assert (run.states["gate.check"], run.tries["gate.check"]) == ("failed", 1)
    assert run.result("gate.check") is None
    assert list(tables.folder.glob("audit/**/record.json")) == []


# The index -------------------------------------------------------------------------------------------------------


def test_each_verdict_is_entered_in_the_index_as_its_record_says(run_dag, tables):
    from local_cloaking.audit.index import entries

    root = tables.folder / "audit"
    for threshold in (PASSING, FAILING):
        verdict = run_dag(gated(tables, threshold, warn_below="60")).result("gate.check")
        entry = entries(root)[0]
        assert root / entry.record == Path(verdict["record"])
        assert root / str(entry.report) == Path(verdict["report"])
        record = json.loads((root / entry.record).read_text())
        for name in ("verdict", "warning", "local_cloaking", "threshold", "n", "data_set"):
            assert getattr(entry, name) == record[name], name
        for name, value in record["judged"]["run"].items():
            assert getattr(entry, name) == value, name
        assert entry.record_sha256 == verdict["record_sha256"]
    assert [entry.verdict for entry in entries(root)] == ["below_threshold", "passed"]


def test_an_index_that_cannot_be_written_opens_no_gate_and_hides_no_verdict(run_dag, tables, monkeypatch):
    from local_cloaking.audit import index

    def full(*args: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(index, "write_entry", full)
    failing = run_dag(gated(tables, FAILING))
    assert failing.tries["gate.check"] == 1
    assert failing.result("gate.check")["verdict"] == "below_threshold"
    passing = run_dag(gated(tables))
    assert (passing.states["gate.check"], passing.tries["gate.check"]) == ("failed", 3)
    assert passing.result("gate.check") is None


# Gauges ----------------------------------------------------------------------------------------------------------


def gauges_of(source: str, airflow_home: Path, **environment: str) -> tuple[str, list[str]]:
    """Run a DAG in a process of its own, with StatsD on; return the run's state and what was received."""
    path = airflow_home / "dags" / "measured_by_statsd.py"
    path.write_text(source)
    code = "import importlib.util as u, sys; s = u.spec_from_file_location('m', sys.argv[1]); " + (
        "m = u.module_from_spec(s); s.loader.exec_module(m); print('STATE', m.dag.test().state.value)"
    )
    with statsd_server() as (gauges, metrics):
        try:
            done = subprocess.run(
                [sys.executable, "-c", code, str(path)],
                capture_output=True,
                text=True,
                env={**os.environ, **metrics, **environment},
                timeout=300,
                check=True,
            )
        finally:
            path.unlink()
        received = gauges()
    state = re.findall(r"^STATE (\w+)$", done.stdout, re.MULTILINE)
    assert state, done.stdout + done.stderr
    return state[-1], received


@pytest.mark.stack
def test_the_gauges_of_a_failing_gate_reach_statsd(airflow_home, tables):
    pytest.importorskip("statsd", reason="statsd is not installed")
    state, received = gauges_of(gated(tables, FAILING, data_set="ACTG 175, k=20"), airflow_home)
    assert state == "failed"
    tags = "dag_id=alerting,data_set=ACTG_175__k_20"
    named = {line.split(":")[0]: line.split(":")[1] for line in received}
    assert named[f"airflow.local_cloaking.median,{tags}"] == "4.0|g"
    assert named[f"airflow.local_cloaking.threshold,{tags}"] == "50.0|g"
    assert 0 < float(named[f"airflow.local_cloaking.hidden_rate,{tags}"].removesuffix("|g")) <= 100
    assert len(named) == 3


def test_what_is_not_known_is_no_gauge():
    from airflow.providers.common.compat import sdk

    from local_cloaking.airflow import metrics

    sent: list[Any] = []
    verdict = {"local_cloaking": None, "hidden_rate": float("nan"), "threshold": 5.0, "data_set": None}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sdk.Stats, "gauge", lambda *args, **options: sent.append((args, options)), raising=False)
        metrics.send_gauges(verdict, "a" * 300)
    assert sent == [(("local_cloaking.threshold", 5.0), {"tags": {"dag_id": "a" * 90, "data_set": "_"}})]


def test_a_metrics_system_that_fails_changes_nothing(run_dag, tables, monkeypatch):
    from airflow.providers.common.compat import sdk

    def broken(*args: Any, **options: Any) -> None:
        raise ConnectionError("no metrics today")

    monkeypatch.setattr(sdk.Stats, "gauge", broken, raising=False)
    assert run_dag(gated(tables)).state == "success"


# Assets ----------------------------------------------------------------------------------------------------------


def test_the_release_starts_after_a_pass_and_only_then(airflow_home, monkeypatch):
    """The two DAGs of the folder dags/, as a scheduler would run them."""
    if importlib.util.find_spec("lifelines") is None:  # only its file is read
        pytest.skip("lifelines is not installed (extra `demo`)")
    from airflow import settings
    from airflow.models.asset import AssetEvent
    from sqlalchemy import select

    linked = []
    for name in ("local_cloaking_demo", "local_cloaking_release"):
        path = airflow_home / "dags" / f"{name}.py"
        path.write_text((CHECKOUT / "dags" / f"{name}.py").read_text())
        linked.append(path)

    def events() -> list[AssetEvent]:
        with settings.Session() as session:
            chosen = select(AssetEvent).where(AssetEvent.source_dag_id == "local_cloaking_demo")
            return list(session.scalars(chosen.order_by(AssetEvent.id)))

    try:
        earlier = len(events())
        assert run_file(linked[0], {"threshold": 50}).state == "failed"
        assert len(events()) == earlier
        demo = run_file(linked[0])
        assert demo.state == "success"
        (event,) = events()[earlier:]
        verdict = demo.result("check")
        for name in ("verdict", "warning", "local_cloaking", "threshold", "record", "record_sha256"):
            assert event.extra[name] == verdict[name], name
        released = released_by(linked[1], event)
    finally:
        for path in linked:
            path.unlink()
    assert "pidnum" not in released.columns
    assert len(released) == 2139


def released_by(path: Path, event: Any) -> pd.DataFrame:
    """Run the release's task on an event, in the form in which Airflow hands events over."""
    from airflow.sdk.execution_time.comms import AssetEventDagRunReferenceResult
    from airflow.sdk.execution_time.context import TriggeringAssetEventsAccessor

    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert list(module.dag.timetable.asset_condition.objects) == [module.PASSED]
    told = AssetEventDagRunReferenceResult.model_validate(
        {
            "asset": {"name": module.PASSED.name, "uri": module.PASSED.uri, "extra": {}},
            "extra": event.extra,
            "source_task_id": event.source_task_id,
            "source_dag_id": event.source_dag_id,
            "source_run_id": event.source_run_id,
            "source_map_index": event.source_map_index,
            "source_aliases": [],
            "timestamp": event.timestamp.isoformat(),
        }
    )
    (target,) = module.dag.get_task("hand_over").python_callable(TriggeringAssetEventsAccessor.build([told]))
    return pd.read_csv(target)


# The page on alerts ----------------------------------------------------------------------------------------------


def examples() -> list[str]:
    page = (CHECKOUT / "docs" / "alerts.md").read_text()
    return re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


def test_the_examples_of_the_page_run_as_they_stand(run_dag, tables, mails):
    alerting, waiting = examples()
    for frame in (tables.originals, tables.avatars):
        frame.write_text(frame.read_text().replace("id,", "patient_id,", 1))
    here = alerting.replace("/data/patients.csv", str(tables.originals))
    here = here.replace("/data/avatars.csv", str(tables.avatars))
    verdict = run_dag(here).result("gate.check")
    assert (verdict["data_set"], verdict["threshold"], verdict["warn_below"]) == ("patients", 5.0, 8.0)
    (mail,) = mails
    assert mail["To"] == "officer@example.org"
    assert "(patients, " in mail["Subject"]
    places: dict[str, Any] = {}
    exec(waiting, places)
    assert list(places["dag"].task_dict) == ["publish"]
    assert list(places["dag"].timetable.asset_condition.objects) == [places["PASSED"]]
