"""Counters of broken promises, computed from what the step processes themselves wrote down.

The steps log says who ran which step under which token, from when to when; the tasks' histories say
which attempt was accepted. Neither is written by the scheduler that they judge. All functions are
pure; instants are readings of one machine's CLOCK_BOOTTIME in seconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from typing import Protocol

from region_scheduler.domain.ids import ReceiptId, TaskId
from region_scheduler.domain.states import SATISFYING
from region_scheduler.domain.task import EventKind, HistoryEntry, Task, Token, units_needed


class StepFact(Protocol):
    """One line of a steps log (`worker.steplog.StepRecord`): a start or an end."""

    @property
    def event(self) -> str:
        """`start` or `end`."""
        ...

    @property
    def task(self) -> TaskId:
        """Whose step it is."""
        ...

    @property
    def token(self) -> Token:
        """The token that it ran under."""
        ...

    @property
    def receipt_id(self) -> ReceiptId:
        """The attempt's receipt."""
        ...

    @property
    def region(self) -> str:
        """The region of the worker that ran it."""
        ...

    @property
    def boot(self) -> float:
        """When."""
        ...

    @property
    def shim_pid(self) -> int:
        """The process that guards the step, or runs it itself."""
        ...


@dataclass(frozen=True, slots=True)
class Execution:
    """One attempt as the steps log shows it: from its first program's start to its last one's end.

    Attributes:
        ended_at: Infinite while it goes on; the last that was heard of it if its process was killed
            before it could note its end.
    """

    task: TaskId
    receipt_id: ReceiptId
    token: Token
    region: str
    started_at: float
    ended_at: float


@dataclass(frozen=True, slots=True)
class Counters:
    """How often each promise was broken; all zero is what is promised.

    Attributes:
        misrouted: Executions in a region that the task was not started in, or may not go to.
        order_violations: Starts before a predecessor was completed, or on other predecessors.
        overlaps: Pairs of executions of one task at the same time.
        done_twice: Tasks completed twice, or executed again after their completion.
        strays: Executions under a receipt that no start was accepted for.
        capacity_overruns: Executions that began while others held so much of a resource that there
            was not enough of it left.
    """

    misrouted: int
    order_violations: int
    overlaps: int
    done_twice: int
    strays: int
    capacity_overruns: int

    @property
    def total(self) -> int:
        """All of them together."""
        return sum(getattr(self, field.name) for field in fields(self))


def count(
    facts: Sequence[StepFact],
    tasks: Sequence[Task],
    before: Mapping[TaskId, Sequence[TaskId]],
    alive: Collection[int] = (),
    capacities: Mapping[str, int] | None = None,
) -> Counters:
    """Return how often each promise was broken.

    Args:
        facts: The steps logs of every worker, in any order.
        tasks: Every task of the runs in question, with its history.
        before: Direct predecessors of each task, from the graph as it was submitted.
        alive: Those of the facts' `shim_pid` that live: a step without an end goes on there.
        capacities: The most units that each resource had; by default what the tasks were submitted
            with.
    """
    runs = executions(facts, alive)
    by_id = {task.id: task for task in tasks}
    mine = [run for run in runs if run.task in by_id and is_current(run, by_id[run.task])]
    return Counters(
        misrouted=len(misrouted(mine, by_id)),
        order_violations=len(order_violations(mine, by_id, before)),
        overlaps=len(overlaps(mine)),
        done_twice=len(done_twice(mine, by_id)),
        strays=len(strays(mine, by_id)),
        capacity_overruns=len(capacity_overruns(mine, by_id, capacities or {})),
    )


def is_current(run: Execution, task: Task) -> bool:
    """Say whether an execution belongs to the submission that the task's history tells of."""
    if not task.history or task.history[0].kind is not EventKind.CLEARED:
        return True
    return run.token.number >= task.history[0].token.number


def executions(facts: Iterable[StepFact], alive: Collection[int] = ()) -> list[Execution]:
    """Return the attempts that the steps log shows, by their start; `alive` as in `count`."""
    grouped: dict[ReceiptId, list[StepFact]] = defaultdict(list)
    for fact in facts:
        grouped[fact.receipt_id].append(fact)
    found = [_execution(group, alive) for group in grouped.values()]
    return sorted(found, key=lambda run: (run.started_at, run.receipt_id))


def misrouted(runs: Iterable[Execution], tasks: Mapping[TaskId, Task]) -> list[Execution]:
    """Return the executions outside the region that their start was accepted for."""
    return [
        run
        for run in runs
        if run.region not in tasks[run.task].spec.allowed_regions
        or run.region != _region_of(tasks[run.task], run.receipt_id)
    ]


def overlaps(runs: Iterable[Execution]) -> list[tuple[Execution, Execution]]:
    """Return each pair of executions of one task that ran at the same time."""
    by_task: dict[TaskId, list[Execution]] = defaultdict(list)
    for run in runs:
        by_task[run.task].append(run)
    return [
        (one, other)
        for group in by_task.values()
        for one, other in combinations(group, 2)
        if one.started_at < other.ended_at and other.started_at < one.ended_at
    ]


def strays(runs: Iterable[Execution], tasks: Mapping[TaskId, Task]) -> list[Execution]:
    """Return the executions that began although no start of theirs was accepted."""
    return [run for run in runs if _started(tasks[run.task], run.receipt_id) is None]


