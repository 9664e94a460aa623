"""Create zones and submit their runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from region_scheduler.commit.create import create
from region_scheduler.domain.ids import zone_key
from region_scheduler.domain.region import Region
from region_scheduler.domain.run import Zone
from region_scheduler.domain.task import Json
from region_scheduler.errors import InvalidInput, NotFound
from region_scheduler.identity.quotas import Quotas
from region_scheduler.operations.audit import Auditor
from region_scheduler.ports.records import GraphStores


def create_zone(graph: GraphStores, auditor: Auditor, quotas: Quotas, zone: Zone) -> Zone:
    """Store a zone whose type, parameters and regions were checked.

    Raises:
        InvalidInput: The tenant has another zone of that name.
        Throttled: The tenant has as many zones as it may; nothing was written.
        LostRace, Unavailable, OutcomeUnknown: Call again; the same zone twice is one.
    """
    (standing,) = graph.zones.read([zone.id])
    if standing is None:
        note = partial(
            auditor.record, "zones.create", zone.name, zone.zone_type, tenant=zone.tenant
        )
        quotas.grant_zone(zone, note)
        (created,) = create(graph.zones, [zone])
        quotas.forget_zone(zone)
        standing = created.value
    if different := _differences(standing, zone):
        told = f"it exists with {', '.join(different)}; give the same, or choose another name"
        raise InvalidInput(field="NAME", value=zone.name, expected=told)
    return standing


def _differences(standing: Zone, wanted: Zone) -> list[str]:
    """Return what the standing zone has that is not wanted, with its value there."""
    parameters = [f"{key}={value}" for key, value in standing.parameters.items()]
    told = {
        "zone_type": f"type {standing.zone_type}",
        "regions": f"regions {','.join(standing.regions)}",
        "parameters": f"parameters {' '.join(parameters)}" if parameters else "no parameters",
    }
    return [text for key, text in told.items() if getattr(standing, key) != getattr(wanted, key)]


def find_zone(graph: GraphStores, tenant: str, name: str) -> Zone:
    """Return a tenant's zone by name.

    Raises:
        NotFound: There is none.
    """
    (zone,) = graph.zones.read([zone_key(tenant, name)])
    if zone is None:
        raise NotFound(thing="zone", id=name)
    return zone


def known_regions(regions: Sequence[Region], wanted: Sequence[str]) -> tuple[str, ...]:
    """Return `wanted`, each a region that exists or is served by one, in order and once.

    Raises:
        InvalidInput: One is neither.
    """
    known = {region.id for region in regions} | {s for region in regions for s in region.serves}
    for name in wanted:
        if name not in known:
            raise InvalidInput(
                field="--regions",
                value=name,
                expected=f"known regions are {', '.join(sorted(known))}",
            )
    return tuple(dict.fromkeys(wanted))


def serving(regions: Sequence[Region]) -> Mapping[str, str]:
    """Return which scheduler region works on each target region."""
    serves = {target: region.id for region in regions for target in region.serves}
    return serves | {region.id: region.id for region in regions}


def parameters_of(pairs: Sequence[str]) -> dict[str, Json]:
    """Return `--set key=value` pairs as a mapping; the zone type checks the values.

    Raises:
        InvalidInput: A pair without `=` or a key given twice.
    """
    found: dict[str, Json] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise InvalidInput(field="--set", value=pair, expected="write it as key=value")
        if key in found:
            raise InvalidInput(field="--set", value=pair, expected=f"{key} is set twice")
        found[key] = value
    return found
