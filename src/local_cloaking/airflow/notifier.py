"""The notifier: what measure and check have to tell, through whatever notifiers a team already has."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow.providers.common.compat.sdk import BaseNotifier, conf

from local_cloaking.airflow.links import page_path
from local_cloaking.airflow.operators.check import LocalCloakingCheckOperator
from local_cloaking.airflow.runs import evidence_root, run_of
from local_cloaking.errors import LocalCloakingError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from local_cloaking.audit.languages import Language


class LocalCloakingNotifier(BaseNotifier):
    """Tells of a verdict, or of a measure that failed, through other notifiers.

    For ``notify=`` of `local_cloaking_gate`; with bare operators, for ``on_failure_callback`` of measure and check
    and ``on_success_callback`` of the check. It adds ``local_cloaking`` to what the templates of the notifiers can
    use: ``subject``, ``text``, ``html``, ``verdict`` (null where there is none), ``warning``, ``value``,
    ``threshold``, ``reason``, ``remedy``, ``warnings``, ``data_set``, ``dag_id``, ``run_id``, ``task_id``,
    ``map_index``, ``report``, ``record``, ``log``.

    A failure is told once the task has failed for good, not at each try; a pass, where it has a warning. A
    notifier that cannot deliver is logged as an error, and keeps no other from being called.

    :param via: A notifier, a callback that takes the context, or a list of them.
    :param language: Of the message, ``en`` or ``fr``; by default the report's.
    :param always: Whether to tell of every pass.
    """

    template_fields: Sequence[str] = ()

    def __init__(self, *, via: Any, language: str | None = None, always: bool = False) -> None:
        super().__init__()
        self.via = list(via) if isinstance(via, list | tuple) else [via]
        self.language = language
        self.always = always

    def notify(self, context: Context) -> None:
        """Call each notifier, where there is something to tell."""
        message = self._message(context)
        if message is not None:
            for notifier in self.via:
                # Each has a context of its own: notifiers write into theirs.
                self._deliver(notifier, {**context, "local_cloaking": copy.deepcopy(message)})

    def _message(self, context: Context) -> dict[str, Any] | None:
        from local_cloaking.audit.message import write_message

        task, ti = context["task"], context["ti"]
        # What the callback was called for is said by the task's state alone.
        succeeded = getattr(ti, "state", None) == "success"
        checks = _is_check(task)
        result = self._result(ti) if checks else None
        if succeeded and (result is None or not (self.always or result["warning"])):
            return None
        if result is not None and result["verdict"] == "passed" and not succeeded:
            result = None  # The task failed after it had judged: nothing has passed.
        run = run_of(context)
        return write_message(
            run,
            result,
            checks=checks,
            data_set=_data_set(task) or run["dag_id"],
            error=_told_of(context.get("exception")),
            report=None if result is None else report_link(result, run),
            log=getattr(ti, "log_url", None),
            language=self._language(task),
        )

    def _result(self, ti: Any) -> dict[str, Any] | None:
        try:
            result = ti.xcom_pull(task_ids=ti.task_id, key="return_value", map_indexes=ti.map_index)
        except Exception:
            self.log.exception("the verdict could not be read from XCom")
            return None
        return result if isinstance(result, dict) and "verdict" in result else None

    def _language(self, task: Any) -> Language:
        from local_cloaking.audit.languages import language_of
        from local_cloaking.errors import InputError

        for code in (self.language, *(getattr(one, "language", None) for one in (task, *task.downstream_list))):
            if code is not None:
                try:
                    return language_of(code)
                except InputError:
                    self.log.warning("there is no such language: the message is in another one")
        return language_of(None)

    def _deliver(self, notifier: Callable[[Any], Any], context: dict[str, Any]) -> None:
        try:
            # A copy: a notifier renders its templates in place, and this one may be called again.
            copy.deepcopy(notifier)(context)
        except Exception as error:  # noqa: BLE001 - a team's notifier may raise anything
            # Not what the error says, which may quote the message, or the address with its password.
            self.log.error(  # noqa: TRY400
                "%s could not tell of Local Cloaking: %s",
                getattr(notifier, "__name__", type(notifier).__name__),
                type(error).__name__,
            )


def report_link(result: Mapping[str, Any], run: Mapping[str, Any]) -> str | None:
    """Return where a person finds the report of a verdict: on the page in Airflow, or else its path or URI.

    The page is linked to where ``[api] base_url`` says under which address people reach Airflow, and the report
    lies in the audit store that the page shows.

    :param result: The check's output.
    :param run: The try of the check, as `run_of` has it.
    """
    report = result.get("report")
    address = urlsplit(conf.get("api", "base_url", fallback=None) or "")
    shown = report is not None and f"{report}".startswith(f"{evidence_root()}/")
    if shown and address.scheme in ("http", "https"):
        return f"{address.scheme}://{address.netloc}{page_path('report', **run)}"
    return report


def _is_check(task: Any) -> bool:
    # After a worker was lost, a mapped task is not the operator itself.
    return issubclass(getattr(task, "operator_class", type(task)), LocalCloakingCheckOperator)


def _data_set(task: Any) -> str | None:
    measured = getattr(task, "measured", None)
    name = measured.get("data_set") if isinstance(measured, dict) else getattr(task, "data_set", None)
    # A template that was not rendered says nothing.
    return name if isinstance(name, str) and "{{" not in name else None


def _told_of(error: Any) -> str | None:
    """Return what an error of this package says, which holds no value of a cell; of any other, nothing."""
    for one in (error, getattr(error, "__cause__", None)):
        if isinstance(one, LocalCloakingError):
            return str(one)
    return None
