"""Without numba, or where numba cannot work, the other methods count."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import sys
{before}
import numpy as np
from local_cloaking.neighbours import _suitable_method, closer_avatar_counts
rng = np.random.default_rng(1)
x = rng.normal(size=(20_000, 3))
closer_avatar_counts(x, x + 0.01)
print(_suitable_method(20_000, 3, few_places=False))
"""


@pytest.mark.parametrize(
    "before",
    [
        "sys.modules['numba'] = None",
        # As numba says where no folder can be written.
        "import types; broken = types.ModuleType('numba')\n"
        "def njit(**options):\n"
        "    raise RuntimeError('cannot cache function: no locator available')\n"
        "broken.njit = njit; sys.modules['numba'] = broken",
    ],
    ids=["not installed", "nowhere to keep what it compiles"],
)
def test_the_other_methods_count(before: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(before=before)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["tree"]
