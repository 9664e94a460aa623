"""Grants: what a tenant was allowed under its quota, until it is seen as what it was allowed for.

How much a tenant has is counted in the documents themselves: admissions, runs, zones. Between the
count and the document that makes it higher stands a grant, in one document a tenant that is
written conditionally, so that two who count at the same moment cannot both have the last one.
"""

from __future__ import annotations

from collections.abc import Container, Set
from dataclasses import dataclass, replace

from region_scheduler.domain.ids import Incarnation, RunId
from region_scheduler.domain.run import Zone
from region_scheduler.domain.task import SCHEMA
from region_scheduler.errors import LostRace


@dataclass(frozen=True, slots=True, kw_only=True)
class RunGrant:
    """One admission may be inserted.

    Attributes:
        id: Of this very try.
        admission: Key of the admission.
        run: What its run will be called.
        instance: Who tries; if its lease is over, others revoke the grant.
    """

    id: str
    admission: str
    run: RunId
    instance: Incarnation


@dataclass(frozen=True, slots=True, kw_only=True)
class Grants:
    """What a tenant was granted and is perhaps not there yet.

    Attributes:
        id: Key; see `tenant.tenant_key`.
        runs: One an admission at the most.
        zones: Zones as they are to be created; whoever comes next creates those that are missing.
    """

    id: str
    rev: str = ""
    schema: int = SCHEMA
    tenant: str
    runs: tuple[RunGrant, ...] = ()
    zones: tuple[Zone, ...] = ()


@dataclass(frozen=True, slots=True)
class RunsInUse:
    """How much of its quota of runs a tenant uses, besides what it was granted.

    Attributes:
        in_flight: Runs that are accepted and have not ended.
        today: Runs accepted since the day began.
        seen: Granted admissions that are there.
    """

    in_flight: int
    today: int
    seen: Set[str]


def run_granted(grants: Grants, counted: Grants, grant: RunGrant, seen: Container[str]) -> Grants:
    """Return the grants with one more, in the place of those that were seen as admissions.

    Args:
        grants: As they are now.
        counted: As they were when it was counted that there is room.
        grant: The one more; it takes the place of an earlier try for the same admission.
        seen: Admissions that are there.

    Raises:
        LostRace: Others were granted something meanwhile: count again.
    """
    if grant in grants.runs:
        return grants
    _same(grants, counted)
    kept = [one for one in runs_seen(grants, seen).runs if one.admission != grant.admission]
    return replace(grants, runs=(*kept, grant))


def runs_seen(grants: Grants, seen: Container[str]) -> Grants:
    """Return the grants without those whose admissions are there."""
    kept = tuple(one for one in grants.runs if one.admission not in seen)
    return grants if len(kept) == len(grants.runs) else replace(grants, runs=kept)


def run_revoked(grants: Grants, grant: RunGrant) -> Grants:
    """Return the grants without one try; its admission was made void before."""
    kept = tuple(one for one in grants.runs if one.id != grant.id)
    return grants if len(kept) == len(grants.runs) else replace(grants, runs=kept)


def zone_granted(grants: Grants, counted: Grants, zone: Zone) -> Grants:
    """Return the grants with one zone more, those before it having been created.

    Raises:
        LostRace: Others were granted something meanwhile: count again.
    """
    if zone in grants.zones:
        return grants
    _same(grants, counted)
    return replace(grants, zones=(zone,))


def zone_forgotten(grants: Grants, zone: Zone) -> Grants:
    """Return the grants without a zone that is there, or that is to be there no more."""
    kept = tuple(one for one in grants.zones if one.id != zone.id)
    return grants if len(kept) == len(grants.zones) else replace(grants, zones=kept)


def _same(grants: Grants, counted: Grants) -> None:
    if grants.rev != counted.rev:
        raise LostRace(thing=f"a grant of tenant {grants.tenant}", winner="another submitter")
