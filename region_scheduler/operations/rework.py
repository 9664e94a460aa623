"""Retry a task that failed or was cancelled, or clear one so that it and what follows run again."""

from __future__ import annotations

from functools import partial

from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.rework import Again, Rework
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import TaskState
from region_scheduler.domain.task import Task
from region_scheduler.domain.transitions import Stamp
from region_scheduler.errors import InvalidInput, LostRace, NotFound
from region_scheduler.lifecycle.rework import do_again, wanted
from region_scheduler.lifecycle.rounds import open_round
from region_scheduler.lifecycle.settle import Settler
from region_scheduler.operations.audit import Auditor
from region_scheduler.ports.records import GraphStores
from region_scheduler.ports.time import Clock

_TRIES = 3


def retry_task(
    graph: GraphStores, settler: Settler, auditor: Auditor, clock: Clock, task: Task
) -> tuple[Run, list[Task]]:
    """Give a failed task a fresh budget and make it ready; a cancelled one waits anew.

    If its run has ended, the next round is opened first, for this task alone.

    Returns:
        The run, and what was moved; nothing yet if the run waits for its zone.

    Raises:
        InvalidInput: The task has neither failed nor was it cancelled.
        LostRace: Its run is being cancelled, or cannot go on.
        Unavailable, OutcomeUnknown: Call again, or the reconciler goes on.
    """
    if task.state not in {TaskState.FAILED, TaskState.CANCELLED}:
        told = f"it is {task.state}: only what failed or was cancelled is retried"
        way_out = "; `tasks clear` runs it again" if task.state is TaskState.DONE else ""
        raise InvalidInput(field="TASK", value=task.spec.name, expected=told + way_out)
    auditor.record("tasks.retry", task.id, tenant=task.tenant)
    return _again(graph, settler, clock, _wish(Again.RETRY, task, auditor.actor), task)


def clear_task(
    graph: GraphStores,
    settler: Settler,
    auditor: Auditor,
    clock: Clock,
    task: Task,
    *,
    is_deep: bool = True,
) -> tuple[Run, list[Task]]:
    """Let a task run again whatever it came to, and everything that waits for it after it.

    Args:
        graph: The graph store.
        settler: Does what follows.
        auditor: In whose name.
        clock: For stamps.
        task: As last read; one that was cleared since is not cleared twice.
        is_deep: Also dependents that have ended; else those stay as they are.

    Returns:
        The run, and what was moved or asked to stop; nothing yet if the run waits for its zone.

    Raises:
        LostRace: Its run is being cancelled, or cannot go on.
        Unavailable, OutcomeUnknown: Call again, or the reconciler goes on.
    """
    how = "with dependents" if is_deep else "only"
    auditor.record("tasks.clear", task.id, how, tenant=task.tenant)
    wish = _wish(Again.CLEAR, task, auditor.actor, is_deep)
    return _again(graph, settler, clock, wish, task)


def _wish(again: Again, task: Task, by: str, is_deep: bool = True) -> Rework:
    return Rework(
        again=again,
        task=task.id,
        token=task.token,
        submission=task.submission,
        is_deep=is_deep,
        by=by,
    )


def _again(
    graph: GraphStores, settler: Settler, clock: Clock, wish: Rework, task: Task
) -> tuple[Run, list[Task]]:
    """Write the wish down and fulfil it; what somebody else has begun is ended first."""
    stamp = Stamp(wish.by, clock.now())
    for tries_left in reversed(range(_TRIES)):
        try:
            run = commit_one(graph.runs, Change(task.run, partial(wanted, rework=wish)))
            return do_again(graph, settler, run, stamp)
        except LostRace:
            (found,) = graph.runs.read([task.run])
            if found is None:
                raise NotFound(thing="run", id=task.run) from None
            _, moved = open_round(graph, settler, found, stamp)
            if not tries_left or not moved:
                raise
    raise AssertionError("the last try returns or raises")
