"""Tables, as SQLModel classes and in SQLAlchemy.

They only use types, partial indexes and constraints that SQLite and PostgreSQL share. The first eight columns of
`executionlog` are its contract with readers outside of healkit and never change.

`executioncall` has no foreign key to `executionlog`: a call's record may reach the database before its execution's, if
that had to wait in the spool. `collectedtrace` has none either: a parent may arrive after its children.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    DateTime,
    Dialect,
    Index,
    Integer,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel

from healkit.errors import TOOL_CODES


class UtcDateTime(TypeDecorator[datetime]):
    """Aware time in UTC; SQLite does not store an offset, so it is removed on writing and added on reading."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert to UTC; raise `ValueError` for a naive time, whose meaning would be unknown later."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone; healkit stores aware times only")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the same moment in UTC, whatever the server's own zone is."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class TableBase(SQLModel, registry=registry()):
    """Base of healkit's tables, separate from a user's own SQLModel classes, which may have the same names."""


def json_column(*, nullable: bool = False) -> Any:
    """Make a column of JSON, in which None is SQL's NULL."""
    return Field(default=None if nullable else ..., sa_type=JSON(none_as_null=True), nullable=nullable)


def time_column(*, nullable: bool = False) -> Any:
    """Make a column of times."""
    return Field(default=None if nullable else ..., sa_type=UtcDateTime, nullable=nullable)


def text_column(*, nullable: bool = False) -> Any:
    """Make a column of texts of any length."""
    return Field(default=None if nullable else "", sa_type=Text, nullable=nullable)


def partial_index(name: str, *columns: str, where: str) -> Index:
    """Make an index of the rows that meet a condition, on either kind of database."""
    return Index(name, *columns, sqlite_where=text(where), postgresql_where=text(where))


def table_of(model: type[SQLModel]) -> Table:
    """Return a model's table, for statements of SQLAlchemy Core."""
    table: Table = model.__table__  # type: ignore[attr-defined]  # SQLModel adds it, but does not declare it
    return table


def upsert(dialect_name: str, table: Table, keys: Sequence[str], *, adding: str = "") -> Any:
    """Make a statement that inserts rows, or replaces rows with equal keys; replaced rows get new numbers.

    adding: Column whose old and new values are added up instead.
    """
    statement: Any = {"sqlite": sqlite, "postgresql": postgresql}[dialect_name].insert(table)
    new = {
        column.name: statement.excluded[column.name] for column in table.columns if column.name not in keys
    }
    if adding:
        new[adding] = table.c[adding] + statement.excluded[adding]
    return statement.on_conflict_do_update(index_elements=list(keys), set_=new)


_FAILED = "status = 'FAILURE'"
_RAN = ", ".join(f"'{code}'" for code in sorted(TOOL_CODES))
_REFUSED = f"{_FAILED} AND error_code NOT IN ({_RAN})"


class CodeVault(TableBase, table=True):
    """Code by the SHA-256 of its UTF-8 text; never changed, never removed."""

    __tablename__ = "codevault"

    hash: str = Field(primary_key=True, max_length=64)
    code: str = text_column()
    type: str = Field(max_length=16)
    created_at: datetime = time_column()


class ToolRegistry(TableBase, table=True):
    """Tool of one persona: its input schema, its owner's settings, and its active revision."""

    __tablename__ = "toolregistry"
    __table_args__ = (UniqueConstraint("tool_name", "target_persona", name="uq_toolregistry_tool"),)

    id: int | None = Field(default=None, primary_key=True)
    tool_name: str
    target_persona: str
    description: str = text_column()
    input_schema: dict[str, Any] = json_column()
    active_hash: str = Field(foreign_key="codevault.hash")
    active_revision: int
    group_name: str = ""
    flags: dict[str, Any] = json_column()
    grants: dict[str, Any] = json_column()
    examples: list[Any] = json_column()
    created_at: datetime = time_column()
    updated_at: datetime = time_column()
    removed_at: datetime | None = time_column(nullable=True)


