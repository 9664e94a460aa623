"""The handed cases about leases, pauses and cuts while a step runs, each named by its id.

"Lease" in their figures is ttl + grace. A step that a paused worker leaves running goes on to its
end here; on a real machine the shim ends it at the deadline, which RSC-005 shows.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.lease import LeaseTimings
from region_scheduler.domain.retention import RETENTION
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.domain.task import (
    EventKind,
    Exit,
    ExitKind,
    Holder,
    LockNeed,
    OnLoss,
    RetryPolicy,
    Task,
    Verdict,
)
from region_scheduler.domain.transitions import complete
from region_scheduler.embedded.arango.control import FaultControl
from region_scheduler.errors import Fenced, OutcomeUnknown, Unavailable
from region_scheduler.runtime.loop import back_off
from region_scheduler.simulation.steps import Crash
from region_scheduler.simulation.world import SimulatedWorker, World
from region_scheduler.worker.execute import How
from region_scheduler.worker.processes import of_receipt
from tests.cases.troubled import TroubledWorld, happened, once
from tests.integration.runners.eventually import eventually
from tests.integration.runners.stage import Stage, never, python
from tests.simulation.acts import admit, answered, effects, home, state_of, task_of
from tests.simulation.scenarios import HOME, LOCK, REGIONS, a_plan, graph_of, spec
from tests.unit.domain.samples import AT

AWAY = "us-east"


@pytest.fixture
def world(tmp_path: Path) -> TroubledWorld:
    """A world with two workers at home, so that one can go on while the other stands still."""
    world = TroubledWorld(tmp_path, (HOME, AWAY))
    home(world).workers.append(world.worker(home(world)))
    return world


def holder_of(world: World) -> SimulatedWorker:
    """Return the worker that answers for a step at home."""
    (found,) = [worker for worker in home(world).workers if worker.receipts.held]
    return found


def away(world: TroubledWorld, seconds: float) -> Callable[[], None]:
    """Return the act of a worker whose beat stands still for so long while its step runs."""

    def act() -> None:
        with world.paused(holder_of(world)):
            world.pass_time(seconds)

    return act


def fenced(world: World) -> list[str]:
    return [instance.id for instance in graph_of(world).instances.fenced()]


def ends(world: World, run: Run, name: str = "a") -> list[str]:
    """Return the receipts whose end was accepted."""
    history = task_of(world, run, name).history
    return [entry.receipt_id for entry in history if entry.kind is EventKind.ENDED]


CLOCKS = {
    "the store's": lambda world: setattr(world, "store_ahead_s", 3600.0),
    "the holder's": lambda world: setattr(world.clocks[HOME], "ahead_s", 3600.0),
    "an observer's": lambda world: setattr(world.clocks[AWAY], "ahead_s", -3600.0),
}


@pytest.mark.parametrize("whose", CLOCKS)
def test_clk_001_a_clock_that_jumps_by_an_hour_takes_nobody_s_lease(
    world: TroubledWorld, whose: str
) -> None:
    def jump() -> None:
        CLOCKS[whose](world)
        world.pass_time(2 * world.timings.lease_s)

    world.log.during["a"] = once(jump)
    run = admit(world, a_plan([spec("a"), spec("b", AWAY)], "a>b"))
    world.fast_path()
    world.pass_time(5)

    assert fenced(world) == []
    assert state_of(world, run) is RunState.DONE
    assert effects(world) == ["a", "b"]
    assert [task_of(world, run, name).attempt for name in "ab"] == [1, 1]


def test_clk_005_a_holder_that_wakes_up_after_another_has_acted_is_refused(
    world: TroubledWorld,
) -> None:
    world.log.during["a"] = once(away(world, 2 * world.timings.lease_s))
    run = admit(world, a_plan([spec("a")]))

    world.fast_path()

    first, second = world.log.effects
    assert first.token.number < second.token.number
    assert ends(world, run) == [second.receipt_id], "the end of the first counts for nothing"
    task = task_of(world, run, "a")
    numbers = [entry.token.number for entry in task.history]
    assert numbers == sorted(numbers)
    late = Holder(home(world).workers[0].keeper.instance.id, first.receipt_id)
    write = partial(complete, token=first.token, holder=late, ended=Exit(kind=ExitKind.OK), at=AT)
    with pytest.raises(Fenced):
        commit_one(graph_of(world).tasks, Change(task.id, write))
    assert task_of(world, run, "a") == task


def test_dbl_005_a_step_of_three_leases_is_renewed_all_the_time_and_starts_once(
    world: TroubledWorld,
) -> None:
    """Each process beats when it is due by what its last renewal said, and no sooner."""
    lease_s, seen = world.timings.lease_s, dict[int, float]()

    def three_leases() -> None:
        (worker, other), begin_s = home(world).workers, world.clock.seconds
        while world.clock.seconds - begin_s < 3 * lease_s:
            waits = [keeper.renew() for keeper in (worker.keeper, other.keeper)]
            for region in world.regions.values():
                region.services.keeper.renew()
                region.services.resource_manager.tick()
            world.regions[AWAY].workers[0].keeper.renew()
            (lease,) = graph_of(world).instances.read([worker.keeper.instance.id])
            assert lease is not None
            seen[lease.beat] = world.clock.seconds
            world.clock.advance(min(waits))

    world.log.during["a"] = once(three_leases)
    run = admit(world, a_plan([spec("a")]))
    home(world).services.scheduler.tick()
    home(world).workers[0].work()

    gaps = [later - one for one, later in pairwise(seen.values())]
    assert len(gaps) > 6
    assert max(gaps) <= lease_s / 2
    assert task_of(world, run, "a").state is TaskState.DONE
    assert task_of(world, run, "a").attempt == 1
    assert fenced(world) == []


@pytest.mark.parametrize("on_loss", [OnLoss.RETRY, OnLoss.INSPECT])
def test_dbl_018_a_fail_over_lets_two_start_only_if_the_step_says_so_and_one_end_counts(
    world: TroubledWorld, on_loss: OnLoss
) -> None:
    """A claim that only its own region has seen does not exist: what is cut off cannot claim."""
    world.log.verdict = Verdict.DONE

    def fail_over() -> None:
        with world.cut(HOME):
            world.pass_time(2 * world.timings.lease_s)

    world.log.during["a"] = once(fail_over)
    run = admit(world, a_plan([spec("a", on_loss=on_loss)]))
    world.fast_path()
    world.pass_time(4)

    task = task_of(world, run, "a")
    regions = [effect.region for effect in world.log.effects]
    assert regions == ([HOME, AWAY] if on_loss is OnLoss.RETRY else [HOME])
    assert [look.region for look in world.log.inspected] == (
        [] if on_loss is OnLoss.RETRY else [AWAY]
    )
    assert state_of(world, run) is RunState.DONE
    (end,) = [entry for entry in task.history if entry.kind is EventKind.ENDED]
    begun = [entry for entry in task.history if entry.kind is EventKind.STARTED]
    assert [entry.region for entry in begun] == [HOME, AWAY], "both starts are on record"
    assert end.receipt_id == begun[1].receipt_id
    assert end.token.number > begun[0].token.number
    assert happened(world, run, "a", EventKind.LOST, EventKind.MOVED) == [
        EventKind.LOST,
        EventKind.MOVED,
    ]
    (region,) = graph_of(world).regions.read([HOME])
    assert region is not None
    assert region.epoch > 1, "it was given up in an epoch of its own"


@pytest.mark.parametrize(("seconds", "attempts"), [(2.0, 1), (9.0, 2)])
def test_stk_009_no_task_stays_with_a_worker_that_has_no_lease(
    world: TroubledWorld, seconds: float, attempts: int
) -> None:
    assert (seconds > world.timings.lease_s) is (attempts > 1)
    odd: list[str] = []

    def beat_stops() -> None:
        stopped = holder_of(world)
        with world.paused(stopped):
            for step in range(round(seconds)):
                world.pass_time(1)
                is_held = held_by(world, stopped)
                if is_held and (step > world.timings.lease_s + 1):
                    odd.append(f"{step} s after its last beat it still holds {is_held}")

    world.log.during["a"] = once(beat_stops)
    run = admit(world, a_plan([spec("a")]))
    world.fast_path()

    assert odd == []
    task = task_of(world, run, "a")
    assert (task.state, task.attempt) == (TaskState.DONE, attempts)
    assert ends(world, run) == [world.log.effects[-1].receipt_id]


def held_by(world: World, worker: SimulatedWorker) -> list[str]:
    return [task.id for task in graph_of(world).tasks.held_by([worker.keeper.instance.id])]


def test_stk_010_an_attempt_without_retries_is_over_a_lease_after_its_worker_was_cut_off(
    world: TroubledWorld,
) -> None:
    none = RetryPolicy(limit=0, losses_limit=0)
    over_after: list[float] = []

    def cut_off() -> None:
        with world.paused(holder_of(world)):
            for second in range(round(2 * world.timings.lease_s)):
                world.pass_time(1)
                if not over_after and task_of(world, run, "a").state is TaskState.FAILED:
                    over_after.append(second + 1.0)

    world.log.during["a"] = once(cut_off)
    run = admit(world, a_plan([spec("a", retry=none), spec("b")], "a>b"))
    world.fast_path()
    world.pass_time(3)  # it is back

    (after_s,) = over_after
    assert after_s <= world.timings.lease_s + 10
    task = task_of(world, run, "a")
    assert (task.state, task.attempt, task.holder) == (TaskState.FAILED, 1, None)
    assert task.history[-1].kind is EventKind.LOST, "nothing was written by the one that came back"
    assert state_of(world, run) is RunState.FAILED
    assert effects(world) == ["a"]
    world.clock.advance((RETENTION.runs_days + 1) * 86_400)
    world.renew()
    for region in world.regions.values():
        region.services.collector.tick()
    assert graph_of(world).tasks.counts(run.id) == (0, 0), "and it goes with its run"
    assert graph_of(world).runs.read([run.id]) == [None]


@pytest.mark.parametrize("is_whole_region", [True, False], ids=["its region", "the worker alone"])
def test_stk_011_a_cut_shorter_than_a_lease_makes_no_second_attempt(
    tmp_path: Path, is_whole_region: bool
) -> None:
    world = TroubledWorld(tmp_path, (HOME, AWAY))
    short_s = world.timings.ttl_s - world.timings.stop_s - world.timings.renew_every_s

    def cut() -> None:
        if is_whole_region:
            with world.cut(HOME):
                world.pass_time(short_s)
        else:
            away(world, short_s)()
        world.pass_time(world.timings.lease_s)

    world.log.during["a"] = once(cut)
    run = admit(world, a_plan([spec("a")]))
    world.fast_path()
    world.pass_time(world.timings.lease_s)

    assert effects(world) == ["a"]
    assert happened(world, run, "a").count(EventKind.CLAIMED) == 1
    assert task_of(world, run, "a").attempt == 1
    assert fenced(world) == []
    assert state_of(world, run) is RunState.DONE


@pytest.mark.parametrize("is_done", [True, False])
def test_stk_023_what_may_never_start_twice_waits_for_a_person(
    world: TroubledWorld, is_done: bool
) -> None:
    """`on_loss: hold` is the form's at-most-once."""
    seen: list[tuple[TaskState, str]] = []

    def cut_off() -> None:
        with world.paused(holder_of(world)):
            world.pass_time(2)
            seen.append((task_of(world, run, "a").state, ""))
            world.pass_time(3 * world.timings.lease_s)
            task = task_of(world, run, "a")
            seen.append((task.state, task.reason))

    world.log.during["a"] = once(cut_off)
    run = admit(world, a_plan([spec("a", on_loss=OnLoss.HOLD), spec("b")], "a>b"))
    world.fast_path()
    world.pass_time(3)

    assert seen == [(TaskState.RUNNING, ""), (TaskState.AWAITING, "holder lost its lease")]
    assert effects(world) == ["a"]
    assert task_of(world, run, "a").state is TaskState.AWAITING
    answered(world, task_of(world, run, "a"), is_yes=is_done)
    world.pass_time(3)
    assert state_of(world, run) is (RunState.DONE if is_done else RunState.FAILED)
    assert effects(world) == (["a", "b"] if is_done else ["a"])


