"""Runs of gated DAGs by Airflow itself. Names in brackets are the reports of the same fault elsewhere."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from local_cloaking.audit.record import digest_of, verdict_again

HEAD = """
from datetime import datetime, timedelta
import pendulum
from airflow.sdk import DAG, task, Asset, TaskGroup
from airflow.providers.standard.operators.empty import EmptyOperator
from local_cloaking.airflow import *

OPTIONS = dict(schedule=None, start_date=pendulum.datetime(2026, 1, 1, tz="Europe/Paris"),
               default_args=dict(retries=3, retry_delay=timedelta(seconds=0)))
"""
PASSING, EQUAL, FAILING = "3", "4", "50"


def gated(tables, threshold: str = PASSING, *, more: str = "", after: str = "", before_publish: str = "") -> str:
    return f"""{HEAD}
with DAG("gated", **OPTIONS, params=dict(threshold="{PASSING}")) as dag:
    gate = local_cloaking_gate(
        "gate", originals="{tables.originals}", avatars="{tables.avatars}", key="id", ncp=3, k=20,
        threshold={threshold!r}, {more})

    @task
    def publish(verdict, avatars):
        return require_passed(verdict, avatars)

    published = publish(gate.verdict, "{tables.avatars}")
{before_publish}
{after}
"""


def record_of(verdict: dict[str, Any]) -> dict[str, Any]:
    content = Path(verdict["record"]).read_bytes()
    assert hashlib.sha256(content).hexdigest() == verdict["record_sha256"]
    record = json.loads(content)
    assert digest_of(record) == record["digest"]
    assert verdict_again(record) == record["verdict"] == verdict["verdict"]
    return record


def test_parsing_a_dag_loads_nothing_heavy():
    code = (
        "import sys, local_cloaking.airflow as room\n"
        "[getattr(room, name) for name in room.__all__]\n"
        "heavy = ('great_expectations', 'pandas', 'numpy', 'scipy', 'sklearn', 'pyarrow', 'matplotlib')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.splitlines()[-1] == "[]"


def test_at_or_above_the_threshold_the_avatars_are_published(run_dag, tables):
    for threshold in (PASSING, EQUAL):
        run = run_dag(gated(tables, threshold))
        assert run.state == "success"
        assert run.result("publish") == str(tables.avatars)
        verdict = run.result("gate.check")
        assert (verdict["verdict"], verdict["local_cloaking"]) == ("passed", 4.0)
        assert verdict["avatars_sha256"] == hashlib.sha256(tables.avatars.read_bytes()).hexdigest()
        assert record_of(verdict)["data_set"] == "gate"


def test_below_the_threshold_one_try_and_nothing_is_published(run_dag, tables):
    """[cosmos 1537] [great-expectations provider 195] A deterministic failure is not retried, and no success."""
    run = run_dag(gated(tables, FAILING))
    assert run.state == "failed"
    assert run.states == {
        "gate.local_cloaking": "success",
        "gate.check": "failed",
        "gate_passed": "upstream_failed",
        "publish": "upstream_failed",
    }
    assert run.tries["gate.check"] == 1
    verdict = run.result("gate.check")
    assert verdict["verdict"] == "below_threshold"
    assert verdict["reason"] == "Local Cloaking 4 is below the threshold 50"
    assert "raise k" in verdict["remedy"]
    assert "now 20" in verdict["remedy"]
    record = record_of(verdict)
    assert [e["success"] for e in record["expectations"]] == [True, True, True, False]


@pytest.mark.parametrize(("threshold", "word"), [(PASSING, "conforme"), (FAILING, "sous le seuil")])
def test_the_report_stands_beside_the_record_whatever_the_verdict(run_dag, tables, threshold, word):
    run = run_dag(gated(tables, threshold, more='language="fr", groups=["arm"], min_group_size="20"'))
    verdict = run.result("gate.check")
    report = Path(verdict["report"])
    assert report == Path(verdict["record"]).with_name("report.html")
    page = report.read_text()
    assert '<html lang="fr"' in page
    assert word in page.lower()
    assert verdict["record_sha256"] in page
    record = record_of(verdict)
    assert record["groups"]["min_group_size"] == 20
    assert record["ladder"]["rungs"][2]["local_cloaking"] == record["local_cloaking"]


def test_the_language_of_the_report_may_be_the_dags(run_dag, tables):
    source = gated(tables).replace("retries=3", 'retries=3, language="fr"')
    assert '<html lang="fr"' in Path(run_dag(source).result("gate.check")["report"]).read_text()


def test_an_unknown_language_is_refused_before_anything_is_written(run_dag, tables):
    run = run_dag(gated(tables, more='language="xx"'))
    assert (run.states["gate.check"], run.tries["gate.check"]) == ("failed", 1)
    assert run.result("gate.check") is None


def test_a_report_that_cannot_be_drawn_opens_no_gate(run_dag, tables, monkeypatch):
    """A verdict that stops the DAG still does, for good; one that passes waits for its report."""
    from local_cloaking.audit import report

    def broken(*args, **kwargs):
        raise RuntimeError("no ink")

    monkeypatch.setattr(report, "draw_report", broken)
    failing = run_dag(gated(tables, FAILING))
    assert failing.tries["gate.check"] == 1
    assert failing.result("gate.check")["verdict"] == "below_threshold"
    assert failing.result("gate.check")["report"] is None
    passing = run_dag(gated(tables))
    assert (passing.states["gate.check"], passing.tries["gate.check"]) == ("failed", 4)
    assert passing.states["publish"] == "upstream_failed"


def test_the_weakly_protected_are_listed_where_asked_and_nowhere_else(run_dag, tables, tmp_path, caplog):
    target = tmp_path / "weak.csv"
    run = run_dag(gated(tables, more=f'remediation="{target}"'))
    assert run.state == "success"
    assert target.stat().st_mode & 0o077 == 0
    listed = pd.read_csv(target, dtype={"id": str})
    originals = pd.read_csv(tables.originals, dtype={"id": str})
    assert set(listed["id"]) < set(originals["id"])
    assert str(target) not in json.dumps([list(run.xcoms), list(run.xcoms.values())], default=str)


def test_the_run_fails_although_the_last_task_always_runs(run_dag, tables):
    """[airflow 15468] A leaf with the rule all_done makes a run green; the group's own leaf does not let it."""
    after = '    published >> EmptyOperator(task_id="tidy_up", trigger_rule="all_done")'
    run = run_dag(gated(tables, FAILING, after=after))
    assert run.states["tidy_up"] == "success"
    assert run.state == "failed"


