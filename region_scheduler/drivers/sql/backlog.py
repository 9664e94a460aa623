"""The backlog: what is ready, in the order in which it is promoted."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any, Final

from sqlalchemy import Engine, delete, func, select, update

from region_scheduler.domain.ids import TaskId
from region_scheduler.drivers.sql.engine import reading, writing
from region_scheduler.drivers.sql.schema import prepare
from region_scheduler.drivers.sql.tables import backlog
from region_scheduler.drivers.sql.top import FIELDS, PARTS_MAX, best_rows
from region_scheduler.drivers.sql.upsert import newer_upsert, older_delete
from region_scheduler.ports.backlog import BacklogRow

_IDS_MAX: Final = 1_000
"""Tasks named in one question."""


class SqlBacklog:
    """`ports.backlog.Backlog` on a relational store. Any number of threads may use one."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._upsert = newer_upsert(
            engine, backlog, kept=("due_s", "rests_until_s"), while_same="spell"
        )

    def prepare(self) -> None:
        """Make the store if it is missing.

        Raises:
            Misconfigured: It is damaged, or of a newer version.
            Unavailable: No answer.
        """
        prepare(self._engine)

    def add(self, rows: Sequence[BacklogRow], now_s: float) -> None:
        """Put rows in; only a higher `seq` replaces, and only a new spell starts the due time anew.

        Raises:
            Unavailable: Nothing was written.
            OutcomeUnknown: The answer was lost; the same call again is safe.
        """
        if not rows:
            return
        # One order for all writers: two transactions that meet cannot deadlock.
        values = [_values(row, now_s) for row in sorted(rows, key=lambda row: row.task)]
        with writing(self._engine) as connection:
            connection.execute(self._upsert, values)

    def tenants(self) -> list[str]:
        """Return the tenants that have rows, in a fixed order.

        Raises:
            Unavailable: No answer.
        """
        with reading(self._engine) as connection:
            return list(connection.execute(_tenants()).scalars())

    def top(
        self, shares: Mapping[str, int], now_s: float, pools: Collection[str]
    ) -> list[BacklogRow]:
        """Return each tenant's rows of `pools` to promote next, best first, at most its share.

        Raises:
            Unavailable: No answer.
        """
        if not pools:
            return []
        asked = iter([(tenant, count) for tenant, count in shares.items() if count > 0])
        rows: list[BacklogRow] = []
        with reading(self._engine) as connection:
            while part := list(islice(asked, PARTS_MAX)):
                rows += best_rows(connection, part, now_s, sorted(pools))
        return rows

    def remove(self, rows: Sequence[tuple[TaskId, int]]) -> None:
        """Drop (task, seq) rows whose `seq` is not higher than the one given.

        Raises:
            Unavailable: Nothing was written.
            OutcomeUnknown: The answer was lost; the same call again is safe.
        """
        if not rows:
            return
        values = [{"of_task": task, "of_seq": seq} for task, seq in sorted(rows)]
        with writing(self._engine) as connection:
            connection.execute(older_delete(backlog), values)

    def rest(self, task: TaskId, seq: int, until_s: float) -> None:
        """Let a row rest until an instant, unless it has a higher `seq` by now.

        Raises:
            Unavailable: Nothing was written.
            OutcomeUnknown: The answer was lost; the same call again is safe.
        """
        statement = (
            update(backlog)
            .where(backlog.c.task == task, backlog.c.seq <= seq)
            .values(rests_until_s=until_s)
        )
        with writing(self._engine) as connection:
            connection.execute(statement)

    def next_due_s(self, now_s: float) -> float | None:
        """Return when the next resting row may be tried; None if none rests.

        Raises:
            Unavailable: No answer.
        """
        query = select(func.min(backlog.c.rests_until_s)).where(backlog.c.rests_until_s > now_s)
        with reading(self._engine) as connection:
            found: float | None = connection.execute(query).scalar()
        return found

    def marks(self, tasks: Sequence[TaskId] | None = None) -> Mapping[TaskId, int]:
        """Return the `seq` of every row, or of those of `tasks`.

        Raises:
            Unavailable: No answer.
        """
        query = select(backlog.c.task, backlog.c.seq)
        if tasks is None:
            asked = [query]
        else:
            parts = range(0, len(tasks), _IDS_MAX)
            asked = [query.where(backlog.c.task.in_(tasks[n : n + _IDS_MAX])) for n in parts]
        with reading(self._engine) as connection:
            return {TaskId(id_): seq for one in asked for id_, seq in connection.execute(one)}

    def depth(self) -> int:
        """Count the rows.

        Raises:
            Unavailable: No answer.
        """
        with reading(self._engine) as connection:
            return connection.execute(select(func.count()).select_from(backlog)).scalar_one()

    def clear(self) -> None:
        """Drop all rows; the next scan refills them.

        Raises:
            Unavailable: Nothing was written.
            OutcomeUnknown: The answer was lost; the same call again is safe.
        """
        with writing(self._engine) as connection:
            connection.execute(delete(backlog))


def _values(row: BacklogRow, now_s: float) -> dict[str, Any]:
    values = {name: getattr(row, name) for name in FIELDS}
    due = {"due_s": now_s + row.delay_tolerance_s, "rests_until_s": now_s + row.rest_s}
    return values | due


@cache
def _tenants() -> Any:
    """Return the question for the distinct tenants: one look into the index for each."""
    least = select(func.min(backlog.c.tenant).label("tenant"))
    seen = least.cte("seen", recursive=True)
    following = least.where(backlog.c.tenant > seen.c.tenant).scalar_subquery()
    seen = seen.union_all(select(following).where(seen.c.tenant.is_not(None)))
    return select(seen.c.tenant).where(seen.c.tenant.is_not(None))
