"""Choosing k: our avatarisation, functions and commands of others, and what never counts as reaching."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import pytest

from local_cloaking import Advice, InputError, advise, avatarise, avatarise_in_space, local_cloaking
from local_cloaking.audit.advice import _validator, tried_entries, tried_of
from tests.people import CATEGORIES, actg175

PARTS = ("means", "spreads", "correlations")


def table(n: int = 120, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)).round(4), columns=["age", "dose", "weight"])
    frame["arm"] = rng.choice(["a", "b"], n)
    return frame


def noise(scale: float, frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    numbers = frame.select_dtypes("number").columns
    return frame.assign(
        **{name: frame[name] + rng.normal(scale=scale, size=len(frame)) for name in numbers},
        arm=rng.permutation(frame["arm"].to_numpy()),
    )


def blurred(originals: pd.DataFrame, *, k: int, seed: int) -> pd.DataFrame:
    """An avatarisation of somebody else's: noise that grows with k."""
    return noise(0.05 * k, originals, seed)


def assert_sound(advice: Advice) -> None:
    """What holds for every advice: the k found was measured, with every seed, and is the smallest that reaches."""
    reaching = [one.k for one in advice.tried if one.reaches]
    assert advice.k == min(reaching, default=None)
    assert (advice.reason is None) == (advice.k is not None)
    assert [one.k for one in advice.tried] == sorted({one.k for one in advice.tried})
    for one in advice.tried:
        assert [trial.seed for trial in one.trials] == list(advice.aim.seeds)
        assert one.reaches == all(
            trial.reason is None and trial.local_cloaking is not None and trial.local_cloaking >= advice.aim.bound
            for trial in one.trials
        )
    jsonschema.validate(json.loads(advice.to_json()), _validator().schema)
    assert [tried_of(tried_entries(one)) for one in advice.tried] == list(advice.tried)


@pytest.fixture(scope="module")
def on_actg() -> Advice:
    return advise(actg175(), threshold=15, ncp=5, categorical=CATEGORIES)


def test_on_actg_175_the_k_lies_between_33_and_45(on_actg: Advice) -> None:
    assert on_actg.k is not None
    assert 33 <= on_actg.k <= 45
    assert_sound(on_actg)
    assert len(on_actg.tried) <= 14
    found = on_actg.at(on_actg.k)
    assert 90 < found.hidden_rate < 98
    # Protection has its price: the avatars of k = 5 moved less.
    assert on_actg.at(5).moved < found.moved
    assert all(on_actg.at(k).local_cloaking < 15 for k in (on_actg.k - 2, on_actg.k - 1))


def test_with_each_of_its_seeds_the_k_found_reaches_the_threshold() -> None:
    originals = table()
    advice = advise(originals, threshold=6, ncp=2, seeds=[4, 5])
    assert_sound(advice)
    for seed, trial in zip([4, 5], advice.at(advice.k or 0).trials, strict=True):
        made = avatarise_in_space(originals, k=advice.k or 0, ncp=2, seed=seed)
        result = local_cloaking(originals, made.avatars, projection=made.projection)
        assert trial.local_cloaking == result.median >= 6
        assert trial.hidden_rate == result.hidden_rate


def test_the_least_favourable_seed_counts() -> None:
    advice = advise(table(), threshold=6, ncp=2, seeds=range(6))
    assert_sound(advice)
    for one in advice.tried:
        assert one.local_cloaking == min(trial.local_cloaking or 0 for trial in one.trials)
        assert one.hidden_rate == min(trial.hidden_rate or 0 for trial in one.trials)
        assert one.moved == max(trial.utility.overall for trial in one.trials)
    # One seed that falls short is enough.
    assert any(any(t.reaches for t in one.trials) and not one.reaches for one in advice.tried)


def test_the_margin_is_added_to_the_threshold() -> None:
    without, with_margin = (advise(table(), threshold=4, margin=margin, ncp=2, seeds=[1]) for margin in (0, 3))
    assert with_margin.tried == advise(table(), threshold=7, ncp=2, seeds=[1]).tried
    assert (without.k or 0) < (with_margin.k or 0)
    assert with_margin.at(with_margin.k or 0).local_cloaking >= 7


def test_none_up_to_the_largest_k() -> None:
    advice = advise(table(), threshold=60, ncp=2, k_max=12, seeds=[1, 2])
    assert_sound(advice)
    assert advice.k is None
    assert advice.reason is not None
    assert advice.reason.startswith("no k tried up to 12 reaches 60 with every seed: with k = 12, ")
    assert [one.k for one in advice.tried] == [5, 10, 12]


