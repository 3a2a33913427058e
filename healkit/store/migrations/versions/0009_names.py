"""Renamed and removed tools.

A removed tool is marked, and its revisions and rows stay. What happened to a tool's name is appended to `toolchange`,
from which a former name is resolved.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the mark of a removed tool, and the table of changes."""
    op.add_column("toolregistry", sa.Column("removed_at", sa.DateTime(timezone=True), nullable=True))
    op.create_table(
        "toolchange",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("tool_id", sa.Integer, sa.ForeignKey("toolregistry.id"), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("old_name", sa.String, nullable=False),
        sa.Column("new_name", sa.String, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("ix_toolchange_old_name", "toolchange", ["old_name"])
    op.create_index("ix_toolchange_tool", "toolchange", ["tool_id"])
