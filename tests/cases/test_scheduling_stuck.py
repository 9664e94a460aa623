"""The handed cases about what gets stuck, is undone or goes round for ever, each named by its id.

STK-009, 010, 011 and 023 are in `test_scheduling_leases.py`, STK-019 and 024 in
`test_scheduling_owners.py`, STK-003 and 027 in `test_scheduling_lost.py`, STK-012 and 015 in
`test_scheduling_queue.py`. STK-026 on a real stack: `tests/integration/local/test_again.py`.
"""

from __future__ import annotations

import ast
import os
import threading
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

import region_scheduler
from region_scheduler.assembly.in_process import in_process_graph
from region_scheduler.assembly.member import Membership
from region_scheduler.assembly.working import _Places, _Progress, ready_mark
from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.config.settings import Paths, Settings
from region_scheduler.domain.ends import why_failed
from region_scheduler.domain.ids import Incarnation, ReceiptId
from region_scheduler.domain.instance import Instance
from region_scheduler.domain.lease import LeaseTimings
from region_scheduler.domain.ownership import Ownership
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import FINAL, RunState, TaskState
from region_scheduler.domain.step import StopWish
from region_scheduler.domain.task import EventKind, Exit, ExitKind, Holder, RetryPolicy
from region_scheduler.domain.transitions import complete, start
from region_scheduler.embedded.arango.control import FaultControl
from region_scheduler.embedded.arango.engine import Engine
from region_scheduler.embedded.arango.faults import Fault, FaultKind
from region_scheduler.errors import Unavailable
from region_scheduler.membership.keeper import LeaseKeeper
from region_scheduler.operations.rework import clear_task
from region_scheduler.runtime.loop import Loop
from region_scheduler.runtime.pulse import Pulse
from region_scheduler.runtime.system import SystemClock
from region_scheduler.simulation.steps import Crash
from region_scheduler.simulation.world import World
from tests.cases.troubled import Moments, TroubledWorld, happened, once
from tests.services import eventually
from tests.simulation.acts import admit, another, auditor, effects, home, state_of, task_of
from tests.simulation.cancels import cancelled, states
from tests.simulation.scenarios import HOME, a_plan, graph_of, spec
from tests.unit.domain.samples import AT

AWAY = "us-east"
CHAIN = a_plan([spec("a"), spec("b"), spec("c")], "a>b", "b>c")


@pytest.fixture
def moments() -> Moments:
    return Moments()


@pytest.fixture
def world(tmp_path: Path, moments: Moments) -> TroubledWorld:
    return TroubledWorld(tmp_path, (HOME, AWAY), hook=moments)


@pytest.mark.parametrize("limit", [0, 5], ids=["it would fail it", "it would give it back"])
def test_stk_007_a_success_is_not_overwritten_by_a_sweep_that_read_it_as_running(
    world: TroubledWorld, moments: Moments, limit: int
) -> None:
    run = admit(world, a_plan([spec("a", retry=RetryPolicy(losses_limit=limit))]))
    home(world).services.scheduler.tick()
    message = home(world).broker.take()
    assert message is not None
    (worker,) = home(world).workers
    holder = Holder(worker.keeper.instance.id, ReceiptId("r"))
    store = graph_of(world).tasks
    begin = partial(start, token=message.token, holder=holder, at=AT)
    commit_one(store, Change(message.task, begin))
    seen: list[TaskState] = []

    def completes(_call: object, found: Any) -> None:
        if found and not seen:
            seen.extend(task.state for task in found)
            done = partial(
                complete, token=message.token, holder=holder, ended=Exit(kind=ExitKind.OK), at=AT
            )
            commit_one(store, Change(message.task, done))

    moments.after["tasks.held_by"] = completes
    with world.paused(worker):
        world.pass_time(world.timings.lease_s + 4)

    assert seen == [TaskState.RUNNING]
    task = task_of(world, run, "a")
    assert (task.state, task.losses) == (TaskState.DONE, 0)
    assert [e.kind for e in task.history][-1] is EventKind.ENDED
    world.pass_time(4)
    assert task_of(world, run, "a").state is TaskState.DONE
    assert state_of(world, run) is RunState.DONE