def test_rsc_005_a_worker_without_renewals_has_stopped_its_step_and_freed_its_slot_in_time(
    world: TroubledWorld,
) -> None:
    """What the step does at its deadline is shown with real processes beside this."""
    needs = (LockNeed(LOCK),)
    freed_after: list[float] = []

    def dropped(_: object) -> Exit | None:
        world.log.during.clear()
        worker = holder_of(world)
        begin_s = world.clock.seconds
        with world.paused(worker):
            world.pass_time(world.timings.ttl_s - world.timings.stop_s)
        assert worker.keeper.deadline > world.clock.seconds
        freed_after.append(world.clock.seconds - begin_s)
        return Exit(kind=ExitKind.FENCED, message="its shim ended it at the deadline")

    world.log.during["a"] = dropped
    run = admit(world, a_plan([spec("a", locks=needs), spec("b", locks=needs)]))
    home(world).services.scheduler.tick()
    home(world).workers[0].work()

    assert freed_after[0] <= world.timings.lease_s
    task = task_of(world, run, "a")
    assert (task.state, task.holder) == (TaskState.READY, None)
    assert [slot for slot in graph_of(world).slots.taken() if holds(slot, task)] == []
    world.pass_time(10)
    assert state_of(world, run) is RunState.DONE


def holds(slot: object, task: Task) -> bool:
    holder = getattr(slot, "holder", None)
    return holder is not None and holder.task == task.id


