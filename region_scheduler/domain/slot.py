"""Slots: one document for every unit of a scarce thing (docs/protocol.md section 4)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from region_scheduler.domain.ids import TaskId
from region_scheduler.domain.states import FINAL, TaskState
from region_scheduler.domain.task import SCHEMA, Task, Token, WhenHolderLost
from region_scheduler.errors import LostRace

CAPACITY_MAX: Final = 10_000
"""Most units of one resource: each is a document."""


@dataclass(frozen=True, slots=True)
class SlotHolder:
    """The task that holds a unit, under the token of its claim."""

    task: TaskId
    token: Token


@dataclass(frozen=True, slots=True)
class Reservation:
    """A task's place at the head of the queue for a slot that it lost too often.

    Attributes:
        ready_at: When the task first became ready, ISO text; the older reservation stands.
    """

    task: TaskId
    token_number: int
    ready_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One unit of a resource, free or held.

    Attributes:
        id: Key; see `ids.slot_key`.
        resource: Name with scope, e.g. `acme/aws:organizations`.
        is_retiring: The capacity shrank while it was held; it goes when it is released.
    """

    id: str
    rev: str = ""
    schema: int = SCHEMA
    resource: str
    unit: int
    when_holder_lost: WhenHolderLost = WhenHolderLost.FREE
    holder: SlotHolder | None = None
    reservation: Reservation | None = None
    is_retiring: bool = False


def assign(slot: Slot, task: TaskId, token: Token) -> Slot:
    """Give the slot to (task, token); a lower token of the same task gives way.

    Raises:
        LostRace: Another task holds or has reserved it, or it is retiring.
    """
    if slot.holder == SlotHolder(task, token):
        return slot
    if slot.is_retiring:
        raise LostRace(thing=f"slot {slot.resource}", winner="nobody: it is retiring")
    if slot.holder is not None:
        is_own_older = slot.holder.task == task and slot.holder.token.number < token.number
        if not is_own_older:
            raise LostRace(thing=f"slot {slot.resource}", winner=slot.holder.task)
    elif slot.reservation is not None and slot.reservation.task != task:
        raise LostRace(thing=f"slot {slot.resource}", winner=slot.reservation.task)
    return replace(slot, holder=SlotHolder(task, token), reservation=None)


def release(slot: Slot, holder: SlotHolder) -> Slot:
    """Free the slot if exactly `holder` has it; else it is not ours to free."""
    return replace(slot, holder=None) if slot.holder == holder else slot


def retired(slot: Slot) -> Slot:
    """Take the slot out of use: at once if it is free, else when it is released."""
    return slot if slot.is_retiring else replace(slot, is_retiring=True, reservation=None)


def opened(slot: Slot) -> Slot:
    """Let a retired slot be taken again."""
    return replace(slot, is_retiring=False) if slot.is_retiring else slot


def reserve(slot: Slot, wanted: Reservation) -> Slot:
    """Keep the slot for a task that lost it too often; the older reservation stands."""
    if slot.is_retiring:
        return slot
    current = slot.reservation
    if current is not None and (current.ready_at, current.task) <= (wanted.ready_at, wanted.task):
        return slot
    return replace(slot, reservation=wanted)


def is_orphan(slot: Slot, task: Task | None) -> bool:
    """Say whether a held slot belongs to nobody any more, given a leader read of its task.

    A slot ahead of the task seen is a stale view, not an orphan. A `keep` slot stays while its task
    is in doubt, is being inspected, or waits for a verdict.
    """
    if slot.holder is None:
        return False
    if task is None:
        return True
    if slot.when_holder_lost is WhenHolderLost.KEEP and _is_doubtful(task):
        return False
    is_ended = task.state in FINAL and task.token == slot.holder.token
    return is_ended or task.token.number > slot.holder.token.number


def is_reservation_void(slot: Slot, task: Task | None) -> bool:
    """Say whether the reservation's owner can no longer make use of it."""
    if slot.reservation is None:
        return False
    return task is None or task.state not in {TaskState.READY, TaskState.CLAIMED}


def _is_doubtful(task: Task) -> bool:
    return task.state is TaskState.IN_DOUBT or (
        task.is_inspect and task.state in {TaskState.CLAIMED, TaskState.RUNNING, TaskState.AWAITING}
    )