def test_a_small_threshold_is_searched_down_to_the_smallest_k() -> None:
    advice = advise(table(), threshold=0.5, ncp=2, seeds=[1])
    assert advice.k == 2
    assert advise(table(), threshold=0.5, ncp=2, seeds=[1], k_min=4).k == 4


def test_same_arguments_same_advice() -> None:
    assert advise(table(), threshold=5, ncp=2) == advise(table(), threshold=5, ncp=2)


# Functions of others -------------------------------------------------------------------------------------------


def test_a_function_that_takes_k_and_seed() -> None:
    asked = []

    def recorded(originals: pd.DataFrame, *, k: int, seed: int) -> pd.DataFrame:
        asked.append((k, seed))
        return blurred(originals, k=k, seed=seed)

    advice = advise(table(), threshold=8, avatarisation=recorded, ncp=2, seeds=[7, 8])
    assert_sound(advice)
    assert advice.k is not None
    assert advice.avatarisation == "function"
    assert sorted(asked) == sorted((one.k, seed) for one in advice.tried for seed in (7, 8))
    assert any("space: refitted" in warning for warning in advice.warnings)


def test_a_function_that_takes_no_seed_and_one_that_hands_over_its_projection() -> None:
    assert_sound(advise(table(), threshold=6, avatarisation=lambda o, k: avatarise(o, k=k, ncp=2, seed=3), ncp=2))

    def in_its_space(originals: pd.DataFrame, *, k: int, seed: int) -> Any:
        return avatarise_in_space(originals, k=k, ncp=2, seed=seed)

    advice = advise(table(), threshold=6, avatarisation=in_its_space, ncp=2)
    assert advice.tried == advise(table(), threshold=6, ncp=2).tried


def test_a_key_pairs_avatars_in_any_order_and_moves_nothing() -> None:
    keyed = table()
    keyed.insert(0, "id", [f"{i:03}" for i in range(len(keyed))])

    def shuffled(originals: pd.DataFrame, *, k: int, seed: int) -> pd.DataFrame:
        assert "id" in originals
        made = avatarise_in_space(originals, k=k, ncp=2, seed=seed, key="id").avatars
        return made.sample(frac=1, random_state=seed)

    by_key = advise(keyed, threshold=6, avatarisation=shuffled, ncp=2, key="id")
    by_order = advise(table(), threshold=6, ncp=2)
    assert by_key.k == by_order.k
    assert [one.local_cloaking for one in by_key.tried] == [one.local_cloaking for one in by_order.tried]
    assert [one.moved for one in by_key.tried] == pytest.approx([one.moved for one in by_order.tried])
    assert not any("carry the key" in warning for warning in by_key.warnings)


def test_dropped_columns_reach_no_avatarisation() -> None:
    seen = set()

    def looked(originals: pd.DataFrame, *, k: int) -> pd.DataFrame:
        seen.update(originals.columns)
        return avatarise(originals, k=k, ncp=2, seed=1)

    advise(table().assign(name="secret"), threshold=4, avatarisation=looked, ncp=2, drop=["name"], k_max=10)
    assert seen == {"age", "dose", "weight", "arm"}


def test_a_function_that_changes_its_table_changes_nothing_else() -> None:
    originals = table()
    before = originals.copy()

    def careless(table: pd.DataFrame, *, k: int, seed: int) -> pd.DataFrame:
        made = blurred(table, k=k, seed=seed)
        table["age"] = 0.0
        return made

    advice = advise(originals, threshold=8, avatarisation=careless, ncp=2)
    pd.testing.assert_frame_equal(originals, before)
    assert advice.tried == advise(before, threshold=8, avatarisation=blurred, ncp=2).tried


