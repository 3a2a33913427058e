"""Rows of the log as executions, records, steps and arguments."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Container, Iterable, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from healkit import values
from healkit.contracts.execution import (
    NOT_KEPT_OBJECT,
    TRIED_ORIGINS,
    CallRecord,
    DecisionRecord,
    Finished,
    Grants,
    HostIdentity,
    Started,
    Step,
    is_alive,
    utc_now,
)
from healkit.contracts.failure import Failure, fingerprint
from healkit.contracts.tools import revision_label
from healkit.contracts.vault import DEFAULT_PERSONA
from healkit.errors import (
    TOOL_CODES,
    ArgumentsInvalid,
    DatabaseError,
    UsageInvalid,
    ViewChanged,
    ViewError,
    ViewGone,
)
from healkit.runtime import view_keeper
from healkit.runtime.execution import Execution
from healkit.store.database import Database
from healkit.store.statements import OWNERS

if TYPE_CHECKING:
    from healkit.store.log_reader import Log
    from healkit.store.models import ExecutionCall, ExecutionDecision, ExecutionLog


def execution_of(
    row: ExecutionLog, calls: list[ExecutionCall], decisions: list[ExecutionDecision] | None = None
) -> Execution:
    """Return a row of the log as an `Execution`; its value is gone, its summary is not."""
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
    """Return the record with which that row began."""
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


def persona_served(database: Database, started: Started) -> str:
    """Return whose entry it runs: the persona's that was asked for, or `default` where that has none."""
    if started.persona == DEFAULT_PERSONA or started.code_hash is None:
        return started.persona
    try:
        rows = database.fetch(OWNERS, name=started.tool_name, code_hash=started.code_hash)
        owners = {row["target_persona"] for row in rows}
    except DatabaseError:
        return started.persona
    return DEFAULT_PERSONA if started.persona not in owners and DEFAULT_PERSONA in owners else started.persona


def nested_grants(row: ExecutionLog | None) -> Grants | None:
    """Return the grants that a nested execution ran with, which its repetition must not exceed; None for another."""
    return None if row is None or row.parent_trace_id is None else _grants(row.grants)


def steps_of(log: Log, trace_id: str) -> list[Step]:
    """List what that execution did between its beginning and its end, as far as the log knows."""
    calls: list[Step] = [_call(call) for call in log.calls(trace_id)]
    return [*calls, *(_decision(decision) for decision in log.decisions(trace_id))]


def calls_cut_short(steps: Iterable[Step]) -> list[Step]:
    """Return the calls among them that have no ending, with the one that their host's death is."""
    return [
        msgspec.structs.replace(
            step, success=False, error_code="HOST_DIED", error="its host died before it had an answer"
        )
        for step in steps
        if isinstance(step, CallRecord) and step.success is None
    ]


def _arguments(stored: Any) -> dict[str, Any]:
    if isinstance(stored, str):  # arguments that were too long to be kept whole are kept as cut text
        return {"…": stored}
    if not isinstance(stored, dict):
        return {}
    try:
        return dict(values.restore(stored))
    except values.BadValue:  # what hides secrets may have changed a part of it
        return stored


def _grants(stored: Any) -> Grants:
    """Return them as they were; none where another program or another version wrote the row."""
    try:
        return msgspec.convert(stored or {}, Grants)
    except msgspec.ValidationError:
        return Grants()


def _failure(row: ExecutionLog) -> Failure | None:
    """Return the failure as it was; rebuilt from the contract's own columns where another program wrote the row."""
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


#: How the sanitiser marks what it has hidden, where the log itself is cleaned (`sanitize_log`).
_REDACTED = "[REDACTED"


def logged(log: Log, log_id: int) -> ExecutionLog:
    """Return the row of that id; raises `UsageInvalid` where there is none."""
    row = log.get(log_id)
    if row is None:
        raise UsageInvalid(f"There is no log row {log_id!r}.", hint="hk.executions() lists the newest.")
    return row


