"""Sample entries of the audit, and what healkit never does."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from typing import Any

import psycopg

from healkit.core.secrets.cleaner import Verbatim
from healkit.core.store.database import Database
from healkit.parts.runs.audit import Audit
from healkit.parts.runs.audit_records import AuditEntry, AuditHead

#: Drop what refuses changes, as a user with the rights can.
_UNGUARD = {
    "sqlite": [f"DROP TRIGGER traceauditentry_{event}" for event in ("insert", "update", "delete")],
    "postgresql": ["DROP TRIGGER traceauditentry_kept ON traceauditentry",
                   "DROP TRIGGER traceauditentry_next ON traceauditentry"],
}  # fmt: skip


def audit_of(database: Database, *anchored: Any) -> Audit:
    """Open the audit of a database, with secrets left as they are."""
    return Audit(database, Verbatim, lambda: anchored)


def filled(audit: Audit, *executions: str) -> list[AuditEntry]:
    """Append an entry for each of these executions, in this order."""
    return [
        audit.append(execution, "decide", "gather_info", tool_name="schema_of", tool_params={"place": place},
                     metadata={"rowCount": place, "success": True})
        for place, execution in enumerate(executions)
    ]  # fmt: skip


def head_at(audit: Audit, entries: list[AuditEntry], count: int) -> AuditHead:
    """Return the head as it was after so many entries."""
    return AuditHead(audit.head().chain, count, entries[count - 1].hash)


@contextlib.contextmanager
def unguarded(database: Database) -> Iterator[Any]:
    """Open a second connection, without the triggers; what it does is committed at the end."""
    if database.path is not None:
        with contextlib.closing(sqlite3.connect(database.path)) as connection:
            for statement in _UNGUARD["sqlite"]:
                connection.execute(statement)
            yield connection
            connection.commit()
        return
    with psycopg.connect(database.url.replace("+psycopg", "")) as server:
        for statement in _UNGUARD["postgresql"]:
            server.execute(statement)
        yield server