def test_stk_016_a_step_that_kills_its_process_ends_after_three_and_delays_nobody(
    world: TroubledWorld,
) -> None:
    world.log.crashes["a"] = 99
    run = admit(world, a_plan([spec("a", retry=RetryPolicy(losses_limit=2))]))
    asked: dict[str, float] = {}
    began: dict[str, float] = {}
    number = 0
    while state_of(world, run) is RunState.RUNNING and number < 30:
        name = f"other{number}"
        asked[name] = world.clock.seconds
        world.log.during[name] = partial(note, world, began, name)
        admit(world, a_plan([spec(name)]), name)
        world.pass_time(3)
        number += 1

    task = task_of(world, run, "a")
    assert (task.state, task.attempt, task.losses) == (TaskState.FAILED, 3, 3)
    assert why_failed(task) == "its holder was lost 3 times: holder lost its lease"
    assert effects(world).count("a") == 3
    assert number > 3
    assert max(began[name] - asked[name] for name in asked) < 5
    assert Counter(effects(world))["other0"] == 1


def note(world: World, began: dict[str, float], name: str, _: StopWish) -> None:
    began[name] = world.clock.seconds


def test_stk_017_one_region_replaces_its_own_without_a_word_from_the_other(
    world: TroubledWorld,
) -> None:
    stays = spec("b", AWAY, allowed_regions=(AWAY,))  # or the failover would move it
    run = admit(world, a_plan([spec("a"), stays], "a>b"))
    away = world.regions[AWAY]
    world.log.crashes["a"] = 1
    with world.cut(AWAY), world.paused(away, away.workers[0]):
        world.pass_time(world.timings.lease_s + 4)
        assert task_of(world, run, "a").state is TaskState.DONE
        assert task_of(world, run, "b").state is TaskState.READY
    assert effects(world) == ["a", "a"]

    world.pass_time(3 * world.timings.lease_s)  # the other was given up, and returns
    assert state_of(world, run) is RunState.DONE
    assert effects(world) == ["a", "a", "b"]


def test_stk_017_a_cancelled_run_is_over_in_every_region_within_ten_seconds(
    world: TroubledWorld,
) -> None:
    plan = a_plan([spec("a"), spec("b", AWAY), spec("c", AWAY), spec("d")], "a>c", "b>d")
    over_after: list[float] = []

    def stopped(should_stop: StopWish) -> Exit:
        cancelled(world, run)
        begin_s = world.clock.seconds
        while not should_stop():
            world.pass_time(world.timings.renew_every_s / 2)
        over_after.append(begin_s)
        return Exit(kind=ExitKind.CANCELLED)

    world.log.during["b"] = stopped
    run = admit(world, plan)
    world.regions[AWAY].services.scheduler.tick()
    world.regions[AWAY].workers[0].work()
    world.pass_time(3)

    assert set(states(world, run).values()) <= FINAL
    assert state_of(world, run) is RunState.CANCELLED
    assert world.clock.seconds - over_after[0] <= 10
    assert "c" not in effects(world)
    assert "d" not in effects(world)


def test_stk_018_a_run_whose_tasks_are_over_is_closed_by_the_next_scan(
    world: TroubledWorld, moments: Moments
) -> None:
    run = admit(world, a_plan([spec("a")]))
    home(world).services.scheduler.tick()

    def die(_: object) -> None:
        raise Crash("before it closes the run")

    moments.before["tasks.has_active"] = die
    with pytest.raises(Crash):
        home(world).workers[0].work()
    moments.before.clear()
    assert task_of(world, run, "a").state is TaskState.DONE
    assert state_of(world, run) is RunState.RUNNING

    (ended,) = home(world).services.reconciler.tick().ended

    assert (ended.id, ended.state) == (run.id, RunState.DONE)


CORE = ("admission", "commit", "domain", "lifecycle", "membership", "resources", "scheduling")


