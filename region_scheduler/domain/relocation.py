"""Where the tasks of a region go that cannot do them: the choice, and the move of one task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from region_scheduler.domain.history import Stamp, recorded
from region_scheduler.domain.ids import TaskId
from region_scheduler.domain.instance import Instance, Role
from region_scheduler.domain.region import Region, RegionStatus
from region_scheduler.domain.states import FINAL, HELD
from region_scheduler.domain.task import EventKind, Task
from region_scheduler.errors import LostRace


@dataclass(frozen=True, slots=True)
class Site:
    """A region that may take work from another.

    Attributes:
        slots: Attempts that its live workers can run at once, by pool.
        serves: The target regions it reaches, its own name among them.
        load: Tasks that are ready or in flight there.
    """

    region: str
    slots: Mapping[str, int]
    serves: frozenset[str]
    load: int = 0


@dataclass(frozen=True, slots=True)
class Moves:
    """What becomes of the tasks that have to leave a region.

    Attributes:
        to: The region that each goes to, by task, in the order given.
        waiting: Those that no region may and can take: they wait for one.
    """

    to: Mapping[TaskId, str]
    waiting: tuple[TaskId, ...]


def sites(
    regions: Iterable[Region], instances: Iterable[Instance], load: Mapping[str, int]
) -> list[Site]:
    """Return the active regions that have live workers.

    Args:
        regions: All regions.
        instances: All whose lease is not over.
        load: Tasks that are ready or in flight, by region.
    """
    slots: dict[str, Counter[str]] = {}
    for one in instances:
        if Role.WORKER in one.roles:
            slots.setdefault(one.region, Counter()).update(one.capacity)
    return [
        Site(
            region=region.id,
            slots=slots[region.id],
            serves=frozenset({region.id, *region.serves}),
            load=load.get(region.id, 0),
        )
        for region in regions
        if region.status is RegionStatus.ACTIVE and region.id in slots
    ]


def destinations(tasks: Sequence[Task], open_sites: Sequence[Site]) -> Moves:
    """Choose where each task goes: an allowed region with its pool, the least loaded for its size.

    One that reaches the task's target region comes before one that does not.

    Args:
        tasks: All of which have to leave their region; what is chosen for one counts for the next.
        open_sites: Those that take work.
    """
    load = {site.region: site.load for site in open_sites}
    to: dict[TaskId, str] = {}
    waiting: list[TaskId] = []
    for task in tasks:
        pool, target = task.spec.pool, task.spec.target_region
        able = [
            site
            for site in open_sites
            if site.region in task.spec.allowed_regions
            and site.region != task.region
            and site.slots.get(pool)
        ]
        if not able:
            waiting.append(task.id)
            continue
        best = min(
            able,
            key=lambda site: (
                bool(target) and target not in site.serves,
                (load[site.region] + 1) / site.slots[pool],
                site.region,
            ),
        )
        load[best.region] += 1
        to[task.id] = best.region
    return Moves(to, tuple(waiting))


def relocate(task: Task, source: str, region: str, stamp: Stamp) -> Task:
    """Move a task that nobody holds from `source` to `region`, which residency allows.

    Its token stays: there is no holder to be refused.

    Raises:
        LostRace: Somebody claimed, ended or moved it meanwhile.
    """
    if task.region == region:
        return task
    if task.region != source or task.state in HELD or task.state in FINAL:
        raise LostRace(thing=f"move of {task.id}", winner=f"it is {task.state} in {task.region}")
    if region not in task.spec.allowed_regions:
        raise LostRace(thing=f"move of {task.id}", winner=f"residency, which forbids {region}")
    return recorded(task, EventKind.MOVED, stamp, detail=f"from {source}", region=region)
