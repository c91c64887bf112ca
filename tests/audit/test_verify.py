"""Verifying a record: against itself, against the hash told elsewhere, against the files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from local_cloaking import avatarise_in_space
from local_cloaking.audit.consistency import read_record
from local_cloaking.audit.record import RecordError, digest_of, to_bytes
from local_cloaking.cli import app

VERSION_1 = Path(__file__).parent / "record-1.json"


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Originals and avatars with a key, their projection, and the record of a pass."""
    folder = tmp_path_factory.mktemp("measured")
    rng = np.random.default_rng(4)
    z = rng.normal(size=(300, 3))
    originals = pd.DataFrame(
        {
            "id": [f"{i:04d}" for i in range(300)],
            "âge": z[:, 0],
            "dose": z[:, 0] + z[:, 1],
            "arm": np.where(z[:, 2] > 0, "new", "old"),
            "site": rng.integers(1, 4, 300),
        }
    )
    made = avatarise_in_space(originals, k=20, ncp=3, seed=0, key="id", categorical=["site"])
    originals.to_csv(folder / "originals.csv", index=False, sep=";", decimal=",")
    made.avatars.to_csv(folder / "avatars.csv", index=False, sep=";", decimal=",")
    (folder / "projection.json").write_text(made.projection.to_json())
    result = run(
        "measure", folder / "originals.csv", folder / "avatars.csv", "--projection", folder / "projection.json",
        "--key", "id", "--categorical", "site", "--groups", "arm,site", "--k", 20, "--threshold", 2,
        "--threshold-set-by", "the committee", "--data-set", "trial", "--json", folder / "record.json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    return folder


def record_in(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "record.json").read_text()))


def files_of(folder: Path, **others: Path) -> list[Any]:
    files = {
        "originals": folder / "originals.csv",
        "avatars": folder / "avatars.csv",
        "projection": folder / "projection.json",
        **others,
    }
    return [part for name, file in files.items() for part in (f"--{name}", file)]


def signed_anew(record: dict[str, Any], **entries: Any) -> dict[str, Any]:
    changed = {**record, **entries}
    return {**changed, "digest": digest_of(changed)}


def written(tmp_path: Path, record: dict[str, Any]) -> Path:
    path = tmp_path / "record.json"
    path.write_bytes(to_bytes(record))
    return path


def test_a_record_agrees_with_itself_and_says_that_the_files_were_not_looked_at(folder):
    sha256 = hashlib.sha256((folder / "record.json").read_bytes()).hexdigest()
    result = run("verify", folder / "record.json", "--sha256", sha256)
    assert result.exit_code == 0, result.output
    assert "DIFFERS" not in result.output
    assert "the files were not looked at" in result.output


def test_a_record_agrees_with_its_files(folder):
    result = run("verify", folder / "record.json", *files_of(folder))
    assert result.exit_code == 0, result.output
    looked_at = {line.removeprefix("agrees ").strip() for line in result.output.splitlines()}
    assert {"SHA-256 of the originals", "distribution", "groups", "ladder", "expectations"} <= looked_at
    assert result.output.splitlines()[-1].startswith("the record agrees with itself and with the files;")


def test_a_copy_under_another_name_is_as_good(folder, tmp_path):
    copied = tmp_path / "copy.csv"
    copied.write_bytes((folder / "avatars.csv").read_bytes())
    assert run("verify", folder / "record.json", *files_of(folder, avatars=copied)).exit_code == 0


ENTRIES = {*json.loads(VERSION_1.read_text()), "ladder", "groups", "parameters"}


# Of another schema or version, it is no such record: see below.
@pytest.mark.parametrize("name", sorted(ENTRIES - {"schema", "schema_version"}))
def test_an_edit_of_any_entry_is_found_by_the_digest(folder, tmp_path, name):
    record = record_in(folder)
    edited = {**record, name: "edited" if name == "digest" else [record[name]]}
    result = run("verify", written(tmp_path, edited))
    assert result.exit_code == 1, result.output
    assert "DIFFERS  digest" in result.output
    assert "agrees with itself" not in result.output


