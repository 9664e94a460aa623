"""Doubts that outlive their run: kept at the zone, by the terraform state that they are about.

A task keeps its own doubt while its run can go on. When a run frees its zone, the same write keeps
what its tasks leave in doubt, so that the next run of the zone looks first, whoever died meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from region_scheduler.domain.states import TaskState

UNCHANGED = "unchanged"
"""The reason of a task that was skipped because it looked, and had nothing to do."""


@dataclass(frozen=True, slots=True)
class StateMark:
    """What one task of an ended run leaves of the state that it works on.

    Attributes:
        is_inspect: A doubt stands that nobody has looked into.
        has_verdict: An earlier doubt was looked into.
    """

    state_key: str
    state: TaskState
    reason: str
    is_inspect: bool
    has_verdict: bool

    @property
    def is_known(self) -> bool:
        """Whether it is known how the state stands: the step ended well, or was looked at."""
        is_whole = self.state is TaskState.DONE
        is_same = self.state is TaskState.SKIPPED and self.reason == UNCHANGED
        return is_whole or is_same or self.has_verdict


def doubts_after(doubts: Iterable[str], marks: Sequence[StateMark]) -> tuple[str, ...]:
    """Return the state keys that are in doubt after a run, given those before it.

    A task that never began says nothing of its state: an older doubt stays.
    """
    left = {mark.state_key for mark in marks if mark.is_inspect}
    known = {mark.state_key for mark in marks if mark.is_known} - left
    return tuple(sorted((set(doubts) - known) | left))