@pytest.mark.parametrize("folder", CORE)
def test_stk_018_what_decides_takes_no_lock_that_it_could_wait_for(folder: str) -> None:
    """Writes are conditional; a lock taken twice in one chain of calls cannot be."""
    root = Path(region_scheduler.__file__).parent / folder
    found = []
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            locks = {"threading", "multiprocessing", "fcntl", "asyncio", "filelock"}
            found += [f"{path}: {name}" for name in names if name.partition(".")[0] in locks]

    assert found == []


def test_stk_025_conflicts_without_a_winner_end_nobody_and_fail_nothing(tmp_path: Path) -> None:
    """Three schedulers for 60 s; 30 % of the writes meet a conflict that nobody has won."""
    undisturbed = throughput(tmp_path / "undisturbed", 0.0)
    disturbed = throughput(tmp_path / "disturbed", 0.3)

    assert disturbed > 0.3 * undisturbed


def throughput(directory: Path, rate: float) -> int:
    """Return how many tasks are done after 60 s, of more than there is time for."""
    directory.mkdir()
    world = World(directory, (HOME,))
    schedulers = [another(world, Ownership.NONE) for _ in range(2)]
    schedulers.append(home(world).services)
    run = admit(world, a_plan([spec(f"t{n}") for n in range(150)]))
    fault = Fault(FaultKind.CONFLICT, rate=rate, times=10_000)
    FaultControl(world.engine).inject(fault)
    for _ in range(60):
        world.clock.advance(1)
        world.renew()  # whatever this or a tick raises ends the test
        for one in schedulers:
            one.keeper.renew()
            one.scheduler.notice()
            one.scheduler.tick()
        home(world).services.resource_manager.tick()
        for _ in range(2):
            home(world).workers[0].work()
    assert fault.times is not None
    assert (fault.times < 9_900) is (rate > 0)
    tasks = graph_of(world).tasks.of_run(run.id)
    assert {t.retries_used for t in tasks} == {t.losses for t in tasks} == {0}
    assert TaskState.FAILED not in {t.state for t in tasks}
    assert max(Counter(effects(world)).values()) == 1
    assert all(one.keeper.may_act() for one in schedulers)
    return sum(task.state is TaskState.DONE for task in tasks)


def test_stk_025_a_round_that_failed_is_repeated_after_a_pause_left_to_chance() -> None:
    left = [12]

    def tick() -> None:
        left[0] -= 1
        if left[0] < 0:
            loop.stop()
            return
        raise Unavailable(dependency="graph store", detail="told to fail")

    loop = Loop("a loop", tick, pause_first_s=0.002, pause_max_s=0.004)
    with capture_logs() as logs:
        loop.run()

    pauses = [entry["pause_s"] for entry in logs]
    assert len(pauses) == 12
    assert len(set(pauses)) > 1, "no two processes come back in step"
    assert max(pauses) <= 0.004


@pytest.mark.parametrize("is_alive", [True, False], ids=["it stops", "its holder is lost"])
def test_stk_026_a_cleared_task_starts_anew_within_a_lease_and_lingers_nowhere(
    world: TroubledWorld, is_alive: bool
) -> None:
    seen: list[tuple[float, TaskState]] = []
    home(world).workers.append(world.worker(home(world)))

    def look(until_s: float) -> None:
        while world.clock.seconds < until_s:
            seen.append((world.clock.seconds, task_of(world, run, "b").state))
            world.pass_time(world.timings.renew_every_s / 2)

    def cleared(should_stop: StopWish) -> Exit | None:
        world.log.during["b"] = lambda _: began.append(world.clock.seconds)
        clear_task(
            home(world).ports.graph,
            home(world).services.settler,
            auditor(world),
            world.clock,
            task_of(world, run, "b"),
            is_deep=True,
        )
        cleared_at.append(world.clock.seconds)
        if not is_alive:
            (mine,) = [worker for worker in home(world).workers if worker.receipts.held]
            with world.paused(mine):
                look(world.clock.seconds + world.timings.lease_s + 4)
            return None
        while not should_stop():
            world.pass_time(0.5)
        return Exit(kind=ExitKind.CANCELLED)

    cleared_at: list[float] = []
    began: list[float] = []
    world.log.during["b"] = cleared
    run = admit(world, CHAIN)
    world.fast_path()
    look(world.clock.seconds + 2)

    (again,) = began
    assert again - cleared_at[0] <= world.timings.lease_s + 2
    allowed = {TaskState.READY, TaskState.CLAIMED, TaskState.RUNNING, *FINAL}
    odd = [at for at, state in seen if state not in allowed]
    assert not odd or max(odd) - min(odd) <= world.timings.lease_s + 2
    assert state_of(world, run) is RunState.DONE
    assert Counter(effects(world)) == {"a": 1, "b": 2, "c": 1}
    b = task_of(world, run, "b")
    assert (b.submission, b.attempt) == (2, 1)
    assert happened(world, run, "b", EventKind.ENDED) == [EventKind.ENDED], "of the new attempt"


