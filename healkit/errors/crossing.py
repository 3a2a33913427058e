"""Errors of what crosses a border: calls, traces, requests."""

from __future__ import annotations

from healkit.errors.base import HealkitError
from healkit.errors.codes import REQUEST_CODES


class CallRefused(HealkitError):
    """A call through the bridge that is unknown, not allowed, or over its budget."""

    code = "CALL_REFUSED"


class CallTimedOut(HealkitError):
    """A call through the bridge that had no answer within its time."""

    code = "CALL_TIMEOUT"


class CallUnanswered(HealkitError):
    """A call through the bridge that was under way when its worker ended; it may have been performed."""

    code = "CALL_UNANSWERED"


class TraceInvalid(HealkitError):
    """A trace from elsewhere that is not in the wire form."""

    code = "TRACE_INVALID"


class BatchTooLarge(TraceInvalid):
    """More traces in one request than are taken at once."""

    code = "BATCH_TOO_LARGE"


class RequestRefused(HealkitError):
    """A request that the collector's server turns away; `retry_after_s` is when another try may do better."""

    code = "REQUEST_REFUSED"

    def __init__(
        self, code: str, message: str, *, hint: str = "", retry_after_s: float | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.code = code  # one of REQUEST_CODES
        self.retry_after_s = retry_after_s

    @property
    def status(self) -> int:
        """HTTP status to answer with."""
        return REQUEST_CODES.get(self.code, 400)


class McpError(HealkitError):
    """An MCP server answered with an error, or with what the protocol does not allow."""

    code = "MCP_ERROR"


class McpUnavailable(McpError):
    """An MCP server that cannot be started or reached, or that went away over a call."""

    code = "MCP_UNAVAILABLE"


class ModelError(HealkitError):
    """A language model's server answered with an error, or with what its protocol does not allow."""

    code = "MODEL_ERROR"


class ModelKeyRefused(ModelError):
    """A key that the language model's server does not accept, or not for that model."""

    code = "MODEL_KEY_REFUSED"


class ModelUnavailable(ModelError):
    """A language model's server that cannot be reached, is busy, too slow, or broke off in the middle."""

    code = "MODEL_UNAVAILABLE"


class ModelInputTooLarge(ModelError):
    """Code that does not fit into a request to a language model; nothing was sent."""

    code = "MODEL_INPUT_TOO_LARGE"


class ModelRefused(ModelError):
    """A language model that declined, or gave no answer with whole new code."""

    code = "MODEL_REFUSED"
