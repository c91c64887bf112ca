"""Options of command line, operators and functions: whatever they hold, a measure or a refusal."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hypothesis import strategies as st

from local_cloaking.errors import LocalCloakingError
from tests.fuzz.mutated_json import VALUES
from tests.fuzz.records import by_itself
from tests.fuzz.tables import OTHER

#: What each way of asking takes as options.
_NAMES = ("key", "categorical", "drop", "groups")
_CSV = ("separator", "decimal", "encoding")
_NUMBERS = ("ncp", "k", "min_group_size")
_BOUNDS = ("threshold", "warn_below")
_PLACES = ("projection", "pairing", "original_coordinates", "avatar_coordinates")
_OF_MEASURE = (*_NAMES, *_CSV, *_NUMBERS, *_PLACES, "data_set")
OPTIONS: dict[str, tuple[str, ...]] = {
    "measure": (*_OF_MEASURE, *_BOUNDS, "threshold_set_by", "json", "report", "remediation", "lang"),
    "avatarise": ("k", "ncp", "seed", "key", "categorical", "drop", "projection", *_CSV),
    "advise": (
        *_BOUNDS[:1],
        "margin",
        "k_min",
        "k_max",
        "seeds",
        "command",
        "ncp",
        "key",
        *_NAMES[1:3],
        "lang",
        *_CSV,
    ),
    "report": ("lang", "advice"),
    "verify": ("sha256", "originals", "avatars", *_PLACES),
    "measure operator": (*_OF_MEASURE, "remediation", "originals", "avatars", "audit_path"),
    "avatarise operator": ("k", "ncp", "seed", "key", "categorical", "drop", "projection", *_CSV, "originals"),
    "check operator": ("measured", *_BOUNDS, "compare_with_previous", "max_drop", "threshold_set_by", "language"),
    "require_passed": ("verdict", "avatars", "accept_unverified"),
    "measure_files": (*_NAMES[1:], *_NUMBERS, *_CSV, "key"),
    "bounds": (*_BOUNDS, "max_drop", "margin"),
    "arguments": (*_NAMES, *_NUMBERS, *_CSV, "originals", "measured", "compare_with_previous", "language"),
}
_WRITTEN = {"json": "record.json", "report": "report.html", "remediation": "weakest.csv"}


def prepare() -> None:
    """Import what is imported late, with an Airflow of the tests' own."""
    from tests.fuzz.page import prepare as of_airflow
    from tests.fuzz.records import prepare as of_records

    of_airflow()
    of_records()

    folder()


@cache
def folder() -> Path:
    """Return a folder with two tables in it, which is also where relative paths lead."""
    place = Path(tempfile.mkdtemp(prefix="fuzz-"))
    os.chdir(place)
    _fill(place)
    return place


def _fill(place: Path) -> None:
    shutil.rmtree(place / "made", ignore_errors=True)
    (place / "made").mkdir()
    (place / "originals.csv").write_bytes(OTHER)
    (place / "avatars.csv").write_bytes(OTHER)
    (place / "record.json").write_bytes((Path(__file__).parent / "corpus" / "verify" / "passed.json").read_bytes())


def once(data: bytes) -> None:
    asked = json.loads(data)
    place = folder()
    try:
        _WAYS.get(asked["how"], _by_command)(asked["how"], asked["options"])
    except (LocalCloakingError, OSError) as refusal:
        assert str(refusal)
    assert (place / "originals.csv").read_bytes() == OTHER
    assert (place / "avatars.csv").read_bytes() == OTHER
    if (place / "made").stat().st_nlink > 2 or any((place / "made").iterdir()):
        _fill(place)


# How it is asked -------------------------------------------------------------------------------------------------


def _by_command(how: str, options: dict[str, Any]) -> None:
    from typer.testing import CliRunner

    from local_cloaking.cli import app

    arguments = {
        "measure": ["originals.csv", "avatars.csv"],
        "avatarise": ["originals.csv", "--output=made/avatars.csv"],
        "advise": ["originals.csv"],
        "report": ["record.json", "--output=made/report.html"],
        "verify": ["record.json"],
    }[how]
    for name, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            text = _as_argument(one)
            if text is not None:
                arguments.append(f"--{name.replace('_', '-')}={text}")
    by_itself(CliRunner().invoke(app, [how, *arguments]))


def _as_argument(value: Any) -> str | None:
    """Return a value as a shell can hand it over, if it can."""
    text = str(value)[:5000] if not isinstance(value, int) else f"{value:x}"[:20]
    text = "".join(one for one in text if one != "\x00" and not "\ud800" <= one <= "\udfff")
    return None if value is None else text


