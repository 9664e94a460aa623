"""The handed cases about brokers, redelivery and dispatch, each named by its id.

"Body starts" are the world's own log of effects. Others of this subject on real processes: LST-008
and STK-026 in `tests/integration/local/test_again.py`, LST-002 and LST-015 in
`test_broker_wiped.py` beside it, FAI-006 in `tests/integration/celery/test_worker.py`.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.cancel import cancel
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.domain.task import EventKind, LockNeed
from region_scheduler.domain.transitions import lose, start
from region_scheduler.ports.queue import AttemptMessage
from region_scheduler.simulation.steps import Crash
from region_scheduler.simulation.world import World
from tests.simulation.acts import admit, effects, home, state_of, task_of
from tests.simulation.scenarios import HOME, LOCK, REGIONS, a_plan, graph_of, spec
from tests.unit.domain.samples import AT, STAMP, WORKER


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, REGIONS)


def dispatched(world: World, *tasks: Any) -> tuple[Run, list[AttemptMessage]]:
    run = admit(world, a_plan(tasks or [spec("a")]))
    home(world).services.scheduler.tick()
    world.woken.clear()
    messages: list[AttemptMessage] = []
    while (message := home(world).broker.take()) is not None:
        messages.append(message)
    return run, messages


def test_dbl_001_a_repair_that_finds_a_taken_task_starts_it_no_second_time(world: World) -> None:
    run, (message,) = dispatched(world)
    world.pass_time(5)  # the worker is paused; the repair runs, and has nothing to do yet
    assert task_of(world, run, "a").token == message.token
    assert effects(world) == []
    world.pass_time(world.timings.dispatch_s - 2)
    assert effects(world) == ["a"]
    assert task_of(world, run, "a").token.number > message.token.number

    home(world).workers[0].handler.handle(message)

    assert effects(world) == ["a"]
    assert task_of(world, run, "a").attempt == 1


def test_dbl_012_a_message_handed_out_again_while_its_first_copy_runs_is_dropped(
    world: World,
) -> None:
    run, (message,) = dispatched(world)
    other = world.worker(home(world))
    world.log.during["a"] = lambda _: other.handler.handle(message)

    home(world).workers[0].handler.handle(message)

    assert effects(world) == ["a"]
    assert state_of(world, run) is RunState.DONE


def test_dbl_027_tasks_that_wait_unstarted_behind_others_start_once_each(world: World) -> None:
    run, messages = dispatched(world, *(spec(f"t{n}") for n in range(5)))
    (worker,) = home(world).workers

    for message in messages:
        worker.handler.handle(message)
        home(world).broker.return_unacknowledged()  # its window has passed: all come again
        world.fast_path()

    tasks = graph_of(world).tasks.of_run(run.id)
    assert Counter(effects(world)) == {f"t{n}": 1 for n in range(5)}
    assert {task.attempt for task in tasks} == {1}


def test_dbl_031_a_completion_after_another_end_changes_nothing_and_harms_nobody(
    world: World,
) -> None:
    run, (message,) = dispatched(world)

    def cancelled_meanwhile(_: object) -> None:
        task = task_of(world, run, "a")
        for decide in (
            partial(cancel, reason="alice", stamp=STAMP),
            partial(
                lose,
                token=task.token,
                holder=task.holder,
                reason="holder lost its lease",
                stamp=STAMP,
            ),
        ):
            commit_one(graph_of(world).tasks, Change(task.id, decide))

    world.log.during["a"] = cancelled_meanwhile
    home(world).workers[0].handler.handle(message)
    world.pass_time(2)

    task = task_of(world, run, "a")
    assert task.state is TaskState.CANCELLED
    assert effects(world) == ["a"]
    assert task.retries_used == 0


def test_lst_002_what_a_dead_scheduler_had_pushed_to_a_wiped_broker_runs(world: World) -> None:
    run, messages = dispatched(world, spec("a"), spec("b"), spec("c"))
    assert len(messages) == 3

    home(world).broker.lose_all()
    world.restart(home(world))
    world.pass_time(world.timings.dispatch_s + world.timings.lease_s + 3)

    assert state_of(world, run) is RunState.DONE
    assert Counter(effects(world)) == {"a": 1, "b": 1, "c": 1}


def test_lst_007_messages_that_are_handed_back_again_and_again_are_not_lost(world: World) -> None:
    """Three workers take and hand back at random for ten seconds; then they accept."""
    chance, broker = Random(7), home(world).broker
    run = admit(world, a_plan([spec(f"t{n}") for n in range(12)]))
    for _ in range(20):
        world.clock.advance(0.5)
        world.renew()
        home(world).services.scheduler.tick()
        home(world).services.resource_manager.tick()
        in_hand = 0
        for _ in range(3 * chance.randrange(4)):
            in_hand += broker.take() is not None
            if chance.random() < 0.5:
                broker.return_unacknowledged()
                in_hand = 0
        claimed = graph_of(world).tasks.of_run(run.id, [TaskState.CLAIMED])
        assert broker.length("default") + in_hand >= len(claimed), "each has a live message"
    broker.return_unacknowledged()
    world.fast_path()
    world.pass_time(world.timings.dispatch_s + world.timings.reconcile_every_s + 1)

    assert state_of(world, run) is RunState.DONE
    assert Counter(effects(world)) == {f"t{n}": 1 for n in range(12)}


@pytest.mark.parametrize("point", ["tasks.write", "slots.write", "queue.publish", "backlog.remove"])
@pytest.mark.parametrize("is_after", [False, True])
def test_lst_012_a_scheduler_that_dies_between_claim_and_dispatch_loses_nothing(
    tmp_path: Path, point: str, is_after: bool
) -> None:
    armed: list[str] = []

    def die(at: str, call: partial[Any]) -> Any:
        if armed and at == point:
            armed.clear()
            if is_after:
                call()
            raise Crash(at)
        return call()

    world = World(tmp_path, (HOME,), hook=die)
    run = admit(world, a_plan([spec("a", locks=(LockNeed(LOCK),))]))
    armed.append(point)
    with pytest.raises(Crash):
        home(world).services.scheduler.tick()
    world.restart(home(world))

    world.pass_time(world.timings.dispatch_s + world.timings.lease_s + 3)

    assert state_of(world, run) is RunState.DONE
    assert effects(world) == ["a"]
    assert graph_of(world).slots.taken() == []


def test_lst_018_only_a_completion_with_the_current_token_makes_a_success(world: World) -> None:
    run, (message,) = dispatched(world)
    begin = partial(start, token=message.token, holder=WORKER, at=AT)
    commit_one(graph_of(world).tasks, Change(message.task, begin))

    world.pass_time(world.timings.lease_s + 3)  # message and worker are gone

    kinds = [(e.kind, e.state) for e in task_of(world, run, "a").history]
    lost = kinds.index((EventKind.LOST, TaskState.READY))
    assert (EventKind.ENDED, TaskState.DONE) not in kinds[:lost]
    assert effects(world) == ["a"], "it was run for real before it was done"


def test_lst_019_a_task_cancelled_in_a_workers_hands_never_starts(world: World) -> None:
    run, messages = dispatched(world, spec("a"), spec("b"))
    second = task_of(world, run, "b")
    drop = partial(cancel, reason="alice", stamp=STAMP)
    commit_one(graph_of(world).tasks, Change(second.id, drop))

    for message in messages:
        home(world).workers[0].handler.handle(message)
    world.pass_time(2)

    assert effects(world) == ["a"]


def test_stk_012_a_lost_dispatch_is_mended_whatever_the_runs_own_time_out(world: World) -> None:
    run, _ = dispatched(world, spec("a", cap_s=10 * 86_400.0))

    world.pass_time(world.timings.dispatch_s + 3 * world.timings.reconcile_every_s)

    assert state_of(world, run) is RunState.DONE


def test_stk_015_a_completion_before_the_dispatch_is_known_stands(tmp_path: Path) -> None:
    """The worker is done before the scheduler hears that its publish was taken."""

    def work_first(point: str, call: partial[Any]) -> Any:
        answer = call()
        if point == "queue.publish":
            home(own).workers[0].work()
        return answer

    own: World = World(tmp_path, (HOME,), hook=work_first)
    run = admit(own, a_plan([spec("a")]))
    home(own).services.scheduler.tick()

    assert task_of(own, run, "a").state is TaskState.DONE
    own.pass_time(own.timings.dispatch_s + 3)
    assert effects(own) == ["a"]
    assert state_of(own, run) is RunState.DONE
