"""Records of each schema version, as they were written, can be read for ever."""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner

from local_cloaking.audit.consistency import read_record
from local_cloaking.audit.record import SCHEMA_VERSION, RecordError, passed_record, verdict_again
from local_cloaking.audit.report import draw_report
from local_cloaking.cli import app

#: What was written once. A file here is never made again; a new schema version gets a new one, of a pass.
KEPT = {
    1: "df5c2bfff465e73834fc89160080d49346d6caea5fae4686d3172726f5123e81",
    2: "bca053fdd2fcc2789b62ec43cb74802c2f15ea3c6f4652ca87f354071d45302f",
}
FOLDER = Path(__file__).parent


def kept(version: int) -> bytes:
    return (FOLDER / f"record-{version}.json").read_bytes()


def test_a_record_of_every_version_before_this_one_is_kept() -> None:
    # The current version's, too, once it is released.
    assert set(range(1, SCHEMA_VERSION)) <= set(KEPT)
    assert {path.name for path in FOLDER.glob("record-*.json")} == {f"record-{version}.json" for version in KEPT}


@pytest.mark.parametrize("version", KEPT)
class TestKept:
    def test_it_is_as_it_was_written(self, version: int) -> None:
        assert hashlib.sha256(kept(version)).hexdigest() == KEPT[version]
        assert json.loads(kept(version))["schema_version"] == version

    def test_it_keeps_to_the_schema_of_its_time(self, version: int) -> None:
        older = version < SCHEMA_VERSION
        name = f"record-{version}.schema.json" if older else "record.schema.json"
        schema = json.loads((files("local_cloaking.audit") / name).read_text())
        jsonschema.validate(json.loads(kept(version)), schema, cls=jsonschema.Draft202012Validator)

    def test_it_verifies_against_itself(self, version: int) -> None:
        path = FOLDER / f"record-{version}.json"
        said = CliRunner().invoke(app, ["verify", str(path), "--sha256", KEPT[version]])
        assert said.exit_code == 0, said.output

    def test_its_verdict_can_be_computed_again(self, version: int) -> None:
        record = read_record(kept(version))
        assert verdict_again(record) == record["verdict"] == "passed"

    def test_it_lets_its_avatars_leave(self, version: int) -> None:
        assert passed_record(kept(version), KEPT[version])["verdict"] == "passed"

    @pytest.mark.parametrize(("language", "word"), [("en", "Threshold"), ("fr", "Seuil")])
    def test_it_is_drawn(self, version: int, language: str, word: str) -> None:
        report = draw_report(read_record(kept(version)), language=language).decode()
        assert f'<html lang="{language}"' in report
        assert word in report

    def test_a_change_of_it_is_found(self, version: int) -> None:
        changed = json.dumps({**json.loads(kept(version)), "threshold": 1.0}).encode()
        with pytest.raises(RecordError):
            passed_record(changed, hashlib.sha256(changed).hexdigest())


def test_a_record_of_a_later_version_is_refused_and_says_so() -> None:
    later = json.dumps({**json.loads(kept(2)), "schema_version": SCHEMA_VERSION + 1}).encode()
    with pytest.raises(RecordError, match="version"):
        read_record(later)
