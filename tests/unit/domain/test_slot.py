"""Slots: who gets one, who frees one, and whose nobody's is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from region_scheduler.domain.ids import ClaimId, TaskId, slot_key
from region_scheduler.domain.slot import (
    Reservation,
    Slot,
    SlotHolder,
    assign,
    is_orphan,
    is_reservation_void,
    release,
    reserve,
)
from region_scheduler.domain.states import TaskState
from region_scheduler.domain.task import Task, Token, WhenHolderLost
from region_scheduler.domain.transitions import claim
from region_scheduler.errors import LostRace
from tests.unit.domain.samples import AT, IN_STATE, SCHEDULER, claimed, in_doubt, ready, running

A, B = TaskId("tasks/a"), TaskId("tasks/b")
T1, T2 = Token(1, ClaimId("c1")), Token(2, ClaimId("c2"))
FREE = Slot(id=slot_key("acme/lock", 0), resource="acme/lock", unit=0)
HELD_BY_A = assign(FREE, A, T2)
EARLY = Reservation(A, 3, "2026-01-01T00:00:00")
LATE = Reservation(B, 1, "2026-01-01T00:00:01")


def held_for(task: Task, number: int | None = None, keep: bool = False) -> Slot:
    token = task.token if number is None else Token(number, ClaimId("c"))
    lost = WhenHolderLost.KEEP if keep else WhenHolderLost.FREE
    return replace(FREE, holder=SlotHolder(task.id, token), when_holder_lost=lost)


def test_a_free_slot_is_taken() -> None:
    assert HELD_BY_A.holder == SlotHolder(A, T2)


def test_taking_it_again_changes_nothing() -> None:
    assert assign(HELD_BY_A, A, T2) is HELD_BY_A


def test_a_task_takes_over_from_its_own_older_token_only() -> None:
    older = assign(FREE, A, T1)

    assert assign(older, A, T2).holder == SlotHolder(A, T2)
    with pytest.raises(LostRace):
        assign(HELD_BY_A, A, T1)
    with pytest.raises(LostRace):
        assign(HELD_BY_A, A, Token(2, ClaimId("other")))


def test_another_task_loses_and_learns_to_whom() -> None:
    with pytest.raises(LostRace) as lost:
        assign(HELD_BY_A, B, T2)
    assert lost.value.winner == A


def test_a_retiring_slot_is_given_to_nobody() -> None:
    with pytest.raises(LostRace):
        assign(replace(FREE, is_retiring=True), A, T1)
    with pytest.raises(LostRace):
        assign(replace(assign(FREE, A, T1), is_retiring=True), A, T2)


def test_a_retiring_slot_stays_with_its_holder() -> None:
    retiring = replace(HELD_BY_A, is_retiring=True)

    assert assign(retiring, A, T2) is retiring
    assert release(retiring, SlotHolder(A, T2)).holder is None


def test_only_its_own_holder_frees_it() -> None:
    assert release(HELD_BY_A, SlotHolder(A, T2)).holder is None
    for stranger in (SlotHolder(A, T1), SlotHolder(B, T2)):
        assert release(HELD_BY_A, stranger) is HELD_BY_A
    assert release(FREE, SlotHolder(A, T2)) is FREE


# ------------------------------------------------------------------------------- reservations


def test_a_reserved_slot_waits_for_its_owner_and_is_used_up() -> None:
    reserved = reserve(FREE, EARLY)

    with pytest.raises(LostRace):
        assign(reserved, B, T1)
    taken = assign(reserved, A, T1)
    assert (taken.holder, taken.reservation) == (SlotHolder(A, T1), None)


def test_the_older_reservation_stands() -> None:
    assert reserve(reserve(FREE, LATE), EARLY).reservation == EARLY
    reserved = reserve(FREE, EARLY)
    assert reserve(reserved, LATE) is reserved
    assert reserve(reserved, EARLY) is reserved


def test_equally_old_ones_are_settled_by_key() -> None:
    twin = replace(LATE, ready_at=EARLY.ready_at)

    assert reserve(reserve(FREE, twin), EARLY).reservation == EARLY


def test_a_held_slot_can_be_reserved_for_its_release() -> None:
    reserved = reserve(HELD_BY_A, LATE)

    assert release(reserved, SlotHolder(A, T2)).reservation == LATE


def test_a_retiring_slot_takes_no_reservation() -> None:
    retiring = replace(HELD_BY_A, is_retiring=True)

    assert reserve(retiring, LATE) is retiring


@pytest.mark.parametrize("state", list(TaskState))
def test_a_reservation_is_void_unless_its_owner_can_use_it(state: TaskState) -> None:
    can_use = state in {TaskState.READY, TaskState.CLAIMED}

    assert is_reservation_void(reserve(FREE, EARLY), IN_STATE[state]()) is not can_use


def test_a_reservation_of_nobody_is_void_and_none_is_not() -> None:
    assert is_reservation_void(reserve(FREE, EARLY), None)
    assert not is_reservation_void(FREE, None)


# ------------------------------------------------------------------------------------ orphans


def test_a_free_slot_is_no_orphan() -> None:
    assert not is_orphan(FREE, None)


def test_a_slot_of_no_task_is_one() -> None:
    assert is_orphan(HELD_BY_A, None)


@pytest.mark.parametrize("state", list(TaskState))
def test_a_slot_at_the_tokens_number_is_one_only_when_the_task_has_ended(state: TaskState) -> None:
    task = IN_STATE[state]()
    has_ended = state in {TaskState.DONE, TaskState.SKIPPED, TaskState.FAILED}

    if has_ended or state in {TaskState.CLAIMED, TaskState.RUNNING}:
        assert is_orphan(held_for(task), task) is has_ended
    # An older number: the holder was left since.
    older = held_for(task, number=task.token.number - 1)
    assert is_orphan(older, task)
    # A newer one: this view of the task is stale.
    assert not is_orphan(held_for(task, number=task.token.number + 1), task)


@pytest.mark.parametrize("keep", [True, False])
def test_a_doubt_keeps_what_it_is_told_to_keep(keep: bool) -> None:
    task = running()
    doubt = in_doubt()
    assert is_orphan(held_for(doubt, task.token.number, keep), doubt) is not keep

    inspected = claim(doubt, ClaimId("claim-2"), SCHEDULER, "eu", AT)
    assert is_orphan(held_for(inspected, task.token.number, keep), inspected) is not keep


@pytest.mark.parametrize("make", [ready, claimed], ids=["ready", "claimed"])
def test_keep_does_not_outlast_the_doubt(make: object) -> None:
    task = ready() if make is ready else claimed()

    assert is_orphan(held_for(task, task.token.number - 1, keep=True), task)


def test_keys_sort_by_unit() -> None:
    keys = [slot_key("acme/lock", unit) for unit in (0, 1, 9, 10, 99, 100, 1000)]

    assert keys == sorted(keys)
    assert len({key.partition(".")[0] for key in keys}) == 1
