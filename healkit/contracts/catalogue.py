"""Closed catalogue of codes, and which may be retried.

One list for everything that carries a code: the log's `error_code`, a failure's `code`, the error objects of
trace.jsonl. It is read from `healkit.errors`, so that a new error cannot be forgotten here.

`retryable` is a promise to a loop: the same action with nothing changed may end differently, and a first attempt has
done no harm that a second one would double. A tool's own failure is never retryable in that sense: repeating the same
failure wastes time, and what a killed host's tool had done by then is unknown.
"""

from __future__ import annotations

from functools import cache

from healkit import errors

#: Codes of faults that may go away by themselves: a lock, a lost worker, a server that did not answer.
RETRYABLE = frozenset(
    {
        "CALL_TIMEOUT", "DB_LOCKED", "MCP_UNAVAILABLE", "MODEL_UNAVAILABLE", "RUN_LOCKED", "WORKER_ERROR",
        "WORKER_LOST", "WORKER_START_FAILED",
    }
)  # fmt: skip


@cache
def catalogue() -> dict[str, str]:
    """Return every code with its meaning, sorted; there are no other codes."""
    classes = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.HealkitError) and "code" in vars(kind)
    ]
    found = {str(kind.code): (kind.__doc__ or "").partition("\n")[0].rstrip(".") for kind in classes}
    return dict(sorted({**found, **errors.TOOL_CODES}.items()))


def is_retryable(code: str) -> bool:
    """Return True if the same action may be tried again with nothing changed."""
    return code in RETRYABLE
