"""Closed catalogue of codes, and which may be retried.

One list for everything that carries a code: the log's `error_code`, a failure's `code`, the error objects of
trace.jsonl. It is read from `healkit.errors`, so that a new error cannot be forgotten here.

`retryable` is a promise to a loop: the same action with nothing changed may end differently, and a first attempt has
done no harm that a second one would double. A tool's own failure is not retryable in that sense: repeating the same
failure wastes time, and what a killed host's tool had done by then is unknown. The exception is one that says that
something outside did not answer (`TRANSIENT`); whether the tool may be run twice is for the caller to know.
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
#: Exceptions by which something outside the tool says that it does not answer now.
TRANSIENT = frozenset(
    {
        "BrokenPipeError", "ConnectionAbortedError", "ConnectionError", "ConnectionRefusedError",
        "ConnectionResetError", "TimeoutError",
    }
)  # fmt: skip
#: Codes of failures that are what their exception is.
_BY_EXCEPTION = frozenset({"CALL_FAILED", "TOOL_EXCEPTION"})


@cache
def catalogue() -> dict[str, str]:
    """Return every code with its meaning, sorted; there are no other codes."""
    classes = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.HealkitError) and "code" in vars(kind)
    ]
    found = {str(kind.code): (kind.__doc__ or "").partition("\n")[0].rstrip(".") for kind in classes}
    return dict(sorted({**found, **errors.TOOL_CODES, **errors.PATCH_CODES, **errors.DECISION_CODES}.items()))


def is_retryable(code: str, ename: str = "") -> bool:
    """Return True if the same action may be tried again with nothing changed; ename: the exception's type, if known."""
    return code in RETRYABLE or (code in _BY_EXCEPTION and ename in TRANSIENT)
