"""The admission saga: every step insert-only, every step safe to repeat by anybody."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from region_scheduler.commit.create import create
from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.admission import Admission, AdmissionState, finished
from region_scheduler.domain.content import content_digest
from region_scheduler.domain.ids import TaskId, task_id
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RUN_ENDED
from region_scheduler.domain.task import Task
from region_scheduler.errors import Fenced, OutcomeUnknown, ensure
from region_scheduler.lifecycle.settle import Settler
from region_scheduler.lifecycle.zones import take_zone
from region_scheduler.ports.backlog import Metadata, TaskRow
from region_scheduler.ports.records import GraphStores

_BATCH = 1_000
_EDGE_TRIES_MAX = 5


class AdmissionSaga:
    """Carries an accepted admission to a published run.

    Args:
        region: Where this process is; the rows of other regions' tasks are theirs to write.
        graph: The graph store.
        metadata: This region's relational store.
        settler: Unlocks the roots and wakes the schedulers.
    """

    def __init__(
        self, region: str, graph: GraphStores, metadata: Metadata, settler: Settler
    ) -> None:
        self._region = region
        self._graph = graph
        self._metadata = metadata
        self._settler = settler

    def carry_out(self, admission: Admission) -> Run:
        """Write what is missing, publish the run, close the admission, unlock the roots.

        If another epoch took the admission over, closing it is left to that one: the run that
        stands there is the same.

        Raises:
            Unavailable, OutcomeUnknown: Part of it may be done; call again.
        """
        tasks = _tasks_of(admission)
        self._metadata.record([TaskRow.of(task) for task in tasks if task.region == self._region])
        self._insert_tasks(tasks)
        self._insert_edges(admission)
        counted = self._graph.tasks.counts(admission.run)
        ensure(
            counted == (len(tasks), len(admission.plan.edges)),
            f"admission {admission.id} counts {counted} tasks and edges",
        )
        (published,) = create(self._graph.runs, [_run_of(admission)])
        run = published.value
        close = partial(finished, epoch=admission.epoch, state=AdmissionState.DONE)
        with suppress(Fenced):
            commit_one(self._graph.admissions, Change(admission.id, close, known=admission))
        if run.state not in RUN_ENDED:
            take_zone(self._graph, run)
            self._settler.unlock_run(run)
        return run

    def _insert_tasks(self, tasks: Sequence[Task]) -> None:
        for start in range(0, len(tasks), _BATCH):
            batch = tasks[start : start + _BATCH]
            for wanted, created in zip(batch, create(self._graph.tasks, batch), strict=True):
                ensure(
                    created.value.spec_digest == wanted.spec_digest,
                    f"task {wanted.id} stands there with another spec",
                )

    def _insert_edges(self, admission: Admission) -> None:
        run = admission.run
        edges: list[tuple[TaskId, TaskId]] = [
            (task_id(run, before), task_id(run, after)) for before, after in admission.plan.edges
        ]
        for start in range(0, len(edges), _BATCH):
            open_ = edges[start : start + _BATCH]
            for _ in range(_EDGE_TRIES_MAX):
                answers = self._graph.tasks.insert_edges(open_)
                open_ = [e for e, is_new in zip(open_, answers, strict=True) if is_new is None]
                if not open_:
                    break
            else:
                raise OutcomeUnknown(dependency="graph store", detail="insert of dependencies")


def _tasks_of(admission: Admission) -> list[Task]:
    """Return the tasks as every epoch writes them: all pending, derived from the admission only."""
    plan = admission.plan
    needs: dict[str, int] = {}
    for _, after in plan.edges:
        needs[after] = needs.get(after, 0) + 1
    return [
        Task(
            id=task_id(admission.run, spec.name),
            run=admission.run,
            tenant=admission.tenant,
            zone=plan.zone,
            spec=spec,
            spec_digest=content_digest(spec),
            needs=needs.get(spec.name, 0),
            trace=admission.trace,
            region=spec.region,
        )
        for spec in plan.tasks
    ]


def _run_of(admission: Admission) -> Run:
    plan = admission.plan
    return Run(
        id=admission.run,
        tenant=admission.tenant,
        name=plan.name,
        zone=plan.zone,
        zone_type=plan.zone_type,
        mode=plan.mode,
        home_region=plan.home_region,
        regions=plan.regions,
        task_count=len(plan.tasks),
        edge_count=len(plan.edges),
        digest=admission.body_digest,
        trace=admission.trace,
        created_at=admission.created_at,
    )