class ToolChange(TableBase, table=True):
    """Renaming, removal or return of a tool; append-only. A former name still belongs to its tool, and leads to it.

    `kind` is `renamed`, `removed`, `restored` or `added` (again, under the name of a removed tool).
    """

    __tablename__ = "toolchange"
    __table_args__ = (Index("ix_toolchange_old_name", "old_name"), Index("ix_toolchange_tool", "tool_id"))

    id: int | None = Field(default=None, primary_key=True)
    tool_id: int = Field(foreign_key="toolregistry.id")
    kind: str = Field(max_length=16)
    old_name: str
    new_name: str
    reason: str = text_column()
    changed_at: datetime = time_column()


class Revision(TableBase, table=True):
    """Version of a tool's code; append-only, numbered from 1 for each tool and persona.

    `tool_name` changes when the tool is renamed; nothing else in a row ever changes.
    """

    __tablename__ = "revision"
    __table_args__ = (UniqueConstraint("tool_name", "target_persona", "number", name="uq_revision_number"),)

    id: int | None = Field(default=None, primary_key=True)
    tool_name: str
    target_persona: str
    number: int
    code_hash: str = Field(foreign_key="codevault.hash")
    parent: int | None = None
    author: str = Field(max_length=16)
    reason: str = text_column()
    motivating_log_id: int | None = None
    draft: bool = False
    created_at: datetime = time_column()


class PatchRow(TableBase, table=True):
    """Patch that waits for approval, or was decided; its code is in `codevault`.

    The same code for the same parent is one request, even from several proposers.
    """

    __tablename__ = "patchrequest"
    __table_args__ = (
        UniqueConstraint("tool_name", "target_persona", "parent", "code_hash", name="uq_patchrequest_patch"),
        partial_index("ix_patchrequest_pending", "created_at", where="state = 'pending'"),
    )

    id: int | None = Field(default=None, primary_key=True)
    tool_name: str
    target_persona: str
    parent: int
    code_hash: str = Field(foreign_key="codevault.hash")
    advisor: str = ""
    author: str = Field(max_length=16)
    reason: str = text_column()
    verdict: str = Field(default="", max_length=16)
    motivating_log_id: int | None = None
    run_id: str | None = None
    state: str = Field(default="pending", max_length=16)
    created_at: datetime = time_column()
    decided_at: datetime | None = time_column(nullable=True)
    decided_by: str = ""
    revision: int | None = None
    note: str = text_column()


#: Condition that excludes trials and searches; indexes use it, so queries must contain exactly this text.
OWN = "origin <> 'trial' AND origin <> 'search'"
OWN_FAILURE = f"{_FAILED} AND {OWN}"


class ExecutionLog(TableBase, table=True):
    """Execution: written as RUNNING before the tool starts, finished as SUCCESS or FAILURE after.

    `persona` is the one that the caller named. `arguments` and `host` are JSON; `failure` is the whole
    `contracts.failure.Failure`. `last_output` is the end of the tool's output when it was stopped.
    """

    __tablename__ = "executionlog"
    __table_args__ = (
        Index("ix_executionlog_tool_time", "tool_name", "timestamp"),
        Index("ix_executionlog_time", "timestamp"),
        # Without these two, a query for the busiest tool without failures takes a second at ten million rows.
        partial_index("ix_executionlog_failed_tool_time", "tool_name", "timestamp", where=_FAILED),
        partial_index("ix_executionlog_failed_time", "timestamp", where=_FAILED),
        # A tool's failures without trials and searches.
        partial_index("ix_executionlog_own_failed_tool_time", "tool_name", "timestamp", where=OWN_FAILURE),
        partial_index("ix_executionlog_own_failed_time", "timestamp", where=OWN_FAILURE),
        partial_index("ix_executionlog_refused_time", "timestamp", where=_REFUSED),
        # Pages without trials and searches, which are often most of the log; and those of one origin. Each
        # adds 3 % per row.
        partial_index("ix_executionlog_own_time", "timestamp", where=OWN),
        partial_index("ix_executionlog_own_tool_time", "tool_name", "timestamp", where=OWN),
        Index("ix_executionlog_origin_time", "origin", "timestamp"),
        # Searched at each start-up for orphans; a row is only in it while it runs.
        partial_index("ix_executionlog_running", "timestamp", where="status = 'RUNNING'"),
        partial_index(
            "ix_executionlog_fingerprint", "fingerprint", "timestamp", where="fingerprint IS NOT NULL"
        ),
        partial_index("ix_executionlog_run", "run_id", "timestamp", where="run_id IS NOT NULL"),
        partial_index("ix_executionlog_parent", "parent_trace_id", where="parent_trace_id IS NOT NULL"),
        partial_index("ix_executionlog_persona", "persona", "timestamp", where="persona <> 'default'"),
        UniqueConstraint("trace_id", name="uq_executionlog_trace"),
    )

    id: int | None = Field(default=None, primary_key=True)
    timestamp: datetime = time_column()
    tool_name: str
    persona: str
    arguments: Any = json_column(nullable=True)
    status: str = Field(max_length=16)
    result_summary: str | None = text_column(nullable=True)
    error_traceback: str | None = text_column(nullable=True)

    trace_id: str = Field(max_length=36)
    parent_trace_id: str | None = Field(default=None, max_length=36)
    origin: str = ""
    revision: int | None = None
    code_hash: str | None = Field(default=None, max_length=64)
    isolation: str | None = None
    grants: dict[str, Any] | None = json_column(nullable=True)
    error_code: str | None = None
    ename: str | None = text_column(nullable=True)
    evalue: str | None = text_column(nullable=True)
    failure: dict[str, Any] | None = json_column(nullable=True)
    fingerprint: str | None = None
    finished_at: datetime | None = time_column(nullable=True)
    duration_ms: float | None = None
    deadline: datetime | None = time_column(nullable=True)
    last_output: str = text_column()
    host: dict[str, Any] | None = json_column(nullable=True)
    run_id: str | None = None
    client: str | None = None


