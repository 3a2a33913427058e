"""The log's statements, compiled once, and records as their parameters.

An ORM session for each row costs 32 times a bare insert, SQLAlchemy Core on a held connection 3.5 times; the
bound is three. So Core writes each statement once, for whatever dialect the database speaks, and the text it
compiled is run on the driver's own cursor with the parameters put through the bind processors of the column
types. Values that are JSON text already (arguments, failures) skip the processor that would encode them
again.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

import msgspec
from sqlalchemy import JSON, Dialect, Table, bindparam, null, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.expression import UpdateBase

from healkit.contracts.records import (
    CALL_MAX_CHARS,
    CallRecord,
    DecisionRecord,
    Finished,
    Record,
    Started,
    StoredTrace,
    summarize,
)
from healkit.errors import ConfigError
from healkit.store.columns import table_of
from healkit.store.models import ExecutionCall, ExecutionDecision, ExecutionLog, TraceRow

_INSERTS: dict[str, Callable[[Table], Any]] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}

LOG: Table = table_of(ExecutionLog)
CALLS: Table = table_of(ExecutionCall)
DECISIONS: Table = table_of(ExecutionDecision)
TRACES: Table = table_of(TraceRow)

_STARTED = (
    "trace_id", "timestamp", "tool_name", "persona", "arguments", "status", "parent_trace_id", "origin",
    "revision", "code_hash", "isolation", "grants", "deadline", "last_output", "host", "run_id",
)  # fmt: skip
_FINISHED = (
    "status", "result_summary", "error_traceback", "error_code", "ename", "evalue", "failure", "fingerprint",
    "finished_at", "duration_ms", "last_output",
)  # fmt: skip
_TRACE = ("trace_id", "parent_trace_id", "wire", "state", "attempts", "reason", "created_at", "queued_at")
_CALL_ENDED = ("success", "result_summary", "error_code", "error", "duration_ms")

#: Any one kind of record; what comes in goes out.
AnyRecord = TypeVar("AnyRecord", bound=Record)

_encode = msgspec.json.Encoder().encode


def insert_into(dialect_name: str, table: Table) -> Any:
    """An insert of that dialect, which knows what to do on a conflict; raises `ConfigError` for a third one."""
    if dialect_name not in _INSERTS:
        raise ConfigError(
            f"healkit keeps no log on {dialect_name!r}.", hint="Use a SQLite file or a PostgreSQL URL."
        )
    return _INSERTS[dialect_name](table)


class Compiled:
    """One statement as the driver takes it, and how to turn a dict of values into its parameters."""

    def __init__(self, statement: UpdateBase, dialect: Dialect) -> None:
        compiled = statement.compile(dialect=dialect)
        self.sql = str(compiled)
        positions = getattr(compiled, "positiontup", None)
        self.positional = positions is not None
        names = positions if positions is not None else list(compiled.binds)
        self._binds = [(name, _processor(compiled.binds[name].type, dialect)) for name in names]

    def parameters(self, values: dict[str, Any]) -> Any:
        """The parameters in the driver's own form: a list, or a dict where it names them."""
        if self.positional:
            return [
                values[name] if process is None else process(values[name]) for name, process in self._binds
            ]
        return {
            name: values[name] if process is None else process(values[name]) for name, process in self._binds
        }


class Statements:
    """All that the log ever writes, in the database's dialect."""

    def __init__(self, dialect: Dialect) -> None:
        insert = partial(insert_into, dialect.name)
        started = insert(LOG).values(_binds(LOG, _STARTED)).returning(LOG.c.id)
        # A replay must find its row and say its id, and must not turn a finished row into a running one.
        self.begin = Compiled(
            started.on_conflict_do_update(
                index_elements=["trace_id"], set_={"origin": started.excluded.origin}
            ),
            dialect,
        )
        whole = (
            insert(LOG).values(_binds(LOG, tuple(dict.fromkeys(_STARTED + _FINISHED)))).returning(LOG.c.id)
        )
        self.whole = Compiled(
            whole.on_conflict_do_update(
                index_elements=["trace_id"], set_={name: whole.excluded[name] for name in _FINISHED}
            ),
            dialect,
        )
        finish = update(LOG).where(LOG.c.trace_id == bindparam("its_trace", type_=LOG.c.trace_id.type))
        finish = finish.values(_binds(LOG, _FINISHED)).returning(LOG.c.id)
        self.finish = Compiled(finish, dialect)
        self.finish_running = Compiled(
            finish.where(LOG.c.status == bindparam("was", type_=LOG.c.status.type)), dialect
        )
        names = tuple(column.name for column in CALLS.columns if column.name != "id")
        call = insert(CALLS).values(_binds(CALLS, names))
        # The record of a call's end may overtake that of its beginning, when the latter waited in the spool.
        self.call = Compiled(
            call.on_conflict_do_update(
                index_elements=["trace_id", "task_id"],
                set_={name: call.excluded[name] for name in _CALL_ENDED},
                where=call.excluded.success.is_not(None),
            ),
            dialect,
        )
        decided = tuple(column.name for column in DECISIONS.columns if column.name != "id")
        self.decision = Compiled(
            insert(DECISIONS)
            .values(_binds(DECISIONS, decided))
            .on_conflict_do_nothing(index_elements=["trace_id", "number"]),
            dialect,
        )
        self.trace = Compiled(_trace_statement(insert), dialect)


