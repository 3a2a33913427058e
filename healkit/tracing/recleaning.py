"""Traces that were put together elsewhere, cleaned as if nobody had yet.

For who is handed a finished trace and cannot know what was done about it: the collector's server (a client's word is a
claim), and an exporter of raw traces. Cleaning what is clean changes nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from healkit.contracts.traces import ExecutionTrace
from healkit.tracing.payloads import UNLIMITED
from healkit.tracing.redaction import Cleaner


def cleaned_trace(
    trace: ExecutionTrace, cleaner: Cleaner, limit_bytes: int
) -> tuple[ExecutionTrace, dict[str, int]]:
    """The same trace with everything in it cleaned that a person or a tool may have written, and what that hid.

    Ids, names, codes, times and numbers of the contract stay as they are. Each payload has the limit for itself.
    """
    hidden: Counter[str] = Counter()

    def clean(value: Any, limit: int = limit_bytes) -> Any:
        found = cleaner.clean(value, limit_bytes=limit)
        hidden.update(found.hidden)
        return found.value

    def text(value: str) -> str:
        return str(clean(value)) if value else value

    # As a whole first, for what a key says of its value.
    metadata = {key: clean(value) for key, value in clean(trace.metadata, UNLIMITED).items()}
    tasks = [
        msgspec.structs.replace(task, args=clean(task.args), result=clean(task.result))
        for task in trace.task_results
    ]
    decisions = [
        msgspec.structs.replace(each, outcome=text(each.outcome), condition=text(each.condition))
        for each in trace.decisions
    ]
    error = None if trace.error is None else text(trace.error)
    cleaned = msgspec.structs.replace(
        trace, error=error, task_results=tasks, decisions=decisions, metadata=metadata
    )
    return cleaned, dict(hidden)