def test_an_error_of_the_function_is_its_own() -> None:
    def broken(originals: pd.DataFrame, *, k: int, seed: int) -> pd.DataFrame:
        raise ZeroDivisionError("its own")

    with pytest.raises(ZeroDivisionError, match="its own"):
        advise(table(), threshold=5, avatarisation=broken, ncp=2)


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (lambda o, k: o.iloc[:-1], "with k = 5 and seed 1: .*119"),
        (lambda o, k: o.iloc[:0], "with k = 5 and seed 1: the avatars have no rows"),
        (lambda o, k: o.drop(columns="dose"), "with k = 5 and seed 1: "),
        (lambda o, k: o.assign(arm="unheard of"), "with k = 5 and seed 1: .*no original has"),
        (lambda o, k: o.assign(age=np.inf), "with k = 5 and seed 1: "),
        (lambda o, k: None, "with k = 5 and seed 1: the avatars are not a DataFrame"),
    ],
)
def test_what_cannot_be_measured_is_refused_naming_k_and_seed(made: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as caught:
        advise(table(), threshold=5, avatarisation=made, ncp=2)
    assert "unheard of" not in str(caught.value)


# What never counts as reaching ---------------------------------------------------------------------------------


def test_shuffled_avatars_never_reach() -> None:
    def shuffles(originals: pd.DataFrame, *, k: int, seed: int) -> pd.DataFrame:
        return blurred(originals, k=k, seed=seed).sample(frac=1, random_state=seed)

    advice = advise(table(), threshold=5, avatarisation=shuffles, ncp=2)
    assert_sound(advice)
    assert advice.k is None
    assert all(one.local_cloaking is None and one.hidden_rate is None for one in advice.tried)
    assert "could be assessed" in str(advice.reason)
    assert "look shuffled" in str(advice.reason)
    assert "<svg" in advice.to_html()


def test_columns_carried_over_that_single_people_out_never_reach() -> None:
    originals = table()

    def carries_over(table: pd.DataFrame, *, k: int, seed: int) -> pd.DataFrame:
        return blurred(table, k=k, seed=seed).assign(age=table["age"])

    advice = advise(originals, threshold=5, avatarisation=carries_over, ncp=3, k_max=30)
    assert_sound(advice)
    assert advice.k is None
    high = [t for one in advice.tried for t in one.trials if t.local_cloaking and t.local_cloaking >= 5]
    assert high
    assert all("carried over unchanged" in str(trial.reason) for trial in high)


def test_copies_never_reach() -> None:
    six_times = pd.concat([table(40)] * 6, ignore_index=True)
    advice = advise(six_times, threshold=5, avatarisation=lambda o, k: o, ncp=2, seeds=[1], k_max=20)
    assert advice.k is None
    assert {one.local_cloaking for one in advice.tried} == {5.0}
    assert "copies" in str(advice.reason)


def test_a_k_that_is_not_assessable_above_the_one_found_is_told() -> None:
    def shuffles_at_40(originals: pd.DataFrame, *, k: int, seed: int) -> pd.DataFrame:
        made = blurred(originals, k=k, seed=seed)
        return made.sample(frac=1, random_state=seed) if k >= 20 else made

    # 19 reaches or not, 20 and 21 cannot.
    advice = advise(table(), threshold=1, avatarisation=shuffles_at_40, ncp=2, k_min=19, k_max=30)
    assert advice.k in (19, None)
    if advice.k:
        assert any("which is larger, does not" in warning for warning in advice.warnings)


# Arguments -----------------------------------------------------------------------------------------------------


def _without_k(originals: Any) -> Any:
    return originals


@pytest.mark.parametrize(
    "wrong",
    [
        {"threshold": 0},
        {"threshold": "x"},
        {"threshold": float("nan")},
        {"threshold": 120},
        {"threshold": 118, "margin": 2},
        {"margin": -1},
        {"margin": float("inf")},
        {"margin": True},
        {"k_min": 0},
        {"k_max": 120},
        {"k_max": 0},
        {"k_min": 9, "k_max": 8},
        {"k_max": 7.5},
        {"seeds": []},
        {"seeds": [1, 1]},
        {"seeds": [-1]},
        {"seeds": [None]},
        {"seeds": "123"},
        {"seeds": 3},
        {"ncp": 0},
        {"ncp": 99},
        {"key": "absent"},
        {"drop": ["absent"]},
        {"categorical": ["absent"]},
        {"avatarisation": "make-avatars {output}"},
        {"avatarisation": "make-avatars {k}"},
        {"avatarisation": "make-avatars '{k} {output}"},
        {"avatarisation": 7},
        {"avatarisation": _without_k},
    ],
    # Without the address of a function, which differs from process to process.
    ids=lambda wrong: str(wrong).split(" at 0x")[0],
)
def test_wrong_arguments_are_refused_before_anything_is_made(wrong: dict[str, Any]) -> None:
    made = []

    def recorded(originals: pd.DataFrame, *, k: int) -> pd.DataFrame:
        made.append(k)
        return originals

    with pytest.raises(InputError):
        advise(table(), **{"threshold": 5, "avatarisation": recorded, **wrong})
    assert made == []


def test_a_column_of_names_is_refused_before_anything_is_made() -> None:
    with pytest.raises(InputError) as caught:
        advise(
            table().assign(name=[f"patient {i}" for i in range(120)]),
            threshold=5,
            avatarisation=lambda o, k: 1 / 0,
        )
    assert caught.value.column == "name"
    assert "with k" not in str(caught.value)


def test_no_table_and_few_individuals() -> None:
    with pytest.raises(InputError):
        advise([1, 2], threshold=5)  # type: ignore[arg-type]
    for n in (0, 1, 2):
        with pytest.raises(InputError):
            advise(table(10).iloc[:n], threshold=1)


# Commands ------------------------------------------------------------------------------------------------------

SCRIPT = """
import sys
import pandas as pd
from local_cloaking import avatarise
source, k, seed, target = sys.argv[1:5]
made = avatarise(pd.read_parquet(source), k=int(k), ncp=2, seed=int(seed))
made.to_parquet(target)
"""


def command(tmp_path: Path, script: str, arguments: str = "{originals} {k} {seed} {output}") -> str:
    path = tmp_path / "make avatars.py"  # with a blank
    path.write_text(script)
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(path))} {arguments}"


