"""Statements that are compiled once.

The library takes a statement apart at every call to find out whether it has compiled it before,
which costs more than SQLite takes to answer. As with any plain SQL, values go in and come out as
the driver has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, CursorResult, Engine
from sqlalchemy.sql import ClauseElement


class Prepared:
    """One statement in the SQL of one store.

    Args:
        engine: Says which SQL is spoken.
        statement: All of its values are bound parameters with names.
    """

    def __init__(self, engine: Engine, statement: ClauseElement) -> None:
        compiled: Any = statement.compile(engine)
        self._text = str(compiled)
        self._order: Sequence[str] | None = compiled.positiontup

    def once(self, connection: Connection, **values: Any) -> CursorResult[Any]:
        """Execute it with values by name."""
        return connection.exec_driver_sql(self._text, self._given(values))

    def each(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Execute it for every row, in their order."""
        given: Any = [self._given(row) for row in rows]
        connection.exec_driver_sql(self._text, given)

    def _given(self, values: Mapping[str, Any]) -> Any:
        return values if self._order is None else tuple(values[name] for name in self._order)
