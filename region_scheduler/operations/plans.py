"""What a submission comes to before anything is written: its plan, simulated or not, in numbers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from region_scheduler.admission.capacities import CapacityOf, known_of, none_known
from region_scheduler.admission.importers.graph import GraphOptions, plan_of_graph
from region_scheduler.admission.rules import checked
from region_scheduler.catalog.compose import expand, zone_type
from region_scheduler.catalog.load import catalog_version
from region_scheduler.domain.admission import Plan
from region_scheduler.domain.ids import zone_key
from region_scheduler.domain.limits import LIMITS, Limits
from region_scheduler.domain.region import Region
from region_scheduler.domain.run import Zone
from region_scheduler.domain.task import Json, OnLoss, TaskSpec
from region_scheduler.operations.zones import known_regions, parameters_of, serving

_CAP_FACTOR = 2


def checked_zone(
    known: Sequence[Region],
    name: str,
    type_name: str,
    regions: Sequence[str],
    pairs: Sequence[str],
    tenant: str,
    created_at: datetime,
) -> Zone:
    """Return a zone of which a plan can be made.

    Args:
        known: The scheduler regions there are.
        name: As typed.
        type_name: As typed.
        regions: Target regions; all scheduler regions if empty.
        pairs: Parameters as `key=value`.
        tenant: Whose it is.
        created_at: For display.

    Raises:
        Rejected: Type, parameter, region or name is not accepted.
    """
    zone_type(type_name)
    zone = Zone(
        id=zone_key(tenant, name),
        tenant=tenant,
        name=name,
        zone_type=type_name,
        catalog_version=catalog_version(),
        parameters=parameters_of(pairs),
        regions=known_regions(known, regions or [region.id for region in known]),
        created_at=created_at,
    )
    plan_of(zone, known)
    return zone


def plan_of(zone: Zone, known: Sequence[Region]) -> Plan:
    """Return the graph of an apply run of `zone`; it belongs where the zone's first region is.

    Args:
        zone: Type, parameters and target regions.
        known: The scheduler regions there are.

    Raises:
        Rejected: The catalogue or the regions no longer have what the zone needs.
    """
    serves = serving(known)
    known_regions(known, zone.regions)
    return expand(
        zone.zone_type,
        zone.parameters,
        zone.regions,
        zone=zone.name,
        tenant=zone.tenant,
        home_region=serves[zone.regions[0]],
        serves=serves,
    )


def plan_of_document(
    document: Json,
    known: Sequence[Region],
    regions: Sequence[str],
    tenant: str,
    time_scale: float | None,
    limits: Limits = LIMITS,
    capacities: CapacityOf = none_known,
) -> Plan:
    """Return the plan of a graph document; it belongs where its first region is.

    Args:
        document: In the product's form.
        known: The scheduler regions there are.
        regions: Target regions; all scheduler regions if empty.
        tenant: Whose it is.
        time_scale: Its steps are simulated, durations multiplied by this; None runs them for real.
        limits: How big it may be.
        capacities: Tells the units of resources that exist already.

    Raises:
        Rejected: It is not of the form, is no graph, or names a region that there is not.
        Unavailable: What exists already is not known now.
    """
    serves = serving(known)
    wanted = known_regions(known, regions or [region.id for region in known])
    homes = tuple(dict.fromkeys(serves[name] for name in wanted))
    options = GraphOptions(
        tenant=tenant,
        home_region=homes[0],
        regions=homes,
        serves=serves,
        is_simulated=time_scale is not None,
        time_scale=1.0 if time_scale is None else time_scale,
        limits=limits,
        capacities=capacities,
    )
    return plan_of_graph(document, options)


def simulated(
    plan: Plan, time_scale: float, is_simulated: Callable[[TaskSpec], bool] = lambda _: True
) -> Plan:
    """Return the plan with steps that only take their expected time.

    Args:
        plan: Its order, regions and locks stay.
        time_scale: Durations are multiplied by this; 0 means at once.
        is_simulated: Which steps; all of them unless given.
    """
    tasks = tuple(_simulated(t, time_scale) if is_simulated(t) else t for t in plan.tasks)
    return replace(plan, tasks=tasks)


def held_until(plan: Plan, instant: datetime) -> Plan:
    """Return the plan with no task to start before `instant`, nor before its own."""
    tasks = tuple(
        replace(task, not_before=max(task.not_before or instant, instant)) for task in plan.tasks
    )
    return replace(plan, tasks=tasks)


def summary(
    plan: Plan, limits: Limits = LIMITS, capacities: CapacityOf = none_known
) -> dict[str, Json]:
    """Return what `submit --dry-run` tells: tasks, waves, critical path, locks, approvals.

    Raises:
        InvalidGraph, CyclicGraph: As the submission would be refused.
        Unavailable: What exists already is not known now.
    """
    dag = checked(plan, limits, known_of(plan, capacities))
    specs = {task.name: task for task in plan.tasks}
    weight = {name: spec.expected_s for name, spec in specs.items()}
    path = dag.critical_path(weight)
    return {
        "name": plan.name,
        "zone_type": plan.zone_type,
        "home_region": plan.home_region,
        "tasks": len(specs),
        "dependencies": len(plan.edges),
        "regions": dict(Counter(spec.region for spec in specs.values())),
        "runners": dict(Counter(spec.runner for spec in specs.values()).most_common()),
        "waves": [list(wave) for wave in dag.waves],
        "critical_path": {"seconds": sum(weight[name] for name in path), "tasks": list(path)},
        "locks": _locks(plan.tasks),
        "approvals": [spec.name for spec in specs.values() if spec.runner == "approval"],
        "irreversible": [spec.name for spec in specs.values() if spec.is_irreversible],
    }


def _simulated(spec: TaskSpec, time_scale: float) -> TaskSpec:
    duration_s = spec.expected_s * time_scale
    return replace(
        spec,
        runner="simulate",
        inputs={"duration_s": duration_s},
        on_loss=OnLoss.RETRY,
        cap_s=max(spec.cap_s, _CAP_FACTOR * duration_s),
        state_key="",
    )


def _locks(tasks: Sequence[TaskSpec]) -> list[dict[str, Json]]:
    """Return what is taken by more than one task, the most wanted first."""
    takers: dict[str, list[str]] = defaultdict(list)
    capacity: dict[str, int] = {}
    for task in tasks:
        for need in task.locks:
            takers[need.resource].append(task.name)
            capacity[need.resource] = need.capacity
    shared = [
        {"resource": name, "capacity": capacity[name], "tasks": names}
        for name, names in takers.items()
        if len(names) > 1
    ]
    return sorted(shared, key=lambda lock: (-len(lock["tasks"]), lock["resource"]))
