"""A tenant's share as one index range; whole requirements; due times that outlast a lost lock.

Both tables are emptied: what they held is in the graph store, and a row that stayed would keep
made-up values until its task moves. The next comparison refills them.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_BEST_FIRST = (sa.text("priority DESC"), sa.text("remaining_s DESC"), "due_s", "task")


def upgrade() -> None:
    """Add what is new; the promotion index begins with the tenant from now on."""
    _empty()
    op.drop_index("backlog_by_promotion", "backlog")
    with op.batch_alter_table("backlog") as table:
        table.add_column(sa.Column("spell", sa.Text, nullable=False))
        if op.get_bind().dialect.name == "postgresql":
            table.alter_column("tenant", type_=sa.Text(collation="C"), existing_nullable=False)
    op.create_index("backlog_by_tenant", "backlog", ["tenant", *_BEST_FIRST, "rests_until_s"])
    with op.batch_alter_table("task_metadata") as table:
        table.drop_column("locks")
        table.add_column(sa.Column("losses_limit", sa.Integer, nullable=False))
        table.add_column(sa.Column("losses", sa.Integer, nullable=False))
        table.add_column(sa.Column("requirements", sa.Text, nullable=False))


def downgrade() -> None:
    """Go back to one promotion index over all tenants."""
    _empty()
    op.drop_index("backlog_by_tenant", "backlog")
    with op.batch_alter_table("backlog") as table:
        table.drop_column("spell")
        if op.get_bind().dialect.name == "postgresql":
            table.alter_column("tenant", type_=sa.Text(), existing_nullable=False)
    op.create_index("backlog_by_promotion", "backlog", [*_BEST_FIRST, "rests_until_s"])
    with op.batch_alter_table("task_metadata") as table:
        for name in ("requirements", "losses", "losses_limit"):
            table.drop_column(name)
        table.add_column(sa.Column("locks", sa.Text, nullable=False))


def _empty() -> None:
    op.execute("DELETE FROM backlog")
    op.execute("DELETE FROM task_metadata")
