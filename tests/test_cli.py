"""The command line: exit codes, messages, files, and what never shows."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from local_cloaking import local_cloaking
from local_cloaking.audit.record import digest_of, verdict_again
from local_cloaking.cli import app

KEYS_OF_A_RECORD = {
    "schema",
    "schema_version",
    "local_cloaking",
    "n",
    "hidden_rate",
    "ncp",
    "counts",
    "counts_sha256",
    "avatars_sha256",
    "warnings",
    "verdict",
    "reason",
    "threshold",
    "inputs",
    "distribution",
    "columns",
    "tie_rule",
    "versions",
    "digest",
}
#: What may differ between two runs on the same files with the same options.
TIMES = {"measured_at", "duration_seconds", "judged", "digest"}


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


def run(*arguments: object) -> Outcome:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return Outcome(result.exit_code, result.stdout, result.stderr)


def table(n: int = 80, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)).round(4), columns=["âge", "dose (mg)", "poids"])
    frame["arm"] = rng.choice(["a", "b", "é"], n)
    frame.insert(0, "id", [f"{i:04}" for i in range(n)])
    return frame


def near(frame: pd.DataFrame, scale: float = 0.4) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    numbers = frame.select_dtypes("number").columns
    return frame.assign(
        **{name: (frame[name] + rng.normal(scale=scale, size=len(frame))).round(4) for name in numbers}
    )


@pytest.fixture
def originals(tmp_path: Path) -> Path:
    path = tmp_path / "originals.csv"
    table().to_csv(path, index=False)
    return path


@pytest.fixture
def avatars(tmp_path: Path) -> Path:
    path = tmp_path / "avatars.csv"
    # Another order, as avatars should be: the key pairs them.
    near(table()).sample(frac=1, random_state=0).to_csv(path, index=False)
    return path


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, bytes | str], Path]:
    def writer(name: str, content: bytes | str) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return writer


def record_of(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8")))


def measured(folder: Path, originals: Path, avatars: Path, *options: object) -> dict[str, Any]:
    """Measure, expecting success, and return the record."""
    record = folder / "record.json"
    outcome = run("measure", originals, avatars, "--json", record, *options)
    assert outcome.code == 0, outcome.err
    return record_of(record)


def assert_refused(outcome: Outcome, *parts: str) -> None:
    assert outcome.code == 2
    assert outcome.out == ""
    lines = [line for line in outcome.err.splitlines() if line.strip()]
    assert 1 <= len(lines) <= 3
    assert "Traceback" not in outcome.err
    for part in parts:
        assert part in outcome.err


# --- exit codes ---


def test_exit_codes_and_verdicts(originals: Path, avatars: Path, tmp_path: Path) -> None:
    common = ("measure", originals, avatars, "--key", "id", "--ncp", "2", "--json", tmp_path / "record.json")
    expected = local_cloaking(table(), near(table()), key="id", ncp=2)

    outcome = run(*common)
    record = record_of(tmp_path / "record.json")
    assert (outcome.code, record["verdict"], record["threshold"]) == (0, None, None)
    assert (record["local_cloaking"], record["n"]) == (expected.median, 80)
    assert "none: no threshold was given" in outcome.out

    outcome = run(*common, "--threshold", expected.median, "--threshold-set-by", "the ethics board")
    record = record_of(tmp_path / "record.json")
    assert (outcome.code, record["verdict"], record["reason"]) == (0, "passed", None)
    assert record["threshold_set_by"] == "the ethics board"
    assert "passed" in outcome.out

    outcome = run(*common, "--threshold", expected.median + 0.5, "--k", "7")
    record = record_of(tmp_path / "record.json")
    assert (outcome.code, record["verdict"], record["k"]) == (1, "below_threshold", 7)
    assert "raise k" in record["remedy"]
    assert "now 7" in outcome.out

    outcome = run(*common, "--threshold", "100")
    record = record_of(tmp_path / "record.json")
    assert (outcome.code, record["verdict"]) == (1, "not_assessable")
    assert record["reason"] == "80 individuals can reach 79 at most, below the threshold 100"


def test_exit_code_of_shuffled_avatars_with_and_without_threshold(originals: Path, avatars: Path) -> None:
    # Without the key, row order pairs strangers.
    for more in ((), ("--threshold", "1")):
        outcome = run("measure", originals, avatars, "--drop", "id", "--ncp", "2", *more)
        assert outcome.code == 1
        assert "the avatars look shuffled" in outcome.out


def test_help_and_no_arguments() -> None:
    assert run("--help").code == 0
    assert run("measure", "--help").code == 0
    none = run()
    assert "Usage" in none.out + none.err
    assert none.code == 2


def test_as_a_program(originals: Path, avatars: Path) -> None:
    """Once in a process of its own, through the module, in a plain C locale."""
    command = [sys.executable, "-m", "local_cloaking.cli", "measure", str(originals)]
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0"}
    options = {"capture_output": True, "env": environment, "check": False, "timeout": 300}
    done = subprocess.run([*command, str(avatars), "--key", "id", "--ncp", "2"], **options)  # type: ignore[call-overload]
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"Local Cloaking")
    refused = subprocess.run([*command, str(avatars), "--key", "zz"], **options)  # type: ignore[call-overload]
    assert (refused.returncode, refused.stdout) == (2, b"")
    assert refused.stderr.decode().splitlines() == [
        "refused: column 'zz': the key is not in the originals; correct `key`, or add the column"
    ]


# --- bad input: one to three lines, no traceback, nothing written ---


def csv_of(frame: pd.DataFrame) -> bytes:
    return frame.to_csv(index=False).encode()


def _bad_files(folder: Path) -> dict[str, tuple[bytes | None, str]]:
    frame = near(table())
    return {
        "missing": (None, "No such file or directory"),
        "binary": (np.random.default_rng(0).bytes(800), "binary.csv: "),
        "nul bytes": (b"id,a\n1,\x00\n", "NUL or control characters"),
        "empty": (b"", "the file is empty"),
        "only a header": (b"id,a\n", "has a header but no rows"),
        "broken gzip": (gzip.compress(b"id,a\n1,2\n")[:-4], "the gzip file is damaged"),
        "broken parquet": (b"PAR1 and no more PAR1", "the Parquet file is damaged"),
        "one row fewer": (csv_of(frame.iloc[1:]), "1 keys of the originals are not in the"),
        "one key twice": (csv_of(frame.assign(id="0001")), "share their key"),
        "one key missing": (
            csv_of(frame.assign(id=frame["id"].replace("0003", ""))),
            "1 rows of the avatars have no",
        ),
        "a column fewer": (
            csv_of(frame.drop(columns="poids")),
            "column 'poids': a column that the originals have but not the avatars",
        ),
        "a column more": (
            csv_of(frame.assign(name="x")),
            "column 'name': a column that the avatars have but not the originals",
        ),
        "a column twice": (csv_of(frame).replace(b"poids", b"dose (mg)"), "'dose (mg)'"),
        "an unknown category": (csv_of(frame.assign(arm="NEW")), "column 'arm': 80 avatars have"),
        "another type": (csv_of(frame.assign(poids="heavy")), "column 'poids': number"),
        "infinite": (csv_of(frame.assign(poids=np.inf)), "infinite"),
        "ragged": (csv_of(frame) + b"1,2\n", "1 rows do not have as many cells"),
    }


@pytest.mark.parametrize("kind", sorted(_bad_files(Path())))
def test_bad_avatars(kind: str, originals: Path, tmp_path: Path) -> None:
    content, message = _bad_files(tmp_path)[kind]
    path = tmp_path / f"{kind}.csv"
    if content is not None:
        path.write_bytes(content)
    before = sorted(tmp_path.iterdir())
    record = tmp_path / "evidence" / "record.json"
    assert_refused(run("measure", originals, path, "--key", "id", "--ncp", "2", "--json", record), message)
    assert sorted(tmp_path.iterdir()) == before
    if kind not in ("a column fewer", "a column more", "an unknown category", "another type", "one row fewer"):
        assert run("measure", path, originals, "--key", "id", "--ncp", "2", "--json", record).code == 2
        assert sorted(tmp_path.iterdir()) == before


def test_a_folder_instead_of_a_file(originals: Path, tmp_path: Path) -> None:
    assert_refused(
        run("measure", originals, tmp_path), "the folder holds 1 files or folders that are no *.parquet"
    )
    assert_refused(run("measure", tmp_path, originals), "the folder holds 1 files")
    assert_refused(run("measure", originals, originals, "--projection", tmp_path), "Is a directory")


def test_row_order_with_one_row_fewer(originals: Path, write: Callable[..., Path]) -> None:
    few = write("few.csv", near(table()).iloc[1:].to_csv(index=False))
    assert_refused(run("measure", originals, few, "--drop", "id"), "80 originals, 79 avatars")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--key", "zz"], "column 'zz': the key is not in the originals"),
        (["--key", "arm"], "column 'arm'"),
        (["--ncp", "0"], "`ncp` is not a whole number of at least 1"),
        (["--ncp", "-3"], "`ncp` is not a whole number of at least 1"),
        (["--ncp", "99"], "only 5 independent components"),
        (["--ncp", "99999999999999999999"], "ncp"),
        (["--ncp", "two"], "--ncp"),
        (["--ncp", "2.5"], "--ncp"),
        (["--threshold", "0"], "the threshold is not a number above 0"),
        (["--threshold", "nan"], "the threshold is not a number above 0"),
        (["--threshold", "five"], "the threshold is not a number above 0"),
        (["--k", "x"], "--k"),
        (["--nope"], "--nope"),
        (["--ncp"], "--ncp"),
        (["--categorical", "zz"], "column 'zz': declared as categorical, but not among the columns"),
        (["--drop", "zz"], "column 'zz': to be dropped, but in neither table"),
        (["--drop", "id"], "column 'id': both the key and to be dropped"),
        (["--k", "0"], "k is not a whole number from 1 to 79"),
        (["--drop", "arm,âge,dose (mg),poids"], "no column to measure"),
        (["--separator", "ab"], "the option `separator` cannot separate cells"),
        (["--decimal", "x"], "the option `decimal` is neither a point nor a comma"),
        (["--encoding", "zz"], "the encoding asked for is not known"),
        (["--encoding", "ascii"], "the bytes are no text in the encoding tried"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_options(options: list[str], message: str, originals: Path, avatars: Path, tmp_path: Path) -> None:
    record = tmp_path / "evidence" / "record.json"
    outcome = run("measure", originals, avatars, "--key", "id", "--json", record, *options)
    assert_refused(outcome, message)
    assert not record.parent.exists()


@pytest.mark.parametrize("arguments", [["measure"], ["measure", "one.csv"], ["measur"], ["avatarise", "x.csv"]])
def test_bad_commands(arguments: list[str]) -> None:
    assert_refused(run(*arguments), "Error")


def test_bad_projections_pairings_and_coordinates(
    originals: Path, avatars: Path, write: Callable[..., Path]
) -> None:
    common = ("measure", originals, avatars, "--key", "id", "--ncp", "2")
    for name, content in {"a.json": "{}", "b.json": "[1]", "c.json": "{", "d.json": "[" * 100_000}.items():
        assert_refused(run(*common, "--projection", write(name, content)), "not one that this version wrote")
    assert_refused(
        run(*common, "--projection", write("e.json", b"\xff\xfe\x00")), "the projection is not a text file"
    )
    assert_refused(run(*common, "--projection", write("f.json", b"")), "the file is empty")
    assert_refused(run(*common, "--pairing", avatars), "the pairing table has 5 columns")
    assert_refused(
        run(*common, "--pairing", write("p.csv", "one,two\n0001,0001\n")), "are not in the pairing table"
    )
    assert_refused(run(*common, "--original-coordinates", originals), "coordinates are given for one table only")
    both = ("--original-coordinates", originals, "--avatar-coordinates", avatars)
    assert_refused(run(*common, *both), "a coordinate is missing or no number")
    short = write("short.csv", "x,y\n0.5,1.5\n")
    both = ("--original-coordinates", short, "--avatar-coordinates", short)
    assert_refused(run(*common, *both), "the coordinates of the originals are of shape (1, 2)")


def test_places_that_cannot_be_written(originals: Path, avatars: Path, tmp_path: Path) -> None:
    common = ("measure", originals, avatars, "--key", "id", "--ncp", "2", "--json")
    before = {path: path.read_bytes() for path in (originals, avatars)}
    files = sorted(tmp_path.iterdir())
    assert_refused(run(*common, tmp_path), "a folder stands where the file is to be written")
    assert_refused(run(*common, originals / "record.json"), "originals.csv")
    for path in (originals, avatars, tmp_path / "." / "avatars.csv"):
        assert_refused(run(*common, path), "written over another file of this command")
    made = ("avatarise", originals, "--key", "id", "--k", "5", "--ncp", "2")
    assert_refused(run(*made, "-o", originals), "written over another file of this command")
    both = tmp_path / "both.csv"
    assert_refused(run(*made, "-o", both, "--projection", both), "written over another file of this command")
    # Neither of two files where one cannot be written.
    assert_refused(run(*made, "-o", tmp_path / "new.csv", "--projection", tmp_path), "a folder stands")
    (tmp_path / "folder.csv").mkdir()
    assert_refused(
        run(*made, "-o", tmp_path / "folder.csv", "--projection", tmp_path / "p.json"), "a folder stands"
    )
    (tmp_path / "folder.csv").rmdir()
    assert sorted(tmp_path.iterdir()) == files
    assert {path: path.read_bytes() for path in before} == before


# --- how files are written ---


def french(frame: pd.DataFrame) -> str:
    return frame.to_csv(index=False, sep=";", decimal=",")


@pytest.mark.parametrize(
    "pack",
    [
        lambda text: text.encode("utf-8"),
        lambda text: text.encode("latin-1"),
        lambda text: text.encode("utf-8-sig"),
        lambda text: text.encode("utf-16"),
        lambda text: gzip.compress(text.encode("latin-1")),
        lambda text: text.replace("\n", "\r\n").encode("cp1252"),
        lambda text: ("sep=;\n" + text).encode("utf-8-sig"),
    ],
    ids=["utf-8", "latin-1", "utf-8 with mark", "utf-16", "gzip", "windows", "excel"],
)
def test_french_files_give_the_same_counts(
    pack: Callable[[str], bytes], originals: Path, avatars: Path, write: Callable[..., Path], tmp_path: Path
) -> None:
    plain = measured(tmp_path, originals, avatars, "--key", "id", "--ncp", "2")
    packed = pack(french(near(table())))
    record = measured(
        tmp_path, write("o.csv", pack(french(table()))), write("a.csv", packed), "--key", "id", "--ncp", "2"
    )
    assert record["distribution"] == plain["distribution"]
    assert [column["name"] for column in record["columns"]] == ["âge", "dose (mg)", "poids", "arm"]
    source = record["inputs"]["avatars"]
    assert (source["separator"], source["decimal"]) == (";", ",")
    assert (source["size"], source["sha256"]) == (len(packed), hashlib.sha256(packed).hexdigest())


def test_said_instead_of_found_out(originals: Path, write: Callable[..., Path], tmp_path: Path) -> None:
    text = french(near(table())).encode("latin-1")
    options = ("--key", "id", "--ncp", "2", "--separator", ";", "--decimal", ",", "--encoding", "latin-1")
    record = measured(tmp_path, write("o.csv", french(table()).encode("latin-1")), write("a.csv", text), *options)
    assert record["inputs"]["avatars"]["encoding"] == "iso8859-1"
    wrong = ("--key", "id", "--ncp", "2", "--decimal", ".")
    assert_refused(run("measure", originals, tmp_path / "a.csv", *wrong), "column 'âge'")


def test_parquet_gives_the_same_counts_as_csv(originals: Path, avatars: Path, tmp_path: Path) -> None:
    options = ("--key", "id", "--ncp", "2")
    plain = measured(tmp_path, originals, avatars, *options)
    pair = (tmp_path / "o.parquet", tmp_path / "a.parquet")
    table().to_parquet(pair[0], index=False)
    near(table()).to_parquet(pair[1], index=False)
    for one, other in (pair, (pair[0], avatars), (originals, pair[1])):
        record = measured(tmp_path, one, other, *options)
        for name in ("distribution", "local_cloaking", "hidden_rate", "explained_variance", "columns"):
            assert record[name] == plain[name]
    assert measured(tmp_path, *pair, *options)["inputs"]["avatars"]["format"] == "parquet"


def test_leading_zeros_in_keys(originals: Path, write: Callable[..., Path], tmp_path: Path) -> None:
    frame = near(table())
    kept = write("kept.csv", frame.to_csv(index=False))
    assert measured(tmp_path, originals, kept, "--key", "id", "--ncp", "2")["n"] == 80
    lost = write("lost.csv", frame.assign(id=frame["id"].astype(int)).to_csv(index=False))
    assert_refused(run("measure", originals, lost, "--key", "id", "--ncp", "2"), "leading zeros count")


def test_pairing_table(originals: Path, avatars: Path, write: Callable[..., Path], tmp_path: Path) -> None:
    by_key = measured(tmp_path, originals, avatars, "--key", "id", "--ncp", "2")
    frame = near(table())
    new = [f"A{i:05}" for i in np.random.default_rng(2).permutation(len(frame))]
    # The avatars bear keys of their own, in a column of their own; the pairing table stands in a third order.
    renamed = frame.assign(id=new).rename(columns={"id": "avatar"}).sample(frac=1, random_state=1)
    pairing = pd.DataFrame({"id": frame["id"], "avatar": new}).sample(frac=1, random_state=2)
    other = write("renamed.csv", renamed.to_csv(index=False))
    paired = write("pairing.csv", pairing.to_csv(index=False))
    record = measured(tmp_path, originals, other, "--pairing", paired, "--ncp", "2")
    assert record["distribution"] == by_key["distribution"]
    assert record["pairing"] == "pairing table ('id', 'avatar')"
    assert record["inputs"]["pairing"]["sha256"] == hashlib.sha256(paired.read_bytes()).hexdigest()
    short = write("short.csv", pairing.iloc[1:].to_csv(index=False))
    assert_refused(run("measure", originals, other, "--pairing", short, "--ncp", "2"), "not in the pairing table")


def test_names_of_columns_with_commas(write: Callable[..., Path], tmp_path: Path) -> None:
    frame = table().rename(columns={"poids": "weight, in kg"}).assign(site=1)
    one, other = write("o.csv", frame.to_csv(index=False)), write("a.csv", near(frame, 0.0).to_csv(index=False))
    options = ("--key", "id", "--ncp", "2", "--drop", '"weight, in kg", site', "--drop", "âge")
    record = measured_anyhow(tmp_path, one, other, *options)
    assert [column["name"] for column in record["columns"]] == ["dose (mg)", "arm"]


def measured_anyhow(folder: Path, *arguments: object) -> dict[str, Any]:
    record = folder / "record.json"
    assert run("measure", *arguments, "--json", record).code in (0, 1)
    return record_of(record)


# --- the record ---


def test_the_record(originals: Path, avatars: Path, tmp_path: Path) -> None:
    options = ("--key", "id", "--ncp", "2", "--threshold", "1", "--data-set", "trial")
    record = measured(tmp_path, originals, avatars, *options)
    assert set(record) >= KEYS_OF_A_RECORD
    assert (record["schema"], record["schema_version"]) == ("local-cloaking/record", 2)
    assert (record["verdict"], record["threshold"], record["ncp"], record["data_set"]) == ("passed", 1, 2, "trial")
    # The command line keeps no counts file.
    assert (record["counts"], record["counts_sha256"]) == (None, None)
    for name, path in (("originals", originals), ("avatars", avatars)):
        content = path.read_bytes()
        source = record["inputs"][name]
        assert (source["size"], source["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
        assert (source["name"], source["rows"]) == (path.name, 80)
    assert record["avatars_sha256"] == record["inputs"]["avatars"]["sha256"]
    assert (digest_of(record), verdict_again(record)) == (record["digest"], record["verdict"])
    assert sum(record["distribution"]["individuals"]) == 80
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_the_hash_of_the_record_is_told(originals: Path, avatars: Path, tmp_path: Path) -> None:
    record = tmp_path / "new" / "folder" / "record.json"
    outcome = run("measure", originals, avatars, "--key", "id", "--ncp", "2", "--json", record)
    assert f"SHA-256 {hashlib.sha256(record.read_bytes()).hexdigest()}" in outcome.out


def test_same_files_and_options_give_the_same_record(originals: Path, avatars: Path, tmp_path: Path) -> None:
    options = ("--key", "id", "--ncp", "2", "--threshold", "1", "--categorical", "arm")
    first, second = (measured(tmp_path, originals, avatars, *options) for _ in range(2))
    assert {name: value for name, value in first.items() if name not in TIMES} == {
        name: value for name, value in second.items() if name not in TIMES
    }
    assert list(first) == list(second)


# --- avatarise, then measure ---


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_round_trip(originals: Path, tmp_path: Path, suffix: str) -> None:
    made, projection = tmp_path / f"made{suffix}", tmp_path / "projection.json"
    options = ("--k", "5", "--ncp", "2", "--seed", "3", "--key", "id")
    outcome = run("avatarise", originals, "-o", made, "--projection", projection, *options)
    assert (outcome.code, outcome.err) == (0, "")
    assert "80 avatars (k=5, ncp=2)" in outcome.out
    assert [path.stat().st_mode & 0o077 for path in (made, projection)] == [0, 0]
    first = made.read_bytes()
    run("avatarise", originals, "-o", made, *options)
    assert made.read_bytes() == first

    record = measured(tmp_path, originals, made, "--projection", projection, "--key", "id", "--k", "5")
    assert (record["space"], record["ncp"], record["avatars_table"]) == ("handed over", 2, "verified")
    assert record["inputs"]["projection"]["sha256"] == hashlib.sha256(projection.read_bytes()).hexdigest()
    assert not any("refitted" in warning for warning in record["warnings"])
    # A fit on the same originals is the same space; only the warning differs.
    refitted = measured(tmp_path, originals, made, "--key", "id", "--ncp", "2")
    assert refitted["distribution"] == record["distribution"]
    assert any("refitted" in warning for warning in refitted["warnings"])


def test_round_trip_of_a_french_file(write: Callable[..., Path], tmp_path: Path) -> None:
    one, made, projection = (
        write("o.csv", french(table()).encode("latin-1")),
        tmp_path / "a.csv",
        tmp_path / "p.json",
    )
    options = ("--key", "id", "--k", "5", "--ncp", "2", "--seed", "1")
    assert run("avatarise", one, "-o", made, "--projection", projection, *options).code == 0
    assert b";" in made.read_bytes()
    record = measured(tmp_path, one, made, "--key", "id", "--projection", projection)
    assert (record["inputs"]["avatars"]["separator"], record["inputs"]["avatars"]["decimal"]) == (";", ",")


def test_a_projection_of_other_originals_is_refused(
    originals: Path, avatars: Path, write: Callable[..., Path], tmp_path: Path
) -> None:
    other, made, projection = (
        write("o.csv", table(seed=9).to_csv(index=False)),
        tmp_path / "m.csv",
        tmp_path / "p.json",
    )
    assert run("avatarise", other, "-o", made, "--projection", projection, "--key", "id", "--ncp", "2").code == 0
    outcome = run("measure", originals, avatars, "--key", "id", "--projection", projection)
    assert_refused(outcome, "was fitted on another table")
    changed = projection.read_text().replace('"n_rows": 80', '"n_rows": 81')
    assert_refused(
        run("measure", other, made, "--key", "id", "--projection", write("c.json", changed)), "projection"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--k", "0"], "k is not a whole number from 1 to 79"),
        (["--k", "80"], "k is not a whole number from 1 to 79"),
        (["--k", "many"], "--k"),
        (["--ncp", "0"], "`ncp`"),
        (["--ncp", "9"], "only 5 independent components"),
        (["--seed", "-1"], "the seed is not a whole number of at least 0"),
        (["--key", "zz"], "column 'zz'"),
        (["--drop", "zz"], "column 'zz'"),
        (["--categorical", "zz"], "column 'zz'"),
        (["--output", "made.xlsx"], "does not say its format"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_options_of_avatarise(options: list[str], message: str, originals: Path, tmp_path: Path) -> None:
    made, projection = tmp_path / "made.csv", tmp_path / "projection.json"
    outcome = run("avatarise", originals, "--key", "id", "-o", made, "--projection", projection, *options)
    assert_refused(outcome, message)
    assert [path.name for path in tmp_path.iterdir()] == ["originals.csv"]


# --- nothing of anyone shows ---

PLANTED = ["Zaphodine Beeblebroxa", "QX-774411", "98765.4321", "rarissima"]


@pytest.fixture
def planted() -> pd.DataFrame:
    frame = table().assign(id=[f"QX-{i:06}" for i in range(80)], town="Lyon")
    frame.loc[7, ["id", "dose (mg)", "arm", "town"]] = [
        "QX-774411",
        98765.4321,
        "rarissima",
        "Zaphodine Beeblebroxa",
    ]
    return frame


def assert_nothing_shows(outcome: Outcome, folder: Path, inputs: set[str]) -> None:
    written = [path.read_bytes().decode("utf-8", "replace") for path in folder.rglob("*.json")]
    assert {path.name for path in folder.iterdir()} <= inputs | {"record.json"}
    for text in (outcome.out, outcome.err, *written):
        for value in [*PLANTED, "98765", "QX-"]:
            assert value not in text


def test_no_cell_shows_when_measured(planted: pd.DataFrame, write: Callable[..., Path], tmp_path: Path) -> None:
    one, other = write("o.csv", planted.to_csv(index=False)), write("a.csv", near(planted).to_csv(index=False))
    record = tmp_path / "record.json"
    for more in ((), ("--threshold", "1"), ("--threshold", "70"), ("--threshold", "900")):
        outcome = run("measure", one, other, "--key", "id", "--ncp", "2", "--json", record, *more)
        assert outcome.code in (0, 1)
        assert_nothing_shows(outcome, tmp_path, {"o.csv", "a.csv"})
        record.unlink()


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(
            lambda frame: {"town": frame["town"].str.replace("Lyon", "Zaphodine Beeblebroxa II")}, id="town"
        ),
        pytest.param(lambda frame: {"arm": frame["arm"].str.replace("rarissima", "rarissima!")}, id="level"),
        pytest.param(lambda frame: {"id": frame["id"].replace("QX-774411", "QX-000000")}, id="key twice"),
        pytest.param(lambda frame: {"id": frame["id"].replace("QX-774411", "QX-999999")}, id="key unknown"),
        pytest.param(lambda frame: {"poids": frame["id"]}, id="text for numbers"),
        pytest.param(lambda frame: {"poids": ["98765.4321"] * 79 + ["98765,4321"]}, id="two decimal marks"),
        pytest.param(lambda frame: {"poids": ["98765.4321"] * 79 + ["rarissima"]}, id="mixed"),
        pytest.param(lambda frame: {"âge": frame["id"].str[3:] + "/98765"}, id="slashes"),
        pytest.param(lambda frame: {"more": frame["id"]}, id="a column more"),
    ],
)
def test_no_cell_shows_when_refused(
    spoil: Callable[[pd.DataFrame], dict[str, Any]],
    planted: pd.DataFrame,
    write: Callable[..., Path],
    tmp_path: Path,
) -> None:
    one, other = (
        write("o.csv", planted.to_csv(index=False)),
        write("a.csv", csv_of(planted.assign(**spoil(planted)))),
    )
    record = tmp_path / "record.json"
    for first, second in ((one, other), (other, one)):
        outcome = run("measure", first, second, "--key", "id", "--ncp", "2", "--json", record)
        assert_refused(outcome)
        assert_nothing_shows(outcome, tmp_path, {"o.csv", "a.csv"})
    outcome = run("measure", one, one, "--drop", "town", "--ncp", "2", "--json", record)
    assert_refused(outcome, "column 'id'")
    assert_nothing_shows(outcome, tmp_path, {"o.csv", "a.csv"})


def test_avatars_are_written_as_the_originals_are(
    tmp_path: Path, write: Callable[[str, bytes | str], Path]
) -> None:
    """The same options read both files: separator, decimal comma and encoding."""
    options = ["--separator", ";", "--decimal", ",", "--encoding", "latin-1", "--key", "id"]
    path, made, space = write("o.csv", french(table()).encode("latin-1")), tmp_path / "a.csv", tmp_path / "p.json"
    outcome = run("avatarise", path, *options, "--ncp", "2", "--k", "9", "-o", made, "--projection", space)
    assert outcome.code == 0, outcome.err
    assert "âge".encode("latin-1") in made.read_bytes()
    outcome = run("measure", path, made, *options, "--projection", space)
    assert outcome.code == 0, outcome.err


def test_an_identifier_of_digits_is_told_to_pair_the_tables(originals: Path, avatars: Path) -> None:
    for path in (originals, avatars):
        frame = pd.read_csv(path, dtype={"id": str})
        frame.assign(id=[f"{i:05}" for i in range(len(frame))]).to_csv(path, index=False)
    outcome = run("measure", originals, avatars, "--ncp", "2")
    assert_refused(outcome, "column 'id'", "pair the tables by it (`key`), or leave it out")


# --- where results go ---


def test_what_cannot_be_written_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    absent = tmp_path / "absent.csv"
    outcome = run("measure", absent, absent, "--json", tmp_path / "file" / "r.json")
    assert outcome.code == 2
    assert "absent" not in outcome.err


def test_no_pipe_takes_the_place_of_a_file(originals: Path, avatars: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    outcome = run("measure", originals, avatars, "--key", "id", "--json", tmp_path / "pipe")
    assert outcome.code == 2
    assert "no plain file" in outcome.err
    assert not (tmp_path / "pipe").is_file()


def test_a_link_is_followed(originals: Path, avatars: Path, tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    run("measure", originals, avatars, "--key", "id", "--ncp", "2", "--json", tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "real.json").read_text())["n"] == 80


def test_an_impossible_k_is_refused_before_the_measure(originals: Path, avatars: Path) -> None:
    outcome = run("measure", originals, avatars, "--key", "id", "--ncp", "2", "--k", "500")
    assert (outcome.code, outcome.out) == (2, "")
