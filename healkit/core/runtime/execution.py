"""Execution, for its caller and from the log."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import math
from collections.abc import Callable, Container, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import msgspec

from healkit import hooks
from healkit.config import Config
from healkit.core.contracts.execution import (
    NOT_KEPT_OBJECT,
    RUN_CODE,
    TRIED_COUNTED_MAX,
    TRIED_ORIGINS,
    CallRecord,
    DecisionRecord,
    ExecutionData,
    Filters,
    Finished,
    Grants,
    HostIdentity,
    Raw,
    Started,
    Step,
    takes_filters,
    utc_now,
)
from healkit.core.contracts.failure import Failure
from healkit.core.contracts.tools import revision_label
from healkit.core.crossing import values
from healkit.core.host import is_alive
from healkit.core.pysource.tracebacks import fingerprint
from healkit.core.rendering import cleaning, execution_card
from healkit.core.runtime import contents
from healkit.core.runtime.events import CallEvent, events_of
from healkit.core.store.database import Database
from healkit.core.store.heartbeat import ALIVE_S, is_alive_there
from healkit.core.store.statements import NEWEST, TRIED_SINCE
from healkit.errors import (
    TOOL_CODES,
    ArgumentsInvalid,
    PostMortemError,
    PostMortemGone,
    UsageInvalid,
    VaultError,
    ViewChanged,
    ViewError,
    ViewGone,
    check_whole,
    near_misses,
)

if TYPE_CHECKING:
    from IPython.lib.pretty import RepresentationPrinter

    from healkit.core.contracts.explanation import Explanation
    from healkit.core.rendering.document import Card
    from healkit.core.store.log_reader import Log
    from healkit.core.store.models import ExecutionCall, ExecutionDecision, ExecutionLog
    from healkit.core.store.vault import Vault


#: Call that lists trials and searches too.
_ALL_OF_THEM = "hk.executions(tried=True)"


class _Cleaned:
    """Field of an execution that is always read in its cleaned form; a box beside it holds the recorded value."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, execution: Execution | None, owner: object = None) -> Any:
        if execution is None:
            return self
        return execution._shown_outputs if self._name == "outputs" else getattr(execution.shown, self._name)

    def __set__(self, execution: Execution, value: object) -> None:  # called by the dataclass's `__init__`
        execution.__dict__.setdefault("_recorded", Raw({})).uncleaned[self._name] = value