class ExecutionDecision(TableBase, table=True):
    """Branch that a tool reported; `after_task` is the last call that it had made by then."""

    __tablename__ = "executiondecision"
    __table_args__ = (UniqueConstraint("trace_id", "number", name="uq_executiondecision_number"),)

    id: int | None = Field(default=None, primary_key=True)
    trace_id: str = Field(max_length=36)
    number: int
    after_task: str = Field(default="", max_length=16)
    node: str = text_column()
    outcome: str = text_column()
    condition: str = text_column()
    decided_at: datetime = time_column()


class TraceRow(TableBase, table=True):
    """Trace of an execution in the wire format; in the state `pending`, it waits to be sent.

    `state` is `local` (recorded while nothing was sent anywhere), `pending`, `sent` or `parked` (refused, with the
    `reason`). `attempts` counts refusals. The trace that was tried last is at the end of the queue (`queued_at`).
    `lease_*` say which process is sending it, and until when.
    """

    __tablename__ = "executiontrace"
    __table_args__ = (
        Index("ix_executiontrace_state", "state", "queued_at"),
        Index("ix_executiontrace_parent", "parent_trace_id"),
        UniqueConstraint("trace_id", name="uq_executiontrace_trace"),
    )

    id: int | None = Field(default=None, primary_key=True)
    trace_id: str = Field(max_length=36)
    parent_trace_id: str | None = Field(default=None, max_length=36)
    wire: str = text_column()
    state: str = Field(max_length=16)
    attempts: int = 0
    reason: str = text_column()
    created_at: datetime = time_column()
    queued_at: datetime = time_column()
    attempted_at: datetime | None = time_column(nullable=True)
    next_attempt_at: datetime | None = time_column(nullable=True)
    lease_owner: str | None = text_column(nullable=True)
    lease_until: datetime | None = time_column(nullable=True)


class ExecutionCall(TableBase, table=True):
    """Call that a tool made through the bridge; `success` is empty until it has ended.

    `answered_from` is the execution whose recorded call answered it, if the call was not made.
    """

    __tablename__ = "executioncall"
    __table_args__ = (UniqueConstraint("trace_id", "task_id", name="uq_executioncall_task"),)

    id: int | None = Field(default=None, primary_key=True)
    trace_id: str = Field(max_length=36)
    task_id: str = Field(max_length=16)
    server: str
    tool: str
    arguments: Any = json_column(nullable=True)
    started_at: datetime = time_column()
    success: bool | None = None
    result_summary: str = text_column()
    error_code: str | None = None
    error: str = text_column()
    duration_ms: float | None = None
    answered_from: str | None = Field(default=None, max_length=36)


