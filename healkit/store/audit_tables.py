"""Tables of the audit.

They are SQLAlchemy's own and no models: a model's attribute cannot be called `metadata`, as the column is. `audit_rows`
writes and reads them without SQLAlchemy; these are for the test of the migrations, and for statements of yours.
"""

from __future__ import annotations

from sqlalchemy import Column, Integer, String, Table, Text, UniqueConstraint

from healkit.store.columns import TableBase, UtcDateTime

#: Entries; append-only by triggers. `id` and `seq` have no gap.
ENTRIES = Table(
    "traceauditentry",
    TableBase.metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("execution_id", String(128), nullable=False),
    Column("execution_type", String(16), nullable=False),
    Column("seq", Integer, nullable=False),
    Column("timestamp", UtcDateTime, nullable=False),
    Column("choice_type", String(40), nullable=False),
    Column("tool_name", Text, nullable=False),
    Column("tool_params", Text, nullable=False),
    Column("metadata", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("run_id", String),
    Column("event_seq", Integer),
    Column("previous_hash", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
    UniqueConstraint("execution_id", "seq", name="uq_traceauditentry_seq"),
)
#: Id of the chain, in one row that is never changed.
CHAIN = Table("traceauditchain", TableBase.metadata, Column("chain", String(64), primary_key=True))
