"""Tenants as their documents say, or as the settings say for one that has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from region_scheduler.domain.tenant import Level, Tenant, tenant_key
from region_scheduler.ports.records import TenantStore


def levels_of(store: TenantStore, names: Sequence[str], default: Level) -> Mapping[str, Level]:
    """Return the level of each tenant, read at the leader.

    Args:
        store: The tenants' documents.
        names: Tenants, as tasks name them.
        default: Of those without a document.

    Raises:
        Unavailable: No answer.
    """
    found = store.read([tenant_key(name) for name in names]) if names else []
    return {n: t.level if t else default for n, t in zip(names, found, strict=True)}


def tenant_of(store: TenantStore, name: str) -> Tenant | None:
    """Return a tenant's document, read at the leader; None if it has none.

    Raises:
        Unavailable: No answer.
    """
    (found,) = store.read([tenant_key(name)])
    return found
