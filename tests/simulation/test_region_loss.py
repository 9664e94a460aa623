"""A region is lost: what it had goes where residency allows, waits if it may not, runs once."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.ids import ReceiptId
from region_scheduler.domain.region import Region, RegionStatus, cordoned, evacuating, failed
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.domain.task import EventKind, Holder, Task
from region_scheduler.domain.transitions import start
from region_scheduler.operations.explain import explain
from region_scheduler.simulation.world import World
from tests.simulation.acts import admit, effects, home, state_of, task_of
from tests.simulation.scenarios import HOME, REGIONS, a_plan, graph_of, spec

ELSEWHERE = "us-east"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, REGIONS, slots=8)


def region_of(world: World, name: str = HOME) -> Region:
    (found,) = graph_of(world).regions.read([name])
    assert found is not None
    return found


def pass_until_done(world: World, run: Run, within_s: float) -> float:
    waited_s = 0.0
    while state_of(world, run) is not RunState.DONE:
        assert waited_s < within_s, [
            (task.spec.name, task.state, task.region)
            for task in graph_of(world).tasks.of_run(run.id)
        ]
        world.pass_time(1)
        waited_s += 1
    return waited_s


def set_running(world: World, task: Task) -> Task:
    """Let the worker of the home region have started the task; its step goes on."""
    (worker,) = home(world).workers
    holder = Holder(worker.keeper.instance.id, ReceiptId(f"r-{task.spec.name}"))
    worker.receipts.enter(holder.receipt_id)
    begin = partial(start, token=task.token, holder=holder, at=world.clock.now())
    return commit_one(graph_of(world).tasks, Change(task.id, begin, known=task))


def lose_with_everything_under_way(world: World) -> Run:
    """Admit a run of 20 tasks, half of them started, half of them behind those; lose its region."""
    tasks = [spec(f"a{n}") for n in range(10)] + [spec(f"b{n}") for n in range(10)]
    run = admit(world, a_plan(tasks, *(f"a{n}>b{n}" for n in range(10))))
    home(world).services.scheduler.tick()
    for n in range(5):
        set_running(world, task_of(world, run, f"a{n}"))
    states = Counter(task.state for task in graph_of(world).tasks.of_run(run.id))
    assert states == {TaskState.RUNNING: 5, TaskState.CLAIMED: 5, TaskState.PENDING: 10}
    world.lose_region(HOME)
    return run


def test_a_lost_region_is_found_and_all_its_work_is_done_once_elsewhere(world: World) -> None:
    run = lose_with_everything_under_way(world)
    epoch = region_of(world).epoch

    lease_s = world.timings.lease_s
    while region_of(world).status is not RegionStatus.DOWN:
        world.pass_time(1)
    while not effects(world):
        world.pass_time(1)
    assert world.clock.monotonic() - 1000.0 <= 2 * lease_s, (
        "the first claim comes within two leases"
    )
    pass_until_done(world, run, 2 * lease_s)

    assert sorted(effects(world)) == sorted(f"{c}{n}" for c in "ab" for n in range(10))
    assert region_of(world).epoch == epoch + 1
    tasks = graph_of(world).tasks.of_run(run.id)
    assert {task.region for task in tasks} <= {ELSEWHERE, "ap-south"}
    assert len({task.region for task in tasks}) == 2, "it is spread over those that have room"
    for task in tasks:
        moves = [entry for entry in task.history if entry.kind is EventKind.MOVED]
        assert [entry.detail for entry in moves] == [f"from {HOME}"]


def test_nothing_of_a_lost_region_moves_before_its_leases_have_run_out(world: World) -> None:
    run = lose_with_everything_under_way(world)

    world.pass_time(world.timings.lease_s - 1)

    assert region_of(world).status is RegionStatus.ACTIVE
    assert {task.region for task in graph_of(world).tasks.of_run(run.id)} == {HOME}
    assert effects(world) == []


def test_what_residency_forbids_elsewhere_waits_and_goes_on_when_its_region_is_back(
    world: World,
) -> None:
    run = admit(world, a_plan([spec("eu", allowed_regions=(HOME,)), spec("any")]))
    world.lose_region(HOME)

    world.pass_time(4 * world.timings.lease_s)
    assert effects(world) == ["any"]
    stuck = task_of(world, run, "eu")
    assert stuck.region == HOME
    told = explain(graph_of(world), stuck, world.clock.now())
    assert [reason.kind for reason in told.reasons][:2] == ["region", "waiting-for-region"]
    assert told.starts_in_s is None
    assert state_of(world, run) is RunState.RUNNING

    world.regain_region(HOME)
    pass_until_done(world, run, 3 * world.timings.lease_s)
    assert effects(world) == ["any", "eu"]
    assert region_of(world).status is RegionStatus.ACTIVE


def test_a_region_returns_in_a_new_epoch_and_what_was_moved_stays_moved(world: World) -> None:
    run = admit(world, a_plan([spec("a"), spec("b")], "a>b"))
    world.lose_region(HOME)
    while region_of(world).status is not RegionStatus.DOWN:
        world.pass_time(1)
    world.pass_time(1)
    moved = {task.spec.name: task.region for task in graph_of(world).tasks.of_run(run.id)}
    down_at = world.clock.monotonic()

    world.regain_region(HOME)
    while region_of(world).status is RegionStatus.DOWN:
        world.pass_time(1)

    assert HOME not in moved.values()
    assert world.clock.monotonic() - down_at >= world.timings.lease_s, "it has held its lease first"
    assert region_of(world).epoch == 3
    assert {t.spec.name: t.region for t in graph_of(world).tasks.of_run(run.id)} == moved


def test_what_an_operator_gave_up_waits_for_an_operator(world: World) -> None:
    commit_one(
        graph_of(world).regions, Change(HOME, partial(failed, reason="fire", by="operator:anna"))
    )
    run = admit(world, a_plan([spec("a")]))

    world.pass_time(4 * world.timings.lease_s)

    assert effects(world) == ["a"]
    assert task_of(world, run, "a").region != HOME
    assert region_of(world).status is RegionStatus.DOWN


def test_a_cordoned_region_keeps_its_tasks_and_starts_none(world: World) -> None:
    run = admit(world, a_plan([spec("a")]))
    commit_one(graph_of(world).regions, Change(HOME, partial(cordoned, reason="patch", by="anna")))

    world.pass_time(2 * world.timings.lease_s)

    assert effects(world) == []
    assert task_of(world, run, "a").region == HOME


def test_an_evacuation_moves_what_nobody_holds_and_at_its_rate(world: World) -> None:
    run = admit(world, a_plan([spec(f"t{n}") for n in range(12)]))
    running = task_of(world, run, "t0")
    evacuate = partial(evacuating, moves_per_s=2.0, reason="patch", by="operator:anna")
    commit_one(graph_of(world).regions, Change(HOME, evacuate))

    world.pass_time(3)
    moved = [t for t in graph_of(world).tasks.of_run(run.id) if t.region != HOME]
    assert 0 < len(moved) <= 6

    pass_until_done(world, run, 12)
    assert len(effects(world)) == 12
    assert all(task.region != HOME for task in graph_of(world).tasks.of_run(run.id))
    assert running.region == HOME
    assert region_of(world).status is RegionStatus.DRAINING


def test_a_pool_that_no_other_region_serves_waits(world: World) -> None:
    run = admit(world, a_plan([spec("a", pool="gpu")]))
    world.lose_region(HOME)

    world.pass_time(3 * world.timings.lease_s)

    assert region_of(world).status is RegionStatus.DOWN
    assert task_of(world, run, "a").region == HOME
