"""Anthropic's messages protocol.

The request: https://platform.claude.com/docs/en/api/messages; the events of a stream:
https://platform.claude.com/docs/en/build-with-claude/streaming; errors, which may also come in the middle of a stream:
https://platform.claude.com/docs/en/api/errors. The version of the protocol, of which only what is common to it and to
2023-06-01 is used: https://platform.claude.com/docs/en/api/versioning.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit, urlunsplit

from healkit.healing.advisors.model.protocol import (
    Broken,
    Prompt,
    Reply,
    complaint_of,
    count_of,
    decoded,
    mapping,
    text_of,
)

_PATH = "/v1/messages"
_VERSION = "2026-10-21"
#: What is not the request's fault, of an error in the middle of a stream.
_BUSY = {"overloaded_error", "api_error", "rate_limit_error", "timeout_error"}
#: What counts as input beside `input_tokens`: it was read from a cache, or written to one.
_CACHED = ("cache_creation_input_tokens", "cache_read_input_tokens")


class AnthropicMessages:
    """Anthropic's API, or a server that speaks it."""

    default_url = "https://api.anthropic.com"
    key_variable = "ANTHROPIC_API_KEY"

    def __init__(self, url: str = "") -> None:
        self._url = url or self.default_url

    @property
    def endpoint(self) -> str:
        """The base address with the path of messages."""
        parts = urlsplit(self._url)
        path = parts.path.rstrip("/").removesuffix("/messages").removesuffix("/v1") + _PATH
        return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))

    def headers(self, key: str) -> dict[str, str]:
        """The version of the protocol, and the key in a header of its own."""
        return {"anthropic-version": _VERSION, **({"x-api-key": key} if key else {})}

    def body(self, model: str, prompt: Prompt, max_tokens: int) -> dict[str, Any]:
        """One turn, with the rules where they belong."""
        return {
            "model": model,
            "max_tokens": max_tokens,
            "system": prompt.system,
            "messages": [{"role": "user", "content": prompt.user}],
            "stream": True,
        }

    def without(self, body: dict[str, Any], complaint: str) -> dict[str, Any] | None:
        """Nothing in it is optional."""
        return None

    def reader(self) -> MessageReader:
        """What reads one answer."""
        return MessageReader()


class MessageReader:
    """Reads events up to `message_stop`; kinds that are not known are passed over, as the protocol asks."""

    def __init__(self) -> None:
        self.reply = Reply()
        self.done = False
        self._stopped = ""

    def read(self, data: str) -> None:
        """One event's data; its kind stands in it, too."""
        event = decoded(data)
        match event.get("type"):
            case "message_start":
                self._usage(mapping(mapping(event.get("message")).get("usage")))
            case "content_block_start":
                self.reply.text += text_of(mapping(event.get("content_block")).get("text"))
            case "content_block_delta":
                delta = mapping(event.get("delta"))
                if delta.get("type") == "text_delta":  # what the model thinks aloud is no answer
                    self.reply.text += text_of(delta.get("text"))
            case "message_delta":
                self._stopped = text_of(mapping(event.get("delta")).get("stop_reason")) or self._stopped
                self._usage(mapping(event.get("usage")))
            case "message_stop":
                self._end()
            case "error":
                kind, message = complaint_of(event.get("error"))
                raise Broken(message or kind, passing=kind in _BUSY)

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
        """Counts are those so far, so the last one counts."""
        if (fresh := count_of(usage.get("input_tokens"))) is not None:
            self.reply.input_tokens = fresh + sum(count_of(usage.get(name)) or 0 for name in _CACHED)
        if (written := count_of(usage.get("output_tokens"))) is not None:
            self.reply.output_tokens = written
