"""The one rule of every row: only a higher `seq` replaces it, whoever comes last."""

from __future__ import annotations

from sqlalchemy import Engine, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.dml import Insert


def newer_upsert(engine: Engine, table: Table) -> Insert:
    """Return the insert that replaces a row of the same task if its own `seq` is higher."""
    names = [column.name for column in table.columns if not column.primary_key]
    if engine.dialect.name == "postgresql":
        on_postgresql = postgresql.insert(table)
        new = on_postgresql.excluded
        return on_postgresql.on_conflict_do_update(
            index_elements=[table.c.task],
            set_={name: new[name] for name in names},
            where=new.seq > table.c.seq,
        )
    on_sqlite = sqlite.insert(table)
    new = on_sqlite.excluded
    return on_sqlite.on_conflict_do_update(
        index_elements=[table.c.task],
        set_={name: new[name] for name in names},
        where=new.seq > table.c.seq,
    )
