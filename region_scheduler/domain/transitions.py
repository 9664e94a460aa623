"""Every change that a task can make, as pure functions from a task to the task after it.

Each returns the very same object when there is nothing (more) to do, which is how a repeated write
recognises its own success, and raises when the move is not the caller's to make. The commit gate
writes what they return; nobody else writes tasks. Rules: docs/protocol.md sections 2, 3, 5 and 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from region_scheduler.domain.ends import after_end, after_loss
from region_scheduler.domain.history import Stamp as Stamp  # noqa: PLC0414 - for all who call these
from region_scheduler.domain.history import moved, recorded
from region_scheduler.domain.ids import ClaimId, Incarnation, ReceiptId, TaskId
from region_scheduler.domain.states import CLAIMABLE, FINAL, TaskState
from region_scheduler.domain.task import (
    EventKind,
    Exit,
    Holder,
    Json,
    StopRequest,
    Task,
    Token,
    Verdict,
)
from region_scheduler.errors import Fenced, LostRace

LOCK_LOST = "lock "
"""How the reason of a requeue begins when another task holds a lock; the lock's name follows."""

CANCEL = "cancel"
"""The reason of a stop request that ends the task for good; after any other it goes back."""

CLEAR = "clear"
"""The reason of a stop request after which the task waits anew, in its next submission."""

CONDITION = "condition"
"""The reason of a task that was skipped because its condition is false."""

_BLANK: dict[str, Any] = {"holder": None, "stop_requested": None}
_FRESH: dict[str, Any] = dict.fromkeys(("retries_used", "losses", "inspections"), 0)
_FRESH |= {"retry_after_s": 0.0, "passport": ""}


def unlock(
    task: Task, seen: Mapping[TaskId, str], stamp: Stamp, *, is_doubtful: bool = False
) -> Task:
    """Make a pending task ready, its predecessors being satisfied with the tokens `seen`.

    Only a state other than pending ends the attempt to unlock; the caller has compared
    `len(seen)` with `task.needs`. With a doubt that an earlier run left, it looks first.
    """
    if task.state is not TaskState.PENDING:
        return task
    if len(seen) != task.needs:
        raise LostRace(thing=f"unlock of {task.id}", winner="predecessors not yet satisfied")
    return moved(
        task,
        TaskState.READY,
        EventKind.UNLOCKED,
        stamp,
        seen=dict(seen),
        reason="",
        is_inspect=task.is_inspect or is_doubtful,
    )


def skip(task: Task, seen: Mapping[TaskId, str], stamp: Stamp, detail: str = "") -> Task:
    """Skip a pending task whose condition over its satisfied predecessors is false.

    Args:
        task: The task; only a state other than pending ends the attempt.
        seen: Completion token of each predecessor, as for `unlock`.
        stamp: The writer.
        detail: Which assertions do not hold, for people.
    """
    if task.state is not TaskState.PENDING:
        return task
    if len(seen) != task.needs:
        raise LostRace(thing=f"unlock of {task.id}", winner="predecessors not yet satisfied")
    return moved(
        task,
        TaskState.SKIPPED,
        EventKind.UNLOCKED,
        stamp,
        seen=dict(seen),
        detail=detail,
        reason=CONDITION,
    )


def claim(task: Task, claim_id: ClaimId, scheduler: Incarnation, region: str, at: datetime) -> Task:
    """Take a ready (or doubtful) task of `region` for `scheduler`; costs no attempt.

    Raises:
        LostRace: Another holds it, or it is no longer claimable here.
    """
    if task.token.claim_id == claim_id:
        return task
    if task.state not in CLAIMABLE or task.region != region:
        raise LostRace(thing=f"task {task.id}", winner=_winner(task))
    return moved(
        task,
        TaskState.CLAIMED,
        EventKind.CLAIMED,
        Stamp(scheduler, at),
        token=task.token.claimed(claim_id),
        holder=Holder(scheduler),
        is_inspect=task.is_inspect or task.state is TaskState.IN_DOUBT,
        retry_after_s=0.0,
        reason="",
    )


def start(task: Task, token: Token, holder: Holder, at: datetime) -> Task:
    """Begin an attempt of a claimed task under the receipt of `holder`.

    Raises:
        Fenced: The token is over, or another receipt started it.
    """
    if task.state is TaskState.RUNNING and task.holder == holder:
        return task
    _require(task, token, TaskState.CLAIMED)
    return moved(
        task,
        TaskState.RUNNING,
        EventKind.STARTED,
        Stamp(holder.incarnation, at),
        holder=holder,
        attempt=task.attempt + 1,
        inspections=task.inspections + (1 if task.is_inspect else 0),
        slots_lost=0,
    )


