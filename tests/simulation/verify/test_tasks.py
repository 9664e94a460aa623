"""Promises about tasks and steps: each is broken by hand, and `verify` says so with the facts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from region_scheduler.domain.admission import AdmissionState
from region_scheduler.domain.ids import ClaimId, ReceiptId, task_id
from region_scheduler.domain.instance import Fence, FenceKind, fenced
from region_scheduler.domain.run import Run
from region_scheduler.domain.slot import Slot
from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.domain.task import EventKind, LockNeed, Task, Token
from region_scheduler.simulation.world import World
from region_scheduler.verify.invariants import Invariant
from region_scheduler.verify.report import Report, Status
from tests.simulation.acts import admit, home, task_of
from tests.simulation.scenarios import LOCK, a_plan, graph_of, spec
from tests.simulation.verify.plants import (
    at,
    during,
    looked_at,
    of,
    opened,
    plant,
    run_now,
    with_entry,
)
from tests.unit.domain.samples import AT

# -- green


def test_of_a_sound_world_every_promise_holds_that_can_be_looked_at(world: World, run: Run) -> None:
    report = looked_at(world)

    assert (report.broken, report.violations, report.unsettled) == ((), 0, 0)
    assert report.checked == 14
    not_checkable = [v for v in report.verdicts if v.status is Status.NOT_CHECKABLE]
    assert [(v.invariant, bool(v.limits)) for v in not_checkable] == [(Invariant.FAIRNESS, True)]
    assert report.looked_at == {"runs": 1, "tasks": 2, "slots": 1, "admissions": 1}
    assert looked_at(world, run).looked_at == report.looked_at


def test_of_a_world_at_work_every_promise_holds(world: World) -> None:
    """Also while a step runs, and with people and lost workers about."""
    seen: list[Report] = []
    needs = (LockNeed("pool", capacity=2, units=2),)
    during(world, "b", lambda: seen.append(looked_at(world, is_at_rest=False)))
    world.log.crashes["a"] = 1

    admit(world, a_plan([spec("a"), spec("b", locks=needs), spec("c")], "a>b"))
    with pytest.raises(BaseException, match="a"):
        world.pass_time(1)
    world.replace_worker(home(world), home(world).workers[0])
    world.pass_time(20)

    assert [report.broken for report in seen] == [()]
    assert looked_at(world).broken == ()


def test_what_is_not_at_hand_is_not_looked_at_and_it_says_so(world: World, run: Run) -> None:
    report = looked_at(world, steps=None, is_at_rest=False)

    limits = {v.invariant: " ".join(v.limits) for v in report.verdicts}
    assert "logs are not at hand" in limits[Invariant.ONE_HOLDER]
    assert "one look does not tell" in limits[Invariant.NO_LEAK]
    assert "lies ahead" in limits[Invariant.NO_LOSS]


# -- 1: one holder


def test_a_task_that_is_started_twice_has_two_holders(world: World, run: Run) -> None:
    def twice(task: Task) -> Task:
        started = task.history[at(task, EventKind.STARTED)]
        other = replace(started, receipt_id=ReceiptId("another"))
        begin = at(task, EventKind.STARTED)
        return replace(task, history=(*task.history[:begin], other, *task.history[begin:]))

    plant(world, run, "a", twice)

    report = looked_at(world)
    assert report.broken == (Invariant.ONE_HOLDER,)
    found = of(report, Invariant.ONE_HOLDER)
    assert "from running to running" in found.what
    assert "receipt another" in found.evidence[0]
    assert len(found.evidence) == 2


def test_two_steps_at_once_are_seen_in_their_own_log(world: World, run: Run) -> None:
    first, last = world.log.facts[:2]
    other = [replace(one, receipt_id=ReceiptId("other"), shim_pid=99) for one in (first, last)]

    report = looked_at(world, steps=[*world.log.facts, *other])

    assert report.broken == (Invariant.ONE_HOLDER,)
    assert report.violations == 2  # at once, and under a receipt that no start was accepted for
    verdict = report.verdicts[0]
    assert {len(one.evidence) for one in verdict.findings} == {1, 2}


def test_a_step_that_goes_on_unseen_is_seen_by_its_process(world: World, run: Run) -> None:
    begun = replace(world.log.facts[0], receipt_id=ReceiptId("other"), shim_pid=99)

    steps = [*world.log.facts, begun]
    assert looked_at(world, steps=steps).verdicts[0].count == 1  # it ran at all
    assert looked_at(world, steps=steps, alive=[99]).verdicts[0].count == 2


# -- 2: order


def test_an_unlock_on_a_completion_that_never_was_is_found(world: World, run: Run) -> None:
    a = task_of(world, run, "a")
    plant(world, run, "b", lambda task: with_entry(task, 0, seen={a.id: "99/never"}))

    report = looked_at(world)
    assert report.broken == (Invariant.ORDER,)
    found = of(report, Invariant.ORDER)
    assert found.evidence == (
        f"unlocked when {a.id} was complete under token 99/never",
        f"{a.id}: it is done under token {a.token}",
    )


def test_a_start_without_an_unlock_is_found(world: World, run: Run) -> None:
    plant(world, run, "a", lambda task: replace(task, history=task.history[1:]))

    report = looked_at(world)

    assert Invariant.ORDER in report.broken
    assert "started without having been unlocked" in of(report, Invariant.ORDER).what


def test_a_step_that_begins_before_its_predecessor_has_ended_is_seen(
    world: World, run: Run
) -> None:
    b = task_id(run.id, "b")
    early = [replace(one, boot=one.boot - 100) if one.task == b else one for one in world.log.facts]

    report = looked_at(world, steps=early)

    assert report.broken == (Invariant.ORDER,)
    assert [one.partition(":")[0] for one in of(report, Invariant.ORDER).evidence] == [
        f"tasks/{task_id(run.id, name).partition('/')[2]}" for name in "ab"
    ]


def test_a_predecessor_that_was_cleared_since_contradicts_nothing(world: World, run: Run) -> None:
    def cleared(task: Task) -> Task:
        token = task.token.left()
        entry = replace(task.history[0], kind=EventKind.CLEARED, token=token, seen={})
        entry = replace(entry, state=TaskState.PENDING, by="operator:anna")
        more: dict[str, Any] = {
            "history": (entry,),
            "token": token,
            "state": TaskState.PENDING,
            "attempt": 0,
        }
        return replace(task, submission=2, **more)

    graph_of(world).runs.write([(run_now(world, run), opened(run_now(world, run)))])
    plant(world, run, "a", cleared)

    assert Invariant.ORDER not in looked_at(world, is_at_rest=False).broken


# -- 3: no loss


def test_a_task_that_is_gone_is_missed(world: World, run: Run) -> None:
    graph = graph_of(world)
    graph.tasks.remove([task_of(world, run, "b")])

    report = looked_at(world)

    assert report.broken == (Invariant.NO_LOSS,)
    assert of(report, Invariant.NO_LOSS).evidence == (
        "published with 2 tasks and 1 dependencies",
        "now there are 1 tasks and 1 dependencies",
    )


def test_a_run_that_ended_before_its_tasks_is_found(world: World) -> None:
    world.is_waking = False
    admitted = admit(world, a_plan([spec("a")]))
    done = replace(run_now(world, admitted), state=RunState.DONE)
    graph_of(world).runs.write([(run_now(world, admitted), done)])

    report = looked_at(world)

    assert report.broken == (Invariant.NO_LOSS,)
    assert "is ready though its run is done" in of(report, Invariant.NO_LOSS).what


def test_what_does_not_come_to_its_end_is_lost_once_nothing_goes_on(world: World) -> None:
    world.is_waking = False
    admitted = admit(world, a_plan([spec("a")]))

    assert looked_at(world, is_at_rest=False).broken == ()
    report = looked_at(world)
    assert report.broken == (Invariant.NO_LOSS,)
    assert of(report, Invariant.NO_LOSS).subject == admitted.id


def test_what_was_accepted_and_never_carried_out_is_lost(world: World, run: Run) -> None:
    graph = graph_of(world)
    (summary,) = graph.admissions.recent(1)
    (admission,) = graph.admissions.read([summary.id])
    assert admission is not None
    graph.admissions.write([(admission, replace(admission, state=AdmissionState.ACCEPTED))])

    assert looked_at(world, is_at_rest=False).broken == ()
    assert of(looked_at(world), Invariant.NO_LOSS).subject == admission.id


# -- 4: once


def test_a_second_accepted_completion_is_found(world: World, run: Run) -> None:
    plant(world, run, "b", lambda task: replace(task, history=(*task.history, task.history[-1])))

    report = looked_at(world, steps=None)

    assert Invariant.ONCE in report.broken
    assert [one.partition(":")[0] for one in of(report, Invariant.ONCE).evidence] == [
        "entry 3",
        "entry 4",
    ]


def test_a_step_that_runs_again_after_its_completion_is_seen(world: World, run: Run) -> None:
    b = task_of(world, run, "b")
    started = at(b, EventKind.STARTED)
    entry = replace(b.history[started], receipt_id=ReceiptId("again"))
    again = [
        replace(one, receipt_id=ReceiptId("again"), boot=one.boot + 50, shim_pid=99)
        for one in world.log.facts[2:]
    ]
    plant(
        world,
        run,
        "b",
        lambda t: replace(t, history=(*t.history[:started], entry, *t.history[started:])),
    )

    report = looked_at(world, steps=[*world.log.facts, *again])

    assert "ran again after it was completed" in of(report, Invariant.ONCE).what


# -- 5: capacity


def test_a_step_that_runs_without_its_lock_is_found(world: World) -> None:
    seen: list[Report] = []

    def freed() -> None:
        (slot,) = graph_of(world).slots.taken()
        graph_of(world).slots.write([(slot, replace(slot, holder=None))])
        seen.append(looked_at(world, is_at_rest=False))

    during(world, "a", freed)
    run = admit(world, a_plan([spec("a", locks=(LockNeed(LOCK),))]))
    world.pass_time(2)

    (report,) = seen
    assert report.broken == (Invariant.CAPACITY,)
    found = of(report, Invariant.CAPACITY)
    assert found.subject == task_id(run.id, "a")
    assert found.evidence[0].startswith("needs 1, holds 0 under token 1/")


def test_two_steps_that_hold_one_lock_at_once_are_seen(world: World, run: Run) -> None:
    b = task_id(run.id, "b")
    last = world.log.facts[-1].boot
    long = [replace(one, boot=last) if one.event == "end" else one for one in world.log.facts]

    report = looked_at(world, steps=long)

    found = of(report, Invariant.CAPACITY)
    assert (found.subject, len(found.evidence)) == (b, 2)


def test_a_unit_that_there_is_twice_is_found(world: World, run: Run) -> None:
    graph_of(world).slots.insert([Slot(id="twice", resource=LOCK, unit=0)])

    assert looked_at(world).broken == (Invariant.CAPACITY,)


# -- 6: residency


def test_an_attempt_outside_the_allowed_regions_is_found(world: World, run: Run) -> None:
    plant(world, run, "a", lambda task: with_entry(task, 2, region="mars"))

    report = looked_at(world, steps=None)

    assert report.broken == (Invariant.RESIDENCY,)
    assert "allowed: eu-west, us-east, ap-south" in of(report, Invariant.RESIDENCY).evidence


def test_a_step_in_another_region_than_started_it_is_seen(world: World, run: Run) -> None:
    moved = [replace(one, region="us-east") for one in world.log.facts]

    report = looked_at(world, steps=moved)

    assert report.broken == (Invariant.RESIDENCY,)
    assert report.violations == 2


def test_a_task_that_no_entry_moved_is_found(world: World, run: Run) -> None:
    plant(world, run, "b", lambda task: replace(task, region="us-east"))

    assert "no entry moved it to" in of(looked_at(world), Invariant.RESIDENCY).what


# -- 7: fencing


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        (EventKind.ENDED, {"token": Token(1, ClaimId("old"))}),
        (EventKind.ENDED, {"receipt_id": ReceiptId("stranger")}),
        (EventKind.STARTED, {"token": Token(7, ClaimId("new"))}),
        (EventKind.CLAIMED, {"token": Token(5, ClaimId("leap"))}),
    ],
)
def test_a_write_under_another_token_than_the_current_one_is_found(
    world: World, run: Run, kind: EventKind, changed: dict[str, Any]
) -> None:
    plant(world, run, "b", lambda task: with_entry(task, at(task, kind), **changed))

    report = looked_at(world, steps=None)

    assert report.broken == (Invariant.FENCING,)
    told = " ".join(of(report, Invariant.FENCING).evidence)
    assert f": {kind} by " in told


def test_a_change_that_left_no_entry_is_found(world: World, run: Run) -> None:
    plant(world, run, "b", lambda task: replace(task, token=task.token.left()))

    assert looked_at(world).broken == (Invariant.FENCING,)


def test_what_a_fenced_incarnation_goes_on_holding_is_found(world: World) -> None:
    seen: list[Report] = []
    fence = Fence(kind=FenceKind.EXPIRED, by="somebody", at=AT)

    def fence_it() -> None:
        worker = home(world).workers[0].keeper.instance.id
        store = graph_of(world).instances
        (found,) = store.read([worker])
        assert found is not None
        store.write([(found, fenced(found, found.beat, fence))])
        seen.append(looked_at(world))
        seen.append(looked_at(world, is_at_rest=False))

    during(world, "a", fence_it)
    admit(world, a_plan([spec("a")]))
    world.fast_path()

    at_rest, at_work = seen
    assert "lease is over" in of(at_rest, Invariant.FENCING).what
    assert (at_work.broken, at_work.unsettled) == ((), 1)
