"""What `advise` found, as the JSON object that is written down: each k that was tried, and nothing of anyone.

Its schema is ``advice.schema.json`` beside this file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from local_cloaking.audit.record import versions
from local_cloaking.errors import InputError

# What measures is loaded where a search is written down or taken up, not where a report is drawn.
if TYPE_CHECKING:
    from local_cloaking.advice import Advice
    from local_cloaking.trying import TriedK

SCHEMA = "local-cloaking/advice"
SCHEMA_VERSION = 1

#: What is known only where files are read, or a DAG runs.
_CONTEXT: Mapping[str, Any] = {
    "data_set": None,
    "parameters": None,
    "inputs": {},
    "advised_at": None,
    "duration_seconds": None,
    "run": None,
}


def advice_entries(advice: Advice, context: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return what was found as plain JSON values.

    Parameters
    ----------
    advice
        What was found.
    context
        Entries that the caller knows: ``data_set``, ``parameters``, ``inputs``, ``advised_at``,
        ``duration_seconds``, ``run``.

    Examples
    --------
    >>> import pandas as pd
    >>> from local_cloaking import advise
    >>> table = pd.DataFrame({"age": [i * 37 % 101 for i in range(100)], "dose": [i * i % 89 for i in range(100)]})
    >>> entries = advice_entries(advise(table, threshold=60, ncp=2, k_max=10, seeds=[1]))
    >>> [(tried["k"], tried["reaches"]) for tried in entries["tried"]]
    [(5, False), (10, False)]
    """
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "k": advice.k,
        "reason": advice.reason,
        "warnings": list(advice.warnings),
        **advice.aim.arguments,
        "n": advice.n,
        "avatarisation": advice.avatarisation,
        "tried": [tried_entries(tried) for tried in advice.tried],
        "versions": versions(),
        **_CONTEXT,
        **(context or {}),
    }


def tried_entries(tried: TriedK) -> dict[str, Any]:
    """Return one k that was tried as plain JSON values."""
    return {
        "k": tried.k,
        "reaches": tried.reaches,
        "local_cloaking": tried.local_cloaking,
        "hidden_rate": tried.hidden_rate,
        "moved": tried.moved,
        "reason": tried.reason,
        "trials": [
            {
                "seed": trial.seed,
                "reaches": trial.reaches,
                "local_cloaking": trial.local_cloaking,
                "hidden_rate": trial.hidden_rate,
                "utility": {
                    "means": trial.utility.means,
                    "spreads": trial.utility.spreads,
                    "correlations": trial.utility.correlations,
                    "overall": trial.utility.overall,
                },
                "reason": trial.reason,
                "warnings": list(trial.warnings),
            }
            for trial in tried.trials
        ],
    }


def tried_of(entries: Mapping[str, Any]) -> TriedK:
    """Return the k that `tried_entries` wrote down.

    Examples
    --------
    >>> tried_of({"k": 5, "trials": []})
    TriedK(k=5, trials=())
    """
    from local_cloaking.trying import Trial, TriedK
    from local_cloaking.utility import Shift

    return TriedK(
        entries["k"],
        tuple(
            Trial(
                seed=trial["seed"],
                local_cloaking=trial["local_cloaking"],
                hidden_rate=trial["hidden_rate"],
                utility=Shift(*(trial["utility"][part] for part in ("means", "spreads", "correlations"))),
                reason=trial["reason"],
                reaches=trial["reaches"],
                warnings=tuple(trial["warnings"]),
            )
            for trial in entries["trials"]
        ),
    )


def read_advice(content: bytes) -> dict[str, Any]:
    """Read the file that `advise` wrote.

    Raises
    ------
    InputError
        If it is not one, or not as the schema says.

    Examples
    --------
    >>> read_advice(b"{}")
    Traceback (most recent call last):
    ...
    local_cloaking.errors.InputError: this is not what `advise` writes; give the JSON file of `advise --json`
    """
    try:
        entries = json.loads(content)
    except (ValueError, RecursionError):
        entries = None
    if not _validator().is_valid(entries):
        raise InputError("this is not what `advise` writes", remedy="give the JSON file of `advise --json`")
    return dict(entries)


@cache
def _validator() -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(json.loads((files("local_cloaking.audit") / "advice.schema.json").read_text()))
