"""What one scheduler of a region promotes, while others promote the rest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from region_scheduler.commit.gate import Change, Fate, commit
from region_scheduler.domain.ids import Incarnation
from region_scheduler.domain.ownership import Ownership, owners, share_of
from region_scheduler.domain.region import Region, led_by
from region_scheduler.ports.backlog import Backlog
from region_scheduler.ports.records import GraphStores
from region_scheduler.ports.standing import Standing
from region_scheduler.scheduling.promote import Room


@dataclass(frozen=True, slots=True)
class Part:
    """What is mine of a region's work.

    Attributes:
        buckets: Whose rows are mine; None for all.
        room: What I may promote now.
    """

    buckets: frozenset[int] | None
    room: Room


class Owner:
    """One scheduler among those of its region.

    Args:
        mode: How they share the work.
        me: This incarnation.
        graph: The graph store: who lives, who leads.
        backlog: The region's backlog: whose rows there are.
    """

    def __init__(
        self, mode: Ownership, me: Incarnation, graph: GraphStores, backlog: Backlog
    ) -> None:
        self._mode = mode
        self._me = me
        self._graph = graph
        self._backlog = backlog

    def may_promote(self, region: Region) -> bool:
        """Say whether this scheduler promotes at all; it takes over from a leader that is no more.

        Args:
            region: As just read at the leader.

        Raises:
            Unavailable: No answer; nothing was written.
        """
        if self._mode is not Ownership.LEADER or region.leader == self._me:
            return True
        if region.leader:
            (leader,) = self._graph.instances.read([region.leader])
            if leader is not None and leader.fenced is None:
                return False
        take = partial(led_by, successor=self._me, dead=region.leader)
        (outcome,) = commit(self._graph.regions, [Change(region.id, take, known=region)])
        return outcome.fate is Fate.COMMITTED

    def part(self, standing: Standing, room: Room) -> Part:
        """Return what of `room` is mine, and from which rows.

        Those without rows of their own leave their part to the others.

        Args:
            standing: How the region stands: who schedules there.
            room: What all may promote together.

        Raises:
            Unavailable: No answer.
        """
        if self._mode in {Ownership.LEADER, Ownership.NONE} or not room.total:
            return Part(None, room)
        peers = frozenset({self._me, *(i.id for i in standing.schedulers)})
        if len(peers) == 1:
            return Part(None, room)
        owner = owners(peers)
        mine = frozenset(bucket for bucket, peer in enumerate(owner) if peer == self._me)
        sharers = {self._me, *(owner[bucket] for bucket in self._backlog.buckets())}
        return Part(mine, room.within(share_of(room.total, self._me, sharers)))
