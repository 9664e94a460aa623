"""An occurrence whose tenant is at its quota waits for its turn, and is not lost."""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from region_scheduler.domain.run import Run
from region_scheduler.domain.schedule import Overlap, Schedule
from region_scheduler.domain.states import RunState
from region_scheduler.domain.tenant import Quota, Tenant, tenant_key
from region_scheduler.errors import Throttled
from region_scheduler.operations.cancel import cancel_run
from region_scheduler.operations.schedules import delete_schedule, switch_schedule
from region_scheduler.simulation.faults import Fault, FaultyWorld
from region_scheduler.simulation.world import World
from tests.simulation.acts import admit, auditor, home
from tests.simulation.scenarios import HOME, a_plan, covering, graph_of, spec
from tests.simulation.timekeeping import (
    active,
    causes,
    due,
    pass_ticks,
    put_schedule,
    runs_of,
    schedule_now,
    tick,
    wall,
)

TOLD = "quota of runs in flight, at most 1"


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path, (HOME, "us-east"))
    bounded(world)
    return world


def bounded(world: World) -> None:
    quota = Quota(runs_in_flight_max=1)
    made = Tenant(id=tenant_key("acme"), name="acme", quota=quota, created_at=world.clock.now())
    graph_of(world).tenants.insert([made])


def filled(world: World) -> Run:
    """Return a run that takes the tenant's quota for as long as nobody cancels it."""
    later = world.clock.now() + timedelta(days=9)
    return admit(world, a_plan([spec("a", not_before=later)]))


def freed(world: World, run: Run) -> None:
    settler, who = home(world).services.settler, auditor(world)
    (now,) = graph_of(world).runs.read([run.id])
    assert now is not None
    cancel_run(graph_of(world), settler, who, world.clock, now, "")
    for region in world.regions.values():
        region.services.reconciler.tick()


def test_an_occurrence_waits_for_the_quota_and_runs_when_there_is_room(world: World) -> None:
    taken = filled(world)
    schedule = put_schedule(world, "*/30 * * * * *", overlap=Overlap.SKIP)
    begin, held = wall(world), dict[str, str]()
    for _ in range(95):
        world.clock.advance(1)
        for told in tick(world).values():
            assert not (held and told.held), "it is told once"
            held |= told.held

    first, *missed = due(schedule, begin, wall(world))
    now = schedule_now(world)
    assert held == {"s": TOLD}
    assert [(f.nominal_at, f.waits_for) for f in now.firings] == [(first, TOLD)]
    assert runs_of(world, schedule) == []
    reason = f"overlap: the one of {first.isoformat()} waits for its {TOLD}"
    assert [(one.reason, one.count) for one in now.missed] == [(reason, len(missed))]

    freed(world, taken)
    pass_ticks(world, world.timings.reconcile_every_s + 2)

    (run,) = runs_of(world, schedule)
    assert run.cause in causes(schedule, [first])
    assert [f.waits_for for f in schedule_now(world).firings] == [""]


def test_those_that_wait_run_one_after_the_other_the_oldest_first(world: World) -> None:
    taken = filled(world)
    schedule = put_schedule(world, "*/20 * * * * *", overlap=Overlap.ALLOW)
    begin = wall(world)
    pass_ticks(world, 65)
    slots = due(schedule, begin, wall(world))
    stop_at(world, schedule)
    assert [bool(f.waits_for) for f in schedule_now(world).firings] == [True, False, False]

    freed(world, taken)
    for _ in range(120):
        world.clock.advance(1)
        tick(world)
        world.slow_path()
        world.fast_path()

    runs = runs_of(world, schedule)
    assert [run.cause for run in runs] == causes(schedule, slots)
    assert sorted(runs, key=lambda run: run.created_at) == runs
    assert {run.state for run in runs} == {RunState.DONE}
    assert schedule_now(world).firings == ()


def stop_at(world: World, schedule: Schedule) -> None:
    """Let nothing more become due."""
    now = schedule_now(world, schedule.name)
    graph_of(world).schedules.write([(now, replace(now, next_at=None))])


def test_what_waits_when_its_schedule_is_deleted_is_recorded_and_never_runs(world: World) -> None:
    taken = filled(world)
    schedule = put_schedule(world, "*/30 * * * * *", overlap=Overlap.QUEUE)
    pass_ticks(world, 31)
    graph, who = graph_of(world), auditor(world)
    switch_schedule(graph, who, schedule_now(world), is_enabled=False, reason="holidays")
    freed(world, taken)
    pass_ticks(world, 60)
    assert runs_of(world, schedule) == [], "a paused schedule starts nothing"

    delete_schedule(graph, who, schedule_now(world))
    pass_ticks(world, 30)

    now = schedule_now(world)
    assert (now.firings, now.fired_count) == ((), 0)
    assert now.missed[-1].reason == "refused: the schedule was deleted while it waited"
    assert runs_of(world, schedule) == []


def played(directory: Path, fault: Fault | None) -> tuple[FaultyWorld, list[str]]:
    """Let two occurrences meet a full quota, with one fault; return what is wrong in the end."""
    directory.mkdir()
    world = FaultyWorld(directory, (HOME, "us-east"), fault)
    bounded(world)
    schedule = put_schedule(world, "*/6 * * * * *", overlap=Overlap.ALLOW)
    slots = due(schedule, wall(world), wall(world) + timedelta(seconds=13))
    world.faults.is_armed = True
    most, found = 0, [""]
    for second in range(120):
        if second == 13:
            world.faults.is_armed = False
            stop_at(world, schedule)
        world.clock.advance(1)
        world.renew()
        for region in world.regions.values():
            world.perform(region, region.services.timekeeper.tick)
        most = max(most, len(active(world, schedule)))
        if second % 4 == 3:
            world.slow_path()
            world.fast_path()
        now = schedule_now(world)
        made = [run.cause for run in runs_of(world, schedule)]
        found = [] if made == causes(schedule, slots) and now.firings == () else [f"{made}"]
        if second > 13 and not found:
            break
    return world, found + (["two in flight"] if most > 1 else [])


@pytest.mark.parametrize(
    "every", [pytest.param(4, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.soak)]
)
def test_an_occurrence_at_the_quota_survives_a_fault(tmp_path: Path, every: int) -> None:
    world, problems = played(tmp_path / "survey", None)
    assert problems == []
    points = ("schedules.write", "admissions.", "grants.", "tenants.read")
    met = covering([f for f in world.faults.all() if f.point.startswith(points)], every)
    assert {"grants.write", "admissions.insert"} <= {fault.point for fault in met}
    wrong: list[str] = []
    for fault in met:
        _, problems = played(tmp_path / str(fault), fault)
        shutil.rmtree(tmp_path / str(fault))
        wrong += [f"{fault}: {problem}" for problem in problems]

    assert wrong == []


@pytest.mark.parametrize("gap_s", [1, 7])
def test_runs_that_people_submit_and_those_of_schedules_share_the_quota(
    world: World, gap_s: int
) -> None:
    schedule = put_schedule(world, "*/10 * * * * *", overlap=Overlap.ALLOW)
    graph, most = graph_of(world), 0
    submits = partial(home(world).services.intake.admit, a_plan([spec("b")]))
    for second in range(60):
        world.clock.advance(1)
        tick(world)
        if second % gap_s == 0:
            with suppress(Throttled):
                submits(f"k{second}")
        most = max(most, len(graph.runs.unended()))
        if second % 3 == 0:
            world.slow_path()
            world.fast_path()

    assert most == 1
    assert runs_of(world, schedule) != []
