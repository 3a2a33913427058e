"""Traces of tools that go together."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import select

from healkit.core.secrets.cleaner import Verbatim
from healkit.core.store.database import Database
from healkit.core.store.models import COLLECTED, TRACES
from healkit.parts.collect.service import Ingest
from healkit.parts.learn.facts import Learned, learned_of
from healkit.parts.learn.graph import GraphLearner
from healkit.parts.learn.tables import TOOL_EDGES, TOOL_NODES, TOOL_SEQUENCES, TOOL_WORDS
from healkit.parts.traces.contract import read_trace
from healkit.parts.traces.outbox import CollectedTraces

BEGAN = datetime(2026, 1, 5, 9, tzinfo=UTC)
TABLES = (TOOL_NODES, TOOL_EDGES, TOOL_SEQUENCES, TOOL_WORDS)


def call(tool: str, begin_ms: int, end_ms: int, *, args: Any = None, result: Any = None) -> dict[str, Any]:
    """Make a call that a trace lists."""
    return {
        "tool": tool, "args": args or {}, "result": result, "durationMs": end_ms - begin_ms, "success": True,
        "timestamp": (BEGAN + timedelta(milliseconds=begin_ms)).isoformat(),
    }  # fmt: skip


def trace(
    tool: str, *calls: dict[str, Any], at_s: float = 0.0, success: bool = True, **said: Any
) -> dict[str, Any]:
    """Make the trace of an execution as a client sends it; said: its metadata."""
    return {
        "id": str(uuid.uuid4()), "parentId": None, "capabilityId": f"local.app.default.{tool}.0123456789ab",
        "success": success, "error": None if success else "ValueError: no", "durationMs": 500.0,
        "timestamp": (BEGAN + timedelta(seconds=at_s)).isoformat(),
        "taskResults": [{**one, "taskId": f"t{number}"} for number, one in enumerate(calls, 1)], "decisions": [],
        "metadata": {"process": "one", **({} if success else {"errorCode": "TOOL_EXCEPTION"}), **said},
    }  # fmt: skip


def collect(database: Database, *traces: dict[str, Any]) -> None:
    """Send traces to the collector of a database."""
    stored = Ingest(CollectedTraces(database), Verbatim(), 10_240).store(json.dumps(traces).encode())
    assert not getattr(stored, "errors", None), stored


def teach(database: Database, *, at_once: int = 1_000) -> GraphLearner:
    """Learn from every trace of a database; at_once: as many in a transaction, each with a learner made new."""
    traces = stored_traces(database)
    with database.write() as session:
        GraphLearner().clear(session)
    for start in range(0, len(traces), at_once) or [0]:
        learner = GraphLearner()
        with database.write() as session:
            learner.load(session)
            learner.learn(traces[start : start + at_once])
            learner.store(session)
    return learner


def stored_traces(database: Database) -> list[Learned]:
    """Return what every stored trace teaches, in the order in which they were stored."""
    found = []
    with database.read() as session:
        for table in (TRACES, COLLECTED):
            wires = session.scalars(select(table.c.wire).order_by(table.c.id))
            found += [learned_of(read_trace(wire), collected=table is COLLECTED) for wire in wires]
    return [one for one in found if one is not None]


def stored(database: Database) -> dict[str, Sequence[Any]]:
    """Return the rows of the graph's tables."""
    with database.read() as session:
        return {table.name: sorted(map(tuple, session.execute(select(table)))) for table in TABLES}
