"""Rules of the protocol that need more than one process to be seen."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from region_scheduler.assembly.services import region_services
from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.ids import ClaimId
from region_scheduler.domain.ownership import Ownership
from region_scheduler.domain.region import Region, RegionStatus
from region_scheduler.domain.run import Run
from region_scheduler.domain.slot import Reservation, reserve
from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.domain.step import StepJob, StopWish
from region_scheduler.domain.task import (
    Exit,
    Holder,
    LockNeed,
    OnLoss,
    Task,
    Token,
    WhenHolderLost,
)
from region_scheduler.domain.transitions import start
from region_scheduler.ports.queue import AttemptMessage
from region_scheduler.resources.assign import slots_of
from region_scheduler.scheduling.settings import SchedulerSettings
from region_scheduler.simulation.steps import EffectLog
from region_scheduler.simulation.world import World
from tests.simulation.acts import (
    admit,
    another,
    answered,
    effects,
    home,
    state_of,
    task_of,
)
from tests.simulation.scenarios import DIAMOND, HOME, LOCK, REGIONS, a_plan, graph_of, spec
from tests.unit.domain.samples import AT, WORKER

# -- fast and slow path


def rounds(world: World) -> int:
    """Run woken schedulers and workers until nothing moves; return how many rounds it took."""
    count = 0
    while world.woken:
        woken, world.woken = sorted(world.woken), set()
        for name in woken:
            world.regions[name].services.scheduler.tick()
        for region in world.regions.values():
            while any(worker.work() for worker in region.workers):
                pass
        count += 1
    return count


def test_without_any_slow_scan_a_run_takes_one_round_for_each_step_of_its_longest_path(
    world: World,
) -> None:
    """No reconciler and no sweep ticks at all: the wake-ups alone carry it."""
    run = admit(world, DIAMOND.plan)

    assert rounds(world) <= 3 + 1  # three waves, and the wake-up of the worker that is free again
    assert state_of(world, run) is RunState.DONE


@pytest.mark.parametrize("region", REGIONS)
def test_with_every_wake_up_dropped_a_run_ends_whoever_admitted_it(
    world: World, region: str
) -> None:
    world.is_waking = False
    run = admit(world, DIAMOND.plan, region=region)

    world.pass_time(10)

    assert state_of(world, run) is RunState.DONE
    assert Counter(effects(world)) == dict.fromkeys("abcd", 1)


# -- two schedulers, one region


def test_two_schedulers_of_one_region_do_nothing_twice_and_their_conflicts_are_told(
    world: World,
) -> None:
    """The other ticks just before each claim of the first, so that views are as old as can be."""
    plan = a_plan([spec(f"t{n}") for n in range(8)])
    first = another(world, Ownership.NONE)

    def tick_of_other(point: str, call: partial[Any]) -> Any:
        if point == "tasks.write":
            first.scheduler.tick()
        return call()

    second = another(world, Ownership.NONE, tick_of_other).scheduler
    run = admit(world, plan)
    promoted = second.tick()
    world.fast_path()

    assert state_of(world, run) is RunState.DONE
    assert Counter(effects(world)) == dict.fromkeys((s.name for s in plan.tasks), 1)
    conflicts = graph_of(world).conflicts.recent(100)
    assert promoted.claims_lost == len(conflicts) > 0
    assert {c.kind for c in conflicts} == {"claim"}
    assert {c.winner for c in conflicts} == {first.keeper.instance.id}
    assert all(c.loser.startswith("serve+.") for c in conflicts)
    assert all(task.retries_used == 0 for task in graph_of(world).tasks.of_run(run.id))


def test_two_schedulers_over_one_lock_lose_an_assignment_and_no_retry(world: World) -> None:
    plan = a_plan([spec(f"t{n}", locks=(LockNeed(LOCK),)) for n in range(4)])
    run = admit(world, plan)
    promoted = home(world).services.scheduler.tick()  # the lock was never seen: all four are tried

    assert len(promoted.dispatched) == 1
    assert promoted.assignments_lost == 3
    conflicts = graph_of(world).conflicts.recent(100)
    assert {c.kind for c in conflicts} == {"assignment"}
    assert {c.winner for c in conflicts} == set(promoted.dispatched)
    world.pass_time(10)
    assert state_of(world, run) is RunState.DONE
    assert Counter(effects(world)) == dict.fromkeys((s.name for s in plan.tasks), 1)
    assert all(t.retries_used == t.losses == 0 for t in graph_of(world).tasks.of_run(run.id))


def test_small_tasks_pass_one_that_needs_two_locks_but_not_for_ever(world: World) -> None:
    """One of its locks is always held by a small task: without insisting it would come last."""
    small = [spec(f"{lock}{n}", locks=(LockNeed(lock),)) for n in range(60) for lock in "xy"]
    big = spec("big", locks=(LockNeed("x"), LockNeed("y")), remaining_s=9.0)
    first = [spec("before", locks=(LockNeed("x"),), remaining_s=99.0)]
    run = admit(world, a_plan([*first, big, *small]))
    region = home(world)
    (worker,) = region.workers
    for _ in range(2 * len(small)):
        world.clock.advance(0.5)  # what lost a lock rests for a moment
        world.renew()
        region.services.scheduler.notice()
        region.services.scheduler.tick()
        worker.work()  # one ends, another still holds the other lock
        if "big" in effects(world):
            break

    assert effects(world).index("big") < len(small) / 2
    world.pass_time(30)
    assert Counter(effects(world)) == dict.fromkeys((s.name for s in [*first, big, *small]), 1)
    assert state_of(world, run) is RunState.DONE


# -- regions


@pytest.mark.parametrize(
    "status", [RegionStatus.CORDONED, RegionStatus.DRAINING, RegionStatus.DOWN]
)
def test_only_an_active_region_claims(world: World, status: RegionStatus) -> None:
    set_status(world, status)
    here = spec("here", allowed_regions=(HOME,))
    run = admit(world, a_plan([here, spec("there", "us-east")]))

    world.pass_time(5)

    assert effects(world) == ["there"]
    assert task_of(world, run, "here").state is TaskState.READY
    set_status(world, RegionStatus.ACTIVE)
    world.pass_time(2)
    assert state_of(world, run) is RunState.DONE


def set_status(world: World, status: RegionStatus, region: str = HOME) -> None:
    def decide(found: Region) -> Region:
        return replace(found, status=status)

    commit_one(graph_of(world).regions, Change(region, decide))


def test_a_region_without_its_document_claims_nothing(world: World) -> None:
    region = home(world)
    ports = region.ports
    nowhere = region_services(
        ports, SchedulerSettings("nowhere"), world.timings, region.services.keeper
    )
    task = spec("a", "nowhere", allowed_regions=("nowhere",))
    admit(world, a_plan([task], regions=(*REGIONS, "nowhere")))

    assert nowhere.scheduler.tick().dispatched == ()


def test_a_reservation_from_a_region_that_may_not_claim_blocks_nobody(world: World) -> None:
    needs = (LockNeed(LOCK),)
    run = admit(world, a_plan([spec("here", locks=needs), spec("there", "us-east", locks=needs)]))
    world.woken.clear()
    set_status(world, RegionStatus.CORDONED)
    here = task_of(world, run, "here")
    reserve_for(world, here)

    world.pass_time(5)

    assert effects(world) == ["there"]
    assert graph_of(world).slots.taken() == []


def reserve_for(world: World, task: Task) -> None:
    store = graph_of(world).slots
    ((slot,),) = slots_of(store, task.spec.locks).values()
    wanted = Reservation(task.id, task.token.number, "")
    commit_one(store, Change(slot.id, partial(reserve, wanted=wanted)))


# -- messages


def claimed_message(world: World, *tasks: Any) -> tuple[Run, AttemptMessage]:
    run = admit(world, a_plan(tasks or [spec("a")]))
    home(world).services.scheduler.tick()
    message = home(world).broker.take()
    assert message is not None
    return run, message


def test_a_message_that_went_to_another_region_is_handed_back_and_runs_at_home(
    world: World,
) -> None:
    run, message = claimed_message(world)
    (stranger,) = world.regions["us-east"].workers

    stranger.handler.handle(message)

    task = task_of(world, run, "a")
    assert task.state is TaskState.READY
    assert task.token == message.token.left()
    assert effects(world) == []
    world.fast_path()
    assert [e.region for e in world.log.effects] == [HOME]
    assert task_of(world, run, "a").retries_used == 0


def test_a_message_of_a_schema_that_is_not_known_is_handed_back(world: World) -> None:
    run, message = claimed_message(world)
    (worker,) = home(world).workers

    worker.handler.handle(replace(message, schema=message.schema + 1))

    assert task_of(world, run, "a").state is TaskState.READY
    assert effects(world) == []


def test_a_message_that_comes_twice_runs_once(world: World) -> None:
    run, message = claimed_message(world)
    (worker,) = home(world).workers

    worker.handler.handle(message)
    worker.handler.handle(message)

    assert effects(world) == ["a"]
    assert task_of(world, run, "a").attempt == 1


def test_a_message_that_comes_again_while_its_step_runs_is_dropped(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, message = claimed_message(world)
    (worker,) = home(world).workers
    plain = EffectLog.run

    def run_with_repeats(log: EffectLog, job: StepJob, should_stop: StopWish) -> Exit:
        worker.handler.handle(message)  # to the very same worker, and to another one
        world.worker(home(world)).handler.handle(message)
        return plain(log, job, should_stop)

    monkeypatch.setattr(EffectLog, "run", run_with_repeats)
    worker.handler.handle(message)

    assert effects(world) == ["a"]
    assert task_of(world, run, "a").state is TaskState.DONE


def test_a_message_with_an_old_token_starts_nothing(world: World) -> None:
    run, message = claimed_message(world)
    (worker,) = home(world).workers
    world.pass_time(world.timings.dispatch_s + 2)  # it timed out, was claimed again, and ran
    assert effects(world) == ["a"]

    worker.handler.handle(message)
    same_number = replace(message, token=Token(message.token.number, ClaimId("restored")))
    worker.handler.handle(same_number)

    assert effects(world) == ["a"]
    assert task_of(world, run, "a").attempt == 1


def test_a_worker_whose_lease_is_nearly_over_hands_back_and_runs_nothing(world: World) -> None:
    run, message = claimed_message(world)
    (worker,) = home(world).workers
    world.clock.advance(world.timings.ttl_s - world.timings.stop_s)

    worker.handler.handle(message)

    assert effects(world) == []
    assert task_of(world, run, "a").state is TaskState.READY


# -- lost holders


def test_a_task_held_by_an_incarnation_that_does_not_exist_comes_back(world: World) -> None:
    run, message = claimed_message(world)
    begin = partial(start, token=message.token, holder=WORKER, at=AT)
    commit_one(graph_of(world).tasks, Change(message.task, begin))

    world.pass_time(world.timings.lease_s - 1)
    assert task_of(world, run, "a").state is TaskState.RUNNING
    world.pass_time(3)

    assert state_of(world, run) is RunState.DONE
    assert task_of(world, run, "a").losses == 1


def test_a_pool_child_that_died_under_a_living_worker_costs_two_beats(world: World) -> None:
    run, message = claimed_message(world)
    (worker,) = home(world).workers
    holder = Holder(worker.keeper.instance.id, WORKER.receipt_id)
    begin = partial(start, token=message.token, holder=holder, at=AT)
    commit_one(graph_of(world).tasks, Change(message.task, begin))

    world.pass_time(3)

    assert state_of(world, run) is RunState.DONE
    lost = task_of(world, run, "a")
    assert lost.losses == 1
    assert worker.keeper.may_act()


@pytest.mark.parametrize(
    ("when_lost", "on_loss", "is_kept"),
    [
        (WhenHolderLost.KEEP, OnLoss.INSPECT, True),
        (WhenHolderLost.KEEP, OnLoss.HOLD, True),
        (WhenHolderLost.FREE, OnLoss.INSPECT, False),
        (WhenHolderLost.FREE, OnLoss.HOLD, False),
        (WhenHolderLost.KEEP, OnLoss.RETRY, False),
    ],
)
def test_a_slot_of_a_lost_task_is_kept_until_its_doubt_is_settled(
    world: World, when_lost: WhenHolderLost, on_loss: OnLoss, is_kept: bool
) -> None:
    need = LockNeed("state", when_holder_lost=when_lost)
    run, message = claimed_message(world, spec("a", locks=(need,), on_loss=on_loss))
    set_status(world, RegionStatus.CORDONED)  # nobody claims it again
    begin = partial(start, token=message.token, holder=WORKER, at=AT)
    commit_one(graph_of(world).tasks, Change(message.task, begin))

    world.pass_time(world.timings.lease_s + 3)

    assert task_of(world, run, "a").state is not TaskState.RUNNING
    assert bool(graph_of(world).slots.taken()) is is_kept


def test_a_verdict_of_a_person_frees_what_was_kept(world: World) -> None:
    need = LockNeed("state", when_holder_lost=WhenHolderLost.KEEP)
    run, message = claimed_message(world, spec("a", locks=(need,), on_loss=OnLoss.HOLD))
    begin = partial(start, token=message.token, holder=WORKER, at=AT)
    commit_one(graph_of(world).tasks, Change(message.task, begin))
    world.pass_time(world.timings.lease_s + 3)

    answered(world, task_of(world, run, "a"), is_yes=True)

    assert graph_of(world).slots.taken() == []
    assert state_of(world, run) is RunState.DONE
