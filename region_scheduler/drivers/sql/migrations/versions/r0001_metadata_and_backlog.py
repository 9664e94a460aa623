"""The first tables: metadata of a region's tasks, and the backlog of those that are ready."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make both tables and their indexes."""
    ids = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.create_table(
        "task_metadata",
        sa.Column("task", ids, primary_key=True),
        *(
            sa.Column(name, sa.Text, nullable=False)
            for name in ("run", "tenant", "name", "region", "state", "runner", "pool")
        ),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("priority", sa.BigInteger, nullable=False),
        sa.Column("delay_tolerance_s", sa.Float, nullable=False),
        sa.Column("expected_s", sa.Float, nullable=False),
        sa.Column("remaining_s", sa.Float, nullable=False),
        sa.Column("cap_s", sa.Float, nullable=False),
        sa.Column("retry_limit", sa.Integer, nullable=False),
        sa.Column("retries_used", sa.Integer, nullable=False),
        sa.Column("locks", sa.Text, nullable=False),
    )
    op.create_index("task_metadata_by_run", "task_metadata", ["run", "state"])
    op.create_table(
        "backlog",
        sa.Column("task", ids, primary_key=True),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("run", "tenant", "pool")),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("priority", sa.BigInteger, nullable=False),
        sa.Column("delay_tolerance_s", sa.Float, nullable=False),
        sa.Column("remaining_s", sa.Float, nullable=False),
        sa.Column("locks", sa.Text, nullable=False),
        sa.Column("due_s", sa.Float, nullable=False),
        sa.Column("rests_until_s", sa.Float, nullable=False),
    )
    best_first = [sa.text("priority DESC"), sa.text("remaining_s DESC")]
    op.create_index(
        "backlog_by_promotion", "backlog", [*best_first, "due_s", "task", "rests_until_s"]
    )
    op.create_index("backlog_by_rest", "backlog", ["rests_until_s"])


def downgrade() -> None:
    """Drop both tables; what they held can be rebuilt from the graph store."""
    op.drop_table("backlog")
    op.drop_table("task_metadata")
