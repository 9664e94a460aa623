"""Accept a checked plan under an idempotency key."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from region_scheduler.admission.saga import AdmissionSaga
from region_scheduler.commit.create import create
from region_scheduler.domain.admission import (
    Admission,
    AdmissionState,
    Plan,
    admission_key,
    same_or_refused,
)
from region_scheduler.domain.content import content_digest
from region_scheduler.domain.dag import Dag
from region_scheduler.domain.ids import Incarnation, RunId
from region_scheduler.domain.run import Run
from region_scheduler.domain.task import TaskSpec
from region_scheduler.errors import InvalidGraph, ensure
from region_scheduler.ports.records import GraphStores
from region_scheduler.ports.time import Clock, Ids


@dataclass(frozen=True, slots=True)
class Admitted:
    """The run of an accepted request.

    Attributes:
        is_repeat: The key had been used for the same request before.
    """

    run: Run
    is_repeat: bool


def checked(plan: Plan) -> Dag:
    """Return the plan's graph, or refuse the plan; nothing is written either way.

    Raises:
        InvalidGraph, CyclicGraph: As `Dag.checked`; also an empty graph, and locks that a task
            could never get.
    """
    if not plan.tasks:
        raise InvalidGraph(problems=["it has no nodes"])
    problems = [problem for spec in plan.tasks for problem in _lock_problems(spec)]
    if problems:
        raise InvalidGraph(problems=problems)
    return Dag.checked([spec.name for spec in plan.tasks], plan.edges)


def _lock_problems(spec: TaskSpec) -> list[str]:
    units: Counter[str] = Counter()
    for need in spec.locks:
        units[need.resource] += need.units
    return [
        f"{spec.name!r} takes {units[need.resource]} units of {need.resource!r},"
        f" which has {need.capacity}"
        for need in spec.locks
        if not (need.units >= 1 and units[need.resource] <= need.capacity)
    ]


class Intake:
    """The submitter role.

    Args:
        graph: The graph store.
        saga: Carries accepted admissions out.
        instance: This incarnation, named in the admissions that it makes.
        clock: For stamps.
        ids: For run ids and traces.
    """

    def __init__(
        self,
        graph: GraphStores,
        saga: AdmissionSaga,
        instance: Incarnation,
        clock: Clock,
        ids: Ids,
    ) -> None:
        self._graph = graph
        self._saga = saga
        self._instance = instance
        self._clock = clock
        self._ids = ids

    def admit(self, plan: Plan, key: str) -> Admitted:
        """Admit `plan` once per `key` of its tenant.

        Raises:
            Rejected: The plan is refused, or the key came with another plan; nothing was written.
            Unavailable: Perhaps accepted; then it is finished all the same. Repeat with the key.
            OutcomeUnknown: As `Unavailable`.
        """
        checked(plan)
        wanted = self._admission(plan, key)
        (accepted,) = create(self._graph.admissions, [wanted])
        admission = same_or_refused(accepted.value, wanted.body_digest)
        is_repeat = admission.run != wanted.run
        if is_repeat and admission.state is AdmissionState.DONE:
            (run,) = self._graph.runs.read([admission.run])
            ensure(run is not None, f"admission {admission.id} is done and has a run")
            if run is not None:
                return Admitted(run, is_repeat)
        return Admitted(self._saga.carry_out(admission), is_repeat)

    def _admission(self, plan: Plan, key: str) -> Admission:
        return Admission(
            id=admission_key("client", plan.tenant, key),
            tenant=plan.tenant,
            key=key,
            body_digest=content_digest(plan),
            run=RunId(self._ids.new()),
            plan=plan,
            trace=f"00-{self._ids.new()}-{self._ids.new()[-16:]}-01",
            instance=self._instance,
            created_at=self._clock.now(),
        )