def test_stk_026_what_was_cleared_is_fenced_from_its_old_end(world: TroubledWorld) -> None:
    first: list[Run] = []

    def clear() -> None:
        stores, settler = home(world).ports.graph, home(world).services.settler
        clear_task(
            stores, settler, auditor(world), world.clock, task_of(world, run, "b"), is_deep=True
        )
        first.append(run)

    world.log.during["b"] = once(clear)  # it ends as if nobody had cleared it
    run = admit(world, CHAIN)
    world.fast_path()
    world.pass_time(3)

    assert first
    assert Counter(effects(world)) == {"a": 1, "b": 2, "c": 1}
    assert effects(world)[-1] == "c", "what waits for it starts after the new attempt"
    assert state_of(world, run) is RunState.DONE


SHORT = LeaseTimings(ttl_s=1.5, grace_s=1.0, failover_s=0.3, stop_s=0.1, retry_s=0.2, kill_s=0.5)


def test_stk_022_a_lease_is_not_renewed_for_a_process_whose_work_stands_still() -> None:
    """The lease has a thread of its own; it asks the loop that does the work, and ends with it.

    That a real worker's loop says so, and no longer once it is frozen:
    `tests/integration/celery/test_worker.py`.
    """
    graph = in_process_graph(Engine(is_cluster=True, regions=(HOME,)), HOME)
    clock, frozen, lapsed = SystemClock(), threading.Event(), threading.Event()
    instance = Instance(
        id=Incarnation("worker:1"), roles=(), region=HOME, ttl_s=1.5, stamped_at=clock.now()
    )
    keeper = LeaseKeeper(graph.instances, instance, SHORT, clock)
    membership = Membership(keeper, frozen.is_set, lapsed.set)

    def beat() -> int:
        (found,) = graph.instances.read([instance.id])
        assert found is not None
        return found.beat

    membership.start()
    eventually(lambda: beat() > 1)
    frozen.set()
    is_lapsed = lapsed.wait(10)
    last = beat()
    may_act = keeper.may_act()
    membership.stop()
    membership.join(5)

    assert is_lapsed, "so it ends, whatever its main thread does, and can be started anew"
    assert not may_act
    assert keeper.instance.beat == last


def test_stk_022_a_worker_that_takes_no_messages_is_not_ready_after_two_beats(
    tmp_path: Path,
) -> None:
    settings = Settings(paths=Paths(work_dir=str(tmp_path)))
    progress = _Progress(settings, _Places(tmp_path / "own"))
    now = [1_000.0]
    bound_s = 2 * settings.lease.renew_every_s
    progress.pulse = Pulse(bound_s, lambda: now[0])

    progress.goes_round()
    assert ready_mark(settings, os.getpid()).exists()
    now[0] += bound_s
    assert not progress.is_stuck()
    now[0] += 0.1

    assert progress.is_stuck()
    assert not ready_mark(settings, os.getpid()).exists()
    progress.goes_round()
    assert not progress.is_stuck()
    assert ready_mark(settings, os.getpid()).exists()
