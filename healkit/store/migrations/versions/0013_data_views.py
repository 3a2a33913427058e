"""Frames and arrays that are kept beside the database."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Make the table of views, and the one of the executions that refer to them."""
    op.create_table(
        "dataview",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("view_name", sa.String, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("shape", sa.JSON, nullable=False),
        sa.Column("columns", sa.JSON, nullable=False),
        sa.Column("row_count", sa.BigInteger, nullable=False),
        sa.Column("file_name", sa.String, nullable=False),
        sa.Column("size_bytes", sa.BigInteger, nullable=False),
        sa.Column("created_by", sa.String, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("named", sa.Boolean, nullable=False),
        sa.Column("evicted_at", sa.DateTime(timezone=True)),
        sa.UniqueConstraint("view_name", name="uq_dataview_name"),
    )
    op.create_index("ix_dataview_sha256", "dataview", ["sha256"])
    op.create_table(
        "dataviewuse",
        sa.Column("trace_id", sa.String(36), primary_key=True),
        sa.Column("side", sa.String(16), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("sha256", sa.String(64), nullable=False),
    )
    op.create_index("ix_dataviewuse_sha256", "dataviewuse", ["sha256"])
