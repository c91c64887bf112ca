"""Local Cloaking: how well avatars hide the individuals they were made from.

The names load on first use, so that ``import local_cloaking`` is quick and needs neither Airflow nor Great
Expectations.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from local_cloaking.advice import Advice, advise
    from local_cloaking.avatarisation import avatarise, avatarise_in_space
    from local_cloaking.errors import InputError, LocalCloakingError
    from local_cloaking.gate import local_cloaking_suite
    from local_cloaking.metric import LocalCloaking, local_cloaking
    from local_cloaking.neighbours import closer_avatar_counts
    from local_cloaking.projection import FAMD
    from local_cloaking.sources import SqlTable

__version__ = "0.1.0"

_HOMES = {
    "Advice": "advice",
    "FAMD": "projection",
    "InputError": "errors",
    "LocalCloaking": "metric",
    "LocalCloakingError": "errors",
    "advise": "advice",
    "SqlTable": "sources",
    "avatarise": "avatarisation",
    "avatarise_in_space": "avatarisation",
    "closer_avatar_counts": "neighbours",
    "local_cloaking": "metric",
    "local_cloaking_suite": "gate",
}

__all__ = [
    "FAMD",
    "Advice",
    "InputError",
    "LocalCloaking",
    "LocalCloakingError",
    "SqlTable",
    "advise",
    "avatarise",
    "avatarise_in_space",
    "closer_avatar_counts",
    "local_cloaking",
    "local_cloaking_suite",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
