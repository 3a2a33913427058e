"""Words of own executions, apart from trials.

A search of the log for a text leaves trials out. Where a healing had left thousands of them, SQLite read each of their
rows to find out. The facts in its full-text index say it from now on. PostgreSQL's index of words has no facts. A
healing's own trials had a fingerprint, so that groups of failures counted them; they have none from now on.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from healkit.errors import DatabaseError

revision = "0008"
down_revision = "0007"

#: How migration 0002 writes the last of a row's facts, and what follows it from now on.
_BEFORE = "|| ' ' || {row}.status)"
_AFTER = (
    "|| ' ' || {row}.status || CASE WHEN {row}.origin IN ('trial', 'search')"
    " THEN '' ELSE ' healkitown healkitown' || {row}.tool_name END)"
)


#: The triggers that keep the index, and which rows they write the facts of.
_TRIGGERS = {"insert": ("new",), "first": ("new",), "again": ("old", "new"), "delete": ("old",)}


def upgrade() -> None:
    """Take trials out of groups, change the triggers that keep the index of words, and fill that index anew."""
    execute = op.get_bind().exec_driver_sql
    on_sqlite = op.get_bind().dialect.name == "sqlite"
    triggers = _changed_triggers() if on_sqlite else {}
    # Before any row is changed: the index is filled anew at the end, and would be kept up row by row until then.
    for name in triggers:
        execute(f"DROP TRIGGER {name}")
    execute(
        "UPDATE executionlog SET fingerprint = NULL"
        " WHERE origin IN ('trial', 'search') AND fingerprint IS NOT NULL"
    )
    if not on_sqlite:
        return
    for changed in triggers.values():
        execute(changed)
    facts = (
        "(e.tool_name || ' ' || e.persona || ' ' || coalesce(e.fingerprint, '') || ' ' || coalesce(e.run_id, '') "
        + _AFTER.format(row="e")
    )
    execute("INSERT INTO executionlog_fts (executionlog_fts) VALUES ('delete-all')")
    # In the order of the keys: any other makes FTS5 begin a new segment for each row.
    execute(
        "INSERT INTO executionlog_fts (rowid, facts, traceback) "
        f"SELECT k.key, {facts}, error_traceback FROM executionlog_fts_rows AS k "
        "JOIN executionlog AS e ON e.id = k.log_id ORDER BY k.key"
    )


def _changed_triggers() -> dict[str, str]:
    """Return the triggers as they are to be, by name; raise `DatabaseError` for one that is not as 0002 made it."""
    found: dict[str, str] = {}
    for event, rows in _TRIGGERS.items():
        name = f"executionlog_words_{event}"
        known = sa.text("SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = :name")
        sql = str(op.get_bind().execute(known, {"name": name}).scalar())
        for row in rows:
            before = _BEFORE.format(row=row)
            if before not in sql:
                raise DatabaseError(
                    f"The trigger {name!r} of the log is missing or was changed: it does not hold {before!r}.",
                    hint="Nothing was changed. Restore the database from a copy.",
                )
            sql = sql.replace(before, _AFTER.format(row=row))
        found[name] = sql
    return found
