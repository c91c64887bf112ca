"""Measure and check as one group of tasks."""

from __future__ import annotations

from typing import Any

from airflow.providers.common.compat.sdk import TaskGroup, TriggerRule
from airflow.providers.standard.operators.empty import EmptyOperator

from local_cloaking.airflow.notifier import LocalCloakingNotifier
from local_cloaking.airflow.operators.check import LocalCloakingCheckOperator
from local_cloaking.airflow.operators.measure import LocalCloakingOperator

#: Arguments of a task that, given to the measure by mistake, would tell of a pass before the check, or run it
#: whatever came before.
_NOT_FOR_THE_MEASURE = {
    "inlets",
    "on_execute_callback",
    "on_failure_callback",
    "on_retry_callback",
    "on_skipped_callback",
    "on_success_callback",
    "outlets",
    "task_group",
    "task_id",
    "trigger_rule",
}


class LocalCloakingGate(TaskGroup):
    """Tasks ``local_cloaking`` and ``check``; outside the group, a leaf of the DAG.

    A run is as good as its leaves: a task with the rule ``all_done`` after the gate would make it green. The leaf
    hangs on the check, belongs to no group, so that nothing hangs on it, and fails when the check fails.
    """

    check: LocalCloakingCheckOperator

    @property
    def verdict(self) -> Any:
        """The check's output: verdict, record and hashes."""
        return self.check.output


def local_cloaking_gate(
    group_id: str,
    *,
    originals: Any,
    avatars: Any,
    threshold: Any,
    data_set: Any = None,
    outlet: Any = None,
    notify: Any = None,
    warn_below: Any = None,
    compare_with_previous: Any = None,
    max_drop: Any = None,
    threshold_set_by: Any = None,
    language: Any = None,
    audit_path: Any = None,
    **measure: Any,
) -> LocalCloakingGate:
    """Measure avatars and stop the DAG when their Local Cloaking is below the threshold.

    :param group_id: Name of the group.
    :param originals: What names the originals; see `LocalCloakingOperator`. (templated)
    :param avatars: What names the avatars. (templated)
    :param threshold: The smallest Local Cloaking that passes, above 0. (templated)
    :param data_set: A name for the record; by default the group's. (templated)
    :param outlet: An Asset, or a list of them, updated when the verdict is ``passed``.
    :param notify: A notifier or callback, or a list of them, called when measure or check fails, beside those of
        the DAG's ``default_args``; a `LocalCloakingNotifier` is also called on a pass, of which it tells warnings.
    :param warn_below: A bound above the threshold: a pass below it is a warning. (templated)
    :param compare_with_previous: Whether to compare with the last run that measured the same data set. (templated)
    :param max_drop: By how much Local Cloaking may fall since that run before it is a warning. (templated)
    :param threshold_set_by: Who set the threshold, for the record. (templated)
    :param language: Of the report, ``en`` (by default) or ``fr``. (templated)
    :param audit_path: Where counts, record and report are kept. (templated)
    :param measure: Further arguments of `LocalCloakingOperator`: ``key``, ``ncp``, ``projection``, ...
    :return: The group; its ``verdict`` is the check's output, for `require_passed`.
    """
    misplaced = sorted(_NOT_FOR_THE_MEASURE & set(measure))
    if misplaced:
        raise TypeError(
            f"local_cloaking_gate() got {misplaced[0]!r}: give `outlet` what a pass updates, and `notify` "
            "what a failure calls"
        )
    outlets = outlet if isinstance(outlet, list | tuple) else [] if outlet is None else [outlet]
    # What is not given may be said by the DAG's default_args.
    optional = {
        "language": language,
        "warn_below": warn_below,
        "compare_with_previous": compare_with_previous,
        "max_drop": max_drop,
    }
    group = LocalCloakingGate(group_id=group_id)
    with group:
        measured = LocalCloakingOperator(
            task_id="local_cloaking",
            originals=originals,
            avatars=avatars,
            data_set=group_id if data_set is None else data_set,
            audit_path=audit_path,
            trigger_rule=TriggerRule.ALL_SUCCESS,
            **measure,
        )
        group.check = LocalCloakingCheckOperator(
            task_id="check",
            measured=measured.output,
            threshold=threshold,
            threshold_set_by=threshold_set_by,
            **{name: value for name, value in optional.items() if value is not None},
            audit_path=audit_path,
            outlets=list(outlets),
            # Said, not left to the DAG's default_args, which may say all_done.
            trigger_rule=TriggerRule.ALL_SUCCESS,
        )
    _attach(notify, measured, group.check)
    leaf = EmptyOperator(
        task_id=f"{str(group.group_id).replace('.', '_')}_passed",
        task_group=group.dag.task_group,
        trigger_rule=TriggerRule.ALL_SUCCESS,
    )
    group.check >> leaf
    return group


def _attach(notify: Any, measured: LocalCloakingOperator, check: LocalCloakingCheckOperator) -> None:
    callbacks = list(notify) if isinstance(notify, list | tuple) else [] if notify is None else [notify]
    # Added: the callbacks that a team has in its default_args go on being called.
    for task in (measured, check):
        task.on_failure_callback = [*task.on_failure_callback, *callbacks]
    telling = [callback for callback in callbacks if isinstance(callback, LocalCloakingNotifier)]
    check.on_success_callback = [*check.on_success_callback, *telling]
