"""Tasks to begin with, in every state, reached by the moves that lead there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from region_scheduler.domain.cancel import cancel
from region_scheduler.domain.ids import (
    ClaimId,
    Incarnation,
    ReceiptId,
    RunId,
    TaskId,
    task_id,
)
from region_scheduler.domain.states import TaskState
from region_scheduler.domain.task import (
    Exit,
    ExitKind,
    Holder,
    OnLoss,
    RetryPolicy,
    Task,
    TaskSpec,
    Token,
)
from region_scheduler.domain.transitions import (
    Stamp,
    claim,
    complete,
    lose,
    start,
    unlock,
)

AT: Final = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LATER: Final = AT + timedelta(seconds=5)
RUN: Final = RunId("run1")
SCHEDULER: Final = Incarnation("scheduler-eu:1")
WORKER: Final = Holder(Incarnation("worker-eu:1"), ReceiptId("receipt-1"))
OTHER: Final = Holder(Incarnation("worker-eu:2"), ReceiptId("receipt-2"))
CLAIM: Final = ClaimId("claim-1")
STAMP: Final = Stamp("somebody", AT)
PREDECESSOR: Final = TaskId("tasks/run1.before")


def a_spec(name: str = "network", **more: Any) -> TaskSpec:
    given: dict[str, Any] = {
        "runner": "simulate",
        "region": "eu",
        "allowed_regions": ("eu", "us"),
        "retry": RetryPolicy(limit=2, delay_s=30.0, losses_limit=2, inspections_limit=2),
    }
    return TaskSpec(name=name, **{**given, **more})


def a_task(name: str = "network", run: RunId = RUN, *, needs: int = 1, **more: Any) -> Task:
    spec = more.pop("spec", None) or a_spec(name)
    given: dict[str, Any] = {"tenant": "acme", "region": "eu"}
    return Task(id=task_id(run, name), run=run, spec=spec, needs=needs, **{**given, **more})


def ready(**more: Any) -> Task:
    return unlock(a_task(**more), {PREDECESSOR: "3/abc"}, STAMP)


def claimed(**more: Any) -> Task:
    return claim(ready(**more), CLAIM, SCHEDULER, "eu", AT)


def running(**more: Any) -> Task:
    task = claimed(**more)
    return start(task, task.token, WORKER, AT)


def ended(kind: ExitKind, **more: Any) -> Task:
    task = running(**more)
    return complete(task, task.token, WORKER, Exit(kind=kind, message="so it ended"), AT)


def in_doubt(**more: Any) -> Task:
    task = running(**{"spec": a_spec(on_loss=OnLoss.INSPECT), **more})
    return lose(task, task.token, task.holder, "lease over", STAMP)


def failed(**more: Any) -> Task:
    return ended(ExitKind.PERMANENT, **more)


IN_STATE: Final[dict[TaskState, Callable[[], Task]]] = {
    TaskState.PENDING: a_task,
    TaskState.READY: ready,
    TaskState.CLAIMED: claimed,
    TaskState.RUNNING: running,
    TaskState.DONE: lambda: ended(ExitKind.OK),
    TaskState.SKIPPED: lambda: ended(ExitKind.UNCHANGED),
    TaskState.FAILED: failed,
    TaskState.CANCELLED: lambda: cancel(ready(), "cancel", STAMP),
    TaskState.AWAITING: lambda: ended(ExitKind.AWAIT),
    TaskState.IN_DOUBT: in_doubt,
}


def held_before(task: Task) -> Token:
    """Return the token that the last holder of the task had."""
    return next(e.token for e in reversed(task.history) if e.token.claim_id)


def at_rev(task: Task, rev: str) -> Task:
    return replace(task, rev=rev)
