"""Draw work that may run anywhere to where capacity is free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf

from region_scheduler.commit.gate import Change, commit
from region_scheduler.domain.ids import Incarnation
from region_scheduler.domain.instance import Instance
from region_scheduler.domain.region import Region
from region_scheduler.domain.relocation import relocate
from region_scheduler.domain.task import Task
from region_scheduler.domain.transitions import Stamp
from region_scheduler.ports.backlog import Backlog, BacklogRow
from region_scheduler.ports.records import GraphStores
from region_scheduler.ports.time import Clock


@dataclass(frozen=True, slots=True)
class Surplus:
    """A region that has more to do than it can begin.

    Attributes:
        count: How many of its tasks wait although all its slots are taken.
    """

    region: str
    count: int


def surpluses(
    regions: Sequence[Region], instances: Sequence[Instance], load: Mapping[str, int]
) -> list[Surplus]:
    """Return the living regions with more work than slots, the fullest first.

    One that is down or evacuates is left to the failover.

    Args:
        regions: All regions.
        instances: Every incarnation whose lease is not over.
        load: Tasks that are ready or in flight, by region.
    """
    slots: Counter[str] = Counter()
    for one in instances:
        slots[one.region] += one.slots
    found = [
        Surplus(region.id, load.get(region.id, 0) - slots[region.id])
        for region in regions
        if not region.is_leaving
    ]
    full = [one for one in found if one.count > 0]
    return sorted(full, key=lambda one: (-one.count, one.region))


class Flow:
    """Fetches for one region, when it has room to spare, what waits in others.

    What it fetches is the least urgent of what a full region has: the most urgent is what that
    region takes next itself. A task is fetched by a conditional write on its `region`, so of two
    regions that want it, or one that claims it meanwhile, one wins.

    Args:
        region: Its own.
        graph: The graph store; whom it asks is chosen by what the local follower shows.
        backlog: The region's backlog, which gets the rows of what was fetched.
        who: Named in the tasks' histories.
        every_s: Pause between two looks, in seconds.
        clock: This machine's clock.
    """

    def __init__(
        self,
        region: str,
        graph: GraphStores,
        backlog: Backlog,
        who: Incarnation,
        every_s: float,
        clock: Clock,
    ) -> None:
        self._region = region
        self._graph = graph
        self._backlog = backlog
        self._who = who
        self._every_s = every_s
        self._clock = clock
        self._looked_at = -inf

    def draw(self, pools: Sequence[str], count: int) -> list[Task]:
        """Fetch up to `count` tasks of `pools` from regions that are full; return what came.

        Raises:
            Unavailable, OutcomeUnknown: Some may have moved; the mender gives them their rows.
        """
        now = self._clock.monotonic()
        if count < 1 or not pools or now - self._looked_at < self._every_s:
            return []
        self._looked_at = now
        load = self._graph.tasks.load()
        if not load.keys() - {self._region}:
            return []  # nobody else has anything to do: the leader is not asked
        regions, members = self._graph.regions.all(), self._graph.instances.unfenced()
        fetched: list[Task] = []
        for full in surpluses(regions, members, load):
            room = min(full.count, count - len(fetched))
            if full.region != self._region and room > 0:
                fetched += self._fetch(full.region, pools, room)
        if fetched:
            rows = [BacklogRow.of(task) for task in fetched]
            self._backlog.add(rows, self._clock.now().timestamp())
        return fetched

    def _fetch(self, source: str, pools: Sequence[str], count: int) -> list[Task]:
        found = self._graph.tasks.movable(source, self._region, pools, count)
        stamp = Stamp(self._who, self._clock.now())
        fetch = partial(relocate, source=source, region=self._region, stamp=stamp)
        outcomes = commit(self._graph.tasks, [Change(task.id, fetch, known=task) for task in found])
        won = [o.value for o in outcomes if o.is_ours and o.value is not None]
        return [task for task in won if task.region == self._region]