def test_what_follows_the_group_follows_the_check_and_not_its_leaf():
    from airflow.providers.standard.operators.empty import EmptyOperator
    from airflow.sdk import DAG

    from local_cloaking.airflow import local_cloaking_gate

    with DAG("shape", schedule=None) as dag:
        gate = local_cloaking_gate("gate", originals="o", avatars="a", threshold=5)
        before, after = EmptyOperator(task_id="before"), EmptyOperator(task_id="after")
        before >> gate >> after
    assert after.upstream_task_ids == {"gate.check"}
    assert before.downstream_task_ids == {"gate.local_cloaking"}
    assert dag.get_task("gate_passed").upstream_task_ids == {"gate.check"}
    assert {task.task_id for task in dag.leaves} == {"gate_passed", "after"}


def test_a_gate_inside_another_group_fails_the_run_all_the_same(run_dag, tables):
    run = run_dag(f"""{HEAD}
with DAG("nested", **OPTIONS) as dag:
    with TaskGroup("outer") as outer:
        local_cloaking_gate(
            "gate", originals="{tables.originals}", avatars="{tables.avatars}", key="id", ncp=3,
            threshold={FAILING})
    outer >> EmptyOperator(task_id="tidy_up", trigger_rule="all_done")
""")
    assert run.states["tidy_up"] == "success"
    assert run.states["outer_gate_passed"] == "upstream_failed"
    assert run.state == "failed"


def test_default_args_do_not_open_the_gate(run_dag, tables):
    run = run_dag(f"""{HEAD}
OPTIONS["default_args"] = dict(trigger_rule="all_done")
with DAG("defaults", **OPTIONS) as dag:
    local_cloaking_gate(
        "gate", originals="{tables.originals}", avatars="{tables.avatars}", key="id", ncp=3, threshold={FAILING})
""")
    assert run.states["gate_passed"] == "upstream_failed"
    assert run.state == "failed"


@pytest.mark.parametrize("argument", ["outlets", "on_success_callback", "trigger_rule"])
def test_what_would_tell_of_a_pass_before_the_check_is_refused(argument):
    from airflow.sdk import DAG

    from local_cloaking.airflow import local_cloaking_gate

    with DAG("misplaced", schedule=None), pytest.raises(TypeError, match=argument):
        local_cloaking_gate("gate", originals="o", avatars="a", threshold=5, **{argument: []})


