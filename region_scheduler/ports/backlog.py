"""This region's relational store: attributes of its tasks, and the backlog of those that are ready.

It holds nothing that cannot be rebuilt from the graph store. A row says "worth trying to claim",
never "yours". Every row carries the `seq` of the task document that it reflects, and is replaced
only by a higher one and dropped only by one that is not lower, whoever comes last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from region_scheduler.domain.ids import RunId, TaskId
from region_scheduler.domain.task import Task, units_needed


class TaskRow(NamedTuple):
    """The attributes of one task.

    Attributes:
        seq: The task document's `seq` that this row reflects.
        requirements: Units that it holds while it runs, by resource.
        expected_s: Median duration, seconds.
        remaining_s: Longest expected path from its start to the run's end, seconds.
        cap_s: Longest time that one attempt may run, seconds.
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
    losses_limit: int
    losses: int
    requirements: Mapping[str, int]

    @classmethod
    def of(cls, task: Task) -> TaskRow:
        """Return the row that reflects `task`."""
        spec = task.spec
        return cls(
            task=task.id,
            run=task.run,
            tenant=task.tenant,
            name=spec.name,
            region=task.region,
            state=task.state,
            runner=spec.runner,
            pool=spec.pool,
            seq=task.seq,
            priority=task.priority_now,
            delay_tolerance_s=spec.delay_tolerance_s,
            expected_s=spec.expected_s,
            remaining_s=spec.remaining_s,
            cap_s=spec.cap_s,
            retry_limit=spec.retry.limit,
            retries_used=task.retries_used,
            losses_limit=spec.retry.losses_limit,
            losses=task.losses,
            requirements=dict(units_needed(spec)) if spec.locks else {},
        )


class BacklogRow(NamedTuple):
    """A ready task that waits to be promoted.

    Attributes:
        seq: As in `TaskRow`.
        locks: Resources that it needs, each as often as it needs units of it.
        spell: Names the time that the task has been ready for: while it stays, a new row (another
            priority, a lost lock) keeps the due time, and the rest, of the old one.
        passport: Of a pause that does not keep it back.
        rest_s: It may not be tried before this many seconds after now (retry pause, back-off).
        not_before_s: Nor before this reading of the region's wall clock, seconds; 0 if at any time.
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
    spell: str = ""
    passport: str = ""
    rest_s: float = 0.0
    not_before_s: float = 0.0

    @classmethod
    def of(cls, task: Task) -> BacklogRow:
        """Return the row of a claimable task; a spell lasts until an attempt is started."""
        spec = task.spec
        return cls(
            task=task.id,
            run=task.run,
            tenant=task.tenant,
            pool=spec.pool,
            seq=task.seq,
            spell=f"{task.submission}.{task.attempt}",
            passport=task.passport,
            priority=task.priority_now,
            delay_tolerance_s=spec.delay_tolerance_s,
            remaining_s=spec.remaining_s,
            locks=tuple(need.resource for need in spec.locks for _ in range(need.units)),
            rest_s=task.retry_after_s,
            not_before_s=spec.not_before.timestamp() if spec.not_before else 0.0,
        )


@dataclass(frozen=True, slots=True)
class Eligible:
    """Which rows may be promoted, and are ours to promote.

    Attributes:
        pools: Whose rows count; None for all.
        closed_runs: Runs whose rows wait, unless a row carries one of `passports`.
        buckets: Whose rows count (`domain.ownership`); None for all.
    """

    pools: frozenset[str] | None = None
    closed_runs: frozenset[RunId] = frozenset()
    passports: frozenset[str] = frozenset()
    buckets: frozenset[int] | None = None


ALL: Final = Eligible()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a row stands.

    Attributes:
        due_s: When it becomes overdue.
        rests_until_s: Before this it is not tried.
        ahead: Rows of the same tenant that come before it.
    """

    due_s: float
    rests_until_s: float
    ahead: int


class Backlog(Protocol):
    """One region's backlog. Instants are readings of this region's own wall clock, seconds."""

    def prepare(self) -> None:
        """Make the store if it is missing, e.g. because it was lost under us.

        Raises:
            Misconfigured: It is damaged, or of a newer version.
            Unavailable: No answer.
        """
        ...

    def add(self, rows: Sequence[BacklogRow], now_s: float) -> None:
        """Put rows in; the due time counts from the first sight of (task, spell).

        Raises:
            Unavailable: Nothing was written.
        """
        ...

    def tenants(self) -> list[str]:
        """Return the tenants that have rows, in a fixed order."""
        ...

    def buckets(self) -> list[int]:
        """Return the buckets that have rows, lowest first."""
        ...

    def top(
        self, shares: Mapping[str, int], now_s: float, eligible: Eligible = ALL
    ) -> list[BacklogRow]:
        """Return each tenant's eligible rows to promote next, best first, at most its share.

        Only rows of `pools`, so that those of a pool without room hold nobody back; resting rows
        are left out. Order within a tenant: priority, then remaining path (longest), then due time,
        then task id. One range of an index a tenant, however many rows there are.
        """
        ...

    def place(self, task: TaskId) -> Place | None:
        """Return where the row of `task` stands; None if it has none."""
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

    def marks(self, tasks: Sequence[TaskId] | None = None) -> Mapping[TaskId, int]:
        """Return the `seq` of every row, or of those of `tasks`, to compare with the graph."""
        ...

    def depth(self) -> int:
        """Count the rows."""
        ...

    def clear(self) -> None:
        """Drop all rows; the next comparison refills them."""
        ...


class Metadata(Protocol):
    """The attributes of this region's tasks."""

    def record(self, rows: Sequence[TaskRow]) -> None:
        """Insert or replace rows by `seq`, in one transaction.

        Raises:
            Unavailable: Nothing was written.
        """
        ...

    def remove(self, rows: Sequence[tuple[TaskId, int]]) -> None:
        """Drop (task, seq) rows whose `seq` is not higher than the one given."""
        ...

    def marks(self, run: RunId) -> Mapping[TaskId, int]:
        """Return the `seq` of every row of `run`, for a comparison with the graph store."""
        ...

    def states(self, run: RunId) -> Mapping[str, int]:
        """Count this region's rows of `run` by state."""
        ...

    def runs_in(self, states: Sequence[str]) -> list[RunId]:
        """Return the runs that have rows in any of `states`."""
        ...

    def count(self) -> int:
        """Count the rows."""
        ...

    def clear(self) -> None:
        """Drop all rows; the next comparison refills them."""
        ...
