"""Learns from the newest histories how long a region's steps take."""

from __future__ import annotations

from functools import partial
from typing import Final

from region_scheduler.commit.create import create
from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.durations import Durations, learned, updated
from region_scheduler.membership.keeper import LeaseKeeper
from region_scheduler.ports.records import GraphStores
from region_scheduler.ports.time import Clock

EVERY_S: Final = 300.0
_RUNS: Final = 50
_SAMPLES: Final = 5_000


class Learner:
    """Computes the figures of its region anew from what there is: nothing is counted up.

    So a tick that breaks off, comes twice or sees an old view does no harm; the next one is right.

    Args:
        region: Whose ends it learns from.
        graph: The graph store.
        keeper: This process's lease.
        clock: For stamps.
    """

    def __init__(self, region: str, graph: GraphStores, keeper: LeaseKeeper, clock: Clock) -> None:
        self._region = region
        self._graph = graph
        self._keeper = keeper
        self._clock = clock

    def tick(self) -> Durations | None:
        """Look at the newest runs once; return what is known then, None if nothing was looked at.

        Raises:
            Unavailable, OutcomeUnknown, LostRace: The next tick does it.
        """
        if not self._keeper.may_act():
            return None
        fresh = learned(self._graph.durations.samples(self._region, _RUNS, _SAMPLES))
        empty = Durations(id=self._region, at=self._clock.now())
        if not fresh:
            return empty
        (standing,) = create(self._graph.durations, [empty])
        change = partial(updated, fresh=fresh, at=self._clock.now())
        known = standing.value
        return commit_one(self._graph.durations, Change(known.id, change, known=known))