def _context(number: int) -> dict[str, Any]:
    run = {"dag_id": "trial", "run_id": "manual", "task_id": "measure", "map_index": -1, "try_number": 1}
    ti = SimpleNamespace(**run, id=f"{number:012d}", xcom_push=lambda **_: None)
    return {"ti": ti, "dag": SimpleNamespace(timezone=None), "outlet_events": {}}


@cache
def _measured() -> dict[str, Any]:
    from local_cloaking.airflow.operators.measure import LocalCloakingOperator

    task = LocalCloakingOperator(
        task_id="measure",
        originals="originals.csv",
        avatars="avatars.csv",
        ncp=2,
        audit_path=str(folder() / "kept"),
    )
    return task.execute(_context(0))


def _by_operator(how: str, options: dict[str, Any]) -> None:
    from airflow.exceptions import AirflowException

    from local_cloaking.airflow.guard import require_passed
    from local_cloaking.airflow.operators.avatarise import AvatariseOperator
    from local_cloaking.airflow.operators.check import LocalCloakingCheckOperator
    from local_cloaking.airflow.operators.measure import LocalCloakingOperator

    audit = {"audit_path": str(folder() / "made")}
    try:
        if how == "measure operator":
            tables = {"originals": "originals.csv", "avatars": "avatars.csv"}
            LocalCloakingOperator(task_id="measure", **{**tables, **audit, **options}).execute(_context(1))
        elif how == "check operator":
            given = {"measured": _measured(), "threshold": 5, **audit, **options}
            LocalCloakingCheckOperator(task_id="check", **given).execute(_context(1))
        elif how == "avatarise operator":
            given = {"originals": "originals.csv", "avatars": "made/avatars.csv", **options}
            AvatariseOperator(task_id="avatarise", **given).execute(_context(1))
        else:
            given = {"verdict": {}, "avatars": "avatars.csv", **options}
            require_passed(**given)
            raise AssertionError("nothing has passed here")
    except AirflowException as refusal:
        assert str(refusal)


def _by_function(how: str, options: dict[str, Any]) -> None:
    from local_cloaking.gate import checked_margin, checked_max_drop, checked_threshold, checked_warn_below
    from local_cloaking.measuring import Inputs, measure_files
    from local_cloaking.tables import CsvOptions

    if how == "measure_files":
        csv = CsvOptions(**{name: _text(options.pop(name, None)) for name in _CSV})
        given: dict[str, Any] = {name: _texts(options.pop(name, None)) for name in _NAMES[1:]}
        given["key"] = _text(options.pop("key", None))
        measure_files(Inputs("originals.csv", "avatars.csv", csv=csv), **given, **options)
        return
    checks: dict[str, Callable[[Any], float]] = {
        "threshold": checked_threshold,
        "warn_below": lambda value: checked_warn_below(value, 5.0),
        "max_drop": checked_max_drop,
        "margin": checked_margin,
    }
    for name, value in options.items():
        number = checks[name](value)
        assert number > 0 or (name in ("max_drop", "margin") and number == 0)


