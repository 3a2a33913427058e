"""Refused calls, counted apart from failures of code.

A row is one of them by its `error_code`. The triggers are changed where they are, as in migration 0006.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from healkit.errors import DatabaseError

revision = "0014"
down_revision = "0013"

#: The codes of runs, as `errors.TOOL_CODES` has them: any other is that of a refused call.
_RAN = (
    "'HOST_DIED', 'INTERNAL_ERROR', 'SQL_ERROR', 'TOOL_CPU_LIMIT', 'TOOL_CRASHED', 'TOOL_DISK_LIMIT', "
    "'TOOL_EXCEPTION', 'TOOL_EXITED', 'TOOL_KILLED', 'TOOL_OUTPUT_LIMIT', 'TOOL_OUT_OF_MEMORY', 'TOOL_PROTOCOL', "
    "'TOOL_RESULT_TOO_LARGE', 'TOOL_RESULT_UNSUPPORTED', 'TOOL_TIMEOUT', 'WORKER_LOST'"
)
_REFUSED = f"status = 'FAILURE' AND error_code NOT IN ({_RAN})"
_ONE = "CASE WHEN {row}.status = 'FAILURE' THEN 1 ELSE 0 END"
_ONE_FAILED = (
    f"CASE WHEN {{row}}.status = 'FAILURE' AND coalesce({{row}}.error_code, 'TOOL_EXCEPTION') IN ({_RAN}) "
    "THEN 1 ELSE 0 END"
)
_ONE_REFUSED = (
    f"CASE WHEN {{row}}.status = 'FAILURE' AND {{row}}.error_code NOT IN ({_RAN}) THEN 1 ELSE 0 END"
)
#: What the triggers say of the `new` row, and of the `old` one, and what they say from now on.
_CHANGES = {
    "new": (
        ("runs, failures, total_us)", "runs, failures, refused, total_us)"),
        (f", 1, {_ONE},", f", 1, {_ONE_FAILED}, {_ONE_REFUSED},"),
        (
            "failures = executionday.failures + excluded.failures,",
            (
                "failures = executionday.failures + excluded.failures,\n"
                "        refused = executionday.refused + excluded.refused,"
            ),
        ),
    ),
    "old": (
        (
            f"failures = failures - {_ONE},",
            f"failures = failures - {_ONE_FAILED},\n        refused = refused - {_ONE_REFUSED},",
        ),
    ),
}
_TRIGGERS = {"new": ("inserted", "ended"), "old": ("changed", "day_delete")}
_COLUMNS = "status, timestamp, tool_name, persona, revision, duration_ms, fingerprint"


def upgrade() -> None:
    """Add the column, change the triggers, move what is counted already, and add an index."""
    op.add_column("executionday", sa.Column("refused", sa.Integer, nullable=False, server_default="0"))
    if op.get_bind().dialect.name != "sqlite":
        execute = op.get_bind().exec_driver_sql
        execute("DROP TRIGGER executionlog_changed ON executionlog")
        execute(
            f"CREATE TRIGGER executionlog_changed AFTER INSERT OR DELETE OR UPDATE OF {_COLUMNS}, error_code "
            "ON executionlog FOR EACH ROW EXECUTE FUNCTION healkit_log_changed()"
        )
    # In this order each row is taken off as it was counted, and counted anew.
    _rewrite("new")
    op.execute(f"UPDATE executionlog SET error_code = error_code, status = status WHERE {_REFUSED}")
    _rewrite("old")
    refused = sa.text(_REFUSED)
    op.create_index(
        "ix_executionlog_refused_time",
        "executionlog",
        ["timestamp"],
        sqlite_where=refused,
        postgresql_where=refused,
    )


def _rewrite(row: str) -> None:
    """Replace what the triggers say of the `old` row, or of the `new` one."""
    execute = op.get_bind().exec_driver_sql
    if op.get_bind().dialect.name == "sqlite":
        for name in _TRIGGERS[row]:
            known = sa.text("SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = :name")
            sql = str(op.get_bind().execute(known, {"name": f"executionlog_{name}"}).scalar())
            written = _changed(sql, row).replace(f"{_COLUMNS}, error_tr", f"{_COLUMNS}, error_code, error_tr")
            execute(f"DROP TRIGGER executionlog_{name}")
            execute(written)
    else:
        execute(
            _changed(
                str(execute("SELECT pg_get_functiondef('healkit_log_changed'::regproc)").scalar_one()), row
            )
        )


def _changed(sql: str, row: str) -> str:
    """Make the changes; raise `DatabaseError` where what is to be replaced is not there."""
    for known, wanted in _CHANGES[row]:
        before, after = known.format(row=row), wanted.format(row=row)
        if before not in sql:
            raise DatabaseError(
                "A trigger that counts the log is missing or was changed.",
                hint="Nothing was changed. Restore the database from a copy.",
            )
        sql = sql.replace(before, after)
    return sql
