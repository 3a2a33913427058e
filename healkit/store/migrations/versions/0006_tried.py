"""Runs that only tried code out, apart from a tool's own.

A search makes thousands of them, most of which fail. They are rows like any other, but count for no group of failures
(they have no fingerprint), are counted in days under revision -1, and the newest failure of a tool's own is found
without stepping over them. The triggers of migration 0002 are changed where they are, so that what they say is said
once.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_TRIED = "origin IN ('trial', 'search')"
_OWN_FAILURE = "status = 'FAILURE' AND origin <> 'trial' AND origin <> 'search'"
#: How migration 0002 says the revision that a day is counted under, and how it is said from now on.
_BEFORE = "coalesce({row}.revision, 0)"
_AFTER = "CASE WHEN {row}.origin IN ('trial', 'search') THEN -1 ELSE coalesce({row}.revision, 0) END"


def upgrade() -> None:
    """Change the triggers, move what is counted already, and add the indexes of a tool's own failures."""
    # In this order each row is taken off where it was counted, and counted where it belongs.
    _rewrite("new")
    op.execute(f"UPDATE executionlog SET fingerprint = NULL, revision = revision WHERE {_TRIED}")
    _rewrite("old")
    own = sa.text(_OWN_FAILURE)
    for name, columns in (("tool_time", ["tool_name", "timestamp"]), ("time", ["timestamp"])):
        op.create_index(
            f"ix_executionlog_own_failed_{name}",
            "executionlog",
            columns,
            sqlite_where=own,
            postgresql_where=own,
        )


def _rewrite(row: str) -> None:
    """Replace what the triggers say of the `old` row, or of the `new` one."""
    before, after = _BEFORE.format(row=row), _AFTER.format(row=row)
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        found = (
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'executionlog_day_%'"
        )
        for name, sql in connection.exec_driver_sql(found).all():
            if before in sql:
                connection.exec_driver_sql(f"DROP TRIGGER {name}")
                connection.exec_driver_sql(sql.replace(before, after))
    else:
        function = connection.exec_driver_sql("SELECT pg_get_functiondef('healkit_log_changed'::regproc)")
        connection.exec_driver_sql(str(function.scalar_one()).replace(before, after))
