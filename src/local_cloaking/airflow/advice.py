"""Choose k as one group of tasks, with one mapped task a value of k."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from airflow.providers.common.compat.sdk import AirflowFailException, TaskGroup
from airflow.sdk import get_current_context, task

from local_cloaking.airflow.arguments import csv_options, location, names, text, whole
from local_cloaking.airflow.runs import evidence_folder, refusals_are_final, run_of, zone_of
from local_cloaking.limits import SMALLEST_ADVISED_K

#: Rounds within the bracket. A DAG is drawn before it runs, so the rounds are counted out beforehand, and each
#: tries as many values at once as it takes to be down to one k at the end: the square root of the bracket's width.
ROUNDS = 2
#: Runs also where nothing was left to try, and the mapped task before was skipped.
_WHATEVER_WAS_LEFT = "none_failed"


class LocalCloakingAdvice(TaskGroup):
    """Tasks that try values of k, and ``advise``, which says which one."""

    advised: Any

    @property
    def k(self) -> Any:
        """The k that was found, for an avatarisation."""
        return self.advised["k"]


def local_cloaking_advice(
    group_id: str,
    *,
    originals: Any,
    threshold: Any,
    margin: Any = 0,
    k_min: Any = SMALLEST_ADVISED_K,
    k_max: Any = None,
    seeds: Any = None,
    ncp: Any = 5,
    key: Any = None,
    categorical: Any = None,
    drop: Any = None,
    command: str | list[str] | None = None,
    data_set: Any = None,
    language: Any = None,
    audit_path: Any = None,
    separator: Any = None,
    decimal: Any = None,
    encoding: Any = None,
) -> LocalCloakingAdvice:
    """Find the smallest k whose Local Cloaking reaches a threshold.

    The task ``advise`` writes ``advice.json`` and the page ``advice.html`` among the evidence. Its XCom is a JSON
    object: ``k`` (null, with ``reason``, where none reaches; the task then fails), ``local_cloaking``,
    ``hidden_rate``, ``moved``, ``warnings``, ``threshold``, ``margin``, ``n``, ``advice``, ``report``.

    :param group_id: Name of the group.
    :param originals: Path or URI of the originals. (templated)
    :param threshold: The smallest Local Cloaking that is to pass. (templated)
    :param margin: By how much each seed is to exceed it. (templated)
    :param k_min: The smallest k that may be tried. (templated)
    :param k_max: The largest; by default 0.3 n, 500 at most. (templated)
    :param seeds: Tried with each k, a list or ``1,2,3``. (templated)
    :param ncp: Components of avatarisation and measure. (templated)
    :param key: Column that pairs the tables and is not measured. (templated)
    :param categorical: Columns to treat as categories, a list or ``A,B,C``. (templated)
    :param drop: Columns to leave out, a list or ``A,B,C``. (templated)
    :param command: What makes the avatars, see `local_cloaking.commands`; by default the published algorithm. Not
        templated: who may start a run must not thereby run programs on the workers.
    :param data_set: A name for what is written down; by default the group's. (templated)
    :param language: Of the page, ``en`` (by default) or ``fr``. (templated)
    :param audit_path: Where the evidence is kept; by default ``[local_cloaking] audit_path``. (templated)
    :param separator: CSV: what separates cells; found out by default. (templated)
    :param decimal: CSV: ``.`` or ``,``; found out by default. (templated)
    :param encoding: CSV: as ``utf-8`` or ``latin-1``; found out by default. (templated)
    :return: The group; its ``k`` is what was found, for an `AvatariseOperator`.
    """
    asked = {
        "originals": originals,
        "threshold": threshold,
        "margin": margin,
        "k_min": k_min,
        "k_max": k_max,
        "seeds": seeds,
        "ncp": ncp,
        "key": key,
        "categorical": categorical,
        "drop": drop,
        "data_set": group_id if data_set is None else data_set,
        "separator": separator,
        "decimal": decimal,
        "encoding": encoding,
    }
    group = LocalCloakingAdvice(group_id=group_id)
    with group:
        plan = _task("prepare", _preparing(command))(asked)
        trying = _trying(command)
        wanted = _task("series", _next)(plan, [], ROUNDS)
        tried = [_mapped("try_series", trying, asked, plan, wanted)]
        # Then as many rounds as there are in the bracket, and one for the values beside the k found.
        for number, rounds in enumerate([*range(ROUNDS, 0, -1), 1], start=1):
            last = number > ROUNDS
            wanted = _task("beside" if last else f"narrow_{number}", _next)(plan, list(tried), rounds)
            tried.append(_mapped("try_beside" if last else f"try_{number}", trying, asked, plan, wanted))
        group.advised = _task("advise", _advising(command), multiple_outputs=True)(
            asked, plan, tried, language, audit_path
        )
    return group


def _task(name: str, work: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    decorated: Callable[..., Any] = task(task_id=name, trigger_rule=_WHATEVER_WAS_LEFT, **options)(work)
    return decorated


def _mapped(name: str, trying: Callable[..., Any], asked: dict[str, Any], plan: Any, wanted: Any) -> Any:
    """Try each of the wanted values in a task of its own, named after it."""
    one = task(task_id=name, map_index_template="k = {{ k }}")(trying)
    return one.partial(asked=asked, plan=plan).expand(k=wanted)


# The command is no argument of a task: those are rendered as templates, and shown in Airflow's interface.


def _preparing(command: Any) -> Callable[..., Any]:
    """Return the work of checking what is asked for, before anything is made."""

    def prepare(asked: dict[str, Any]) -> dict[str, Any]:
        from local_cloaking.advising import open_request

        with refusals_are_final():
            return open_request(_request(asked, command)).plan()

    return prepare


def _next(plan: dict[str, Any], tried: Iterable[Any], rounds: int) -> list[int]:
    """Return the values of k to try next; see `local_cloaking.search`."""
    from local_cloaking.search import Bounds, next_values

    reaching = {one["k"]: one["reaches"] for one in _all(tried)}
    return next_values(reaching, Bounds(plan["k_min"], plan["k_max"]), rounds)


def _trying(command: Any) -> Callable[..., Any]:
    """Return the work of trying one k with every seed."""

    def try_k(k: int, asked: dict[str, Any], plan: dict[str, Any]) -> dict[str, Any]:
        from local_cloaking.advising import open_request
        from local_cloaking.audit.advice import tried_entries

        get_current_context()["k"] = k  # type: ignore[literal-required, unused-ignore]
        with refusals_are_final():
            # The same search, whatever became of files and templates meanwhile.
            request = _request({**asked, **_held(plan)}, command)
            return tried_entries(open_request(request, originals_sha256=plan["originals_sha256"]).search.at(k))

    return try_k


def _advising(command: Any) -> Callable[..., Any]:
    """Return the work of saying which k it is, writing it down, and failing where there is none."""

    def advise(
        asked: dict[str, Any], plan: dict[str, Any], tried: Iterable[Any], language: Any, audit_path: Any
    ) -> dict[str, Any]:
        context = get_current_context()
        with refusals_are_final():
            entries = _concluded(_request({**asked, **_held(plan)}, command), plan, tried, context)
            result = _written(entries, text(language, "language"), evidence_folder(audit_path, context))
        if result["k"] is None:
            context["ti"].xcom_push(key="return_value", value=result)
            raise AirflowFailException(f"no k was found: {result['reason']}")
        return result

    return advise


def _concluded(request: Any, plan: dict[str, Any], tried: Iterable[Any], context: Any) -> dict[str, Any]:
    from local_cloaking.advising import open_request
    from local_cloaking.audit.advice import tried_of
    from local_cloaking.measuring import now

    opened = open_request(request, originals_sha256=plan["originals_sha256"])
    when = {"advised_at": now(zone_of(context)), "run": run_of(context)}
    return opened.entries([tried_of(one) for one in _all(tried)], when)


def _written(entries: dict[str, Any], language: str | None, folder: Any) -> dict[str, Any]:
    """Write both files, and return what the XCom tells."""
    from local_cloaking.audit.advice_report import draw_advice
    from local_cloaking.audit.record import to_bytes
    from local_cloaking.audit.store import write_whole

    page = draw_advice(entries, language=language)
    write_whole(folder / "advice.json", to_bytes(entries))
    write_whole(folder / "advice.html", page)
    found = next((one for one in entries["tried"] if one["k"] == entries["k"]), None)
    return {
        **{name: entries[name] for name in ("k", "reason", "warnings", "threshold", "margin", "n", "ncp")},
        **{name: found and found[name] for name in ("local_cloaking", "hidden_rate", "moved")},
        "advice": str(folder / "advice.json"),
        "report": str(folder / "advice.html"),
    }


def _all(tried: Iterable[Sequence[dict[str, Any]] | None]) -> list[dict[str, Any]]:
    """Return what all mapped tasks returned; a round with nothing to try has none."""
    # A slice is fetched at once; one by one, Airflow logs an error where the sequence ends.
    return [one for of_round in tried if of_round for one in of_round[:]]


def _held(plan: dict[str, Any]) -> dict[str, Any]:
    names_of_aim = ("threshold", "margin", "k_min", "k_max", "seeds", "ncp")
    return {name: plan[name] for name in names_of_aim}


def _request(asked: dict[str, Any], command: Any) -> Any:
    """Return the request from arguments as they arrive in a task: rendered, so text where a number was meant."""
    from local_cloaking.advising import Request

    return Request(
        location(asked["originals"], "originals"),
        asked["threshold"],
        margin=asked["margin"],
        k_min=whole(asked["k_min"], "k_min"),
        k_max=whole(asked["k_max"], "k_max"),
        seeds=names(asked["seeds"], "seeds"),
        ncp=whole(asked["ncp"], "ncp"),
        key=text(asked["key"], "key"),
        categorical=names(asked["categorical"], "categorical"),
        drop=names(asked["drop"], "drop"),
        command=command,
        csv=csv_options(asked["separator"], asked["decimal"], asked["encoding"]),
        data_set=text(asked["data_set"], "data_set"),
    )
