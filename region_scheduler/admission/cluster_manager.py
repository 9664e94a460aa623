"""The cluster manager role: admissions of dead submitters are finished by a live one."""

from __future__ import annotations

from functools import partial

from region_scheduler.admission.saga import AdmissionSaga
from region_scheduler.commit.gate import Change, commit
from region_scheduler.domain.admission import Admission, AdmissionState, taken_over
from region_scheduler.domain.run import Run
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

        Raises:
            Unavailable, OutcomeUnknown: The next tick goes on.
        """
        if not self._keeper.may_act():
            return []
        return [self._saga.carry_out(admission) for admission in self._orphans()]

    def _orphans(self) -> list[Admission]:
        open_ = self._graph.admissions.unfinished()
        if not open_:
            return []
        me = self._keeper.instance.id
        fenced = {instance.id for instance in self._graph.instances.fenced()}
        mine = [a for a in open_ if a.instance == me]
        orphaned = [a for a in open_ if a.instance in fenced]
        changes = [Change(a.id, partial(taken_over, by=me), known=a) for a in orphaned]
        taken = [o.value for o in commit(self._graph.admissions, changes) if o.is_ours]
        return [
            a
            for a in (*mine, *taken)
            if a is not None and a.state is AdmissionState.ACCEPTED and a.instance == me
        ]