def test_a_table_that_was_not_measured_whole_does_not_leave_unasked(run_dag, tables):
    from airflow.providers.common.compat.sdk import AirflowFailException

    from local_cloaking.airflow import require_passed

    run = run_dag(gated(tables, more='drop=["f"]'))
    assert run.states["gate.check"] == "success"
    assert run.states["publish"] == "failed"
    verdict = run.result("gate.check")
    assert record_of(verdict)["avatars_table"] == "not verified"
    with pytest.raises(AirflowFailException, match="whole table"):
        require_passed(verdict, tables.avatars)
    assert require_passed(verdict, tables.avatars, accept_unverified=True) == str(tables.avatars)


def test_the_guard_names_the_file_behind_a_link(run_dag, tables, tmp_path):
    from local_cloaking.airflow import require_passed

    (tmp_path / "link.csv").symlink_to(tables.avatars)
    verdict = run_dag(gated(tables)).result("gate.check")
    assert require_passed(verdict, tmp_path / "link.csv") == str(tables.avatars.resolve())


def test_avatars_are_not_written_over_the_originals(run_dag, tables):
    before = tables.originals.read_bytes()
    run = run_dag(f"""{HEAD}
with DAG("over", **OPTIONS) as dag:
    AvatariseOperator(
        task_id="avatarise", originals="{tables.originals}", avatars="{tables.originals}", key="id", ncp=3)
""")
    assert (run.states["avatarise"], run.tries["avatarise"]) == ("failed", 1)
    assert tables.originals.read_bytes() == before


@pytest.mark.parametrize(
    "threshold", ["{{ params.threshold }}", "{{ var.value.least }}", "{{ dag_run.conf.get('least', 3) }}"]
)
def test_the_threshold_is_rendered_at_run_time(run_dag, tables, monkeypatch, threshold):
    """[airflow 70296] Template text is not checked before it is rendered."""
    monkeypatch.setenv("AIRFLOW_VAR_LEAST", "3")
    assert run_dag(gated(tables, threshold)).state == "success"
    failing = run_dag(gated(tables, threshold), {"threshold": FAILING, "least": FAILING})
    assert failing.state == ("success" if "var" in threshold else "failed")


@pytest.mark.parametrize("threshold", ["abc", "0", "-1", "nan", "inf", "", "{{ ti.xcom_pull('nobody') }}"])
def test_a_threshold_that_is_none_is_refused_at_run_time(run_dag, tables, threshold):
    run = run_dag(gated(tables, threshold))
    assert run.states["gate.check"] == "failed"
    assert run.tries["gate.check"] == 1
    assert run.result("gate.check") is None
    assert run.states["publish"] == "upstream_failed"


def test_a_run_without_a_logical_date(run_dag, tables):
    """[airflow 46194] Paths are built from the run's name, which every run has."""
    assert run_dag(gated(tables), logical_date=None).state == "success"


def test_a_median_of_0_fails_as_0_below_and_not_as_no_data(run_dag, tables):
    """[airflow 37089]"""
    originals = pd.read_csv(tables.originals, dtype={"id": str})
    numbers = list("abcdef")
    close = originals.assign(**{name: originals[name] * 1.0001 for name in numbers})
    close.to_csv(tables.avatars, index=False)
    run = run_dag(gated(tables))
    assert run.state == "failed"
    assert run.result("gate.check")["reason"] == "Local Cloaking 0 is below the threshold 3"


def test_shuffled_avatars_are_not_assessable(run_dag, tables):
    avatars = pd.read_csv(tables.avatars, dtype={"id": str})
    avatars["id"] = avatars["id"].sample(frac=1, random_state=5).to_numpy()
    avatars.to_csv(tables.avatars, index=False)
    run = run_dag(gated(tables))
    assert run.state == "failed"
    measured, verdict = run.result("gate.local_cloaking"), run.result("gate.check")
    assert measured["local_cloaking"] is None
    assert "look shuffled" in measured["reason"]
    assert verdict["verdict"] == "not_assessable"
    assert verdict["local_cloaking"] is None
    assert "look shuffled" in record_of(verdict)["reason"]
    assert run.tries["gate.check"] == 1


