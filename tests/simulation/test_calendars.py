"""Freezes and windows: nothing new is promoted while they shut a scope, and what runs goes on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.domain.calendar import Calendar, CalendarKind
from region_scheduler.domain.lease import LeaseTimings
from region_scheduler.domain.pause import EVERYTHING, Scope, ScopeKind
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.domain.step import StopWish
from region_scheduler.errors import InvalidInput, LostRace, NotFound, OutcomeUnknown, Unavailable
from region_scheduler.operations.calendars import (
    CalendarWish,
    find_calendar,
    remove_calendar,
    set_calendar,
    status_of,
)
from region_scheduler.operations.explain import Explanation, explain
from region_scheduler.simulation.faults import Fault, Faults, FaultyWorld
from region_scheduler.simulation.steps import Crash
from region_scheduler.simulation.world import World
from tests.simulation.acts import admit, auditor, effects, home, state_of, task_of
from tests.simulation.scenarios import HOME, ZONE, a_plan, a_zone, graph_of, spec

pytestmark = pytest.mark.usefixtures("judged")

SCOPES = {
    ScopeKind.EVERYTHING: EVERYTHING,
    ScopeKind.REGION: Scope(ScopeKind.REGION, HOME),
    ScopeKind.TENANT: Scope(ScopeKind.TENANT, "acme"),
    ScopeKind.ZONE: Scope(ScopeKind.ZONE, ZONE),
}
FAR = "us-east"
FREEZE, WINDOW = CalendarKind.FREEZE, CalendarKind.WINDOW


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two regions that look every ten seconds: what is about minutes needs no more."""
    return World(tmp_path, (HOME, FAR), timings=LeaseTimings())


def seconds(world: World, count: float) -> str:
    """Return the instant so many seconds from now, as a person types it."""
    return (world.clock.now() + timedelta(seconds=count)).isoformat()


def put(
    world: World, effect: str, scope: Scope, name: str = "year-end", end_s: float = 100, **more: str
) -> Calendar:
    given = {"reason": "audit"} | more
    if "expression" not in more:
        given.setdefault("end", seconds(world, end_s))
    wish = CalendarWish(effect=effect, name=name, **given)
    wanted = wish.calendar(scope, scope.name, "alice", world.clock.now())
    return set_calendar(graph_of(world), home(world).services.settler, auditor(world), wanted)


def take_away(world: World, scope: Scope, name: str = "year-end") -> None:
    found = find_calendar(graph_of(world), scope, name)
    remove_calendar(graph_of(world), home(world).services.settler, auditor(world), found, "over")


def two_runs(world: World) -> tuple[Run, Run]:
    """Admit a run of a zone of one tenant, and one of another tenant elsewhere."""
    graph_of(world).zones.insert([a_zone()])
    plan = a_plan([spec("a"), spec("b")], "a>b", zone=ZONE)
    other = a_plan([spec("c", FAR)], tenant="other")
    return admit(world, plan), admit(world, other, key="other")


def told(world: World, run: Run, name: str) -> Explanation:
    ports = home(world).ports
    return explain(ports.graph, task_of(world, run, name), world.clock.now(), ports.backlog)


@pytest.mark.parametrize("kind", list(SCOPES))
def test_a_freeze_keeps_what_is_in_its_scope_and_nothing_else(
    world: World, kind: ScopeKind
) -> None:
    run, other = two_runs(world)
    put(world, FREEZE, SCOPES[kind])
    world.pass_time(80)

    assert effects(world) == ([] if kind is ScopeKind.EVERYTHING else ["c"])
    assert task_of(world, run, "a").state is TaskState.READY
    world.pass_time(40)
    assert sorted(effects(world)) == ["a", "b", "c"]
    assert [state_of(world, one) for one in (run, other)] == [RunState.DONE] * 2


@pytest.mark.parametrize("kind", list(SCOPES))
def test_a_freeze_that_is_removed_lets_go_at_once(world: World, kind: ScopeKind) -> None:
    run, _ = two_runs(world)
    put(world, FREEZE, SCOPES[kind])
    world.pass_time(20)
    take_away(world, SCOPES[kind])

    world.fast_path()  # no slow poll
    assert state_of(world, run) is RunState.DONE


@pytest.mark.parametrize("kind", list(SCOPES))
def test_outside_its_windows_nothing_of_a_scope_starts(world: World, kind: ScopeKind) -> None:
    run, _ = two_runs(world)
    put(world, WINDOW, SCOPES[kind], begin=seconds(world, 60), end=seconds(world, 99))
    world.pass_time(50)
    assert "a" not in effects(world)

    world.pass_time(30)
    assert state_of(world, run) is RunState.DONE


def test_what_runs_when_a_freeze_begins_ends_and_what_it_unlocks_waits(world: World) -> None:
    run = admit(world, a_plan([spec("a"), spec("b")], "a>b"))

    def freeze(_: StopWish) -> None:
        put(world, FREEZE, SCOPES[ScopeKind.TENANT])

    world.log.during["a"] = freeze
    world.pass_time(20)

    assert task_of(world, run, "a").state is TaskState.DONE
    assert task_of(world, run, "b").state is TaskState.READY
    assert effects(world) == ["a"]


