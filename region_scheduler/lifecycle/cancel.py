"""Cancel what is left of a run; anybody may finish what another began.

The run says `cancelling` before any task is touched. From then on nothing of it is unlocked by the
scan, and it cannot end before every task has. The walk looks at what is not over and is repeated
until that is nothing, so that whatever moved meanwhile, or was seen too late, is met again.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from region_scheduler.commit.gate import Change, Fate, commit
from region_scheduler.domain.cancel import cancel_with_run
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import SATISFYING, RunState, TaskState
from region_scheduler.domain.task import Task
from region_scheduler.domain.transitions import Stamp
from region_scheduler.lifecycle.settle import Settler
from region_scheduler.ports.records import GraphStores

_LOOKED_AT: Final = tuple(state for state in TaskState if state not in SATISFYING)


def cancel_tasks(
    graph: GraphStores, settler: Settler, run: Run, stamp: Stamp
) -> tuple[Run, list[Task]]:
    """Cancel what nobody runs, ask what runs to stop, and end the run if that was all.

    Returns:
        The run, and the tasks that this call moved or asked to stop; a running one moves when its
        holder has stopped it. Nothing is done for a run that is not being cancelled.

    Raises:
        Unavailable, OutcomeUnknown: Part of it is done; call again, or the reconciler goes on.
    """
    if run.state is not RunState.CANCELLING:
        return run, []
    found = graph.tasks.of_run(run.id, _LOOKED_AT)
    decide = partial(cancel_with_run, reason=run.reason, stamp=stamp)
    outcomes = commit(graph.tasks, [Change(task.id, decide, known=task) for task in found])
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error
    moved = [o.value for o in outcomes if o.fate is Fate.COMMITTED and o.value is not None]
    settler.settle(moved)
    settler.wake(task.region for task in moved)  # what was claimed makes room in the queue
    return settler.finish(run.id) or run, moved
