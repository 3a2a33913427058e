"""Executions on record: read from the log, shown."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from healkit.config import Config
from healkit.core.contracts.execution import (
    RUN_CODE,
    TRIED_COUNTED_MAX,
    Filters,
    takes_filters,
)
from healkit.core.crossing import values
from healkit.core.rendering import cleaning
from healkit.core.runtime.execution import Execution, Executions, execution_of
from healkit.core.store.database import Database
from healkit.core.store.statements import NEWEST, TRIED_SINCE
from healkit.errors import VaultError, check_whole, near_misses

if TYPE_CHECKING:
    from healkit.core.store.log_reader import Log
    from healkit.core.store.models import ExecutionLog
    from healkit.core.store.vault import Vault


class History:
    """Executions on record, as `Execution` objects; nothing here runs a tool or changes one.

    log, vault: asked for when they are needed, because the newest page is read without either.
    """

    def __init__(
        self, config: Config, newest: NewestRows, log: Callable[[], Log], vault: Callable[[], Vault]
    ) -> None:
        self._config, self._newest, self._log, self._vault = config, newest, log, vault

    def last_error(self, tool_name: str | None = None, persona: str | None = None) -> Execution | None:
        """Return the newest failure on record, of one tool and persona where given; None when there is none."""
        row = self._log().last_error(tool_name, persona)
        return None if row is None else self.complete(row)

    def last_error_report(self, tool_name: str | None = None, persona: str | None = None) -> str:
        """Return the newest failure, of one tool and persona where given, as text, which says so when there is none."""
        return last_error_report(self._log(), tool_name, persona)

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
            log_rows, left_out = self._newest.page(limit)
        else:
            page = self._log().query(filters=filters, limit=limit, before_id=before_id, after_id=after_id)
            log_rows, left_out = page.rows, page.left_out
        explained = self._config.explain
        rows = (execution_of(row, []).but(explained=explained) for row in log_rows)
        return Executions(rows, left_out)

    def complete(self, row: ExecutionLog) -> Execution:
        """Return that row with its calls, decisions and code."""
        log = self._log()
        execution = execution_of(row, log.calls(row.trace_id), log.decisions(row.trace_id))
        # Code that was run alone is an argument of its row.
        alone = row.revision is None and row.tool_name == RUN_CODE
        code = execution.uncleaned.arguments.get("code") if alone else None
        if row.code_hash is not None and not alone:
            try:
                code = self._vault().code(row.code_hash)
            except VaultError:
                pass  # code that was only tried is not kept, and a row may come from another database
        return execution.but(code=code, explained=self._config.explain)


def last_error_report(log: Log, tool_name: str | None = None, persona: str | None = None) -> str:
    """Write the newest failure with tool, time, persona, input and full traceback, or "No errors found".

    persona: only its failures. When only the name filter excluded every failure, it says so and names tools that are
    with similar names.
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
    """Reads the newest executions, without trials and searches, and without SQLAlchemy: loading it takes longer.

    refresh: called before each read, to bring in the records that wait in the spool.
    """

    def __init__(self, database: Database, refresh: Callable[[], object]) -> None:
        self._database = database
        self._refresh = refresh

    def page(self, limit: int) -> tuple[list[Any], int]:
        """Return at most `limit` rows with the columns of `ExecutionLog`, and how many trials lie between them."""
        check_whole("limit", limit)
        self._refresh()
        limit = max(1, limit)
        rows = [SimpleNamespace(**row) for row in self._database.fetch(NEWEST, limit=limit + 1)]
        more, rows = len(rows) > limit, rows[:limit]
        time, end = (rows[-1].timestamp, rows[-1].id) if more else (datetime.min.replace(tzinfo=UTC), 0)
        bounds = {"time": time, "end": end, "limit": TRIED_COUNTED_MAX}
        return rows, self._database.fetch(TRIED_SINCE, **bounds)[0]["count"]