@dataclasses.dataclass(frozen=True, repr=False)
class Execution(ExecutionData):
    """Outcome of one tool call: a value or a failure, and its place in the log.

    It is made from the records of its beginning and its end (`of`), both for its caller and from the log. Its texts
    (the failure, arguments, outputs, calls, notes) are cleaned of secrets when they are first read, so that everything
    that prints them is clean. `uncleaned` has the recorded texts. `value` is the tool's own.

    `explain`, `post_mortem` and `to_notebook` help with a failure; `to_text` and `to_html` show the execution as a
    card.

    Example:
    >>> outcome = hk.execute("ratio", arguments={"hits": 3, "games": 4})
    >>> outcome.label, outcome.status, outcome.value
    ('ratio v1', 'SUCCESS', 0.75)
    """

    @classmethod
    def of(cls, started: Started, finished: Finished | None, **more: Any) -> Execution:
        """Return the execution with this beginning and end; more: fields that the two records do not have."""
        fields: dict[str, Any] = {"status": "RUNNING"}
        if finished is not None:
            fields = {
                "status": finished.status,
                "failure": finished.failure,
                "result_summary": finished.result_summary,
                "duration_ms": finished.duration_ms,
                "last_output": finished.last_output,
            }
        return cls(
            tool_name=started.tool_name,
            persona=started.persona,
            trace_id=started.trace_id,
            timestamp=started.timestamp,
            isolation=started.isolation,
            revision=started.revision,
            origin=started.origin,
            grants=started.grants,
            run_id=started.run_id,
            client=started.client,
            **(fields | more),
        )

    @property
    def uncleaned(self) -> ExecutionData:
        """Execution with the recorded texts, for running, comparing or storing; never show it."""
        return ExecutionData(**self._fields())

    @functools.cached_property
    def shown(self) -> cleaning.ShownExecution:
        """Execution that is safe to show, without its value and outputs; `cleaning.execution` adds the value."""
        return cleaning.execution_texts(self.uncleaned)

    @functools.cached_property
    def _shown_outputs(self) -> list[dict[str, Any]]:
        return cleaning.outputs(self.uncleaned.outputs, self.shown.record)

    def but(self, **changes: Any) -> Execution:
        """Return a copy with other values of these fields; `dataclasses.replace` would copy the cleaned texts.

        Example:
        >>> failed.but(persona="teacher").label
        'ratio v1 (teacher)'
        """
        return Execution(**self._fields() | changes)

    def _fields(self) -> dict[str, Any]:
        recorded: dict[str, Any] = self.__dict__["_recorded"].uncleaned
        rest = {field.name: self.__dict__[field.name] for field in _FIELDS if field.name not in recorded}
        return recorded | rest

    @property
    def events(self) -> list[CallEvent]:
        """Beginning and end of each call, in order of time: the events that `on_call` received, from the record."""
        return events_of(self.calls)

    def post_mortem(self) -> Any:
        """Return the failed run's worker, which answers questions about frames, locals and expressions.

        It works only in the process that ran the tool, and while the worker is kept. Raises `PostMortemGone` with the
        reason if the worker is not available, and `PostMortemError` if the run did not fail.

        Example:
        >>> outcome = hk.execute("ratio", arguments={"hits": 3, "games": 0})
        >>> [(one.name, one.repr) for one in outcome.post_mortem().locals()]
        [('hits', '3'), ('games', '0')]
        """
        if self.failure is None:
            raise PostMortemError(f"{self.label} did not fail: there is nothing to look into.")
        asked = hooks.first("post_mortem", trace_id=self.trace_id, label=self.label)
        if asked is None:
            raise PostMortemGone("No worker of a failed run is kept here.")
        return asked

    def explain(self) -> Explanation | None:
        """Explain the failure in plain words: what happened, where, why, a hint, a fix; None without a failure.

        The configuration (`explain`) limits the explanation.

        Example:
        >>> print(failed.explain())
        What happened: `games` is `0`, so the code divides by zero.
        Where: Line 2 of ratio v1, in ratio: `return hits / games`
        Hint: Can it be zero for valid data, or should it never be?
        Suggested fix: Handle that case before this line.
        """
        explanation = execution_card.explanation(self)
        return (
            None
            if explanation is None
            else cleaning.report(explanation.at(self.explained), self.shown.record)
        )

    def to_notebook(
        self, path: str | Path, *, replay: Execution | None = None, overwrite: bool = False
    ) -> Path:
        """Write the failure as a notebook that runs without healkit, with secrets hidden; return the file.

        replay: A later execution with the same arguments that passed, to be shown below (`Healkit.replay_of`).

        Raises `UsageInvalid` if nothing failed, the code is not available, or the file cannot be written.

        Example:
        >>> failed.to_notebook("ratio.ipynb").name
        'ratio.ipynb'
        """
        return cast("Path", _writer("notebook")(self, path, replay, overwrite=overwrite))

    def to_markdown(self) -> str:
        """Return the failure as a bug report in Markdown, with secrets hidden; raise `UsageInvalid` if nothing failed.

        Example:
        >>> print(failed.to_markdown())
        ## ratio v1 failed: ZeroDivisionError: division by zero
        <BLANKLINE>
        - **What happened:** `games` is `0`, so the code divides by zero.
        ...
        """
        return cast("str", _writer("markdown")(self))

    def to_text(self) -> str:
        """Return the card as plain text, for a terminal or a log.

        Example:
        >>> print(failed.to_text())
        ✗ ratio v1 failed: ZeroDivisionError: division by zero
          at line 2 of ratio v1, in ratio
              return hits / games
          what       'games' is 0, so the code divides by zero.
        ...
        """
        from healkit.core.rendering import execution_card
        from healkit.core.rendering.to_text import text_of  # late, because most executions are never shown

        return text_of(execution_card.card(self))

    def to_html(self) -> str:
        """Return the card as static HTML, which is also readable in an untrusted notebook.

        Example:
        >>> "ZeroDivisionError" in failed.to_html()
        True
        """
        from healkit.core.rendering import execution_card
        from healkit.core.rendering.to_html import html_of

        return html_of(execution_card.card(self))

    def __str__(self) -> str:
        return self.to_text()

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """Return the representations for Jupyter; called by IPython's display formatter."""
        return {"text/plain": self.to_text(), "text/html": self.to_html()}

    def __repr__(self) -> str:
        cleaned = cleaning.execution(self)
        attributes = ((field.name, getattr(cleaned, field.name)) for field in _FIELDS if field.repr)
        return f"Execution({', '.join(f'{name}={values.as_text(value)}' for name, value in attributes)})"


