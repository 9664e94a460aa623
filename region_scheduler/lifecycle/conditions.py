"""Whether a task whose predecessors are satisfied is wanted at all."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from region_scheduler.catalog.assertions import failures
from region_scheduler.commit.gate import Decision
from region_scheduler.domain.states import TaskState
from region_scheduler.domain.task import Json, Task, TaskSpec
from region_scheduler.domain.transitions import Stamp, skip, unlock
from region_scheduler.errors import LostRace
from region_scheduler.ports.tasks import Unlockable

Outputs = Mapping[str, Mapping[str, Json]]
"""What each direct predecessor put out, by its name; of a skipped one that is nothing."""


def unmet(spec: TaskSpec, upstream: Outputs) -> str:
    """Return which assertions of the task's condition do not hold; empty if all of them do."""
    found = failures(spec.condition, {"upstream": upstream})
    return "; ".join(f"{failure.path} {failure.reason}" for failure in found)


def unlocking(
    found: Unlockable, upstream: Outputs, stamp: Stamp, *, is_doubtful: bool = False
) -> Decision[Task]:
    """Return what becomes of a pending task: ready, or skipped if its condition is false.

    Args:
        found: The task, and the completions that its predecessors were seen with.
        upstream: Their outputs, read after it; not looked at if the task has no condition.
        stamp: The writer.
        is_doubtful: An earlier run left the task's state in doubt.
    """
    why = unmet(found.task.spec, upstream) if found.task.spec.condition else ""
    become = partial(skip, detail=why) if why else partial(unlock, is_doubtful=is_doubtful)

    def decide(task: Task) -> Task:
        # A moved revision may mean that a predecessor was cleared: look at them again as well.
        if task.rev != found.task.rev and task.state is TaskState.PENDING:
            raise LostRace(thing=f"unlock of {task.id}", winner="a write to the dependent")
        return become(task, found.seen, stamp)

    return decide
