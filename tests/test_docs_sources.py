"""The examples of docs/sources.md run."""

from __future__ import annotations

import ast
import doctest
import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "sources.md"


def test_the_examples_of_the_page_give_what_it_says() -> None:
    found = doctest.testfile(str(PAGE), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted > 8
    assert found.failed == 0


def test_the_other_examples_name_arguments_that_there_are() -> None:
    """Pieces of DAGs: each is made inside one."""
    from airflow.sdk import DAG, task

    from local_cloaking.airflow import local_cloaking_gate, require_passed

    pieces = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    dags = [piece for piece in pieces if ">>>" not in piece]
    assert len(dags) == 3
    for piece in dags:
        ast.parse(piece)
        names = {
            "local_cloaking_gate": local_cloaking_gate,
            "require_passed": require_passed,
            "task": task,
            "make_avatars": task(task_id="make_avatars")(lambda: None),
        }
        with DAG("piece", schedule=None) as dag:
            exec(piece, names)
        assert {"gate.local_cloaking", "gate.check"} <= set(dag.task_ids)
