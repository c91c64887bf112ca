"""The command line: ``local-cloaking measure``, ``report``, ``verify``, ``avatarise`` and ``advise``.

Exit codes: 0 measured, and passed where a threshold was given, or the record agrees, or a k was found; 1 not
passed, not assessable, or the record differs, or no k reaches the threshold; 2 refused.
"""

from __future__ import annotations

import csv
import hashlib
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any

import typer

from local_cloaking.errors import InputError, LocalCloakingError, without_message
from local_cloaking.limits import MIN_GROUP_SIZE, SMALLEST_ADVISED_K

if TYPE_CHECKING:
    from local_cloaking.gate import Watch
    from local_cloaking.trying import TriedK

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Local Cloaking: how many other avatars stand between an original and its own.",
)

NOT_PASSED = 1
DIFFERS = 1
REFUSED = 2

_OTHER = "name another file"

_A_TABLE = "A path, a URI, or a table of a database as sql://CONNECTION/TABLE; one row per individual."

Separator = Annotated[str | None, typer.Option(help="CSV: what separates cells; found out by default.")]
DecimalMark = Annotated[str | None, typer.Option(help="CSV: '.' or ','; found out by default.")]
Encoding = Annotated[str | None, typer.Option(help="CSV: as utf-8 or latin-1; found out by default.")]
Key = Annotated[str | None, typer.Option(help="Column that pairs the tables and is not measured.")]
Categorical = Annotated[
    list[str] | None,
    typer.Option(metavar="A,B,C", help="Columns to treat as categories, whatever their type."),
]
Drop = Annotated[list[str] | None, typer.Option(metavar="A,B,C", help="Columns to leave out.")]
Language = Annotated[str | None, typer.Option("--lang", metavar="en|fr", help="Language of the report.")]
Dask = Annotated[
    str | None,
    typer.Option(
        metavar="tcp://HOST:PORT",
        help="Measure on the workers of this Dask scheduler: folders of Parquet files, also as URIs.",
    ),
]
Projection = Annotated[str | None, typer.Option(help="The projection that the avatarisation wrote (JSON).")]
PairingTable = Annotated[
    str | None, typer.Option(help="Table of two columns: keys of originals, keys of their avatars.")
]
OriginalCoordinates = Annotated[
    str | None, typer.Option(help="Bare coordinates of the originals, instead of a projection.")
]
AvatarCoordinates = Annotated[str | None, typer.Option(help="Bare coordinates of the avatars.")]


@app.callback()
def _main() -> None:
    """Local Cloaking: how many other avatars stand between an original and its own."""


