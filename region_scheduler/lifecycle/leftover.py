"""What was written of a run that never started and never will: it goes, the run document stays.

A run that was refused after it was accepted, or cancelled before it was published, has a run
document by which whoever carries the admission out, however late, knows that nothing is to be
started. Neither state is ever left again, so what is found under such a run may go, and goes again
if a late writer brings it back.
"""

from __future__ import annotations

from typing import Final

from region_scheduler.commit.remove import remove
from region_scheduler.domain.ids import RunId, TaskId
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RunState
from region_scheduler.ports.backlog import Metadata
from region_scheduler.ports.records import GraphStores

_PART: Final = 1_000


def never_starts(run: Run | None) -> bool:
    """Say whether a run, as read at the leader, has ended before anything of it could start."""
    return run is not None and (run.state is RunState.REFUSED or run.is_tombstone)


def sweep_unpublished(graph: GraphStores, run: RunId) -> int:
    """Remove the tasks and dependencies of a run that never starts; return how many are gone.

    Of any other run nothing is removed.

    Raises:
        Unavailable, OutcomeUnknown: Part of it may be gone; call again.
    """
    (standing,) = graph.runs.read([run])
    if not never_starts(standing):
        return 0
    gone, _ = emptied(graph, run)
    return gone


def emptied(graph: GraphStores, run: RunId) -> tuple[int, bool]:
    """Remove the tasks of a run that can move no more, what was answered to them, and its edges.

    In parts: a big one must not fill this process's memory.

    Returns:
        How many tasks and dependencies are gone, and whether that is all of them; it is not if
        somebody writes the tasks still: the next look goes on.

    Raises:
        Unavailable, OutcomeUnknown: Part of it may be gone; call again.
    """
    gone = 0
    while tasks := graph.leftovers.tasks(run, _PART):
        remove(graph.answers.remove, graph.answers.for_tasks([TaskId(one.id) for one in tasks]))
        removed = remove(graph.tasks.remove, tasks)
        if not removed:
            return gone, False
        gone += removed
    while edges := graph.leftovers.edges(run, _PART):
        gone += remove(graph.leftovers.remove_edges, edges)
    return gone, True


def forget_unpublished(metadata: Metadata, run: RunId) -> None:
    """Drop this region's rows of a run that never starts.

    Raises:
        Unavailable, OutcomeUnknown: Part of it may be done; call again.
    """
    metadata.remove(list(metadata.marks(run).items()))
