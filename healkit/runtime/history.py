"""Executions read back from the log."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from healkit.contracts.failure import Failure
from healkit.contracts.records import CallRecord, Grants
from healkit.runtime.execution import Execution
from healkit.store.models import ExecutionCall, ExecutionLog


def execution_of(row: ExecutionLog, calls: list[ExecutionCall]) -> Execution:
    """A row of the log as an `Execution`; its value is gone, its summary is not."""
    return Execution(
        tool_name=row.tool_name,
        persona=row.persona,
        arguments=_arguments(row.arguments),
        status=row.status,
        trace_id=row.trace_id,
        timestamp=row.timestamp,
        log_id=row.id,
        failure=_failure(row),
        result_summary=row.result_summary,
        calls=[_call(call) for call in calls],
        duration_ms=row.duration_ms,
        isolation=row.isolation,
        revision=row.revision,
        origin=row.origin,
        last_output=row.last_output or "",
        grants=_grants(row.grants),
    )


def _arguments(stored: Any) -> dict[str, Any]:
    if isinstance(stored, str):  # arguments that were too long to be kept whole are kept as cut text
        return {"…": stored}
    return stored if isinstance(stored, dict) else {}


def _grants(stored: Any) -> Grants:
    """As they were; none where another program wrote the row, or a healkit that knew other ones."""
    try:
        return msgspec.convert(stored or {}, Grants)
    except msgspec.ValidationError:
        return Grants()


def _failure(row: ExecutionLog) -> Failure | None:
    """The failure as it was; rebuilt from the contract's own columns where another program wrote the row."""
    if row.status != "FAILURE":
        return None
    try:
        return msgspec.convert(row.failure, Failure)
    except msgspec.ValidationError:
        return Failure(
            row.error_code or "TOOL_EXCEPTION",
            row.ename or "Error",
            row.evalue or "",
            row.error_traceback or "",
        )


def _call(row: ExecutionCall) -> CallRecord:
    return CallRecord(
        trace_id=row.trace_id,
        task_id=row.task_id,
        server=row.server,
        tool=row.tool,
        arguments=row.arguments if isinstance(row.arguments, str) else json.dumps(row.arguments),
        started_at=row.started_at,
        success=row.success,
        result_summary=row.result_summary or "",
        error_code=row.error_code,
        error=row.error or "",
        duration_ms=row.duration_ms,
    )