@pytest.mark.parametrize(
    ("entries", "found"),
    [
        ({"verdict": "below_threshold"}, "verdict, from the distribution"),
        ({"threshold": 10_000.0}, "verdict, from the distribution"),
        ({"unreliable_because": "a reason"}, "verdict, from the distribution"),
        ({"local_cloaking": 99.0}, "Local Cloaking, from the distribution"),
        ({"n": 301}, "individuals"),
        ({"local_cloaking": None}, "figures"),
        ({"strict_median": 100.0}, "strict median"),
        ({"hidden_rate": 200.0}, "schema"),
        ({"hidden_rate": 99.99}, "hidden rate"),
        ({"reason": "a reason"}, "nothing against a pass"),
        ({"expectations": []}, "Great Expectations results"),
        ({"warnings": "none"}, "schema"),
        ({"more": 1}, "schema"),
        ({"distribution": {"count": [10, 10], "individuals": [100, 200]}}, "figures and verdict"),
    ],
)
def test_an_edit_with_a_new_digest_is_found_where_the_record_contradicts_itself(folder, tmp_path, entries, found):
    result = run("verify", written(tmp_path, signed_anew(record_in(folder), **entries)))
    assert result.exit_code == 1
    assert f"DIFFERS  {found}" in result.output
    assert "agrees   digest" in result.output


def test_an_edit_that_agrees_with_itself_is_found_by_the_hash_told_elsewhere(folder, tmp_path):
    sha256 = hashlib.sha256((folder / "record.json").read_bytes()).hexdigest()
    edited = written(tmp_path, signed_anew(record_in(folder), threshold_set_by="somebody else"))
    assert run("verify", edited).exit_code == 0
    result = run("verify", edited, "--sha256", sha256)
    assert result.exit_code == 1
    assert "DIFFERS  SHA-256 of the record" in result.output


@pytest.mark.parametrize(
    "entries",
    [{"warnings": []}, {"strict_median": 0.0}, {"columns": []}, {"ladder": None}, {"groups": None}],
)
def test_an_edit_that_agrees_with_itself_is_found_by_the_files(folder, tmp_path, entries):
    edited = written(tmp_path, signed_anew(record_in(folder), **entries))
    result = run("verify", edited, *files_of(folder))
    assert result.exit_code == 1
    (name,) = entries
    assert f"DIFFERS  {name.replace('_', ' ')}: the record says" in result.output


def test_other_avatars_are_found_and_what_differs_is_told(folder, tmp_path):
    other = pd.read_csv(folder / "avatars.csv", sep=";", decimal=",", dtype={"id": str})
    other["dose"] += 1.0
    other.to_csv(tmp_path / "avatars.csv", index=False, sep=";", decimal=",")
    result = run("verify", folder / "record.json", *files_of(folder, avatars=tmp_path / "avatars.csv"))
    assert result.exit_code == 1
    assert "DIFFERS  SHA-256 of the avatars" in result.output
    assert "DIFFERS  distribution" in result.output


def test_files_that_cannot_be_measured_are_a_difference(folder, tmp_path):
    fewer = (folder / "avatars.csv").read_bytes().splitlines(keepends=True)[:-1]
    (tmp_path / "avatars.csv").write_bytes(b"".join(fewer))
    result = run("verify", folder / "record.json", *files_of(folder, avatars=tmp_path / "avatars.csv"))
    assert result.exit_code == 1
    assert "DIFFERS  measured again: refused" in result.output


