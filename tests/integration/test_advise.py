"""Runs of the DAG that chooses k, and of the group in other DAGs."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.integration.conftest import Run, run_file

from local_cloaking import advise
from local_cloaking.audit.advice import read_advice, tried_of

DAG_FILE = Path(__file__).resolve().parents[2] / "dags" / "local_cloaking_advise.py"

SOURCE = """
from datetime import datetime, timedelta
from airflow.sdk import DAG
from local_cloaking.airflow import *

with DAG("choosing", schedule=None, start_date=datetime(2026, 1, 1),
         default_args=dict(retries=2, retry_delay=timedelta(seconds=0)),
         params=dict(threshold={threshold!r})) as dag:
    advice = local_cloaking_advice(
        "choose", originals="{originals}", threshold="{{{{ params.threshold }}}}", key="id", ncp="3", seeds=[1, 2],
        {more})
    {after}
"""


HANDED_ON = """
    AvatariseOperator(task_id="avatarise", originals="{tables.originals}", avatars="{tables.folder}/made.csv",
                      k=advice.k, ncp=3, key="id", seed=1)
"""


def choosing(tables: Any, threshold: Any = 6, more: str = "k_max=40", after: str = "") -> str:
    return SOURCE.format(originals=tables.originals, threshold=threshold, more=more, after=after)


def tried_in(run: Run) -> list[int]:
    return sorted(
        value["k"] for (name, key), value in run.xcoms.items() if ".try_" in name and key == "return_value"
    )


@pytest.mark.stack
@pytest.mark.skipif(
    importlib.util.find_spec("lifelines") is None, reason="lifelines is not installed (extra `demo`)"
)
def test_the_dag_finds_a_k_between_33_and_45(airflow_home):
    dag_file = airflow_home / "dags" / DAG_FILE.name
    dag_file.write_text(DAG_FILE.read_text())
    try:
        # A bracket of 32 to 48, so that the run takes no longer than it must.
        run = run_file(dag_file, {"k_max": 45, "seeds": "1"})
    finally:
        dag_file.unlink()
    assert run.state == "success"
    advised = run.result("choose_k.advise")
    assert 33 <= advised["k"] <= 45
    assert advised["local_cloaking"] >= 15
    entries = read_advice(Path(advised["advice"]).read_bytes())
    assert [one["k"] for one in entries["tried"]] == tried_in(run)
    assert entries["run"]["dag_id"] == "local_cloaking_advise"
    assert "<svg" in Path(advised["report"]).read_text()


@pytest.mark.stack
def test_one_mapped_task_a_value_of_k_and_the_k_of_one_process(run_dag, tables):
    run = run_dag(choosing(tables, after=HANDED_ON.format(tables=tables)))
    assert run.state == "success"
    advised = run.result("choose.advise")
    originals = pd.read_csv(tables.originals, dtype={"id": str})
    alone = advise(originals, threshold=6, ncp=3, key="id", seeds=[1, 2], k_max=40)
    entries = read_advice(Path(advised["advice"]).read_bytes())
    assert advised["k"] == min(one["k"] for one in entries["tried"] if one["reaches"])
    # Where figures are noisy, other values are tried; the same values have the same figures.
    by_k = {one.k: one for one in alone.tried}
    both = [one for one in entries["tried"] if one["k"] in by_k]
    assert len(both) >= 4
    assert [tried_of(one) for one in both] == [by_k[one["k"]] for one in both]
    # The whole series, and the values beside the k found.
    tried = tried_in(run)
    assert len(tried) == len(set(tried))
    assert {5, 10, 20, 40, advised["k"] - 1, advised["k"] - 2, advised["k"] + 1, advised["k"] + 2} <= set(tried)
    assert {name for name in run.states if name.startswith("choose.try_series")} == {
        f"choose.try_series[{i}]" for i in range(4)
    }
    assert run.result("avatarise")["k"] == advised["k"]
    # The key of nobody in any XCom.
    assert not set(originals["id"]) & set(json.dumps([str(value) for value in run.xcoms.values()]).split('"'))


def test_none_reaches_the_run_fails_and_what_was_tried_is_kept(run_dag, tables):
    run = run_dag(choosing(tables, threshold=300, more='k_max="11", language="fr"'))
    assert (run.state, run.states["choose.advise"], run.tries["choose.advise"]) == ("failed", "failed", 1)
    advised = run.result("choose.advise")
    assert advised["k"] is None
    assert "no k tried up to 11 reaches 300" in advised["reason"]
    assert tried_in(run) == [5, 10, 11]
    assert '<html lang="fr"' in Path(advised["report"]).read_text()
    assert run.states["choose.try_1"] == "skipped"


def test_a_refusal_is_final_and_comes_first(run_dag, tables):
    for threshold, more in ((0, ""), ("abc", ""), (6, 'drop="absent"'), (6, 'command="make {k}"'), (400, "")):
        run = run_dag(choosing(tables, threshold=threshold, more=more))
        assert run.state == "failed"
        failed = [name for name, state in run.states.items() if state == "failed"]
        assert failed == ["choose.prepare"]
        assert not tried_in(run)


def test_a_command_in_the_dag_and_one_that_fails(run_dag, tables, tmp_path):
    script = tmp_path / "make.py"
    script.write_text(
        "import sys, numpy as np, pandas as pd\n"
        "source, k, seed, target = sys.argv[1:]\n"
        "if k == '10': sys.exit(7)\n"
        "table = pd.read_csv(source, dtype={'id': str})\n"
        "noise = np.random.default_rng(int(seed)).normal(scale=0.1 * int(k), size=(len(table), 6))\n"
        "table[list('abcdef')] += noise\n"
        "table.to_csv(target, index=False)\n"
    )
    words = f"{shlex.quote(sys.executable)} {shlex.quote(str(script))} {{originals}} {{k}} {{seed}} {{output}}"
    run = run_dag(choosing(tables, more=f"k_min=7, k_max=8, command={words!r}", threshold=1))
    assert run.state == "success"
    assert run.result("choose.advise")["k"] == 7
    run = run_dag(choosing(tables, more=f"k_min=10, k_max=10, command={words!r}", threshold=1))
    assert run.state == "failed"
    assert (run.states["choose.try_series[0]"], run.tries["choose.try_series[0]"]) == ("failed", 1)
    assert run.result("choose.advise") is None


def test_originals_changed_meanwhile_are_refused(run_dag, tables, monkeypatch):
    from local_cloaking import advising

    opened = advising.open_request

    def changing(request, **options):
        made = opened(request, **options)
        if not options:  # After the first task has looked.
            tables.originals.write_text(tables.originals.read_text().replace("placebo", "low", 1))
        return made

    monkeypatch.setattr(advising, "open_request", changing)
    before = hashlib.sha256(tables.originals.read_bytes()).hexdigest()
    run = run_dag(choosing(tables))
    assert run.result("choose.prepare")["originals_sha256"] == before
    assert run.state == "failed"
    assert tried_in(run) == []
