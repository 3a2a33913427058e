"""Executions read back from the log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from healkit.contracts.failure import Failure
from healkit.contracts.records import (
    CallRecord,
    DecisionRecord,
    Grants,
    HostIdentity,
    Started,
    Step,
)
from healkit.errors import DatabaseError
from healkit.runtime.execution import Execution
from healkit.store.database import Database
from healkit.store.entries import DEFAULT_PERSONA
from healkit.store.statements import statements_for

if TYPE_CHECKING:
    from healkit.store.log import Log
    from healkit.store.models import ExecutionCall, ExecutionDecision, ExecutionLog


def execution_of(
    row: ExecutionLog, calls: list[ExecutionCall], decisions: list[ExecutionDecision] | None = None
) -> Execution:
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
        decisions=[_decision(decision) for decision in decisions or ()],
        duration_ms=row.duration_ms,
        isolation=row.isolation,
        revision=row.revision,
        origin=row.origin,
        last_output=row.last_output or "",
        grants=_grants(row.grants),
        run_id=row.run_id,
    )


def started_of(row: ExecutionLog) -> Started:
    """The record with which that row began."""
    arguments = row.arguments
    return Started(
        trace_id=row.trace_id,
        timestamp=row.timestamp,
        tool_name=row.tool_name,
        persona=row.persona,
        arguments=arguments if isinstance(arguments, str) else json.dumps(arguments),
        origin=row.origin,
        host=HostIdentity(**row.host) if row.host else HostIdentity("", "", 0, 0),
        deadline=row.deadline or row.timestamp,
        parent_trace_id=row.parent_trace_id,
        revision=row.revision,
        code_hash=row.code_hash,
        isolation=row.isolation,
        grants=_grants(row.grants),
    )


def persona_served(database: Database, begun: Started) -> str:
    """Whose entry it runs: that of the persona that was asked for, or `default`, which serves who has none."""
    if begun.persona == DEFAULT_PERSONA or begun.code_hash is None:
        return begun.persona
    statement = statements_for(database.dialect_name).owners
    try:
        rows = database.fetch(statement, name=begun.tool_name, code_hash=begun.code_hash)
        owners = {row["target_persona"] for row in rows}
    except DatabaseError:
        return begun.persona
    return DEFAULT_PERSONA if begun.persona not in owners and DEFAULT_PERSONA in owners else begun.persona


def steps_of(log: Log, trace_id: str) -> list[Step]:
    """What that execution did between its beginning and its end, as far as the log knows."""
    calls: list[Step] = [_call(call) for call in log.calls(trace_id)]
    return [*calls, *(_decision(decision) for decision in log.decisions(trace_id))]


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


def _decision(row: ExecutionDecision) -> DecisionRecord:
    return DecisionRecord(
        row.trace_id, row.number, row.after_task, row.node, row.outcome, row.condition, row.decided_at
    )
