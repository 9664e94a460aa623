"""The cluster manager role: admissions of dead submitters are finished by a live one."""

from __future__ import annotations

from region_scheduler.admission.saga import AdmissionSaga
from region_scheduler.commit.gate import Change, Decision, commit
from region_scheduler.domain.admission import Admission, AdmissionState, taken_over
from region_scheduler.domain.ids import Incarnation
from region_scheduler.domain.run import Run
from region_scheduler.errors import BrokenInvariant, RegionSchedulerError
from region_scheduler.membership.keeper import LeaseKeeper
from region_scheduler.ports.records import GraphStores


class ClusterManager:
    """Takes over what fenced submitters left undone. Overlapping ones are safe: epochs decide.

    Args:
        graph: The graph store.
        saga: Carries admissions out.
        keeper: This process's lease.
    """

    def __init__(self, graph: GraphStores, saga: AdmissionSaga, keeper: LeaseKeeper) -> None:
        self._graph = graph
        self._saga = saga
        self._keeper = keeper

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
        for admission in self._orphans():
            try:
                published.append(self._saga.carry_out(admission))
            except (RegionSchedulerError, BrokenInvariant) as failure:
                failures.append(failure)
        if failures:
            raise failures[0]
        return published

    def _orphans(self) -> list[Admission]:
        open_ = self._graph.admissions.unfinished()
        if not open_:
            return []
        me = self._keeper.instance.id
        fenced = {instance.id for instance in self._graph.instances.fenced()}
        mine = [a for a in open_ if a.instance == me]
        orphaned = [a for a in open_ if a.instance in fenced]
        changes = [Change(a.id, _taking_over(a.instance, me), known=a) for a in orphaned]
        taken = [o.value for o in commit(self._graph.admissions, changes) if o.is_ours]
        return [
            a
            for a in (*mine, *taken)
            if a is not None and a.state is AdmissionState.ACCEPTED and a.instance == me
        ]


def _taking_over(dead: Incarnation, by: Incarnation) -> Decision[Admission]:
    def decide(admission: Admission) -> Admission:
        # Another cluster manager may have been faster: what a live instance does is left to it.
        return taken_over(admission, by) if admission.instance == dead else admission

    return decide
