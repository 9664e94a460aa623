"""Write down what lost, once however often it is written."""

from __future__ import annotations

from collections.abc import Sequence

from region_scheduler.commit.create import create
from region_scheduler.domain.ids import digest_of
from region_scheduler.domain.task import Task
from region_scheduler.ports.records import Conflict, ConflictStore
from region_scheduler.ports.time import Clock


def lost_claim(task: Task, loser: str, region: str, clock: Clock) -> Conflict:
    """Describe a claim that another won; `task` as the leader shows it now."""
    winner = task.holder.incarnation if task.holder else ""
    return Conflict(
        id=digest_of("claim", task.id, str(task.token.number), loser),
        kind="claim",
        thing=task.id,
        winner=winner or f"nobody: the task is {task.state}",
        loser=loser,
        region=region,
        winner_region=task.region,
        at=clock.now(),
    )


def lost_assignment(task: Task, resource: str, winner: str, clock: Clock) -> Conflict:
    """Describe a slot that another task had: a double assignment, found before a step ran."""
    return Conflict(
        id=digest_of("assignment", resource, str(task.token), task.id),
        kind="assignment",
        thing=resource,
        winner=winner,
        loser=task.id,
        region=task.region,
        at=clock.now(),
    )


def record(store: ConflictStore, conflicts: Sequence[Conflict]) -> None:
    """Insert the conflicts; one that is there already is the same one.

    Raises:
        Unavailable, OutcomeUnknown: Some may be missing; nothing else depends on them.
    """
    if conflicts:
        create(store, conflicts)