def test_a_command_gives_what_the_function_gives(tmp_path: Path) -> None:
    # So few, as each run of a command takes its second.
    options: dict[str, Any] = {"threshold": 6, "ncp": 2, "seeds": [2], "k_min": 8, "k_max": 9}
    advice = advise(table(), avatarisation=command(tmp_path, SCRIPT), **options)
    assert_sound(advice)
    assert advice.avatarisation == "command"
    same = advise(table(), avatarisation=lambda o, k, seed: avatarise(o, k=k, ncp=2, seed=seed), **options)
    assert advice.tried == same.tried
    assert "make avatars" not in advice.to_json()


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("raise SystemExit(3)", "ended with 3"),
        ("import os; os.kill(os.getpid(), 9)", "stopped by signal 9"),
        ("pass", "wrote no avatars"),
        ("import sys; open(sys.argv[4], 'w')", "wrote no avatars"),
        ("import sys; open(sys.argv[4], 'wb').write(b'PAR1 damaged PAR1')", "avatars.parquet"),
        (
            "import sys, pandas as pd; pd.read_parquet(sys.argv[1]).iloc[:-1].to_parquet(sys.argv[4])",
            "119",
        ),
        (
            "import sys, pandas as pd; pd.read_parquet(sys.argv[1]).assign(more=1).to_parquet(sys.argv[4])",
            "more",
        ),
    ],
)
def test_a_command_that_fails_or_writes_something_else(tmp_path: Path, script: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as caught:
        advise(table(), threshold=5, avatarisation=command(tmp_path, script), ncp=2)
    assert "with k = 5 and seed 1: " in str(caught.value)


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(InputError, match="cannot be started: No such file"):
        advise(table(), threshold=5, avatarisation="/no/such/program {k} {output}", ncp=2)


def test_no_shell_sees_the_command(tmp_path: Path) -> None:
    told, bait = tmp_path / "arguments.json", tmp_path / "bait"
    script = f"import json, sys; open({str(told)!r}, 'w').write(json.dumps(sys.argv[1:])); sys.exit(1)"
    arguments = (
        f"{{k}} '{{\"k\": {{k}}}}' {{other}} {{output}} $HOME * ; touch {bait} | touch {bait} $(touch {bait})"
    )
    with pytest.raises(InputError, match="ended with 1"):
        advise(table(), threshold=5, avatarisation=command(tmp_path, script, arguments), ncp=2)
    words = json.loads(told.read_text())
    assert words[:3] == ["5", '{"k": 5}', "{other}"]
    assert words[4:8] == ["$HOME", "*", ";", "touch"]
    assert not bait.exists()


def test_what_a_command_writes_is_for_its_owner_alone_and_gone_afterwards(tmp_path: Path) -> None:
    told = tmp_path / "folder.json"
    script = (
        "import json, os, sys; folder = os.path.dirname(sys.argv[4]); "
        f"open({str(told)!r}, 'w').write(json.dumps([folder, os.stat(folder).st_mode & 0o777])); sys.exit(1)"
    )
    with pytest.raises(InputError):
        advise(table(), threshold=5, avatarisation=command(tmp_path, script), ncp=2)
    folder, mode = json.loads(told.read_text())
    assert mode == 0o700
    assert not Path(folder).exists()


def test_what_a_command_prints_stays_unsaid(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = "import sys; print('Mr Smith'); print('Mr Smith', file=sys.stderr); sys.exit(1)"
    with pytest.raises(InputError) as caught:
        advise(table(), threshold=5, avatarisation=command(tmp_path, script), ncp=2)
    assert "Smith" not in str(caught.value)
    assert "Smith" not in "".join(capfd.readouterr())
