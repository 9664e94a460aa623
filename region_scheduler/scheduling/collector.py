"""Garbage collection as a tick: what is old and not needed goes, a bounded part at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from region_scheduler.domain.lease import LeaseTimings
from region_scheduler.domain.retention import RecordKind, Retention
from region_scheduler.domain.skew import ahead_s
from region_scheduler.lifecycle.collect import Policy, collect, removable
from region_scheduler.membership.keeper import LeaseKeeper
from region_scheduler.membership.leader import leads
from region_scheduler.ports.records import GraphStores
from region_scheduler.ports.time import Clock

_LIMIT: Final = 100


@dataclass(frozen=True, slots=True)
class Collected:
    """What one tick did.

    Attributes:
        wait_s: Seconds after which the next tick is due.
        gone: How many of each kind were removed.
        forgotten: Rows of the region's relational store whose run is gone.
        clock_ahead_s: How far our clock is ahead, if that is too far to call anything old; else 0.
    """

    wait_s: float
    gone: Mapping[RecordKind, int] = field(default_factory=dict)
    forgotten: int = 0
    clock_ahead_s: float = 0.0


class Collector:
    """Removes what retention gives up. One of all regions does it, and each for its own rows.

    Args:
        graph: The graph store.
        retention: What is kept, and how often to look.
        forget: Drops the region's rows of runs that are gone.
        keeper: This process's lease; without it nothing is removed.
        timings: Paces, and how far ahead a clock may be.
        clock: This machine's clock.
    """

    def __init__(
        self,
        graph: GraphStores,
        retention: Retention,
        forget: Callable[[], int],
        keeper: LeaseKeeper,
        timings: LeaseTimings,
        clock: Clock,
    ) -> None:
        self._graph = graph
        self._retention = retention
        self._forget = forget
        self._keeper = keeper
        self._timings = timings
        self._clock = clock

    def tick(self) -> Collected:
        """Remove some of what may go; soon again if there is more.

        Two that believe to lead do no harm: what one has removed is missing for the other.

        Raises:
            Unavailable, OutcomeUnknown: Part of it may be done; the next tick goes on.
        """
        if not self._keeper.may_act():
            return Collected(self._timings.reconcile_every_s)
        alive, now = self._graph.instances.unfenced(), self._clock.now()
        ahead = ahead_s(now, alive)
        if ahead > self._timings.skew_max_s:
            return Collected(self._retention.every_s, clock_ahead_s=ahead)
        gone: Mapping[RecordKind, int] = {}
        wait_s = self._retention.every_s
        if leads(self._keeper.instance.id, alive):
            found = removable(self._graph, Policy(self._retention, now, _LIMIT))
            gone = collect(self._graph, found)
            if any(len(records) == _LIMIT for records in found.values()):
                wait_s = self._timings.reconcile_every_s
        return Collected(wait_s, {kind: n for kind, n in gone.items() if n}, self._forget())
