"""Names the scarce things that a step holds, each within the scope that shares it."""

from __future__ import annotations

from dataclasses import dataclass

from region_scheduler.catalog.load import lock_catalogue
from region_scheduler.catalog.model import LockDefinition, LockScope, StepDefinition, StepKind
from region_scheduler.domain.task import LockNeed, WhenHolderLost

GLOBAL = "global"
"""Stands where a region would, in the state key of a step that runs once."""
_STATES = "tfstate:*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one task of a zone does its work.

    Attributes:
        organisation: Cloud organisation; one named like the tenant is the tenant's only one.
        target_region: Empty for a step that runs once.
    """

    tenant: str
    zone: str
    organisation: str
    target_region: str = ""


def state_key(step: StepDefinition, place: Place) -> str:
    """Return where the step's terraform state lives; empty for a step without one."""
    if step.kind is not StepKind.TERRAFORM:
        return ""
    return f"{place.tenant}/{place.zone}/{step.id}@{place.target_region or GLOBAL}"


def lock_needs(step: StepDefinition, place: Place) -> tuple[LockNeed, ...]:
    """Return what the step holds while it runs: its locks, then its own terraform state."""
    needs = [_need(key, place) for key in step.locks]
    key = state_key(step, place)
    if key:
        needs.append(LockNeed(f"tfstate:{key}", when_holder_lost=WhenHolderLost.KEEP))
    return tuple(needs)


def _need(key: str, place: Place) -> LockNeed:
    catalogue = lock_catalogue()
    definition = catalogue[_STATES] if key.startswith("tfstate:") else catalogue[key]
    resource = _scope_prefix(definition, place) + key.replace("{region}", place.target_region)
    return LockNeed(
        resource,
        capacity=definition.capacity,
        when_holder_lost=definition.when_holder_lost,
    )


def _scope_prefix(definition: LockDefinition, place: Place) -> str:
    # Two tenants never share a lock below `global`: one could stop the other's work with it.
    match definition.scope:
        case LockScope.GLOBAL:
            return ""
        case LockScope.TENANT:
            return f"{place.tenant}/"
        case LockScope.ZONE:
            return f"{place.tenant}/{place.zone}/"
        case LockScope.ORGANISATION:
            if place.organisation == place.tenant:
                return f"{place.tenant}/"
            return f"{place.tenant}/{place.organisation}/"
