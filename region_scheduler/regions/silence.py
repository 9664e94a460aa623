"""Judge by one's own monotonic clock which regions show no sign of life."""

from __future__ import annotations

from collections.abc import Sequence

from region_scheduler.domain.ids import Incarnation
from region_scheduler.domain.instance import Instance
from region_scheduler.domain.lease import Instant, LeaseTimings
from region_scheduler.domain.region import Region


class RegionWatch:
    """Counts for how long no process of a region has beaten. Feed it leader reads only.

    It counts as the observers of single leases do (`membership.observer`): only what this process
    has itself watched, under a lease of its own that was renewed without a gap. So a region whose
    processes were stopped one by one has as long to start new ones as a process has to renew.

    Args:
        timings: Lease arithmetic.
    """

    def __init__(self, timings: LeaseTimings) -> None:
        self._timings = timings
        self._beats: dict[Incarnation, int] = {}
        self._heard_at: dict[str, Instant] = {}

    def silent(
        self,
        regions: Sequence[Region],
        instances: Sequence[Instance],
        now: Instant,
        unbroken_since: Instant,
        leases: int = 1,
    ) -> list[Region]:
        """Return the regions of whose processes none has beaten for so many times ttl + grace.

        Args:
            regions: All regions.
            instances: Every incarnation whose lease is not over.
            now: This process's monotonic clock.
            unbroken_since: Since when this process's own lease has no gap.
            leases: How many, at least 1.
        """
        beats = {one.id: one.beat for one in instances}
        heard = {one.region for one in instances if self._beats.get(one.id) != one.beat}
        ttl_s = dict.fromkeys((region.id for region in regions), self._timings.ttl_s)
        for one in instances:
            ttl_s[one.region] = max(one.ttl_s, ttl_s.get(one.region, 0.0))
        self._beats = beats
        self._heard_at = {
            region.id: now if region.id in heard else self._heard_at.get(region.id, now)
            for region in regions
        }
        return [
            region
            for region in regions
            if now - max(self._heard_at[region.id], unbroken_since)
            >= leases * (ttl_s[region.id] + self._timings.grace_s)
        ]
