"""What Airflow sees: operators, the gate, the guard of a publishing task, and the notifier.

The names load on first use; the operators themselves pull in nothing heavy before ``execute``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from local_cloaking.airflow.advice import local_cloaking_advice
    from local_cloaking.airflow.gate import local_cloaking_gate
    from local_cloaking.airflow.guard import require_passed
    from local_cloaking.airflow.notifier import LocalCloakingNotifier
    from local_cloaking.airflow.operators.avatarise import AvatariseOperator
    from local_cloaking.airflow.operators.check import LocalCloakingCheckOperator
    from local_cloaking.airflow.operators.measure import LocalCloakingOperator
    from local_cloaking.sources import SqlTable

_HOMES = {
    "AvatariseOperator": ".operators.avatarise",
    "LocalCloakingCheckOperator": ".operators.check",
    "LocalCloakingNotifier": ".notifier",
    "LocalCloakingOperator": ".operators.measure",
    # Of another room; a DAG's file needs it beside those.
    "SqlTable": "..sources",
    "local_cloaking_advice": ".advice",
    "local_cloaking_gate": ".gate",
    "require_passed": ".guard",
}

__all__ = [
    "AvatariseOperator",
    "LocalCloakingCheckOperator",
    "LocalCloakingNotifier",
    "LocalCloakingOperator",
    "SqlTable",
    "local_cloaking_advice",
    "local_cloaking_gate",
    "require_passed",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name], __name__), name)
    globals()[name] = value
    return value