STUBBORN = """
import os, signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
os.fork()
open(f"{os.getpid()}.there", "w").close()
time.sleep(60)
"""


def test_rsc_005_no_process_is_left_of_a_step_whose_lease_is_not_renewed(tmp_path: Path) -> None:
    """The real shim: the lease is written once and then never again."""
    stage = Stage(tmp_path, lease_s=1.0)
    job = stage.job()
    deadline = stage.lease.deadline()
    ended: list[object] = []
    thread = threading.Thread(
        target=lambda: ended.append(stage.executor.execute(job, python(STUBBORN), never))
    )
    thread.start()
    eventually(lambda: len(list(Path(job.work_dir).glob("*.there"))) == 2)
    assert len(of_receipt(job.receipt_id)) >= 2
    thread.join(10)

    (end,) = ended
    assert getattr(end, "how") is How.LEASE  # noqa: B009
    assert of_receipt(job.receipt_id) == []
    assert getattr(end, "ended_at") >= deadline - 0.2  # noqa: B009


@pytest.mark.parametrize("limit", [5, 0])
def test_lst_008_a_task_whose_process_was_killed_is_ready_or_failed_within_a_lease(
    world: TroubledWorld, limit: int
) -> None:
    """The worker lives on; real processes: `tests/integration/local/test_again.py`."""
    run = admit(world, a_plan([spec("a", retry=RetryPolicy(losses_limit=limit))]))
    home(world).services.scheduler.tick()
    world.log.crashes["a"] = 1
    worker = home(world).workers[0]
    with pytest.raises(Crash):
        worker.work()
    assert task_of(world, run, "a").state is TaskState.RUNNING

    begin_s = world.clock.seconds
    while task_of(world, run, "a").state is TaskState.RUNNING:
        world.pass_time(world.timings.renew_every_s / 2)

    assert world.clock.seconds - begin_s <= world.timings.lease_s
    assert worker.keeper.may_act()
    world.pass_time(2)
    task = task_of(world, run, "a")
    assert task.losses == 1
    assert (task.state, task.attempt) == ((TaskState.DONE, 2) if limit else (TaskState.FAILED, 1))


