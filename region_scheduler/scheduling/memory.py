"""What this process knows to be written, to be held against what the leader shows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from region_scheduler.domain.ids import TaskId
from region_scheduler.domain.task import Task
from region_scheduler.errors import LostRace

_TASKS_MAX: Final = 10_000


class Acknowledged:
    """The `seq` of the tasks that this process wrote last, as their writes were acknowledged.

    The leader can show less for two reasons: it was deposed and does not know it yet, or the store
    was set back to an older state. A write on what it shows tells which.
    """

    def __init__(self) -> None:
        self._seqs: OrderedDict[TaskId, int] = OrderedDict()

    def note(self, tasks: Iterable[Task]) -> None:
        """Remember tasks as they stand after a write of ours."""
        for task in tasks:
            self._seqs[task.id] = task.seq
            self._seqs.move_to_end(task.id)
        while len(self._seqs) > _TASKS_MAX:
            self._seqs.popitem(last=False)

    def forget(self) -> None:
        """Take whatever the leader shows next as it is."""
        self._seqs.clear()

    def seq(self, task: TaskId) -> int:
        """Return how far the task was known to have come, at least; -1 if nothing is known."""
        return self._seqs.get(task, -1)


def proof_of_age(task: Task, known: int) -> Task:
    """Return a task of a store that was set back, to be written as it is.

    Args:
        task: As read.
        known: How far it had come.

    Raises:
        LostRace: It has come as far: what was read before was a deposed leader's answer.
    """
    if task.seq >= known:
        raise LostRace(thing=f"age of {task.id}", winner="the leader of now")
    return replace(task)