class CollectedTrace(TableBase, table=True):
    """Trace that a client sent here; `wire` is its JSON, cleaned on arrival, as readers get it.

    The columns before it are copies of its contents, for indexes. `tool_id` is the tool of this database that it ran;
    empty if it is unknown. `detail` and `digest` distinguish two reports of one execution (`store.traces`).
    """

    __tablename__ = "collectedtrace"
    __table_args__ = (
        Index("ix_collectedtrace_time", "timestamp", "id"),
        Index("ix_collectedtrace_tool_time", "tool_name", "timestamp", "id"),
        partial_index(
            "ix_collectedtrace_failed_tool_time", "tool_name", "timestamp", "id", where="NOT success"
        ),
        partial_index("ix_collectedtrace_failed_time", "timestamp", "id", where="NOT success"),
        partial_index("ix_collectedtrace_parent", "parent_trace_id", where="parent_trace_id IS NOT NULL"),
        partial_index("ix_collectedtrace_standalone", "capability_id", where="tool_id IS NULL"),
        UniqueConstraint("trace_id", name="uq_collectedtrace_trace"),
    )

    id: int | None = Field(default=None, primary_key=True)
    trace_id: str = Field(max_length=36)
    parent_trace_id: str | None = Field(default=None, max_length=36)
    capability_id: str = text_column()
    tool_name: str
    tool_id: int | None = None
    success: bool
    timestamp: datetime = time_column()
    duration_ms: float
    detail: int
    digest: str = Field(max_length=64)
    wire: str = text_column()
    received_at: datetime = time_column()


class ExecutionDay(TableBase, table=True):
    """Finished runs of a tool in one day (UTC) and one class of durations; kept by triggers on `executionlog`.

    `revision` is 0 for calls that were refused before it was known, -1 for trials and searches. `runs` counts all of
    them, `failures` the failures of code, `refused` the calls that were refused before any code ran. `within_ms` is the
    upper end of the class (1, 2, 5, 10 … 1,000,000,000). It is 0 for runs without a duration, 2,000,000,000 for longer
    ones. `total_us` is the sum of their durations, each cut to whole µs.
    """

    __tablename__ = "executionday"
    __table_args__ = ({"sqlite_with_rowid": False},)

    tool_name: str = Field(primary_key=True)
    day: date = Field(primary_key=True)
    persona: str = Field(primary_key=True)
    revision: int = Field(primary_key=True)
    within_ms: int = Field(primary_key=True)
    runs: int
    failures: int
    refused: int = Field(sa_column_kwargs={"server_default": "0"})
    total_us: int = Field(sa_type=BigInteger)


class FailureGroup(TableBase, table=True):
    """Recorded failures of one fingerprint, tool and persona; kept by triggers on `executionlog`."""

    __tablename__ = "failuregroup"
    __table_args__ = (Index("ix_failuregroup_seen", "last_seen"), {"sqlite_with_rowid": False})

    fingerprint: str = Field(primary_key=True)
    tool_name: str = Field(primary_key=True)
    persona: str = Field(primary_key=True)
    failures: int
    first_seen: datetime = Field(sa_type=UtcDateTime)
    first_log_id: int
    last_seen: datetime = Field(sa_type=UtcDateTime)
    last_log_id: int


class HostHeartbeat(TableBase, table=True):
    """Host that has executions in progress, and until when it counts as alive; only on a server."""

    __tablename__ = "hostheartbeat"
    __table_args__ = ({"sqlite_with_rowid": False},)

    host: str = Field(primary_key=True)
    alive_until: datetime = Field(sa_type=UtcDateTime)


TOOLS: Table = table_of(ToolRegistry)
CHANGES: Table = table_of(ToolChange)
REVISIONS: Table = table_of(Revision)
LOG: Table = table_of(ExecutionLog)
CALLS: Table = table_of(ExecutionCall)
DECISIONS: Table = table_of(ExecutionDecision)
TRACES: Table = table_of(TraceRow)
COLLECTED: Table = table_of(CollectedTrace)
DAYS: Table = table_of(ExecutionDay)
GROUPS: Table = table_of(FailureGroup)


# The audit's tables are tables of SQLAlchemy, not models, because a model cannot have an attribute
# `metadata`, which is a column here. `store.audit` writes and reads them without SQLAlchemy. The definitions
# serve the test of the migrations, and your own statements.


#: Audit entries; append-only by triggers. `id` and `seq` have no gaps.
AUDIT_ENTRIES = Table(
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
#: Id of the chain, in one row that never changes.
AUDIT_CHAIN = Table("traceauditchain", TableBase.metadata, Column("chain", String(64), primary_key=True))
