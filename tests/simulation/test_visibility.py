"""The queue manager's contract, a test for each row of the table in docs/queues.md."""

from __future__ import annotations

from functools import partial

from region_scheduler.assembly.services import lease_keeper, region_services
from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.ends import why_failed
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.domain.task import EventKind, RetryPolicy
from region_scheduler.domain.transitions import start
from region_scheduler.ports.queue import AttemptMessage
from region_scheduler.scheduling.scheduler import Scheduler
from region_scheduler.scheduling.settings import SchedulerSettings
from region_scheduler.simulation.world import World
from tests.simulation.acts import admit, effects, home, state_of, task_of
from tests.simulation.scenarios import HOME, a_plan, graph_of, spec
from tests.unit.domain.samples import AT, WORKER

DEFAULTS = RetryPolicy()
ALMOST_S = DEFAULTS.delay_s - 3


def received(world: World) -> tuple[Run, AttemptMessage]:
    """Submit one task and take its message, as a worker would."""
    run = admit(world, a_plan([spec("a", retry=DEFAULTS)]))
    home(world).services.scheduler.tick()
    message = home(world).broker.take()
    assert message is not None
    return run, message


def rival(world: World) -> Scheduler:
    """Return a second scheduler of the home region."""
    region = home(world)
    instance = region.services.keeper.instance
    other = type(instance)(
        id=type(instance.id)("serve.rival:1"),
        roles=instance.roles,
        region=HOME,
        ttl_s=instance.ttl_s,
        stamped_at=AT,
    )
    keeper = lease_keeper(region.ports, other, world.timings)
    keeper.register()
    settings = SchedulerSettings(region=HOME)
    return region_services(region.ports, settings, world.timings, keeper).scheduler


def test_what_was_received_is_invisible_to_others(world: World) -> None:
    run, message = received(world)

    assert rival(world).tick().dispatched == ()
    assert home(world).services.scheduler.tick().dispatched == ()
    assert home(world).broker.take() is None
    assert task_of(world, run, "a").token == message.token


def test_success_removes_it(world: World) -> None:
    run, message = received(world)
    (worker,) = home(world).workers

    worker.handler.handle(message)
    worker.handler.handle(message)  # and what is delivered again finds nothing to do

    assert state_of(world, run) is RunState.DONE
    assert effects(world) == ["a"]
    assert home(world).ports.backlog.depth() == 0
    assert home(world).broker.length("default") == 0


def test_a_failure_shows_it_again_after_thirty_seconds_and_three_times(world: World) -> None:
    world.log.fails["a"] = 99
    run = admit(world, a_plan([spec("a", retry=DEFAULTS)]))
    world.fast_path()

    for count in range(1, DEFAULTS.limit + 1):
        assert len(effects(world)) == count
        world.pass_time(ALMOST_S)
        assert len(effects(world)) == count, "not before its pause is over"
        world.pass_time(4)
    assert len(effects(world)) == 1 + DEFAULTS.limit
    assert state_of(world, run) is RunState.FAILED


def test_after_the_last_retry_it_is_a_dead_letter_with_its_reason(world: World) -> None:
    world.log.fails["a"] = 2
    run = admit(world, a_plan([spec("a", retry=RetryPolicy(limit=1, delay_s=1.0)), spec("b")]))
    world.pass_time(4)

    (dead,) = graph_of(world).tasks.failed(HOME, 9)
    assert dead.id == task_of(world, run, "a").id
    assert why_failed(dead) == "2 attempts failed, the last retryable: told to fail"


def test_a_lost_lease_shows_it_again(world: World) -> None:
    run, message = received(world)
    begin = partial(start, token=message.token, holder=WORKER, at=AT)
    commit_one(graph_of(world).tasks, Change(message.task, begin))

    world.pass_time(world.timings.lease_s - 1)
    assert task_of(world, run, "a").state is TaskState.RUNNING
    world.pass_time(4)

    task = task_of(world, run, "a")
    assert (task.state, task.losses, task.retries_used) == (TaskState.DONE, 1, 0)


def test_a_task_whose_holders_are_always_lost_is_a_dead_letter(world: World) -> None:
    """Case STK-016: a step that kills its process does not go round for ever."""
    limits = RetryPolicy(losses_limit=2)
    run = admit(world, a_plan([spec("a", retry=limits), spec("b")]))
    for _ in range(3):
        home(world).services.scheduler.tick()
        while (message := home(world).broker.take()) is not None:
            if message.task == task_of(world, run, "a").id:
                begin = partial(start, token=message.token, holder=WORKER, at=AT)
                commit_one(graph_of(world).tasks, Change(message.task, begin))
            else:
                home(world).workers[0].handler.handle(message)
        while task_of(world, run, "a").state is TaskState.RUNNING:
            world.clock.advance(1)
            world.renew()
            home(world).services.resource_manager.tick()

    task = task_of(world, run, "a")
    assert (task.state, task.attempt) == (TaskState.FAILED, 3)
    assert why_failed(task).startswith("its holder was lost 3 times")
    assert effects(world) == ["b"]


def test_a_lost_message_shows_it_again_and_costs_nothing(world: World) -> None:
    run, _ = received(world)

    world.pass_time(world.timings.dispatch_s + 3)

    task = task_of(world, run, "a")
    assert (task.state, task.attempt, task.retries_used) == (TaskState.DONE, 1, 0)
    assert "dispatch timed out" in [e.detail for e in task.history]


def test_a_worker_that_may_not_begin_gives_it_back_and_costs_nothing(world: World) -> None:
    run, message = received(world)
    (worker,) = home(world).workers
    world.clock.advance(world.timings.ttl_s - world.timings.stop_s)

    worker.handler.handle(message)

    task = task_of(world, run, "a")
    assert (task.state, task.attempt, task.retries_used) == (TaskState.READY, 0, 0)
    assert task.history[-1].kind is EventKind.REQUEUED
