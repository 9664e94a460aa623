"""Schedules in worlds of several timekeepers: clocks that differ, deaths, every fault point."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import mkdtemp

import pytest

from region_scheduler.domain.run import Zone
from region_scheduler.domain.schedule import CatchUp, Overlap, Schedule
from region_scheduler.domain.states import RUN_ENDED, RunState
from region_scheduler.operations.schedules import (
    create_schedule,
    delete_schedule,
    find_schedule,
    switch_schedule,
)
from region_scheduler.simulation.faults import Fault, Faults, FaultyWorld
from region_scheduler.simulation.world import World
from tests.simulation.acts import auditor
from tests.simulation.scenarios import HOME, a_plan, covering, graph_of, spec
from tests.simulation.timekeeping import (
    SECOND,
    active,
    causes,
    due,
    pass_ticks,
    put_schedule,
    runs_of,
    schedule_now,
    set_clocks,
    tick,
    wall,
)

FAST = "us-east"
TWO = (HOME, FAST)
_MEMORY = Path("/dev/shm")


@pytest.fixture
def two(tmp_path: Path) -> World:
    return World(tmp_path, TWO)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


@pytest.mark.parametrize("home", TWO, ids=["home is right", "home is an hour ahead"])
@pytest.mark.parametrize("change", ["2026-10-25T00:45Z", "2027-03-28T00:45Z"], ids=str)
def test_two_clocks_an_hour_apart_fire_every_minute_once_over_a_change(
    two: World, change: str, home: str
) -> None:
    begin = utc(change)
    set_clocks(two, begin)
    two.clocks[FAST].ahead_s += 3600
    tick(two)
    schedule = put_schedule(two, "* * * * *", "Europe/Berlin", home_region=home)
    alerts: set[str] = set()
    for _ in range(30 * 4):
        two.clock.advance(15)
        alerts |= {name for name, told in tick(two).items() if told.clock_ahead_s > 1000}
        assert all(
            run.cause <= f"schedule s@{wall(two).isoformat()}"
            for run in runs_of(two, schedule)[-1:]
        ), "nothing fires before its time"

    pass_ticks(two, 2, every_s=2)
    expected = due(schedule, begin, begin + timedelta(minutes=30))
    assert len(expected) == 30
    assert [run.cause for run in runs_of(two, schedule)] == causes(schedule, expected)
    now = schedule_now(two)
    assert (now.fired_count, now.missed_count, now.firings) == (30, 0, ())
    assert alerts == {FAST}


def test_a_clock_ahead_of_the_others_fires_nothing_and_says_so(tmp_path: Path) -> None:
    world = World(tmp_path, (HOME, FAST, "ap-south"))
    schedule = put_schedule(world, "* * * * *", home_region=FAST)
    world.clocks[FAST].ahead_s = 3600

    told = tick(world, [FAST])[FAST]

    assert told.clock_ahead_s == pytest.approx(3600, abs=5)
    assert runs_of(world, schedule) == []
    world.clocks[FAST].ahead_s = world.timings.skew_max_s - 1
    world.clock.advance(60)
    assert tick(world, [FAST])[FAST].clock_ahead_s == 0
    assert runs_of(world, schedule) != []


def test_a_region_whose_schedulers_are_gone_is_stood_in_for(two: World) -> None:
    schedule = put_schedule(two, "* * * * *", home_region=FAST)
    begin = wall(two)

    pass_ticks(two, 180, every_s=2, regions=[HOME])

    expected = due(schedule, begin, wall(two) - 3 * SECOND)
    assert [run.cause for run in runs_of(two, schedule)] == causes(schedule, expected)


def test_the_home_region_fires_first(two: World) -> None:
    put_schedule(two, "*/10 * * * * *", home_region=FAST)
    two.clock.advance(10)

    assert tick(two, [HOME])[HOME].fired == {}
    assert tick(two, [FAST])[FAST].fired == {"s": 1}


def test_it_sleeps_until_the_next_occurrence_and_no_longer_than_the_slow_pace(two: World) -> None:
    set_clocks(two, utc("2026-01-01T00:00:00Z"))
    put_schedule(two, "*/10 * * * * *")

    waits = [tick(two, [HOME])[HOME].wait_s]
    two.clock.advance(9.75)
    waits.append(tick(two, [HOME])[HOME].wait_s)

    assert waits == [two.timings.reconcile_every_s, pytest.approx(0.25)]


@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.QUEUE], ids=str)
def test_runs_of_a_schedule_that_may_not_overlap_never_do(two: World, overlap: Overlap) -> None:
    schedule = put_schedule(
        two, "*/4 * * * * *", overlap=overlap, plan=a_plan([spec("a"), spec("b")], "a>b")
    )
    begin, most = wall(two), 0
    for _ in range(60):
        two.clock.advance(1)
        tick(two)
        most = max(most, len(active(two, schedule)))
        if two.clock.seconds % 7 == 0:
            two.slow_path()
            two.fast_path()

    now = schedule_now(two)
    runs = runs_of(two, schedule)
    assert most == 1
    assert len(runs) > 4
    assert now.fired_count == len(runs)
    slots = len(due(schedule, begin, wall(two)))
    assert now.fired_count + now.missed_count + len(now.waiting) == slots
    assert {record.reason.partition(":")[0] for record in now.missed} <= {"overlap"}
    if overlap is Overlap.QUEUE:
        fired = [run.cause for run in runs]
        assert fired == causes(schedule, due(schedule, begin, wall(two)))[: len(fired)]


def test_a_schedule_of_a_zone_runs_the_zone_as_it_is_then(two: World) -> None:
    graph = graph_of(two)
    zone = Zone(
        id="z",
        tenant="acme",
        name="prod",
        zone_type="aws-soc2",
        catalog_version="1",
        parameters={"contact": "a@example.org"},
        regions=(HOME,),
        created_at=wall(two),
    )
    graph.zones.insert([zone])
    schedule = put_schedule(
        two,
        "* * * * *",
        overlap=Overlap.SKIP,
        plan=None,
        zone="z",
        zone_name="prod",
        time_scale=0.0,
    )

    pass_ticks(two, 60, every_s=5)

    (run,) = runs_of(two, schedule)
    assert (run.zone_type, run.name) == ("aws-soc2", "prod")
    assert run.task_count > 20


def test_an_occurrence_that_cannot_be_planned_is_recorded_with_the_reason(two: World) -> None:
    schedule = put_schedule(
        two, "* * * * *", overlap=Overlap.SKIP, plan=None, zone="gone", zone_name="prod"
    )

    pass_ticks(two, 120, every_s=5)

    now = schedule_now(two)
    assert (now.fired_count, now.missed_count, now.firings) == (0, 2, ())
    assert [record.reason for record in now.missed] == ["refused: zone 'prod' does not exist"]
    assert runs_of(two, schedule) == []


def test_what_people_do_to_a_schedule_is_audited_and_counts(two: World) -> None:
    graph, who = graph_of(two), auditor(two)
    stored = put_schedule(two, "* * * * *")
    assert create_schedule(graph, who, replace(stored, rev="")) == stored

    switch_schedule(graph, who, stored, is_enabled=False, reason="holidays")
    pass_ticks(two, 120, every_s=5)
    paused = find_schedule(graph, "acme", "s")
    assert (paused.fired_count, paused.missed_count) == (0, 2)

    switch_schedule(graph, who, paused, is_enabled=True, reason="")
    pass_ticks(two, 60, every_s=5)
    delete_schedule(graph, who, find_schedule(graph, "acme", "s"))
    pass_ticks(two, 120, every_s=5)
    assert len(runs_of(two, stored)) == 1
    assert graph.schedules.all() == []

    again = create_schedule(graph, who, replace(stored, rev="", next_at=wall(two) + 60 * SECOND))
    assert (again.is_deleted, again.revision, again.missed_count) == (False, 5, 0)
    assert sorted(entry.action for entry in graph.audit.recent(9)) == [
        "schedules.create",
        "schedules.create",
        "schedules.delete",
        "schedules.pause",
        "schedules.unpause",
    ]


# ------------------------------------------------------------------------------- every fault point


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    made = Path(mkdtemp(dir=_MEMORY)) if _MEMORY.is_dir() else tmp_path
    yield made
    shutil.rmtree(made, ignore_errors=True)


WATCHED_S, SETTLED_S = 13, 60


def played(directory: Path, overlap: Overlap, fault: Fault | None) -> tuple[Faults, list[str]]:
    """Let a schedule fire twice with one fault, and return what is wrong in the end."""
    directory.mkdir()
    world = FaultyWorld(directory, TWO, fault)
    schedule = put_schedule(
        world, "*/6 * * * * *", overlap=overlap, catch_up=CatchUp.ALL, plan=a_plan([spec("a")])
    )
    slots = due(schedule, wall(world), wall(world) + WATCHED_S * SECOND)
    most, found = 0, [""]
    world.faults.is_armed = True
    for second in range(WATCHED_S + SETTLED_S):
        if second == WATCHED_S:
            world.faults.is_armed = False
            now = schedule_now(world)
            graph_of(world).schedules.write([(now, replace(now, next_at=None))])
        world.clock.advance(1)
        world.renew()
        world.slow_path()
        world.fast_path()
        most = max(most, len(active(world, schedule)))
        if second >= WATCHED_S and not (found := accounted(world, schedule, slots)):
            break
    return world.faults, found + ([] if overlap is Overlap.ALLOW or most < 2 else ["two at once"])


def accounted(world: World, schedule: Schedule, slots: list[datetime]) -> list[str]:
    """Return what is wrong with the account of a schedule that is at rest."""
    now, runs, keys = schedule_now(world), runs_of(world, schedule), causes(schedule, slots)
    found = [f"{run.cause} is {run.state}" for run in runs if run.state is not RunState.DONE]
    made = [run.cause for run in runs]
    if len(set(made)) != len(made) or not set(made) <= set(keys):
        found.append(f"runs of {made}")
    if (now.fired_count, now.firings, now.waiting) != (len(runs), (), ()):
        found.append(f"{len(runs)} runs, {now.fired_count} fired, {now.firings}, {now.waiting}")
    if now.fired_count + now.missed_count != len(slots):
        found.append(f"{now.fired_count} fired, {now.missed_count} missed of {len(slots)}")
    if graph_of(world).admissions.unfinished():
        found.append("an admission is open")
    return found


DECIDING = ("schedules.write", "admissions.insert")
ASKED = ("schedules.", "admissions.", "runs.insert", "metadata.record", "tasks.insert")


def harmful(overlap: Overlap, place: Path, points: tuple[str, ...], every: int) -> list[str]:
    """Return every fault of a covering sample at `points` that did harm, with what is wrong."""
    faults, problems = played(place / "survey", overlap, None)
    assert problems == []
    met = covering([fault for fault in faults.all() if fault.point.startswith(points)], every)
    assert {"schedules.write", "admissions.insert"} <= {fault.point for fault in met}
    wrong: list[str] = []
    for fault in met:
        struck, problems = played(place / str(fault), overlap, fault)
        shutil.rmtree(place / str(fault))
        if not struck.has_struck:
            problems = [*problems, "the fault never happened"]
        wrong += [f"{fault}: {problem}" for problem in problems]
    return wrong


def test_a_schedule_survives_faults_where_it_is_decided(place: Path) -> None:
    assert harmful(Overlap.QUEUE, place, DECIDING, every=2) == []


@pytest.mark.slow
@pytest.mark.parametrize("overlap", list(Overlap), ids=str)
def test_a_schedule_survives_faults_of_its_admission(place: Path, overlap: Overlap) -> None:
    assert harmful(overlap, place, ASKED, every=5) == []


@pytest.mark.soak
@pytest.mark.parametrize("overlap", list(Overlap), ids=str)
def test_a_schedule_survives_every_single_fault(place: Path, overlap: Overlap) -> None:
    assert harmful(overlap, place, ASKED, every=1) == []


def test_a_run_that_ended_frees_its_schedule_within_the_slow_pace(two: World) -> None:
    schedule = put_schedule(two, "*/30 * * * * *", overlap=Overlap.SKIP)
    two.clock.advance(30)
    tick(two)
    (run,) = runs_of(two, schedule)
    assert [firing.run for firing in schedule_now(two).firings] == [run.id]

    two.slow_path()
    two.fast_path()
    assert {r.state for r in runs_of(two, schedule)} <= RUN_ENDED
    tick(two, [HOME])

    assert schedule_now(two).firings == ()


def test_the_account_sees_an_occurrence_that_is_silently_skipped(two: World) -> None:
    """A planted loss: somebody moves the next instant on without a firing or a record."""
    schedule, begin = put_schedule(two, "*/6 * * * * *"), wall(two)
    lost = schedule.timetable.next_after(schedule.next_at or begin)
    graph_of(two).schedules.write([(schedule, replace(schedule, next_at=lost))])
    pass_ticks(two, 20)

    found = accounted(two, schedule, due(schedule, begin, wall(two)))

    assert [problem for problem in found if "missed of" in problem]
