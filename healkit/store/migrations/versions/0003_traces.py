"""Traces, and the outbox they wait in."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the table of traces, which is the outbox too, and that of branch decisions."""
    op.create_table(
        "executiontrace",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("trace_id", sa.String(36), nullable=False),
        sa.Column("parent_trace_id", sa.String(36)),
        sa.Column("wire", sa.Text, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("queued_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("attempted_at", sa.DateTime(timezone=True)),
        sa.Column("next_attempt_at", sa.DateTime(timezone=True)),
        sa.Column("lease_owner", sa.Text),
        sa.Column("lease_until", sa.DateTime(timezone=True)),
        sa.UniqueConstraint("trace_id", name="uq_executiontrace_trace"),
    )
    op.create_index("ix_executiontrace_state", "executiontrace", ["state", "queued_at"])
    op.create_index("ix_executiontrace_parent", "executiontrace", ["parent_trace_id"])
    op.create_table(
        "executiondecision",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("trace_id", sa.String(36), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("after_task", sa.String(16), nullable=False),
        sa.Column("node", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("condition", sa.Text, nullable=False),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=False),
        sa.UniqueConstraint("trace_id", "number", name="uq_executiondecision_number"),
    )
