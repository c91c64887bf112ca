"""The scripts that print figures, loaded as modules."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent

#: What no script that repeats trials takes.
WRONG_OPTIONS = [["--repeats", "0"], ["--repeats", "many"], ["--seed", "x"], ["--other"]]


@contextmanager
def loaded(name: str) -> Iterator[ModuleType]:
    """Load a script for a while, under its own name, by which dataclasses look their module up."""
    folder = ROOT / "scripts"
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        # As Python does for a script: what lies beside it can be imported, here for no longer than that.
        patch.syspath_prepend(folder)
        patch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        for beside in {path.stem for path in folder.glob("*.py")} - {name}:
            sys.modules.pop(beside, None)
        yield module


def assert_refused(script: ModuleType, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        script.main(arguments)
    assert end.value.code == 2
    assert "usage" in capsys.readouterr().err