def test_a_store_that_is_away_for_half_the_ttl_interrupts_nothing(tmp_path: Path) -> None:
    """A step runs in every region while none of them reaches the store."""
    world = TroubledWorld(tmp_path, REGIONS)
    wishes: list[str] = []

    def outage(should_stop: Callable[[], str]) -> None:
        with world.cut(*REGIONS):
            world.pass_time(world.timings.ttl_s / 2)
            wishes.append(should_stop())
        world.pass_time(world.timings.renew_every_s)
        wishes.append(should_stop())

    world.log.during[REGIONS[0]] = once(world.regions[REGIONS[1]].workers[0].work)
    world.log.during[REGIONS[1]] = once(world.regions[REGIONS[2]].workers[0].work)
    world.log.during[REGIONS[2]] = outage
    run = admit(world, a_plan([spec(region, region) for region in REGIONS]))
    for region in world.regions.values():
        region.services.scheduler.tick()
    world.regions[REGIONS[0]].workers[0].work()
    world.pass_time(2 * world.timings.lease_s)

    assert wishes == ["", ""], "no step was asked to stop"
    assert fenced(world) == []
    assert Counter(effects(world)) == dict.fromkeys(REGIONS, 1)
    assert state_of(world, run) is RunState.DONE
    tasks = graph_of(world).tasks.of_run(run.id)
    assert {(t.attempt, t.losses, t.retries_used) for t in tasks} == {(1, 0, 0)}


