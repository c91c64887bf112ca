"""What a day leaves: gates of every outcome, refusals of every kind, the command line. Run by the tests.

    python -m tests.secrecy.watched_run FOLDER quick|whole

Everything is logged at DEBUG, nothing masks files by the umask, and whatever is written is kept (`watching`).
"""

from __future__ import annotations

import logging
import os
import sys
import textwrap
import traceback
from pathlib import Path
from types import SimpleNamespace

from tests.secrecy.planting import PASSWORD, RARE, write_all
from tests.secrecy.watching import Watch

MAKER = """
import sys, pandas as pd
print("made for", open(sys.argv[1]).read()[:4000])
print(open(sys.argv[1]).read()[:4000], file=sys.stderr)
pd.read_csv(sys.argv[1]).drop(columns="mail").to_csv(sys.argv[2], index=False)
if sys.argv[3] == "99":
    raise SystemExit("gave up over " + open(sys.argv[1]).read()[:4000])
"""

HEAD = """
import json, os, urllib.request
import pandas as pd
import pendulum
from airflow.sdk import DAG, Asset, task
from airflow.providers.common.compat.sdk import BaseNotifier
from airflow.providers.smtp.notifications.smtp import SmtpNotifier
from local_cloaking.airflow import *
from local_cloaking.airflow import LocalCloakingOperator as Measure

DATA, OUT = {data!r}, {out!r}
KEYED = dict(key="file", ncp=3, drop=["mail"])


class Webhook(BaseNotifier):
    template_fields = ("said",)

    def __init__(self, variable, said="{{{{ local_cloaking | tojson }}}}"):
        super().__init__()
        self.variable, self.said = variable, said

    def notify(self, context):
        body = json.dumps({{"said": self.said, **context["local_cloaking"]}}).encode()
        urllib.request.urlopen(urllib.request.Request(os.environ[self.variable], body), timeout=30).close()


TOLD = LocalCloakingNotifier(always=True, via=[
    SmtpNotifier(to="officer@example.org", subject="{{{{ local_cloaking.subject }}}}",
                 html_content="{{{{ local_cloaking.html }}}}"),
    Webhook("HOOK"), Webhook("NO_HOOK")])

with DAG("{name}", schedule=None, start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
         default_args=dict(retries=0)) as dag:
"""

#: Gates of every outcome, with everything that can be asked for.
GATES = """
avatars = dict(originals=f"{DATA}/originals.csv", avatars=f"{DATA}/avatars.csv", **KEYED)
for name, threshold, more in [
    ("passed", 1, dict(language="fr", warn_below=250, outlet=Asset("released"), compare_with_previous=True)),
    ("below", 290, dict(k=20)),
]:
    gate = local_cloaking_gate(name, threshold=threshold, groups=["town", "smokes"], notify=TOLD,
                               remediation=f"{OUT}/remediation-{name}.csv", **more, **avatars)
@task(task_id="publish", trigger_rule="all_done")
def publish(verdict):
    return str(require_passed(verdict, f"{DATA}/avatars.csv"))
publish(gate.verdict)
local_cloaking_gate("shuffled", threshold=2, notify=TOLD, groups=["town"],
                    remediation=f"{OUT}/remediation-shuffled.csv",
                    **{**avatars, "avatars": f"{DATA}/shuffled.csv"})
"""

#: Of the other ways to say what belongs to whom, to make avatars, and to choose k.
OTHER_GATES = """
local_cloaking_gate("database", threshold=1, originals="sql://registry/patients", avatars="sql://registry/avatars",
                    **KEYED)
local_cloaking_gate("paired", threshold=1, originals=f"{DATA}/originals.csv", avatars=f"{DATA}/renamed.csv",
                    pairing=f"{DATA}/pairing.csv", ncp=3, drop=["mail"])
local_cloaking_gate("bare", threshold=1, originals=f"{DATA}/originals.csv", avatars=f"{DATA}/avatars.csv",
                    original_coordinates=f"{DATA}/original-coordinates.csv", drop=["mail"],
                    avatar_coordinates=f"{DATA}/avatar-coordinates.csv", key="file", ncp=3)
local_cloaking_gate("held", threshold=1, originals=pd.read_parquet(f"{DATA}/originals.parquet"),
                    avatars=pd.read_parquet(f"{DATA}/avatars.parquet"), **KEYED)
made = AvatariseOperator(task_id="avatarise", originals=f"{DATA}/originals.csv", avatars=f"{OUT}/avatars.csv",
                         k=20, seed=1, **KEYED)
local_cloaking_gate("own", threshold=1, originals=f"{DATA}/originals.csv", avatars=made.output["avatars"],
                    projection=made.output["projection"], key="file", drop=["mail"])
local_cloaking_advice("advice", originals=f"{DATA}/originals.parquet", threshold=2, seeds=[1], k_max=12, **KEYED)
local_cloaking_advice("command", originals=f"{DATA}/originals.csv", threshold=2, seeds=[1], k_min=8, k_max=8,
                      command=COMMAND + " {k}", **KEYED)
local_cloaking_advice("gives_up", originals=f"{DATA}/originals.csv", threshold=2, seeds=[1], k_min=99, k_max=99,
                      command=COMMAND + " {k}", **KEYED)
"""

