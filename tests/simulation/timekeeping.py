"""Worlds in which schedules fire: several timekeepers, each with a wall clock of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any

from region_scheduler.admission.schedules import Fired
from region_scheduler.commit.create import create
from region_scheduler.domain.run import Run
from region_scheduler.domain.schedule import (
    CatchUp,
    Overlap,
    Schedule,
    occurrence_key,
    schedule_key,
)
from region_scheduler.domain.states import RUN_ENDED
from region_scheduler.domain.timetable import Timetable
from region_scheduler.simulation.world import World
from tests.simulation.scenarios import HOME, a_plan, graph_of, spec

SECOND = timedelta(seconds=1)


def set_clocks(world: World, to: datetime) -> None:
    """Let every wall clock show `to`; leases, which no wall clock touches, go on."""
    for clock in world.clocks.values():
        clock.ahead_s = (to - world.clock.now()) / SECOND


def wall(world: World, region: str = HOME) -> datetime:
    return world.clocks[region].now()


def put_schedule(
    world: World, expression: str, time_zone: str = "UTC", name: str = "s", **more: Any
) -> Schedule:
    """Store a schedule of a graph of one task, due from now on."""
    rules = {key: more.pop(key) for key in ("gap", "repeat") if key in more}
    table = Timetable(expression=expression, time_zone=time_zone, **rules)
    given: dict[str, Any] = {
        "plan": a_plan([spec("a")]),
        "home_region": HOME,
        "overlap": Overlap.ALLOW,
        "catch_up": CatchUp.ALL,
        "next_at": table.next_after(wall(world)),
        "created_at": wall(world),
    }
    made = Schedule(
        id=schedule_key("acme", name),
        tenant="acme",
        name=name,
        timetable=table,
        **{**given, **more},
    )
    (created,) = create(graph_of(world).schedules, [made])
    return created.value


def schedule_now(world: World, name: str = "s") -> Schedule:
    (found,) = graph_of(world).schedules.read([schedule_key("acme", name)])
    assert found is not None
    return found


def tick(world: World, regions: Iterable[str] = ()) -> dict[str, Fired]:
    """Let everybody beat, then the timekeepers of `regions` (all of them) tick once."""
    world.renew()
    told: dict[str, Fired] = {}
    for name in regions or world.regions:
        region = world.regions[name]
        fired = world.perform(region, region.services.timekeeper.tick)
        if fired is not None:
            told[name] = fired
    return told


def pass_ticks(
    world: World,
    seconds: float,
    every_s: float = 1.0,
    regions: Iterable[str] = (),
    then: Callable[[], None] = lambda: None,
) -> None:
    """Let time pass with nothing but timekeepers at work, and `then` after each round."""
    regions = tuple(regions)
    for _ in range(round(seconds / every_s)):
        world.clock.advance(every_s)
        tick(world, regions)
        then()


def runs_of(world: World, schedule: Schedule) -> list[Run]:
    """Return the runs that a schedule made, in the order of what they were due for."""
    prefix = f"schedule {schedule.name}@"
    found = [run for run in graph_of(world).runs.recent(10_000) if run.cause.startswith(prefix)]
    return sorted(found, key=lambda run: run.cause)


def causes(schedule: Schedule, instants: Sequence[datetime]) -> list[str]:
    """Return what the runs of `instants` say of themselves."""
    return [f"schedule {occurrence_key(schedule, instant)}" for instant in instants]


def due(schedule: Schedule, begin: datetime, end: datetime) -> list[datetime]:
    """Return the documented occurrences in (begin, end]."""
    after = schedule.timetable.after(begin)
    return list(takewhile(lambda instant: instant <= end, after))


def active(world: World, schedule: Schedule) -> list[Run]:
    """Return the runs of a schedule that have not ended."""
    return [run for run in runs_of(world, schedule) if run.state not in RUN_ENDED]
