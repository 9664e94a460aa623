"""Where the end of an attempt leads: by how it ended, what was lost, and what limits are left.

Pure tables behind `transitions.complete` and `transitions.lose`.
"""

from __future__ import annotations

from typing import Any

from region_scheduler.domain.states import TaskState
from region_scheduler.domain.task import EventKind, Exit, ExitKind, OnLoss, Task


def after_end(task: Task, ended: Exit) -> tuple[TaskState, dict[str, Any]]:
    """Return the state that an ended attempt leads to, and the counters that it moves."""
    back = TaskState.IN_DOUBT if task.is_inspect else TaskState.READY
    match ended.kind:
        case ExitKind.OK:
            return TaskState.DONE, {}
        case ExitKind.UNCHANGED:
            return TaskState.SKIPPED, {}
        case ExitKind.RETRYABLE | ExitKind.CAPPED:
            if task.retries_used >= task.spec.retry.limit:
                return TaskState.FAILED, {"retries_used": task.retries_used + 1}
            return back, {
                "retries_used": task.retries_used + 1,
                "retry_after_s": task.spec.retry.delay_s,
            }
        case ExitKind.AWAIT:
            return TaskState.AWAITING, {}
        case ExitKind.IN_DOUBT:
            return _inspected_or_asked(task), {"is_inspect": True}
        case ExitKind.FENCED:
            return _by_on_loss(task), {"is_inspect": _may_have_acted(task)}
        case ExitKind.HAND_BACK:
            return back, {}
        case ExitKind.CANCELLED:
            return TaskState.CANCELLED, {}
        case ExitKind.PERMANENT:
            return TaskState.FAILED, {}


def after_loss(task: Task) -> tuple[TaskState, dict[str, Any]]:
    """Return the state that the loss of a running task's holder leads to, and what it counts."""
    counted: dict[str, Any] = {"losses": task.losses + 1, "is_inspect": _may_have_acted(task)}
    if task.losses >= task.spec.retry.losses_limit:
        return TaskState.FAILED, counted
    return _by_on_loss(task), counted


def why_failed(task: Task) -> str:
    """Return why a failed task is tried no more, in one line."""
    last = task.history[-1] if task.history else None
    if last is not None and last.kind is EventKind.LOST:
        return f"its holder was lost {task.losses} times: {task.reason}"
    if last is not None and last.detail in {ExitKind.RETRYABLE, ExitKind.CAPPED}:
        return f"{task.retries_used} attempts failed, the last {last.detail}: {task.reason}"
    return task.reason


def _by_on_loss(task: Task) -> TaskState:
    """Return where a running task goes whose step was ended with its lease."""
    if task.spec.on_loss is OnLoss.HOLD:
        return TaskState.AWAITING
    if task.is_inspect or task.spec.on_loss is OnLoss.INSPECT:
        return _inspected_or_asked(task)
    return TaskState.READY


def _inspected_or_asked(task: Task) -> TaskState:
    """Return where a doubt goes: to the next inspection, or to a person after too many."""
    is_tired = task.inspections >= task.spec.retry.inspections_limit
    return TaskState.AWAITING if is_tired else TaskState.IN_DOUBT


def _may_have_acted(task: Task) -> bool:
    """Say whether a holder that was lost or broken off leaves a doubt."""
    return task.is_inspect or task.spec.on_loss is not OnLoss.RETRY
