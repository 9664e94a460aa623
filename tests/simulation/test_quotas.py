"""Quotas: of several who want the last one, one gets it, whatever happens at whichever call."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.admission.intake import Intake
from region_scheduler.assembly.instrumented import Hook
from region_scheduler.assembly.services import intake
from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.admission import Admission, AdmissionState, admission_key
from region_scheduler.domain.ids import Incarnation
from region_scheduler.domain.instance import Fence, FenceKind, fenced
from region_scheduler.domain.run import Zone
from region_scheduler.domain.tenant import Quota, Tenant, tenant_key
from region_scheduler.errors import (
    LostRace,
    OutcomeUnknown,
    RegionSchedulerError,
    Throttled,
    Unavailable,
)
from region_scheduler.identity.quotas import Quotas
from region_scheduler.operations.zones import create_zone
from region_scheduler.ports.documents import WriteResult, Written
from region_scheduler.ports.records import GraphStores
from region_scheduler.simulation.steps import Crash
from region_scheduler.simulation.world import World
from tests.simulation.acts import auditor, home
from tests.simulation.scenarios import HOME, a_plan, a_zone, graph_of, spec

PLAN = a_plan([spec("a")])
UP_TO = {AdmissionState.ACCEPTED, AdmissionState.DONE}
Act = Callable[[], object]
Doing = Callable[[World, Hook], object]


def bounded(world: World, **quota: int) -> None:
    tenant = Tenant(
        id=tenant_key("acme"), name="acme", quota=Quota(**quota), created_at=world.clock.now()
    )
    graph_of(world).tenants.insert([tenant])


def submitter(world: World, name: str, hook: Hook | None = None) -> Intake:
    """Return the submitter role of a further process, registered under a lease of its own."""
    region = home(world)
    instance = replace(region.services.keeper.instance, id=Incarnation(f"{name}:1"), rev="")
    graph_of(world).instances.insert([instance])
    return intake(region.ports if hook is None else region.ports.through(hook), instance)


def kill(world: World, name: str) -> None:
    fence = Fence(kind=FenceKind.EXPIRED, by="observer", at=world.clock.now())
    change = Change(f"{name}:1", lambda found: fenced(found, found.beat, fence))
    commit_one(graph_of(world).instances, change)


def accepted(graph: GraphStores) -> list[str]:
    """Return the keys of what is accepted."""
    return sorted(one.key for one in graph.admissions.recent(100) if one.state in UP_TO)


def standing(graph: GraphStores, key: str) -> Admission:
    (found,) = graph.admissions.read([admission_key("client", "acme", key)])
    assert found is not None
    return found


def plainly(_point: str, call: partial[Any]) -> Any:
    return call()


def counting(calls: list[str]) -> Hook:
    def note(point: str, call: partial[Any]) -> Any:
        calls.append(point)
        return call()

    return note


def meanwhile(number: int, act: Act) -> Hook:
    """Return a hook under which somebody else acts right before a call."""
    left = [number]

    def before(_point: str, call: partial[Any]) -> Any:
        left[0] -= 1
        if left[0] == -1:
            act()
        return call()

    return before


def lost(number: int, *, is_done: bool) -> Hook:
    """Return a hook under which the answer to a write is lost, or the request itself."""
    left = [number]

    def losing(point: str, call: partial[Any]) -> Any:
        left[0] -= 1
        if left[0] != -1:
            return call()
        if point.endswith((".insert", ".write")):
            answers = call() if is_done else [None] * len(call.args[0])
            return [Written(WriteResult.UNKNOWN)] * len(answers)
        raise Unavailable(dependency="graph store", detail="lost")

    return losing


def dying(number: int, *, is_done: bool) -> Hook:
    left = [number]

    def dies(point: str, call: partial[Any]) -> Any:
        left[0] -= 1
        if left[0] == -1 and not is_done:
            raise Crash(point)
        done = call()
        if left[0] == -1:
            raise Crash(point)
        return done

    return dies


def outcome(act: Callable[[], object]) -> str:
    try:
        act()
    except Throttled:
        return "throttled"
    return "accepted"


def calls_of(place: Path, act: Doing, first: Doing | None = None, **quota: int) -> int:
    """Return how many port calls an act makes that is alone; a tenant's first takes one more."""
    place.mkdir()
    world, calls = World(place, (HOME,)), list[str]()
    bounded(world, **quota)
    if first is not None:
        first(world, plainly)
    act(world, counting(calls))
    return len(calls)


