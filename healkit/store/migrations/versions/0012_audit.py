"""Audit: its entries, and the id of their chain.

An entry is never changed or removed. The trigger on a new one refuses a gap in the numbers, and with it SQLite's
`INSERT OR REPLACE`, which removes a row without asking the triggers on removal.
"""

from __future__ import annotations

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

_ENTRIES, _CHAIN = "traceauditentry", "traceauditchain"
#: An entry that does not follow those that there are.
_NOT_NEXT = """new.id IS DISTINCT FROM (SELECT coalesce(max(id), 0) + 1 FROM traceauditentry)
    OR new.seq IS DISTINCT FROM (
        SELECT coalesce(max(seq), 0) + 1 FROM traceauditentry WHERE execution_id = new.execution_id
    )"""
_ONLY_APPENDED = "the audit is append-only"


def upgrade() -> None:
    """Make the two tables, begin a chain, and let nothing but the next entry in."""
    op.create_table(_CHAIN, sa.Column("chain", sa.String(64), primary_key=True))
    op.create_table(
        _ENTRIES,
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("execution_id", sa.String(128), nullable=False),
        sa.Column("execution_type", sa.String(16), nullable=False),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("timestamp", sa.DateTime(timezone=True), nullable=False),
        sa.Column("choice_type", sa.String(40), nullable=False),
        sa.Column("tool_name", sa.Text, nullable=False),
        sa.Column("tool_params", sa.Text, nullable=False),
        sa.Column("metadata", sa.Text, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("run_id", sa.String),
        sa.Column("event_seq", sa.Integer),
        sa.Column("previous_hash", sa.String(64), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.UniqueConstraint("execution_id", "seq", name="uq_traceauditentry_seq"),
    )
    chain = sa.table(_CHAIN, sa.column("chain"))
    op.execute(sa.insert(chain).values(chain=secrets.token_hex(32)))
    _triggers_of_sqlite() if op.get_bind().dialect.name == "sqlite" else _triggers_of_postgresql()


def _triggers_of_sqlite() -> None:
    # SQLite writes IS NOT for IS DISTINCT FROM, which it knows from version 3.39 on.
    not_next = _NOT_NEXT.replace("IS DISTINCT FROM", "IS NOT")
    refused = (
        (_ENTRIES, "insert", f"WHEN {not_next} "),
        (_ENTRIES, "update", ""),
        (_ENTRIES, "delete", ""),
        (_CHAIN, "insert", ""),
        (_CHAIN, "update", ""),
        (_CHAIN, "delete", ""),
    )
    for table, event, condition in refused:
        op.get_bind().exec_driver_sql(
            f"CREATE TRIGGER {table}_{event} BEFORE {event.upper()} ON {table} {condition}"
            f"BEGIN SELECT RAISE(ABORT, '{_ONLY_APPENDED}'); END"
        )


def _triggers_of_postgresql() -> None:
    execute = op.get_bind().exec_driver_sql
    execute(
        "CREATE FUNCTION healkit_audit_kept() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN\n"
        f"RAISE EXCEPTION '{_ONLY_APPENDED}' USING ERRCODE = 'restrict_violation'; END $$"
    )
    execute(
        "CREATE FUNCTION healkit_audit_next() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN\n"
        f"IF {_NOT_NEXT} THEN\n"
        f"RAISE EXCEPTION '{_ONLY_APPENDED}' USING ERRCODE = 'restrict_violation'; END IF;\n"
        "RETURN new; END $$"
    )
    changes = "UPDATE OR DELETE OR TRUNCATE"
    for table, event in ((_ENTRIES, changes), (_CHAIN, f"INSERT OR {changes}")):
        execute(
            f"CREATE TRIGGER {table}_kept BEFORE {event} ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION healkit_audit_kept()"
        )
    execute(
        f"CREATE TRIGGER {_ENTRIES}_next BEFORE INSERT ON {_ENTRIES} "
        "FOR EACH ROW EXECUTE FUNCTION healkit_audit_next()"
    )
