"""Tenants: what each may have, and how the regions' capacity is shared between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from region_scheduler.domain.ids import digest_of
from region_scheduler.domain.task import SCHEMA


@dataclass(frozen=True, slots=True)
class Level:
    """What a subscription is worth when tasks are promoted, in each region on its own.

    Attributes:
        name: For people.
        weight: Tenants that wait are given capacity in proportion to it; above 0.
        floor: Tasks in flight that a tenant gets before anybody's weight is looked at.
        in_flight_max: Tasks in flight that it may have; None for no bound of its own.
    """

    name: str
    weight: float = 1.0
    floor: int = 1
    in_flight_max: int | None = None


_OF_SHARE: Final = "tasks_in_flight"
LEVELS: Final = {
    level.name: level
    for level in (
        Level("trial", weight=1, floor=1, in_flight_max=4),
        Level("standard", weight=4, floor=1),
        Level("premium", weight=16, floor=2),
    )
}
LEVEL_DEFAULT: Final = LEVELS["standard"]


@dataclass(frozen=True, slots=True)
class Quota:
    """What a tenant may ask for; None for no bound.

    Attributes:
        zones_max: Zones that it has.
        runs_a_day_max: Runs accepted since midnight, UTC.
        runs_in_flight_max: Runs that were accepted and have not ended.
    """

    zones_max: int | None = None
    runs_a_day_max: int | None = None
    runs_in_flight_max: int | None = None

    @property
    def bounds_runs(self) -> bool:
        """Whether runs have to be counted."""
        return self.runs_a_day_max is not None or self.runs_in_flight_max is not None


QUOTAS: Final = {
    "trial": Quota(zones_max=3, runs_a_day_max=50, runs_in_flight_max=5),
    "standard": Quota(),
    "premium": Quota(),
}
"""By level: what a tenant may ask for that is given it, or that has it for want of a document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A customer. One without a document has the default level and the quota of that.

    Attributes:
        id: Key; see `tenant_key`.
        name: As given, any Unicode.
        created_at: For display.
    """

    id: str
    rev: str = ""
    schema: int = SCHEMA
    name: str
    level: Level = LEVEL_DEFAULT
    quota: Quota = Quota()
    created_at: datetime


def subscribed(tenant: Tenant, level: str) -> Tenant:
    """Return the tenant with the share and the quotas of a level."""
    return replace(tenant, level=LEVELS[level], quota=QUOTAS[level])


def changed(tenant: Tenant, level: str, bounds: Mapping[str, int | None]) -> Tenant:
    """Return the tenant as somebody wants it; the same object if it is so already.

    Args:
        tenant: As it is.
        level: Given first, with its quotas; empty leaves it.
        bounds: `tasks_in_flight`, `zones`, `runs_a_day`, `runs_in_flight`; None for no bound.
    """
    wanted = subscribed(tenant, level) if level else tenant
    quota = {f"{name}_max": n for name, n in bounds.items() if name != _OF_SHARE}
    wanted = replace(wanted, quota=replace(wanted.quota, **quota))
    if _OF_SHARE in bounds:
        wanted = replace(wanted, level=replace(wanted.level, in_flight_max=bounds[_OF_SHARE]))
    return tenant if wanted == tenant else wanted


def tenant_key(name: str) -> str:
    """Return the key of a tenant's document."""
    return digest_of(name)
