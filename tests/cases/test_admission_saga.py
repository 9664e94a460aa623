"""The handed cases about admissions that are disturbed, each named by its id.

ADM-001, 002, 009 and 010 are shown with real processes as well: tests/integration/admission.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.admission.cluster_manager import ClusterManager
from region_scheduler.admission.intake import Intake
from region_scheduler.admission.saga import AdmissionSaga
from region_scheduler.assembly.services import Ports, settler
from region_scheduler.domain.admission import Admission, AdmissionState, admission_key
from region_scheduler.domain.ids import Incarnation, RunId, task_id
from region_scheduler.domain.lease import LOCAL_TIMINGS
from region_scheduler.domain.states import RunState
from region_scheduler.domain.tenant import Quota
from region_scheduler.embedded.arango.control import FaultControl
from region_scheduler.errors import OutcomeUnknown, Unavailable
from region_scheduler.identity.quotas import Quotas
from region_scheduler.membership.keeper import LeaseKeeper
from region_scheduler.ports.records import GraphStores
from region_scheduler.simulation.steps import Crash
from region_scheduler.simulation.world import SimulatedRegion, World
from tests.simulation.scenarios import REGIONS, a_plan, graph_of, spec

HOME, OTHER, THIRD = REGIONS
PLAN = a_plan([spec("a"), spec("b", OTHER)], "a>b")
DEAD_S = LOCAL_TIMINGS.lease_s + 2
"""After this long every observer has seen that a beat stands still."""
Hook = Callable[[str, partial[Any]], Any]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, REGIONS)


def accept_and_die(world: World, key: str) -> None:
    """Accept a request in the first region, as a process that does nothing after it."""
    region = world.regions[HOME]
    dead = region.services.keeper.instance.id
    ports = region.ports.through(crashing_after("admissions.insert"))
    who = settler(ports, dead)
    saga = AdmissionSaga(HOME, ports.graph, ports.metadata, who)
    quotas = Quotas(ports.graph, Quota(), ports.clock)
    submits = Intake(ports.graph, saga, dead, ports.clock, ports.ids, quotas)
    with pytest.raises(Crash):
        submits.admit(PLAN, key)


def crashing_after(point: str, number: int = 0) -> Hook:
    """Return a hook under which a process dies after a call of `point`."""
    left = [number]

    def hook(called: str, call: partial[Any]) -> Any:
        done = call()
        if called == point:
            left[0] -= 1
            if left[0] < 0:
                raise Crash(point)
        return done

    return hook


def manager(world: World, region: SimulatedRegion, ports: Ports) -> ClusterManager:
    """Return the cluster manager of a region's serving process, on other ports."""
    keeper: LeaseKeeper = region.services.keeper
    saga = AdmissionSaga(region.name, ports.graph, ports.metadata, settler(ports, "x"))
    return ClusterManager(ports.graph, saga, keeper, world.timings, world.clock)


def pass_time_without(world: World, dead: set[str], seconds: float) -> None:
    """Let time pass; the serving processes of some regions are dead."""
    step = world.timings.renew_every_s / 2
    for _ in range(round(seconds / step)):
        world.clock.advance(step)
        for region in world.regions.values():
            if region.name not in dead:
                region.services.keeper.renew()
                region.services.resource_manager.tick()


def leaders(world: World) -> list[str]:
    """Return the regions in the order in which they would lead."""
    return sorted(world.regions, key=lambda n: world.regions[n].services.keeper.instance.id)


def is_whole(graph: GraphStores, run: RunId) -> bool:
    (found,) = graph.runs.read([run])
    return found is not None and graph.tasks.counts(run) == (len(PLAN.tasks), len(PLAN.edges))


