"""A holder that does not answer a stop keeps nothing for ever; what it may have done is known."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from region_scheduler.domain.instance import FenceKind
from region_scheduler.domain.lease import LOCAL_TIMINGS
from region_scheduler.domain.run import Run, Zone
from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.domain.step import StopWish
from region_scheduler.domain.task import OnLoss, Task, TaskSpec, Verdict
from region_scheduler.errors import Fenced
from region_scheduler.simulation.world import World
from tests.simulation.acts import admit, effects, home, resumed, state_of, task_of
from tests.simulation.cancels import cancelled, until_over, zone_in
from tests.simulation.scenarios import HOME, ZONE, a_plan, graph_of, spec

TIMINGS = replace(LOCAL_TIMINGS, stop_grace_s=2.0)
STATE = "acme/prod/network@eu-west"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, (HOME, "us-east"), timings=TIMINGS)


def a_step(name: str = "a") -> TaskSpec:
    return spec(name, on_loss=OnLoss.INSPECT, state_key=STATE)


def zone_now(world: World) -> Zone:
    (found,) = graph_of(world).zones.read([ZONE])
    assert found is not None
    return found


Seen = list[tuple[float, Task]]


def deaf(
    world: World, run: Run, act: Callable[[], object], seconds: float, seen: Seen
) -> Callable[[StopWish], None]:
    """Return a step that somebody wants stopped, and that goes on for `seconds` all the same."""

    def during(_: StopWish) -> None:
        act()
        step = world.timings.watch_every_s
        for _looks in range(round(seconds / step)):
            world.clock.advance(step)
            for region in world.regions.values():
                region.services.keeper.renew()
                region.services.resource_manager.tick()
                region.services.reconciler.tick()
                for worker in region.workers:
                    with suppress(Fenced):
                        worker.keeper.renew()
            seen.append((world.clock.seconds, task_of(world, run, "a")))

    return during


def test_a_cancelled_run_ends_though_the_holder_of_a_task_does_not_answer(world: World) -> None:
    zone_in(world)
    run = admit(world, a_plan([a_step()], zone=ZONE))
    asked_at = world.clock.seconds
    bound = TIMINGS.unanswered_s + 2 * TIMINGS.watch_every_s + TIMINGS.lease_s + 2
    seen: Seen = []
    world.log.during["a"] = deaf(world, run, lambda: cancelled(world, run), bound, seen)
    world.fast_path()

    moved = [at for at, task in seen if task.state is TaskState.CANCELLED]
    kept = [at for at, task in seen if task.state is TaskState.RUNNING]
    # Nobody took the task before a lease had passed since the fence: its deadline is over by then.
    assert kept[-1] - asked_at >= TIMINGS.unanswered_s + TIMINGS.lease_s - TIMINGS.watch_every_s
    assert moved
    assert state_of(world, run) is RunState.CANCELLED
    task = task_of(world, run, "a")
    assert (task.is_inspect, task.holder) == (True, None)
    (fence,) = [one.fenced for one in graph_of(world).instances.fenced()]
    assert fence is not None
    assert fence.kind is FenceKind.UNRESPONSIVE
    assert (zone_now(world).active_run, zone_now(world).doubts) == ("", (STATE,))


def test_one_that_answers_late_is_left_alone(world: World) -> None:
    zone_in(world)
    run = admit(world, a_plan([a_step()], zone=ZONE))
    world.log.during["a"] = deaf(
        world, run, lambda: cancelled(world, run), TIMINGS.unanswered_s - 2, []
    )
    world.fast_path()

    assert graph_of(world).instances.fenced() == []
    assert task_of(world, run, "a").state is TaskState.DONE
    assert zone_now(world).doubts == ()


def left_in_doubt(world: World) -> Run:
    """Return a run that was cancelled while its one task was in doubt."""
    zone_in(world)
    world.log.crashes["a"] = 1
    run = admit(world, a_plan([a_step()], zone=ZONE))
    home(world).services.scheduler.tick()
    region = home(world)
    dead = region.workers[0]
    with suppress(BaseException):
        dead.work()
    cancelled(world, run)
    region.workers.remove(dead)
    over = until_over(world, run)
    assert over.state is RunState.CANCELLED
    region.workers.append(world.worker(region))
    return over


@pytest.mark.parametrize("verdict", [Verdict.NOT_DONE, Verdict.DONE], ids=str)
def test_the_next_run_of_the_zone_looks_first(world: World, verdict: Verdict) -> None:
    left_in_doubt(world)
    assert zone_now(world).doubts == (STATE,)
    world.log.verdict = verdict
    before = len(effects(world))

    following = admit(world, a_plan([a_step("b"), spec("c")], zone=ZONE), "next")
    world.pass_time(6)

    assert [one.name for one in world.log.inspected] == ["b"]
    assert task_of(world, following, "c").is_inspect is False
    assert state_of(world, following) is RunState.DONE
    again = ["b", "c"] if verdict is Verdict.NOT_DONE else ["c"]
    assert sorted(effects(world)[before:]) == again
    assert zone_now(world).doubts == ()
    third = admit(world, a_plan([a_step("d")], zone=ZONE), "third")
    world.pass_time(3)
    assert state_of(world, third) is RunState.DONE
    assert [one.name for one in world.log.inspected] == ["b"], "looked at once"


def test_a_doubt_outlives_a_run_that_never_came_to_it(world: World) -> None:
    left_in_doubt(world)
    world.log.fails["first"] = 99
    plan = a_plan([spec("first"), a_step("b")], "first>b", zone=ZONE)
    failed = admit(world, plan, "next")
    world.pass_time(10)

    assert state_of(world, failed) is RunState.FAILED
    assert zone_now(world).doubts == (STATE,)


def test_the_reconciler_keeps_the_doubt_where_who_ended_the_run_died_before_the_zone(
    world: World,
) -> None:
    run = left_in_doubt(world)
    zone = replace(zone_now(world), active_run=run.id, active_round=run.round, doubts=())
    graph_of(world).zones.write([(zone_now(world), zone)])
    for region in world.regions.values():
        region.services.reconciler.tick()

    assert (zone_now(world).active_run, zone_now(world).doubts) == ("", (STATE,))


def test_a_resume_of_the_run_itself_looks_first_and_settles_the_doubt(world: World) -> None:
    run = left_in_doubt(world)
    resumed(world, run)
    world.pass_time(6)

    assert state_of(world, run) is RunState.DONE
    assert [one.name for one in world.log.inspected] == ["a"]
    assert zone_now(world).doubts == ()
