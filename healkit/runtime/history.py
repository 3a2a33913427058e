"""Executions on record: read from the log, shown, plotted."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from healkit.config import Config
from healkit.contracts.entries import DEFAULT_PERSONA
from healkit.contracts.failure import Failure
from healkit.contracts.filters import Filters, takes_filters
from healkit.contracts.records import (
    NOT_KEPT_OBJECT,
    TRIED_ORIGINS,
    CallRecord,
    DecisionRecord,
    Finished,
    Grants,
    HostIdentity,
    Started,
    Step,
)
from healkit.contracts.stats import Ran
from healkit.errors import ArgumentsInvalid, DatabaseError, UsageInvalid, VaultError, near_misses
from healkit.rendering.plots import Plot, plot_days, plot_runs
from healkit.runtime.execution import Execution, Executions
from healkit.store.database import Database
from healkit.store.fast_reads import Newest
from healkit.store.statements import OWNERS

if TYPE_CHECKING:
    from healkit.store.log_reader import Log
    from healkit.store.models import ExecutionCall, ExecutionDecision, ExecutionLog
    from healkit.store.vault import Vault


#: Of so many runs each is drawn; of more, each day.
_EACH_RUN_MAX = 2000


class History:
    """Executions on record, as `Execution` objects; nothing here runs a tool or changes one.

    log, vault: asked for when they are needed, because the newest page is read without either.
    """

    def __init__(
        self, config: Config, newest: Newest, log: Callable[[], Log], vault: Callable[[], Vault]
    ) -> None:
        self._config, self._newest, self._log, self._vault = config, newest, log, vault

    def last_error(self, tool_name: str | None = None, persona: str | None = None) -> Execution | None:
        """Return the newest failure on record, of one tool and persona where given; None when there is none."""
        row = self._log().last_error(tool_name, persona)
        return None if row is None else self.complete(row)

    def last_error_report(self, tool_name: str | None = None) -> str:
        """Return the newest failure as text, which says so when there is none."""
        return last_error_report(self._log(), tool_name)

    def execution(self, log_id: int) -> Execution | None:
        """Return one row of the log with the calls it made; None when there is no such row."""
        row = self._log().get(log_id)
        return None if row is None else self.complete(row)

    @takes_filters(tried=False)
    def executions(
        self,
        *,
        filters: Filters,
        limit: int = 50,
        before_id: int | None = None,
        after_id: int | None = None,
    ) -> Executions:
        """Return one page of the log, newest first; the arguments are those of `Log.query`.

        tried: with the runs that only try code out, such as a healing's trials and searches. Without, the list's
        `left_out` says how many of them stand between its rows.
        """
        if filters == Filters(tried=False) and before_id is None and after_id is None:
            found, left_out = self._newest.page(limit)
        else:
            page = self._log().query(filters=filters, limit=limit, before_id=before_id, after_id=after_id)
            found, left_out = page.rows, page.left_out
        explained = self._config.explain
        rows = (dataclasses.replace(execution_of(row, []), explained=explained) for row in found)
        return Executions(rows, left_out)

    def replay_of(self, failed: Execution) -> Execution | None:
        """Return a later revision's execution with the same arguments that passed; None while there is none."""
        from healkit.runtime.failure_export import passing_replay  # nbformat takes a second to load

        row = passing_replay(self._log(), failed)
        return None if row is None else self.complete(row)

    def plot(
        self,
        tool: str | None = None,
        *,
        since: datetime | date | str | None = None,
        persona: str | None = None,
    ) -> Plot:
        """Plot failure rate and duration over time: each run of one tool, else a point for each day.

        Raises `PlotUnavailable` without the extra `healkit[plot]`.
        """
        log, where = self._log(), {"tool": tool, "persona": persona, "since": since}
        if tool is not None:
            page = log.query(**where, limit=_EACH_RUN_MAX)
            if len(page.rows) < _EACH_RUN_MAX:
                runs = [
                    Ran(row.timestamp, row.status == "FAILURE", row.revision, row.duration_ms)
                    for row in reversed(page.rows)
                    if row.status != "RUNNING" and row.origin not in TRIED_ORIGINS
                ]
                return plot_runs(runs, log.summary(**where, by=["revision"]).rows)
        return plot_days(log.summary(**where, by=["revision", "day"]).rows)

    def complete(self, row: ExecutionLog) -> Execution:
        """Return that row with its calls, decisions and code."""
        log = self._log()
        execution = execution_of(row, log.calls(row.trace_id), log.decisions(row.trace_id))
        code = None
        if row.code_hash is not None:
            try:
                code = self._vault().code(row.code_hash)
            except VaultError:
                pass  # code that was only tried is not kept, and a row may come from another database
        return dataclasses.replace(execution, code=code, explained=self._config.explain)


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


def steps_of(log: Log, trace_id: str) -> list[Step]:
    """List what that execution did between its beginning and its end, as far as the log knows."""
    calls: list[Step] = [_call(call) for call in log.calls(trace_id)]
    return [*calls, *(_decision(decision) for decision in log.decisions(trace_id))]


def last_error_report(log: Log, tool_name: str | None = None) -> str:
    """Write the newest failure with tool, time, persona, input and full traceback, or "No errors found".

    When only the name filter excluded every failure, it says so and names tools that are spelled alike.
    """
    row = log.last_error(tool_name)
    if row is None:
        return _nothing_found(log, tool_name)
    execution = execution_of(row, [])
    failure = execution.failure
    code = f" [{failure.code}]" if failure else ""
    return "\n".join(
        [
            f"Last error: {execution.label}{code}",
            f"Time: {execution.timestamp.isoformat(timespec='seconds')}",
            f"Persona: {execution.persona}",
            f"Input: {row.arguments}",
            f"Log row: {row.id}",
            "",
            row.error_traceback or "(no traceback was recorded)",
            *([f"\nNext step: {failure.hint}"] if failure and failure.hint else []),
        ]
    )


def _nothing_found(log: Log, tool_name: str | None) -> str:
    if tool_name is None:
        return "No errors found."
    others = log.tools_with_errors()
    if not others:
        return f"No errors found for tool {tool_name!r}, nor for any other."
    near = near_misses(tool_name, others)
    hint = (
        f"Did you mean {' or '.join(map(repr, near))}?"
        if near
        else f"Failures are on record for: {', '.join(others[:10])}."
    )
    return f"No errors found for tool {tool_name!r}. {hint}"


def _arguments(stored: Any) -> dict[str, Any]:
    if isinstance(stored, str):  # arguments that were too long to be kept whole are kept as cut text
        return {"…": stored}
    return stored if isinstance(stored, dict) else {}


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


def arguments_of(row: ExecutionLog) -> dict[str, Any]:
    """Return the arguments of that execution; raises `ArgumentsInvalid` where the log does not hold all of them."""
    if not isinstance(row.arguments, dict):
        why = "were cut"
    elif row.arguments == json.loads(NOT_KEPT_OBJECT):
        why = "were kept off the record, as its tool asks for"
    elif _REDACTED in repr(row.arguments):
        why = "had secrets in them, which the log does not keep"
    else:
        return dict(row.arguments)
    raise ArgumentsInvalid(
        f"The arguments of log row {row.id} {why}; they cannot be used again.",
        hint=f"Give them anew: hk.execute({row.tool_name!r}, arguments={{…}}).",
    )


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
