"""The handed cases about clocks, timers and schedules, each named by its id.

They speak of timers and intervals; here a schedule of cron fields, with seconds where they are
short, is what fires. "422" is a refusal by `InvalidInput` (exit code 2).
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise, takewhile
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from region_scheduler.domain.instant import instant_of
from region_scheduler.domain.schedule import CatchUp, Overlap
from region_scheduler.domain.timetable import Gap, Repeat, Timetable
from region_scheduler.errors import InvalidInput
from region_scheduler.operations.schedules import timetable_of
from region_scheduler.simulation.faults import Fault, FaultyWorld
from region_scheduler.simulation.world import World
from tests.simulation.acts import admit
from tests.simulation.scenarios import HOME, a_plan, graph_of, spec
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
from tests.unit.domain.wall_clock import ZONES, changes, searched

TWO = (HOME, "us-east")
SPAN = timedelta(hours=3)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, TWO)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def between(table: Timetable, begin: str, end: str) -> list[datetime]:
    """Return the instants from `begin` to `end`, both included."""
    return due_until(table, utc(begin) - SECOND, utc(end))


def due_until(table: Timetable, begin: datetime, end: datetime) -> list[datetime]:
    return list(takewhile(lambda at: at <= end, table.after(begin)))


def test_CLK_004_a_timekeeper_that_slept_past_its_lease_fires_nothing_before_it_has_one(
    world: World,
) -> None:
    schedule = put_schedule(world, "*/5 * * * * *")
    keeper = world.regions[HOME].services.timekeeper
    world.clock.advance(10 * world.timings.lease_s)

    assert keeper.tick().fired == {}
    assert schedule_now(world) == schedule

    assert tick(world, [HOME])[HOME].fired == {"s": 12}
    assert tick(world, [HOME])[HOME].fired == {}


def test_CLK_006_a_due_time_in_the_past_fires_at_the_next_scan(world: World) -> None:
    pass_ticks(world, 5)
    now = wall(world)
    past = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=1)
    schedule = put_schedule(
        world, "0 * * * *", next_at=past, created_at=past - SECOND, catch_up=CatchUp.LAST
    )

    pass_ticks(world, 2)

    assert len(runs_of(world, schedule)) == 1
    assert (schedule_now(world).next_at or now) > now


@pytest.mark.parametrize("text", ["2026-07-01T12:00:00", "2026-07-01 12:00", "2026-07-01"])
def test_CLK_007_a_timestamp_without_an_offset_is_refused(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Europe/London")

    with pytest.raises(InvalidInput) as refused:
        instant_of(text, "not_before")

    assert refused.value.exit_code == 2
    assert "say the offset from UTC" in str(refused.value)
    assert instant_of("2026-07-01T12:00:10+01:00", "x") - instant_of(
        "2026-07-01T11:00:00Z", "x"
    ) == timedelta(seconds=10)


def test_CLK_007_a_delay_of_ten_seconds_is_ten_seconds_whatever_the_hosts_zone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_clocks(world, utc("2026-07-01T11:00Z"))
    tick(world)
    asked_s, began = world.clock.seconds, list[float]()
    monkeypatch.setenv("TZ", "Europe/London")
    time.tzset()
    try:
        at = instant_of("2026-07-01T12:00:10+01:00", "not_before")
        world.log.during["a"] = lambda _: began.append(world.clock.seconds)
        admit(world, a_plan([spec("a", not_before=at)]))
        for _ in range(60):
            world.clock.advance(0.25)
            world.renew()
            world.slow_path()
            world.fast_path()
    finally:
        monkeypatch.undo()
        time.tzset()

    assert [abs(at_s - asked_s - 10) <= 1 for at_s in began] == [True]


def test_CLK_008_a_clock_that_is_set_back_every_minute_costs_no_firing(world: World) -> None:
    """The clock gains five seconds a minute and is set right each minute, for ten minutes.

    The loop sleeps as long as the tick said, by the monotonic clock, and looks again.
    """
    schedule = put_schedule(world, "*/15 * * * * *")
    keeper, began_s, since_s = world.regions[HOME].services.timekeeper, world.clock.seconds, 0.0
    while world.clock.seconds - began_s < 600:
        world.renew()
        wait_s = max(0.01, keeper.tick().wait_s)
        world.clock.advance(wait_s)
        since_s += wait_s
        world.clocks[HOME].ahead_s = 5 * since_s / 60
        if since_s >= 60:
            since_s, world.clocks[HOME].ahead_s = 0.0, 0.0

    runs = runs_of(world, schedule)
    assert abs(len(runs) - 600 / 15) <= 1
    assert schedule_now(world).missed_count == 0


def test_CLK_008_every_nominal_time_is_fired_once_whatever_steps_the_clock_makes(
    world: World,
) -> None:
    schedule, begin, latest = put_schedule(world, "*/15 * * * * *"), wall(world), wall(world)
    for minute in range(10):
        pass_ticks(world, 60, regions=[HOME])
        latest = max(latest, wall(world))
        world.clocks[HOME].ahead_s -= 5 if minute % 2 else -3

    assert [run.cause for run in runs_of(world, schedule)] == causes(
        schedule, due(schedule, begin, latest)
    )


@pytest.mark.parametrize("moment", ["before", "after"])
def test_DBL_011_a_forbidden_overlap_does_not_happen_when_the_owner_dies_as_it_fires(
    tmp_path: Path, moment: str
) -> None:
    """Body 5 s, every 2 s; the owner dies at the second admission it makes."""
    world = FaultyWorld(tmp_path, TWO, Fault.of(f"admissions.insert#1:crash-{moment}"))
    world.faults.is_armed = True
    schedule = put_schedule(world, "*/2 * * * * *", overlap=Overlap.SKIP)
    born: dict[str, float] = {}
    most = 0
    for _ in range(60):
        world.clock.advance(1)
        tick(world)
        alive = active(world, schedule)
        most = max(most, len(alive))
        if any(
            world.clock.seconds - born.setdefault(r.id, world.clock.seconds) >= 5 for r in alive
        ):
            world.slow_path()
            world.fast_path()

    runs = runs_of(world, schedule)
    assert world.faults.has_struck
    assert most == 1
    assert len(runs) >= 5
    assert len({run.cause for run in runs}) == len(runs)
    assert schedule_now(world).fired_count == len(runs)


def test_DBL_025_four_timekeepers_fire_a_schedule_no_more_often_than_one(tmp_path: Path) -> None:
    world = World(tmp_path, (HOME, "b", "c", "d"))
    schedule = put_schedule(world, "*/2 * * * * *")
    begin = wall(world)

    pass_ticks(world, 20)

    runs = [run.cause for run in runs_of(world, schedule)]
    assert runs == causes(schedule, due(schedule, begin, wall(world)))
    assert abs(len(runs) - 10) <= 1


def test_DST_002_a_five_minute_schedule_goes_on_in_the_repeated_hour() -> None:
    table = Timetable(expression="*/5 * * * *", time_zone="Europe/Amsterdam")

    found = between(table, "2026-10-25T00:30Z", "2026-10-25T02:00Z")

    assert len(found) == 19
    assert {later - one for one, later in pairwise(found)} == {timedelta(minutes=5)}


@pytest.mark.parametrize("kill_at", ["2027-03-14T07:59Z", "2027-03-14T08:01Z"], ids=str)
def test_DST_003_the_next_owner_fires_at_the_same_nominal_times(world: World, kill_at: str) -> None:
    """Half past two does not exist on the 14th in Chicago: 03:00 there, 08:00 in UTC, is due."""
    begin = utc("2027-03-14T07:50Z")
    set_clocks(world, begin)
    tick(world)
    schedule = put_schedule(world, "30,45 2-4 * * *", "America/Chicago", home_region=HOME)
    for _ in range(4 * 75):
        world.clock.advance(15)
        is_killed = wall(world) >= utc(kill_at)
        tick(world, ["us-east"] if is_killed else TWO)

    reference = due(schedule, begin, begin + timedelta(minutes=75))
    assert [f"{at:%H:%M}" for at in reference] == ["08:00", "08:30", "08:45"]
    assert [run.cause for run in runs_of(world, schedule)] == causes(schedule, reference)


@pytest.mark.parametrize("expression", ["*/30 8-10 * * *", "*/30 0-3 * * *", "0,30 0-3 * * *"])
def test_DST_004_the_next_time_rises_and_is_that_of_a_search_in_all_zones(expression: str) -> None:
    """From within the hour of a change, of one year between 2020 and 2035 for each zone."""
    for number, name in enumerate(ZONES):
        table = Timetable(expression=expression, time_zone=name)
        for hour in changes(ZoneInfo(name), 2020 + number % 16)[:1]:
            begin = hour + timedelta(minutes=17)
            found = due_until(table, begin, begin + SPAN)

            assert found == searched(table, begin, begin + SPAN), name
            assert all(one < later for one, later in pairwise([begin, *found])), name


def test_DST_005_missing_and_repeated_times_of_day_are_as_documented() -> None:
    def hours(expression: str, begin: str, end: str, **rules: Gap | Repeat) -> list[str]:
        table = Timetable(expression=expression, time_zone="America/Chicago", **rules)  # type: ignore[arg-type]
        return [f"{at:%d %H:%M} {table.note_of(at)}".strip() for at in between(table, begin, end)]

    spring = ("2027-03-14T00:00Z", "2027-03-15T00:00Z")
    autumn = ("2026-11-01T00:00Z", "2026-11-02T00:00Z")

    shifted = ["14 08:00 shifted: its time does not exist on this day"]
    assert hours("30 2 * * *", *spring) == shifted
    assert hours("30 2 * * *", *spring, gap=Gap.SKIP) == []
    assert hours("30 1 * * *", *autumn) == ["01 06:30 first of two"]
    assert hours("30 1 * * *", *autumn, repeat=Repeat.TWICE) == [
        "01 06:30 first of two",
        "01 07:30 second of two",
    ]
    default = timetable_of("30 2 * * *", "America/Chicago", "shift", "once", utc(spring[0]))
    assert (default.gap, default.repeat) == (Gap.SHIFT, Repeat.ONCE)


def test_DST_006_a_run_by_hand_near_the_change_costs_no_scheduled_one(world: World) -> None:
    """There are no data intervals; what ends at one nominal time begins the next all the same."""
    begin = utc("2027-03-13T06:00Z")
    set_clocks(world, begin)
    tick(world)
    schedule = put_schedule(world, "0 2 * * *", "America/New_York")
    for hour in range(60):
        world.clock.advance(3600)
        tick(world)
        if hour == 25:
            before = schedule_now(world)
            admit(world, a_plan([spec("a")]), "by hand")
            assert schedule_now(world) == before

    runs = [run.cause for run in runs_of(world, schedule)]
    nominal = due(schedule, begin, wall(world))
    assert runs == causes(schedule, nominal)
    assert [f"{at:%d %H:%M}" for at in nominal] == ["13 07:00", "14 07:00", "15 06:00"]
    assert all(one < later for one, later in pairwise([begin, *nominal]))
    assert len(graph_of(world).runs.recent(99)) == len(runs) + 1


def test_DST_009_an_hourly_schedule_runs_in_both_passes_of_the_repeated_hour() -> None:
    table = Timetable(expression="0 * * * *", time_zone="US/Pacific")

    found = between(table, "2026-11-01T07:00Z", "2026-11-01T11:00Z")

    assert [at.hour for at in found] == [7, 8, 9, 10, 11]


def test_LST_001_no_occurrence_is_lost_when_the_owner_dies(world: World) -> None:
    made = [put_schedule(world, "*/2 * * * * *", name=f"s{n}") for n in range(5)]
    begin = wall(world)

    pass_ticks(world, 14)  # then the owner is gone for good
    pass_ticks(world, 30, regions=["us-east"])
    pass_ticks(world, 2)

    for schedule in made:
        now = schedule_now(world, schedule.name)
        slots = due(schedule, begin, wall(world))
        assert now.fired_count + now.missed_count == len(slots)
        assert [run.cause for run in runs_of(world, schedule)] == causes(schedule, slots)


@pytest.mark.parametrize("catch_up", list(CatchUp), ids=str)
def test_LST_009_an_occurrence_met_three_seconds_late_runs(world: World, catch_up: CatchUp) -> None:
    schedule = put_schedule(world, "*/10 * * * * *", catch_up=catch_up)
    world.clock.advance(13)

    tick(world)

    assert len(runs_of(world, schedule)) == 1


@pytest.mark.parametrize(("catch_up", "ran"), [(CatchUp.LAST, 1), (CatchUp.NONE, 0)])
def test_LST_009_a_week_on_a_sleeping_host_is_run_or_recorded(
    world: World, catch_up: CatchUp, ran: int
) -> None:
    begin = utc("2026-06-01T12:00Z")
    set_clocks(world, begin)
    schedule = put_schedule(world, "0 3 * * *", catch_up=catch_up)
    world.clock.advance(7 * 24 * 3600)

    tick(world)

    now = schedule_now(world)
    assert len(runs_of(world, schedule)) == ran
    assert (now.fired_count, now.missed_count) == (ran, 7 - ran)
    assert sum(record.count for record in now.missed) == 7 - ran
    assert {record.reason.partition(":")[0] for record in now.missed} == {"late"}
