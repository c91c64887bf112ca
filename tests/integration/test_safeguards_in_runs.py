"""Every way of ``docs/safeguards.md`` to a wrong ``passed``, through a whole pipeline, on tables of real people.

Avatarise, tamper with the files, measure, check, publish: three trials with patients as rows, one of them with
missing cells.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.integration.conftest import Run
from tests.people import CATEGORIES, actg175, breast_cancer, lung_cancer
from tests.tampering import blanked, neighbour_swap, shuffled

from local_cloaking import FAMD

pytestmark = pytest.mark.stack

NCP = 5
SOURCE = """
from datetime import datetime, timedelta
from airflow.sdk import DAG, task
from local_cloaking.airflow import *

with DAG("tampered", schedule=None, start_date=datetime(2026, 1, 1),
         default_args=dict(retries=2, retry_delay=timedelta(seconds=0))) as dag:
    made = AvatariseOperator(task_id="avatarise", originals="{folder}/originals.csv",
                             avatars="{folder}/avatars.csv", k=20, ncp={ncp}, seed=1, categorical={categorical!r})

    @task
    def tamper():
        from pathlib import Path
        import pandas as pd
        from tests.integration.test_safeguards_in_runs import WAYS
        folder = Path("{folder}")
        WAYS["{way}"].tamper(folder, pd.read_csv(folder / "originals.csv"), pd.read_csv(folder / "avatars.csv"))

    gate = local_cloaking_gate("gate", originals="{folder}/originals.csv", avatars="{folder}/avatars.csv",
                               threshold={threshold!r}, {measure})

    @task
    def publish(verdict):
        return require_passed(verdict, "{folder}/avatars.csv")

    made >> tamper() >> gate >> publish(gate.verdict)