_FIELDS = dataclasses.fields(Execution)
for _name in (
    "arguments", "calls", "conversions", "decisions", "failure", "last_output", "outputs", "result_summary", "warnings"
):  # fmt: skip
    setattr(Execution, _name, _Cleaned(_name))


class Executions(list[Execution]):
    """Page of the log as a list; `left_out` counts the trials and searches that it omits."""

    def __init__(self, executions: Iterable[Execution] = (), left_out: int = 0) -> None:
        super().__init__(executions)
        self.left_out = left_out

    def to_text(self) -> str:
        """Return a table, with a note on what is left out."""
        from healkit.core.rendering.to_text import text_of

        return text_of(self._card())

    def to_html(self) -> str:
        """Return the same as a card."""
        from healkit.core.rendering.to_html import html_of

        return html_of(self._card())

    def _card(self) -> Card:
        from healkit.core.rendering import listings

        return listings.executions(self, left_out=self.left_out, ask=_ALL_OF_THEM)

    def _repr_html_(self) -> str:
        """Return the card for a notebook."""
        return self.to_html()

    def _repr_pretty_(self, printer: RepresentationPrinter, _cycle: bool) -> None:
        """Print it as a whole, because IPython in a terminal would print a list item by item."""
        printer.text(self.to_text())


# Rows of the log as executions, records, steps and arguments.


def execution_of(
    row: ExecutionLog, calls: list[ExecutionCall], decisions: list[ExecutionDecision] | None = None
) -> Execution:
    """Return a row of the log as an `Execution`; it has a summary, but no value."""
    return Execution.of(
        started_of(row),
        ending_of(row),
        arguments=_arguments(row.arguments),
        log_id=row.id,
        duration_ms=row.duration_ms,
        calls=[call_of(call) for call in calls],
        decisions=[_decision(decision) for decision in decisions or ()],
    )


def started_of(row: ExecutionLog) -> Started:
    """Return the record of the row's beginning."""
    arguments = row.arguments
    return Started(
        trace_id=row.trace_id,
        timestamp=row.timestamp,
        tool_name=row.tool_name,
        persona=row.persona,
        arguments=arguments if isinstance(arguments, str) else json.dumps(arguments),
        origin=row.origin,
        host=_host(row.host) or HostIdentity("", "", 0, 0),
        deadline=row.deadline or row.timestamp,
        parent_trace_id=row.parent_trace_id,
        revision=row.revision,
        code_hash=row.code_hash,
        isolation=row.isolation,
        grants=_grants(row.grants),
        run_id=row.run_id,
        client=row.client,
    )


def nested_grants(row: ExecutionLog | None) -> Grants | None:
    """Return the grants of a nested execution, which a repetition must not exceed; None if it was not nested."""
    return None if row is None or row.parent_trace_id is None else _grants(row.grants)


def steps_of(log: Log, trace_id: str) -> list[Step]:
    """List the steps of that execution, as far as the log knows them."""
    calls: list[Step] = [call_of(call) for call in log.calls(trace_id)]
    return [*calls, *(_decision(decision) for decision in log.decisions(trace_id))]


def calls_cut_short(steps: Iterable[Step]) -> list[Step]:
    """Return the calls without an ending, each with an ending that states the death of their host."""
    return [
        msgspec.structs.replace(
            step, success=False, error_code="HOST_DIED", error="its host died before it had an answer"
        )
        for step in steps
        if isinstance(step, CallRecord) and step.success is None
    ]


def _arguments(stored: object) -> dict[str, Any]:
    if isinstance(stored, str):  # arguments that were too long are stored as cut text
        return {"…": stored}
    if not isinstance(stored, dict):
        return {}
    try:
        return dict(values.restored_value(stored))
    except values.BadValue:  # the sanitiser may have changed a part of it
        return stored