def arguments_of(
    row: ExecutionLog, *, names: Container[str] | None = None, items_max: float = math.inf
) -> dict[str, Any]:
    """Return the arguments of that execution, with the data in the place of previews.

    names: only those. items_max: a frame or an array with more items is not loaded. Raises `ArgumentsInvalid` where not
    all is there, and `ViewChanged` where the file of a view does not hold what was kept.
    """
    stored = row.arguments
    if names is not None and isinstance(stored, dict):
        stored = {name: value for name, value in stored.items() if name in names}
    if not isinstance(stored, dict):
        why = "were cut"
    elif stored == json.loads(NOT_KEPT_OBJECT):
        why = "were kept off the record, as its tool asks for"
    elif _REDACTED in repr(stored):
        why = "had secrets in them, which the log does not keep"
    else:

        def whole(preview: values.Preview) -> Any:
            return view_keeper.data_behind(row.trace_id, preview, items_max=items_max)

        try:
            return dict(values.restore(stored, whole=whole))
        except ViewChanged:
            raise
        except ViewError as error:
            why = f"are not all there: {error.message.rstrip('.')}"
        except values.BadValue:  # what hides secrets may have changed a part of it
            why = "cannot be read"
    raise ArgumentsInvalid(
        f"The arguments of log row {row.id} {why}; they cannot be used again.",
        hint=f"Give them anew: hk.execute({row.tool_name!r}, arguments={{…}}).",
    )


def result_of(row: ExecutionLog, *, items_max: float = math.inf) -> Any:
    """Return the result of that execution: readable JSON, or the frame or array itself where it was kept as a view.

    Raises `ValueError` where the record holds no whole JSON, and `ViewChanged`.
    """
    summary = json.loads(row.result_summary or "")
    if isinstance(summary, dict) and summary.keys() >= {"type", "shape", "first"}:
        with contextlib.suppress(ViewGone):
            preview = values.Preview(summary)
            return view_keeper.data_behind(row.trace_id, preview, side="result", items_max=items_max)
    return summary


def ending_of(row: ExecutionLog) -> Finished | None:
    """Return how it ended, for a comparison; None while it is still running."""
    if row.status == "RUNNING" or row.finished_at is None:
        return None
    failure: Failure | None = execution_of(row, []).failure
    return Finished(
        row.trace_id,
        row.finished_at,
        row.duration_ms or 0.0,
        row.result_summary,
        failure,
        row.fingerprint,
    )


#: Time after its deadline until a row of another machine or container, whose processes cannot be checked, is given up.
FOREIGN_GRACE = timedelta(hours=1)


def why_dead(row: ExecutionLog) -> str:
    """Return what is known to have died of the row's host; empty while it may still be alive."""
    if row.host is None:
        return ""
    host = HostIdentity(**row.host)
    alive = is_alive(host)
    if alive is False:
        return f"Process {host.pid} on {host.hostname!r}, which had started it, died before it ended."
    if alive is None and row.deadline is not None and utc_now() > row.deadline + FOREIGN_GRACE:
        return (
            f"Process {host.pid} on {host.hostname!r}, which had started it, has not reported its end. "
            "It is on another machine, or in another container, and cannot be asked, but the deadline is more than an "
            "hour past."
        )
    return ""


def orphans(log: Log) -> Iterator[tuple[Started, list[Step], Finished]]:
    """Yield the beginning, the steps and the ending of each RUNNING execution whose host is dead."""
    for row in log.running():
        if died := why_dead(row):
            yield started_of(row), steps_of(log, row.trace_id), orphan_ending(row, died)


def orphan_ending(row: ExecutionLog, died: str) -> Finished:
    """Return the ending of an orphan: a failure that says what died, and what to do next."""
    label = revision_label(row.tool_name, row.persona, row.revision)
    now = utc_now()
    hint = (
        "What the tool had done by then is unknown. Check its side effects, then run it again with the same "
        "arguments; if it dies again, look at the machine's memory and at its system log."
    )
    text = (
        f"{died}\n"
        f"{label} was started at {_clock(row.timestamp)} and was still RUNNING; "
        f"this was found at {_clock(now)}.\n"
        f"{hint}\nHostDied: {TOOL_CODES['HOST_DIED']}"
    )
    # The message names no process: all orphans of one tool are one and the same failure.
    failure = Failure("HOST_DIED", "HostDied", TOOL_CODES["HOST_DIED"], text, hint=hint)
    until = min(now, row.deadline) if row.deadline is not None else now
    duration_ms = max(0.0, (until - row.timestamp).total_seconds() * 1000)
    mark = None if row.origin in TRIED_ORIGINS else fingerprint(failure)
    return Finished(row.trace_id, now, duration_ms, failure=failure, fingerprint=mark)


def _clock(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
