"""This region's relational store: attributes of its tasks, and the backlog of those that are ready.

It holds nothing that cannot be rebuilt from the graph store. A row says "worth trying to claim",
never "yours".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from region_scheduler.domain.ids import RunId, TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """The attributes of one task.

    Attributes:
        seq: The task document's `seq` that this row reflects; only a higher one replaces it.
    """

    task: TaskId
    run: RunId
    tenant: str
    name: str
    region: str
    state: str
    runner: str
    pool: str
    seq: int
    priority: int
    delay_tolerance_s: float
    expected_s: float
    remaining_s: float
    cap_s: float
    retry_limit: int
    retries_used: int
    locks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogRow:
    """A ready task that waits to be promoted.

    Attributes:
        seq: As in `TaskRow`.
        rest_s: It may not be tried before this many seconds after now (retry pause, back-off).
    """

    task: TaskId
    run: RunId
    tenant: str
    pool: str
    seq: int
    priority: int
    delay_tolerance_s: float
    remaining_s: float
    locks: tuple[str, ...]
    rest_s: float = 0.0


class Backlog(Protocol):
    """One region's backlog. Instants are readings of this region's own wall clock, seconds."""

    def add(self, rows: Sequence[BacklogRow], now_s: float) -> None:
        """Put rows in; due time counts from the first sight of (task, seq), which is kept.

        A row with a higher `seq` replaces the old one; an equal or lower one changes nothing.

        Raises:
            Unavailable: Nothing was written.
        """
        ...

    def top(self, count: int, now_s: float, exclude: Sequence[TaskId] = ()) -> list[BacklogRow]:
        """Return the `count` rows to promote next, best first, resting and excluded ones left out.

        Order: priority, then remaining path (longest), then due time, then task id.
        """
        ...

    def remove(self, rows: Sequence[tuple[TaskId, int]]) -> None:
        """Drop (task, seq) rows whose `seq` is not higher than the one given."""
        ...

    def rest(self, task: TaskId, seq: int, until_s: float) -> None:
        """Let a row rest until an instant: back-off after a lost slot."""
        ...

    def next_due_s(self, now_s: float) -> float | None:
        """Return when the next resting row may be tried; None if none rests."""
        ...

    def depth(self) -> int:
        """Count the rows."""
        ...

    def clear(self) -> None:
        """Drop all rows; the next scan refills them."""
        ...


class Metadata(Protocol):
    """The attributes of this region's tasks."""

    def record(self, rows: Sequence[TaskRow]) -> None:
        """Insert or replace rows by `seq`, in one transaction.

        Raises:
            Unavailable: Nothing was written.
        """
        ...

    def states(self, run: RunId) -> Mapping[str, int]:
        """Count this region's rows of `run` by state."""
        ...

    def count(self) -> int:
        """Count the rows."""
        ...
