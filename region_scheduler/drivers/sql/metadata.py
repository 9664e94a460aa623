"""The attributes of this region's tasks."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

from sqlalchemy import Engine, func, select

from region_scheduler.domain.ids import RunId
from region_scheduler.drivers.sql.engine import reading, writing
from region_scheduler.drivers.sql.tables import task_metadata
from region_scheduler.drivers.sql.upsert import newer_upsert
from region_scheduler.ports.backlog import TaskRow

_FIELDS: Final = tuple(field.name for field in dataclasses.fields(TaskRow))


class SqlMetadata:
    """`ports.backlog.Metadata` on a relational store. Any number of threads may use one."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._upsert = newer_upsert(engine, task_metadata)

    def record(self, rows: Sequence[TaskRow]) -> None:
        """Insert or replace rows by `seq`, in one transaction.

        Raises:
            Unavailable: Nothing was written.
            OutcomeUnknown: The answer was lost; the same call again is safe.
        """
        if not rows:
            return
        values = [
            {name: getattr(row, name) for name in _FIELDS}
            for row in sorted(rows, key=lambda row: row.task)
        ]
        with writing(self._engine) as connection:
            connection.execute(self._upsert, values)

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
