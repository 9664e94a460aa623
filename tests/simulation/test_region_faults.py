"""One fault at any call by which a region is given up, emptied or returned: all ends well."""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree

import pytest

from region_scheduler.domain.instance import FenceKind
from region_scheduler.domain.region import RegionStatus
from region_scheduler.domain.states import RunState
from region_scheduler.operations.audit import Auditor
from region_scheduler.operations.regions import Verb, Wish, carry_out
from region_scheduler.simulation.faults import Fault, FaultyWorld
from tests.simulation.acts import admit, effects, state_of
from tests.simulation.scenarios import HOME, REGIONS, a_plan, covering, graph_of, spec

WATCHED = ("regions.", "tasks.unheld", "tasks.load", "tasks.movable", "tasks.write")
ACTED = ("regions.", "instances.", "tasks.held", "tasks.write", "audit.")


def lost(directory: Path, fault: Fault | None) -> tuple[FaultyWorld, list[str]]:
    """Lose the region of a run, with one fault of those that live; return what is wrong then."""
    directory.mkdir(parents=True)
    world = FaultyWorld(directory, REGIONS, fault)
    run = admit(world, a_plan([spec("a"), spec("b"), spec("c")], "a>b"))
    world.lose_region(HOME)
    world.faults.is_armed = True
    for _ in range(12):
        world.pass_time(world.timings.lease_s / 2)
        (region,) = graph_of(world).regions.read([HOME])
        is_down = region is not None and region.status is RegionStatus.DOWN
        if is_down and state_of(world, run) is RunState.DONE:
            break
    ran = sorted(effects(world))
    wrong = [] if state_of(world, run) is RunState.DONE else [f"the run is {state_of(world, run)}"]
    if region is None or (region.status, region.epoch) != (RegionStatus.DOWN, 2):
        wrong.append(f"the region is {region}")
    return world, wrong + ([] if ran == ["a", "b", "c"] else [f"{ran} ran"])


@pytest.mark.slow
def test_a_lost_region_is_emptied_whatever_call_goes_wrong(tmp_path: Path) -> None:
    world, problems = lost(tmp_path / "survey", None)
    assert problems == []
    met = covering([f for f in world.faults.all() if f.point.startswith(WATCHED)], 12)
    assert {"regions.write", "tasks.write", "tasks.unheld"} <= {fault.point for fault in met}
    wrong = []
    for fault in met:
        _, problems = lost(tmp_path / str(fault), fault)
        rmtree(tmp_path / str(fault))
        wrong += [f"{fault}: {problem}" for problem in problems]

    assert wrong == []


def given_up(directory: Path, fault: Fault | None) -> tuple[FaultyWorld, list[str]]:
    """Let a person give a region up with one fault, again after an error; return what is wrong."""
    directory.mkdir(parents=True)
    world = FaultyWorld(directory, REGIONS, fault)
    run = admit(world, a_plan([spec("a"), spec("b")], "a>b"))
    here = world.regions["us-east"]
    before = {one.id for one in graph_of(world).instances.unfenced() if one.region == HOME}
    wish = Wish(verb=Verb.FAIL, why="fire")

    def act() -> object:
        graph, settler = here.ports.graph, here.services.settler
        audits = Auditor(graph, "alice", world.clock, world.chance)
        return carry_out(graph, settler, audits, world.clock, HOME, wish)

    world.faults.is_armed = True
    done = world.insist(here, act)
    world.faults.is_armed = False
    if done is None:
        act()  # whoever died has not said that it was done: somebody asks again
    fenced = {one.id: one.fenced for one in graph_of(world).instances.fenced()}
    kinds = {fence.kind for id_ in before if (fence := fenced.get(id_)) is not None}
    wrong = [] if kinds == {FenceKind.UNRESPONSIVE} else [f"its processes are fenced {kinds}"]
    world.pass_time(3 * world.timings.lease_s)
    (region,) = graph_of(world).regions.read([HOME])
    if region is None or (region.status, region.epoch) != (RegionStatus.DOWN, 2):
        wrong.append(f"the region is {region}")
    wrong += [] if state_of(world, run) is RunState.DONE else [f"the run is {state_of(world, run)}"]
    return world, wrong + ([] if sorted(effects(world)) == ["a", "b"] else [str(effects(world))])


@pytest.mark.slow
def test_a_region_is_given_up_whatever_call_of_it_goes_wrong(tmp_path: Path) -> None:
    world, problems = given_up(tmp_path / "survey", None)
    assert problems == []
    met = [f for f in world.faults.all() if f.point.startswith(ACTED)]
    assert {"regions.write", "instances.write", "audit.insert"} <= {fault.point for fault in met}
    wrong = []
    for fault in met:
        _, problems = given_up(tmp_path / str(fault), fault)
        rmtree(tmp_path / str(fault))
        wrong += [f"{fault}: {problem}" for problem in problems]

    assert wrong == []
