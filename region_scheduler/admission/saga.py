"""The admission saga: every step insert-only, every step safe to repeat by anybody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

from region_scheduler.commit.create import create
from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.admission import Admission, end_of, finished, run_of
from region_scheduler.domain.content import content_digest
from region_scheduler.domain.ids import RunId, TaskId, task_id
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RUN_ENDED, RunState
from region_scheduler.domain.task import Task, TaskSpec
from region_scheduler.errors import Fenced, InvalidInput, OutcomeUnknown, Unavailable, ensure
from region_scheduler.lifecycle.leftover import (
    forget_unpublished,
    never_starts,
    sweep_unpublished,
)
from region_scheduler.lifecycle.settle import Settler
from region_scheduler.lifecycle.zones import take_zone
from region_scheduler.ports.backlog import Metadata, TaskRow
from region_scheduler.ports.records import GraphStores

T = TypeVar("T")
_BATCH = 1_000
"""Tasks in memory, and in one transaction, at a time: a big graph is admitted in little memory, and
never keeps others out of the region's store for long."""
_EDGE_TRIES_MAX = 5
_ROOTS_MAX = 5_000
"""Roots that are unlocked at once; the reconciler unlocks the others."""

Calls = Iterable[Callable[[], None]]


def in_turn(calls: Calls) -> None:
    """Make each call, and only then prepare the next."""
    for call in calls:
        call()


class AdmissionSaga:
    """Carries an accepted admission to a published run.

    Args:
        region: Where this process is; the rows of other regions' tasks are theirs to write.
        graph: The graph store.
        metadata: This region's relational store.
        settler: Unlocks the roots and wakes the schedulers.
        carry: Makes the writes of a big graph, insert-only and in any order, as they are prepared:
            those behind may be prepared and sent before the answers to those ahead have come. All
            are answered when it returns; after an error no more are begun.
    """

    def __init__(
        self,
        region: str,
        graph: GraphStores,
        metadata: Metadata,
        settler: Settler,
        carry: Callable[[Calls], None] = in_turn,
    ) -> None:
        self._region = region
        self._graph = graph
        self._metadata = metadata
        self._settler = settler
        self._carry = carry

    def carry_out(self, admission: Admission) -> Run:
        """Write what is missing, publish the run, close the admission, unlock the roots.

        What a store refuses for good is not tried for ever: then the run is published as refused.
        If another epoch took the admission over, closing it is left to that one: the run that
        stands there is the same.

        Raises:
            Unavailable, OutcomeUnknown: Part of it may be done; call again.
        """
        roots: list[Task] = []
        try:
            self._write(admission, roots)
        except InvalidInput as refusal:
            run = self._publish(admission, RunState.REFUSED, str(refusal))
        else:
            run = self._publish(admission)
        if never_starts(run):
            self._clean_up(run.id)
        if run.state not in RUN_ENDED:
            take_zone(self._graph, run)
            self._settler.unlock_roots(run, roots)
        return run

    def _write(self, admission: Admission, roots: list[Task]) -> None:
        """Write rows, tasks and dependencies; put the first of the tasks that need none in `roots`.

        Of each batch the rows are there before its tasks.
        """
        plan = admission.plan
        carry = self._carry if len(plan.tasks) > _BATCH else in_turn
        carry(self._writes(admission, roots))
        counted = self._graph.tasks.counts(admission.run)
        if counted != (len(plan.tasks), len(plan.edges)):
            # If another epoch refused it meanwhile, what we wrote is being removed under us.
            (standing,) = self._graph.runs.read([admission.run])
            counts = f"admission {admission.id} counts {counted} tasks and edges"
            ensure(never_starts(standing), counts)

    def _clean_up(self, run: RunId) -> None:
        """Remove what was written of a run that never starts; the cluster manager repeats it."""
        with suppress(Unavailable, OutcomeUnknown):
            sweep_unpublished(self._graph, run)
            forget_unpublished(self._metadata, run)

    def _writes(self, admission: Admission, roots: list[Task]) -> Iterator[Callable[[], None]]:
        plan = admission.plan
        ids = {spec.name: task_id(admission.run, spec.name) for spec in plan.tasks}
        needs = Counter(after for _, after in plan.edges)
        for specs in _batches(plan.tasks):
            tasks = [_task(admission, spec, ids[spec.name], needs[spec.name]) for spec in specs]
            rows = [TaskRow.of(task) for task in tasks if task.region == self._region]
            yield partial(self._insert_tasks, tasks, rows, roots)
        for edges in _batches(plan.edges):
            yield partial(
                self._insert_edges, [(ids[before], ids[after]) for before, after in edges]
            )

    def _publish(
        self, admission: Admission, state: RunState = RunState.RUNNING, reason: str = ""
    ) -> Run:
        """Insert the run document and close the admission; who inserted it first has decided."""
        (published,) = create(self._graph.runs, [run_of(admission, state, reason)])
        run = published.value
        close = partial(finished, epoch=admission.epoch, state=end_of(run), reason=run.reason)
        with suppress(Fenced):
            commit_one(self._graph.admissions, Change(admission.id, close, known=admission))
        return run

    def _insert_tasks(
        self, tasks: Sequence[Task], rows: Sequence[TaskRow], roots: list[Task]
    ) -> None:
        self._metadata.record(rows)
        for wanted, created in zip(tasks, create(self._graph.tasks, tasks), strict=True):
            ensure(
                created.is_new or _is_alike(created.value, wanted),
                f"task {wanted.id} stands there with another spec",
            )
            if not wanted.needs and len(roots) < _ROOTS_MAX:
                roots.append(created.value)

    def _insert_edges(self, edges: Sequence[tuple[TaskId, TaskId]]) -> None:
        open_ = edges
        for _ in range(_EDGE_TRIES_MAX):
            answers = self._graph.tasks.insert_edges(open_)
            open_ = [e for e, is_new in zip(open_, answers, strict=True) if is_new is None]
            if not open_:
                return
        raise OutcomeUnknown(dependency="graph store", detail="insert of dependencies")


def _batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[begin : begin + _BATCH] for begin in range(0, len(items), _BATCH))


def _task(admission: Admission, spec: TaskSpec, id_: TaskId, needs: int) -> Task:
    """Return a task as every epoch writes it: pending, derived from the admission only."""
    return Task(
        id=id_,
        run=admission.run,
        tenant=admission.tenant,
        zone=admission.plan.zone,
        spec=spec,
        needs=needs,
        trace=admission.trace,
        region=spec.region,
    )


def _is_alike(standing: Task, wanted: Task) -> bool:
    """Say whether a task is as it was wanted; digests forgive how a store spells numbers."""
    return content_digest(standing.spec) == content_digest(wanted.spec)
