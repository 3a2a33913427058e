"""Tables for learning from traces."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from healkit.core.store.models import UtcDateTime

revision = "r0004"
down_revision = "r0003"


def upgrade() -> None:
    """Make the tables, empty: everything except imported fixes is computed from the log."""
    op.create_table(
        "learningstate",
        sa.Column("name", sa.String(40), primary_key=True),
        sa.Column("value", sa.Text(), nullable=False),
    )
    op.create_table(
        "learnedvalue",
        sa.Column("state", sa.String(), primary_key=True),
        sa.Column("value", sa.Float(), nullable=False),
        sa.Column("visits", sa.Integer(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "learnedtrace",
        sa.Column("trace_id", sa.String(36), primary_key=True),
        sa.Column("task_id", sa.String(16), primary_key=True),
        sa.Column("tool_name", sa.String(), nullable=False),
        sa.Column("timestamp", UtcDateTime(), nullable=False),
        sa.Column("predicted", sa.Float(), nullable=False),
        sa.Column("succeeded", sa.Boolean(), nullable=False),
        sa.Column("td_error", sa.Float(), nullable=False),
        sa.Column("priority", sa.Float(), nullable=False),
        sa.Column("visits", sa.Integer(), nullable=False),
        sa.Column("model_version", sa.Integer(), nullable=False),
        sa.Column("slot", sa.BigInteger()),
        sqlite_with_rowid=False,
    )
    only = sa.text("slot IS NOT NULL")
    op.create_index(
        "ix_learnedtrace_slot", "learnedtrace", ["slot"], unique=True,
        sqlite_where=only, postgresql_where=only,
    )  # fmt: skip
    op.create_index(
        "ix_learnedtrace_tool", "learnedtrace", ["tool_name", "slot"],
        sqlite_where=only, postgresql_where=only,
    )  # fmt: skip
    op.create_table(
        "prioritycount",
        sa.Column("level", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("taken", sa.Integer(), nullable=False),
        sa.Column("live", sa.Integer(), nullable=False),
    )
    counted: dict[str, tuple[str, ...]] = {"toolnode": ("name",), "tooledge": ("source", "target", "kind")}
    for name, keys in counted.items():
        op.create_table(
            name,
            *(sa.Column(key, sa.String(16 if key == "kind" else None), primary_key=True) for key in keys),
            sa.Column("count", sa.Integer(), nullable=False),
            sa.Column("successes", sa.Integer(), nullable=False),
            sa.Column("first_seen", UtcDateTime(), nullable=False),
            sa.Column("last_seen", UtcDateTime(), nullable=False),
            sqlite_with_rowid=False,
        )
    counted = {"toolsequence": ("before", "last", "tool"), "toolword": ("word", "tool")}
    for name, keys in counted.items():
        op.create_table(
            name,
            *(sa.Column(key, sa.String(), primary_key=True) for key in keys),
            sa.Column("count", sa.Integer(), nullable=False),
            sqlite_with_rowid=False,
        )
    op.create_table(
        "fixmemory",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("outcome", sa.JSON(none_as_null=True)),
        sa.Column("created_at", UtcDateTime(), nullable=False),
    )