def test_an_unreadable_table_is_an_error_that_may_be_tried_again(run_dag, tables):
    """[soda-core 684, 987] An error is no verdict, and no success."""
    tables.avatars.unlink()
    run = run_dag(gated(tables))
    assert run.state == "failed"
    assert run.states["gate.local_cloaking"] == "failed"
    assert run.tries["gate.local_cloaking"] == 4
    assert run.states["gate.check"] == "upstream_failed"


def test_refused_input_fails_at_once(run_dag, tables):
    """[cosmos 1537] One avatar fewer will be one fewer again."""
    pd.read_csv(tables.avatars, dtype={"id": str}).iloc[1:].to_csv(tables.avatars, index=False)
    run = run_dag(gated(tables))
    assert run.states["gate.local_cloaking"] == "failed"
    assert run.tries["gate.local_cloaking"] == 1


def test_everything_in_xcom_is_plain_json(run_dag, tables):
    """[airflow 54097, 52753, PR 62686]"""
    run = run_dag(gated(tables))
    for value in (run.result("gate.local_cloaking"), run.result("gate.check")):
        assert json.loads(json.dumps(value, allow_nan=False)) == value
    measured = run.result("gate.local_cloaking")
    wanted = {"local_cloaking", "n", "hidden_rate", "ncp", "counts", "counts_sha256", "avatars_sha256", "warnings"}
    assert wanted <= set(measured)
    counts = pd.read_parquet(measured["counts"])
    assert list(counts["closer"]) == sorted(counts["closer"])
    assert list(counts.columns) == ["closer", "strictly_closer"]
    assert hashlib.sha256(Path(measured["counts"]).read_bytes()).hexdigest() == measured["counts_sha256"]


def test_two_runs_keep_two_records(run_dag, tables):
    """[great_expectations 3705]"""
    first, second = (run_dag(gated(tables)).result("gate.check") for _ in range(2))
    assert first["record"] != second["record"]
    assert record_of(first)["verdict"] == record_of(second)["verdict"] == "passed"


def test_the_same_run_again_keeps_both_records(run_dag, tables):
    import pendulum

    moment = pendulum.datetime(2026, 3, 1, tz="UTC")
    first = run_dag(gated(tables), logical_date=moment, run_after=moment).result("gate.check")
    second = run_dag(gated(tables), logical_date=moment, run_after=moment).result("gate.check")
    assert first["record"] != second["record"]
    names = [record_of(verdict)["judged"]["run"]["run_id"] for verdict in (first, second)]
    assert names[0] == names[1]


def test_three_mapped_gates_give_three_verdicts_and_three_records(run_dag, tables):
    """[great-expectations provider 138]"""
    run = run_dag(f"""{HEAD}
with DAG("mapped", **OPTIONS) as dag:
    measured = LocalCloakingOperator.partial(
        task_id="measure", originals="{tables.originals}", avatars="{tables.avatars}", key="id"
    ).expand(ncp=[1, 3, 5])
    LocalCloakingCheckOperator.partial(task_id="check", threshold=3).expand(measured=measured.output)
""")
    verdicts = [run.result(f"check[{i}]") for i in range(3)]
    records = [record_of(verdict) for verdict in verdicts]
    assert [record["ncp"] for record in records] == [1, 3, 5]
    assert len({verdict["record"] for verdict in verdicts}) == 3
    assert [record["judged"]["run"]["map_index"] for record in records] == [0, 1, 2]


def test_a_mapped_group_of_gates(run_dag, tables):
    run = run_dag(f"""{HEAD}
from airflow.sdk import task_group
with DAG("mapped_group", **OPTIONS) as dag:
    @task_group
    def one(ncp):
        gate = local_cloaking_gate(
            "gate", originals="{tables.originals}", avatars="{tables.avatars}", key="id", ncp=ncp, threshold=3)

        @task
        def publish(verdict, avatars):
            return require_passed(verdict, avatars)

        publish(gate.verdict, "{tables.avatars}")

    one.expand(ncp=[3, 4])
""")
    assert run.state == "success"
    assert [record_of(run.result(f"one.gate.check[{i}]"))["ncp"] for i in range(2)] == [3, 4]
    assert run.result("one.publish[1]") == str(tables.avatars)


def test_times_carry_the_offset_of_the_dags_time_zone(run_dag, tables):
    """[dag-factory 884]"""
    record = record_of(run_dag(gated(tables)).result("gate.check"))
    assert record["measured_at"].endswith(("+01:00", "+02:00"))
    assert record["judged"]["at"].endswith(("+01:00", "+02:00"))


