"""Move awaiting tasks by the approvals and events that came (docs/protocol.md section 7)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from region_scheduler.commit.gate import Change, commit
from region_scheduler.domain.ids import digest_of
from region_scheduler.domain.task import EventKind, Task
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
    asking = {task.id: task for task in awaiting}
    by_task: dict[str, Answer] = {}
    for found in graph.answers.for_tasks(list(asking)):
        if found.id == answer_id(asking[found.task], found.name, found.actor):
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


def answer_id(task: Task, name: str, actor: str) -> str:
    """Return the key of an actor's answer to what a task asks now, or will ask next.

    A task that was refused and then resumed asks anew: what was answered before closes no question
    but its own.
    """
    asked = sum(entry.kind is EventKind.ANSWERED for entry in task.history)
    return digest_of(task.id, name, str(task.submission), str(asked), actor)


def _sentence(given: Answer) -> str:
    verb = "answered" if given.name != "approval" else "approved" if given.is_yes else "refused"
    return f"{verb} by {given.actor}" + (f": {given.comment}" if given.comment else "")
