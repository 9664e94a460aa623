"""Back-pressure: a tenant at its quota is told so, and when to come back.

What a tenant has is counted at the leader in the documents themselves, and one more is allowed by a
conditional write on the tenant's grants (`domain.grant`): of two who count at the same moment one
counts again, and sees what the other was allowed. Nothing is counted up or down that could drift.

What each crash does. A zone that was granted is created by whoever counts next. A run that was
granted and is not accepted counts until its submitter gives it back, or until that one's lease is
over and somebody needs the room. The place of its admission is made void before the grant goes, so
that what the lost one may still send changes nothing.

Not promised: that a quota which was lowered takes anything back; that it is exact to the second
when the day ends, for each submitter reads its own clock.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, timedelta
from functools import partial
from typing import Final

from region_scheduler.commit.create import create
from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.admission import AdmissionState, void_of, voided_again
from region_scheduler.domain.grant import (
    Grants,
    RunGrant,
    RunsInUse,
    run_granted,
    run_revoked,
    runs_seen,
    zone_forgotten,
    zone_granted,
)
from region_scheduler.domain.run import Zone
from region_scheduler.domain.tenant import Quota, tenant_key
from region_scheduler.errors import LostRace, RegionSchedulerError, Throttled
from region_scheduler.identity.tenants import tenant_of
from region_scheduler.ports.records import GraphStores
from region_scheduler.ports.time import Clock

_RETRY_RUNS_S: Final = 30
_RETRY_ZONES_S: Final = 3600
_ROUNDS_MAX: Final = 100
"""Rounds of counting and writing; in each somebody gets what he wants."""


class Quotas:
    """Allows runs and zones.

    Args:
        graph: The graph store.
        default: Of tenants that have no document.
        clock: Says which day it is.
    """

    def __init__(self, graph: GraphStores, default: Quota, clock: Clock) -> None:
        self._graph = graph
        self._default = default
        self._clock = clock
        self._owed: list[tuple[str, RunGrant]] = []

    def of(self, tenant: str) -> Quota:
        """Return the quota of a tenant, read at the leader.

        Raises:
            Unavailable: No answer.
        """
        found = tenant_of(self._graph.tenants, tenant)
        return self._default if found is None else found.quota

    def grant_run(self, tenant: str, grant: RunGrant) -> bool:
        """Let one admission be inserted, if the tenant may have one more run.

        Args:
            tenant: As given.
            grant: A new try.

        Returns:
            Whether runs are bounded at all; if they are not, nothing was written.

        Raises:
            Throttled: It may have no more now.
            LostRace: Others were always faster; nothing was written.
            Unavailable, OutcomeUnknown: Perhaps granted; ask again.
        """
        quota = self.of(tenant)
        if not quota.bounds_runs:
            return False
        for owed in list(self._owed):
            self.give_back(*owed)
        now = self._clock.now().astimezone(UTC)
        day = now.replace(hour=0, minute=0, second=0, microsecond=0)
        for _ in range(_ROUNDS_MAX):
            grants = self._grants(tenant)
            used = self._graph.grants.runs_in_use(grants, quota, day)
            try:
                _require_room(quota, grants, used, grant, day + timedelta(days=1) - now)
            except Throttled:
                if not self._has_made_room(grants, used):
                    raise
                continue
            decide = partial(run_granted, counted=grants, grant=grant, seen=used.seen)
            if self._is_written(grants, decide):
                return True
        raise LostRace(thing=f"a grant of tenant {tenant}", winner="other submitters")

    def give_back(self, tenant: str, grant: RunGrant) -> None:
        """Take back what was granted and not used, as far as is known; now, or before the next."""
        try:
            self._revoke(self._grants(tenant), grant)
        except RegionSchedulerError:
            if (tenant, grant) not in self._owed:
                self._owed.append((tenant, grant))
            return
        with suppress(ValueError):
            self._owed.remove((tenant, grant))

    def grant_zone(self, zone: Zone, announce: Callable[[], None]) -> None:
        """Let a zone be created, if its tenant may have one more; from then on it will be.

        Args:
            zone: As it is to be created; there is none of its name.
            announce: Called once, before anything is written.

        Raises:
            Throttled: It may have no more now; nothing was written.
            LostRace: Others were always faster; nothing was written.
            Unavailable, OutcomeUnknown: Perhaps granted; ask again.
        """
        limit, is_announced = self.of(zone.tenant).zones_max, False
        if limit is None:
            return announce()
        for _ in range(_ROUNDS_MAX):
            grants = self._grants(zone.tenant)
            create(self._graph.zones, grants.zones)
            used = self._graph.grants.zones_in_use(zone.tenant)
            if zone.id in {one.id for one in grants.zones}:
                return None
            if used >= limit:
                raise Throttled(
                    tenant=zone.tenant,
                    quota="zones",
                    limit=limit,
                    used=used,
                    retry_after_s=_RETRY_ZONES_S,
                )
            if not is_announced:
                announce()
                is_announced = True
            if self._is_written(grants, partial(zone_granted, counted=grants, zone=zone)):
                return None
        raise LostRace(thing=f"a grant of tenant {zone.tenant}", winner="other submitters")

    def forget_zone(self, zone: Zone) -> None:
        """Take a zone out of the grants, so that nobody creates it again.

        After it was created; and before one is deleted, for whoever created it may have died.

        Raises:
            LostRace, Unavailable, OutcomeUnknown: Call again.
        """
        (found,) = self._graph.grants.read([tenant_key(zone.tenant)])
        if found is not None and found.zones:
            drop = partial(zone_forgotten, zone=zone)
            commit_one(self._graph.grants, Change(found.id, drop, known=found))

    def _grants(self, tenant: str) -> Grants:
        key = tenant_key(tenant)
        (found,) = self._graph.grants.read([key])
        if found is None:
            (made,) = create(self._graph.grants, [Grants(id=key, tenant=tenant)])
            return made.value
        return found

    def _is_written(self, counted: Grants, decide: Callable[[Grants], Grants]) -> bool:
        try:
            commit_one(self._graph.grants, Change(counted.id, decide, known=counted))
        except LostRace:
            return False
        return True

    def _has_made_room(self, grants: Grants, used: RunsInUse) -> bool:
        """Drop grants that are there, else those whose submitters are lost; say if there were."""
        if used.seen:
            drop = partial(runs_seen, seen=used.seen)
            commit_one(self._graph.grants, Change(grants.id, drop, known=grants))
            return True
        found = self._graph.instances.read([one.instance for one in grants.runs])
        lost = [
            grant
            for grant, instance in zip(grants.runs, found, strict=True)
            if instance is None or instance.fenced is not None
        ]
        for grant in lost:
            self._revoke(grants, grant)
        return bool(lost)

    def _revoke(self, grants: Grants, grant: RunGrant) -> None:
        """Take a grant back, after what it allowed was made impossible."""
        void = void_of(grant, grants.tenant, self._clock.now())
        (standing,) = create(self._graph.admissions, [void])
        if standing.value.state is AdmissionState.VOID:
            commit_one(self._graph.admissions, Change(void.id, voided_again, known=standing.value))
        drop = partial(run_revoked, grant=grant)
        commit_one(self._graph.grants, Change(grants.id, drop, known=grants))


def _require_room(
    quota: Quota, grants: Grants, used: RunsInUse, grant: RunGrant, rest_of_day: timedelta
) -> None:
    """Go on if there is room for one more besides all that was granted.

    Raises:
        Throttled: There is none.
    """
    granted = len({one.admission for one in grants.runs} - {grant.admission})
    tomorrow_s = 1 + int(rest_of_day.total_seconds())
    for name, limit, count, retry_s in (
        ("runs a day", quota.runs_a_day_max, used.today, tomorrow_s),
        ("runs in flight", quota.runs_in_flight_max, used.in_flight, _RETRY_RUNS_S),
    ):
        if limit is not None and count + granted >= limit:
            raise Throttled(
                tenant=grants.tenant,
                quota=name,
                limit=limit,
                used=count + granted,
                retry_after_s=retry_s,
            )
