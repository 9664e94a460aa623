"""Back-pressure: a tenant over its quota is told so, and when to come back.

A quota is compared with what the leader has at that moment. Submitters that ask at the same moment
may together pass it by as many as they are; nothing is undone then.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from region_scheduler.errors import Throttled
from region_scheduler.identity.tenants import tenant_of
from region_scheduler.ports.records import GraphStores

_RETRY_RUNS_S: Final = 30.0
_RETRY_ZONES_S: Final = 3600.0


def require_run_quota(graph: GraphStores, tenant: str, now: datetime) -> None:
    """Go on if the tenant may submit one more run.

    Args:
        graph: The graph store.
        tenant: As given.
        now: The submitter's wall time; the day is that of UTC.

    Raises:
        Throttled: It may not now; nothing was written.
        Unavailable: No answer.
    """
    found = tenant_of(graph.tenants, tenant)
    if found is None:
        return
    in_flight, a_day = found.quota.runs_in_flight_max, found.quota.runs_a_day_max
    if in_flight is not None and graph.runs.unended_of(tenant, in_flight) >= in_flight:
        what = f"tenant {tenant} has {in_flight} runs that have not ended, its quota"
        raise Throttled(what=what, retry_after_s=_RETRY_RUNS_S)
    if a_day is None:
        return
    day = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if graph.runs.since_of(tenant, day, a_day) >= a_day:
        what = f"tenant {tenant} has submitted {a_day} runs today, its quota"
        raise Throttled(what=what, retry_after_s=(day + timedelta(days=1) - now).total_seconds())


def require_zone_quota(graph: GraphStores, tenant: str) -> None:
    """Go on if the tenant may create one more zone.

    Raises:
        Throttled: It may not until one is deleted; nothing was written.
        Unavailable: No answer.
    """
    found = tenant_of(graph.tenants, tenant)
    limit = found.quota.zones_max if found is not None else None
    if limit is not None and graph.zones.count_of(tenant, limit) >= limit:
        what = f"tenant {tenant} has {limit} zones, its quota"
        raise Throttled(what=what, retry_after_s=_RETRY_ZONES_S)
