"""What becomes of a task that is not wanted any more (docs/protocol.md, section 7)."""

from __future__ import annotations

from region_scheduler.domain.history import Stamp, moved, recorded
from region_scheduler.domain.states import FINAL, SATISFYING, TaskState
from region_scheduler.domain.task import EventKind, Task
from region_scheduler.domain.transitions import CANCEL, request_stop


def cancel(task: Task, reason: str, stamp: Stamp) -> Task:
    """Cancel a task that nobody runs; a running one is asked to stop; a final one stays.

    A doubt stays recorded: an attempt after a resume looks first.
    """
    if task.state in FINAL:
        return task
    if task.state is TaskState.RUNNING:
        return request_stop(task, CANCEL, stamp)
    return moved(
        task,
        TaskState.CANCELLED,
        EventKind.CANCELLED,
        stamp,
        detail=reason,
        reason=reason,
        token=task.token.left(),
        is_inspect=task.is_inspect or task.state is TaskState.IN_DOUBT,
        holder=None,
        stop_requested=None,
    )


def cancel_with_run(task: Task, reason: str, stamp: Stamp) -> Task:
    """Cancel a task because its whole run is; one that has failed stays failed, and is closed.

    Whoever had begun to open a round before the run was cancelled moves a failed task only by the
    token that it saw. That token is over now, so a late write of theirs changes nothing.
    """
    if task.state not in FINAL:
        return cancel(task, reason, stamp)
    is_closed = bool(task.history) and task.history[-1].kind is EventKind.CANCELLED
    if task.state in SATISFYING or is_closed:
        return task
    return recorded(task, EventKind.CANCELLED, stamp, detail=reason, token=task.token.left())
