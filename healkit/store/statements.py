"""The statements of the execution path: read from a file, and run on the driver's own cursor.

SQLAlchemy takes longer to load than a worker takes to start, and an execution needs a handful of statements that never
change. So they are compiled beforehand (`store.rows` says from what) into `statements.json`, for each dialect, with the
kind of each parameter and column beside them. A test compares the file with what SQLAlchemy compiles from the tables,
and `HEALKIT_REGENERATE=1` writes it anew. Values that are JSON text already (arguments, failures) stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from healkit.contracts.records import (
    CALL_MAX_CHARS,
    CallRecord,
    DecisionRecord,
    Finished,
    Started,
    StoredTrace,
    summarize,
)
from healkit.errors import ConfigError

FILE = Path(__file__).with_name("statements.json")

#: How a value is turned into the driver's form and back; `plain` is as it is.
Kind = Literal["plain", "time", "json", "bool"]

_encode = msgspec.json.Encoder().encode


class Statement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One statement as the driver takes it: its parameters and, for a question, its columns, each with its kind.

    `positional` says that the driver takes the parameters as a list; only SQLite's does.
    """

    sql: str
    positional: bool
    parameters: list[tuple[str, Kind]]
    columns: list[tuple[str, Kind]] = []

    def bind(self, values: dict[str, Any]) -> Any:
        """The parameters in the driver's own form: a list, or a dict where it names them."""
        if self.positional:
            return [_text_of(values[n]) if kind == "time" else values[n] for n, kind in self.parameters]
        return {n: _utc(values[n]) if kind == "time" else values[n] for n, kind in self.parameters}

    def read(self, row: tuple[Any, ...]) -> dict[str, Any]:
        """A row of the answer by the names of its columns; a driver other than SQLite's has decoded it already."""
        named = zip(self.columns, row, strict=True)
        if self.positional:
            return {name: value if value is None else _READ[kind](value) for (name, kind), value in named}
        return {name: _utc(value) if kind == "time" else value for (name, kind), value in named}


class Statements(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that an execution and a start ask of the database, in its dialect; `store.rows` builds each."""

    begin: Statement
    whole: Statement
    finish: Statement
    finish_running: Statement
    call: Statement
    decision: Statement
    trace: Statement
    lookup: Statement
    owners: Statement
    newest: Statement
    tried_since: Statement
    running: Statement


@cache
def statements_for(dialect_name: str) -> Statements:
    """The statements of `sqlite` or `postgresql`; raises `ConfigError` for a third dialect."""
    known = msgspec.json.decode(FILE.read_bytes(), type=dict[str, Statements])
    if dialect_name not in known:
        raise ConfigError(
            f"healkit keeps no log on {dialect_name!r}.", hint="Use a SQLite file or a PostgreSQL URL."
        )
    return known[dialect_name]


def _utc(value: datetime | None) -> datetime | None:
    if value is None:
        return None
    if value.tzinfo is None:
        raise ValueError(f"{value!r} has no time zone; healkit stores aware times only")
    return value.astimezone(UTC)


def _text_of(value: datetime | None) -> str | None:
    """A time as SQLAlchemy has SQLite keep it: in UTC, without the offset."""
    utc = _utc(value)
    return None if utc is None else utc.replace(tzinfo=None).isoformat(" ", "microseconds")


_READ: dict[Kind, Callable[[Any], Any]] = {
    "plain": lambda value: value,
    "time": lambda value: datetime.fromisoformat(value).replace(tzinfo=UTC),
    "json": json.loads,
    "bool": bool,
}


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
