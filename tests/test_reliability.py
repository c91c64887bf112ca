"""The README's reliability table is what the tests counted."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests import reliability
from tests.scripts import loaded


@pytest.fixture
def noted(tmp_path, monkeypatch):
    monkeypatch.setattr(reliability, "FOLDER", tmp_path / "figures")
    reliability.note_figures("faults-local", injected=1000, survived=1000)
    reliability.note_figures("faults-storage", injected=234, survived=234)
    reliability.note_figures("fuzz-csv", inputs=100_000, findings=0)
    reliability.note_figures("soak-gates", at_once=110, verdicts=110)
    reliability.note_figures("soak-scheduler", runs_in_a_row=200)
    reliability.note_figures("soak-process", runs_in_a_row=200)
    reliability.note_figures("secrecy", planted=41, found=0, places_searched=12)
    return tmp_path / "figures"


def test_the_figures_of_all_tests_of_a_kind_are_added_up_and_put_into_the_page(noted, tmp_path, capsys):
    page = tmp_path / "README.md"
    with loaded("reliability") as script:
        page.write_text(f"before\n{script.BEGIN}\nold\n{script.END}\nafter\n")
        assert script.main(["--figures", str(noted), "--readme", str(page)]) == 0
        written = page.read_text()
        assert capsys.readouterr().out.strip() in written
        assert script.main(["--figures", str(noted), "--readme", str(page)]) == 0
    assert page.read_text() == written
    assert "a run | 1,234 | 1,234 ended in" in written
    assert "random | 100,000 | 0 ended in" in written
    assert "old" not in written
    assert written.startswith("before\n")
    assert written.endswith("after\n")


def test_a_table_that_lacks_a_row_is_not_written(noted, tmp_path, capsys):
    (noted / "fuzz-csv.json").unlink()
    page = tmp_path / "README.md"
    page.write_text("kept")
    with loaded("reliability") as script:
        assert script.main(["--figures", str(noted), "--readme", str(page)]) == 1
    assert page.read_text() == "kept"
    assert "no figures of 'fuzz*'" in capsys.readouterr().err


@pytest.mark.parametrize(("code", "hangs"), [("import time; time.sleep(60)", True), ("pass", False)])
def test_a_fuzzed_input_that_only_waits_is_a_hang(tmp_path, monkeypatch, code, hangs):
    from tests.fuzz import __main__ as fuzz

    monkeypatch.setattr(fuzz, "HANG_SECONDS", 1.0 if hangs else 300.0)
    with subprocess.Popen([sys.executable, "-c", code]) as child:
        assert fuzz._hangs(child, tmp_path / "current") is hangs
