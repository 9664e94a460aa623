"""What the step processes wrote down themselves, held against the histories of their tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from region_scheduler.domain.ids import RunId, TaskId
from region_scheduler.domain.task import Task, units_needed
from region_scheduler.ports.history import TaskRecord
from region_scheduler.verify.counters import (
    Execution,
    StepFact,
    accepted_receipts,
    done_twice,
    executions,
    is_current,
    misrouted,
    overlaps,
    overruns,
    strays,
)
from region_scheduler.verify.graph import last_unlock
from region_scheduler.verify.holding import run_of
from region_scheduler.verify.invariants import Finding, Invariant


class Steps:
    """The steps logs of all workers; one short record an attempt is held in memory.

    Args:
        facts: Their lines, in any order.
        alive: Those of the facts' `shim_pid` that live: a step without an end goes on there.
        only: Whose steps count; all if None.
    """

    def __init__(
        self, facts: Iterable[StepFact], alive: Collection[int], only: RunId | None
    ) -> None:
        mine = (fact for fact in facts if only is None or run_of(fact.task) == only)
        self._by_task: dict[TaskId, list[Execution]] = defaultdict(list)
        for execution in executions(mine, alive):
            self._by_task[execution.task].append(execution)
        self._takers: dict[str, list[tuple[Execution, int]]] = defaultdict(list)
        self._told: dict[str, int] = {}
        self._ends: dict[TaskId, Execution] = {}
        self._waits: list[tuple[Execution, TaskId]] = []

    @property
    def count(self) -> int:
        """How many attempts there are."""
        return sum(map(len, self._by_task.values()))

    def take(self, page: Sequence[TaskRecord]) -> Iterator[Finding]:
        """Look at the steps of some tasks of a run."""
        for record in page:
            task = record.task
            found = [run for run in self._by_task.pop(task.id, ()) if is_current(run, task)]
            if found:
                yield from _of_task(task, found)
                self._remember(record, found)

    def run_ended(self) -> Iterator[Finding]:
        """Look at the order of the steps of a run, all its tasks being taken."""
        for later, before in self._waits:
            earlier = self._ends.get(before)
            if earlier is not None and later.started_at < earlier.ended_at:
                what = "its step began before that of a predecessor had ended"
                yield _finding(Invariant.ORDER, what, earlier, later)
        self._ends.clear()
        self._waits.clear()

    def end(self, capacities: Mapping[str, int]) -> Iterator[Finding]:
        """Look at what was held at the same time.

        Args:
            capacities: Units of each resource that there are; where it is not named, as tasks say.
        """
        for name, takers in self._takers.items():
            for held in overruns(takers, capacities.get(name, self._told[name])):
                what = f"ran while too little of {name} was left"
                yield _finding(Invariant.CAPACITY, what, *held)

    def _remember(self, record: TaskRecord, found: Sequence[Execution]) -> None:
        task = record.task
        for name, units in units_needed(task.spec).items():
            self._takers[name] += [(run, units) for run in found]
        for need in task.spec.locks:
            self._told[need.resource] = max(need.capacity, self._told.get(need.resource, 0))
        accepted = accepted_receipts(task)
        for run in found:
            if run.receipt_id in accepted:
                self._ends[task.id] = run
        unlocked = last_unlock(task)
        if unlocked is None:
            return
        rests_on = [one.id for one in record.before if unlocked.seen.get(one.id) == one.token]
        later = [run for run in found if run.token.number > unlocked.token.number]
        self._waits += [(run, before) for run in later[:1] for before in rests_on]


def _of_task(task: Task, found: Sequence[Execution]) -> Iterator[Finding]:
    by_id = {task.id: task}
    for one, other in overlaps(found):
        yield _finding(Invariant.ONE_HOLDER, "two of its steps ran at once", one, other)
    for run in strays(found, by_id):
        yield _finding(Invariant.ONE_HOLDER, "a step ran that no start was accepted for", run)
    known = [run for run in found if run not in strays(found, by_id)]
    for run in misrouted(known, by_id):
        yield _finding(Invariant.RESIDENCY, "a step ran in a region that did not start it", run)
    for _ in done_twice(found, by_id):
        yield _finding(Invariant.ONCE, "its step ran again after it was completed", *found[-2:])


def _finding(invariant: Invariant, what: str, *runs: Execution) -> Finding:
    return Finding(
        invariant=invariant,
        subject=runs[-1].task,
        what=what,
        evidence=tuple(_line(run) for run in runs),
    )


def _line(run: Execution) -> str:
    told = f"receipt {run.receipt_id}, token {run.token}, in {run.region}"
    return f"{run.task}: {told}, from {run.started_at:.3f} to {run.ended_at:.3f} s"
