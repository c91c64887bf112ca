"""Importing the package is quick, and gives every public name."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module

import pytest

import local_cloaking

HEAVY = ("pandas", "numpy", "scipy", "sklearn", "pyarrow", "great_expectations", "airflow", "matplotlib")


def in_a_new_process(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_loads_none_of_the_large_packages() -> None:
    loaded = in_a_new_process(
        f"import local_cloaking, sys; print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    assert loaded == "[]"
    # The same question finds them once a name is used.
    loaded = in_a_new_process(
        "import sys\n"
        "from local_cloaking import closer_avatar_counts\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    assert loaded == "['numpy']"


def test_what_the_api_server_loads_of_the_store_measures_nothing() -> None:
    for module, allowed in (
        ("audit.index", ()),
        ("audit.store", ()),
        ("audit.report", ("pandas", "numpy", "pyarrow")),
    ):
        code = f"import local_cloaking.{module}, sys; print([name for name in {HEAVY!r} if name in sys.modules])"
        loaded = set(ast.literal_eval(in_a_new_process(code)))
        assert loaded <= set(allowed), module


def test_measure_needs_neither_airflow_nor_great_expectations() -> None:
    code = (
        "import sys\n"
        "sys.modules.update(airflow=None, great_expectations=None)\n"
        "import pandas as pd\n"
        "from local_cloaking import avatarise, local_cloaking\n"
        "table = pd.DataFrame({'a': [float(i * i % 17) for i in range(40)], 'b': [float(i) for i in range(40)]})\n"
        "print(local_cloaking(table, avatarise(table, k=5, ncp=2, seed=0), ncp=2).n)"
    )
    assert in_a_new_process(code) == "40"


@pytest.mark.parametrize("name", local_cloaking.__all__)
def test_public_name_resolves(name: str) -> None:
    value = getattr(local_cloaking, name)
    assert value.__name__ == name
    assert value.__module__.startswith("local_cloaking.")
    assert value.__doc__
    assert name in dir(local_cloaking)


@pytest.mark.parametrize(
    "name",
    [
        "FAMD",
        "InputError",
        "LocalCloaking",
        "LocalCloakingError",
        "avatarise",
        "closer_avatar_counts",
        "local_cloaking",
        "local_cloaking_suite",
    ],
)
def test_name_that_others_rely_on_is_public(name: str) -> None:
    assert name in local_cloaking.__all__


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = local_cloaking.nothing


@pytest.mark.parametrize(
    "first",
    [
        "",
        "import local_cloaking.avatarisation",
        "from local_cloaking import avatarisation, metric, gate, projection",
    ],
)
def test_public_name_is_the_function_whatever_was_imported_before(first: str) -> None:
    code = (
        f"{first}\n"
        "from local_cloaking import avatarise, local_cloaking, FAMD, local_cloaking_suite\n"
        "print([value.__name__ for value in (avatarise, local_cloaking, FAMD, local_cloaking_suite)])"
    )
    assert in_a_new_process(code) == "['avatarise', 'local_cloaking', 'FAMD', 'local_cloaking_suite']"


def test_public_function_stays_one_when_its_module_is_imported_afterwards() -> None:
    code = (
        "import local_cloaking\n"
        "local_cloaking.avatarise, local_cloaking.local_cloaking\n"
        "import local_cloaking.avatarisation, local_cloaking.metric\n"
        "print(local_cloaking.avatarise.__name__, local_cloaking.local_cloaking.__name__)"
    )
    assert in_a_new_process(code) == "avatarise local_cloaking"


def test_no_public_name_is_also_a_module() -> None:
    # A module would take the name's place as soon as anything imports it.
    for name in local_cloaking.__all__:
        with pytest.raises(ModuleNotFoundError):
            import_module(f"local_cloaking.{name}")


def test_all_errors_derive_from_one() -> None:
    from local_cloaking.audit.evidence import EvidenceError
    from local_cloaking.audit.record import RecordError
    from local_cloaking.audit.store import EvidenceExistsError
    from local_cloaking.gate import GateError

    for error in (local_cloaking.InputError, GateError, EvidenceError, EvidenceExistsError, RecordError):
        assert issubclass(error, local_cloaking.LocalCloakingError)