"""
PROJECTION = 'projection=made.output["projection"]'


@dataclass(frozen=True)
class People:
    """A table of people, and its categories."""

    table: pd.DataFrame
    categorical: Sequence[str]


PEOPLE: dict[str, Callable[[], People]] = {
    "ACTG 175": lambda: People(actg175(), CATEGORIES),
    "breast cancer": lambda: People(breast_cancer(), ["diagnosis"]),
    "lung cancer": lambda: People(lung_cancer(), ["inst", "status", "sex", "ph.ecog"]),
}


@pytest.fixture(params=PEOPLE)
def people(request: pytest.FixtureRequest) -> People:
    return PEOPLE[request.param]()


Tables = tuple[pd.DataFrame, pd.DataFrame]
Change = Callable[[pd.DataFrame, pd.DataFrame], Tables]


@dataclass(frozen=True)
class Way:
    """What is done to the files after the avatarisation, and how they are measured then.

    ``said`` is what the reason, the warning or the refusal says.
    """

    said: str
    change: Change
    measure: str = PROJECTION
    threshold: Any = 1
    more: Callable[[Path, pd.DataFrame, pd.DataFrame], None] | None = field(default=None, repr=False)

    def tamper(self, folder: Path, originals: pd.DataFrame, avatars: pd.DataFrame) -> None:
        """Write both tables anew."""
        originals, avatars = self.change(originals, avatars)
        originals.to_csv(folder / "originals.csv", index=False)
        avatars.to_csv(folder / "avatars.csv", index=False)
        if self.more is not None:
            self.more(folder, originals, avatars)


def untouched(originals: pd.DataFrame, avatars: pd.DataFrame) -> Tables:
    return originals, avatars


def of_avatars(change: Callable[[pd.DataFrame], pd.DataFrame]) -> Change:
    return lambda originals, avatars: (originals, change(avatars))


def six_times(originals: pd.DataFrame, _: pd.DataFrame) -> Tables:
    copies = originals.head(100).loc[lambda table: table.index.repeat(6)]
    return copies, copies


def levels(column: pd.Series) -> set[Any]:
    return set(column.dropna())


def other_people(originals: pd.DataFrame, avatars: pd.DataFrame) -> Tables:
    """Half of the people, and the avatars of the others, of categories that the first half has, too."""
    categories = [name for name in originals if levels(avatars[name]) <= levels(originals[name])]
    half = len(originals) // 2
    for seed in range(1000):
        order = np.random.default_rng(seed).permutation(len(originals))
        here, there = originals.iloc[order[:half]], avatars.iloc[order[half : 2 * half]]
        if all(levels(there[name]) <= levels(here[name]) for name in categories):
            return here, there
    raise AssertionError("no half of the people has every category of the others' avatars")


def numbered(originals: pd.DataFrame, avatars: pd.DataFrame) -> Tables:
    """A column numbers the rows of the originals; the avatars have numbers near by."""
    n = len(originals)
    near = np.arange(n) + np.random.default_rng(1).integers(-n // 20, n // 20, size=n)
    return originals.assign(row=range(n)), avatars.assign(row=near)


def in_both(name: str, values: Callable[[int], Sequence[Any]]) -> Change:
    return lambda originals, avatars: (
        originals.assign(**{name: values(len(originals))}),
        avatars.assign(**{name: values(len(avatars))}),
    )


def balanced(originals: pd.DataFrame, _: pd.DataFrame) -> Tables:
    """Every combination of two categories of two levels, ten times."""
    rows = list(itertools.product(("no", "yes"), ("dead", "alive"))) * 10
    table = pd.DataFrame(rows, columns=["treated", "outcome"])
    return table, table.sample(frac=1, random_state=1)


def numbers_of(table: pd.DataFrame) -> list[str]:
    """Columns of many values: no categories, however they are written."""
    return [name for name in table.select_dtypes("number") if table[name].nunique() > 12]


def category_of(table: pd.DataFrame) -> str:
    """A column of few values."""
    return str(min(table.columns, key=lambda name: (table[name].nunique() < 2, table[name].nunique())))


def medians(avatars: pd.DataFrame) -> pd.DataFrame:
    return avatars.assign(**{name: avatars[name].median() for name in numbers_of(avatars)})


def coordinates(of_avatars: Callable[[np.ndarray], np.ndarray]) -> Callable[..., None]:
    def write(folder: Path, originals: pd.DataFrame, avatars: pd.DataFrame) -> None:
        space = FAMD.from_json((folder / "avatars.csv.projection.json").read_text())
        own, theirs = space.transform(originals), of_avatars(space.transform(avatars))
        for name, points in (("original", own), ("avatar", theirs)):
            named = [f"Dim. {number}" for number in range(1, points.shape[1] + 1)]
            pd.DataFrame(points, columns=named).to_csv(folder / f"{name}_coordinates.csv", index=False)

    return write


COORDINATES = ", ".join(
    f'{name}_coordinates="{{folder}}/{name}_coordinates.csv"' for name in ("original", "avatar")
)
REFITTED = "categorical={categorical!r}, ncp=2"

NOT_ASSESSABLE = {
    "shuffled wholly": Way("the avatars look shuffled", of_avatars(shuffled)),
    "half of them shuffled": Way("the avatars look shuffled", of_avatars(lambda table: shuffled(table, 0.5))),
    "fewer others than the threshold": Way("can reach", untouched, threshold="{n}"),
    "copies of everybody": Way("copies of their own original", lambda originals, _: (originals, originals)),
    "copies of people stored six times": Way(
        "copies of their own original", six_times, measure="categorical={categorical!r}", threshold=5
    ),
    "missing cells": Way("is missing in", of_avatars(lambda table: blanked(table, 0.1))),
    "a missing category": Way(
        "is missing in", of_avatars(lambda table: blanked(table, 0.3, columns=[category_of(table)]))
    ),
    "coordinates of nobody": Way(
        "all stand in one place", untouched, measure=COORDINATES, more=coordinates(np.zeros_like)
    ),
    "other people": Way("the avatars look shuffled", other_people, measure="categorical={categorical!r}"),
}
WARNED = {
    "a fifth of them shuffled": Way(
        "part of the table may be shuffled", of_avatars(lambda table: shuffled(table, 0.2))
    ),
    "other people's real rows": Way(
        "real people's rows", lambda originals, _: (originals, neighbour_swap(originals.bfill().ffill(), 5))
    ),
    "another number of components": Way("space: refitted", untouched, measure=REFITTED),
    "a number of the row": Way("numbers the rows", numbered, measure="categorical={categorical!r}"),
    "collapsed": Way("the avatars have lost nearly all spread", of_avatars(medians)),
}
REFUSED = {
    "equal eigenvalues": Way("explain equal shares of the variance", balanced, measure="ncp=1"),
    "a name": Way("column 'who'", in_both("who", lambda n: [f"patient {i}" for i in range(n)]), measure=""),
    "a projection of others": Way("was fitted on", other_people),
}
UNVERIFIED = {
    "coordinates of other avatars": Way(
        "not verified", untouched, measure=COORDINATES, more=coordinates(lambda points: points * 1.5 + 0.1)
    ),
}
FILLED = {
    "few missing cells": Way("", of_avatars(lambda table: blanked(table, 0.03))),
    "a category that is rarely missing": Way(
        "", of_avatars(lambda table: blanked(table, 0.03, columns=[category_of(table)]))
    ),
}
WAYS = {"none": Way("", untouched), **NOT_ASSESSABLE, **WARNED, **REFUSED, **UNVERIFIED, **FILLED}

Went = tuple[Run, Path]


@pytest.fixture
def go(
    run_dag: Callable[..., Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, People], Went]:
    """Run the pipeline with one way of tampering."""
    monkeypatch.setenv("AIRFLOW__LOCAL_CLOAKING__AUDIT_PATH", str(tmp_path / "audit"))

    def run(way: str, people: People, **changed: Any) -> Went:
        people.table.to_csv(tmp_path / "originals.csv", index=False)
        said = {
            "folder": tmp_path,
            "ncp": NCP,
            "categorical": list(people.categorical),
            "n": len(people.table),
        }
        chosen = WAYS[way]
        threshold = changed.get("threshold", chosen.threshold)
        source = SOURCE.format(
            **said,
            way=way,
            threshold=threshold.format(**said) if isinstance(threshold, str) else threshold,
            measure=chosen.measure.format(**said),
        )
        for old, new in changed.get("replaced", {}).items():
            assert old in source
            source = source.replace(old, new.format(**said))
        return run_dag(source), tmp_path / "audit"

    return run


def evidence_of(run: Run) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Return verdict, record and report, which must be there."""
    verdict = run.result("gate.check")
    return verdict, json.loads(Path(verdict["record"]).read_text()), Path(verdict["report"]).read_text()


