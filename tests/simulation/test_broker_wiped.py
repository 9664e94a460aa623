"""The broker loses all that it had: what was dispatched is dispatched again, and runs once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.simulation.world import World
from tests.simulation.acts import admit, effects, home, state_of, task_of
from tests.simulation.scenarios import HOME, a_plan, graph_of, spec

pytestmark = pytest.mark.usefixtures("judged")


@pytest.mark.parametrize("count", [60, pytest.param(1_000, marks=pytest.mark.slow)])
def test_all_that_was_dispatched_runs_and_nothing_twice(tmp_path: Path, count: int) -> None:
    """Cases LST-002 and LST-015: all is done, none twice, at the cost of a dispatch time-out."""
    world = World(tmp_path, (HOME,), slots=count)
    run = admit(world, a_plan([spec(f"t{n}") for n in range(count)]))
    while home(world).broker.length("default") < count:
        assert home(world).services.scheduler.tick().dispatched
    world.woken.clear()

    home(world).broker.lose_all()
    world.restart(home(world))  # and whoever had dispatched it is gone as well

    waited_s = 0.0
    while state_of(world, run) is not RunState.DONE:
        world.pass_time(1)
        waited_s += 1
        assert waited_s <= world.timings.dispatch_s + world.timings.lease_s + 3
    assert Counter(effects(world)).most_common(1)[0][1] == 1
    assert len(effects(world)) == count
    tasks = graph_of(world).tasks.of_run(run.id)
    assert {(task.attempt, task.retries_used, task.losses) for task in tasks} == {(1, 0, 0)}


def test_a_message_taken_before_the_loss_still_runs_and_no_copy_of_it_does(world: World) -> None:
    run = admit(world, a_plan([spec("a"), spec("b")]))
    home(world).services.scheduler.tick()
    (worker,) = home(world).workers
    taken = home(world).broker.take()
    assert taken is not None

    home(world).broker.lose_all()
    worker.handler.handle(taken)
    world.pass_time(world.timings.dispatch_s + 3)

    assert state_of(world, run) is RunState.DONE
    assert sorted(effects(world)) == ["a", "b"]


def test_a_broker_that_takes_nothing_costs_no_retry_and_no_attempt(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(type(home(world).broker), "publish", lambda _, sent: [False] * len(sent))
        run = admit(world, a_plan([spec("a")]))
        world.pass_time(2)
        task = task_of(world, run, "a")
        assert (task.state, task.reason) == (TaskState.READY, "the broker took no message")

    world.pass_time(2)

    task = task_of(world, run, "a")
    assert (task.state, task.attempt, task.retries_used) == (TaskState.DONE, 1, 0)
