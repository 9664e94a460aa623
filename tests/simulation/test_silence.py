"""A resource manager that lives and does not look is noticed by its peers, and by the doctor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from region_scheduler.assembly.doctor import Unwell, leftovers_told, managers_told
from region_scheduler.domain.instance import Fence, FenceKind
from region_scheduler.domain.states import TaskState
from region_scheduler.ports.telemetry import Fact
from region_scheduler.resources.peers import ManagerSilent
from region_scheduler.resources.sweep import ResourceManager
from region_scheduler.simulation.steps import Crash
from region_scheduler.simulation.world import World
from tests.simulation.acts import admit, home, task_of
from tests.simulation.scenarios import HOME, a_plan, graph_of, spec

FAR = "us-east"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, (HOME, FAR))


@dataclass
class Counted:
    """Telemetry that keeps what it is told."""

    facts: list[Fact] = field(default_factory=list)

    def emit(self, fact: Fact) -> None:
        self.facts.append(fact)


def watchman(world: World, telemetry: Counted) -> ResourceManager:
    """Return a manager of the far region, told of by its facts."""
    far = world.regions[FAR]
    services = far.services
    return ResourceManager(
        FAR,
        far.ports.graph,
        services.keeper,
        services.settler,
        world.timings,
        far.ports.clock,
        telemetry,
    )


def pass_looks(world: World, seconds: float, look: Callable[[], object]) -> None:
    """Let every process beat, and one manager look, for some seconds."""
    step = world.timings.watch_every_s
    for _ in range(round(seconds / step)):
        world.clock.advance(step)
        world.renew()
        look()


def test_one_that_beats_and_does_not_sweep_is_told_once_and_again_after_it_was_well(
    world: World,
) -> None:
    told = Counted()
    far = watchman(world, told)
    pass_looks(world, world.timings.lease_s - 1, far.tick)
    assert told.facts == []

    pass_looks(world, 4, far.tick)
    (fact,) = told.facts
    assert isinstance(fact, ManagerSilent)
    stuck = home(world).services.keeper.instance.id
    assert (fact.region, fact.instance) == (HOME, stuck)
    assert world.timings.lease_s < fact.seconds < world.timings.lease_s + 2
    with pytest.raises(Unwell, match=f"no sweep was finished by {stuck}"):
        managers_told(graph_of(world), world.timings)

    home(world).services.resource_manager.tick()
    pass_looks(world, 2, far.tick)
    assert "2 resource managers" in managers_told(graph_of(world), world.timings)
    assert len(told.facts) == 1
    pass_looks(world, world.timings.lease_s + 3, far.tick)
    assert len(told.facts) == 2


def test_a_region_whose_managers_are_all_gone_is_told_after_a_lease(world: World) -> None:
    told = Counted()
    far = watchman(world, told)
    graph, instance = graph_of(world), home(world).services.keeper.instance
    fence = Fence(kind=FenceKind.EXPIRED, by="x", at=world.clock.now())
    graph.instances.write([(instance, replace(instance, fenced=fence))])
    workers = [worker for region in world.regions.values() for worker in region.workers]
    step = world.timings.watch_every_s
    for number in range(round((world.timings.lease_s + 2) / step)):
        world.clock.advance(step)
        world.regions[FAR].services.keeper.renew()
        for worker in workers:
            worker.keeper.renew()
        far.tick()
        if number * step < world.timings.lease_s - 1:
            assert told.facts == []
    (fact,) = told.facts
    assert isinstance(fact, ManagerSilent)
    assert (fact.region, fact.instance) == (HOME, "")
    with pytest.raises(Unwell, match=f"none in {HOME}"):
        managers_told(graph, world.timings)


def test_what_a_dead_process_held_comes_back_within_what_the_doctor_says(world: World) -> None:
    world.log.crashes["a"] = 1
    run = admit(world, a_plan([spec("a")]))
    scheduler = home(world).services.scheduler
    scheduler.tick()
    with pytest.raises(Crash):
        home(world).workers[0].work()
    assert task_of(world, run, "a").state is TaskState.RUNNING
    dead, timings = home(world).workers.pop(), world.timings
    dead.keeper.renew()
    died_at = world.clock.seconds

    while task_of(world, run, "a").state is TaskState.RUNNING:
        world.clock.advance(timings.watch_every_s)
        for region in world.regions.values():
            region.services.keeper.renew()
            region.services.resource_manager.tick()
        assert world.clock.seconds - died_at <= timings.lost_within_s
    assert world.clock.seconds - died_at > timings.lease_s - timings.watch_every_s


def test_a_claim_that_nobody_was_told_of_comes_back_within_what_the_doctor_says(
    world: World,
) -> None:
    run = admit(world, a_plan([spec("a")]))
    home(world).services.scheduler.tick()
    home(world).broker.lose_all()
    timings, began_at = world.timings, world.clock.seconds

    while task_of(world, run, "a").state is TaskState.CLAIMED:
        world.clock.advance(timings.watch_every_s)
        world.renew()
        home(world).services.resource_manager.tick()
        assert world.clock.seconds - began_at <= timings.undispatched_within_s


def test_the_doctor_names_the_bounds_that_follow_from_the_settings(world: World) -> None:
    found = leftovers_told(world.timings)

    # 6 s of lease and two looks of 4/6 s; 8 s and two looks; then five scans of 1 s.
    assert found.is_ok
    assert "within 14.3333 s" in found.detail
    assert "held is taken after 7.33333 s" in found.detail
    assert "told of after 9.33333 s" in found.detail