def test_honest_avatars_are_published(go, people):
    run, _ = go("none", people)
    assert run.state == "success"
    verdict, record, _ = evidence_of(run)
    assert (verdict["verdict"], record["verdict"]) == ("passed", "passed")
    assert run.result("publish") is not None


@pytest.mark.parametrize("way", NOT_ASSESSABLE)
def test_not_assessable(go, people, way):
    run, _ = go(way, people)
    assert (run.state, run.states["publish"]) == ("failed", "upstream_failed")
    assert run.tries["gate.check"] == 1
    verdict, record, page = evidence_of(run)
    assert verdict["verdict"] == record["verdict"] == "not_assessable"
    assert WAYS[way].said in verdict["reason"]
    assert "not assessable" in page.lower()


@pytest.mark.parametrize("way", WARNED)
def test_warned(go, people, way):
    run, _ = go(way, people)
    verdict, record, page = evidence_of(run)
    assert verdict["verdict"] == "passed"
    for told in (run.result("gate.local_cloaking")["warnings"], verdict["warnings"], record["warnings"]):
        assert any(WAYS[way].said in warning for warning in told), told
    assert "warning" in page.lower()


@pytest.mark.parametrize("way", REFUSED)
def test_refused(go, people, way, capfd):
    run, audit = go(way, people)
    assert (run.state, run.states["publish"]) == ("failed", "upstream_failed")
    assert run.states["gate.local_cloaking"] == "failed"
    assert run.tries["gate.local_cloaking"] == 1
    assert (run.result("gate.local_cloaking"), run.result("gate.check")) == (None, None)
    assert not audit.exists()
    assert WAYS[way].said in capfd.readouterr().out


@pytest.mark.parametrize("way", UNVERIFIED)
def test_a_verdict_that_does_not_speak_of_the_table_opens_nothing(go, people, way):
    run, _ = go(way, people, replaced={"retries=2": "retries=0"})
    verdict, record, _ = evidence_of(run)
    assert (verdict["verdict"], record["avatars_table"]) == ("passed", WAYS[way].said)
    assert (run.state, run.states["publish"]) == ("failed", "failed")


@pytest.mark.parametrize("way", FILLED)
def test_few_missing_cells_are_filled_and_told(go, people, way):
    run, _ = go(way, people)
    _, record, _ = evidence_of(run)
    assert record["verdict"] in ("passed", "below_threshold")
    assert any(0 < column["missing_avatars"] <= 0.05 for column in record["columns"])


@pytest.mark.parametrize("threshold", [0, "-1", "inf", "nan", True, None, "", "abc"])
def test_a_threshold_that_means_nothing(go, threshold):
    run, _ = go("none", PEOPLE["lung cancer"](), threshold=7, replaced={"threshold=7": f"threshold={threshold!r}"})
    assert (run.state, run.states["gate.check"], run.states["publish"]) == ("failed", "failed", "upstream_failed")
    assert run.tries["gate.check"] == 1
    assert run.result("gate.check") is None


def test_an_empty_suite(go, monkeypatch):
    from great_expectations import ExpectationSuite

    from local_cloaking import gate

    monkeypatch.setattr(gate, "local_cloaking_suite", lambda *_, **__: ExpectationSuite(name="empty"))
    run, _ = go("none", PEOPLE["lung cancer"]())
    assert (run.states["gate.check"], run.states["publish"]) == ("failed", "upstream_failed")
    assert run.result("gate.check") is None


REPLACED = """@task
    def replace():
        import shutil
        shutil.copy("{folder}/originals.csv", "{folder}/avatars.csv")

    made >> tamper() >> gate >> replace() >> publish(gate.verdict)"""


def test_avatars_replaced_between_measure_and_publish(go, people):
    replaced = {"made >> tamper() >> gate >> publish(gate.verdict)": REPLACED, "retries=2": "retries=0"}
    run, _ = go("none", people, replaced=replaced)
    assert evidence_of(run)[0]["verdict"] == "passed"
    assert (run.state, run.states["replace"], run.states["publish"]) == ("failed", "success", "failed")