@app.command()
def measure(
    originals: Annotated[str, typer.Argument(help=_A_TABLE)],
    avatars: Annotated[str, typer.Argument(help="The avatars, with the same columns.")],
    key: Key = None,
    pairing: PairingTable = None,
    ncp: Annotated[int | None, typer.Option(help="Components; by default the projection's, else 5.")] = None,
    categorical: Categorical = None,
    drop: Drop = None,
    projection: Projection = None,
    original_coordinates: OriginalCoordinates = None,
    avatar_coordinates: AvatarCoordinates = None,
    groups: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B,C", help="Columns whose groups are reported, each among all avatars."),
    ] = None,
    min_group_size: Annotated[
        int, typer.Option(help="Groups of fewer individuals are merged or withheld; at least 5.")
    ] = MIN_GROUP_SIZE,
    threshold: Annotated[
        str | None, typer.Option(metavar="T", help="The smallest Local Cloaking that passes.")
    ] = None,
    threshold_set_by: Annotated[str | None, typer.Option(help="Who set the threshold, for the record.")] = None,
    warn_below: Annotated[
        str | None, typer.Option(metavar="T", help="Warn of a pass below this, a bound above the threshold.")
    ] = None,
    k: Annotated[int | None, typer.Option(help="The k of the avatarisation, for record and remedy.")] = None,
    data_set: Annotated[str | None, typer.Option(help="A name for the record.")] = None,
    dask: Dask = None,
    json_file: Annotated[str | None, typer.Option("--json", metavar="FILE", help="Write the record here.")] = None,
    report_file: Annotated[
        str | None, typer.Option("--report", metavar="FILE", help="Write the report (HTML) here.")
    ] = None,
    language: Language = None,
    remediation: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write the keys of the individuals with the lowest counts here (CSV), for its owner alone: "
            "it names people.",
        ),
    ] = None,
    separator: Separator = None,
    decimal: DecimalMark = None,
    encoding: Encoding = None,
) -> None:
    """Measure Local Cloaking, and judge it where a threshold is given."""

    def work() -> int:
        from local_cloaking.audit.record import build_record, peers_in
        from local_cloaking.audit.store import write_whole
        from local_cloaking.gate import great_expectations, judge
        from local_cloaking.measuring import Inputs, measure_inputs, now
        from local_cloaking.progress import first_calling, progress_bar
        from local_cloaking.tables import CsvOptions

        least, watch = _bounds(threshold, warn_below)
        _refuse_unknown_language(language)
        files = (originals, avatars, projection, pairing, original_coordinates, avatar_coordinates)
        inputs = replace(Inputs(*map(_place, files)), csv=CsvOptions(separator, decimal, encoding))
        record_place, report_place, weakest_place = map(_target, (json_file, report_file, remediation))
        _refuse_targets((record_place, report_place, weakest_place), list(vars(inputs).values()))
        with progress_bar() as bar:
            # The counting leaves Python to others: what takes them seconds to import costs it little.
            progress = bar if least is None else first_calling(partial(_make_ready, great_expectations), bar)
            measured = measure_inputs(
                inputs,
                scheduler=dask,
                ncp=ncp,
                key=key,
                categorical=_names(categorical),
                drop=_names(drop),
                groups=_names(groups),
                min_group_size=min_group_size,
                data_set=data_set,
                k=k,
                ladder=json_file is not None or report_file is not None,
                remediation=remediation is not None,
                progress=progress,
            )
        judgement = None
        if least is not None:
            judgement = judge(
                measured.result.counts,
                individuals=measured.result.n,
                threshold=least,
                reason=measured.result.reason,
                peers=peers_in(measured.entries),
            )
        record = build_record(
            measured.entries,
            measured.result.counts,
            judgement,
            threshold_set_by=threshold_set_by,
            watch=watch,
            judged={"at": now()},
        )
        _tell(record, record_place, report_place, language)
        if weakest_place is not None and measured.weakest is not None:
            write_whole(weakest_place, measured.weakest, private=True, replace=True)
        passed = judgement.verdict == "passed" if judgement else measured.result.reason is None
        return 0 if passed else NOT_PASSED

    _run(work)


@app.command()
def report(
    record: Annotated[str, typer.Argument(help="The record of a check (JSON).")],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to write; replaced if it is there.")
    ],
    advice: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What `advise --json` wrote: shown with the remedy.")
    ] = None,
    language: Language = None,
) -> None:
    """Draw the report of a record again."""

    def work() -> int:
        from local_cloaking.audit.advice import read_advice
        from local_cloaking.audit.consistency import agrees_with_itself, read_record
        from local_cloaking.audit.record import RecordError
        from local_cloaking.audit.report import draw_report
        from local_cloaking.audit.store import write_whole

        _refuse_unknown_language(language)
        target = _target(output)
        _refuse_targets((target,), (_place(record), advice))
        content = _file(record)
        tried = None if advice is None else read_advice(advice.read_bytes())
        entries = read_record(content)
        if not agrees_with_itself(entries):
            raise RecordError("the record contradicts itself (see `local-cloaking verify`): it is not drawn")
        write_whole(
            target,
            draw_report(entries, language=language, sha256=hashlib.sha256(content).hexdigest(), advice=tried),
            replace=True,
        )
        return 0

    _run(work)


