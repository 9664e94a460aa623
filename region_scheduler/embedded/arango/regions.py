"""The regions of an engine: each has a coordinator, and a follower that may lag.

Writes, and reads that decide, go to the leader, which is the one present state of the engine. A
read with `x-arango-allow-dirty-read` goes to the follower in its own region: the present with those
commits taken away that have not arrived there yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf

from region_scheduler.embedded.arango.http.message import Request
from region_scheduler.embedded.arango.storage.collection import Collection
from region_scheduler.embedded.arango.storage.horizon import Horizon, SlidingHorizon
from region_scheduler.embedded.arango.storage.store import Store


class Region:
    """One region, and what is wrong with it. Change it within `Regions.changing`.

    Attributes:
        lag_s: How late commits arrive at its follower.
        shard_lag_s: The same for single shards, by collection and shard number.
        is_frozen: Whether its follower receives nothing at all.
        rtt_s: Round trip from its coordinator to the leader.
        is_cut: Whether its coordinator and follower can reach no other region.
        is_refusing: Whether, while it is cut, requests are refused (503) instead of left hanging.
        held: Requests that hang because of the cut; some are executed when it heals.
        old_leader: The state that a deposed leader here still shows to every read, if there is one.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.lag_s = 0.0
        self.shard_lag_s: dict[tuple[str, int], float] = {}
        self.is_frozen = False
        self.rtt_s = 0.0
        self.is_cut = False
        self.is_refusing = False
        self.held: list[Request] = []
        self.old_leader: Horizon | None = None
        self.follower: SlidingHorizon | None = None

    @property
    def is_behind(self) -> bool:
        """Whether its follower may differ from the leader."""
        return self.is_frozen or self.is_cut or self.lag_s > 0 or bool(self.shard_lag_s)

    def lag_of(self, collection: Collection, shard: int) -> float:
        """Return how many seconds a commit to a shard takes to arrive here."""
        if self.is_frozen or self.is_cut:
            return inf
        return self.shard_lag_s.get((collection.name, shard), self.lag_s)


class Regions:
    """All regions of an engine. Callers hold the engine's lock.

    Args:
        names: The first is the default.
        store: What they replicate.
        clock: For lags.
    """

    def __init__(self, names: Sequence[str], store: Store, clock: Callable[[], float]) -> None:
        self.names = tuple(names)
        self._regions = {name: Region(name) for name in names}
        self._store = store
        self._clock = clock

    def region(self, name: str | None) -> Region:
        """Return a region; the first for None.

        Raises:
            KeyError: There is no such region.
        """
        return self._regions[self.names[0] if name is None else name]

    @contextmanager
    def changing(self, name: str) -> Iterator[Region]:
        """Yield a region whose attributes are changed while this is open.

        What has arrived at its follower by now, under the attributes of before, stays there.

        Raises:
            KeyError: There is no such region.
        """
        region = self.region(name)
        if region.follower is not None:
            region.follower.advance(self._clock())
        yield region
        if region.is_behind and region.follower is None:
            region.follower = SlidingHorizon(region.lag_of)
            self._store.horizons.append(region.follower)

    def depose(self, region: Region) -> None:
        """Let reads in a region see the state of now until `heal_leader`: its leader is deposed."""
        if region.old_leader is None:
            region.old_leader = Horizon()
            self._store.horizons.append(region.old_leader)

    def heal_leader(self, region: Region) -> None:
        """Let reads in a region go to the new leader."""
        if region.old_leader is not None:
            self._store.horizons.remove(region.old_leader)
            region.old_leader = None

    def tidy(self) -> None:
        """Let followers receive what is due, so that what they wait for does not pile up."""
        now = self._clock()
        for region in self._regions.values():
            if region.follower is not None:
                region.follower.advance(now)
                lags = (region.lag_s, *region.shard_lag_s.values())
                region.follower.thin_out(now - max(lags))

    def horizon_for(self, request: Request) -> Horizon | None:
        """Return the past state that a region shows to a read of its own; None for now."""
        region = self.region(request.region)
        if region.old_leader is not None:
            return region.old_leader
        follower = region.follower
        if follower is None or request.headers.get("x-arango-allow-dirty-read") != "true":
            return None
        follower.advance(self._clock())
        if follower.is_level and not region.is_behind:
            self._store.horizons.remove(follower)
            region.follower = None
            return None
        return follower