def _grants(stored: object) -> Grants:
    """Return the recorded grants; none if another program or another version wrote the row."""
    try:
        return msgspec.convert(stored or {}, Grants)
    except msgspec.ValidationError:
        return Grants()


def _host(stored: object) -> HostIdentity | None:
    """Return the host that ran it; None if another program wrote the row."""
    try:
        return msgspec.convert(stored, HostIdentity)
    except msgspec.ValidationError:
        return None


def _failure(row: ExecutionLog) -> Failure | None:
    """Return the recorded failure; if another program wrote the row, it is rebuilt from the contract's columns."""
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


def call_of(row: ExecutionCall) -> CallRecord:
    """Return the call from a row of the log."""
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
        answered_from=row.answered_from,
    )


def _decision(row: ExecutionDecision) -> DecisionRecord:
    return DecisionRecord(
        row.trace_id, row.number, row.after_task, row.node, row.outcome, row.condition, row.decided_at
    )


#: The sanitiser's mark for hidden values in a cleaned log (`sanitize_log`).
REDACTED = "[REDACTED"


def logged(log: Log, log_id: int) -> ExecutionLog:
    """Return the row with that id; raise `UsageInvalid` if there is none."""
    row = log.get(log_id)
    if row is None:
        raise UsageInvalid(f"There is no log row {log_id!r}.", hint="hk.executions() lists the newest.")
    return row


def _writer(form: str) -> Callable[..., Any]:
    """Return the function that writes a failure in that form; raise `UsageInvalid` if no part provides one."""
    write: Callable[..., Any] | None = hooks.first("writer", form=form)
    if write is None:
        raise UsageInvalid(f"Nothing here writes a failure as {form}.", hint="Install healkit whole.")
    return write


def arguments_of(
    row: ExecutionLog, *, names: Container[str] | None = None, items_max: float = math.inf
) -> dict[str, Any]:
    """Return the arguments of that execution, with the stored data in place of previews.

    names: Return only these.
    items_max: Frames and arrays with more items are not loaded.

    Raises `ArgumentsInvalid` if something is missing, and `ViewChanged` if the file of a view no longer has the stored
    content.
    """
    stored = row.arguments
    if names is not None and isinstance(stored, dict):
        stored = {name: value for name, value in stored.items() if name in names}
    if not isinstance(stored, dict):
        why = "were cut"
    elif stored == json.loads(NOT_KEPT_OBJECT):
        why = "were kept off the record, as its tool asks for"
    elif REDACTED in repr(stored):
        why = "had secrets in them, which the log does not keep"
    else:

        def whole(preview: values.Preview) -> Any:
            return contents.data_behind(row.trace_id, preview, items_max=items_max)

        try:
            return dict(values.restored_value(stored, whole=whole))
        except ViewChanged:
            raise
        except ViewError as error:
            why = f"are not all there: {error.message.rstrip('.')}"
        except values.BadValue:  # the sanitiser may have changed a part of it
            why = "cannot be read"
    raise ArgumentsInvalid(
        f"The arguments of log row {row.id} {why}; they cannot be used again.",
        hint=f"Give them anew: hk.execute({row.tool_name!r}, arguments={{…}}).",
    )


def result_of(row: ExecutionLog, *, items_max: float = math.inf) -> Any:
    """Return the result of that execution: readable JSON, or the frame or array if it was stored as a view.

    Raises `ValueError` if the record has no complete JSON, and `ViewChanged`.
    """
    summary = json.loads(row.result_summary or "")
    if isinstance(summary, dict) and summary.keys() >= {"type", "shape", "first"}:
        with contextlib.suppress(ViewGone):
            preview = values.Preview(summary)
            return contents.data_behind(row.trace_id, preview, side="result", items_max=items_max)
    return summary


def ending_of(row: ExecutionLog) -> Finished | None:
    """Return how it ended; None while it is still running."""
    if row.status == "RUNNING":
        return None
    return Finished(
        row.trace_id,
        row.finished_at or row.timestamp,
        row.duration_ms or 0.0,
        row.result_summary,
        _failure(row),
        row.fingerprint,
        row.last_output or "",
    )


#: Time after its deadline until a row of another machine or container, whose processes cannot be checked, is
#: given up.
FOREIGN_GRACE = timedelta(hours=1)