@app.command()
def verify(
    record: Annotated[str, typer.Argument(help="The record of a check (JSON).")],
    originals: Annotated[
        str | None, typer.Option(help="The originals that were measured; with them, all is measured again.")
    ] = None,
    avatars: Annotated[str | None, typer.Option(help="The avatars that were measured.")] = None,
    projection: Projection = None,
    pairing: PairingTable = None,
    original_coordinates: OriginalCoordinates = None,
    avatar_coordinates: AvatarCoordinates = None,
    sha256: Annotated[
        str | None, typer.Option(help="The record's SHA-256, as the check's XCom or the asset event has it.")
    ] = None,
    dask: Dask = None,
) -> None:
    """Compute what a record says again, and tell what differs."""

    def work() -> int:
        from local_cloaking.audit.verify import verify_record
        from local_cloaking.measuring import Inputs

        files = (originals, avatars, projection, pairing, original_coordinates, avatar_coordinates)
        if any(file is not None for file in files) and (originals is None or avatars is None):
            raise InputError("not all of the files are given", remedy="give both --originals and --avatars")
        inputs = None
        if originals is not None and avatars is not None:
            inputs = Inputs(*map(_place, files))
        findings = verify_record(_file(record), sha256=sha256, inputs=inputs, scheduler=dask)
        for finding in findings:
            word = {True: "agrees ", False: "DIFFERS", None: "to know"}[finding.agrees]
            typer.echo(_shown(f"{word}  {finding.what}{': ' if finding.detail else ''}{finding.detail}"))
        differing = sum(finding.agrees is False for finding in findings)
        typer.echo(f"{differing} differ" if differing else _agreement(inputs is not None, sha256 is not None))
        return DIFFERS if differing else 0

    _run(work)


