"""How old the local follower's view is, judged by one's own monotonic clock."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from region_scheduler.domain.ids import Incarnation
from region_scheduler.domain.lease import Instant
from region_scheduler.errors import Unavailable
from region_scheduler.ports.records import GraphStores
from region_scheduler.ports.time import Clock


@dataclass(frozen=True, slots=True)
class ReplicaAge:
    """How far the follower is.

    Attributes:
        seconds: Since it was last known to show all that the leader had shown.
        is_stale: It is older than allowed: nothing is read from it but for views that say so.
    """

    seconds: float
    is_stale: bool


class ReplicaWatch:
    """Compares the beats of all leases at the leader with those that the follower shows.

    All processes beat, so that something new is to be seen every few seconds. A follower that shows
    it is as new as the leader's answer was; one that does not, or a leader that does not answer, is
    as old as the last time that it did. Stamps of other machines are not looked at. What it cannot
    see: a follower that stands still in another collection alone.

    Args:
        graph: The graph store; its follower is trusted again, or no longer, at every look.
        stale_max_s: How old its view may be, seconds.
        clock: This machine's clock.
    """

    def __init__(self, graph: GraphStores, stale_max_s: float, clock: Clock) -> None:
        self._graph = graph
        self._stale_max_s = stale_max_s
        self._clock = clock
        self._level_at = clock.monotonic()
        self._due: tuple[Instant, Mapping[Incarnation, int]] | None = None

    @property
    def age(self) -> ReplicaAge:
        """How old the follower's view is now, at most."""
        seconds = self._clock.monotonic() - self._level_at
        return ReplicaAge(seconds, seconds > self._stale_max_s)

    def tick(self) -> ReplicaAge:
        """Look once."""
        with suppress(Unavailable):  # whoever does not answer, the age goes on
            self._look()
        age = self.age
        self._graph.follower.trust(not age.is_stale)
        return age

    def _look(self) -> None:
        now = self._clock.monotonic(), {i.id: i.beat for i in self._graph.instances.unfenced()}
        shown = self._graph.follower.beats()
        for at, beats in (self._due, now) if self._due else (now,):
            if all(shown.get(id_, -1) >= beat for id_, beat in beats.items()):
                self._level_at, self._due = at, None
            elif self._due is None:
                self._due = (at, beats)  # it is waited for until it is there
