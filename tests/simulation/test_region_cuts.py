"""A region is cut off from the graph in the middle of a step: one way, both ways, now and then.

Its processes live on. The step ends, as its shim would end it, when the lease has run out. What
steps did is taken from the world's own log.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle, islice, pairwise
from pathlib import Path

import pytest

from region_scheduler.domain.region import RegionStatus
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RunState
from region_scheduler.domain.step import StopWish
from region_scheduler.domain.task import Exit, ExitKind
from region_scheduler.embedded.arango.control import FaultControl
from region_scheduler.embedded.arango.faults import Fault, FaultKind
from region_scheduler.simulation.faults import FaultyWorld
from region_scheduler.verify.counters import executions
from region_scheduler.verify.verifier import Source, verify
from tests.simulation.acts import admit, home
from tests.simulation.scenarios import HOME, REGIONS, a_plan, spec

STEPS = ("a", "b", "c")
ELSEWHERE = "us-east"


def both_ways(control: FaultControl) -> None:
    control.cut(HOME, is_refusing=True)


def answers_lost(control: FaultControl) -> None:
    control.inject(Fault(FaultKind.ANSWER_DROPPED, region=HOME))


def requests_lost(control: FaultControl) -> None:
    control.inject(Fault(FaultKind.NOT_SENT, region=HOME))


class Link:
    """The link of the home region; `beat` is told whenever some time has passed."""

    def __init__(self, world: FaultyWorld, cut: Callable[[FaultControl], None], beats: str) -> None:
        self._control = FaultControl(world.engine)
        self._cut = cut
        self._beats = cycle(beats)

    def beat(self) -> None:
        """Cut it, or mend it, as its turn is."""
        self.heal()
        if next(self._beats) == "x":
            self._cut(self._control)

    def heal(self) -> None:
        self._control.clear()
        self._control.heal(HOME)


def until_its_deadline(world: FaultyWorld, link: Link) -> Callable[[StopWish], Exit | None]:
    """Return what happens in the first step: the link goes, and time passes until the lease ends.

    The lease of the worker that runs it is renewed meanwhile if a renewal gets through.
    """
    (worker,) = home(world).workers
    had = {"begun": False}

    def happens(_should_stop: StopWish) -> Exit | None:
        if had["begun"]:
            return None
        had["begun"] = True
        for _ in range(30):
            link.beat()
            if world.clock.monotonic() >= worker.keeper.deadline - world.timings.stop_s:
                return Exit(kind=ExitKind.FENCED, message="the lease ran out")
            world.pass_time(world.timings.renew_every_s / 2)
        return None

    return happens


@pytest.mark.parametrize(
    ("cut", "beats"),
    [
        (both_ways, "x"),
        (answers_lost, "x"),
        (requests_lost, "x"),
        (both_ways, "xxx."),
        (answers_lost, "xxxxxx.."),
    ],
)
def test_whatever_the_cut_each_step_is_done_and_no_two_of_a_task_run_at_once(
    tmp_path: Path, cut: Callable[[FaultControl], None], beats: str
) -> None:
    world = FaultyWorld(tmp_path, REGIONS, None)
    run = admit(world, a_plan([spec(name) for name in STEPS], "a>b"), region=ELSEWHERE)
    link = Link(world, cut, beats)
    world.log.during["a"] = until_its_deadline(world, link)

    world.pass_time(2 * world.timings.lease_s)
    link.heal()
    waited_s = 0.0
    while state(world, run) is not RunState.DONE:
        assert waited_s < 4 * world.timings.lease_s
        world.pass_time(1)
        waited_s += 1

    graph = world.regions[ELSEWHERE].ports.graph
    found = verify(Source(history=graph.history, steps=world.log.facts, is_at_rest=True))
    assert found.violations == 0, list(found.lines())
    tasks = {task.spec.name: task for task in graph.tasks.of_run(run.id)}
    ran = [one for one in executions(world.log.facts) if one.task == tasks["a"].id]
    assert all(one.ended_at < then.started_at for one, then in pairwise(ran))
    assert ran[0].region == HOME
    assert tasks["a"].token.number < 40, "it is not handed to and fro without an end"
    if beats == "x":
        assert len(ran) == 2, "nothing was heard of it for longer than a lease lasts"


def test_a_region_is_given_up_though_the_link_of_the_leader_comes_and_goes(
    tmp_path: Path,
) -> None:
    world = FaultyWorld(tmp_path, REGIONS, None)
    keepers = {name: region.services.keeper for name, region in world.regions.items()}
    leader = min(keepers, key=lambda name: keepers[name].instance.id)
    assert leader not in {HOME, ELSEWHERE}
    before = keepers[leader].instance
    world.lose_region(HOME)

    control, given_up = FaultControl(world.engine), False
    for beat in islice(cycle("xxxx."), 40):
        control.heal(leader)
        if beat == "x":
            control.cut(leader, is_refusing=True)
        world.pass_time(world.timings.renew_every_s / 2)
        (found,) = world.regions[ELSEWHERE].ports.graph.regions.read([HOME])
        assert found is not None
        given_up = given_up or found.status is RegionStatus.DOWN

    assert given_up
    (still,) = world.regions[ELSEWHERE].ports.graph.instances.read([before.id])
    assert still is not None
    assert still.fenced is None, "the leader is not taken for dead"


def state(world: FaultyWorld, run: Run) -> RunState:
    (found,) = world.regions[ELSEWHERE].ports.graph.runs.read([run.id])
    assert found is not None
    return found.state