def _shown(text: str) -> str:
    """Return a text of a file such that it cannot command a terminal, and can be written to any."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def _agreement(with_files: bool, with_hash: bool) -> str:
    parts = ["with itself", *["with the files"] * with_files, *["with the hash"] * with_hash]
    left = [
        *["the files were not looked at"] * (not with_files),
        *["threshold, names and times are as the record says: compare --sha256 with the check's XCom"]
        * (not with_hash),
    ]
    return "; ".join([f"the record agrees {' and '.join(parts)}", *left])


@app.command()
def avatarise(
    originals: Annotated[str, typer.Argument(help=_A_TABLE)],
    output: Annotated[
        str,
        typer.Option("--output", "-o", help="Where to write: .csv, .csv.gz or .parquet; replaced if it is there."),
    ],
    k: Annotated[int, typer.Option(help="Neighbours that an avatar draws on.")] = 20,
    ncp: Annotated[int, typer.Option(help="Components in which neighbours are sought.")] = 5,
    seed: Annotated[int | None, typer.Option(help="Seed of the random weights.")] = None,
    key: Key = None,
    categorical: Categorical = None,
    drop: Drop = None,
    projection: Annotated[
        str | None, typer.Option(help="Write the projection here, for `measure --projection`.")
    ] = None,
    separator: Separator = None,
    decimal: DecimalMark = None,
    encoding: Encoding = None,
) -> None:
    """Make one avatar per original, by the published algorithm: for demonstrations and for choosing k."""

    def work() -> int:
        from local_cloaking.audit.store import write_whole
        from local_cloaking.measuring import avatarise_file
        from local_cloaking.tables import CsvOptions

        source, target, space = _place(originals), _target(output), _target(projection)
        _refuse_targets((target, space), (source,))
        made = avatarise_file(
            source,
            target.name,
            k=k,
            ncp=ncp,
            seed=seed,
            key=key,
            categorical=_names(categorical),
            drop=_names(drop),
            csv=CsvOptions(separator, decimal, encoding),
        )
        if space is not None:
            write_whole(space, made.projection, private=True, replace=True)
        write_whole(target, made.avatars, private=True, replace=True)
        typer.echo(f"{made.n} avatars (k={k}, ncp={ncp}) in {output}")
        return 0

    _run(work)


@app.command()
def advise(
    originals: Annotated[str, typer.Argument(help=_A_TABLE)],
    threshold: Annotated[str, typer.Option(metavar="T", help="The smallest Local Cloaking that is to pass.")],
    margin: Annotated[str, typer.Option(metavar="M", help="By how much it is to exceed the threshold.")] = "0",
    k_min: Annotated[int, typer.Option(help="The smallest k to try.")] = SMALLEST_ADVISED_K,
    k_max: Annotated[int | None, typer.Option(help="The largest k to try; by default 0.3 n, 500 at most.")] = None,
    seeds: Annotated[
        list[str] | None, typer.Option(metavar="A,B,C", help="Seeds tried with each k; by default 1,2,3.")
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            metavar="LINE",
            help="What makes the avatars, with {k} and {output}, and if wanted {seed}, {ncp}, {originals} and "
            "{projection}; run without a shell. By default the published algorithm.",
        ),
    ] = None,
    ncp: Annotated[int, typer.Option(help="Components of avatarisation and measure.")] = 5,
    key: Key = None,
    categorical: Categorical = None,
    drop: Drop = None,
    data_set: Annotated[str | None, typer.Option(help="A name for what is written down.")] = None,
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write all that was tried here.")
    ] = None,
    report_file: Annotated[
        str | None, typer.Option("--report", metavar="FILE", help="Write a page with plots (HTML) here.")
    ] = None,
    language: Language = None,
    separator: Separator = None,
    decimal: DecimalMark = None,
    encoding: Encoding = None,
) -> None:
    """Find the smallest k whose Local Cloaking reaches a threshold, by trying."""

    def work() -> int:
        from local_cloaking.advising import Request, advise_file
        from local_cloaking.audit.record import to_bytes
        from local_cloaking.audit.store import write_whole
        from local_cloaking.summary import advice_lines
        from local_cloaking.tables import CsvOptions

        _refuse_unknown_language(language)
        source, advice_place, report_place = _place(originals), _target(json_file), _target(report_file)
        _refuse_targets((advice_place, report_place), (source,))
        request = Request(
            source,
            threshold,
            margin=margin,
            k_min=k_min,
            k_max=k_max,
            seeds=_names(seeds),
            ncp=ncp,
            key=key,
            categorical=_names(categorical),
            drop=_names(drop),
            command=command,
            show_output=True,
            csv=CsvOptions(separator, decimal, encoding),
            data_set=data_set,
        )
        advice = advise_file(request, told=_tell_of_k)
        content = to_bytes(advice)
        if report_place is not None:
            from local_cloaking.audit.advice_report import draw_advice

            write_whole(report_place, draw_advice(advice, language=language), replace=True)
        if advice_place is not None:
            write_whole(advice_place, content, replace=True)
        typer.echo("\n".join(advice_lines(advice, None if advice_place is None else str(advice_place))))
        return NOT_PASSED if advice["k"] is None else 0

    _run(work)


def _tell_of_k(tried: TriedK) -> None:
    """Say in a terminal how far the search is."""
    if sys.stderr.isatty():
        figure = "not known" if tried.local_cloaking is None else f"{tried.local_cloaking:g}"
        typer.echo(f"tried k = {tried.k}: Local Cloaking {figure}", err=True)


def _place(name: str | None) -> Any:
    """Return what names a table or a file, None where there is none; see `local_cloaking.sources`."""
    from local_cloaking.sources import source_of

    return None if name is None else source_of(name)


def _target(name: str | None) -> Any:
    return None if name is None else _no_database(_place(name), "a database is no place to write to")


def _no_database(place: Any, problem: str) -> Any:
    if not hasattr(place, "open"):
        raise InputError(problem, remedy="name a file or a URI", file=place.name)
    return place


def _file(name: str) -> bytes:
    from local_cloaking.storage import read_whole

    return read_whole(_no_database(_place(name), "a table of a database is no file"))


def _refuse_targets(targets: Sequence[Any], sources: Sequence[Any]) -> None:
    """Refuse what cannot be written, or would be written over what is read, before any work is done."""
    taken: set[Any] = {_resolved(place) for place in sources if hasattr(place, "open")}
    for target in (path for path in targets if path is not None):
        if not isinstance(target, Path):
            _refuse_stored(target, taken)
            continue
        if target.exists() and not target.is_file():
            kind = "a folder stands" if target.is_dir() else "no plain file stands"
            raise InputError(f"{kind} where the file is to be written", remedy=_OTHER, file=target.name)
        folder = target.resolve().parent
        if target.resolve() in taken or (folder in taken and folder.is_dir()):
            raise InputError(
                "it would be written over another file of this command", remedy=_OTHER, file=target.name
            )
        taken.add(target.resolve())
        _refuse_unwritable(target.resolve())


def _resolved(place: Any) -> Any:
    return place.resolve() if isinstance(place, Path) else str(place)


def _refuse_stored(target: Any, taken: set[Any]) -> None:
    if str(target) in taken:
        raise InputError("it would be written over another file of this command", remedy=_OTHER, file=target.name)
    taken.add(str(target))


def _refuse_unwritable(target: Path) -> None:
    """Try the nearest folder that is there, so that what would fail at the end fails at once."""
    folder = next(folder for folder in target.parents if folder.exists())
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        error.filename = str(target)
        raise


def _make_ready(module: Callable[[], Any]) -> None:
    """Begin a slow import beside other work; whoever needs it waits for the rest."""

    def begin() -> None:
        # What goes wrong here goes wrong again where the module is needed, and is told there.
        with suppress(Exception):
            module()

    Thread(target=begin, daemon=True).start()


def _run(work: Callable[[], int]) -> None:
    try:
        code = work()
    except LocalCloakingError as error:
        _refuse(str(error))
    except BrokenPipeError:
        raise  # The reader of our output has gone: that is no refusal.
    except OSError as error:
        # Only what the system says: no traceback for a file that is not there.
        _refuse(f"{error.filename or 'file'}: {error.strerror}" if error.strerror else str(error))
    except MemoryError:
        _refuse("there is not enough memory for tables of this size")
    except Exception as error:
        if isinstance(error, typer.Exit | typer.Abort):
            raise
        raise without_message(error) from None
    else:
        raise typer.Exit(code)


def _refuse(message: str) -> None:
    typer.echo(f"refused: {message}", err=True)
    raise typer.Exit(REFUSED)


def _names(options: list[str] | None) -> list[str]:
    # By the rules of CSV, so that a name with a comma can be given in quotes.
    try:
        return [name for names in csv.reader(options or [], skipinitialspace=True) for name in names if name]
    except csv.Error as error:
        raise InputError("a list of names holds a line break", remedy="give A,B,C in one line") from error


def _tell(record: dict[str, Any], json_file: Any, report_file: Any, language: str | None) -> None:
    from local_cloaking.audit.record import to_bytes
    from local_cloaking.audit.store import write_whole
    from local_cloaking.summary import print_summary

    where, sha256 = None, None
    if json_file is not None:
        content = to_bytes(record)
        sha256 = hashlib.sha256(content).hexdigest()
        write_whole(json_file, content, replace=True)
        where = f"{json_file} (SHA-256 {sha256})"
    if report_file is not None:
        from local_cloaking.audit.report import draw_report

        write_whole(report_file, draw_report(record, language=language, sha256=sha256), replace=True)
    print_summary(record, where)


def _bounds(threshold: str | None, warn_below: str | None) -> tuple[float | None, Watch]:
    """Return the threshold, and what else is to be told of."""
    from local_cloaking.gate import Watch, checked_threshold, checked_warn_below

    if threshold is None:
        if warn_below is not None:
            raise InputError("--warn-below is given without --threshold", remedy="give a threshold below it")
        return None, Watch()
    least = checked_threshold(threshold)
    return least, Watch() if warn_below is None else Watch(checked_warn_below(warn_below, least))


def _refuse_unknown_language(language: str | None) -> None:
    if language is not None:
        from local_cloaking.audit.languages import language_of

        language_of(language)


if __name__ == "__main__":
    app()