IN_S3 = """
gate = local_cloaking_gate("stored", originals="s3://lake@lake/originals.csv", avatars="s3://lake@lake/avatars.csv",
                           threshold=1, audit_path="s3://lake@lake/audit", notify=TOLD,
                           remediation="s3://lake@lake/out/remediation.csv", **KEYED)
AvatariseOperator(task_id="to_storage", originals="s3://lake@lake/originals.csv", k=20,
                  avatars="s3://lake@lake/out/avatars.csv", **KEYED)
Measure(task_id="no_such_object", originals="s3://lake@lake/none.csv", avatars="s3://lake@lake/avatars.csv",
        **KEYED)
"""

#: What is refused, task by task.
REFUSED = """
from tests.secrecy.refusals import refusals

for name, arguments in refusals(DATA).items():
    Measure(task_id=f"refused_{name}", remediation=f"{OUT}/none.csv", on_failure_callback=TOLD, **arguments)
AvatariseOperator(task_id="refused_avatarise", originals=f"{DATA}/stray.csv", avatars=f"{OUT}/none.csv", k=20,
                  **KEYED)
AvatariseOperator(task_id="refused_no_key", originals=f"{DATA}/originals.csv", avatars=f"{OUT}/none.csv", k=20)
local_cloaking_advice("refused_advice", originals=f"{DATA}/originals.csv", threshold=2, seeds=[1])

@task
def refused_publish():
    return str(require_passed({"record": f"{DATA}/avatars.csv", "record_sha256": "0"}, f"{DATA}/avatars.csv"))
refused_publish()
"""

COMMANDS = """
measure {d}/originals.csv {d}/avatars.csv --key file --drop mail --ncp 3 --threshold 1 --groups town
  --json {o}/r.json --report {o}/r.html --remediation {o}/remediation-command.csv --lang fr
measure {d}/originals.csv {d}/avatars.csv --key file --drop mail --ncp 3 --threshold 290 --json {o}/below.json
measure {d}/originals.csv {d}/unseen.csv --key file --drop mail
measure {d}/originals.csv {d}/quoted.csv --key file --drop mail
measure {d}/originals.csv {d}/avatars.csv --key file
measure postgresql+psycopg2://tester:{password}@127.0.0.1:9/db#patients {d}/avatars.csv --key file
measure sqlite:///{d}/registry.db#patients sqlite:///{d}/registry.db#wrong --key file --drop mail
verify {o}/r.json --originals {d}/originals.csv --avatars {d}/avatars.csv
verify {d}/projection.json
report {o}/r.json -o {o}/again.html
report {d}/projection.json -o {o}/none.html
avatarise {d}/originals.csv -o {o}/avatars-command.parquet --key file --drop mail
  --projection {o}/command.projection.json
avatarise {d}/originals.csv -o {o}/none.csv
advise {d}/originals.csv --threshold 2 --seeds 1 --k-max 8 --key file --drop mail --json {o}/advice.json
  --report {o}/advice.html
"""


