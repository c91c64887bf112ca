"""Recording a task, letting each of its operations fail in each way, and looking at what is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from tests.faults import invariants
from tests.faults.made import VERDICTS
from tests.faults.operations import HARMLESS, Fault, Operation
from tests.faults.proxies import Line
from tests.faults.tasks import CHECK, MEASURE, PUBLISH, Attempt, Gate, Job, attempt
from tests.reliability import note_figures

RUN = "manual__2026-11-30T00:00:00+00:00"


@dataclass
class Trial:
    """A task of a gate in a workshop, and how it runs undisturbed."""

    gate: Gate
    workshop: Any
    task_id: str
    start: str
    environment: dict[str, str] = field(default_factory=dict)
    beforehand: Callable[[], Any] | None = None
    undisturbed: Attempt = field(init=False)
    record: dict[str, Any] | None = field(init=False, default=None)

    #: Ways to fail after which the very same try still succeeds: nothing was lost.
    harmless: ClassVar[frozenset[str]] = HARMLESS
    #: Ways after which a task may be failed for good: what it read was no longer what it was. It says so, and the
    #: task cleared succeeds.
    final: ClassVar[frozenset[str]] = frozenset({"cut off"})

    def __post_init__(self) -> None:
        xcoms = self.workshop.restore(self.start)
        self.undisturbed = self.once(xcoms)
        assert self.undisturbed.state == self.expected, self.undisturbed.said
        if self.task_id == CHECK:
            self.record = invariants.record_of(xcoms)

    @property
    def expected(self) -> str:
        failing = self.task_id == CHECK and VERDICTS[self.gate.threshold] != "passed"
        return "failed" if failing else "success"

    @property
    def operations(self) -> list[Operation]:
        return self.undisturbed.operations

    def once(self, xcoms: invariants.Xcoms, number: int = 1, fault: Fault | None = None) -> Attempt:
        """Try the task."""
        return attempt(self.job(xcoms, number, fault), xcoms)

    def job(self, xcoms: invariants.Xcoms, number: int, fault: Fault | None) -> Job:
        root = self.workshop.root
        return Job(
            self.gate, self.task_id, RUN, number, 1, xcoms, (root,), fault, self.beforehand, self.environment,
            root.parent / "log",
        )  # fmt: skip

    def survives(self, fault: Fault) -> None:
        """Let an operation fail; then everything that was promised holds."""
        xcoms = self.workshop.restore(self.start)
        before = self.workshop.files()
        first = self.once(xcoms, 1, fault)
        assert first.struck, "nothing failed"
        self._look(xcoms, before, first, fault)
        if first.state == self.expected and (self.task_id != CHECK or (CHECK, "return_value") in xcoms):
            last = first
        else:
            assert fault.way not in self.harmless, first.said
            # A task that was failed for good is cleared by hand; the others are tried again.
            assert first.state in ("up_for_retry", "killed") or fault.way in self.final, first.said
            xcoms = {name: value for name, value in xcoms.items() if name[0] != self.task_id}
            last = self.once(xcoms, 2)
            self._look(xcoms, before, last, fault)
        assert last.state == self.expected, last.said
        if self.record is not None:
            may_differ = invariants.OF_THE_RUN_BEFORE if self._loses_the_run_before(fault) else frozenset()
            invariants.same_record(xcoms[CHECK, "return_value"], self.record, may_differ=may_differ)
        if (
            last.state == "success"
            and self.task_id == CHECK
            and not (last is first and self._loses_the_event(fault))
        ):
            assert last.outlets[0]["extra"]["verdict"] == "passed"

    def _loses_the_event(self, fault: Fault) -> bool:
        """Tell whether Airflow never hears of the asset.

        It takes a process that ended well for a success, also where that could not be told: then nothing starts
        by the event of the asset, though the check has passed.
        """
        return self.operations[fault.number].path.startswith("SucceedTask")

    def _loses_the_run_before(self, fault: Fault) -> bool:
        """Tell whether it may be left uncompared with the run before.

        A verdict that stops the DAG does not wait for that; and an entry of the index that ends early, without an
        error, is taken for a damaged one.
        """
        in_index = "index" in Path(self.operations[fault.number].path).parts
        lasts = fault.way.endswith("from here on")
        return (in_index or lasts) and (self.expected == "failed" or fault.way in self.final)

    def _look(self, xcoms: invariants.Xcoms, before: dict[str, str], tried: Attempt, fault: Fault) -> None:
        work = self.workshop
        invariants.earlier_files_are_untouched(before, work.files())
        work.nothing_half_written(leftovers=self.may_leave(fault))
        invariants.index_tells_the_truth(work.audit)
        verdict = invariants.told_verdict_has_its_evidence(work.audit, xcoms, self.gate.avatars)
        assert verdict in (None, VERDICTS[self.gate.threshold])
        if tried.outlets:
            assert (tried.state, verdict) == ("success", "passed")
        if tried.state == "success" and self.task_id == CHECK:
            assert verdict == "passed"

    def may_leave(self, fault: Fault) -> bool:
        """Tell whether a file may be left under a name that is not its own: where nobody could take it away."""
        unlinked = self.operations[fault.number].kind == "unlink"
        return "killed" in fault.way or unlinked or fault.way == "read-only from here on"


@dataclass
class LineTrial(Trial):
    """A trial of which something fails that passes between the task and a server."""

    line: Line = field(default_factory=Line)

    harmless = frozenset()

    def once(self, xcoms: invariants.Xcoms, number: int = 1, fault: Fault | None = None) -> Attempt:
        self.line.begin(fault)
        ended = attempt(self.job(xcoms, number, None), xcoms, self._taken)
        return replace(ended, operations=list(self.line.operations), struck=self.line.struck)

    def _taken(self, process: Any) -> None:
        self.line.kill = process.kill


@dataclass
class Tally:
    """How many faults were injected and survived, and what became of those that were not."""

    injected: int = 0
    survived: int = 0
    lost: list[str] = field(default_factory=list)

    def inject(self, trial: Trial, faults: Iterable[Fault]) -> None:
        """Inject all of the faults, and take note of each."""
        for fault in faults:
            self.injected += 1
            one = trial.operations[fault.number]
            try:
                trial.survives(fault)
            except Exception as error:  # noqa: BLE001
                said = " ".join(f"{type(error).__name__}: {error}".split())[:400]
                self.lost.append(
                    f"{trial.task_id} {one.number} {one.kind} {Path(one.path).name}: {fault.way}: {said}"
                )
            else:
                self.survived += 1

    def check(self) -> None:
        assert not self.lost, f"{len(self.lost)} of {self.injected}:\n" + "\n".join(self.lost)

    def note(self, name: str, part: int, trial: Trial) -> None:
        """Keep the figures of a part of a trial's faults, whose operations are counted once."""
        note_figures(
            f"faults-{name}-{part}",
            injected=self.injected,
            survived=self.survived,
            operations=len(trial.operations) if part == 0 else 0,
        )


def run_up_to_publish(gate: Gate, workshop: Any, run_id: str, *, keep: bool, **options: Any) -> None:
    """Measure and judge undisturbed; keep, where asked to, what there is before check and publish."""
    xcoms: invariants.Xcoms = {}
    for task_id in (MEASURE, CHECK):
        if keep:
            workshop.keep(task_id, xcoms)
        ended = attempt(Job(gate, task_id, run_id, 1, 0, xcoms, (workshop.root,), **options), xcoms)
        assert ended.state == "success", ended.said
    if keep:
        workshop.keep(PUBLISH, xcoms)


def kinds(operations: Iterable[Operation]) -> Counter[str]:
    """Count operations by kind."""
    return Counter(one.kind for one in operations)