def test_after_an_outage_of_half_the_ttl_all_renew_in_time_and_not_in_step(tmp_path: Path) -> None:
    """The production lease; each process paces itself as its loop does, pauses left to chance."""
    timings = LeaseTimings()
    world = TroubledWorld(tmp_path, (HOME,), timings=timings)
    region = home(world)
    region.workers += [world.worker(region) for _ in range(29)]
    pause_s = back_off(0.1, region.services.keeper.retry_s)
    due = {n: n * timings.renew_every_s / 30 for n in range(30)}  # spread over a renewal's pause
    failures = dict.fromkeys(due, 0)
    returned: dict[int, float] = {}
    begin_s, outage_s = world.clock.seconds, timings.ttl_s / 2
    control, is_cut = FaultControl(world.engine), False
    while (at := min(due.values())) < 2 * timings.ttl_s:
        n = min(due, key=lambda one: due[one])
        world.clock.advance(begin_s + at - world.clock.seconds)
        if is_cut is not (timings.ttl_s <= at < timings.ttl_s + outage_s):
            is_cut = not is_cut
            if is_cut:
                control.cut(HOME, is_refusing=True)
            else:
                control.heal(HOME)
        keeper = region.workers[n].keeper
        try:
            due[n] = at + keeper.renew()
            if failures[n]:
                returned[n] = at - timings.ttl_s - outage_s
            failures[n] = 0
        except (Unavailable, OutcomeUnknown):
            failures[n] += 1
            due[n] = at + pause_s(failures[n])
        left_s = keeper.deadline - world.clock.seconds
        assert left_s > timings.stop_s, f"a step of worker {n} would be interrupted"

    assert len(returned) == 30
    assert 0 <= min(returned.values()) <= max(returned.values()) <= timings.retry_s
    assert len(set(returned.values())) == 30
    assert max(returned.values()) - min(returned.values()) > timings.retry_s / 4
