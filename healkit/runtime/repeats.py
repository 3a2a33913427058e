"""What is needed to run a logged execution again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from healkit.contracts.failure import Failure
from healkit.contracts.records import Finished
from healkit.errors import ArgumentsInvalid, UsageInvalid
from healkit.runtime.contents import NOT_KEPT_OBJECT
from healkit.runtime.history import execution_of

if TYPE_CHECKING:
    from healkit.store.log import Log
    from healkit.store.models import ExecutionLog

#: How the sanitiser marks what it has hidden, where the log itself is cleaned (`sanitize_log`).
_REDACTED = "[REDACTED"


def logged(log: Log, log_id: int) -> ExecutionLog:
    """The row of that id; raises `UsageInvalid` where there is none."""
    row = log.get(log_id)
    if row is None:
        raise UsageInvalid(f"There is no log row {log_id!r}.", hint="hk.executions() lists the newest.")
    return row


def arguments_of(row: ExecutionLog) -> dict[str, Any]:
    """What that execution was called with; raises `ArgumentsInvalid` where the log does not hold all of it."""
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
    """How it ended, for a comparison; None while it is still running."""
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