def test_ADM_001_late_writes_of_an_epoch_that_was_taken_over_change_nothing(world: World) -> None:
    accept_and_die(world, "k")
    graph = graph_of(world)
    (old,) = graph.admissions.read([admission_key("client", PLAN.tenant, "k")])
    assert old is not None
    pass_time_without(world, {HOME}, DEAD_S)
    for name in (OTHER, THIRD):
        world.regions[name].services.cluster_manager.tick()
    taken, before = admission(graph, "k"), revisions(graph, old.run)
    assert (taken.state, taken.epoch) == (AdmissionState.DONE, 2)

    ports = world.regions[HOME].ports
    late = AdmissionSaga(HOME, ports.graph, ports.metadata, settler(ports, "late"))
    assert late.carry_out(old).id == old.run

    assert admission(graph, "k") == taken
    assert revisions(graph, old.run) == before


def admission(graph: GraphStores, key: str) -> Admission:
    (found,) = graph.admissions.read([admission_key("client", PLAN.tenant, key)])
    assert found is not None
    return found


def revisions(graph: GraphStores, run: RunId) -> dict[str, str]:
    (published,) = graph.runs.read([run])
    assert published is not None
    return {one.id: one.rev for one in graph.tasks.of_run(run)} | {run: published.rev}


def test_ADM_002_what_a_crash_left_is_found_and_finished_an_hour_later(world: World) -> None:
    accept_and_die(world, "k")
    graph = graph_of(world)
    run = admission(graph, "k").run
    assert not is_whole(graph, run)

    world.clock.advance(3_600)
    for region in world.regions.values():  # everything is started anew after the hour
        world.restart(region)
    world.pass_time(world.timings.lease_s + 3)

    assert is_whole(graph, run)
    (published,) = graph.runs.read([run])
    assert published is not None
    assert published.state is RunState.DONE
    assert [effect.name for effect in world.log.effects] == ["a", "b"]
    for name, task in ((HOME, "a"), (OTHER, "b")):  # each in its own region's relational store
        assert list(world.regions[name].ports.metadata.marks(run)) == [task_id(run, task)]


def test_ADM_006_the_next_cluster_manager_goes_on_where_the_first_was_killed(world: World) -> None:
    count, killed_at = 50, 25
    for n in range(count):
        accept_and_die(world, f"k{n}")
    graph = graph_of(world)
    dead = world.regions[HOME].services.keeper.instance.id
    first, second = (name for name in leaders(world) if name != HOME)
    pass_time_without(world, {HOME}, DEAD_S)

    region = world.regions[first]
    # Two writes an admission: it is taken over, and closed.
    ports = region.ports.through(crashing_after("admissions.write", 2 * killed_at))
    with pytest.raises(Crash):
        manager(world, region, ports).tick()
    assert len(graph.admissions.unfinished()) == count - killed_at
    assert world.regions[second].services.cluster_manager.tick() == [], "the first still leads"
    pass_time_without(world, {HOME, first}, DEAD_S)
    world.regions[second].services.cluster_manager.tick()

    found = graph.admissions.recent(2 * count)
    assert len(found) == count
    assert all(a.state is AdmissionState.DONE and a.instance != dead for a in found)
    assert sorted(a.epoch for a in found) == [2] * (count - 1) + [3], (
        "3: taken, then orphaned again"
    )
    assert {run.id for run in graph.runs.recent(2 * count)} == {a.run for a in found}
    assert all(is_whole(graph, a.run) for a in found)


def test_two_that_believe_to_lead_take_an_admission_over_once(world: World) -> None:
    """The first leader is paused in the middle of its look, the second leads meanwhile."""
    accept_and_die(world, "k")
    graph = graph_of(world)
    first, second = (name for name in leaders(world) if name != HOME)
    pass_time_without(world, {HOME}, DEAD_S)

    def pause(point: str, call: partial[Any]) -> Any:
        if point == "admissions.write" and not others:
            pass_time_without(world, {HOME, first}, DEAD_S)
            others.extend(world.regions[second].services.cluster_manager.tick())
        return call()

    others: list[Any] = []
    paused = world.regions[first]
    late = manager(world, paused, paused.ports.through(pause)).tick()

    assert (len(others), late) == (1, [])
    taken = admission(graph, "k")
    assert taken.instance == world.regions[second].services.keeper.instance.id
    assert (taken.state, taken.epoch) == (AdmissionState.DONE, 2)
    assert is_whole(graph, taken.run)


