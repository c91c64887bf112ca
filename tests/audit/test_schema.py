"""Every record keeps to its published schema."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from local_cloaking import avatarise
from local_cloaking.cli import app

SCHEMA = json.loads((files("local_cloaking.audit") / "record.schema.json").read_text())


def test_the_schema_is_one_and_describes_every_entry():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert [name for name, entry in SCHEMA["properties"].items() if not entry.get("description")] == []


def test_the_page_on_the_record_names_every_entry():
    page = (Path(__file__).resolve().parents[2] / "docs" / "record.md").read_text()
    assert [name for name in SCHEMA["properties"] if f"`{name}`" not in page] == []


@pytest.mark.parametrize(
    ("shuffled", "options", "verdict"),
    [
        (False, ["--threshold", "1"], "passed"),
        (False, ["--threshold", "50"], "below_threshold"),
        (False, [], None),
        (True, ["--threshold", "1", "--threshold-set-by", "the committee", "--k", "9"], "not_assessable"),
    ],
)
def test_records_of_every_verdict_keep_to_it(tmp_path, shuffled, options, verdict):
    rng = np.random.default_rng(3)
    originals = pd.DataFrame(rng.normal(size=(300, 4)), columns=list("abcd"))
    originals["e"] = np.where(rng.random(300) < 0.1, None, rng.choice(["x", "y"], 300))
    avatars = avatarise(originals, k=20, ncp=2, seed=1)
    if shuffled:
        avatars = avatars.sample(frac=1, random_state=1)
    originals.to_csv(tmp_path / "o.csv", index=False)
    avatars.to_parquet(tmp_path / "a.parquet", index=False)
    record = tmp_path / "record.json"
    arguments = [
        "measure",
        str(tmp_path / "o.csv"),
        str(tmp_path / "a.parquet"),
        "--ncp",
        "2",
        "--json",
        str(record),
    ]
    result = CliRunner().invoke(app, [*arguments, *options])
    assert result.exit_code == (0 if verdict in ("passed", None) else 1), result.output
    content = json.loads(record.read_text())
    assert content["verdict"] == verdict
    jsonschema.validate(content, SCHEMA, cls=jsonschema.Draft202012Validator)
    assert list(SCHEMA["required"]) == list(SCHEMA["properties"])


def test_an_entry_that_the_schema_does_not_know_is_found():
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"schema": "local-cloaking/record", "name": "x"}, SCHEMA)