def _by_argument(how: str, options: dict[str, Any]) -> None:
    """Read options as every operator reads its own."""
    from local_cloaking.airflow import arguments
    from local_cloaking.audit.languages import language_of

    for name, value in options.items():
        if name in _NAMES:
            assert all(isinstance(one, str) for one in arguments.names(value, name))
        elif name in _NUMBERS:
            assert arguments.whole(value, name) is None or value is not None
        elif name == "originals":
            assert arguments.table(value, name) is not None
        elif name == "measured":
            assert isinstance(arguments.mapping(value, name, "measure"), dict)
        elif name == "compare_with_previous":
            assert arguments.truth(value, name) in (True, False)
        elif name == "language":
            language_of(arguments.text(value, name))
        else:
            arguments.csv_options(value, value, value)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _texts(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


_WAYS: dict[str, Callable[[str, dict[str, Any]], None]] = {
    "measure operator": _by_operator,
    "avatarise operator": _by_operator,
    "check operator": _by_operator,
    "require_passed": _by_operator,
    "measure_files": _by_function,
    "bounds": _by_function,
    "arguments": _by_argument,
}

# What is asked ---------------------------------------------------------------------------------------------------

_ANY = st.one_of(st.sampled_from(VALUES), st.text(max_size=20), st.integers(), st.floats(), st.booleans())
_COLUMNS = st.one_of(
    st.lists(st.sampled_from(["age", "weight", "arm", "", "x", 'a"b', "a,b", "\n"]), max_size=3),
    st.sampled_from(
        ["age", "arm", "age,arm", '["age"]', "[", "[[", '"age', "a\rb", "a\nb", "None", " ", "{{ x }}"]
    ),
)
_SOME_NUMBERS = st.one_of(
    st.integers(-2, 15),
    st.sampled_from(["1", "2", " 3 ", "1e1", "٣", "2.0", "0x2", "1_0", "-0", "inf", "9" * 5000]),
)
_SOME_BOUNDS = st.one_of(st.floats(), _SOME_NUMBERS, st.sampled_from(["5,5", "5.5", ".5", "1e-400", "1e400"]))
_SOME_PLACES = st.sampled_from(
    [
        *(
            "originals.csv",
            "avatars.csv",
            "record.json",
            "absent",
            "made",
            "",
            ".",
            "..",
            "a\x00b",
            "\ud800",
            "x" * 300,
        ),
        *(
            "sql://a/b",
            "sql://",
            "sqlite:///made/x.db#t",
            "sqlite://#",
            "nope://x",
            "memory://x",
            "memory://",
            "file://",
        ),
        *(
            "file:///dev/null",
            "/dev/null",
            "postgresql://u:p@/x#t",
            "x://[",
            "sql://[/x",
            "x://[#y",
            "a@b://c@d/e",
            "://",
        ),
    ]
)
_ENCODINGS = st.sampled_from(
    [
        "utf-8",
        "latin-1",
        "cp1252",
        "utf-16",
        "utf-7",
        "idna",
        "punycode",
        "rot13",
        "zlib",
        "hex",
        "undefined",
        "mbcs",
        *("unicode_escape", "raw_unicode_escape", "utf-32", "cp037", "nope", "", "\x00", "utf\u2212 8", "base64"),
    ]
)
_MARKS = st.sampled_from(
    [",", ";", "tab", "\\t", "\t", ".", "|", "", ",,", "a", '"', "\n", " ", "é", "\x00", "^", "None"]
)
_COMMANDS = st.sampled_from(
    [
        "",
        " ",
        "{k}",
        "{output}",
        "true {k} {output}",
        "false {k} {output}",
        "/absent {k} {output}",
        '"',
        "true {k} {output} {x}",
        "cp originals.csv {output} {k}",
        "test {k} {output} {seed} {ncp} {originals} {projection}",
        "true '{k} {output}",
    ]
)
_RESULTS = st.one_of(
    _ANY,
    st.fixed_dictionaries({}, optional={"counts": _SOME_PLACES, "counts_sha256": _ANY, "record": _SOME_PLACES}),
    st.sampled_from(["{}", "[" * 3000, '{"record": "record.json", "record_sha256": ""}', "{{ ti }}"]),
)


def _values_of(name: str) -> st.SearchStrategy[Any]:
    ordinary: dict[str, st.SearchStrategy[Any]] = {
        **dict.fromkeys(_NAMES, _COLUMNS),
        **dict.fromkeys(("ncp", "k", "seed", "k_min", "k_max", "min_group_size"), _SOME_NUMBERS),
        **dict.fromkeys(("threshold", "warn_below", "max_drop", "margin"), _SOME_BOUNDS),
        **dict.fromkeys((*_PLACES, "advice", "originals", "avatars", "audit_path"), _SOME_PLACES),
        **dict.fromkeys(("separator", "decimal"), _MARKS),
        **dict.fromkeys(("measured", "verdict"), _RESULTS),
        "encoding": _ENCODINGS,
        "command": _COMMANDS,
        "seeds": st.sampled_from(["1", "1,2", "", "a", "1\n2", "-1", "1,1", '"']),
        "lang": st.sampled_from(["en", "fr", "de", "", "EN", "../fr", "x" * 300]),
    }
    if name in _WRITTEN:
        # Never a place that chance makes.
        return st.sampled_from(
            [f"made/{_WRITTEN[name]}", "originals.csv", "made", "absent/made", "sql://a/b", "nope://x"]
        )
    if name in ("command", "projection", "audit_path"):
        return ordinary[name].filter(lambda value: value not in ("/dev/null", "file:///dev/null", "record.json"))
    return st.one_of(ordinary.get(name, _ANY), ordinary.get(name, _ANY), _ANY)


def strategy() -> st.SearchStrategy[list[dict[str, Any]]]:
    """Make some options; what measures takes long, and so comes in one of each list only."""

    def one(how: str) -> st.SearchStrategy[dict[str, Any]]:
        names = st.lists(st.sampled_from(OPTIONS[how]), min_size=1, max_size=4, unique=True)
        values = names.flatmap(lambda chosen: st.fixed_dictionaries({name: _values_of(name) for name in chosen}))
        return values.map(lambda options: {"how": how, "options": options})

    light = ("arguments", "arguments", "bounds", "require_passed")
    return st.tuples(*map(one, light * 4), st.sampled_from(sorted(OPTIONS)).flatmap(one)).map(list)
