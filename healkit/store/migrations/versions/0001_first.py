"""Tables of the vault and the execution log."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the five tables of the first release."""
    _vault()
    _log()
    _log_indexes()
    _calls()


def _time() -> sa.DateTime:
    return sa.DateTime(timezone=True)


def _vault() -> None:
    op.create_table(
        "codevault",
        sa.Column("hash", sa.String(64), primary_key=True),
        sa.Column("code", sa.Text, nullable=False),
        sa.Column("type", sa.String(16), nullable=False),
        sa.Column("created_at", _time(), nullable=False),
    )
    op.create_table(
        "toolregistry",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("tool_name", sa.String, nullable=False),
        sa.Column("target_persona", sa.String, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("input_schema", sa.JSON, nullable=False),
        sa.Column("active_hash", sa.String, sa.ForeignKey("codevault.hash"), nullable=False),
        sa.Column("active_revision", sa.Integer, nullable=False),
        sa.Column("group_name", sa.String, nullable=False),
        sa.Column("flags", sa.JSON, nullable=False),
        sa.Column("grants", sa.JSON, nullable=False),
        sa.Column("examples", sa.JSON, nullable=False),
        sa.Column("created_at", _time(), nullable=False),
        sa.Column("updated_at", _time(), nullable=False),
        sa.UniqueConstraint("tool_name", "target_persona", name="uq_toolregistry_tool"),
    )
    op.create_table(
        "revision",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("tool_name", sa.String, nullable=False),
        sa.Column("target_persona", sa.String, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("code_hash", sa.String, sa.ForeignKey("codevault.hash"), nullable=False),
        sa.Column("parent", sa.Integer),
        sa.Column("author", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("motivating_log_id", sa.Integer),
        sa.Column("draft", sa.Boolean, nullable=False),
        sa.Column("created_at", _time(), nullable=False),
        sa.UniqueConstraint("tool_name", "target_persona", "number", name="uq_revision_number"),
    )


def _log() -> None:
    op.create_table(
        "executionlog",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("timestamp", _time(), nullable=False),
        sa.Column("tool_name", sa.String, nullable=False),
        sa.Column("persona", sa.String, nullable=False),
        sa.Column("arguments", sa.JSON),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("result_summary", sa.Text),
        sa.Column("error_traceback", sa.Text),
        sa.Column("trace_id", sa.String(36), nullable=False),
        sa.Column("parent_trace_id", sa.String(36)),
        sa.Column("origin", sa.String, nullable=False),
        sa.Column("revision", sa.Integer),
        sa.Column("code_hash", sa.String(64)),
        sa.Column("isolation", sa.String),
        sa.Column("grants", sa.JSON),
        sa.Column("error_code", sa.String),
        sa.Column("ename", sa.Text),
        sa.Column("evalue", sa.Text),
        sa.Column("failure", sa.JSON),
        sa.Column("fingerprint", sa.String),
        sa.Column("finished_at", _time()),
        sa.Column("duration_ms", sa.Float),
        sa.Column("deadline", _time()),
        sa.Column("last_output", sa.Text, nullable=False),
        sa.Column("host", sa.JSON),
        sa.UniqueConstraint("trace_id", name="uq_executionlog_trace"),
    )


def _log_indexes() -> None:
    op.create_index("ix_executionlog_tool_time", "executionlog", ["tool_name", "timestamp"])
    op.create_index("ix_executionlog_time", "executionlog", ["timestamp"])
    partial = {
        "ix_executionlog_failed_tool_time": (["tool_name", "timestamp"], "status = 'FAILURE'"),
        "ix_executionlog_failed_time": (["timestamp"], "status = 'FAILURE'"),
        "ix_executionlog_running": (["timestamp"], "status = 'RUNNING'"),
        "ix_executionlog_fingerprint": (["fingerprint"], "fingerprint IS NOT NULL"),
    }
    for name, (columns, condition) in partial.items():
        where = sa.text(condition)
        op.create_index(name, "executionlog", columns, sqlite_where=where, postgresql_where=where)


def _calls() -> None:
    op.create_table(
        "executioncall",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("trace_id", sa.String(36), nullable=False),
        sa.Column("task_id", sa.String(16), nullable=False),
        sa.Column("server", sa.String, nullable=False),
        sa.Column("tool", sa.String, nullable=False),
        sa.Column("arguments", sa.JSON),
        sa.Column("started_at", _time(), nullable=False),
        sa.Column("success", sa.Boolean),
        sa.Column("result_summary", sa.Text, nullable=False),
        sa.Column("error_code", sa.String),
        sa.Column("error", sa.Text, nullable=False),
        sa.Column("duration_ms", sa.Float),
        sa.UniqueConstraint("trace_id", "task_id", name="uq_executioncall_task"),
    )
