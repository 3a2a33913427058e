"""Fewer triggers on the log, for a cheaper row.

SQLite runs the program of each trigger to find out that its condition is false: three for a row that begins, and five
of the six for a run that succeeds. One trigger for a new row and two for a change do the same work.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from healkit.errors import DatabaseError

revision = "0010"
down_revision = "0009"

_REPLACED = (
    "day_insert", "day_update_old", "day_update_new", "group_insert", "group_update_old", "group_update_new",
    "words_insert", "words_first", "words_again",
)  # fmt: skip
_COLUMNS = (
    "status, timestamp, tool_name, persona, revision, duration_ms, fingerprint, error_traceback, run_id"
)
_ENDED = "{row}.status <> 'RUNNING'"
_FAILED = "{row}.status = 'FAILURE' AND {row}.fingerprint IS NOT NULL"
_WORDS = "{row}.error_traceback IS NOT NULL"


def upgrade() -> None:
    """Replace nine triggers by three."""
    if op.get_bind().dialect.name != "sqlite":
        return  # PostgreSQL has one trigger
    bodies = _bodies()
    days, groups = (
        {
            row: _only_where(bodies[f"{name}_update_{row}"], condition.format(row=row))
            for row in ("old", "new")
        }
        for name, condition in (("day", _ENDED), ("group", _FAILED))
    )
    index_words = bodies["words_insert"]  # its statements have the condition already
    forget_words = _only_where(bodies["words_delete"], _WORDS.format(row="old"))
    for name in _REPLACED:
        op.get_bind().exec_driver_sql(f"DROP TRIGGER executionlog_{name}")
    ended, words = _ENDED.format(row="new"), _WORDS.format(row="new")
    _create("inserted", "INSERT", f"{ended} OR {words}", days["new"] + groups["new"] + index_words)
    # A run that succeeds needs this one only.
    _create("ended", f"UPDATE OF {_COLUMNS}", ended, bodies["day_update_new"])
    _create(
        "changed",
        f"UPDATE OF {_COLUMNS}",
        f"{_ENDED.format(row='old')} OR new.status = 'FAILURE' OR {_WORDS.format(row='old')} OR {words}",
        days["old"] + groups["old"] + groups["new"] + forget_words + index_words,
    )


def _bodies() -> dict[str, str]:
    """Return the statements of the triggers so far; raise `DatabaseError` where one is missing or was changed."""
    bodies = {}
    for name in (*_REPLACED, "words_delete"):
        known = sa.text("SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = :name")
        sql = op.get_bind().execute(known, {"name": f"executionlog_{name}"}).scalar()
        _, begin, body = str(sql).partition("\nBEGIN")
        if not begin or not body.endswith("END"):
            raise DatabaseError(
                f"The trigger 'executionlog_{name}' of the log is missing or was changed.",
                hint="Nothing was changed. Restore the database from a copy.",
            )
        bodies[name] = body.removesuffix("END")
    return bodies


def _only_where(body: str, condition: str) -> str:
    """Add the condition to each statement of a trigger."""
    conditional = []
    for statement in body.split(";")[:-1]:
        inserted, conflict, action = statement.partition("\n    ON CONFLICT")
        before, values, rest = inserted.partition("VALUES (")
        if values:
            inserted = f"{before}SELECT {rest.rstrip().removesuffix(')')} WHERE {condition}"
        else:
            inserted += f" AND {condition}"
        conditional.append(f"{inserted}{conflict}{action};")
    return "".join(conditional) + "\n"


def _create(name: str, event: str, condition: str, body: str) -> None:
    op.get_bind().exec_driver_sql(
        f"CREATE TRIGGER executionlog_{name} AFTER {event} ON executionlog WHEN {condition}\nBEGIN{body}END"
    )
