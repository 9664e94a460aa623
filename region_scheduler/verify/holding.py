"""What is held: slots against the tasks that have them, tasks against their holders' leases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from region_scheduler.domain.ids import Incarnation, RunId, TaskId, slot_key
from region_scheduler.domain.instance import Instance
from region_scheduler.domain.slot import Slot, is_orphan
from region_scheduler.domain.states import HELD, TaskState
from region_scheduler.domain.task import Task, units_needed
from region_scheduler.ports.history import History, Kind
from region_scheduler.verify.invariants import Document, Finding, Invariant

_NOBODY: Final = Incarnation("")


class Holding:
    """What running tasks need, and which slots were found to be theirs.

    Only tasks in flight are remembered. Slots come after the tasks: a task that runs before and
    after they were read had its slots all the while.

    Args:
        fenced: Incarnations whose lease is over, with the revision that says so.
    """

    def __init__(self, fenced: Mapping[Incarnation, str]) -> None:
        self._fenced = fenced
        self._running: dict[TaskId, Task] = {}
        self._held: dict[TaskId, Counter[str]] = {}
        self.units: Counter[str] = Counter()

    def take(self, task: Task) -> Iterator[Finding]:
        """Look at a task."""
        if task.state is TaskState.RUNNING and task.spec.locks:
            self._running[task.id] = task
            self._held[task.id] = Counter()
        holder = task.holder.incarnation if task.holder is not None else _NOBODY
        if task.state in HELD and holder in self._fenced:
            yield Finding(
                invariant=Invariant.FENCING,
                subject=task.id,
                what=f"{task.spec.name}: is {task.state} by an incarnation whose lease is over",
                evidence=(f"held by {holder}, token {task.token}",),
                documents=(
                    Document(Kind.TASKS, task.id, task.rev),
                    Document(Kind.INSTANCES, holder, self._fenced[holder]),
                ),
                is_passing=True,
            )

    def slots(self, history: History, only: RunId | None) -> Iterator[Finding]:
        """Look at all slots, or those that tasks of one run hold."""
        for page in history.slots():
            owners = sorted({slot.holder.task for slot in page if slot.holder is not None})
            tasks = history.owners(owners)
            for slot in page:
                self.units[slot.resource] += 1
                yield from self._of_key(slot)
                if slot.holder is not None and _belongs(slot.holder.task, only):
                    yield from self._of_holder(slot, tasks)
        yield from self._without()

    def _of_key(self, slot: Slot) -> Iterator[Finding]:
        if slot.id != slot_key(slot.resource, slot.unit):
            told = f"unit {slot.unit} of {slot.resource} belongs to another key"
            yield Finding(
                invariant=Invariant.CAPACITY,
                subject=slot.id,
                what="a unit of a resource that there is twice",
                evidence=(told,),
            )

    def _of_holder(self, slot: Slot, tasks: Mapping[TaskId, Task | None]) -> Iterator[Finding]:
        assert slot.holder is not None  # noqa: S101 - the caller has looked
        id_, token = slot.holder.task, slot.holder.token
        task = tasks.get(id_)
        running = self._running.get(id_)
        if running is not None and running.token == token:
            self._held[id_][slot.resource] += 1
        is_newer = task is None and id_ in tasks
        if is_newer or not is_orphan(slot, task):
            return
        now = "is not there" if task is None else f"is {task.state} under token {task.token}"
        yield Finding(
            invariant=Invariant.NO_LEAK,
            subject=slot.id,
            what=f"unit {slot.unit} of {slot.resource} is held by nobody who needs it",
            evidence=(f"held by {id_} under token {token}", f"{id_} {now}"),
            documents=(
                Document(Kind.SLOTS, slot.id, slot.rev),
                Document(Kind.TASKS, id_, task.rev if task is not None else ""),
            ),
            is_passing=True,
        )

    def _without(self) -> Iterator[Finding]:
        for task in self._running.values():
            for resource, units in units_needed(task.spec).items():
                held = self._held[task.id][resource]
                if held < units:
                    yield Finding(
                        invariant=Invariant.CAPACITY,
                        subject=task.id,
                        what=f"{task.spec.name}: runs without what it needs of {resource}",
                        evidence=(f"needs {units}, holds {held} under token {task.token}",),
                        documents=(Document(Kind.TASKS, task.id, task.rev),),
                    )


def fenced_ones(instances: Iterator[Instance]) -> dict[Incarnation, str]:
    """Return the incarnations whose lease is over, with the revision that says so."""
    return {one.id: one.rev for one in instances if one.fenced is not None}


def _belongs(task: TaskId, only: RunId | None) -> bool:
    return only is None or run_of(task) == only


def run_of(task: str) -> str:
    """Return the run that a task's handle names; what is no handle is returned as it is."""
    _, is_handle, key = task.partition("/")
    return key.rpartition(".")[0] if is_handle else task