def record_verdict(
    task: Task, token: Token, holder: Holder, verdict: Verdict, at: datetime
) -> Task:
    """Record what an inspecting attempt found; `not-done` and `partly` let it go on.

    Raises:
        Fenced: The attempt is no longer the holder.
    """
    if not task.is_inspect and task.holder == holder:
        return task
    _require(task, token, TaskState.RUNNING, holder.receipt_id)
    return recorded(
        task, EventKind.VERDICT, Stamp(holder.incarnation, at), detail=verdict, is_inspect=False
    )


def complete(task: Task, token: Token, holder: Holder, ended: Exit, at: datetime) -> Task:
    """End an attempt as its runner reported.

    A completion that finds its own receipt in the history is done already.

    Raises:
        Fenced: The attempt lost its token; its result counts for nothing.
    """
    if _is_ended_by(task, holder.receipt_id):
        return task
    _require(task, token, TaskState.RUNNING, holder.receipt_id)
    target, counted = after_end(task, ended)
    if _is_wanted(task, CLEAR):
        # Whatever the attempt came to, it is to be done again; only a doubt is worth keeping.
        doubt = target not in FINAL and counted.get("is_inspect", task.is_inspect)
        return _submitted_anew(
            task, Stamp(holder.incarnation, at), is_inspect=doubt, detail=ended.kind
        )
    if target not in FINAL and _is_wanted(task, CANCEL):
        # The wish would be forgotten with the holder; the doubt, if there is one, stays recorded.
        doubt = counted.get("is_inspect", task.is_inspect)
        target, counted = TaskState.CANCELLED, {"is_inspect": doubt}
    common: dict[str, Any] = {
        **counted,
        "holder": None,
        "stop_requested": None,
        "log_tail": ended.log_tail,
        "log_ref": ended.log_ref,
        "reason": ended.message,
        "token": task.token if target in FINAL else task.token.left(),
    }
    if target in {TaskState.DONE, TaskState.SKIPPED}:
        common |= {"outputs": ended.outputs, "is_inspect": False}
    if target is TaskState.SKIPPED:
        common["reason"] = "unchanged"
    return moved(
        task,
        target,
        EventKind.ENDED,
        Stamp(holder.incarnation, at),
        detail=ended.kind,
        **common,
    )


def requeue(task: Task, token: Token, reason: str, stamp: Stamp) -> Task:
    """Give a claimed task back, costing no retry: lost slot, dispatch time-out, hand-back, fence.

    Raises:
        Fenced: The token has moved, or the task was started meanwhile.
    """
    if task.token == token.left():
        return task
    _require(task, token, TaskState.CLAIMED)
    target = TaskState.IN_DOUBT if task.is_inspect else TaskState.READY
    lost = 1 if reason.startswith(LOCK_LOST) else 0
    return moved(
        _without_futile_claims(task),
        target,
        EventKind.REQUEUED,
        stamp,
        detail=reason,
        token=task.token.left(),
        reason=reason,
        slots_lost=task.slots_lost + lost,
        **_BLANK,
    )


def lose(task: Task, token: Token, holder: Holder | None, reason: str, stamp: Stamp) -> Task:
    """Take a task from a holder that is gone: a claimed one goes back, a running one by `on_loss`.

    Only an observer whose count has run out may call this for a running task.

    Args:
        task: The task.
        token: As the observer saw it.
        holder: Who is gone. Under the very same token a living worker may have started the task
            since: then it is that worker's.
        reason: For people.
        stamp: The observer.

    Raises:
        Fenced: The token has moved already, or another holds the task by now.
    """
    if task.token == token and task.holder != holder:
        raise Fenced(held=f"{token} of {holder}", current=f"{task.token} of {task.holder}")
    if task.state is TaskState.CLAIMED:
        return requeue(task, token, reason, stamp)
    _require(task, token, TaskState.RUNNING)
    target, counted = after_loss(task)
    if _is_wanted(task, CLEAR):
        return _submitted_anew(task, stamp, is_inspect=counted["is_inspect"], detail=reason)
    if _is_wanted(task, CANCEL):
        target, counted = TaskState.CANCELLED, counted | {"is_inspect": True}
    return moved(
        task,
        target,
        EventKind.LOST,
        stamp,
        detail=reason,
        token=task.token if target in FINAL else task.token.left(),
        reason=reason,
        **counted,
        **_BLANK,
    )


