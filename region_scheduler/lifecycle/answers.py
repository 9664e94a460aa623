"""Move awaiting tasks by the approvals and events recorded for them (PROTOCOL.md section 7)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from region_scheduler.commit.gate import Change, commit
from region_scheduler.domain.task import Task
from region_scheduler.domain.transitions import Stamp, answer
from region_scheduler.ports.records import Answer, GraphStores
from region_scheduler.ports.time import Clock


def apply_answers(graph: GraphStores, awaiting: Sequence[Task], clock: Clock) -> list[Task]:
    """Move awaiting tasks whose answer was recorded; whoever comes second does it.

    Raises:
        Unavailable, OutcomeUnknown: Call again.
    """
    if not awaiting:
        return []
    by_task: dict[str, Answer] = {}
    submissions = {task.id: task.submission for task in awaiting}
    for found in graph.answers.for_tasks([task.id for task in awaiting]):
        if found.submission == submissions[found.task]:
            by_task.setdefault(found.task, found)
    at = clock.now()
    changes = [
        Change(
            task.id,
            partial(
                answer,
                is_yes=given.is_yes,
                outputs=given.outputs,
                detail=_sentence(given),
                stamp=Stamp(given.actor, at),
            ),
            known=task,
        )
        for task in awaiting
        if (given := by_task.get(task.id)) is not None
    ]
    outcomes = commit(graph.tasks, changes)
    return [o.value for o in outcomes if o.is_ours and o.value is not None]


def _sentence(given: Answer) -> str:
    verb = "answered" if given.name != "approval" else "approved" if given.is_yes else "refused"
    return f"{verb} by {given.actor}" + (f": {given.comment}" if given.comment else "")
