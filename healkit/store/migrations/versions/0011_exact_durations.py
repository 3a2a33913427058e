"""Sums of durations on PostgreSQL, as SQLite has them.

PostgreSQL rounds a float to 15 digits when it becomes a numeric, so that the whole µs of some durations were one more
than on SQLite, which cuts the float itself.
"""

from __future__ import annotations

from alembic import op

from healkit.errors import DatabaseError

revision = "0011"
down_revision = "0010"

_BEFORE = "CAST(trunc(CAST(coalesce({0}duration_ms, 0) * 1000 AS numeric)) AS bigint)"
_AFTER = "CAST(trunc(coalesce({0}duration_ms, 0) * 1000) AS bigint)"


def upgrade() -> None:
    """Change what PostgreSQL's trigger adds and takes away, and what it has summed up so far."""
    if op.get_bind().dialect.name == "sqlite":
        return
    # In this order the rows that differ are taken off as they were counted, and counted anew.
    _rewrite("new.")
    op.execute(
        "UPDATE executionlog SET duration_ms = duration_ms "
        f"WHERE status <> 'RUNNING' AND {_BEFORE.format('')} <> {_AFTER.format('')}"
    )
    _rewrite("old.")


def _rewrite(row: str) -> None:
    execute = op.get_bind().exec_driver_sql
    function = str(execute("SELECT pg_get_functiondef('healkit_log_changed'::regproc)").scalar_one())
    if _BEFORE.format(row) not in function:
        raise DatabaseError(
            "The function 'healkit_log_changed' of the log was changed.",
            hint="Nothing was changed. Restore the database from a copy.",
        )
    execute(function.replace(_BEFORE.format(row), _AFTER.format(row)))