def test_a_window_that_recurs_opens_and_shuts_by_its_minutes(world: World) -> None:
    """The world begins at 00:16:40; a run of many waves crosses several windows."""
    put(world, WINDOW, EVERYTHING, expression="*/2 * * * *", lasts="50s")
    names = [f"t{n}" for n in range(8)]
    run = admit(world, a_plan([spec(name) for name in names], *map(">".join, pairwise(names))))
    starts: list[datetime] = []
    for name in names:
        world.log.during[name] = slow(world, starts)
    world.pass_time(700)

    assert state_of(world, run) is RunState.DONE
    assert len({start.minute for start in starts}) > 1
    assert {(start.minute % 2, start.second < 50) for start in starts} == {(0, True)}


def slow(world: World, starts: list[datetime]) -> Callable[[StopWish], None]:
    def during(_: StopWish) -> None:
        starts.append(world.clock.now())
        world.clock.advance(15)
        world.renew()

    return during


def test_a_region_looks_at_its_own_clock_as_for_pauses(world: World) -> None:
    world.clocks[FAR].ahead_s = 3600
    put(world, FREEZE, EVERYTHING)
    here = admit(world, a_plan([spec("a")]))
    there = admit(world, a_plan([spec("b", FAR)], home_region=FAR), key="there")
    world.pass_time(30)

    assert (state_of(world, here), state_of(world, there)) == (RunState.RUNNING, RunState.DONE)


def test_a_clock_that_is_set_back_into_a_freeze_is_in_it_again(world: World) -> None:
    put(world, FREEZE, EVERYTHING, end_s=30)
    world.pass_time(40)
    world.clocks[HOME].ahead_s = -35
    admit(world, a_plan([spec("a")]))
    world.fast_path()

    assert effects(world) == []


@pytest.mark.parametrize("kind", list(SCOPES))
def test_explain_names_the_freeze_and_when_it_ends(world: World, kind: ScopeKind) -> None:
    run, _ = two_runs(world)
    made = put(world, FREEZE, SCOPES[kind])
    world.pass_time(20)

    seen = told(world, run, "a")
    (text,) = [one.text for one in seen.reasons if one.kind == "freeze"]
    assert made.end is not None
    assert made.end.isoformat(timespec="seconds") in text
    assert text.startswith(str(kind))
    assert text.endswith("by alice (year-end): audit")
    assert seen.starts_in_s == pytest.approx((made.end - world.clock.now()).total_seconds())


def test_explain_names_the_windows_and_adds_up_what_must_be_open_at_once(world: World) -> None:
    run, _ = two_runs(world)
    put(world, WINDOW, SCOPES[ScopeKind.ZONE], begin=seconds(world, 50), end=seconds(world, 90))
    put(world, FREEZE, SCOPES[ScopeKind.REGION], end_s=70)
    now = world.clock.now()
    world.pass_time(20)

    seen = told(world, run, "a")
    assert {one.kind for one in seen.reasons} >= {"freeze", "window"}
    passed_s = (world.clock.now() - now).total_seconds()
    assert seen.starts_in_s == pytest.approx(70 - passed_s)

    put(world, FREEZE, SCOPES[ScopeKind.REGION], end_s=90)
    assert told(world, run, "a").starts_in_s is None


def test_who_set_and_removed_it_and_why_is_in_the_audit(world: World) -> None:
    put(world, FREEZE, SCOPES[ScopeKind.TENANT])
    take_away(world, SCOPES[ScopeKind.TENANT])

    entries = sorted(graph_of(world).audit.recent(10), key=lambda one: one.at)
    thing = "year-end of tenant acme"
    assert {(e.actor, e.action, e.thing, e.why) for e in entries} == {
        ("alice", "calendars.freeze", thing, "audit"),
        ("alice", "calendars.remove", thing, "over"),
    }
    with pytest.raises(NotFound):
        take_away(world, SCOPES[ScopeKind.TENANT])


def test_the_other_kind_by_the_same_name_is_refused_before_the_audit(world: World) -> None:
    scope = SCOPES[ScopeKind.TENANT]
    first = put(world, FREEZE, scope)
    with pytest.raises(InvalidInput, match="there is a freeze by that name"):
        put(world, WINDOW, scope)
    assert len(graph_of(world).audit.recent(10)) == 1

    take_away(world, scope)
    assert put(world, WINDOW, scope).revision == first.revision + 2