def why_dead(row: ExecutionLog, database: Database) -> str:
    """Return the known cause of death of the row's host; empty while the host may still be alive."""
    host = _host(row.host)
    if host is None:
        return ""
    alive = is_alive(host)
    if alive is False:
        return f"Process {host.pid} on {host.hostname!r}, which had started it, died before it ended."
    if alive is None and (alive := is_alive_there(database, host)) is False:
        return (
            f"Process {host.pid} on {host.hostname!r} started it, and has given no sign of life for {ALIVE_S:g} "
            "seconds. Its machine or container has died, or cannot reach the database."
        )
    if alive is None and row.deadline is not None and utc_now() > row.deadline + FOREIGN_GRACE:
        return (
            f"Process {host.pid} on {host.hostname!r}, which had started it, has not reported its end. "
            "It is on another machine or in another container, so it cannot be asked. The deadline was more than an "
            "hour ago."
        )
    return ""


def orphans(log: Log, database: Database) -> Iterator[tuple[Started, list[Step], Finished]]:
    """Yield the beginning, the steps and the ending of each RUNNING execution whose host is dead."""
    for row in log.running():
        if died := why_dead(row, database):
            yield started_of(row), steps_of(log, row.trace_id), orphan_ending(row, died)


def orphan_ending(row: ExecutionLog, died: str) -> Finished:
    """Return the ending of an orphan: a failure that says what died, and what to do next."""
    label = revision_label(row.tool_name, row.persona, row.revision)
    now = utc_now()
    hint = (
        "What the tool had done by then is unknown. Check its side effects, then run it again with the same "
        "arguments. If it dies again, look at the machine's memory and at its system log."
    )
    text = (
        f"{died}\n"
        f"{label} was started at {_clock(row.timestamp)} and was still RUNNING; "
        f"this was found at {_clock(now)}.\n"
        f"{hint}\nHostDied: {TOOL_CODES['HOST_DIED']}"
    )
    # The message names no process, so that all orphans of one tool form one group of failures.
    failure = Failure("HOST_DIED", "HostDied", TOOL_CODES["HOST_DIED"], text, hint=hint)
    until = min(now, row.deadline) if row.deadline is not None else now
    duration_ms = max(0.0, (until - row.timestamp).total_seconds() * 1000)
    mark = None if row.origin in TRIED_ORIGINS else fingerprint(failure)
    return Finished(row.trace_id, now, duration_ms, failure=failure, fingerprint=mark)


