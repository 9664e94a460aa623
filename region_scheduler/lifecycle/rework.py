"""Do again what a person wants done again; anybody may finish what another began.

The wish stands at the run before any task is moved, and goes when all are. So a run cannot end on
what it looked like before, and a walk that broke off is taken up by the reconciler
(docs/protocol.md section 5). Every step may be repeated: a task shows by its token, its submission
and the tokens that let it go whether it was moved already.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from region_scheduler.commit.gate import Change, Decision, commit, commit_one
from region_scheduler.domain.ids import TaskId
from region_scheduler.domain.rework import Again, Rework, is_outdated
from region_scheduler.domain.run import Run, reopened
from region_scheduler.domain.states import FINAL, RUN_ENDED, RunState, TaskState
from region_scheduler.domain.task import Task
from region_scheduler.domain.transitions import Stamp, clear, resume
from region_scheduler.errors import LostRace
from region_scheduler.lifecycle.settle import Settler
from region_scheduler.lifecycle.zones import take_zone
from region_scheduler.ports.records import GraphStores


def wanted(run: Run, rework: Rework) -> Run:
    """Write the wish down; a run that has ended begins its next round with it.

    Raises:
        LostRace: Another wish, a round being opened, or a cancel comes first.
    """
    if run.rework == rework:
        return run
    if run.state in RUN_ENDED:
        return replace(reopened(run), rework=rework)
    if run.rework is not None or run.state is not RunState.RUNNING:
        winner = "another wish" if run.rework else f"nobody: it is {run.state}"
        raise LostRace(thing=f"{rework.again} in run {run.id}", winner=winner)
    return replace(run, rework=rework)


def do_again(
    graph: GraphStores, settler: Settler, run: Run, stamp: Stamp
) -> tuple[Run, list[Task]]:
    """Move the tasks that the run's wish is about, once the run holds its zone, and let it go on.

    Returns:
        The run, still `admitted` if it waits for its zone; and the tasks that this call moved.

    Raises:
        Unavailable, OutcomeUnknown: Part of it is done; call again, or the reconciler goes on.
    """
    rework = run.rework
    if rework is None or run.state in RUN_ENDED:
        return run, []
    if run.state is RunState.ADMITTED and not take_zone(graph, run):
        return run, []
    if rework.again is Again.RETRY:
        moved = _moved(graph, [Change(rework.task, _retrying(rework, stamp))])
    else:
        moved = _clear(graph, rework, stamp)
    after = commit_one(graph.runs, Change(run.id, partial(_fulfilled, rework=rework)))
    settler.settle(moved)
    settler.unlock_run(after)
    settler.wake(task.region for task in moved)
    return after, moved


def _fulfilled(run: Run, rework: Rework) -> Run:
    if run.rework != rework:
        return run
    state = RunState.RUNNING if run.state is RunState.ADMITTED else run.state
    return replace(run, rework=None, state=state)


def _clear(graph: GraphStores, rework: Rework, stamp: Stamp) -> list[Task]:
    """Clear the task, then its dependents, nearest first."""
    clear_it = partial(clear, submission=rework.submission, stamp=stamp)
    moved = _moved(graph, [Change(rework.task, clear_it)])
    levels: dict[int, list[TaskId]] = defaultdict(list)
    for found in graph.tasks.dependents(rework.task):
        levels[found.distance].append(found.id)
    for _, ids in sorted(levels.items()):
        before = graph.tasks.numbers_before(ids)
        changes = [
            Change(id_, _clearing(dict(before.get(id_, {})), rework.is_deep, stamp)) for id_ in ids
        ]
        moved += _moved(graph, changes)
    return moved


def _clearing(before: dict[TaskId, int], is_deep: bool, stamp: Stamp) -> Decision[Task]:
    """Return what becomes of a dependent; one that was let go by what counts still, stays."""

    def decide(task: Task) -> Task:
        is_kept = task.state in FINAL and not is_deep
        if is_kept or (task.state is not TaskState.PENDING and not is_outdated(task, before)):
            return task
        return clear(task, task.submission, stamp)

    return decide


def _retrying(rework: Rework, stamp: Stamp) -> Decision[Task]:
    def decide(task: Task) -> Task:
        # One that has moved since was retried by another; it may even have failed anew.
        return resume(task, stamp) if task.token == rework.token else task

    return decide


def _moved(graph: GraphStores, changes: Sequence[Change[Task]]) -> list[Task]:
    outcomes = commit(graph.tasks, changes)
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error
    return [o.value for o in outcomes if o.value is not None]
