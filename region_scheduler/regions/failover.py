"""The failover: gives silent regions up, moves what has to leave a region, and lets them return."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from region_scheduler.commit.gate import Change, commit
from region_scheduler.domain.instance import Instance
from region_scheduler.domain.lease import Instant, LeaseTimings
from region_scheduler.domain.region import Region, RegionStatus, failed, returned
from region_scheduler.domain.relocation import destinations, relocate, sites
from region_scheduler.domain.transitions import Stamp
from region_scheduler.lifecycle.settle import Settler
from region_scheduler.membership.keeper import LeaseKeeper
from region_scheduler.membership.leader import leads
from region_scheduler.ports.records import GraphStores
from region_scheduler.ports.time import Clock
from region_scheduler.regions.silence import RegionWatch

_MOVES_MAX: Final = 1_000
"""Tasks of one region that one tick moves at most."""


@dataclass(frozen=True, slots=True)
class FailedOver:
    """What one tick did and found.

    Attributes:
        failed: Regions that were given up.
        returned: Regions that take work again.
        moved: How many tasks went from one region to another.
        waiting: How many tasks of a region no other may and can take; only regions that have some.
    """

    failed: tuple[str, ...] = ()
    returned: tuple[str, ...] = ()
    moved: Mapping[tuple[str, str], int] = field(default_factory=dict)
    waiting: Mapping[str, int] = field(default_factory=dict)


class Failover:
    """Watches all regions; acts for its own, if it leads for all, and late in a leader's place.

    Args:
        region: Its own.
        is_automatic: Whether it gives up silent regions, and lets its own return; what an operator
            decided it carries out in any case.
        graph: The graph store.
        keeper: This process's lease; without it nothing is judged.
        settler: Wakes the regions that got work.
        timings: Lease arithmetic.
        clock: This machine's clock.
    """

    def __init__(
        self,
        region: str,
        is_automatic: bool,
        graph: GraphStores,
        keeper: LeaseKeeper,
        settler: Settler,
        timings: LeaseTimings,
        clock: Clock,
    ) -> None:
        self._region = region
        self._is_automatic = is_automatic
        self._graph = graph
        self._keeper = keeper
        self._settler = settler
        self._timings = timings
        self._clock = clock
        self._watch = RegionWatch(timings)
        self._moved_at: dict[str, Instant] = {}

    def tick(self) -> FailedOver:
        """Look once at all regions. Level-triggered: repeating it is safe.

        Raises:
            Unavailable, OutcomeUnknown: Part of it may be done; the next tick does the rest.
        """
        if not self._keeper.may_act():
            return FailedOver()
        regions, instances = self._graph.regions.all(), self._graph.instances.unfenced()
        now, unbroken_since = self._clock.monotonic(), self._keeper.unbroken_since
        is_leader = leads(self._keeper.instance.id, instances)
        # Who leads over a link that comes and goes judges nobody, and is not fenced either.
        leases = 1 if is_leader else 2
        silent = self._watch.silent(regions, instances, now, unbroken_since, leases)
        back = self._return(regions, now - unbroken_since)
        given_up = self._give_up(silent)
        if not is_leader:
            self._moved_at.clear()
            return FailedOver(_ids(given_up), _ids(back))
        known = {region.id: region for region in [*regions, *back, *given_up]}
        moved, waiting = self._move(list(known.values()), instances, now)
        return FailedOver(_ids(given_up), _ids(back), moved, waiting)

    def _return(self, regions: Sequence[Region], unbroken_s: float) -> list[Region]:
        """Let the own region take work again, if only the failover had given it up."""
        mine = next((region for region in regions if region.id == self._region), None)
        is_steady = unbroken_s >= self._timings.lease_s
        if mine is None or mine.status is not RegionStatus.DOWN:
            return []
        if not self._is_automatic or mine.status_by or not is_steady:
            return []
        return self._written([Change(mine.id, returned, known=mine)])

    def _give_up(self, silent: Sequence[Region]) -> list[Region]:
        """Write down that regions are down of which no process has a lease."""
        if not self._is_automatic:
            return []
        give_up = partial(failed, reason="no process of it has a lease")
        return self._written(
            [
                Change(region.id, give_up, known=region)
                for region in silent
                if region.status is not RegionStatus.DOWN
            ]
        )

    def _written(self, changes: Sequence[Change[Region]]) -> list[Region]:
        outcomes = commit(self._graph.regions, changes) if changes else []
        return [o.value for o in outcomes if o.is_ours and o.value is not None]

    def _move(
        self, regions: Sequence[Region], instances: Sequence[Instance], now: Instant
    ) -> tuple[Mapping[tuple[str, str], int], Mapping[str, int]]:
        """Move what nobody holds out of the regions that it has to leave."""
        leaving = [region for region in regions if region.is_leaving]
        limits = {region.id: self._limit(region, now) for region in leaving}
        self._moved_at = {id_: at for id_, at in self._moved_at.items() if id_ in limits}
        moved: Counter[tuple[str, str]] = Counter()
        waiting: dict[str, int] = {}
        if not leaving:
            return moved, waiting
        load = Counter(self._graph.tasks.load())
        stamp = Stamp(self._keeper.instance.id, self._clock.now())
        for region in leaving:
            open_sites = sites(regions, instances, load)
            found = self._graph.tasks.unheld(region.id, open_sites, _MOVES_MAX)
            chosen = destinations(found.tasks, open_sites)
            if stuck := found.stuck + len(chosen.waiting):
                waiting[region.id] = stuck
            known = {task.id: task for task in found.tasks}
            batch = list(chosen.to.items())[: limits[region.id]]
            changes = [
                Change(
                    id_,
                    partial(relocate, source=region.id, region=to, stamp=stamp),
                    known=known[id_],
                )
                for id_, to in batch
            ]
            outcomes = commit(self._graph.tasks, changes) if changes else []
            arrived = [o.value.region for o in outcomes if o.is_ours and o.value is not None]
            load.update(arrived)
            moved.update((region.id, to) for to in arrived)
            self._moved_at[region.id] = now if batch else self._moved_at.get(region.id, now)
        self._settler.wake({to for _, to in moved})
        return moved, waiting

    def _limit(self, region: Region, now: Instant) -> int:
        """Return how many tasks may leave now: for an evacuation by its rate, by our own clock."""
        if region.status is RegionStatus.DOWN or not region.moves_per_s:
            return _MOVES_MAX
        since_s = now - self._moved_at.get(region.id, now)
        return min(_MOVES_MAX, int(since_s * region.moves_per_s))


def _ids(regions: Sequence[Region]) -> tuple[str, ...]:
    return tuple(region.id for region in regions)
