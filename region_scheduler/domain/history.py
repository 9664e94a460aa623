"""A task after a transition, with the entry that the same write adds to its history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from region_scheduler.domain.ids import NO_RECEIPT, TaskId
from region_scheduler.domain.states import TaskState, move
from region_scheduler.domain.task import EventKind, HistoryEntry, Task


@dataclass(frozen=True, slots=True)
class Stamp:
    """Who writes a transition, and when by their own wall clock (display only)."""

    by: str
    at: datetime


def moved(
    task: Task,
    target: TaskState,
    kind: EventKind,
    stamp: Stamp,
    *,
    seen: Mapping[TaskId, str] | None = None,
    detail: str = "",
    **changes: Any,
) -> Task:
    """Return `task` in `target`, with its entry in the history."""
    return recorded(
        task, kind, stamp, seen=seen, detail=detail, state=move(task.state, target), **changes
    )


def recorded(
    task: Task,
    kind: EventKind,
    stamp: Stamp,
    *,
    seen: Mapping[TaskId, str] | None = None,
    detail: str = "",
    **changes: Any,
) -> Task:
    """Return `task` with `changes` and their entry, its state staying unless it is among them."""
    holder = changes.get("holder") or task.holder
    token = task.token if kind is EventKind.ENDED else changes.get("token", task.token)
    entry = HistoryEntry(
        kind=kind,
        at=stamp.at,
        by=stamp.by,
        region=changes.get("region", task.region),
        token=token,
        state=changes.get("state", task.state),
        receipt_id=holder.receipt_id if holder else NO_RECEIPT,
        attempt=changes.get("attempt", task.attempt),
        seen=seen or {},
        detail=detail,
    )
    return replace(task, seq=task.seq + 1, history=(*task.history, entry), **changes)
