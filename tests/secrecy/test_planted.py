"""Nothing of anyone is left behind: what was planted is searched for in everything that a day's work leaves."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("airflow", reason="apache-airflow is not installed (extra `airflow`)")

from tests.receivers import mail_server, statsd_server, webhook
from tests.reliability import note_figures
from tests.secrecy import planting
from tests.secrecy.refusals import WRONG_FILES
from tests.secrecy.searching import (
    Search,
    files_below,
    ways_to_write_date,
    ways_to_write_number,
    ways_to_write_text,
)

ROOT = Path(__file__).parents[2]
#: What is to hold personal content, among what was asked for: avatars are not anonymous before they pass.
ASKED_FOR = ("remediation", "avatars", "projection")


def planted() -> dict[str, set[bytes]]:
    """Every planted value, with the ways to write it."""
    texts = (*planting.TEXTS, *planting.BEGINNINGS, *planting.SECRETS)
    return {
        **{text: ways_to_write_text(text) for text in texts},
        **{str(value): ways_to_write_number(value) for value in (*planting.NUMBERS, *planting.WHOLE)},
        **{str(day): ways_to_write_date(day) for day in planting.DATES},
    }


@dataclass
class Left:
    """What a day has left."""

    how: str
    folder: Path
    printed: str = field(repr=False)
    told: list[bytes] = field(repr=False)
    watched: dict[str, Any] = field(repr=False)
    stored: dict[str, bytes] = field(repr=False)

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Return each file, also those that were there for a moment; not the tables that were given."""
        for path in files_below(self.folder):
            if self.folder / "data" not in path.parents:
                yield str(path.relative_to(self.folder)), path.read_bytes()


@pytest.fixture(scope="module", params=["quick", pytest.param("whole", marks=pytest.mark.stack)])
def left(request: pytest.FixtureRequest, airflow_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Left:
    folder = tmp_path_factory.mktemp(request.param)
    home = folder / "airflow"
    for path in (home / "dags", folder / "tmp"):
        path.mkdir(parents=True)
    with (
        closing(sqlite3.connect(airflow_home / "airflow.db")) as source,
        closing(sqlite3.connect(home / "airflow.db")) as target,
    ):
        source.backup(target)
    with ExitStack() as stack:
        mails, smtp = stack.enter_context(mail_server())
        hook, (gauges, statsd) = stack.enter_context(webhook()), stack.enter_context(statsd_server())
        client, stored = None, {}
        if request.param == "whole":
            client, stored = bucket(request.getfixturevalue("endpoint"))
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")},
            **statsd,
            **stored,
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}",
            "AIRFLOW__LOGGING__LOGGING_LEVEL": "DEBUG",
            "AIRFLOW_CONN_SMTP_DEFAULT": smtp,
            "AIRFLOW_CONN_REGISTRY": f"sqlite:///{folder / 'data' / 'registry.db'}",
            "AIRFLOW_CONN_WAREHOUSE": json.dumps(
                {
                    "conn_type": "postgres",
                    "host": "127.0.0.1",
                    "port": 9,
                    "login": "tester",
                    "password": planting.PASSWORD,
                }
            ),
            "HOOK": f"{hook.address}?token={planting.WEBHOOK_TOKEN}",
            "NO_HOOK": f"http://127.0.0.1:9/{planting.WEBHOOK_TOKEN}",
            "TMPDIR": str(folder / "tmp"),
            "MPLCONFIGDIR": str(folder / "matplotlib"),
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        }
        done = subprocess.run(
            [sys.executable, "-m", "tests.secrecy.watched_run", str(folder), request.param],
            cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900, check=False,
        )  # fmt: skip
        told = [bytes(mail) for mail in mails] + [json.dumps(one).encode() for one in hook.received]
        told += [part.get_content().encode() for mail in mails for part in mail.walk() if not part.is_multipart()]
        told += ["\n".join(gauges()).encode()]
        objects = {} if client is None else objects_of(client)
    assert f"\ndone {planting.RARE}\n" in done.stdout, (done.stdout + done.stderr)[-3000:]
    watched = json.loads((folder / "watched.json").read_text())
    return Left(request.param, folder, done.stdout + done.stderr, told, watched, objects)


def bucket(endpoint: str) -> tuple[Any, dict[str, str]]:
    """Make a bucket on a real S3 server with the tables in it; return a client, and the connection to it."""
    import boto3

    folder = Path(os.environ["AIRFLOW_HOME"]) / "planted"
    planting.write_all(folder)
    keys = {"aws_access_key_id": "tester", "aws_secret_access_key": planting.S3_SECRET}
    client = boto3.client("s3", endpoint_url=endpoint, region_name="eu-west-3", **keys)
    client.create_bucket(Bucket="lake", CreateBucketConfiguration={"LocationConstraint": "eu-west-3"})
    for name in ("originals.csv", "avatars.csv"):
        client.upload_file(str(folder / name), "lake", name)
    extra = {"endpoint_url": endpoint, "region_name": "eu-west-3"}
    connection = {"conn_type": "aws", "login": "tester", "password": planting.S3_SECRET, "extra": extra}
    return client, {"AIRFLOW_CONN_LAKE": json.dumps(connection)}


def objects_of(client: Any) -> dict[str, bytes]:
    names = [item["Key"] for item in client.list_objects_v2(Bucket="lake")["Contents"]]
    return {name: client.get_object(Bucket="lake", Key=name)["Body"].read() for name in names if "/" in name}


