"""The backlog: what is ready, in the order in which it is promoted."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Engine, bindparam, delete, func, select, update

from region_scheduler.domain.ids import TaskId
from region_scheduler.drivers.sql.engine import reading, writing
from region_scheduler.drivers.sql.tables import PROMOTION_ORDER, backlog
from region_scheduler.drivers.sql.upsert import newer_upsert
from region_scheduler.ports.backlog import BacklogRow

_FIELDS: Final = tuple(
    field.name for field in dataclasses.fields(BacklogRow) if field.name != "rest_s"
)
_COLUMNS: Final = tuple(backlog.c[name] for name in _FIELDS)


class SqlBacklog:
    """`ports.backlog.Backlog` on a relational store. Any number of threads may use one."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._upsert = newer_upsert(engine, backlog)

    def add(self, rows: Sequence[BacklogRow], now_s: float) -> None:
        """Put rows in; only a higher `seq` replaces, and only then the due time starts anew.

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

    def top(self, count: int, now_s: float, exclude: Sequence[TaskId] = ()) -> list[BacklogRow]:
        """Return the `count` rows to promote next, best first, resting and excluded ones left out.

        Raises:
            Unavailable: No answer.
        """
        if count <= 0:
            return []
        left_out = frozenset(exclude)
        query = (
            select(*_COLUMNS)
            .where(backlog.c.rests_until_s <= now_s)
            .order_by(*PROMOTION_ORDER)
            # As many more as could be left out: one range of the index, no list in the statement.
            .limit(count + len(left_out))
        )
        with reading(self._engine) as connection:
            found = connection.execute(query).all()
        rows = [BacklogRow(**row._mapping) for row in found if row.task not in left_out]
        return rows[:count]

    def remove(self, rows: Sequence[tuple[TaskId, int]]) -> None:
        """Drop (task, seq) rows whose `seq` is not higher than the one given.

        Raises:
            Unavailable: Nothing was written.
            OutcomeUnknown: The answer was lost; the same call again is safe.
        """
        if not rows:
            return
        statement = delete(backlog).where(
            backlog.c.task == bindparam("of_task"), backlog.c.seq <= bindparam("of_seq")
        )
        values = [{"of_task": task, "of_seq": seq} for task, seq in sorted(rows)]
        with writing(self._engine) as connection:
            connection.execute(statement, values)

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
    values = {name: getattr(row, name) for name in _FIELDS}
    due = {"due_s": now_s + row.delay_tolerance_s, "rests_until_s": now_s + row.rest_s}
    return values | due