def test_a_submitter_without_a_lease_document_is_dead_after_a_lease(world: World) -> None:
    """The store came back as it was before that process began."""
    accept_and_die(world, "k")
    graph = graph_of(world)
    known = admission(graph, "k")
    graph.admissions.write([(known, replace(known, instance=Incarnation("nobody:1")))])
    leader = world.regions[leaders(world)[0]]

    leader.services.cluster_manager.tick()
    assert len(graph.admissions.unfinished()) == 1, "not seen for a lease yet"
    pass_time_without(world, set(), DEAD_S)
    (run,) = leader.services.cluster_manager.tick()

    assert is_whole(graph, run.id)


def test_ADM_008_what_was_acknowledged_is_known_in_every_region(world: World) -> None:
    """The answer is given by the store's majority: a lagging follower is never asked."""
    control = FaultControl(world.engine)
    control.freeze(OTHER)
    here, there = world.regions[HOME].services.intake, world.regions[OTHER].services.intake
    first = [here.admit(PLAN, f"k{n}").run.id for n in range(20)]

    control.cut(HOME, is_refusing=True)
    again = [there.admit(PLAN, f"k{n}") for n in range(20)]
    control.heal(HOME)

    assert [admitted.run.id for admitted in again] == first
    assert all(admitted.is_repeat for admitted in again)
    assert len(graph_of(world).runs.recent(100)) == 20


def test_ADM_008_a_region_that_is_cut_off_acknowledges_nothing(world: World) -> None:
    control = FaultControl(world.engine)
    control.cut(HOME, is_refusing=True)
    here, there = world.regions[HOME].services.intake, world.regions[OTHER].services.intake
    for n in range(20):
        with pytest.raises((Unavailable, OutcomeUnknown)):
            here.admit(PLAN, f"k{n}")

    runs = [there.admit(PLAN, f"k{n}").run.id for n in range(20)]
    control.heal(HOME)
    again = [here.admit(PLAN, f"k{n}").run.id for n in range(20)]
    world.pass_time(3)

    assert again == runs
    assert len({effect.receipt_id for effect in world.log.effects}) == 40
    assert {run.state for run in graph_of(world).runs.recent(100)} == {RunState.DONE}


@pytest.mark.parametrize("point", ["metadata.record", "tasks.insert", "tasks.insert_edges"])
def test_ADM_009_no_answer_says_accepted_while_the_run_is_not_whole(
    world: World, point: str
) -> None:
    ports = world.regions[HOME].ports.through(crashing_after(point))
    saga = AdmissionSaga(HOME, ports.graph, ports.metadata, settler(ports, "x"))
    accept_and_die(world, "k")
    graph = graph_of(world)

    with pytest.raises(Crash):
        saga.carry_out(admission(graph, "k"))
    assert graph.runs.recent(10) == []
    world.restart(world.regions[HOME])
    world.pass_time(world.timings.lease_s + 3)

    assert is_whole(graph, admission(graph, "k").run)
    assert [run.state for run in graph.runs.recent(10)] == [RunState.DONE]


def test_ADM_010_who_finds_it_there_already_has_succeeded(world: World) -> None:
    """Two process the same admission at once: the loser finds all of it with the same content."""
    accept_and_die(world, "k")
    graph = graph_of(world)
    accepted = admission(graph, "k")
    other = world.regions[OTHER]

    def meanwhile(point: str, call: partial[Any]) -> Any:
        if point == "tasks.insert_edges" and not published:
            saga = AdmissionSaga(
                OTHER, other.ports.graph, other.ports.metadata, settler(other.ports, "y")
            )
            published.append(saga.carry_out(accepted).id)
        return call()

    published: list[RunId] = []
    ports = world.regions[HOME].ports.through(meanwhile)
    saga = AdmissionSaga(HOME, ports.graph, ports.metadata, settler(ports, "x"))

    assert saga.carry_out(accepted).id == published[0] == accepted.run
    assert len(graph.runs.recent(10)) == 1
    assert is_whole(graph, accepted.run)