def request_stop(task: Task, reason: str, stamp: Stamp) -> Task:
    """Ask the holder of a running task to stop; the first request stands."""
    if task.state is not TaskState.RUNNING or task.stop_requested is not None:
        return task
    wish = StopRequest(reason=reason, by=stamp.by, at=stamp.at)
    return replace(task, seq=task.seq + 1, stop_requested=wish)


def answer(
    task: Task, is_yes: bool, outputs: Mapping[str, Json], detail: str, stamp: Stamp
) -> Task:
    """Move an awaiting task by a decision or event that was recorded before.

    Args:
        task: The task; one that no longer waits is returned as it is.
        is_yes: Approved or arrived, else refused.
        outputs: What the event brings for dependents.
        detail: By whom, for people.
        stamp: The writer.
    """
    if task.state is not TaskState.AWAITING:
        return task
    target = TaskState.DONE if is_yes else TaskState.FAILED
    return moved(
        task,
        target,
        EventKind.ANSWERED,
        stamp,
        detail=detail,
        reason=detail,
        outputs=outputs,
        is_inspect=task.is_inspect and not is_yes,
    )


def resume(task: Task, stamp: Stamp) -> Task:
    """Give a failed task a fresh budget and make it ready; a cancelled one waits anew."""
    if task.state is TaskState.FAILED:
        target = TaskState.READY  # a recorded doubt stays: `is_inspect` makes it look first
    elif task.state is TaskState.CANCELLED:
        target = TaskState.PENDING
    else:
        return task
    return moved(
        task,
        target,
        EventKind.RESUMED,
        stamp,
        token=task.token.left(),
        reason="",
        **_FRESH,
        **_BLANK,
    )


def clear(task: Task, submission: int, stamp: Stamp) -> Task:
    """Let a task be done again: it waits anew, in its next submission; a running one is stopped.

    Args:
        task: The task; one of a later submission was cleared already.
        submission: The one that is to be repeated.
        stamp: The writer.
    """
    if task.submission != submission:
        return task
    if task.state is TaskState.PENDING:
        # Its revision moves, so that an unlock that read it before has to read again.
        return replace(task, seq=task.seq + 1)
    if task.state is TaskState.RUNNING:
        return request_stop(task, CLEAR, stamp)
    doubt = task.state is not TaskState.DONE and (
        task.is_inspect or task.state is TaskState.IN_DOUBT
    )
    return _submitted_anew(task, stamp, is_inspect=doubt, detail=task.state)


def reprioritise(task: Task, priority: int) -> Task:
    """Give a task that has not ended another priority; it counts from the next promotion on."""
    if task.state in FINAL or task.priority_now == priority:
        return task
    return replace(task, seq=task.seq + 1, priority=priority)


def _is_wanted(task: Task, reason: str) -> bool:
    return task.stop_requested is not None and task.stop_requested.reason == reason


def _require(
    task: Task, token: Token, state: TaskState, receipt_id: ReceiptId | None = None
) -> None:
    is_holder = receipt_id is None or (
        task.holder is not None and task.holder.receipt_id == receipt_id
    )
    if task.token != token or task.state is not state or not is_holder:
        raise Fenced(held=str(token), current=f"{task.token} ({task.state})")


def _is_ended_by(task: Task, receipt_id: ReceiptId) -> bool:
    return any(
        entry.kind in {EventKind.ENDED, EventKind.CLEARED} and entry.receipt_id == receipt_id
        for entry in task.history
    )


def _without_futile_claims(task: Task) -> Task:
    """Drop an earlier requeue and the claim after it, so that contention cannot grow a document."""
    kinds = [entry.kind for entry in task.history[-2:]]
    if kinds == [EventKind.REQUEUED, EventKind.CLAIMED]:
        return replace(task, history=task.history[:-2])
    return task


def _winner(task: Task) -> str:
    holder = task.holder.incarnation if task.holder else "nobody"
    return f"{holder} ({task.state} in {task.region})"


def _submitted_anew(task: Task, stamp: Stamp, *, is_inspect: bool, detail: str) -> Task:
    """Return the task as it waits in its next submission, which begins its history with this."""
    return moved(
        replace(task, history=(), attempt=0),
        TaskState.PENDING,
        EventKind.CLEARED,
        stamp,
        detail=detail,
        token=task.token.left(),
        submission=task.submission + 1,
        is_inspect=is_inspect,
        reason="",
        outputs={},
        log_tail="",
        log_ref="",
        slots_lost=0,
        **_FRESH,
        **_BLANK,
    )