# Careless hands (the last rows of the safeguards) -------------------------------------------------


def test_the_number_in_xcom_is_edited_and_the_gate_judges_the_counts(run_dag, tables):
    run = run_dag(f"""{HEAD}
with DAG("edited", **OPTIONS) as dag:
    measured = LocalCloakingOperator(
        task_id="measure", originals="{tables.originals}", avatars="{tables.avatars}", key="id", ncp=3)

    @task
    def edit(measured):
        return dict(measured, local_cloaking=1000.0, n=10**6, hidden_rate=100.0)

    LocalCloakingCheckOperator(task_id="check", measured=edit(measured.output), threshold={FAILING})
""")
    assert run.result("check")["verdict"] == "below_threshold"
    assert run.result("check")["local_cloaking"] == 4.0


@pytest.mark.parametrize("change", ["counts_sha256='0' * 64", "counts='/nowhere/counts.parquet'", "counts=None"])
def test_other_counts_than_those_measured_are_no_verdict(run_dag, tables, change):
    run = run_dag(f"""{HEAD}
with DAG("edited", **OPTIONS) as dag:
    measured = LocalCloakingOperator(
        task_id="measure", originals="{tables.originals}", avatars="{tables.avatars}", key="id", ncp=3)

    @task
    def edit(measured):
        return dict(measured, {change})

    LocalCloakingCheckOperator(task_id="check", measured=edit(measured.output), threshold={PASSING})
""")
    assert run.states["check"] == "failed"
    assert run.result("check") is None
    # Storage may come back; a hash will not.
    assert run.tries["check"] == (4 if "nowhere" in change else 1)


def test_counts_of_another_run_are_no_verdict(run_dag, tables, tmp_path):
    earlier = run_dag(gated(tables)).result("gate.local_cloaking")
    (tmp_path / "earlier.json").write_text(json.dumps(earlier))
    run = run_dag(f"""{HEAD}
import json
with DAG("stale", **OPTIONS) as dag:
    LocalCloakingCheckOperator(
        task_id="check", threshold={PASSING}, measured=json.load(open("{tmp_path}/earlier.json")))
""")
    assert run.states["check"] == "failed"
    assert run.tries["check"] == 1


def test_the_check_marked_a_success_by_hand_publishes_nothing(run_dag, tables):
    run = run_dag(gated(tables, FAILING), mark_success_pattern="gate.check")
    assert run.states["gate.check"] == "success"
    assert run.states["publish"] == "failed"
    assert run.result("publish") is None


@pytest.mark.parametrize(
    "change",
    [
        "dict(verdict, verdict='passed')",
        "dict(verdict, verdict='passed', record_sha256='0' * 64)",
        "forged(verdict)",
    ],
)
def test_a_verdict_edited_in_xcom_publishes_nothing(run_dag, tables, change):
    run = run_dag(f"""{HEAD}
import hashlib, json
from pathlib import Path

def forged(verdict):
    # The record itself edited, its digest and its hash computed anew.
    from local_cloaking.audit.record import digest_of, to_bytes
    record = json.loads(Path(verdict["record"]).read_text())
    record["verdict"] = "passed"
    record["digest"] = digest_of(record)
    Path(verdict["record"]).write_bytes(to_bytes(record))
    return dict(verdict, verdict="passed", record_sha256=hashlib.sha256(to_bytes(record)).hexdigest())

with DAG("edited", **OPTIONS) as dag:
    gate = local_cloaking_gate(
        "gate", originals="{tables.originals}", avatars="{tables.avatars}", key="id", ncp=3, threshold={FAILING})

    @task(trigger_rule="all_done")
    def edit(ti=None):
        verdict = ti.xcom_pull(task_ids="gate.check")
        return {change}

    @task
    def publish(verdict, avatars):
        return require_passed(verdict, avatars)

    edited = edit()
    gate >> edited
    publish(edited, "{tables.avatars}")
""")
    assert run.states["edit"] == "success"
    assert run.states["publish"] == "failed"
    assert run.tries["publish"] == 1


def test_avatars_replaced_after_the_check_are_not_published(run_dag, tables):
    before = f"""
    @task
    def replace():
        from pathlib import Path
        path = Path("{tables.avatars}")
        path.write_text(path.read_text() + "\\n")

    replaced = replace()
    gate >> replaced >> published
"""
    run = run_dag(gated(tables, before_publish=before))
    assert run.states["gate.check"] == "success"
    assert run.states["publish"] == "failed"
    assert run.tries["publish"] == 1


