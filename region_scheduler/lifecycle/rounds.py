"""Open a further round of a run that has ended; anybody may finish what another began."""

from __future__ import annotations

from functools import partial
from typing import Final

from region_scheduler.commit.gate import Change, Decision, commit, commit_one
from region_scheduler.domain.run import Run, opened
from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.domain.task import Task
from region_scheduler.domain.transitions import Stamp, resume
from region_scheduler.lifecycle.rework import do_again
from region_scheduler.lifecycle.settle import Settler
from region_scheduler.lifecycle.zones import take_zone
from region_scheduler.ports.records import GraphStores

_RESUMABLE: Final = (TaskState.FAILED, TaskState.CANCELLED)


def open_round(
    graph: GraphStores, settler: Settler, run: Run, stamp: Stamp
) -> tuple[Run, list[Task]]:
    """Move the tasks of a round that was begun, once the run holds its zone, and let it run.

    Failed tasks become ready with a fresh budget, cancelled ones wait anew. Until all are moved the
    run stays `admitted`, so that it cannot end on what the last round left.

    Returns:
        The run, still `admitted` if it waits for its zone; and the tasks that were moved. None if
        the round is over, or the run was cancelled before.

    Raises:
        Unavailable, OutcomeUnknown: Part of it is done; call again, or the reconciler goes on.
    """
    if run.rework is not None:
        return do_again(graph, settler, run, stamp)
    if run.state is not RunState.ADMITTED or not take_zone(graph, run):
        return run, []
    ended = graph.tasks.of_run(run.id, _RESUMABLE)
    (now,) = graph.runs.read([run.id])
    if now is None or (now.state, now.round) != (run.state, run.round):
        # Only before a cancel are the tokens that were just seen those by which tasks are moved.
        return now or run, []
    changes = [Change(task.id, _resuming(task, stamp)) for task in ended]
    outcomes = commit(graph.tasks, changes)
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error
    begun = commit_one(graph.runs, Change(run.id, partial(opened, round_=run.round)))
    moved = [o.value for o in outcomes if o.value is not None]
    settler.unlock_run(begun)
    settler.wake(task.region for task in moved)
    return settler.finish(run.id) or begun, moved


def _resuming(listed: Task, stamp: Stamp) -> Decision[Task]:
    def decide(task: Task) -> Task:
        # Another who opened this round may have moved it; it may even have failed anew.
        return resume(task, stamp) if task.token == listed.token else task

    return decide
