"""What a person wants done again: kept at the run until every task of it is moved."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from region_scheduler.domain.ids import TaskId
from region_scheduler.domain.task import EventKind, Task, Token


class Again(StrEnum):
    """What is to become of the task."""

    RETRY = "retry"
    CLEAR = "clear"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rework:
    """One wish, about the task as it stood when it was asked.

    Attributes:
        token: A retry is about the end that was reached under this one.
        submission: A clear repeats this one.
        is_deep: A clear repeats dependents that have ended as well.
        by: Who wants it.
    """

    again: Again
    task: TaskId
    token: Token
    submission: int
    is_deep: bool = True
    by: str


def is_outdated(task: Task, before: dict[TaskId, int]) -> bool:
    """Say whether a task was let go by an end of a predecessor that counts no more.

    Args:
        task: A task that is not pending.
        before: Number of the present token of each direct predecessor. A number only rises, so an
            older reading never calls a task outdated that was let go since.
    """
    seen = next((e.seen for e in reversed(task.history) if e.kind is EventKind.UNLOCKED), {})
    return any(_number(seen.get(id_, "")) < number for id_, number in before.items())


def _number(token: str) -> int:
    number = token.partition("/")[0]
    return int(number) if number else -1
