"""Durations are learned from what tasks took, and count from the next submission on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from region_scheduler.domain.pause import Scope, ScopeKind
from region_scheduler.domain.step import StopWish
from region_scheduler.errors import OutcomeUnknown, Unavailable
from region_scheduler.operations.explain import explain
from region_scheduler.operations.pauses import pause, unpause
from region_scheduler.simulation.faults import Fault, FaultyWorld
from region_scheduler.simulation.steps import Crash
from region_scheduler.simulation.world import World
from tests.simulation.acts import admit, auditor, home, task_of
from tests.simulation.scenarios import HOME, a_plan, graph_of, spec

pytestmark = pytest.mark.usefixtures("judged")


def lasting(world: World, seconds: float) -> Callable[[StopWish], None]:
    def during(_: StopWish) -> None:
        world.clock.advance(seconds)
        world.renew()

    return during


def teach(world: World, seconds: float, times: int = 3) -> None:
    """Let a step that is declared to take a minute take `seconds`."""
    world.log.during["n"] = lasting(world, seconds)
    for _ in range(times):
        plan = a_plan([spec("n", step="network", expected_s=60.0, remaining_s=60.0)])
        admit(world, plan, key=world.chance.new())
        world.fast_path()
    home(world).services.learner.tick()
    world.clock.advance(61)
    world.renew()


def test_the_next_submission_expects_what_the_last_ones_took(world: World) -> None:
    teach(world, 2.0)
    (known,) = graph_of(world).durations.all()
    assert (known.id, dict(known.figures)["simulate:network"].p50_s) == (HOME, 2.0)

    plan = a_plan(
        [spec("n", step="network", expected_s=60.0), spec("m", expected_s=5.0, remaining_s=5.0)],
        "n>m",
    )
    run = admit(world, plan, "next")
    task = task_of(world, run, "n")
    assert (task.spec.expected_s, task.spec.remaining_s) == (2.0, 7.0)
    assert task_of(world, run, "m").spec.expected_s == 5.0
    elsewhere = a_plan([spec("n", "us-east", step="network", expected_s=60.0)])
    assert task_of(world, admit(world, elsewhere, "far"), "n").spec.expected_s == 60.0


def test_the_same_request_is_the_same_run_whatever_was_learned_meanwhile(world: World) -> None:
    plan = a_plan([spec("n", step="network", expected_s=60.0)])
    first = admit(world, plan, "k")
    world.fast_path()
    teach(world, 2.0)

    assert admit(world, plan, "k").id == first.id


def test_explain_tells_both_figures(world: World) -> None:
    teach(world, 2.0, times=3)
    scope = Scope(ScopeKind.REGION, HOME)
    stores = graph_of(world)
    pause(stores, auditor(world), world.clock, scope, "wait")
    here = (HOME,)
    tasks = [spec(f"t{n:02}", step="network", priority=-n, allowed_regions=here) for n in range(12)]
    run = admit(world, a_plan(tasks), "many")
    world.pass_time(2)
    ports = home(world).ports
    held = explain(ports.graph, task_of(world, run, "t11"), world.clock.now(), ports.backlog)
    assert (held.starts_in_s, held.late_in_s) == (None, None)
    unpause(stores, home(world).services.settler, auditor(world), scope)

    told = explain(ports.graph, task_of(world, run, "t11"), world.clock.now(), ports.backlog)
    assert told.starts_in_s == told.late_in_s == 4.0  # two rounds of four slots come before it


def test_an_old_view_and_a_tick_that_comes_twice_teach_nothing_wrong(world: World) -> None:
    teach(world, 2.0)
    before = graph_of(world).durations.all()
    home(world).services.learner.tick()
    assert graph_of(world).durations.all() == before


@pytest.mark.parametrize("kind", ["crash-before", "crash-after", "lost-after", "unavailable"])
@pytest.mark.parametrize("call", ["durations.insert#0", "durations.write#0"])
def test_a_tick_that_breaks_off_is_made_good_by_the_next(
    world: World, kind: str, call: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("faulty")
    faulty = FaultyWorld(directory, (HOME,), Fault.of(f"{call}:{kind}"))
    learner = home(faulty).services.learner
    faulty.log.during["n"] = lasting(faulty, 2.0)
    for key in "abc":
        admit(faulty, a_plan([spec("n", step="network", expected_s=60.0)]), key)
        faulty.fast_path()
    faulty.faults.is_armed = True
    for _ in range(2):
        try:
            learner.tick()
        except (Crash, Unavailable, OutcomeUnknown):
            continue

    assert faulty.faults.has_struck
    (known,) = graph_of(faulty).durations.all()
    assert known.figures["simulate:network"].p50_s == 2.0
