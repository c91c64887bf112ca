"""Records to draw reports from: ACTG 175 with k = 20, as measured, and what can go wrong with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from local_cloaking.audit.record import SCHEMA_VERSION, digest_of

#: Names as nobody should give them, and somebody will.
HOSTILE = (
    "<script>alert(1)</script>",
    '" onmouseover="alert(1)" x=\'',
    "it's & <b>bold</b> {{ 7 * 7 }} %(name)s",
    "العمر عند التشخيص \u202eabc",
    "x" * 200,
)

RUN = {
    "dag_id": "local_cloaking_demo",
    "run_id": "scheduled__2026-11-30T00:00:00+00:00",
    "task_id": "local_cloaking.measure",
    "map_index": 3,
    "try_number": 2,
}

SHUFFLED = (
    "the avatars look shuffled, or belong to other individuals: originals go with their avatars no better than by "
    "chance (z = 0.52), by a sample of 500 originals (if they are not, 2139 individuals are too few for so large "
    "a k)"
)


def group(levels: list[str | None], value: float, low: float, high: float, *, others: int = 0) -> dict[str, Any]:
    return {
        "levels": levels,
        "others": others,
        "individuals": 412,
        "local_cloaking": value,
        "share_without": {"at_least": low, "at_most": high},
    }


def column(name: str, *groups: dict[str, Any], withheld: str | None = None) -> dict[str, Any]:
    return {"column": name, "withheld": withheld, "groups": list(groups)}


def first_version() -> dict[str, Any]:
    """A record of version 1, as it was written."""
    path = Path(__file__).parent / "audit" / "record-1.json"
    return dict(json.loads(path.read_text()))


def record_of(**entries: Any) -> dict[str, Any]:
    """A record that passed, with other entries, and the digest that belongs to it."""
    record = {
        **first_version(),
        "schema_version": SCHEMA_VERSION,
        "warn_below": None,
        "warning": False,
        "max_drop": None,
        "previous": None,
        "parameters": {
            "ncp": 5,
            "key": None,
            "categorical": ["gender", "race"],
            "drop": ["pidnum"],
            "separator": None,
            "decimal": None,
            "encoding": None,
            "groups": ["gender", "arms", "race", "str2"],
            "min_group_size": 10,
        },
        "ladder": {
            "individuals": 2139,
            "rungs": [
                {"ncp": place, "local_cloaking": value}
                for place, value in enumerate(
                    [61.0, 24.0, 14.5, None, 10.0, 11.0, 12.0, 16.0, 19.0, 27.0], start=1
                )
            ],
        },
        "groups": {
            "min_group_size": 10,
            "columns": [
                column("gender", group(["0"], 9.0, 5.0, 10.0), group(["1"], 11.0, 5.0, 10.0)),
                column("arms", group(["0", None], 3.5, 0.0, 7.5, others=4), group(["1"], 12.0, 95.0, 100.0)),
                column("race", withheld="with_others"),
                column("str2", withheld="too_few"),
            ],
        },
        **entries,
    }
    return {**record, "digest": digest_of(record)}


def below_threshold(**entries: Any) -> dict[str, Any]:
    return record_of(
        **{
            "verdict": "below_threshold",
            "threshold": 15.0,
            "reason": "Local Cloaking 10 is below the threshold 15",
            "remedy": "raise k, the number of neighbours that an avatar draws on (now 20), and avatarise again",
            "warnings": [
                "both tables are sorted by column 'age', and paired by row order: were they sorted apart?"
            ],
            "run": RUN,
            "judged": {"at": "2026-11-30T08:09:05+01:00", "run": {**RUN, "task_id": "local_cloaking.check"}},
            **entries,
        }
    )


def shuffled(**entries: Any) -> dict[str, Any]:
    """Told by a sample: nothing more was counted."""
    return record_of(
        **{
            "verdict": "not_assessable",
            "reason": SHUFFLED,
            "unreliable_because": SHUFFLED,
            "remedy": "mend what the reason names (too few individuals: take more, or a lower threshold), and "
            "measure again",
            "local_cloaking": None,
            "strict_median": None,
            "hidden_rate": None,
            "local_cloaking_without_filled": None,
            "distribution": {"count": [], "individuals": []},
            "expectations": [],
            "pairing_evidence": {"association": 0.52, "far_share": 0.5, "median_share": 0.5, "sample": 500},
            "ladder": None,
            "groups": None,
            **entries,
        }
    )


def without_threshold(**entries: Any) -> dict[str, Any]:
    return record_of(
        verdict=None, threshold=None, threshold_set_by=None, expectations=[], data_set=None, **entries
    )


def hostile() -> dict[str, Any]:
    """A record in which every free text is one of `HOSTILE`."""
    plain = below_threshold()
    script, quote, markup, arabic, long = HOSTILE
    groups = {
        "min_group_size": 10,
        "columns": [
            column(script, group([long, arabic], 2.0, 0.0, 5.0), group([quote, markup], 9.0, 0.0, 5.0)),
            column(long, withheld="too_few"),
        ],
    }
    return below_threshold(
        columns=[{**one, "name": name} for one, name in zip(plain["columns"], HOSTILE, strict=False)],
        parameters={**plain["parameters"], "categorical": list(HOSTILE), "drop": [long]},
        groups=groups,
        data_set=f"{script} {arabic}",
        threshold_set_by=quote,
        pairing=f"key {long!r}",
        carried_over={"columns": list(HOSTILE), "median_peers": 3.0},
        warnings=[f"column {name!r} was left out" for name in HOSTILE],
        inputs={name: {**entry, "name": long} for name, entry in plain["inputs"].items()},
        run={**RUN, "dag_id": markup, "run_id": long, "task_id": script},
        versions={**plain["versions"], markup: script},
    )
