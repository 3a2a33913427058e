"""Anthropic's messages protocol.

The request: https://platform.claude.com/docs/en/api/messages; calls of tools:
https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview; the events of a stream:
https://platform.claude.com/docs/en/build-with-claude/streaming; errors, which may also come in the middle of a stream:
https://platform.claude.com/docs/en/api/errors. Of the protocol's version, only what it has in common with 2023-06-01 is
used: https://platform.claude.com/docs/en/api/versioning.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit, urlunsplit

from healkit.language_models.protocol import (
    Call,
    Prompt,
    Reply,
    StreamError,
    complaint_of,
    count_of,
    decoded,
    mapping,
    text_of,
    without_functions,
)

_PATH = "/v1/messages"
_VERSION = "2026-10-21"
#: Kinds of errors in the middle of a stream that are not the request's fault.
_BUSY = {"overloaded_error", "api_error", "rate_limit_error", "timeout_error"}
#: Counts of input beside `input_tokens`: read from a cache, or written to one.
_CACHED = ("cache_creation_input_tokens", "cache_read_input_tokens")


class AnthropicMessages:
    """Adapter for Anthropic's API, or a server that speaks it."""

    default_url = "https://api.anthropic.com"
    key_variable = "ANTHROPIC_API_KEY"

    def __init__(self, url: str = "") -> None:
        self._url = url or self.default_url

    @property
    def endpoint(self) -> str:
        """Base address with the path of messages."""
        parts = urlsplit(self._url)
        path = parts.path.rstrip("/").removesuffix("/messages").removesuffix("/v1") + _PATH
        return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))

    def headers(self, key: str) -> dict[str, str]:
        """Return the protocol's version, and the key in a header of its own."""
        return {"anthropic-version": _VERSION, **({"x-api-key": key} if key else {})}

    def body(self, model: str, prompt: Prompt, max_tokens: int) -> dict[str, Any]:
        """Return a body of one turn, with the rules as the system prompt."""
        body: dict[str, Any] = {
            "model": model,
            "max_tokens": max_tokens,
            "system": prompt.system,
            "messages": [{"role": "user", "content": prompt.user}],
            "stream": True,
        }
        if prompt.functions:
            body["tools"] = [
                {"name": one.name, "description": one.description, "input_schema": one.parameters}
                for one in prompt.functions
            ]
            body["tool_choice"] = {"type": "any", "disable_parallel_tool_use": True}
        return body

    def without(self, body: dict[str, Any], complaint: str) -> dict[str, Any] | None:
        """Return the body without calls of functions, if that is what the server complains of."""
        return without_functions(body, complaint)

    def reader(self) -> MessageReader:
        """Make the reader of one answer."""
        return MessageReader()


class MessageReader:
    """Reader of events up to `message_stop`; it skips unknown kinds, as the protocol asks."""

    def __init__(self) -> None:
        self.reply = Reply()
        self.done = False
        self._stopped = ""

    def read(self, data: str) -> None:
        """Read one event's data, which also holds its kind."""
        event = decoded(data)
        match event.get("type"):
            case "message_start":
                self._usage(mapping(mapping(event.get("message")).get("usage")))
            case "content_block_start":
                self._block(mapping(event.get("content_block")))
            case "content_block_delta":
                delta = mapping(event.get("delta"))
                if delta.get("type") == "text_delta":  # thinking is not part of the answer
                    self.reply.text += text_of(delta.get("text"))
                elif delta.get("type") == "input_json_delta" and self.reply.calls:
                    self.reply.calls[-1].arguments += text_of(delta.get("partial_json"))
            case "message_delta":
                self._stopped = text_of(mapping(event.get("delta")).get("stop_reason")) or self._stopped
                self._usage(mapping(event.get("usage")))
            case "message_stop":
                self._end()
            case "error":
                kind, message = complaint_of(event.get("error"))
                raise StreamError(message or kind, passing=kind in _BUSY)

    def _block(self, block: Any) -> None:
        self.reply.text += text_of(block.get("text"))
        if block.get("type") == "tool_use":
            self.reply.calls.append(Call(text_of(block.get("name")), id=text_of(block.get("id"))))

    def _end(self) -> None:
        self.done = True
        match self._stopped:
            case "max_tokens" | "model_context_window_exceeded":
                self.reply.ending = "length"
            case "refusal":
                self.reply.ending = "refused"
            case _:
                self.reply.ending = "complete"

    def _usage(self, usage: Any) -> None:
        """Take the counts; each is the sum so far, so the last one is right."""
        if (fresh := count_of(usage.get("input_tokens"))) is not None:
            self.reply.input_tokens = fresh + sum(count_of(usage.get(name)) or 0 for name in _CACHED)
        if (written := count_of(usage.get("output_tokens"))) is not None:
            self.reply.output_tokens = written
