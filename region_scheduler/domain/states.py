"""Task and run states, and the only legal moves between them (docs/protocol.md section 2)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from region_scheduler.errors import IllegalMove


class TaskState(StrEnum):
    """Where a task is; why it waits is a reason, never a state."""

    PENDING = "pending"
    READY = "ready"
    CLAIMED = "claimed"
    RUNNING = "running"
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"
    CANCELLED = "cancelled"
    AWAITING = "awaiting"
    IN_DOUBT = "in_doubt"


SATISFYING: Final = frozenset({TaskState.DONE, TaskState.SKIPPED})
FINAL: Final = SATISFYING | {TaskState.FAILED, TaskState.CANCELLED}
HELD: Final = frozenset({TaskState.CLAIMED, TaskState.RUNNING})
CLAIMABLE: Final = frozenset({TaskState.READY, TaskState.IN_DOUBT})
ACTIVE: Final = HELD | CLAIMABLE | {TaskState.AWAITING}

_S = TaskState
_MOVES: Final[dict[TaskState, frozenset[TaskState]]] = {
    _S.PENDING: frozenset({_S.READY, _S.SKIPPED, _S.CANCELLED}),
    _S.READY: frozenset({_S.CLAIMED, _S.PENDING, _S.SKIPPED, _S.CANCELLED}),
    _S.CLAIMED: frozenset({_S.RUNNING, _S.READY, _S.IN_DOUBT, _S.PENDING, _S.CANCELLED}),
    _S.RUNNING: frozenset(
        {
            _S.DONE,
            _S.SKIPPED,
            _S.FAILED,
            _S.CANCELLED,
            _S.READY,
            _S.IN_DOUBT,
            _S.AWAITING,
            _S.PENDING,
        }
    ),
    _S.IN_DOUBT: frozenset({_S.CLAIMED, _S.AWAITING, _S.PENDING, _S.CANCELLED}),
    _S.AWAITING: frozenset({_S.DONE, _S.READY, _S.IN_DOUBT, _S.FAILED, _S.CANCELLED, _S.PENDING}),
    _S.DONE: frozenset({_S.PENDING}),
    _S.SKIPPED: frozenset({_S.PENDING}),
    _S.FAILED: frozenset({_S.READY, _S.PENDING}),
    _S.CANCELLED: frozenset({_S.READY, _S.PENDING}),
}


def move(current: TaskState, target: TaskState) -> TaskState:
    """Return `target`, or refuse if no such move exists.

    Raises:
        IllegalMove: The table has no edge from `current` to `target`.
    """
    if target not in _MOVES[current]:
        raise IllegalMove(thing="task", current=current.value, target=target.value)
    return target


class RunState(StrEnum):
    """Where a run is; derived from its tasks, the end written once a round.

    `admitted` means that a further round is being opened: its tasks are not all moved yet, so that
    what they look like says nothing about an end.
    """

    ADMITTED = "admitted"
    RUNNING = "running"
    CANCELLING = "cancelling"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    PLANNED = "planned"
    REFUSED = "refused"


RUN_ENDED: Final = frozenset(
    {RunState.DONE, RunState.FAILED, RunState.CANCELLED, RunState.PLANNED, RunState.REFUSED}
)
RUN_COMPLETE: Final = frozenset({RunState.DONE, RunState.PLANNED})
"""Ended with every task done or skipped: nothing is left to resume."""
