"""The one rule of every row: only a higher `seq` replaces it, whoever comes last."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, Engine, Table, bindparam, case, delete
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.dml import Delete, Insert
from sqlalchemy.types import TypeDecorator


class NewerUpsert:
    """The insert that replaces a row of the same task if its own `seq` is higher.

    It is compiled once: the library compiles an upsert anew at every call, and prepares each value
    of each row at more cost than the store needs to write it.

    Args:
        engine: Says which SQL is spoken.
        table: With the columns `task` and `seq`.
        kept: Columns that keep the old row's value as long as `while_same` does not change.
        while_same: A column.

    Attributes:
        names: The columns, in the order in which rows give their values.
    """

    def __init__(
        self, engine: Engine, table: Table, kept: Iterable[str] = (), while_same: str = ""
    ) -> None:
        self.names = tuple(column.name for column in table.columns)
        compiled = _newer_upsert(engine, table, kept, while_same).compile(engine)
        self._text = str(compiled)
        self._is_positional = engine.dialect.positional
        self._prepared = [
            (place, prepare)
            for place, column in enumerate(table.columns)
            if isinstance(column.type, TypeDecorator)
            and (prepare := column.type.bind_processor(engine.dialect)) is not None
        ]

    def execute(self, connection: Connection, rows: Iterable[Iterable[Any]]) -> None:
        """Execute it for many rows, each with its values in the order of `names`."""
        values = [list(row) for row in rows]
        for place, prepare in self._prepared:
            for row in values:
                row[place] = prepare(row[place])
        # The drivers take both; the order of the values is that of the columns in the statement.
        sent: Any = (
            [tuple(row) for row in values]
            if self._is_positional
            else [dict(zip(self.names, row, strict=True)) for row in values]
        )
        connection.exec_driver_sql(self._text, sent)


def _newer_upsert(engine: Engine, table: Table, kept: Iterable[str], while_same: str) -> Insert:
    dialect = postgresql if engine.dialect.name == "postgresql" else sqlite
    insert: postgresql.Insert | sqlite.Insert = dialect.insert(table)
    new, old = insert.excluded, table.c
    values: dict[str, Any] = {c.name: new[c.name] for c in table.columns if not c.primary_key}
    for name in kept:
        is_same = new[while_same] == old[while_same]
        values[name] = case((is_same, old[name]), else_=new[name])
    return insert.on_conflict_do_update(
        index_elements=[old.task], set_=values, where=new.seq > old.seq
    )


def older_delete(table: Table) -> Delete:
    """Return the delete of the row of `of_task` unless its `seq` is higher than `of_seq`."""
    return delete(table).where(
        table.c.task == bindparam("of_task"), table.c.seq <= bindparam("of_seq")
    )
