"""One worker's attempt when the store stutters, the lease ends, or somebody wants it to stop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.cancel import cancel
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import TaskState
from region_scheduler.domain.step import StopWish
from region_scheduler.domain.task import EventKind, Exit, ExitKind, OnLoss, Task
from region_scheduler.domain.transitions import Stamp, lose
from region_scheduler.errors import Unavailable
from region_scheduler.simulation.world import SimulatedRegion, SimulatedWorker, World
from tests.simulation.scenarios import HOME, a_plan, spec

pytestmark = pytest.mark.usefixtures("judged")


class Outage:
    """Refuses a number of calls of one point."""

    def __init__(self) -> None:
        self.point = ""
        self.calls_left = 0

    def begin(self, point: str, calls: int) -> None:
        self.point, self.calls_left = point, calls

    def __call__(self, point: str, call: Callable[[], Any]) -> Any:
        if point == self.point and self.calls_left > 0:
            self.calls_left -= 1
            raise Unavailable(dependency="graph store", detail="cut")
        return call()


@pytest.fixture
def outage() -> Outage:
    return Outage()


@pytest.fixture
def world(tmp_path: Path, outage: Outage) -> World:
    return World(tmp_path, (HOME,), hook=outage)


def home(world: World) -> SimulatedRegion:
    return world.regions[HOME]


def worker(world: World) -> SimulatedWorker:
    return home(world).workers[0]


def dispatched(world: World, on_loss: OnLoss = OnLoss.RETRY) -> Run:
    """Admit one task and promote it; its message waits in the queue."""
    run = home(world).services.intake.admit(a_plan([spec("a", on_loss=on_loss)]), "key").run
    home(world).services.scheduler.tick()
    return run


def task(world: World, run: Run) -> Task:
    found = home(world).ports.graph.tasks.named(run.id, "a")
    assert found is not None
    return found


def obeys(world: World, should_stop: StopWish) -> Exit:
    """Run until somebody wants the step to stop, for ten seconds at the most."""
    for _ in range(100):
        if reason := should_stop():
            return Exit(kind=ExitKind.CANCELLED, message=f"stopped: {reason}")
        world.clock.advance(0.1)
        worker(world).keeper.renew()
    return Exit(kind=ExitKind.OK, message="nobody wanted it to stop")


def test_a_completion_is_repeated_until_the_store_answers(world: World, outage: Outage) -> None:
    run = dispatched(world)
    world.log.during["a"] = lambda _: outage.begin("tasks.write", 3)

    worker(world).work()

    assert outage.calls_left == 0
    assert task(world, run).state is TaskState.DONE
    assert len(world.log.effects) == 1


def test_a_completion_that_is_never_answered_ends_with_the_lease(
    world: World, outage: Outage
) -> None:
    run = dispatched(world)
    world.log.during["a"] = lambda _: outage.begin("tasks.write", 1_000_000)

    with pytest.raises(Unavailable):
        worker(world).work()

    outage.begin("", 0)
    assert world.clock.monotonic() >= worker(world).keeper.deadline - world.timings.stop_s
    assert task(world, run).state is TaskState.RUNNING


def test_a_step_does_not_begin_while_its_inputs_cannot_be_read(
    world: World, outage: Outage
) -> None:
    run = dispatched(world)
    outage.begin("tasks.outputs_before", 1_000_000)

    worker(world).work()

    found = task(world, run)
    assert found.state is TaskState.READY
    assert (found.losses, found.retries_used) == (0, 0)
    assert world.log.effects == []


@pytest.mark.parametrize(
    ("on_loss", "state"),
    [
        (OnLoss.RETRY, TaskState.READY),
        (OnLoss.INSPECT, TaskState.IN_DOUBT),
        (OnLoss.HOLD, TaskState.IN_DOUBT),
    ],
)
def test_a_step_stopped_because_its_worker_ends_goes_back(
    world: World, on_loss: OnLoss, state: TaskState
) -> None:
    run = dispatched(world, on_loss)
    world.log.during["a"] = partial(obeys, world)
    worker(world).ending.set()

    worker(world).work()

    found = task(world, run)
    assert found.state is state
    assert (found.losses, found.retries_used) == (0, 0)
    assert found.holder is None


def test_a_cancelled_running_task_is_stopped_by_its_holder_and_ends_cancelled(
    world: World,
) -> None:
    run = dispatched(world)
    tasks = home(world).ports.graph.tasks

    def cancelled_meanwhile(should_stop: StopWish) -> Exit:
        stamp = Stamp("alice", world.clock.now())
        want = partial(cancel, reason="not needed any more", stamp=stamp)
        commit_one(tasks, Change(task(world, run).id, want))
        return obeys(world, should_stop)

    world.log.during["a"] = cancelled_meanwhile
    worker(world).work()

    assert task(world, run).state is TaskState.CANCELLED


def test_a_step_whose_token_has_moved_is_stopped_and_its_end_counts_for_nothing(
    world: World,
) -> None:
    run = dispatched(world)
    tasks = home(world).ports.graph.tasks

    def taken_away(should_stop: StopWish) -> Exit:
        found = task(world, run)
        stamp = Stamp("an observer", world.clock.now())
        by_an_observer = partial(
            lose, token=found.token, holder=found.holder, reason="lease over", stamp=stamp
        )
        commit_one(tasks, Change(found.id, by_an_observer))
        ended = obeys(world, should_stop)
        assert ended.kind is ExitKind.CANCELLED
        return Exit(kind=ExitKind.OK, message="it says that it finished all the same")

    world.log.during["a"] = taken_away
    worker(world).work()

    found = task(world, run)
    assert found.state is TaskState.READY  # as the observer left it; nobody completed it
    assert all(entry.kind is not EventKind.ENDED for entry in found.history)
    assert worker(world).refused == [found.id]
