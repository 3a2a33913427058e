"""Traces to learn from, stored as executions store theirs."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Table, insert, select

from healkit.core.store.database import Database
from healkit.core.store.models import TRACES
from healkit.parts.learn.consumer import Consumer
from healkit.parts.learn.service import consumer_of
from healkit.parts.learn.tables import LEARNED, PRIORITIES, VALUES
from healkit.parts.traces.contract import ExecutionTrace, TaskResult, capability_id_of, encode_trace

START = datetime(2026, 1, 1, tzinfo=UTC)
#: Code's hash, which a capability's name ends in.
OLD, NEW = "1" * 64, "2" * 64
_numbers = itertools.count()


def call(tool: str, begin_ms: int = 0, *, ended_ms: int | None = None, **changes: Any) -> TaskResult:
    """Make a call; its id is given by `trace`."""
    values: dict[str, Any] = {
        "task_id": "t1", "tool": tool, "args": {}, "result": None,
        "duration_ms": float((begin_ms if ended_ms is None else ended_ms) - begin_ms),
        "success": True, "timestamp": START + timedelta(milliseconds=begin_ms),
    }  # fmt: skip
    return TaskResult(**{**values, **changes})


def trace(
    tool: str,
    success: bool = True,
    calls: Sequence[TaskResult] = (),
    *,
    code: str | None = OLD,
    **metadata: Any,
) -> ExecutionTrace:
    """Make the trace of an execution of a tool."""
    number = next(_numbers)
    numbered = [
        TaskResult(
            f"t{n}", one.tool, one.args, one.result, one.duration_ms, one.success, one.timestamp
        )
        for n, one in enumerate(calls, 1)
    ]  # fmt: skip
    said = {"tool": tool, "persona": "default", "origin": "python", **metadata}
    if not success:
        said.setdefault("errorCode", "TOOL_EXCEPTION")
    return ExecutionTrace(
        str(uuid.uuid4()), None, capability_id_of("local", "test", "default", tool, code), success,
        None if success else "ValueError: 3", 9.0, START + timedelta(seconds=number), numbered, [], said,
    )  # fmt: skip


def store(database: Database, traces: Iterable[ExecutionTrace]) -> list[str]:
    """Store traces as their executions do; their ids."""
    rows = [
        {
            "trace_id": one.id, "wire": encode_trace(one).decode(), "state": "local", "attempts": 0, "reason": "",
            "created_at": one.timestamp, "queued_at": one.timestamp,
        }
        for one in traces
    ]  # fmt: skip
    with database.write() as session:
        session.execute(insert(TRACES), rows)
    return [str(row["trace_id"]) for row in rows]


def learn(database: Database, *traces: ExecutionTrace) -> Consumer:
    """Store traces and learn from them."""
    store(database, traces)
    consumer = consumer_of(database)
    consumer.catch_up()
    return consumer


def learned(database: Database, *tables: Table) -> dict[str, list[Any]]:
    """Return all rows of what was learned, for comparison."""
    with database.read() as session:
        return {
            table.name: sorted(map(tuple, session.execute(select(table))), key=repr)
            for table in tables or (LEARNED, VALUES, PRIORITIES)
        }
