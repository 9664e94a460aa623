"""A run, its tasks and what leads from one to the other: documents held against each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from region_scheduler.domain.cycles import cyclic_components, named_cycle
from region_scheduler.domain.run import Run, Zone
from region_scheduler.domain.states import (
    ACTIVE,
    RUN_COMPLETE,
    RUN_ENDED,
    SATISFYING,
    RunState,
    TaskState,
)
from region_scheduler.domain.task import EventKind, HistoryEntry, Task
from region_scheduler.ports.history import Before, Kind, TaskRecord
from region_scheduler.verify.invariants import Document, Finding, Invariant


class RunLook:
    """What was seen of one run. Its ids and dependencies are held in memory, nothing else of it.

    Args:
        run: As read before its tasks.
        zone: That it changes, as read after it; None if it needs none, or there is none.
        is_at_rest: Nothing goes on any more: whatever is to happen has happened.
    """

    def __init__(self, run: Run, zone: Zone | None, is_at_rest: bool) -> None:
        self._run = run
        self._zone = zone
        self._is_at_rest = is_at_rest
        self._ids: dict[str, str] = {}
        self._after: dict[str, list[str]] = {}
        self._waits_for_somebody = False

    def take(self, page: Sequence[TaskRecord]) -> Iterator[Finding]:
        """Look at some of its tasks."""
        for record in page:
            task = record.task
            self._waits_for_somebody |= task.state is TaskState.AWAITING
            self._draw(record)
            yield from self._of_order(record)
            yield from self._of_end(task)
            yield from self._of_stillness(record)
            yield from self._of_tenant(task)
            yield from self._of_zone(task)

    def end(self, counts: tuple[int, int]) -> Iterator[Finding]:
        """Look at it as a whole, all its tasks being taken.

        Args:
            counts: Tasks and dependencies that there are.
        """
        run = self._run
        is_whole = counts == (run.task_count, run.edge_count)
        if not is_whole and not run.is_closed and run.state is not RunState.REFUSED:
            told = "{} tasks and {} dependencies"
            yield self._told(
                Invariant.NO_LOSS,
                "part of it is not there",
                f"published with {told.format(run.task_count, run.edge_count)}",
                f"now there are {told.format(*counts)}",
            )
        if self._is_at_rest and run.state not in RUN_ENDED and not self._waits_for_somebody:
            yield self._told(Invariant.NO_LOSS, f"is {run.state} though nothing goes on any more")
        yield from self._of_cycles()

    def _draw(self, record: TaskRecord) -> None:
        id_ = self._ids.setdefault(record.task.id, record.task.id)
        self._after.setdefault(id_, [])
        for one in record.before:
            before = self._ids.setdefault(one.id, one.id)
            self._after.setdefault(before, []).append(id_)

    def _of_cycles(self) -> Iterator[Finding]:
        loops = [name for name, nexts in self._after.items() if name in nexts]
        groups = [loops[:1]] if loops else cyclic_components(self._after)
        if not groups:
            return
        names = loops[:1] or named_cycle(groups, self._after).names
        edges = zip(names, [*names[1:], names[0]], strict=True)
        yield Finding(
            invariant=Invariant.ACYCLIC,
            subject=self._run.id,
            what=f"run {self._run.name}: {len(names)} tasks wait for each other",
            evidence=tuple(f"{then} waits for {first}" for first, then in edges),
        )

    def _of_order(self, record: TaskRecord) -> Iterator[Finding]:
        """Hold the completions that the last unlock saw against the predecessors as they are."""
        task, unlocked = record.task, last_unlock(record.task)
        if unlocked is None:
            return
        by_id = {one.id: one for one in record.before}
        for id_, seen in unlocked.seen.items():
            before = by_id.pop(id_, None)
            why = "it is no predecessor" if before is None else _contradiction(seen, before)
            if why:
                what = "unlocked on a completion that is not there"
                saw = f"unlocked when {id_} was complete under token {seen}"
                yield self._of_task(Invariant.ORDER, task, what, before, saw, f"{id_}: {why}")
        for id_, before in by_id.items():
            what, told = "unlocked without one of its predecessors", f"the unlock names no {id_}"
            yield self._of_task(Invariant.ORDER, task, what, before, told)

    def _of_end(self, task: Task) -> Iterator[Finding]:
        """Hold a task against the end of its run."""
        state = self._run.state
        is_left = task.state in ACTIVE and state in RUN_ENDED
        is_missing = task.state not in SATISFYING and state in RUN_COMPLETE
        if is_left or is_missing:
            told = f"run: {state}, round {self._run.round}"
            what = f"is {task.state} though its run is {state}"
            yield self._of_task(Invariant.NO_LOSS, task, what, None, told)

    def _of_stillness(self, record: TaskRecord) -> Iterator[Finding]:
        """Look for a task that could be unlocked."""
        task, run = record.task, self._run
        states = [before.state for before in record.before]
        may_go = len(states) == task.needs and all(state in SATISFYING for state in states)
        has_zone = bool(task.needs) or not run.needs_zone or self._holds_zone
        if (
            task.state is TaskState.PENDING
            and run.state is RunState.RUNNING
            and may_go
            and has_zone
        ):
            told = [f"{one.id}: {one.state} under token {one.token}" for one in record.before]
            yield Finding(
                invariant=Invariant.NO_STUCK,
                subject=task.id,
                what=f"{task.spec.name}: pending though all that it waits for is satisfied",
                evidence=tuple(told),
                documents=(self._document, _of(task), *map(_of_before, record.before)),
                is_passing=True,
            )

    def _of_tenant(self, task: Task) -> Iterator[Finding]:
        zone = self._zone.tenant if self._zone is not None else self._run.tenant
        if {task.tenant, zone} != {self._run.tenant}:
            told = f"task: {task.tenant}; run: {self._run.tenant}; zone: {zone}"
            yield self._of_task(Invariant.TENANCY, task, "belongs to several tenants", None, told)

    def _of_zone(self, task: Task) -> Iterator[Finding]:
        run, zone = self._run, self._zone
        if zone is None or self._holds_zone or task.state not in ACTIVE or run.state in RUN_ENDED:
            return
        holder = zone.active_run or "nobody"
        yield Finding(
            invariant=Invariant.ZONE,
            subject=task.id,
            what=f"{task.spec.name}: is {task.state} though its run does not hold its zone",
            evidence=(f"zone {zone.name}: held by {holder}", f"{task.id}: of run {run.id}"),
            documents=(Document(Kind.ZONES, zone.id, zone.rev), _of(task), self._document),
        )

    @property
    def _holds_zone(self) -> bool:
        return self._zone is not None and self._zone.active_run == self._run.id

    @property
    def _document(self) -> Document:
        return Document(Kind.RUNS, self._run.id, self._run.rev)

    def _told(self, invariant: Invariant, what: str, *evidence: str) -> Finding:
        return Finding(
            invariant=invariant,
            subject=self._run.id,
            what=f"run {self._run.name}: {what}",
            evidence=evidence,
            documents=(self._document,),
        )

    def _of_task(
        self, invariant: Invariant, task: Task, what: str, before: Before | None, *evidence: str
    ) -> Finding:
        others = self._document if before is None else _of_before(before)
        return Finding(
            invariant=invariant,
            subject=task.id,
            what=f"{task.spec.name}: {what}",
            evidence=evidence,
            documents=(_of(task), others),
        )


def last_unlock(task: Task) -> HistoryEntry | None:
    """Return the unlock that the task's present or last attempt rests on."""
    unlocks = (one for one in reversed(task.history) if one.kind is EventKind.UNLOCKED)
    return next(unlocks, None)


def _contradiction(seen: str, before: Before) -> str:
    """Say why a predecessor cannot have been complete under the token that was seen."""
    if not before.rev:
        return "it is not there"
    if before.token == seen:
        return "" if before.state in SATISFYING else f"it is {before.state} under that token"
    then, now = _number(seen), _number(before.token)
    if then < now and before.cleared is not None and then < before.cleared:
        return ""  # it was cleared since, and what it did before is told no more
    return f"it is {before.state} under token {before.token}"


def _number(token: str) -> int:
    return int(token.partition("/")[0])


def _of(task: Task) -> Document:
    return Document(Kind.TASKS, task.id, task.rev)


def _of_before(before: Before) -> Document:
    return Document(Kind.TASKS, before.id, before.rev)