def _clock(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


class History:
    """Recorded executions, as `Execution` objects; nothing here runs or changes a tool.

    log, vault: Loaded on first use, because the newest page needs neither.

    Example:
    >>> hk.history.execution(failed.log_id).failure.summary
    'ZeroDivisionError: division by zero'
    """

    def __init__(
        self, config: Config, newest: NewestRows, log: Callable[[], Log], vault: Callable[[], Vault]
    ) -> None:
        self._config, self._newest, self._log, self._vault = config, newest, log, vault

    def last_error(self, tool_name: str | None = None, persona: str | None = None) -> Execution | None:
        """Return the newest recorded failure, optionally of one tool and persona; None if there is none.

        Example:
        >>> hk.last_error("ratio").failure.summary
        'ZeroDivisionError: division by zero'
        >>> hk.last_error("no_such_tool") is None
        True
        """
        row = self._log().last_error(tool_name, persona)
        return None if row is None else self.complete(row)

    def last_error_report(self, tool_name: str | None = None, persona: str | None = None) -> str:
        """Return the newest failure as text, optionally of one tool and persona; if there is none, the text says so.

        Example:
        >>> _ = hk.vault.add("reciprocal", "def reciprocal(n): return 1 / n")
        >>> _ = hk.execute("reciprocal", arguments={"n": 0})
        >>> print(hk.last_error_report("reciprocal"))
        Last error for tool 'reciprocal':
        ...
        Input: {'n': 0}
        ...
        ZeroDivisionError: division by zero
        """
        return last_error_report(self._log(), tool_name, persona)

    def execution(self, log_id: int) -> Execution | None:
        """Return one row of the log with its calls; None if there is no such row.

        Example:
        >>> found = hk.execution(failed.log_id)
        >>> found.status, found.arguments
        ('FAILURE', {'hits': 3, 'games': 0})
        """
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

        tried: Include executions that only try code, such as the trials and searches of a healing. Otherwise the list's
            `left_out` is their number between its rows.

        Example:
        >>> _ = hk.vault.add("square", "def square(n: int): return n * n")
        >>> for n in (2, 3):
        ...     _ = hk.execute("square", arguments={"n": n})
        >>> [(found.arguments, found.status) for found in hk.executions(tool="square")]
        [({'n': 3}, 'SUCCESS'), ({'n': 2}, 'SUCCESS')]
        """
        if filters == Filters(tried=False) and before_id is None and after_id is None:
            log_rows, left_out = self._newest.page(limit)
        else:
            page = self._log().query(filters=filters, limit=limit, before_id=before_id, after_id=after_id)
            log_rows, left_out = page.rows, page.left_out
        explained = self._config.explain
        rows = (execution_of(row, []).but(explained=explained) for row in log_rows)
        return Executions(rows, left_out)

    def complete(self, row: ExecutionLog) -> Execution:
        """Return a row of the log as an `Execution`, with its calls, decisions and code.

        Example:
        >>> row = hk.log.get(failed.log_id)
        >>> print(hk.history.complete(row).code)
        def ratio(hits: int, games: int):
            return hits / games
        """
        log = self._log()
        execution = execution_of(row, log.calls(row.trace_id), log.decisions(row.trace_id))
        # Code that ran without a tool is an argument of its row.
        alone = row.revision is None and row.tool_name == RUN_CODE
        code = execution.uncleaned.arguments.get("code") if alone else None
        if row.code_hash is not None and not alone:
            try:
                code = self._vault().code(row.code_hash)
            except VaultError:
                pass  # code on trial is not stored, and a row may come from another database
        return execution.but(code=code, explained=self._config.explain)


def last_error_report(log: Log, tool_name: str | None = None, persona: str | None = None) -> str:
    """Return the newest failure with tool, time, persona, input and full traceback, or "No errors found".

    persona: Only its failures. If only the filter for the name excluded all failures, the text says so and suggests
        tools with similar names.
    """
    row = log.last_error(tool_name, persona)
    if row is None:
        return _nothing_found(log, tool_name, persona)
    record = cleaning.sanitizer().of_record()
    execution = cleaning.execution(execution_of(row, []), record)
    failure = execution.failure
    code = f" [{failure.code}]" if failure else ""
    return "\n".join(
        [
            f"Last error for tool {execution.tool_name!r}:",
            f"Time: {execution.timestamp.isoformat(timespec='seconds')}",
            f"Persona: {execution.persona}",
            f"Input: {values.as_text(execution.arguments)}",
            f"Log row: {row.id}, {execution.label}{code}",
            "Traceback:",
            (failure.traceback if failure else "") or "(no traceback was recorded)",
            *([f"\nNext step: {failure.hint}"] if failure and failure.hint else []),
        ]
    )


def _nothing_found(log: Log, tool_name: str | None, persona: str | None) -> str:
    if tool_name is None:
        return "No errors found."
    tools = log.tools_with_errors(persona)
    if not tools:
        return f"No errors found for tool {tool_name!r}, nor for any other."
    near = near_misses(tool_name, tools)
    hint = (
        f"Did you mean {' or '.join(map(repr, near))}?"
        if near
        else f"Failures are on record for: {', '.join(tools[:10])}."
    )
    return f"No errors found for tool {tool_name!r}. {hint}"


class NewestRows:
    """Reads the newest executions, without trials and searches; it avoids SQLAlchemy, which takes longer to import.

    refresh: Called before each read, to store the records that wait in the spool.
    """

    def __init__(self, database: Database, refresh: Callable[[], object]) -> None:
        self._database = database
        self._refresh = refresh

    def page(self, limit: int) -> tuple[list[Any], int]:
        """Return at most `limit` rows with the columns of `ExecutionLog`, and the number of trials between them."""
        check_whole("limit", limit)
        self._refresh()
        limit = max(1, limit)
        rows = [SimpleNamespace(**row) for row in self._database.fetch(NEWEST, limit=limit + 1)]
        more, rows = len(rows) > limit, rows[:limit]
        time, end = (rows[-1].timestamp, rows[-1].id) if more else (datetime.min.replace(tzinfo=UTC), 0)
        bounds = {"time": time, "end": end, "limit": TRIED_COUNTED_MAX}
        return rows, self._database.fetch(TRIED_SINCE, **bounds)[0]["count"]
