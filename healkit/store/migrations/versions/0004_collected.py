"""Table of the traces that a collector was sent."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make the table of the traces that arrived here from elsewhere, and its indexes."""
    op.create_table(
        "collectedtrace",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("trace_id", sa.String(36), nullable=False),
        sa.Column("parent_trace_id", sa.String(36)),
        sa.Column("capability_id", sa.Text, nullable=False),
        sa.Column("tool_name", sa.String, nullable=False),
        sa.Column("tool_id", sa.Integer),
        sa.Column("success", sa.Boolean, nullable=False),
        sa.Column("timestamp", sa.DateTime(timezone=True), nullable=False),
        sa.Column("duration_ms", sa.Float, nullable=False),
        sa.Column("detail", sa.Integer, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("wire", sa.Text, nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.UniqueConstraint("trace_id", name="uq_collectedtrace_trace"),
    )
    op.create_index("ix_collectedtrace_time", "collectedtrace", ["timestamp", "id"])
    op.create_index("ix_collectedtrace_tool_time", "collectedtrace", ["tool_name", "timestamp", "id"])
    partial = {
        "ix_collectedtrace_failed_tool_time": (["tool_name", "timestamp", "id"], "NOT success"),
        "ix_collectedtrace_failed_time": (["timestamp", "id"], "NOT success"),
        "ix_collectedtrace_parent": (["parent_trace_id"], "parent_trace_id IS NOT NULL"),
        "ix_collectedtrace_standalone": (["capability_id"], "tool_id IS NULL"),
    }
    for name, (columns, condition) in partial.items():
        where = sa.text(condition)
        op.create_index(name, "collectedtrace", columns, sqlite_where=where, postgresql_where=where)
