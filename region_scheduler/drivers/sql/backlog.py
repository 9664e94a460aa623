"""The backlog: what is ready, in the order in which it is promoted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, Final

from sqlalchemy import Column, Engine, bindparam, delete, func, literal, select, tuple_, update

from region_scheduler.domain.ids import TaskId
from region_scheduler.domain.ownership import Ownership, bucket_of
from region_scheduler.drivers.sql.engine import reading, writing
from region_scheduler.drivers.sql.prepared import Prepared
from region_scheduler.drivers.sql.schema import prepare
from region_scheduler.drivers.sql.tables import PROMOTION_ORDER, backlog, unescaped
from region_scheduler.drivers.sql.top import FIELDS, PARTS_MAX, best_rows
from region_scheduler.drivers.sql.upsert import NewerUpsert, older_delete
from region_scheduler.ports.backlog import ALL, BacklogRow, Eligible, Place

_MARKS: Final = {
    "sqlite": "SELECT task, seq FROM backlog WHERE task IN (SELECT value FROM json_each(:tasks))",
    "postgresql": "SELECT task, seq FROM backlog WHERE task IN "
    "(SELECT value FROM json_array_elements_text(CAST(%(tasks)s AS json)))",
}
"""However many tasks it names, it is one text: the library writes a list out anew each time."""


class SqlBacklog:
    """`ports.backlog.Backlog` on a relational store. Any number of threads may use one.

    Args:
        engine: The store.
        bucket_by: What of a row its owner is chosen by.
    """

    def __init__(self, engine: Engine, bucket_by: Ownership = Ownership.RUN) -> None:
        self._engine = engine
        self._bucket_by = attrgetter(
            bucket_by if bucket_by in {Ownership.TENANT, Ownership.TASK} else Ownership.RUN
        )
        self._upsert = NewerUpsert(
            engine, backlog, kept=("due_s", "rests_until_s"), while_same="spell"
        )
        self._tenants = Prepared(engine, _distinct(backlog.c.tenant))
        self._buckets = Prepared(engine, _distinct(backlog.c.bucket))
        self._remove = Prepared(engine, older_delete(backlog))
        rests = backlog.c.rests_until_s
        next_due = select(func.min(rests)).where(rests > bindparam("now_s"))
        self._next_due = Prepared(engine, next_due)

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
        values = [self._values(row, now_s) for row in sorted(rows, key=lambda row: row.task)]
        names = self._upsert.names
        with writing(self._engine) as connection:
            self._upsert.execute(connection, ([row[name] for name in names] for row in values))

    def tenants(self) -> list[str]:
        """Return the tenants that have rows, in a fixed order.

        Raises:
            Unavailable: No answer.
        """
        with reading(self._engine) as connection:
            return [unescaped(name) for name in self._tenants.once(connection).scalars()]

    def buckets(self) -> list[int]:
        """Return the buckets that have rows, lowest first.

        Raises:
            Unavailable: No answer.
        """
        with reading(self._engine) as connection:
            return list(self._buckets.once(connection).scalars())

    def top(
        self, shares: Mapping[str, int], now_s: float, eligible: Eligible = ALL
    ) -> list[BacklogRow]:
        """Return each tenant's eligible rows to promote next, best first, at most its share.

        Raises:
            Unavailable: No answer.
        """
        asked = iter([(tenant, count) for tenant, count in shares.items() if count > 0])
        rows: list[BacklogRow] = []
        with reading(self._engine) as connection:
            while part := list(islice(asked, PARTS_MAX)):
                rows += best_rows(connection, part, now_s, eligible)
        return rows

    def place(self, task: TaskId) -> Place | None:
        """Return where the row of `task` stands; None if it has none.

        Raises:
            Unavailable: No answer.
        """
        with reading(self._engine) as connection:
            row = connection.execute(select(backlog).where(backlog.c.task == task)).one_or_none()
            if row is None:
                return None
            before = tuple_(-backlog.c.priority, -backlog.c.remaining_s, *PROMOTION_ORDER[2:])
            here = tuple_(
                literal(-row.priority), literal(-row.remaining_s), literal(row.due_s), literal(task)
            )
            question = select(func.count()).where(backlog.c.tenant == row.tenant, before < here)
            ahead = connection.execute(question).scalar_one()
        return Place(row.due_s, row.rests_until_s, ahead)

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
            self._remove.each(connection, values)

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
        with reading(self._engine) as connection:
            found: float | None = self._next_due.once(connection, now_s=now_s).scalar()
        return found

    def marks(self, tasks: Sequence[TaskId] | None = None) -> Mapping[TaskId, int]:
        """Return the `seq` of every row, or of those of `tasks`.

        Raises:
            Unavailable: No answer.
        """
        with reading(self._engine) as connection:
            if tasks is None:
                found = connection.execute(select(backlog.c.task, backlog.c.seq))
            else:
                ask = _MARKS[self._engine.dialect.name]
                found = connection.exec_driver_sql(ask, {"tasks": json.dumps(list(tasks))})
            return {TaskId(id_): seq for id_, seq in found}

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

    def _values(self, row: BacklogRow, now_s: float) -> dict[str, Any]:
        values = {name: getattr(row, name) for name in FIELDS}
        return values | {
            "due_s": now_s + row.delay_tolerance_s,
            "rests_until_s": max(now_s + row.rest_s, row.not_before_s),
            "bucket": bucket_of(self._bucket_by(row)),
        }


def _distinct(column: Column[Any]) -> Any:
    """Return the question for the distinct values of a column: one look into its index for each."""
    least = select(func.min(column).label("value"))
    seen = least.cte("seen", recursive=True)
    following = least.where(column > seen.c.value).scalar_subquery()
    seen = seen.union_all(select(following).where(seen.c.value.is_not(None)))
    return select(seen.c.value).where(seen.c.value.is_not(None))
