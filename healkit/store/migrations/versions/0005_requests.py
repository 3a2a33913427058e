"""Patches that wait for the user's word."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Make the table of patch requests, and the index that the pending ones are listed by."""
    op.create_table(
        "patchrequest",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("tool_name", sa.String, nullable=False),
        sa.Column("target_persona", sa.String, nullable=False),
        sa.Column("parent", sa.Integer, nullable=False),
        sa.Column("code_hash", sa.String(64), sa.ForeignKey("codevault.hash"), nullable=False),
        sa.Column("advisor", sa.String, nullable=False),
        sa.Column("author", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("verdict", sa.String(16), nullable=False),
        sa.Column("motivating_log_id", sa.Integer),
        sa.Column("run_id", sa.String),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("decided_at", sa.DateTime(timezone=True)),
        sa.Column("decided_by", sa.String, nullable=False),
        sa.Column("revision", sa.Integer),
        sa.Column("note", sa.Text, nullable=False),
        sa.UniqueConstraint(
            "tool_name", "target_persona", "parent", "code_hash", name="uq_patchrequest_patch"
        ),
    )
    pending = sa.text("state = 'pending'")
    op.create_index(
        "ix_patchrequest_pending",
        "patchrequest",
        ["created_at"],
        sqlite_where=pending,
        postgresql_where=pending,
    )
