"""Cleaning of traces.

It cleans traces that others made, and a trace after its later parts revealed more secrets.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from healkit.core.secrets.cleaner import UNLIMITED, Cleaner, RecordCleaner
from healkit.parts.traces.contract import ExecutionTrace


def cleaned_trace(
    trace: ExecutionTrace, sanitizer: Cleaner, limit_bytes: int
) -> tuple[ExecutionTrace, dict[str, int]]:
    """Clean a foreign trace, whatever was done to it there; return it and what was hidden, by rule.

    The collector's server calls this for traces from clients, and an exporter for raw traces. Each payload has its own
    limit, `limit_bytes`. Cleaning a clean trace changes nothing.
    """
    hidden: Counter[str] = Counter()
    cleaner = sanitizer.of_record()

    def clean(value: object, limit: int = limit_bytes) -> Any:
        result = cleaner.clean(value, limit_bytes=limit)
        hidden.update(result.hidden)
        return result.value

    def text(value: str) -> str:
        return str(clean(value)) if value else value

    # The metadata as a whole first: a key may say what its value is.
    metadata = {key: clean(value) for key, value in clean(trace.metadata, UNLIMITED).items()}
    tasks = [
        msgspec.structs.replace(task, args=clean(task.args), result=clean(task.result))
        for task in trace.task_results
    ]
    decisions = [
        msgspec.structs.replace(decision, outcome=text(decision.outcome), condition=text(decision.condition))
        for decision in trace.decisions
    ]
    error = None if trace.error is None else text(trace.error)
    cleaned = msgspec.structs.replace(
        trace, error=error, task_results=tasks, decisions=decisions, metadata=metadata
    )
    return trace_again(cleaned, cleaner), dict(hidden)


def trace_again(trace: ExecutionTrace, cleaner: RecordCleaner) -> ExecutionTrace:
    """Return a trace that this cleaner has cleaned in parts, without values that later parts revealed."""
    if not cleaner.has_hidden:
        return trace
    tasks = [
        msgspec.structs.replace(task, args=cleaner.again(task.args), result=cleaner.again(task.result))
        for task in trace.task_results
    ]
    decisions = [
        msgspec.structs.replace(
            decision, outcome=cleaner.again(decision.outcome), condition=cleaner.again(decision.condition)
        )
        for decision in trace.decisions
    ]
    error, metadata = cleaner.again(trace.error), cleaner.again(trace.metadata)
    return msgspec.structs.replace(
        trace, error=error, task_results=tasks, decisions=decisions, metadata=metadata
    )
