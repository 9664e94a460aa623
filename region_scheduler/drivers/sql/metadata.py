"""The attributes of this region's tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter

from sqlalchemy import Engine, delete, func, select

from region_scheduler.domain.ids import RunId, TaskId
from region_scheduler.drivers.sql.engine import reading, writing
from region_scheduler.drivers.sql.tables import task_metadata
from region_scheduler.drivers.sql.upsert import NewerUpsert, older_delete
from region_scheduler.ports.backlog import TaskRow


class SqlMetadata:
    """`ports.backlog.Metadata` on a relational store. Any number of threads may use one."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._upsert = NewerUpsert(engine, task_metadata)
        self._values = attrgetter(*self._upsert.names)

    def record(self, rows: Sequence[TaskRow]) -> None:
        """Insert or replace rows by `seq`, in one transaction.

        Raises:
            Unavailable: Nothing was written.
            OutcomeUnknown: The answer was lost; the same call again is safe.
        """
        if not rows:
            return
        ordered = sorted(rows, key=lambda row: row.task)
        with writing(self._engine) as connection:
            self._upsert.execute(connection, map(self._values, ordered))

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
            connection.execute(older_delete(task_metadata), values)

    def marks(self, run: RunId) -> Mapping[TaskId, int]:
        """Return the `seq` of every row of `run`.

        Raises:
            Unavailable: No answer.
        """
        query = select(task_metadata.c.task, task_metadata.c.seq).where(task_metadata.c.run == run)
        with reading(self._engine) as connection:
            return {TaskId(task): seq for task, seq in connection.execute(query)}

    def runs_in(self, states: Sequence[str]) -> list[RunId]:
        """Return the runs that have rows in any of `states`.

        Raises:
            Unavailable: No answer.
        """
        run, state = task_metadata.c.run, task_metadata.c.state
        query = select(run).where(state.in_(states)).distinct().order_by(run)
        with reading(self._engine) as connection:
            return [RunId(run) for run in connection.execute(query).scalars()]

    def states(self, run: RunId) -> Mapping[str, int]:
        """Count this region's rows of `run` by state.

        Raises:
            Unavailable: No answer.
        """
        query = (
            select(task_metadata.c.state, func.count())
            .where(task_metadata.c.run == run)
            .group_by(task_metadata.c.state)
        )
        with reading(self._engine) as connection:
            return {state: count for state, count in connection.execute(query)}  # noqa: C416

    def count(self) -> int:
        """Count the rows.

        Raises:
            Unavailable: No answer.
        """
        with reading(self._engine) as connection:
            return connection.execute(select(func.count()).select_from(task_metadata)).scalar_one()

    def clear(self) -> None:
        """Drop all rows.

        Raises:
            Unavailable: Nothing was written.
            OutcomeUnknown: The answer was lost; the same call again is safe.
        """
        with writing(self._engine) as connection:
            connection.execute(delete(task_metadata))
