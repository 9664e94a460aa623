"""The cluster manager role: admissions of dead submitters are finished by a live one.

Every serving process of every region carries it; one of them leads (`membership.leader`). Two may
believe to lead for a while, one of them paused or cut off: an admission is taken over by a write on
the revision read, one epoch higher, and only from the dead instance that was seen, so each is won
by one of them.

How far a take-over has come stands in the admissions themselves: whoever leads next goes on there.

The leader also removes what was written of runs that were refused, or cancelled before they were
published; never anything of a run that was.
"""

from __future__ import annotations

from math import inf

from region_scheduler.admission.saga import AdmissionSaga
from region_scheduler.commit.gate import Change, Decision, commit_one
from region_scheduler.domain.admission import (
    Admission,
    AdmissionState,
    AdmissionSummary,
    taken_over,
)
from region_scheduler.domain.ids import Incarnation
from region_scheduler.domain.lease import LeaseTimings
from region_scheduler.domain.run import Run
from region_scheduler.errors import BrokenInvariant, RegionSchedulerError
from region_scheduler.lifecycle.leftover import sweep_unpublished
from region_scheduler.membership.keeper import LeaseKeeper
from region_scheduler.membership.leader import leads
from region_scheduler.membership.observer import Observer
from region_scheduler.ports.records import GraphStores
from region_scheduler.ports.time import Clock


class ClusterManager:
    """Takes over what dead submitters left undone, while it leads. One admission at a time.

    Args:
        graph: The graph store.
        saga: Carries admissions out.
        keeper: This process's lease.
        timings: Lease arithmetic.
        clock: This machine's clock.
    """

    def __init__(
        self,
        graph: GraphStores,
        saga: AdmissionSaga,
        keeper: LeaseKeeper,
        timings: LeaseTimings,
        clock: Clock,
    ) -> None:
        self._graph = graph
        self._saga = saga
        self._keeper = keeper
        self._clock = clock
        self._observer = Observer(timings)
        self._sweep_every_s = timings.reconcile_every_s
        self._swept_at = -inf

    def tick(self) -> list[Run]:
        """Finish every orphaned admission; return the runs that were published.

        One that cannot be finished does not keep the others waiting.

        Raises:
            Unavailable, OutcomeUnknown: Of the first that was not finished; the next tick goes on.
            BrokenInvariant: The same.
        """
        if not self._keeper.may_act():
            return []
        published: list[Run] = []
        failures: list[Exception] = []
        for found in self._to_finish():
            try:
                admission = self._own(found)
                if admission is not None:
                    published.append(self._saga.carry_out(admission))
            except (RegionSchedulerError, BrokenInvariant) as failure:
                failures.append(failure)
        self._sweep()
        if failures:
            raise failures[0]
        return published

    def _sweep(self) -> None:
        """Remove what a crash, or a late writer, left of runs that never start.

        Not at every look: the store goes through all that were ever refused.
        """
        now = self._clock.monotonic()
        if now - self._swept_at < self._sweep_every_s:
            return
        self._swept_at = now
        left = [run for run, is_left in self._graph.leftovers.unpublished().items() if is_left]
        if left and leads(self._keeper.instance.id, self._graph.instances.unfenced()):
            for run in left:
                sweep_unpublished(self._graph, run)

    def _to_finish(self) -> list[AdmissionSummary]:
        """Return our own, and if we lead those of dead instances."""
        open_ = self._graph.admissions.unfinished()
        others = sorted({a.instance for a in open_} - {self._keeper.instance.id})
        dead = self._dead(others)
        if dead and not leads(self._keeper.instance.id, self._graph.instances.unfenced()):
            dead = set()
        return [a for a in open_ if a.instance in dead or a.instance not in others]

    def _dead(self, ids: list[Incarnation]) -> set[Incarnation]:
        """Return those that were fenced, or that no lease document was seen of for a lease."""
        found = self._graph.instances.read(ids) if ids else []
        fenced = {i.id for i in found if i is not None and i.fenced is not None}
        absent = [id_ for id_, i in zip(ids, found, strict=True) if i is None]
        now, unbroken_since = self._clock.monotonic(), self._keeper.unbroken_since
        return fenced | set(self._observer.gone(absent, now, unbroken_since))

    def _own(self, found: AdmissionSummary) -> Admission | None:
        """Take an admission over unless it is ours; None if somebody else was faster."""
        me = self._keeper.instance.id
        if not self._keeper.may_act():
            return None
        change = Change(found.id, _taking_over(found.instance, me))
        admission = commit_one(self._graph.admissions, change)
        is_ours = admission.instance == me and admission.state is AdmissionState.ACCEPTED
        return admission if is_ours else None


def _taking_over(dead: Incarnation, by: Incarnation) -> Decision[Admission]:
    def decide(admission: Admission) -> Admission:
        # What has a live instance meanwhile is left to it; ours stays as it is.
        is_orphan = admission.instance == dead != by
        return taken_over(admission, by) if is_orphan else admission

    return decide
