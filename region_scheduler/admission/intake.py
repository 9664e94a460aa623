"""Accept a checked plan under an idempotency key."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

from region_scheduler.admission.rules import checked
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
from region_scheduler.domain.ids import Incarnation, RunId
from region_scheduler.domain.limits import LIMITS, Limits
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RunState
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


class Intake:
    """The submitter role.

    Args:
        graph: The graph store.
        saga: Carries accepted admissions out.
        instance: This incarnation, named in the admissions that it makes.
        clock: For stamps.
        ids: For run ids and traces.
        limits: How big a plan may be.
    """

    def __init__(
        self,
        graph: GraphStores,
        saga: AdmissionSaga,
        instance: Incarnation,
        clock: Clock,
        ids: Ids,
        limits: Limits = LIMITS,
    ) -> None:
        self._graph = graph
        self._saga = saga
        self._instance = instance
        self._clock = clock
        self._ids = ids
        self._limits = limits

    def admit(self, plan: Plan, key: str, body_digest: str = "") -> Admitted:
        """Admit `plan` once per `key` of its tenant.

        Args:
            plan: Expanded.
            key: The idempotency key.
            body_digest: Of the request that was expanded to `plan`; by default of the plan.

        Raises:
            Rejected: The plan is refused, or the key came with another request; no task will run.
            Unavailable: Perhaps accepted; then it is finished all the same. Repeat with the key.
            OutcomeUnknown: As `Unavailable`.
        """
        checked(plan, self._limits)
        wanted = self._admission(plan, key, body_digest or content_digest(plan))
        (accepted,) = create(self._graph.admissions, [wanted])
        admission = same_or_refused(accepted.value, wanted.body_digest)
        return self._carried_out(admission, is_repeat=admission.run != wanted.run)

    def earlier(self, tenant: str, key: str, body_digest: str) -> Admitted | None:
        """Return the run of a request that came before, or None; nothing is expanded or checked.

        The same request is the same run though it could not be expanded any more.

        Raises:
            Rejected, Unavailable, OutcomeUnknown: As `admit`.
        """
        (found,) = self._graph.admissions.read([admission_key("client", tenant, key)])
        if found is None:
            return None
        return self._carried_out(same_or_refused(found, body_digest), is_repeat=True)

    def _carried_out(self, admission: Admission, *, is_repeat: bool) -> Admitted:
        if admission.state is AdmissionState.ACCEPTED:
            run = self._saga.carry_out(admission)
        else:
            (found,) = self._graph.runs.read([admission.run])
            ensure(found is not None, f"admission {admission.id} is over and has a run")
            run = cast("Run", found)
        if run.state is RunState.REFUSED:
            raise InvalidGraph(problems=[f"a store refused it: {run.reason}"])
        return Admitted(run, is_repeat)

    def admit_occurrence(self, plan: Plan, key: str, run: RunId) -> Admission:
        """Admit `plan` as the one run of a schedule's occurrence, and return what stands for it.

        Whatever came first stands, whoever brought it and whatever plan it had: the zone may have
        changed between two tries.

        Args:
            plan: Of the occurrence.
            key: Of the occurrence.
            run: The id that its run gets.

        Raises:
            Rejected: The plan is refused; nothing was written.
            Unavailable, OutcomeUnknown: Perhaps accepted; call again.
        """
        checked(plan, self._limits)
        wanted = self._admission(plan, key, content_digest(plan))
        occurrence = admission_key("schedule", plan.tenant, key)
        cause = f"schedule {key}"
        (accepted,) = create(
            self._graph.admissions, [replace(wanted, id=occurrence, run=run, cause=cause)]
        )
        if accepted.value.state is AdmissionState.ACCEPTED:
            self._saga.carry_out(accepted.value)
        return accepted.value

    def refuse_occurrence(self, plan: Plan, key: str, run: RunId, reason: str) -> Admission:
        """Refuse an occurrence for good, and return what stands for it: perhaps it was admitted.

        Raises:
            Unavailable, OutcomeUnknown: Perhaps refused; call again.
        """
        wanted = replace(
            self._admission(plan, key, content_digest(plan)),
            id=admission_key("schedule", plan.tenant, key),
            run=run,
            state=AdmissionState.REFUSED,
            reason=reason,
        )
        (standing,) = create(self._graph.admissions, [wanted])
        return standing.value

    def _admission(self, plan: Plan, key: str, body_digest: str) -> Admission:
        return Admission(
            id=admission_key("client", plan.tenant, key),
            tenant=plan.tenant,
            key=key,
            body_digest=body_digest,
            run=RunId(self._ids.new()),
            plan=plan,
            trace=f"00-{self._ids.new()}-{self._ids.new()[-16:]}-01",
            instance=self._instance,
            created_at=self._clock.now(),
        )
