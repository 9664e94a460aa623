"""The one rule of every row: only a higher `seq` replaces it, whoever comes last."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Engine, Table, bindparam, case, delete
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.dml import Delete


def newer_upsert(
    engine: Engine, table: Table, kept: Iterable[str] = (), while_same: str = ""
) -> Any:
    """Return the insert that replaces a row of the same task if its own `seq` is higher.

    It is compiled here, once: an insert with ON CONFLICT has no place in SQLAlchemy's cache, and
    to compile it takes as long as to write a hundred rows.

    Args:
        engine: Says which SQL is spoken.
        table: With the columns `task` and `seq`.
        kept: Columns that keep the old row's value as long as `while_same` does not change.
        while_same: A column.
    """
    dialect = postgresql if engine.dialect.name == "postgresql" else sqlite
    insert: postgresql.Insert | sqlite.Insert = dialect.insert(table)
    new, old = insert.excluded, table.c
    values: dict[str, Any] = {c.name: new[c.name] for c in table.columns if not c.primary_key}
    for name in kept:
        is_same = new[while_same] == old[while_same]
        values[name] = case((is_same, old[name]), else_=new[name])
    statement = insert.on_conflict_do_update(
        index_elements=[old.task], set_=values, where=new.seq > old.seq
    )
    return statement.compile(dialect=engine.dialect)


def older_delete(table: Table) -> Delete:
    """Return the delete of the row of `of_task` unless its `seq` is higher than `of_seq`."""
    return delete(table).where(
        table.c.task == bindparam("of_task"), table.c.seq <= bindparam("of_seq")
    )
