"""Pools: each task by a worker of its own pool, none held back by another's, no queue too long."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.domain.task import TaskSpec
from region_scheduler.scheduling.settings import SchedulerSettings
from region_scheduler.simulation.world import World
from tests.simulation.acts import admit, effects, home, state_of, task_of
from tests.simulation.scenarios import HOME, a_plan, graph_of, spec

SLOTS = 4
BOUND = SLOTS * (1 + SchedulerSettings(region=HOME).look_ahead)


def many(count: int, pool: str) -> list[TaskSpec]:
    return [spec(f"{pool}{n}", pool=pool) for n in range(count)]


def done(world: World, run: Run) -> int:
    return graph_of(world).tasks.state_counts(run.id).get(TaskState.DONE, 0)


def test_each_pool_is_drained_by_its_own_workers(world: World) -> None:
    region = home(world)
    region.workers.append(world.worker(region, ("big",)))
    run = admit(world, a_plan([*many(9, "default"), *many(9, "big")]))

    world.fast_path()

    assert state_of(world, run) is RunState.DONE
    holders: dict[str, str] = {
        worker.keeper.instance.id: worker.pools[0] for worker in region.workers
    }
    for task in graph_of(world).tasks.of_run(run.id):
        started = next(entry for entry in task.history if entry.receipt_id)
        assert holders[started.by] == task.spec.pool


@pytest.mark.parametrize("count", [5, pytest.param(2_500, marks=pytest.mark.slow)])
def test_a_pool_that_no_worker_serves_keeps_no_other_task_back(world: World, count: int) -> None:
    stuck = admit(world, a_plan(many(count, "gpu")), "one")
    world.fast_path()
    free = admit(world, a_plan(many(6, "default")), "two")
    world.fast_path()

    assert state_of(world, free) is RunState.DONE
    assert len(effects(world)) == 6
    assert task_of(world, stuck, "gpu0").state is TaskState.READY

    region = home(world)
    region.workers.append(world.worker(region, ("gpu",)))
    before = -1
    while (now := done(world, stuck)) < count:
        assert now > before, "it goes on as soon as a worker serves the pool"
        before = now
        world.pass_time(1)
    assert state_of(world, stuck) is RunState.DONE


def test_rows_of_a_full_pool_do_not_hide_those_of_another(world: World) -> None:
    region = home(world)
    region.workers.append(world.worker(region, ("big",)))
    first = [spec(f"default{n}", remaining_s=99.0) for n in range(300)]
    admit(world, a_plan([*first, *many(3, "big")]))

    region.services.scheduler.tick()

    assert region.broker.length("big") == 3
    assert region.broker.length("default") == BOUND


def test_no_queue_is_ever_longer_than_its_workers_slots_and_the_look_ahead(tmp_path: Path) -> None:
    """However often it ticks, and however often what nobody took is dispatched again."""
    lengths: list[int] = []

    def measure(point: str, call: partial[Any]) -> Any:
        answer = call()
        if point == "queue.publish":
            lengths.append(home(world).broker.length("default"))
        return answer

    world = World(tmp_path, (HOME,), hook=measure)
    run = admit(world, a_plan(many(300, "default")))
    for _ in range(5):
        home(world).services.scheduler.tick()
    patience = round(5 * world.timings.dispatch_s / world.timings.renew_every_s)
    for _ in range(patience):  # nobody works meanwhile: every dispatch times out again and again
        world.clock.advance(world.timings.renew_every_s)
        world.renew()
        world.slow_path()
    history = [e for t in graph_of(world).tasks.of_run(run.id) for e in t.history]
    assert any(e.detail == "dispatch timed out" for e in history)

    world.pass_time(60)

    assert state_of(world, run) is RunState.DONE
    assert max(lengths) == BOUND
    assert len(effects(world)) == 300


def test_the_length_that_a_tick_tells_is_the_queues_and_never_above_its_bound(
    world: World,
) -> None:
    """The figure for a metric: what waits in each pool's queue, beside what may."""
    region = home(world)
    region.workers.append(world.worker(region, ("big",)))
    admit(world, a_plan([*many(20, "default"), *many(20, "big")]))
    lengths = []
    for _ in range(18):
        told = region.services.scheduler.tick().queues
        assert {pool: queue.most for pool, queue in told.items()} == {
            "big": BOUND,
            "default": BOUND,
        }
        for pool, queue in told.items():
            assert queue.length == region.broker.length(pool) <= queue.most
        lengths.append(told["default"].length)
        for worker in region.workers:
            worker.work()
        region.services.scheduler.notice()

    assert max(lengths) == BOUND
    assert min(lengths) < BOUND