def admits(key: str) -> Doing:
    return lambda world, hook: submitter(world, f"of-{key}", hook).admit(PLAN, key)


@pytest.mark.parametrize("quota", ["runs_in_flight_max", "runs_a_day_max"])
def test_two_submitters_who_want_the_last_run_at_any_moment_get_it_once(
    tmp_path: Path, quota: str
) -> None:
    count = calls_of(tmp_path / "survey", admits("k"), admits("first"), **{quota: 2})
    assert count > 10
    for number in range(count):
        place = tmp_path / str(number)
        place.mkdir()
        world = World(place, (HOME,))
        bounded(world, **{quota: 2})
        submitter(world, "before").admit(PLAN, "first")
        other, told = submitter(world, "other"), list[str]()

        def cuts_in() -> None:
            told.append(outcome(partial(other.admit, PLAN, "cut-in")))  # noqa: B023

        mine = submitter(world, "mine", meanwhile(number, cuts_in))
        told.append(outcome(partial(mine.admit, PLAN, "mine")))

        assert sorted(told) == ["accepted", "throttled"], f"call {number}"
        assert len(accepted(graph_of(world))) == 2, f"call {number}"


@pytest.mark.parametrize("is_done", [True, False], ids=["answer lost", "request lost"])
def test_a_lost_answer_at_any_moment_takes_no_run_away_and_gives_none_for_nothing(
    tmp_path: Path, is_done: bool
) -> None:
    count = calls_of(tmp_path / "survey", admits("k"), runs_in_flight_max=1)
    for number in range(count):
        place = tmp_path / str(number)
        place.mkdir()
        world = World(place, (HOME,))
        graph = graph_of(world)
        bounded(world, runs_in_flight_max=1)
        with suppress(Unavailable, OutcomeUnknown, LostRace):
            submitter(world, "mine", lost(number, is_done=is_done)).admit(PLAN, "mine")
        has_mine = accepted(graph) == ["mine"]

        told = outcome(partial(submitter(world, "other").admit, PLAN, "other"))

        assert told == ("throttled" if has_mine else "accepted"), f"call {number}"
        assert len(accepted(graph)) == 1, f"call {number}"
        if has_mine:
            again = submitter(world, "again").admit(PLAN, "mine")
            assert again.run.id == standing(graph, "mine").run, "what is known is not throttled"


@pytest.mark.parametrize("is_done", [True, False], ids=["after", "before"])
def test_a_submitter_that_dies_at_any_moment_keeps_no_run_for_itself(
    tmp_path: Path, is_done: bool
) -> None:
    count = calls_of(tmp_path / "survey", admits("k"), runs_in_flight_max=1)
    for number in range(count):
        place = tmp_path / str(number)
        place.mkdir()
        world = World(place, (HOME,))
        graph = graph_of(world)
        bounded(world, runs_in_flight_max=1)
        with suppress(Crash):
            submitter(world, "mine", dying(number, is_done=is_done)).admit(PLAN, "mine")
        has_mine = accepted(graph) == ["mine"]
        other = submitter(world, "other")
        if graph.grants.read([tenant_key("acme")]) != [None] and not has_mine:
            grants = graph.grants.read([tenant_key("acme")])[0]
            if grants is not None and grants.runs:
                assert outcome(partial(other.admit, PLAN, "too soon")) == "throttled"
        kill(world, "mine")

        told = outcome(partial(other.admit, PLAN, "other"))

        assert told == ("throttled" if has_mine else "accepted"), f"call {number}"
        assert len(accepted(graph)) == 1, f"call {number}"


@pytest.mark.parametrize("point", ["admissions.insert", "grants.write"])
def test_a_submitter_taken_for_dead_before_a_write_does_not_get_more_than_there_is(
    tmp_path: Path, point: str
) -> None:
    """It is paused; another takes its grant back and gets the run; then it goes on."""
    world = World(tmp_path, (HOME,))
    graph = graph_of(world)
    bounded(world, runs_in_flight_max=1)
    other, told = submitter(world, "other"), list[str]()

    def paused(called: str, call: partial[Any]) -> Any:
        if called == point and not told:
            kill(world, "mine")
            told.append(outcome(partial(other.admit, PLAN, "other")))
        return call()

    told.append(outcome(partial(submitter(world, "mine", paused).admit, PLAN, "mine")))

    assert told == ["accepted", "throttled"]
    assert accepted(graph) == ["other"]
    world.fast_path()
    world.pass_time(1)
    with suppress(RegionSchedulerError):
        submitter(world, "again").admit(PLAN, "mine")
    assert accepted(graph) == ["mine", "other"], "its key is not used up"


