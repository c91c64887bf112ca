"""What a measure refuses: each kind of wrong input, with planted values where the fault lies."""

from __future__ import annotations

from typing import Any

import pandas as pd

#: Files in the place of the avatars.
WRONG_FILES = (
    *("unseen.csv", "stray.csv", "infinite.csv", "twice.csv", "keyless.csv", "fewer.csv", "strangers.csv"),
    *("columns.csv", "names.csv", "too-large.csv", "ragged.csv", "quoted.csv", "two-dates.csv", "no-date.csv"),
    *("empty.csv", "header.csv", "not-utf8.csv", "damaged.parquet", "cut.parquet", "nested.parquet"),
    "absent.csv",
)


def refusals(data: str) -> dict[str, dict[str, Any]]:
    """Return arguments of a measure that it refuses, by a name for each.

    Parameters
    ----------
    data
        The folder of `local_cloaking`'s planted tables.
    """
    from local_cloaking import SqlTable

    both = {"originals": f"{data}/originals.csv", "avatars": f"{data}/avatars.csv"}
    keyed = {**both, "key": "file", "ncp": 3, "drop": ["mail"]}
    patients = "sql://registry/patients"
    return {
        **{name.replace(".", "_"): {**keyed, "avatars": f"{data}/{name}"} for name in WRONG_FILES},
        "mail": {**both, "key": "file"},
        "projection": {**keyed, "projection": f"{data}/projection.json"},
        "table_as_projection": {**keyed, "projection": f"{data}/avatars.csv"},
        "coordinates": {**keyed, "original_coordinates": both["originals"], "avatar_coordinates": both["avatars"]},
        "pairing": {**both, "ncp": 3, "drop": ["mail"], "pairing": both["originals"]},
        "strange_pairing": {**both, "ncp": 3, "drop": ["mail"], "pairing": f"{data}/pairing.csv"},
        "declared": {**keyed, "categorical": ["dose", "pay", "weight"]},
        "by_another_key": {**both, "key": "work", "ncp": 3},
        "no_such_column": {**both, "key": "file", "drop": ["mail", "none"]},
        "separator": {**keyed, "separator": ";"},
        "decimal": {**keyed, "decimal": ","},
        "encoding": {**keyed, "encoding": "ascii"},
        "groups": {**keyed, "groups": ["work", "town"], "min_group_size": 2},
        "cell_of_database": {**keyed, "originals": patients, "avatars": "sql://registry/wrong"},
        "query": {**keyed, "originals": SqlTable(conn_id="registry", sql="SELECT nothing FROM patients")},
        "no_server": {**keyed, "originals": "sql://warehouse/patients"},
        "frame": {
            **keyed,
            "originals": pd.read_csv(f"{data}/originals.csv"),
            "avatars": pd.read_csv(f"{data}/unseen.csv"),
        },
        "no_cluster": {**keyed, "dask_scheduler": "tcp://127.0.0.1:9"},
    }