def test_an_earlier_verdict_is_not_one_for_other_avatars(run_dag, tables, tmp_path):
    verdict = run_dag(gated(tables)).result("gate.check")
    other = tmp_path / "other.csv"
    other.write_bytes(tables.originals.read_bytes())
    from airflow.providers.common.compat.sdk import AirflowFailException

    from local_cloaking.airflow import require_passed

    assert require_passed(verdict, tables.avatars) == str(tables.avatars)
    with pytest.raises(AirflowFailException, match="not the file that passed"):
        require_passed(verdict, other)
    with pytest.raises(AirflowFailException, match="did the check task run"):
        require_passed(None, tables.avatars)


# Around the gate ---------------------------------------------------------------------------------


def test_the_outlet_is_updated_when_passed_and_only_then(run_dag, tables):
    from airflow import settings
    from airflow.models.asset import AssetEvent
    from sqlalchemy import select

    def events() -> list[dict[str, Any]]:
        with settings.Session() as session:
            return [event.extra for event in session.scalars(select(AssetEvent))]

    more = 'outlet=Asset("avatars-passed")'
    assert run_dag(gated(tables, FAILING, more=more)).state == "failed"
    assert not [extra for extra in events() if "verdict" in extra]
    run = run_dag(gated(tables, more=more))
    told = [extra for extra in events() if "verdict" in extra]
    assert len(told) == 1
    assert told[0]["local_cloaking"] == 4.0
    assert told[0]["record_sha256"] == run.result("gate.check")["record_sha256"]


def test_notify_is_called_when_measure_or_check_fails(run_dag, tables, tmp_path):
    more = f'notify=lambda context: open("{tmp_path}/told", "a").write(context["ti"].task_id + "\\n")'
    run_dag(gated(tables, more=more))
    assert not (tmp_path / "told").exists()
    run_dag(gated(tables, FAILING, more=more))
    assert (tmp_path / "told").read_text() == "gate.check\n"
    tables.originals.write_text("a;b\n")
    run_dag(gated(tables, FAILING, more=more))
    assert (tmp_path / "told").read_text() == "gate.check\ngate.local_cloaking\n"


def test_the_avatarisation_hands_over_its_projection(run_dag, tables, tmp_path):
    run = run_dag(f"""{HEAD}
with DAG("avatarised", **OPTIONS, params=dict(k=20)) as dag:
    avatars = AvatariseOperator(
        task_id="avatarise", originals="{tables.originals}", avatars="{tmp_path}/{{{{ run_id }}}}/avatars.parquet",
        k="{{{{ params.k }}}}", ncp=3, seed=1, key="id")
    local_cloaking_gate(
        "gate", originals="{tables.originals}", avatars=avatars.output["avatars"], k=avatars.output["k"],
        projection=avatars.output["projection"], key="id", threshold=3)
""")
    assert run.state == "success"
    measured = run.result("gate.local_cloaking")
    assert (measured["space"], measured["ncp"], measured["k"]) == ("handed over", 3, 20)
    made = run.result("avatarise")
    for name in ("avatars", "projection"):
        assert Path(made[name]).stat().st_mode & 0o077 == 0
    record = record_of(run.result("gate.check"))
    assert (
        record["inputs"]["projection"]["sha256"]
        == hashlib.sha256(Path(made["projection"]).read_bytes()).hexdigest()
    )


def test_a_missing_xcom_is_not_taken_for_an_option_that_was_left_out(run_dag, tables):
    run = run_dag(gated(tables, more="projection=\"{{ ti.xcom_pull('nobody') }}\""))
    assert run.states["gate.local_cloaking"] == "failed"
    assert run.tries["gate.local_cloaking"] == 1


def test_nothing_personal_is_left_in_record_counts_or_xcom(run_dag, tables):
    run = run_dag(gated(tables, FAILING))
    verdict = run.result("gate.check")
    left = json.dumps(list(run.xcoms.values())) + Path(verdict["record"]).read_text()
    for table in (tables.originals, tables.avatars):
        frame = pd.read_csv(table, dtype=str)
        for value in [*frame["id"][:50], *frame["a"][:50]]:
            assert f'"{value}"' not in left
            assert len(value) < 6 or value not in left
