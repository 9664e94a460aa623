"""The handle on an engine's misfortunes: lags, cuts, leader changes, faults, restores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from region_scheduler.embedded.arango.faults import Fault
from region_scheduler.embedded.arango.regions import Region
from region_scheduler.embedded.arango.storage.horizon import Horizon

if TYPE_CHECKING:
    from region_scheduler.embedded.arango.engine import Engine

_APPLIED_AFTER_CUT = 0.5


@dataclass(frozen=True, slots=True)
class RestorePoint:
    """A state that the engine can be set back to; keeps what later commits replace."""

    horizon: Horizon


class FaultControl:
    """Sets what goes wrong in an engine. Thread-safe.

    Args:
        engine: The engine.

    All methods that take a region raise KeyError for one that the engine does not have.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    # Followers.

    def set_lag(
        self,
        region: str,
        lag_s: float,
        collection: str | None = None,
        shard: int = 0,
    ) -> None:
        """Let a region's follower receive commits `lag_s` seconds late.

        Args:
            region: The region.
            lag_s: Seconds from 0.
            collection: Only a shard of this collection; None for all that have no lag of their own.
            shard: Its number, from 0.
        """
        if lag_s < 0:
            raise ValueError("a lag must not be negative")
        with self._changing(region) as one:
            if collection is None:
                one.lag_s = lag_s
            else:
                one.shard_lag_s[collection, shard] = lag_s

    def freeze(self, region: str) -> None:
        """Let a region's follower receive nothing until `thaw`."""
        with self._changing(region) as one:
            one.is_frozen = True

    def thaw(self, region: str) -> None:
        """Let a frozen follower catch up to its lag."""
        with self._changing(region) as one:
            one.is_frozen = False

    # Links.

    def set_rtt(self, region: str, rtt_s: float) -> None:
        """Let requests from a region take `rtt_s` seconds to the leader and back."""
        if rtt_s < 0:
            raise ValueError("a round trip must not be negative")
        with self._changing(region) as one:
            one.rtt_s = rtt_s

    def cut(self, region: str, *, is_refusing: bool = False) -> None:
        """Cut a region off from all others, as a minority is.

        Its follower goes on answering dirty reads with what it has. Everything else hangs, or is
        refused with 503/1478.
        """
        with self._changing(region) as one:
            one.is_cut = True
            one.is_refusing = is_refusing

    def heal(self, region: str) -> None:
        """End a cut. Half of the requests that hung arrive now, whoever still waits for them."""
        with self._changing(region) as one:
            one.is_cut = False
            held, one.held = one.held, []
            for request in held:
                if self._engine.chance.random() < _APPLIED_AFTER_CUT:
                    self._engine.postpone(request, 0.0)

    # Leaders.

    def depose(self, region: str) -> None:
        """Let all reads in a region be answered by a deposed leader, which shows the state of now.

        Writes go to the new leader.
        """
        with self._engine.lock:
            self._engine.regions.depose(self._region(region))

    def heal_leader(self, region: str) -> None:
        """Let reads in a region find the new leader."""
        with self._engine.lock:
            self._engine.regions.heal_leader(self._region(region))

    # Single requests.

    def inject(self, fault: Fault) -> int:
        """Put a rule in force and return its number."""
        with self._engine.lock:
            return self._engine.network.rules.add(fault)

    def withdraw(self, number: int) -> None:
        """End a rule."""
        with self._engine.lock:
            self._engine.network.rules.withdraw(number)

    def clear(self) -> None:
        """End all rules of single requests; regions stay as they are."""
        with self._engine.lock:
            self._engine.network.rules.clear()

    # Backups.

    def mark(self) -> RestorePoint:
        """Take a backup of now."""
        with self._engine.lock:
            horizon = Horizon()
            self._engine.store.horizons.append(horizon)
            return RestorePoint(horizon)

    def restore(self, point: RestorePoint) -> None:
        """Set all documents back to `point`, revisions too; the point is used up.

        Collections, indexes, graphs and users made since stay, empty of what came later; running
        stream transactions are aborted, as by the restart that a restore is.

        Raises:
            ValueError: The point was used before.
        """
        with self._engine.lock:
            if point.horizon not in self._engine.store.horizons:
                raise ValueError("this restore point was used before")
            self._engine.store.horizons.remove(point.horizon)
            self._engine.streams.abort_all()
            self._engine.store.restore(point.horizon)
            self._engine.flush()

    def forget(self, point: RestorePoint) -> None:
        """Drop a restore point without using it."""
        with self._engine.lock:
            if point.horizon in self._engine.store.horizons:
                self._engine.store.horizons.remove(point.horizon)

    @contextmanager
    def _changing(self, name: str) -> Iterator[Region]:
        with self._engine.lock, self._engine.regions.changing(name) as region:
            yield region

    def _region(self, name: str) -> Region:
        return self._engine.regions.region(name)