def capacity_overruns(
    runs: Iterable[Execution], tasks: Mapping[TaskId, Task], capacities: Mapping[str, int]
) -> list[Execution]:
    """Return the executions that began while not enough of a resource of theirs was left.

    Args:
        runs: Executions; one that ends at the instant at which another begins makes room for it.
        tasks: Whose locks say what each holds.
        capacities: Units of each resource; where one is not named, the most that a task says.
    """
    by_resource: dict[str, list[tuple[Execution, int]]] = defaultdict(list)
    total: dict[str, int] = {}
    for run in runs:
        spec = tasks[run.task].spec
        for name, units in units_needed(spec).items():
            by_resource[name].append((run, units))
        for need in spec.locks:
            total[need.resource] = max(need.capacity, total.get(need.resource, 0))
    return [
        holders[-1]
        for name, takers in by_resource.items()
        for holders in overruns(takers, capacities.get(name, total[name]))
    ]


def overruns(takers: Iterable[tuple[Execution, int]], capacity: int) -> list[list[Execution]]:
    """Return for each execution that found too little of a resource left all that held it then.

    Args:
        takers: Executions with the units that each holds; one that ends at the instant at which
            another begins makes room for it. Those of one task hold the same units.
        capacity: Units of the resource.

    Returns:
        Each with the execution that began last at its end.
    """
    found: list[list[Execution]] = []
    under_way: list[tuple[Execution, int]] = []
    for run, units in sorted(takers, key=lambda taker: taker[0].started_at):
        under_way = [one for one in under_way if one[0].ended_at > run.started_at]
        under_way.append((run, units))
        by_task = {holder.task: held for holder, held in under_way}
        if sum(by_task.values()) > capacity:
            found.append([holder for holder, _ in under_way])
    return found


def done_twice(runs: Iterable[Execution], tasks: Mapping[TaskId, Task]) -> list[TaskId]:
    """Return the tasks with two accepted completions, or that ran again after the accepted one."""
    by_task: dict[TaskId, list[Execution]] = defaultdict(list)
    for run in runs:
        by_task[run.task].append(run)
    return [
        task.id
        for task in tasks.values()
        if len(_completions(task)) > 1 or _ran_again(task, by_task[task.id])
    ]


def order_violations(
    runs: Sequence[Execution],
    tasks: Mapping[TaskId, Task],
    before: Mapping[TaskId, Sequence[TaskId]],
) -> list[TaskId]:
    """Return the tasks that started too early, by the steps log or by their own history.

    By the steps log: every execution begins after the accepted executions of all predecessors have
    ended. By the histories: the unlock saw exactly the predecessors, each with its completion's
    token, and came before the first start.
    """
    ended_at = _accepted_ends(runs, tasks)
    early = {
        run.task
        for run in runs
        if any(run.started_at < ended_at.get(p, 0.0) for p in before.get(run.task, ()))
    }
    unfounded = {
        task.id for task in tasks.values() if not _is_unlock_sound(task, tasks, before.get(task.id))
    }
    return sorted(early | unfounded)


def _execution(group: Sequence[StepFact], alive: Collection[int]) -> Execution:
    first = min(group, key=lambda fact: fact.boot)
    ended = {fact.shim_pid for fact in group if fact.event == "end"}
    goes_on = any(fact.shim_pid in alive for fact in group if fact.shim_pid not in ended)
    return Execution(
        task=first.task,
        receipt_id=first.receipt_id,
        token=first.token,
        region=first.region,
        started_at=first.boot,
        ended_at=float("inf") if goes_on else max(fact.boot for fact in group),
    )


def _started(task: Task, receipt_id: ReceiptId) -> HistoryEntry | None:
    return next(
        (
            entry
            for entry in task.history
            if entry.kind is EventKind.STARTED and entry.receipt_id == receipt_id
        ),
        None,
    )


def _region_of(task: Task, receipt_id: ReceiptId) -> str:
    entry = _started(task, receipt_id)
    return entry.region if entry is not None else task.region


def accepted_receipts(task: Task) -> frozenset[ReceiptId]:
    """Return the receipts of the attempts that completed a task in its present submission."""
    return frozenset(entry.receipt_id for entry in _completions(task))


def _completions(task: Task) -> list[HistoryEntry]:
    return [
        entry
        for entry in task.history
        if entry.state in SATISFYING and entry.kind in {EventKind.ENDED, EventKind.ANSWERED}
    ]


def _ran_again(task: Task, runs: Sequence[Execution]) -> bool:
    accepted = accepted_receipts(task)
    ends = [run.ended_at for run in runs if run.receipt_id in accepted]
    return any(
        run.started_at > min(ends) for run in runs if ends and run.receipt_id not in accepted
    )


def _accepted_ends(runs: Iterable[Execution], tasks: Mapping[TaskId, Task]) -> dict[TaskId, float]:
    """Return when the execution ended that each completed task was completed by."""
    accepted = {(id_, receipt) for id_, t in tasks.items() for receipt in accepted_receipts(t)}
    return {run.task: run.ended_at for run in runs if (run.task, run.receipt_id) in accepted}


def _is_unlock_sound(
    task: Task, tasks: Mapping[TaskId, Task], before: Sequence[TaskId] | None
) -> bool:
    kinds = [entry.kind for entry in task.history]
    if EventKind.STARTED not in kinds:
        return True
    if EventKind.UNLOCKED not in kinds[: kinds.index(EventKind.STARTED)]:
        return False
    seen = task.history[kinds.index(EventKind.UNLOCKED)].seen
    return set(seen) == set(before or ()) and all(
        tasks[p].state in SATISFYING and str(tasks[p].token) == token for p, token in seen.items()
    )
