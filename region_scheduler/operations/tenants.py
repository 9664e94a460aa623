"""What tenants may have, what they use of it, and how that is changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Final

from region_scheduler.catalog.parameters import checked_name
from region_scheduler.commit.create import create
from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.grant import Grants
from region_scheduler.domain.tenant import (
    LEVELS,
    Quota,
    Tenant,
    changed,
    subscribed,
    tenant_key,
)
from region_scheduler.errors import InvalidInput
from region_scheduler.identity.tenants import tenant_of
from region_scheduler.operations.audit import Auditor
from region_scheduler.ports.records import GraphStores

UNBOUNDED: Final = "unbounded"
_MOST: Final = 1_000_000
_ALL: Final = Quota(zones_max=0, runs_a_day_max=0, runs_in_flight_max=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantWish:
    """A tenant as somebody typed it; empty texts say nothing.

    Attributes:
        level: Gives the tenant the level's share and quotas.
        bounds: Numbers, or `unbounded`, by option; they stand instead of the level's.
    """

    name: str
    level: str = ""
    bounds: Mapping[str, str]

    def checked(self) -> Mapping[str, int | None]:
        """Return the numbers, None for no bound.

        Raises:
            InvalidInput: A name, level or number is not accepted, or nothing is wished for.
        """
        checked_name("TENANT", self.name)
        if self.level and self.level not in LEVELS:
            told = f"levels are {', '.join(LEVELS)}"
            raise InvalidInput(field="--level", value=self.level, expected=told)
        numbers = {option: _number(option, text) for option, text in self.bounds.items() if text}
        if not self.level and not numbers:
            told = f"say what is to change: --level, {', '.join(self.bounds)}"
            raise InvalidInput(field="tenants set", value=self.name, expected=told)
        return {option.removeprefix("--").replace("-", "_"): n for option, n in numbers.items()}


def _number(option: str, text: str) -> int | None:
    if text == UNBOUNDED:
        return None
    if not (text.isascii() and text.isdigit() and int(text) <= _MOST):
        told = f"give a whole number from 0 to {_MOST}, or {UNBOUNDED}"
        raise InvalidInput(field=option, value=text, expected=told)
    return int(text)


@dataclass(frozen=True, slots=True)
class InUse:
    """How much of what may be bounded a tenant uses now."""

    zones: int
    runs_a_day: int
    runs_in_flight: int


def find_tenant(
    graph: GraphStores, name: str, level_default: str, now: datetime
) -> tuple[Tenant, bool]:
    """Return a tenant, and whether it has a document; else it is as the default level has it.

    Raises:
        InvalidInput: The name is none.
        Unavailable: No answer.
    """
    found = tenant_of(graph.tenants, checked_name("TENANT", name))
    if found is not None:
        return found, True
    return _new(name, level_default, now), False


def in_use(graph: GraphStores, name: str, now: datetime) -> InUse:
    """Return how much a tenant uses, what it was just granted included.

    Raises:
        Unavailable: No answer.
    """
    key = tenant_key(name)
    (found,) = graph.grants.read([key])
    grants = found or Grants(id=key, tenant=name)
    day = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    used = graph.grants.runs_in_use(grants, _ALL, day)
    granted = len({one.admission for one in grants.runs})
    zones = graph.grants.zones_in_use(name)
    return InUse(zones, used.today + granted, used.in_flight + granted)


def set_tenant(
    graph: GraphStores, auditor: Auditor, wish: TenantWish, level_default: str, now: datetime
) -> Tenant:
    """Change a tenant's level or quotas; what it has already stays with it.

    Raises:
        InvalidInput: As `TenantWish.checked`; nothing was written.
        Unavailable, OutcomeUnknown, LostRace: Call again.
    """
    bounds = wish.checked()
    change = partial(changed, level=wish.level, bounds=bounds)
    standing = tenant_of(graph.tenants, wish.name)
    if standing is not None and change(standing) == standing:
        return standing
    told = [f"level {wish.level}"] if wish.level else []
    told += [f"{name} {UNBOUNDED if n is None else n}" for name, n in bounds.items()]
    auditor.record("tenants.set", wish.name, ", ".join(told), tenant=wish.name)
    if standing is None:
        fresh = change(_new(wish.name, level_default, now))
        (made,) = create(graph.tenants, [fresh])
        standing = made.value
    return commit_one(graph.tenants, Change(standing.id, change, known=standing))


def _new(name: str, level: str, now: datetime) -> Tenant:
    blank = Tenant(id=tenant_key(name), name=name, created_at=now)
    return subscribed(blank, level)