def test_all_the_files_that_the_record_names_are_asked_for(folder):
    only_one = run("verify", folder / "record.json", "--originals", folder / "originals.csv")
    assert only_one.exit_code == 2
    assert "both --originals and --avatars" in only_one.output
    without = run("verify", folder / "record.json", *files_of(folder)[:4])
    assert without.exit_code == 2
    assert "the record was measured with the file `projection`" in without.output
    more = run("verify", folder / "record.json", *files_of(folder), "--pairing", folder / "avatars.csv")
    assert more.exit_code == 2
    assert "the record was not measured with the file `pairing`" in more.output


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff\xfe", b'{"schema": "other"}', b"[" * 100_000])
def test_what_is_no_record_is_refused(tmp_path, content):
    path = tmp_path / "record.json"
    path.write_bytes(content)
    result = run("verify", path)
    assert result.exit_code == 2
    assert result.output == "refused: this is no record of a Local Cloaking check\n"


@pytest.mark.parametrize("version", [0, 3, True, "2", None])
def test_a_later_version_is_refused(folder, version):
    with pytest.raises(RecordError, match="up to schema version 2"):
        read_record(to_bytes(signed_anew(record_in(folder), schema_version=version)))


def test_a_record_without_an_entry_is_damaged_and_not_measured_again(folder, tmp_path):
    record = record_in(folder)
    del record["distribution"]
    result = run("verify", written(tmp_path, record), *files_of(folder))
    assert result.exit_code == 1
    assert "DIFFERS  figures and verdict: an entry is missing or damaged" in result.output
    assert "DIFFERS  measured again: not, as the record is damaged" in result.output


def test_what_somebody_chose_is_told_and_never_said_to_agree(folder, tmp_path):
    """A lower threshold, with all that follows from it, makes a record that nothing but its hash contradicts."""
    record = record_in(folder)
    forged = signed_anew(
        record,
        threshold=1.0,
        threshold_set_by="the authority",
        k=40,
        expectations=[
            {**entry, "bounds": {"min_value": 1.0}} if "median" in entry["type"] else entry
            for entry in record["expectations"]
        ],
    )
    result = run("verify", written(tmp_path, forged), *files_of(folder))
    assert "agrees   threshold" not in result.output
    assert "to know  threshold: 1.0, as the record says" in result.output
    assert "compare --sha256" in result.output.splitlines()[-1]
    told = hashlib.sha256((folder / "record.json").read_bytes()).hexdigest()
    assert run("verify", written(tmp_path, forged), *files_of(folder), "--sha256", told).exit_code == 1


def test_a_record_of_version_1_is_verified_by_itself(folder):
    result = run("verify", VERSION_1)
    assert result.exit_code == 0, result.output
    result = run("verify", VERSION_1, *files_of(folder))
    assert result.exit_code == 2
    assert "does not say by which options" in result.output


@pytest.mark.parametrize("threshold", [[], ["--threshold", 1], ["--threshold", 250]])
def test_records_of_every_verdict_agree(tmp_path, threshold):
    rng = np.random.default_rng(1)
    originals = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    originals.to_parquet(tmp_path / "o.parquet", index=False)
    for name, avatars in {
        "near": originals + rng.normal(scale=0.4, size=(200, 3)),
        "shuffled": originals.sample(frac=1, random_state=1),
    }.items():
        avatars.to_parquet(tmp_path / f"{name}.parquet", index=False)
        record = tmp_path / f"{name}.json"
        tables = [tmp_path / "o.parquet", tmp_path / f"{name}.parquet"]
        run("measure", *tables, "--ncp", 2, "--json", record, *threshold)
        files = ["--originals", tmp_path / "o.parquet", "--avatars", tmp_path / f"{name}.parquet"]
        result = run("verify", record, *files)
        assert result.exit_code == 0, result.output


def test_bare_coordinates_and_a_pairing_table_are_verified_with_their_files(folder, tmp_path):
    rng = np.random.default_rng(2)
    originals = pd.DataFrame({"who": range(50), "a": rng.normal(size=50), "b": rng.normal(size=50)})
    avatars = (originals + [100, 0, 0] + rng.normal(size=(50, 3)) * [0, 0.5, 0.5]).sample(frac=1, random_state=1)
    pairing = pd.DataFrame({"who": originals["who"], "avatar": originals["who"] + 100})
    avatars = avatars.rename(columns={"who": "avatar"}).astype({"avatar": int})
    for name, table in {"o": originals, "a": avatars, "p": pairing}.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    record, files = tmp_path / "r.json", [tmp_path / "o.csv", tmp_path / "a.csv"]
    measured = run("measure", *files, "--pairing", tmp_path / "p.csv", "--ncp", 2, "--json", record)
    assert measured.exit_code == 0, measured.output
    named = ["--originals", files[0], "--avatars", files[1], "--pairing", tmp_path / "p.csv"]
    verified = run("verify", record, *named)
    assert verified.exit_code == 0, verified.output
