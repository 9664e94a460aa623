"""Expands a zone type into the graph of one zone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from region_scheduler.catalog import load
from region_scheduler.catalog.inputs import RUNNERS, on_loss, runner_inputs
from region_scheduler.catalog.locks import GLOBAL, Place, lock_needs, state_key
from region_scheduler.catalog.model import StepDefinition, ZoneType
from region_scheduler.catalog.parameters import (
    REGION,
    REGION_HINT,
    checked_name,
    checked_parameters,
)
from region_scheduler.catalog.resolve import Template, resolve
from region_scheduler.domain.admission import Plan
from region_scheduler.domain.dag import Dag, Edge
from region_scheduler.domain.ids import zone_key
from region_scheduler.domain.task import Json, TaskSpec
from region_scheduler.errors import InvalidInput

REGIONS_MAX = 64
_CAP_FACTOR = 3
_CAP_S_MIN = 600.0
_TOLERANCE_S_MIN = 60.0


def zone_types() -> list[ZoneType]:
    """Return all zone types, sorted by name."""
    return [load.zone_type(name) for name in load.type_names()]


def zone_type(name: str) -> ZoneType:
    """Return the zone type.

    Raises:
        UnknownZoneType: None has this name; the error lists those there are.
    """
    return load.zone_type(name)


def expand(
    type_name: str,
    parameters: Mapping[str, Json],
    regions: Sequence[str],
    *,
    zone: str,
    tenant: str,
    home_region: str,
    serves: Mapping[str, str] | None = None,
) -> Plan:
    """Return the graph of one zone, ready to be admitted: named like it, and naming its key.

    A per-region step becomes one task a target region, `id@region`, pinned to the scheduler region
    that serves it: it leaves that only if the region is lost or evacuated. A step that runs once is
    not pinned: it starts in the home region and may go to every region of the zone. It waits for
    all regions of a per-region step before it; a per-region step waits for the same region of one
    before it.

    Args:
        type_name: Which zone type.
        parameters: By name; those not given take the type's defaults.
        regions: Target regions, at least one, each once.
        zone: Name of the zone; part of state keys.
        tenant: Whose zone it is; part of state keys and lock names.
        home_region: Scheduler region that the run belongs to.
        serves: Scheduler region of each target region. A scheduler region also serves the target
            region of its own name; what nobody serves runs in the home region. None: every target
            region has a scheduler region of its own name.

    Raises:
        UnknownZoneType: There is no such type.
        InvalidInput: A parameter, region, zone or tenant that is not accepted, with the way out.
    """
    of_type = load.zone_type(type_name)
    checked_name("tenant", tenant)
    checked_name("zone", zone)
    values = checked_parameters(of_type.parameters, parameters, tenant)
    _check_regions(of_type, regions, values["residency"], serves, home_region)
    values["residency"] = values["residency"] or list(regions)
    template = resolve(type_name, tuple(values["overlays"]))
    names, edges = multiply(template, regions)
    zone_facts = _Zone(
        tenant=tenant,
        name=zone,
        parameters=values,
        regions=tuple(regions),
        home_region=home_region,
        serving={word: _serving(word, serves, home_region) for word in regions},
    )
    return Plan(
        name=zone,
        tenant=tenant,
        zone=zone_key(tenant, zone),
        zone_type=type_name,
        catalog_version=load.catalog_version(),
        home_region=home_region,
        regions=zone_facts.allowed,
        tasks=_tasks(names, Dag.checked(names, edges), zone_facts),
        edges=edges,
    )


def multiply(
    template: Template, regions: Sequence[str]
) -> tuple[dict[str, tuple[StepDefinition, str]], tuple[Edge, ...]]:
    """Return the tasks, as (step, target region or empty) by name, and their edges."""
    names = {
        _task_name(step, region): (step, region)
        for step in template.steps.values()
        for region in (regions if step.is_per_region else ("",))
    }
    edges = (
        edge
        for before, after in template.edges
        for edge in _multiplied(template.steps[before], template.steps[after], regions)
    )
    return names, tuple(edges)


def _task_name(step: StepDefinition, region: str) -> str:
    return f"{step.id}@{region}" if step.is_per_region else step.id


def _multiplied(
    before: StepDefinition, after: StepDefinition, regions: Sequence[str]
) -> Iterator[Edge]:
    if before.is_per_region or after.is_per_region:
        for region in regions:
            yield _task_name(before, region), _task_name(after, region)
    else:
        yield before.id, after.id


@dataclass(frozen=True, slots=True, kw_only=True)
class _Zone:
    tenant: str
    name: str
    parameters: Mapping[str, Json]
    regions: tuple[str, ...]
    home_region: str
    serving: Mapping[str, str]

    @property
    def allowed(self) -> tuple[str, ...]:
        """Scheduler regions that the zone may use, the home region first."""
        return tuple(dict.fromkeys([self.home_region, *self.serving.values()]))

    def place(self, region: str) -> Place:
        organisation = str(self.parameters["organisation"])
        return Place(
            tenant=self.tenant, zone=self.name, organisation=organisation, target_region=region
        )

    def facts(self, step: StepDefinition, region: str) -> dict[str, Json]:
        return {
            "tenant": self.tenant,
            "zone": self.name,
            "step": step.id,
            "region": region or GLOBAL,
            "regions": list(self.regions),
            "parameters": dict(self.parameters),
            "controls": list(step.controls),
        }


def _tasks(
    names: Mapping[str, tuple[StepDefinition, str]], dag: Dag, zone: _Zone
) -> tuple[TaskSpec, ...]:
    expected = {name: step.p50_min * 60.0 for name, (step, _) in names.items()}
    remaining = dag.remaining(expected)
    slack = _slack(dag, expected, remaining)
    spec = partial(_spec, zone=zone)
    return tuple(
        spec(
            name,
            step,
            region,
            before=dag.before[name],
            remaining_s=remaining[name],
            delay_tolerance_s=_TOLERANCE_S_MIN + slack[name],
        )
        for name, (step, region) in names.items()
    )


def _spec(
    name: str,
    step: StepDefinition,
    region: str,
    *,
    before: Sequence[str],
    remaining_s: float,
    delay_tolerance_s: float,
    zone: _Zone,
) -> TaskSpec:
    place = zone.place(region)
    cap_s = max(_CAP_S_MIN, _CAP_FACTOR * step.p90_min * 60.0)
    runs_in = zone.serving[region] if region else zone.home_region
    return TaskSpec(
        name=name,
        purpose=step.purpose,
        runner=RUNNERS[step.kind],
        inputs=runner_inputs(step, zone.facts(step, region), before, cap_s),
        step=step.id,
        region=runs_in,
        allowed_regions=zone.allowed,
        is_pinned=bool(region),
        target_region=region,
        locks=lock_needs(step, place),
        on_loss=on_loss(step),
        is_irreversible=step.is_irreversible,
        cap_s=cap_s,
        expected_s=step.p50_min * 60.0,
        remaining_s=remaining_s,
        delay_tolerance_s=delay_tolerance_s,
        state_key=state_key(step, place),
    )


def _slack(
    dag: Dag, expected: Mapping[str, float], remaining: Mapping[str, float]
) -> dict[str, float]:
    """Return how long each task may be late without making the run late (total float), seconds."""
    start: dict[str, float] = {}
    for name in dag.order:
        start[name] = max((start[p] + expected[p] for p in dag.before[name]), default=0.0)
    whole = max(remaining.values(), default=0.0)
    return {name: whole - start[name] - remaining[name] for name in start}


def _serving(word: str, serves: Mapping[str, str] | None, home_region: str) -> str:
    if serves is None or word in serves.values() or word == home_region:
        return word
    return serves.get(word, home_region)


def _check_regions(
    of_type: ZoneType,
    regions: Sequence[str],
    residency: Sequence[str],
    serves: Mapping[str, str] | None,
    home_region: str,
) -> None:
    if isinstance(regions, str) or not 0 < len(regions) <= REGIONS_MAX:
        expected = f"name 1 to {REGIONS_MAX} target regions, such as eu-west,us-east"
        raise InvalidInput(field="regions", value=",".join(regions), expected=expected)
    cloud = load.clouds()[of_type.cloud]
    known = None if serves is None else {*serves, *serves.values(), home_region}
    for number, word in enumerate(regions):
        expected = ""
        if not REGION.fullmatch(word):
            expected = REGION_HINT
        elif word in regions[:number]:
            expected = "name each region once"
        elif known is not None and word not in known and not re.match(cloud.region_pattern, word):
            expected = (
                f"name one that is served here ({', '.join(sorted(known))})"
                f" or a region of {cloud.name}, such as {cloud.region_example}"
            )
        elif residency and word not in residency:
            expected = f"the parameter residency allows only {', '.join(residency)}"
        if expected:
            raise InvalidInput(field="regions", value=word, expected=expected)