def log_everything(folder: Path) -> None:
    """Let every logger speak at DEBUG, whatever anybody sets it to, and keep it with whole tracebacks."""
    set_level = logging.Logger.setLevel
    logging.Logger.setLevel = lambda self, level: set_level(self, logging.DEBUG)  # type: ignore[method-assign]
    root = logging.getLogger()
    root.setLevel(logging.DEBUG)
    kept = logging.FileHandler(folder / "left" / "debug.log", encoding="utf-8", errors="backslashreplace")
    kept.setFormatter(logging.Formatter("%(name)s %(levelname)s %(message)s"))
    handle = logging.Logger.handle

    def handle_and_keep(self: logging.Logger, record: logging.LogRecord) -> None:
        # Also of loggers that do not propagate, or were disabled; but by their filters.
        if self.filter(record):
            kept.handle(record)
        handle(self, record)

    logging.Logger.handle = handle_and_keep  # type: ignore[method-assign]
    # It logs each instruction that it compiles, by the ten thousand, and never sees a value.
    logging.getLogger("numba").disabled = True


def run_dags(folder: Path, how: str) -> None:
    """Run each part as a DAG."""
    from tests.integration.conftest import run_file

    data, out = str(folder / "data"), str(folder / "out")
    maker = folder / "data" / "maker.py"
    maker.write_text(MAKER)
    before = f"COMMAND = {f'{sys.executable} {maker} {{originals}} {{output}}'!r}\n"
    parts = {"gates": GATES}
    if how == "whole":
        parts |= {"others": OTHER_GATES, "refused": REFUSED, "stored": IN_S3}
    for name, body in parts.items():
        path = folder / "airflow" / "dags" / f"{name}.py"
        head = HEAD.format(data=data, out=out, name=name)
        path.write_text(before + head + textwrap.indent(body, "    "))
        print("states", run_file(path).states)


def write_database(folder: Path) -> None:
    """Write a registry; its table `wrong` holds names where its column says a date."""
    import sqlite3

    import pandas as pd

    with sqlite3.connect(folder / "registry.db") as connection:
        for table in ("patients", "wrong", "avatars"):
            frame = pd.read_csv(folder / ("avatars.csv" if table == "avatars" else "originals.csv"))
            names = ", ".join(f'"{name}" {"DATE" if name == "born" else ""}' for name in frame.columns)
            connection.execute(f'CREATE TABLE "{table}" ({names})')
            frame.astype({"smokes": int}).to_sql(table, connection, index=False, if_exists="append")
        connection.execute("UPDATE wrong SET born = work WHERE rowid = 11")


def run_commands(folder: Path) -> None:
    """Run the command line, line by line."""
    import shlex
    from urllib.parse import quote

    from local_cloaking.cli import app

    for line in COMMANDS.replace("\n  ", " ").strip().splitlines():
        words = shlex.split(line.format(d=folder / "data", o=folder / "out", password=quote(PASSWORD, safe="")))
        try:
            app(words, standalone_mode=True)
        except SystemExit as ended:
            print("ended", words[0], ended.code)


def refuse_all(folder: Path) -> None:
    """Be refused in every way, without a task for each; and log it as a task does that fails."""
    import structlog

    from local_cloaking.airflow import LocalCloakingOperator
    from local_cloaking.airflow.runs import refusals_are_final
    from tests.secrecy.refusals import refusals

    # As Airflow writes down what failed, in its log of a task.
    shown = structlog.tracebacks.ExceptionDictTransformer(use_rich=False, show_locals=False)
    ti = SimpleNamespace(dag_id="d", run_id="r", task_id="t", map_index=-1, try_number=1, id="0" * 32)
    context = {"ti": ti, "dag": SimpleNamespace(timezone=None)}
    for name, arguments in refusals(str(folder / "data")).items():
        operator = LocalCloakingOperator(task_id=name, remediation=str(folder / "out" / "none.csv"), **arguments)
        try:
            with refusals_are_final():
                operator._measure(context)
        except Exception as error:
            logging.getLogger("airflow.task").exception("Task failed with exception")
            print("refused", name, repr(error), shown((type(error), error, error.__traceback__)))
        else:
            raise AssertionError(f"{name} was not refused")


def main(folder: Path, how: str) -> None:
    """Do everything."""
    os.umask(0)
    write_all(folder / "data")
    write_database(folder / "data")
    for name in ("left", "out", "tmp", "work"):
        (folder / name).mkdir(exist_ok=True)
    os.chdir(folder / "work")
    log_everything(folder)
    watch = Watch(folder / "kept", folder / "tmp", folder / "work", folder / "out", folder / "airflow")
    watch.start()
    try:
        run_dags(folder, how)
        if how == "quick":
            refuse_all(folder)
        run_commands(folder)
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        watch.end(folder / "watched.json")
    print("done", RARE)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2])
