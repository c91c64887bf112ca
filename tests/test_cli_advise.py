"""``local-cloaking advise``: exit codes, messages, files, and commands of others."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from local_cloaking import advise
from local_cloaking.audit.advice import read_advice
from tests.test_cli import Outcome, assert_refused, near, run, table

OPTIONS = ["--key", "id", "--ncp", "2", "--seeds", "1,2"]
#: What may differ between two runs.
TIMES = {"advised_at", "duration_seconds"}


@pytest.fixture
def originals(tmp_path: Path) -> Path:
    path = tmp_path / "originals.csv"
    table().to_csv(path, index=False)
    return path


def left_behind(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_k_is_found_told_and_written_down(originals: Path, tmp_path: Path) -> None:
    files = ["--json", tmp_path / "advice.json", "--report", tmp_path / "advice.html", "--lang", "fr"]
    outcome = run("advise", originals, "--threshold", "5", *OPTIONS, *files, "--data-set", "a trial")
    assert outcome.code == 0, outcome.err
    entries = read_advice((tmp_path / "advice.json").read_bytes())
    alone = advise(table(), threshold=5, key="id", ncp=2, seeds=[1, 2])
    assert entries["k"] == alone.k
    assert [one["local_cloaking"] for one in entries["tried"]] == [one.local_cloaking for one in alone.tried]
    assert entries["inputs"]["originals"]["name"] == "originals.csv"
    assert entries["parameters"]["key"] == "id"
    lines = dict(line.split(None, 1) for line in outcome.out.splitlines() if line.strip())
    assert lines["k"].strip() in (str(alone.k), outcome.out.splitlines()[0].split(None, 1)[1])
    assert f"\nk               {alone.k}\n" in outcome.out
    page = (tmp_path / "advice.html").read_text()
    assert '<html lang="fr"' in page
    assert "a trial" in page
    assert f"k = {alone.k} atteint le seuil" in page
    # Nobody's key in any of it.
    assert not any(f'"{key}"' in json.dumps(entries) or f">{key}<" in page for key in table()["id"])


def test_the_same_command_writes_the_same(originals: Path, tmp_path: Path) -> None:
    written = []
    for name in ("one.json", "two.json"):
        run("advise", originals, "--threshold", "3", *OPTIONS, "--json", tmp_path / name)
        written.append(read_advice((tmp_path / name).read_bytes()))
    one, two = ({key: value for key, value in entries.items() if key not in TIMES} for entries in written)
    assert one == two


def test_none_is_exit_code_1_and_is_written_down(originals: Path, tmp_path: Path) -> None:
    outcome = run(
        "advise", originals, "--threshold", "50", "--margin", "2", "--k-max", "10", *OPTIONS,
        "--json", tmp_path / "a.json", "--report", tmp_path / "a.html",
    )  # fmt: skip
    assert outcome.code == 1
    assert "no k tried up to 10 reaches 52" in outcome.out
    assert read_advice((tmp_path / "a.json").read_bytes())["k"] is None
    assert "No k reaches the threshold" in (tmp_path / "a.html").read_text()


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (["--threshold", "0"], ["threshold"]),
        (["--threshold", "80"], ["80 individuals can reach 79 at most"]),
        (["--threshold", "5", "--margin", "-1"], ["margin"]),
        (["--threshold", "5", "--k-max", "80"], ["k is not"]),
        (["--threshold", "5", "--seeds", "1,1"], ["seeds"]),
        (["--threshold", "5", "--seeds", "x"], ["seed"]),
        (["--threshold", "5", "--drop", "absent"], ["absent"]),
        (["--threshold", "5", "--key", "absent"], ["absent"]),
        (["--threshold", "5", "--lang", "xx"], ["language"]),
        (["--threshold", "5", "--command", "make {k}"], ["{output}"]),
        (
            ["--threshold", "5", "--command", "/no/such/program {k} {output}"],
            ["cannot be started", "k = 5", "seed 1"],
        ),
    ],
    ids=str,
)
def test_refusals_write_nothing(originals: Path, tmp_path: Path, options: list[str], parts: list[str]) -> None:
    files = ["--json", tmp_path / "a.json", "--report", tmp_path / "a.html"]
    assert_refused(run("advise", originals, "--key", "id", "--ncp", "2", *files, *options), *parts)
    assert left_behind(tmp_path) == ["originals.csv"]


def test_no_file_is_written_over_another(originals: Path, tmp_path: Path) -> None:
    before = originals.read_bytes()
    assert_refused(run("advise", originals, "--threshold", "5", "--json", originals), "written over")
    same = ["--json", tmp_path / "same", "--report", tmp_path / "same"]
    assert_refused(run("advise", originals, "--threshold", "5", *same), "written over")
    assert_refused(run("advise", tmp_path / "absent.csv", "--threshold", "5"), "absent.csv")
    assert originals.read_bytes() == before


def test_a_page_that_cannot_be_drawn_leaves_no_json(
    originals: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from local_cloaking.audit import advice_report

    def broken(*_: Any, **__: Any) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(advice_report, "draw_advice", broken)
    files = ["--json", tmp_path / "a.json", "--report", tmp_path / "a.html"]
    assert_refused(run("advise", originals, "--threshold", "3", *OPTIONS, *files), "No space left")
    assert left_behind(tmp_path) == ["originals.csv"]


# Commands ------------------------------------------------------------------------------------------------------

NOISE = """
import sys, numpy as np, pandas as pd
source, k, seed, target = sys.argv[1:]
frame = pd.read_csv(source, dtype={"id": str})
numbers = frame.select_dtypes("number").columns
noise = np.random.default_rng(int(seed)).normal(scale=0.1 * int(k), size=(len(frame), len(numbers)))
frame[numbers] = frame[numbers] + noise
"""


def with_command(originals: Path, tmp_path: Path, end: str, *options: object) -> Outcome:
    script = tmp_path / "make.py"
    script.write_text(NOISE + end)
    line = f"{shlex.quote(sys.executable)} {shlex.quote(str(script))} {{originals}} {{k}} {{seed}} {{output}}"
    return run("advise", originals, *OPTIONS, "--command", line, *options)


def test_a_command_is_given_the_file_itself_and_writes_one_like_it(originals: Path, tmp_path: Path) -> None:
    end = "frame.sample(frac=1, random_state=1).to_csv(target, index=False); assert target.endswith('.csv')"
    outcome = with_command(originals, tmp_path, end, "--threshold", "2", "--k-min", "7", "--k-max", "7")
    assert outcome.code == 0, outcome.err
    assert "\nk               7\n" in outcome.out
    assert left_behind(tmp_path) == ["make.py", "originals.csv"]


@pytest.mark.parametrize(
    ("end", "parts"),
    [
        ("sys.exit(4)", ["ended with 4", "by hand"]),
        ("", ["wrote no avatars"]),
        ("open(target, 'w').write('half a line')", ["avatars.csv"]),
        ("frame.iloc[:-3].to_csv(target, index=False)", ["3"]),
        ("frame.assign(id=frame['id'].str[1:]).to_csv(target, index=False)", ["'id'"]),
        ("frame.drop(columns='arm').to_csv(target, index=False)", ["arm"]),
        ("frame.to_csv(source, index=False); frame.to_csv(target, index=False)", ["were changed"]),
    ],
)
def test_a_command_that_fails_or_writes_something_else(
    originals: Path, tmp_path: Path, end: str, parts: list[str]
) -> None:
    files = ["--json", tmp_path / "a.json", "--report", tmp_path / "a.html"]
    outcome = with_command(originals, tmp_path, end, "--threshold", "5", *files)
    assert_refused(outcome, "k = 5", "seed 1", *parts)
    assert left_behind(tmp_path) == ["make.py", "originals.csv"]


def test_what_a_command_prints_goes_to_standard_error(
    originals: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with_command(originals, tmp_path, "print('said aloud'); sys.exit(1)", "--threshold", "5")
    out, err = capfd.readouterr()
    assert "said aloud" in err
    assert "said aloud" not in out


# In the audit report -------------------------------------------------------------------------------------------


def test_the_report_of_a_check_shows_the_values_tried_on_the_same_originals(
    originals: Path, tmp_path: Path
) -> None:
    near(table()).to_csv(tmp_path / "avatars.csv", index=False)
    record, advice, page = tmp_path / "record.json", tmp_path / "advice.json", tmp_path / "report.html"
    run("measure", originals, tmp_path / "avatars.csv", "--key", "id", "--threshold", "60", "--json", record)
    run("advise", originals, "--threshold", "5", *OPTIONS, "--json", advice)
    assert run("report", record, "-o", page, "--advice", advice).code == 0
    text = page.read_text()
    assert "Values of k that were tried" in text
    assert run("report", record, "-o", page, "--advice", advice, "--lang", "fr").code == 0
    assert "Valeurs de k essayées" in page.read_text()
    other = {**json.loads(advice.read_text()), "inputs": {"originals": {"sha256": "0" * 64}}}
    advice.write_text(json.dumps(other))
    assert_refused(run("report", record, "-o", page, "--advice", advice), "other originals")
    assert_refused(run("report", record, "-o", page, "--advice", record), "not what `advise` writes")


def test_parquet_originals_too(tmp_path: Path) -> None:
    path = tmp_path / "originals.parquet"
    table().to_parquet(path)
    assert run("advise", path, "--threshold", "3", *OPTIONS).code == 0
    assert pd.read_parquet(path).equals(table())