def test_a_write_that_arrives_after_its_grant_was_revoked_twice_changes_nothing(
    tmp_path: Path,
) -> None:
    """Its admission is void already, so that the late write is one in the place of that."""
    world = World(tmp_path, (HOME,))
    graph = graph_of(world)
    bounded(world, runs_in_flight_max=1)
    pauses = {"admissions.insert": "first", "admissions.write": "second"}
    told: list[str] = []

    def paused(called: str, call: partial[Any]) -> Any:
        key = pauses.pop(called, "")
        if key == "first":
            kill(world, "mine")
            told.append(outcome(partial(submitter(world, key).admit, PLAN, key)))
            world.fast_path()
            world.pass_time(1)  # it has ended: there is room again
        elif key == "second":
            told.append(outcome(partial(submitter(world, key).admit, PLAN, key)))
        return call()

    told.append(outcome(partial(submitter(world, "mine", paused).admit, PLAN, "mine")))

    assert told == ["accepted", "accepted", "throttled"]
    assert accepted(graph) == ["first", "second"]
    assert standing(graph, "mine").state is AdmissionState.VOID


def test_the_day_is_that_of_utc_and_the_refusal_says_when_it_ends(tmp_path: Path) -> None:
    world = World(tmp_path, (HOME,))
    bounded(world, runs_a_day_max=1)
    submits = submitter(world, "s")
    submits.admit(PLAN, "k1")
    now = world.clock.now()

    with pytest.raises(Throttled) as refused:
        submits.admit(PLAN, "k2")

    ends_at = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    assert timedelta(seconds=refused.value.retry_after_s) > ends_at - now
    world.clock.advance(refused.value.retry_after_s)
    assert not submits.admit(PLAN, "k2").is_repeat
    assert submits.admit(PLAN, "k1").is_repeat
    assert (refused.value.quota, refused.value.limit, refused.value.used) == ("runs a day", 1, 1)


def zone_named(name: str) -> Zone:
    return replace(a_zone(), id=f"zone-{name}", name=name)


def creates(name: str) -> Doing:
    def create(world: World, hook: Hook) -> object:
        graph = home(world).ports.through(hook).graph
        writes = replace(auditor(world), graph=graph)
        quotas = Quotas(graph, Quota(), world.clock)
        return create_zone(graph, writes, quotas, zone_named(name))

    return create


def test_two_who_want_the_last_zone_at_any_moment_get_it_once(tmp_path: Path) -> None:
    count = calls_of(tmp_path / "survey", creates("z"), creates("first"), zones_max=2)
    for number in range(count):
        place = tmp_path / str(number)
        place.mkdir()
        world, told = World(place, (HOME,)), list[str]()
        bounded(world, zones_max=2)
        creates("first")(world, plainly)

        def cuts_in() -> None:
            told.append(outcome(partial(creates("cut-in"), world, plainly)))  # noqa: B023

        told.append(outcome(partial(creates("mine"), world, meanwhile(number, cuts_in))))

        assert sorted(told) == ["accepted", "throttled"], f"call {number}"
        assert len(graph_of(world).zones.all()) == 2, f"call {number}"


@pytest.mark.parametrize("disturbed", [dying, lost], ids=["dies", "answer lost"])
def test_a_zone_that_was_granted_comes_to_be_whoever_dies(
    tmp_path: Path, disturbed: Callable[..., Hook]
) -> None:
    count = calls_of(tmp_path / "survey", creates("z"), zones_max=1)
    for number in range(count):
        place = tmp_path / str(number)
        place.mkdir()
        world = World(place, (HOME,))
        bounded(world, zones_max=1)
        with suppress(Crash, Unavailable, OutcomeUnknown):
            creates("mine")(world, disturbed(number, is_done=True))

        told = outcome(partial(creates("other"), world, plainly))

        (zone,) = graph_of(world).zones.all()
        assert zone.name == ("mine" if told == "throttled" else "other"), f"call {number}"
        (grants,) = graph_of(world).grants.read([tenant_key("acme")])
        assert grants is not None
        assert told == "throttled" or grants.zones == (), "nobody would create it once more"
        wishes = {entry.thing for entry in graph_of(world).audit.recent(9)}
        assert zone.name in wishes, "nothing is made without an entry"
