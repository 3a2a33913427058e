"""Indexes of executions by origin, and of own ones.

Own executions are those that did not only try code out. A log under half a million trials took a second for its first
page, and an origin with few rows was looked for in all of them.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the three indexes."""
    op.create_index("ix_executionlog_origin_time", "executionlog", ["origin", "timestamp"])
    _create("own", "origin <> 'trial' AND origin <> 'search'")
    # Of two indexes that would do, SQLite takes the one that was made last; a tool's failures may be few.
    for name in ("tool_time", "time"):
        op.drop_index(f"ix_executionlog_own_failed_{name}", "executionlog")
    _create("own_failed", "status = 'FAILURE' AND origin <> 'trial' AND origin <> 'search'")


def _create(kind: str, condition: str) -> None:
    where = sa.text(condition)
    for name, columns in (("tool_time", ["tool_name", "timestamp"]), ("time", ["timestamp"])):
        op.create_index(
            f"ix_executionlog_{kind}_{name}",
            "executionlog",
            columns,
            sqlite_where=where,
            postgresql_where=where,
        )
