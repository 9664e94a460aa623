"""When a scheduler looks into the graph for ready tasks, and that none is forgotten meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.assembly.in_process import in_process_graph
from region_scheduler.assembly.services import region_services
from region_scheduler.domain.lease import LOCAL_TIMINGS
from region_scheduler.domain.ownership import Ownership
from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.domain.task import LockNeed
from region_scheduler.embedded.arango.control import FaultControl
from region_scheduler.errors import Unavailable
from region_scheduler.scheduling.scheduler import Scheduler
from region_scheduler.scheduling.settings import SchedulerSettings
from region_scheduler.simulation.world import World
from tests.simulation.acts import admit, effects, home, state_of
from tests.simulation.scenarios import DIAMOND, HOME, LOCK, a_plan, graph_of, spec

EVERY_S = LOCAL_TIMINGS.reconcile_every_s
HOURLY = replace(LOCAL_TIMINGS, reconcile_every_s=3600.0)
ROOM = 8  # four slots of the worker, and as many that wait in its queue


class Looks:
    """A hook that counts a scheduler's looks into the graph and its reads, and lets some fail."""

    def __init__(self) -> None:
        self.count = 0
        self.reads = 0
        self.failing = 0
        self.forgetful = False
        self.takes: Callable[[], None] = lambda: None

    def __call__(self, point: str, call: partial[Any]) -> Any:
        if point == "tasks.marks_claimable":
            self.count += 1
            self.takes()
            if self.failing:
                self.failing -= 1
                raise Unavailable(dependency=point, detail="told to fail")
        if point == "tasks.known":
            self.reads += 1
        if point == "backlog.remove" and self.forgetful:
            raise Unavailable(dependency=point, detail="told to fail")
        return call()


def watched(world: World, looks: Looks, settings: SchedulerSettings) -> Scheduler:
    """Return another scheduler of the home region, whose looks are counted."""
    region = home(world)
    ports, keeper = region.ports.through(looks), region.services.keeper
    return region_services(ports, settings, world.timings, keeper).scheduler


def wide(count: int) -> Any:
    return a_plan([spec(f"t{n:02}", is_pinned=True) for n in range(count)])


@pytest.fixture
def looks() -> Looks:
    return Looks()


def test_a_scheduler_looks_at_its_first_tick_and_not_while_there_is_no_room(
    world: World, looks: Looks
) -> None:
    scheduler = watched(world, looks, SchedulerSettings(HOME))
    admit(world, wide(20))

    assert len(scheduler.tick().dispatched) == ROOM
    assert looks.count == 1

    for _ in range(3):
        world.clock.advance(EVERY_S)
        scheduler.notice()
        assert scheduler.tick().dispatched == ()
    assert looks.count == 1


def test_while_the_backlog_fills_the_room_it_looks_seldom_and_only_if_it_was_told(
    world: World, looks: Looks
) -> None:
    scheduler = watched(world, looks, SchedulerSettings(HOME, batch_max=1, look_every_s=0.5))
    admit(world, wide(20))
    scheduler.tick()
    assert looks.count == 1

    scheduler.notice()
    assert len(scheduler.tick().dispatched) == 1
    assert looks.count == 1

    world.clock.advance(0.5)
    assert len(scheduler.tick().dispatched) == 1
    assert looks.count == 2

    world.clock.advance(0.5)
    scheduler.tick()
    assert looks.count == 2, "nobody has told it of anything since"

    world.clock.advance(EVERY_S - 0.5)
    scheduler.tick()
    assert looks.count == 3, "that nobody has told it may be a lost message"


def test_a_scheduler_that_runs_out_of_rows_looks_at_once_when_it_is_told(
    world: World, looks: Looks
) -> None:
    scheduler = watched(world, looks, SchedulerSettings(HOME))
    assert scheduler.tick().dispatched == ()
    admit(world, wide(3))

    assert scheduler.tick().dispatched == (), "nobody has told it"
    scheduler.notice()
    assert len(scheduler.tick().dispatched) == 3
    assert looks.count == 2


def test_a_row_that_rests_is_tried_again_without_a_look(world: World, looks: Looks) -> None:
    scheduler = watched(world, looks, SchedulerSettings(HOME))
    needs = (LockNeed(LOCK),)
    admit(world, a_plan([spec("a", locks=needs), spec("b", locks=needs)]))
    assert len(scheduler.tick().dispatched) == 1, "the lock is taken for its first tick"
    count = looks.count

    for _ in range(4):
        world.clock.advance(EVERY_S / 5)
        assert scheduler.tick().dispatched == ()
    assert looks.count == count


def test_what_a_look_that_failed_was_for_is_looked_for_again(world: World, looks: Looks) -> None:
    scheduler = watched(world, looks, SchedulerSettings(HOME))
    scheduler.tick()
    admit(world, wide(2))
    scheduler.notice()
    looks.failing = 1

    with pytest.raises(Unavailable):
        scheduler.tick()

    assert len(scheduler.tick().dispatched) == 2


@pytest.mark.parametrize("plan", [DIAMOND.plan, wide(50)], ids=["diamond", "wide"])
def test_with_an_hourly_scan_the_wake_ups_alone_carry_a_run(tmp_path: Path, plan: Any) -> None:
    world = World(tmp_path, timings=HOURLY)
    run = admit(world, plan)

    world.fast_path()

    assert state_of(world, run) is RunState.DONE
    assert Counter(effects(world)) == dict.fromkeys((t.name for t in plan.tasks), 1)


