"""Rows whose host died: how that is known, and how they end.

Used by the recorder when a database is opened.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from healkit.contracts.failure import Failure
from healkit.contracts.fingerprint import fingerprint
from healkit.contracts.records import TRIED_ORIGINS, Finished, HostIdentity, is_alive, utc_now
from healkit.errors import TOOL_CODES

if TYPE_CHECKING:
    from healkit.store.models import ExecutionLog

#: Time after its deadline until a row of another machine, whose processes cannot be checked, is given up.
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
            "It is on another machine and cannot be asked, but the deadline is more than an hour past."
        )
    return ""


def ending_of(row: ExecutionLog, died: str) -> Finished:
    """Return the ending of an orphan: a failure that says what died, and what to do next."""
    label = f"{row.tool_name}@{row.revision}" if row.revision is not None else row.tool_name
    now = utc_now()
    hint = (
        "What the tool had done by then is unknown. Check its side effects, then run it again with the same "
        "arguments; if it dies again, look at the machine's memory and at its system log."
    )
    text = (
        f"{died}\n"
        f"{label} for persona {row.persona!r} was started at {_clock(row.timestamp)} and was still RUNNING; "
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