def is_asked_for(name: str) -> bool:
    """Tell whether a file is one of those that are to hold personal content, or was to become one."""
    here = name.replace("!", "/")
    return "/out/" in f"/{here}" and any(word in here.rpartition("/")[2] for word in ASKED_FOR)


def is_of_a_command(name: str) -> bool:
    """Tell whether a file lay in the folder that a command's run has for itself, which is gone."""
    return name.startswith("kept/") and "!tmp!local-cloaking-" in name


def test_no_planted_value_is_left_where_it_does_not_belong(left: Left) -> None:
    search = Search(planted())
    found = {
        name: values
        for name, content in left.files()
        if not (is_asked_for(name) or is_of_a_command(name)) and (values := search.found_in(content))
    }
    found |= {
        name: values
        for name, content in left.stored.items()
        if not name.startswith("out/") and (values := search.found_in(content))
    }
    # Where `dag.test()` stands in for the scheduler, Airflow prints at DEBUG what it was asked to mask.
    printed = re.sub(r"MaskSecret\(value=('[^'\n]*'|\"[^\"\n]*\")", "", left.printed)
    told = {f"told {place}": search.found_in(one) for place, one in enumerate([*left.told, printed])}
    found |= {name: values for name, values in told.items() if values}
    assert found == {}
    assert search.places > 60
    assert len(left.told) > 8, "mails and webhooks were received"
    name = "secrecy" if left.how == "quick" else "secrecy-whole"
    note_figures(name, planted=len(planted()), ways=len(search.names), places_searched=search.places, found=0)


def test_what_was_to_happen_has_happened(left: Left) -> None:
    """Else there was nothing to be found."""
    printed = left.printed
    for state in (
        "'passed.check': 'success'",
        "'below.check': 'failed'",
        "'shuffled.check': 'failed'",
        "'publish': 'failed'",
    ):
        assert state in printed, state
    records = {}
    for path in left.folder.glob("airflow/local_cloaking/*/*/*.check/*/record.json"):
        record = json.loads(path.read_text())
        records[record["data_set"]] = record["verdict"]
    assert records["passed"] == "passed"
    assert records["below"] == "below_threshold"
    assert records["shuffled"] == "not_assessable"
    if left.how == "quick":
        assert printed.count("\nrefused ") >= len(WRONG_FILES) + 15
    else:
        for part in ("database", "paired", "held", "own", "stored"):
            assert f"'{part}.check': 'success'" in printed, part
        assert printed.count("'refused_") >= len(WRONG_FILES) + 15
        for name in ("unseen_csv", "cell_of_database", "no_server", "frame", "avatarise"):
            assert f"'refused_{name}': 'failed'" in printed, name
        assert "'no_such_object': 'failed'" in printed
    assert "sqlalchemy.engine.Engine DEBUG" in (left.folder / "left" / "debug.log").read_text()


def test_what_was_asked_for_holds_keys_and_is_found(left: Left) -> None:
    """The search finds: what is there on purpose."""
    search = Search(planted())
    for name in ("remediation-passed.csv", "remediation-below.csv", "remediation-command.csv"):
        found = search.found_in((left.folder / "out" / name).read_bytes())
        assert planting.KEY[:12] in found
    projection = search.found_in((left.folder / "out" / "command.projection.json").read_bytes())
    assert {planting.NAMES[0], planting.SMALL_GROUP} <= set(projection)
    # Nobody is named where the pairs cannot be relied on, nor where a measure was refused.
    assert (left.folder / "out" / "remediation-shuffled.csv").read_text() == "file,count\n"
    assert not (left.folder / "out" / "none.csv").exists()


def became(made: str, name: str) -> bool:
    """Tell whether a file was made under a name, or beside it, to be given it when it was whole."""
    return made == name or made.startswith(f".{name}.")


def test_files_with_personal_content_are_their_owners_alone_from_the_first(left: Left) -> None:
    """Made with the umask 0, so that nothing but the package itself keeps others out."""
    search, made = Search(planted()), left.watched["made"]
    # Nothing else holds any: see above.
    suspected = ((name, content) for name, content in left.files() if is_asked_for(name) or is_of_a_command(name))
    personal = {name for name, content in suspected if search.found_in(content)}
    assert len(personal) > 4
    for name in personal:
        here = name.replace("!", "/").rpartition("/")[2]
        # What a command writes into the folder that is its own bears the same names.
        of_commands = is_of_a_command(name)
        rights = [
            mode
            for path, mode in made.items()
            if became(Path(path).name, here) and ("/local-cloaking-" in path) == of_commands
        ]
        assert rights, f"nobody saw {name} come into being"
        if not of_commands:
            assert {oct(mode) for mode in rights} == {"0o600"}, name
    folders = {Path(path).parent for path in made if "/tmp/local-cloaking-" in path}
    assert all(not folder.exists() for folder in folders)
    for path in files_below(left.folder / "out"):
        if is_asked_for(str(path.relative_to(left.folder))):
            assert oct(path.stat().st_mode & 0o777) == "0o600", path


def test_nothing_is_left_in_the_temporary_folder_or_where_it_was_started(left: Left) -> None:
    assert list(files_below(left.folder / "work")) == []
    assert [path.name for path in files_below(left.folder / "tmp") if "local-cloaking" in str(path)] == []


def test_nobody_was_called_but_loopback(left: Left) -> None:
    """Neither Great Expectations nor anybody else tells anybody of the run."""
    asked = [one for one in left.watched["called"] if not one.startswith("program")]
    assert asked
    assert [one for one in asked if "127.0.0.1" not in one and not one.startswith(("'/", "/", "b'"))] == []