@pytest.mark.parametrize("is_waking", [True, False], ids=["woken", "never woken"])
def test_every_ready_task_has_a_row_within_a_scan_though_there_is_no_room(
    world: World, is_waking: bool
) -> None:
    world.is_waking = is_waking
    run = admit(world, wide(40))
    graph, backlog = graph_of(world), home(world).ports.backlog
    waited: Counter[str] = Counter()

    while state_of(world, run) is RunState.RUNNING or not waited:
        world.clock.advance(EVERY_S)
        world.renew()
        world.slow_path()
        ready = {task.id for task in graph.tasks.of_run(run.id, [TaskState.READY])}
        without = ready - backlog.marks().keys()
        waited = Counter({id_: waited[id_] + 1 for id_ in without}) + Counter({"steps": 1})
        assert [id_ for id_, steps in waited.items() if id_ != "steps" and steps > 1] == []
        home(world).workers[0].work()

    assert Counter(effects(world)) == dict.fromkeys((f"t{n:02}" for n in range(40)), 1)


def test_a_task_that_only_a_newer_version_understands_keeps_no_other_back(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, (HOME,))
    run = admit(world, wide(3))
    store = in_process_graph(world.engine, HOME)
    home(world).services.mender.tick()
    newer = {task.spec.name: task.id.partition("/")[2] for task in store.tasks.of_run(run.id)}
    store.db.collection("tasks").update({"_key": newer["t00"], "schema": 2}, check_rev=False)

    world.fast_path()
    world.pass_time(10)

    assert sorted(effects(world)) == ["t01", "t02"]


def test_looks_that_take_long_come_seldom_while_the_backlog_fills_the_room(
    world: World, looks: Looks
) -> None:
    looks.takes = lambda: world.clock.advance(0.2)
    region = home(world)
    ports, keeper = region.ports.through(looks), region.services.keeper
    settings = SchedulerSettings(HOME, batch_max=1)
    scheduler = region_services(ports, settings, HOURLY, keeper).scheduler
    admit(world, wide(20))
    scheduler.tick()
    for _ in range(3):
        world.clock.advance(1.2)
        world.renew()
        scheduler.notice()
        assert len(scheduler.tick().dispatched) == 1
        assert looks.count == 1, "a twentieth of the time, whoever tells it of something new"

    world.clock.advance(0.5)
    scheduler.tick()
    assert looks.count == 2


def test_what_a_follower_shows_late_is_looked_for_once_more_and_not_for_ever(
    world: World, looks: Looks
) -> None:
    FaultControl(world.engine).set_lag(HOME, 0.6)
    scheduler = watched(world, looks, SchedulerSettings(HOME))
    admit(world, wide(2))
    scheduler.notice()

    too_early = scheduler.tick()
    assert too_early.dispatched == ()
    world.clock.advance(too_early.wait_s)
    found = scheduler.tick()

    assert len(found.dispatched) == 2
    assert (too_early.wait_s, looks.count) == (1.0, 2)
    assert scheduler.tick().wait_s == world.timings.reconcile_every_s
    assert looks.count == 2


def test_a_lock_that_looks_taken_is_looked_at_again_before_anybody_wakes_the_scheduler(
    world: World, looks: Looks
) -> None:
    timings = replace(world.timings, reconcile_every_s=3600.0)
    region = home(world)
    ports, keeper = region.ports.through(looks), region.services.keeper
    scheduler = region_services(ports, SchedulerSettings(HOME), timings, keeper).scheduler
    admit(world, a_plan([spec(name, locks=(LockNeed(LOCK),)) for name in "ab"]))
    assert len(scheduler.tick().dispatched) == 1
    FaultControl(world.engine).set_lag(HOME, 0.6)
    region.workers[0].work()
    world.clock.advance(0.5)

    held = scheduler.tick()
    assert held.dispatched == ()
    assert held.wait_s <= SchedulerSettings(HOME).look_every_s
    world.clock.advance(held.wait_s)

    assert len(scheduler.tick().dispatched) == 1


def test_what_a_look_read_is_claimed_without_being_read_again(world: World, looks: Looks) -> None:
    scheduler = watched(world, looks, SchedulerSettings(HOME, batch_max=1))
    admit(world, wide(5))
    first = scheduler.tick()
    assert (len(first.dispatched), first.wait_s) == (1, 0.0), "only the batch's size ends it"
    assert looks.reads == 1

    assert len(scheduler.tick().dispatched) == 1
    assert looks.reads == 1

    world.clock.advance(SchedulerSettings(HOME).look_every_s)
    assert len(scheduler.tick().dispatched) == 1
    assert looks.reads == 2, "by now it is old"


def test_what_others_claimed_since_the_look_is_theirs_and_the_rest_is_read_again(
    world: World, looks: Looks
) -> None:
    settings = SchedulerSettings(HOME, batch_max=1, ownership=Ownership.NONE)
    scheduler = watched(world, looks, settings)
    run = admit(world, wide(5))
    scheduler.tick()
    other = Looks()
    other.forgetful = True
    with pytest.raises(Unavailable):
        watched(world, other, settings).tick()  # it claims the next, and leaves the row there
    claimed = graph_of(world).tasks.of_run(run.id, [TaskState.CLAIMED])
    assert len(claimed) == 2

    lost = scheduler.tick()

    assert (lost.dispatched, lost.claims_lost) == ((), 1)
    assert graph_of(world).tasks.of_run(run.id, [TaskState.CLAIMED]) == claimed
    reads = looks.reads
    assert len(scheduler.tick().dispatched) == 1
    assert looks.reads == reads + 1
