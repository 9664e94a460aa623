"""Rows know whose they are and which pause lets them pass.

The backlog is emptied: what it held is in the graph store, and the next comparison refills it.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add both columns."""
    op.execute("DELETE FROM backlog")
    with op.batch_alter_table("backlog") as table:
        table.add_column(sa.Column("passport", sa.Text, nullable=False))
        table.add_column(sa.Column("bucket", sa.Integer, nullable=False))
    op.create_index("backlog_by_bucket", "backlog", ["bucket"])


def downgrade() -> None:
    """Drop both columns."""
    op.execute("DELETE FROM backlog")
    op.drop_index("backlog_by_bucket", "backlog")
    with op.batch_alter_table("backlog") as table:
        table.drop_column("bucket")
        table.drop_column("passport")