def test_two_who_set_it_at_the_same_time_never_make_one_of_both_kinds(world: World) -> None:
    scope = SCOPES[ScopeKind.TENANT]
    ports = home(world).ports
    stores, settler = ports.graph, home(world).services.settler

    wanted = CalendarWish(
        effect=WINDOW, name="year-end", end=seconds(world, 9), reason="x"
    ).calendar(scope, "acme", "bob", world.clock.now())

    def slowly(point: str, call: partial[Any]) -> Any:
        if point == "calendars.insert":
            put(world, FREEZE, scope)  # after ours was looked for, before it is written
        return call()

    hooked = ports.through(slowly).graph
    with pytest.raises(LostRace):
        set_calendar(hooked, settler, auditor(world, "bob"), wanted)
    assert find_calendar(stores, scope, "year-end").kind is FREEZE


def insisted(act: Callable[[], Calendar]) -> Calendar | None:
    """Let a person act, once more after an error; None if the process died under them."""
    try:
        return act()
    except (Unavailable, OutcomeUnknown):
        return act()
    except Crash:
        return None


def played(directory: Path, fault: Fault | None) -> tuple[Faults, list[str]]:
    """Set, change and remove a freeze with one fault on the way; return what was wrong."""
    world = FaultyWorld(directory, (HOME,), fault)
    ports, settler = home(world).ports, home(world).services.settler
    stores, scope = graph_of(world), SCOPES[ScopeKind.REGION]
    problems: list[str] = []
    world.faults.is_armed = True
    for end in (seconds(world, 400), seconds(world, 500)):
        wish = CalendarWish(effect=FREEZE, name="f", end=end, reason="r")
        wanted = wish.calendar(scope, HOME, "alice", world.clock.now())
        made = insisted(partial(set_calendar, ports.graph, settler, auditor(world), wanted))
        if made is not None and made.end != wanted.end:
            problems.append(f"set to {made.end}")
    run = admit(world, a_plan([spec("a")]))
    standing = stores.calendars.on()
    world.fast_path()
    if standing and effects(world):
        problems.append("promoted in a freeze")
    for calendar in standing:
        remove = partial(remove_calendar, ports.graph, settler, auditor(world), calendar)
        if insisted(remove) is None:
            world.faults.is_armed = False
            remove()  # who died on the way asks again
    world.fast_path()
    if state_of(world, run) is not RunState.DONE or effects(world) != ["a"]:
        problems.append(f"run {state_of(world, run)}, {effects(world)}")
    return world.faults, problems


def test_one_fault_at_any_call_on_calendars_does_no_harm(tmp_path: Path) -> None:
    survey, problems = played(tmp_path / "survey", None)
    faults = [f for f in survey.all() if f.point.startswith("calendars.")]
    assert problems == []
    assert {f.point for f in faults} == {"calendars.read", "calendars.insert", "calendars.write"}

    harmful = {}
    for number, fault in enumerate(faults):
        struck, problems = played(tmp_path / str(number), fault)
        if problems or not struck.has_struck:
            harmful[str(fault)] = problems
    assert harmful == {}


def test_how_it_stands_is_told_in_one_word(world: World) -> None:
    now = world.clock.now()
    scope = SCOPES[ScopeKind.TENANT]
    freeze = put(world, FREEZE, scope, begin=seconds(world, 5), end=seconds(world, 10))
    moments = [now + timedelta(seconds=n) for n in (0, 7, 12)]
    assert [status_of(freeze, at).state for at in moments] == ["to come", "in force", "over"]
    window = put(world, WINDOW, scope, "w", expression="0 * * * *", lasts="20m")
    assert status_of(window, now).state == "open"


BAD = [
    ({"end": "2031-01-01T00:00"}, "offset from UTC"),
    ({"end": "2001-01-01T00:00Z"}, "must be after"),
    ({"begin": "2031-01-02T00:00Z", "end": "2031-01-01T00:00Z"}, "must be after 2031-01-02"),
    ({}, "say when it ends"),
    ({"lasts": "8h"}, "when it begins each time"),
    ({"expression": "0 22 * * *"}, "like 8h"),
    ({"expression": "0 22 * * *", "lasts": "400d"}, "at most a year"),
    ({"expression": "0 22 * * *", "lasts": "1h", "end": "2031-01-01T00:00Z"}, "leave it out"),
    ({"expression": "* * * * *", "lasts": "1m"}, "never ends"),
    ({"expression": "0 25 * * *", "lasts": "1h"}, "bad hour"),
    ({"end": "2031-01-01T00:00Z", "reason": " "}, "say why"),
    ({"end": "2031-01-01T00:00Z", "name": ""}, "a name has"),
    ({"end": "2031-01-01T00:00Z", "effect": "thaw"}, "freeze"),
]


@pytest.mark.parametrize(("typed", "expected"), BAD, ids=[why for _, why in BAD])
def test_what_is_no_calendar_is_refused_with_the_way_out(
    typed: dict[str, str], expected: str
) -> None:
    wish = CalendarWish(**{"name": "n", "reason": "r", **typed})
    with pytest.raises(InvalidInput, match=expected):
        wish.calendar(EVERYTHING, "", "alice", datetime.fromisoformat("2026-01-01T00:00Z"))
