"""A run that takes longer than its deadline is cancelled, and says why."""

from __future__ import annotations

import pytest

from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.simulation.world import World
from tests.simulation.acts import admit, effects, resumed, state_of, task_of
from tests.simulation.scenarios import a_plan, graph_of, spec

pytestmark = pytest.mark.usefixtures("judged")


def test_what_has_not_run_when_the_time_is_over_is_cancelled_with_the_reason(world: World) -> None:
    tasks = [spec("a"), spec("ask", runner="approval"), spec("b")]
    run = admit(world, a_plan(tasks, "a>ask", "ask>b", deadline_s=20.0))
    world.pass_time(15)
    assert state_of(world, run) is RunState.RUNNING

    world.pass_time(15)

    (found,) = graph_of(world).runs.read([run.id])
    assert found is not None
    assert (found.state, found.reason) == (RunState.CANCELLED, "its deadline of 20 s is over")
    states = [task_of(world, run, name).state for name in ("a", "ask", "b")]
    assert states == [TaskState.DONE, TaskState.CANCELLED, TaskState.CANCELLED]
    assert effects(world) == ["a"]


def test_a_run_that_ends_in_time_and_the_jumps_of_wall_clocks_do_not_matter(world: World) -> None:
    tasks = [spec("a"), spec("ask", runner="approval")]
    run = admit(world, a_plan(tasks, "a>ask", deadline_s=20.0))
    quick = admit(world, a_plan([spec("q")], deadline_s=5.0), "quick")
    world.pass_time(5)
    for clock in world.clocks.values():
        clock.ahead_s = 3 * 3600
    world.pass_time(10)

    assert state_of(world, run) is RunState.RUNNING
    assert state_of(world, quick) is RunState.DONE
    world.pass_time(15)
    assert state_of(world, quick) is RunState.DONE
    assert state_of(world, run) is RunState.CANCELLED


def test_a_resumed_run_has_its_whole_time_again(world: World) -> None:
    world.log.fails["bad"] = 99
    run = admit(world, a_plan([spec("bad"), spec("ask", runner="approval")], deadline_s=20.0))
    world.pass_time(30)
    assert state_of(world, run) is RunState.CANCELLED

    resumed(world, run)
    world.pass_time(15)
    assert state_of(world, run) is RunState.RUNNING
    world.pass_time(20)
    assert state_of(world, run) is RunState.CANCELLED
