"""Run by Alembic, on the connection that `schema` hands over, in its transaction."""

from __future__ import annotations

from alembic import context

from region_scheduler.drivers.sql.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    transactional_ddl=False,  # the transaction is the caller's
)
context.run_migrations()