def started_values(record: Started) -> dict[str, Any]:
    """The columns of a row that is about to run."""
    return {
        "trace_id": record.trace_id,
        "timestamp": record.timestamp,
        "tool_name": record.tool_name,
        "persona": record.persona,
        "arguments": record.arguments,
        "status": "RUNNING",
        "parent_trace_id": record.parent_trace_id,
        "origin": record.origin,
        "revision": record.revision,
        "code_hash": record.code_hash,
        "isolation": record.isolation,
        "grants": _encode(record.grants).decode(),
        "deadline": record.deadline,
        "last_output": "",
        "host": _encode(record.host).decode(),
        "run_id": record.run_id,
    }


def finished_values(record: Finished) -> dict[str, Any]:
    """The columns that an ending fills in."""
    failure, summary = record.failure, record.result_summary
    return {
        "its_trace": record.trace_id,
        "was": "RUNNING",
        "status": record.status,
        "result_summary": None if summary is None else summarize(summary),
        "error_traceback": None if failure is None else failure.traceback,
        "error_code": None if failure is None else failure.code,
        "ename": None if failure is None else failure.ename,
        "evalue": None if failure is None else summarize(failure.evalue),
        "failure": None if failure is None else _encode(failure).decode(),
        "fingerprint": record.fingerprint,
        "finished_at": record.finished_at,
        "duration_ms": record.duration_ms,
        "last_output": record.last_output,
    }


def call_values(record: CallRecord) -> dict[str, Any]:
    """The columns of a bridged call."""
    return {
        "trace_id": record.trace_id,
        "task_id": record.task_id,
        "server": record.server,
        "tool": record.tool,
        "arguments": record.arguments,
        "started_at": record.started_at,
        "success": record.success,
        "result_summary": summarize(record.result_summary, CALL_MAX_CHARS),
        "error_code": record.error_code,
        "error": record.error,
        "duration_ms": record.duration_ms,
    }


def decision_values(record: DecisionRecord) -> dict[str, Any]:
    """The columns of a branch decision."""
    return msgspec.structs.asdict(record)


def trace_values(trace_id: str, trace: StoredTrace, created_at: datetime) -> dict[str, Any]:
    """The columns of a trace that nobody has tried to send yet."""
    return {
        "trace_id": trace_id,
        "parent_trace_id": trace.parent_trace_id,
        "wire": trace.wire,
        "state": "pending" if trace.send else "local",
        "attempts": 0,
        "reason": "",
        "created_at": created_at,
        "queued_at": created_at,
    }


def _trace_statement(insert: Callable[[Table], Any]) -> Any:
    """A replay changes nothing; a true ending that comes after a verdict that the host died is to be sent again."""
    statement = insert(TRACES).values(_binds(TRACES, _TRACE))
    return statement.on_conflict_do_update(
        index_elements=["trace_id"],
        set_={
            **{name: statement.excluded[name] for name in ("wire", "state", "attempts", "reason")},
            **dict.fromkeys(("next_attempt_at", "lease_owner", "lease_until"), null()),
        },
        where=TRACES.c.wire != statement.excluded.wire,
    )


def storable(record: AnyRecord) -> AnyRecord:
    """The record with every character that a database or UTF-8 refuses written as an escape.

    Lone surrogates cannot be encoded at all, and PostgreSQL takes no NUL in a text. Only called for a record
    that was refused, so that the others do not pay for the search.
    """
    return msgspec.convert(escaped(msgspec.to_builtins(record)), type(record))


def escaped(value: Any) -> Any:
    """A text, or every text in a structure, with what cannot be stored written as an escape."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode().replace("\x00", "\\x00")
    if isinstance(value, dict):
        return {key: escaped(item) for key, item in value.items()}
    return [escaped(item) for item in value] if isinstance(value, list | tuple) else value


def _binds(table: Table, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: bindparam(name, type_=table.c[name].type) for name in names}


def _processor(kind: Any, dialect: Dialect) -> Callable[[Any], Any] | None:
    if isinstance(kind, JSON):
        return None
    processor: Callable[[Any], Any] | None = kind.dialect_impl(dialect).bind_processor(dialect)
    return processor
