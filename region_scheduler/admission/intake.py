"""Accept a checked plan under an idempotency key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, cast

from region_scheduler.admission.capacities import known_of
from region_scheduler.admission.expectations import Expectations
from region_scheduler.admission.rules import checked
from region_scheduler.admission.saga import AdmissionSaga
from region_scheduler.commit.create import create
from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.admission import (
    Admission,
    AdmissionState,
    Plan,
    admission_key,
    in_place_of,
    same_or_refused,
)
from region_scheduler.domain.content import content_digest
from region_scheduler.domain.durations import expecting
from region_scheduler.domain.grant import RunGrant
from region_scheduler.domain.ids import Incarnation, RunId
from region_scheduler.domain.limits import LIMITS, Limits
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RunState
from region_scheduler.errors import (
    InvalidGraph,
    LostRace,
    RegionSchedulerError,
    Throttled,
    ensure,
)
from region_scheduler.identity.quotas import Quotas
from region_scheduler.lifecycle.residence import Residence
from region_scheduler.ports.records import GraphStores
from region_scheduler.ports.time import Clock, Ids

_ROUNDS_MAX: Final = 5


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
        quotas: How much a tenant may have.
        limits: How big a plan may be.
        residence: Keeps resident inputs; without it a plan that has some is refused.
    """

    def __init__(
        self,
        graph: GraphStores,
        saga: AdmissionSaga,
        instance: Incarnation,
        clock: Clock,
        ids: Ids,
        quotas: Quotas,
        limits: Limits = LIMITS,
        residence: Residence | None = None,
    ) -> None:
        self._graph = graph
        self._saga = saga
        self._instance = instance
        self._clock = clock
        self._ids = ids
        self._limits = limits
        self._quotas = quotas
        self._residence = residence
        self._expectations = Expectations(graph.durations, clock)

    def admit(
        self,
        plan: Plan,
        key: str,
        body_digest: str = "",
        announce: Callable[[Admission], None] = lambda _: None,
    ) -> Admitted:
        """Admit `plan` once per `key` of its tenant.

        Args:
            plan: Expanded.
            key: The idempotency key.
            body_digest: Of the request that was expanded to `plan`; by default of the plan.
            announce: Told of the admission before it is made; perhaps another stands there then.

        Raises:
            Rejected: The plan is refused, or the key came with another request; no task will run.
            Throttled: The tenant is at its quota, and the key is new; nothing was accepted.
            LostRace: Others were always faster; nothing was accepted.
            Unavailable: Perhaps accepted; then it is finished all the same. Repeat with the key.
            OutcomeUnknown: As `Unavailable`.
        """
        self._check(plan)
        digest = body_digest or content_digest(plan)
        wanted, standing = self._accepted(lambda: self._admission(plan, key, digest), announce)
        admission = same_or_refused(standing, digest)
        return self._carried_out(admission, is_repeat=admission.run != wanted.run)

    def earlier(self, tenant: str, key: str, body_digest: str) -> Admitted | None:
        """Return the run of a request that came before, or None; nothing is expanded or checked.

        The same request is the same run though it could not be expanded any more.

        Raises:
            Rejected, Unavailable, OutcomeUnknown: As `admit`.
        """
        found = self._standing(admission_key("client", tenant, key))
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
            Throttled: The tenant is at its quota; nothing was accepted.
            LostRace, Unavailable, OutcomeUnknown: Perhaps accepted; call again.
        """
        self._check(plan)
        digest = content_digest(plan)
        cause = f"schedule {key}"
        _, standing = self._accepted(
            lambda: replace(self._occurrence(plan, key, run, digest), cause=cause)
        )
        if standing.state is AdmissionState.ACCEPTED:
            self._saga.carry_out(standing)
        return standing

    def refuse_occurrence(self, plan: Plan, key: str, run: RunId, reason: str) -> Admission:
        """Refuse an occurrence for good, and return what stands for it: perhaps it was admitted.

        Raises:
            LostRace, Unavailable, OutcomeUnknown: Perhaps refused; call again.
        """
        wanted = replace(
            self._occurrence(plan, key, run, content_digest(plan)),
            state=AdmissionState.REFUSED,
            reason=reason,
        )
        standing = self._made(wanted, None)
        return self._made(wanted, standing) if standing.state is AdmissionState.VOID else standing

    def _check(self, plan: Plan) -> None:
        checked(plan, self._limits, known_of(plan, self._graph.slots.capacities))
        if self._residence is not None:
            self._residence.check(plan)
        elif any(spec.is_resident for spec in plan.tasks):
            raise InvalidGraph(problems=["it has resident tasks, and no region's storage is known"])

    def _accepted(
        self,
        make: Callable[[], Admission],
        announce: Callable[[Admission], None] = lambda _: None,
    ) -> tuple[Admission, Admission]:
        """Return an admission as it was wanted, and the one that now stands under its key.

        What was granted and then revoked (this process was taken for dead) finds a void admission
        in its place. It may be replaced only by what was granted after it was seen.
        """
        void: Admission | None = None
        for _ in range(_ROUNDS_MAX):
            wanted = make()
            grant = RunGrant(
                id=self._ids.new(),
                admission=wanted.id,
                run=wanted.run,
                instance=self._instance,
            )
            try:
                is_bounded = self._quotas.grant_run(wanted.tenant, grant)
            except Throttled:
                if (known := self._standing(wanted.id)) is not None:
                    return wanted, known
                raise
            try:
                announce(wanted)
                standing = self._made(wanted, void)
            except RegionSchedulerError:
                if is_bounded:
                    self._quotas.give_back(wanted.tenant, grant)
                raise
            if standing.state is not AdmissionState.VOID:
                return wanted, standing
            void = standing
        raise LostRace(thing="an admission", winner="who revoked its grants")

    def _made(self, wanted: Admission, void: Admission | None) -> Admission:
        """Insert an admission, or put it in the place of a void one; return what stands there."""
        if void is None:
            (made,) = create(self._graph.admissions, [wanted])
            return made.value
        put = partial(in_place_of, known=void, wanted=wanted)
        try:
            return commit_one(self._graph.admissions, Change(void.id, put, known=void))
        except LostRace:
            (found,) = self._graph.admissions.read([void.id])
            return found or void

    def _standing(self, id_: str) -> Admission | None:
        (found,) = self._graph.admissions.read([id_])
        return None if found is None or found.state is AdmissionState.VOID else found

    def _occurrence(self, plan: Plan, key: str, run: RunId, digest: str) -> Admission:
        id_ = admission_key("schedule", plan.tenant, key)
        return replace(self._admission(plan, key, digest), id=id_, run=run)

    def _admission(self, plan: Plan, key: str, body_digest: str) -> Admission:
        if self._residence is not None:
            plan = self._residence.sealed_plan(plan)
        return Admission(
            id=admission_key("client", plan.tenant, key),
            tenant=plan.tenant,
            key=key,
            body_digest=body_digest,
            run=RunId(self._ids.new()),
            plan=expecting(plan, self._expectations.known()),
            trace=f"00-{self._ids.new()}-{self._ids.new()[-16:]}-01",
            instance=self._instance,
            created_at=self._clock.now(),
        )
