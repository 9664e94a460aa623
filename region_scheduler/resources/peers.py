"""Resource managers watch each other: one that lives and does not look is an alarm, no loss.

A beat says how long ago its process finished a sweep, by that process's own clock. So a manager
whose loop stands still is told from one whose process died: the latter's lease runs out by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from region_scheduler.domain.instance import Instance, Role
from region_scheduler.domain.lease import Instant, LeaseTimings
from region_scheduler.ports.telemetry import Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerSilent(Fact):
    """A region's leases, dispatches and slots are not looked after as they should be.

    Attributes:
        instance: Whose sweep stands still; empty if no process of the region has one at all.
        seconds: For how long, as far as it is known.
    """

    name: ClassVar[str] = "resources.manager_silent"
    region: str
    instance: str
    seconds: float


def standing_still(alive: Iterable[Instance], lease_s: float) -> list[ManagerSilent]:
    """Return the managers that live and finished no sweep for a lease, by their own words."""
    return [
        ManagerSilent(region=one.region, instance=one.id, seconds=one.swept_ago_s)
        for one in alive
        if one.swept_ago_s is not None and one.swept_ago_s > max(lease_s, one.ttl_s)
    ]


def unmanaged(alive: Sequence[Instance]) -> list[str]:
    """Return the regions in which something lives, but no resource manager."""
    managed = {one.region for one in alive if Role.RESOURCES in one.roles}
    return sorted({one.region for one in alive} - managed)


class Peers:
    """Counts for how long regions have no manager. Feed it leader reads only."""

    def __init__(self, timings: LeaseTimings) -> None:
        self._timings = timings
        self._bare: dict[str, Instant] = {}
        self._told: frozenset[tuple[str, str]] = frozenset()

    def silent(
        self, alive: Sequence[Instance], now: Instant, unbroken_since: Instant
    ) -> list[ManagerSilent]:
        """Return everything that is silent now.

        Args:
            alive: Unfenced instances of all regions.
            now: The caller's monotonic clock.
            unbroken_since: Since when the caller's own lease was renewed without a gap.
        """
        self._bare = {region: self._bare.get(region, now) for region in unmanaged(alive)}
        bare = [
            ManagerSilent(region=region, instance="", seconds=now - max(since, unbroken_since))
            for region, since in self._bare.items()
            if now - max(since, unbroken_since) >= self._timings.lease_s
        ]
        return [*standing_still(alive, self._timings.lease_s), *bare]

    def news(self, silent: Sequence[ManagerSilent]) -> list[ManagerSilent]:
        """Return those that were not silent when this was asked last."""
        before = self._told
        self._told = frozenset((one.region, one.instance) for one in silent)
        return [one for one in silent if (one.region, one.instance) not in before]
