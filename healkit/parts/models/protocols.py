"""Questions to a language model, and its replies.

This is the common interface of the two adapters. Whatever names a provider uses, the rest of this package only knows a
`Prompt`, a `Reply` and an `Adapter`.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal
from urllib.parse import urlsplit, urlunsplit

import msgspec

from healkit.errors import ModelError

#: `complete`: the model ended its answer. `length`: it was cut at `heal_model_max_tokens`. `refused`: it declined, or a
#: filter stopped it. Empty: the end never came.
Ending = Literal["", "complete", "length", "refused"]


@dataclasses.dataclass(frozen=True)
class Function:
    """Function that a model may call as its answer; `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Prompt:
    """Question to a model: the general rules, and the case.

    functions: The answer should be a call of one of them; a server without calls is asked for text.
    """

    system: str
    user: str
    functions: tuple[Function, ...] = ()


@dataclasses.dataclass
class Call:
    """Call of a function, as it arrives; `arguments` is the text of a JSON object."""

    name: str
    arguments: str = ""
    id: str = ""


@dataclasses.dataclass
class Reply:
    """Answer of a model, as it arrives. Token counts are the server's; None if it sends none."""

    text: str = ""
    calls: list[Call] = dataclasses.field(default_factory=list)
    input_tokens: int | None = None
    output_tokens: int | None = None
    ending: Ending = ""


@dataclasses.dataclass(frozen=True)
class Progress:
    """Progress of a question; `attempt` counts questions from 1.

    `received_chars` of the answer have arrived. `wait_s` is the pause before it asks again, 0 without one. `why` is the
    reason of the pause.
    """

    attempt: int
    received_chars: int = 0
    wait_s: float = 0.0
    why: str = ""


class StreamError(Exception):
    """Error in the middle of a stream, in the server's words; `passing` if another try may succeed."""

    def __init__(self, said: str, *, passing: bool) -> None:
        super().__init__(said)
        self.passing = passing


class Reader(ABC):
    """Reader of one answer's events; a new one for each request.

    `done` is true after the protocol's last event; a server may leave the connection open after it.
    """

    def __init__(self) -> None:
        self.reply = Reply()
        self.done = False

    @abstractmethod
    def read(self, data: str) -> None:
        """Read one event's data; called by the transport, in order. Raises `ModelError`, or `StreamError`."""


class Adapter(ABC):
    """Protocol of one provider, used at one address.

    default_url: The provider's own endpoint; the provider's key is for its host.
    key_variable: The environment variable with that key.
    reader: Makes the reader of one answer.
    """

    default_url: ClassVar[str]
    key_variable: ClassVar[str]
    reader: ClassVar[type[Reader]]

    def __init__(self, url: str = "") -> None:
        self._url = url or self.default_url

    @property
    def endpoint(self) -> str:
        """URL to post to."""
        parts = urlsplit(self._url)
        return urlunsplit((parts.scheme, parts.netloc, self.path(parts.path.rstrip("/")), parts.query, ""))

    @abstractmethod
    def path(self, base: str) -> str:
        """Return the path to post to, below the configured one."""

    @abstractmethod
    def headers(self, key: str) -> dict[str, str]:
        """Return the headers of a request, with the key if there is one."""

    @abstractmethod
    def body(self, model: str, prompt: Prompt, max_tokens: int) -> dict[str, Any]:
        """Return the body of a streaming request."""

    def without(self, body: dict[str, Any], complaint: str) -> dict[str, Any] | None:
        """Return the body without the field that the server complained about, or None if that is required."""
        if "tool_choice" in complaint and "tool_choice" in body:
            return {name: value for name, value in body.items() if name != "tool_choice"}
        if ("tool" in complaint or "function" in complaint) and "tools" in body:
            return {name: value for name, value in body.items() if name not in ("tools", "tool_choice")}
        return None


def decoded(data: str) -> Mapping[str, Any]:
    """Decode one event's JSON object; raise `ModelError` for anything else."""
    try:
        event = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        event = None
    if not isinstance(event, dict):
        raise ModelError(
            f"The model's server sent something in its stream that is not a JSON object: {data[:80]!r}.",
            hint="Is heal_model_url the address of such an API, and is heal_model_provider its protocol?",
        )
    return event


def mapping(value: object) -> Mapping[str, Any]:
    """Return the value if it is an object, otherwise an empty one: servers send null for a missing one."""
    return value if isinstance(value, dict) else {}


def text_or_empty(value: object) -> str:
    """Return the value if it is a text, otherwise an empty one."""
    return value if isinstance(value, str) else ""


def count_of(value: object) -> int | None:
    """Return the value if it can be a count, otherwise None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def complaint_of(error: object) -> tuple[str, str]:
    """Return kind and message of an error, which is an object with both, or only a text."""
    fields = mapping(error)
    kind = text_or_empty(fields.get("type")) or text_or_empty(fields.get("code"))
    return kind, text_or_empty(fields.get("message")) or text_or_empty(error)


# Chat completions, a protocol of OpenAI (https://platform.openai.com/docs/api-reference/chat/create). Calls of
# functions: https://platform.openai.com/docs/guides/function-calling. The chunks of a stream:
# https://platform.openai.com/docs/api-reference/chat-streaming. Ollama
# (https://docs.ollama.com/api/openai-compatibility), vLLM
# (https://docs.vllm.ai/en/stable/serving/openai_compatible_server.html), llama.cpp's server and LM Studio use it too,
# each with a little less. An optional field is left out as soon as a server complains about it by name, and null stands
# for an empty list.


_CHAT_PATH = "/chat/completions"
#: Kinds of errors in the middle of a stream that are not the request's fault.
_CHAT_BUSY = {
    "server_error",
    "rate_limit_exceeded",
    "overloaded_error",
    "service_unavailable",
    "tokens",
    "requests",
}


class ChatReader(Reader):
    """Reader of `chat.completion.chunk` objects up to `[DONE]`."""

    def read(self, data: str) -> None:
        """Read one event's data; the reply's text is complete once it has an ending."""
        if data.strip() == "[DONE]":
            self.reply.ending = self.reply.ending or "complete"
            self.done = True
            return
        chunk = decoded(data)
        if chunk.get("error"):
            kind, message = complaint_of(chunk["error"])
            passing = kind in _CHAT_BUSY or mapping(chunk["error"]).get("code") in {429, 500, 502, 503, 529}
            raise StreamError(message or kind, passing=passing)
        usage = mapping(chunk.get("usage"))
        if usage:
            self.reply.input_tokens = count_of(usage.get("prompt_tokens"))
            self.reply.output_tokens = count_of(usage.get("completion_tokens"))
        choices = chunk.get("choices")
        for choice in choices[:1] if isinstance(choices, list) else ():
            self._choice(mapping(choice))

    def _choice(self, choice: Mapping[str, Any]) -> None:
        delta = mapping(choice.get("delta"))
        self.reply.text += text_or_empty(delta.get("content"))
        pieces = delta.get("tool_calls")
        for piece in pieces if isinstance(pieces, list) else ():
            self._call(mapping(piece))
        if text_or_empty(delta.get("refusal")):
            self.reply.ending = "refused"
        match choice.get("finish_reason"):
            case None | "":
                pass
            case "length":
                self.reply.ending = "length"
            case "content_filter":
                self.reply.ending = "refused"
            case _:
                self.reply.ending = self.reply.ending or "complete"

    def _call(self, piece: Mapping[str, Any]) -> None:
        """Take a piece of a call: the first has its name, the others the rest of its arguments."""
        calls, function, sent_id = (
            self.reply.calls,
            mapping(piece.get("function")),
            text_or_empty(piece.get("id")),
        )
        name = text_or_empty(function.get("name"))
        if name and not (calls and sent_id and calls[-1].id == sent_id):
            calls.append(Call(name, id=sent_id))
        if calls:
            calls[-1].arguments += text_or_empty(function.get("arguments"))


class OpenAIChat(Adapter):
    """Adapter for any chat completions endpoint."""

    default_url = "https://api.openai.com/v1"
    key_variable = "OPENAI_API_KEY"
    reader = ChatReader

    def path(self, base: str) -> str:
        """Return the path of chat completions; by custom the base ends in `/v1`."""
        return base if base.endswith(_CHAT_PATH) else base + _CHAT_PATH

    def headers(self, key: str) -> dict[str, str]:
        """Return the key as a bearer token; local servers need none."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, model: str, prompt: Prompt, max_tokens: int) -> dict[str, Any]:
        """Return the body; OpenAI's own API gets the newer name of the limit.

        Its reasoning models require that name, but other servers may know only the older one.
        """
        limit = "max_completion_tokens" if self._url == self.default_url else "max_tokens"
        body: dict[str, Any] = {
            "model": model,
            "messages": [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": prompt.user},
            ],
            limit: max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if prompt.functions:
            body["tools"] = [
                {"type": "function", "function": dataclasses.asdict(function)}
                for function in prompt.functions
            ]
            body["tool_choice"] = "required"
        return body

    def without(self, body: dict[str, Any], complaint: str) -> dict[str, Any] | None:
        """Return the body with the other name of the limit, or without the token count or the function calls."""
        changed = dict(body)
        limit = "max_tokens" if "max_tokens" in body else "max_completion_tokens"
        if limit in complaint:
            alternative = "max_completion_tokens" if limit == "max_tokens" else "max_tokens"
            changed[alternative] = changed.pop(limit)
        elif ("stream_options" in complaint or "include_usage" in complaint) and "stream_options" in body:
            del changed["stream_options"]
        else:
            return super().without(body, complaint)
        return changed


# Anthropic's messages. The request: https://platform.claude.com/docs/en/api/messages. Calls of tools:
# https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview. The events of a stream:
# https://platform.claude.com/docs/en/build-with-claude/streaming. Errors, which may also come in the middle of a
# stream: https://platform.claude.com/docs/en/api/errors. Only the part of the protocol that is also in version
# 2023-06-01 is used: https://platform.claude.com/docs/en/api/versioning.


_MESSAGES_PATH = "/v1/messages"
_VERSION = "2026-10-21"
#: Kinds of errors in the middle of a stream that are not the request's fault.
_MESSAGES_BUSY = {"overloaded_error", "api_error", "rate_limit_error", "timeout_error"}
#: Counts of input beside `input_tokens`: read from a cache, or written to one.
_CACHED = ("cache_creation_input_tokens", "cache_read_input_tokens")


class MessageReader(Reader):
    """Reader of events up to `message_stop`; it skips unknown kinds, as the protocol asks."""

    _stopped = ""

    def read(self, data: str) -> None:
        """Read one event's data, which also contains its kind."""
        event = decoded(data)
        match event.get("type"):
            case "message_start":
                self._usage(mapping(mapping(event.get("message")).get("usage")))
            case "content_block_start":
                self._block(mapping(event.get("content_block")))
            case "content_block_delta":
                delta = mapping(event.get("delta"))
                if delta.get("type") == "text_delta":  # thinking is not part of the answer
                    self.reply.text += text_or_empty(delta.get("text"))
                elif delta.get("type") == "input_json_delta" and self.reply.calls:
                    self.reply.calls[-1].arguments += text_or_empty(delta.get("partial_json"))
            case "message_delta":
                self._stopped = text_or_empty(mapping(event.get("delta")).get("stop_reason")) or self._stopped
                self._usage(mapping(event.get("usage")))
            case "message_stop":
                self._end()
            case "error":
                kind, message = complaint_of(event.get("error"))
                raise StreamError(message or kind, passing=kind in _MESSAGES_BUSY)

    def _block(self, block: Mapping[str, Any]) -> None:
        self.reply.text += text_or_empty(block.get("text"))
        if block.get("type") == "tool_use":
            self.reply.calls.append(Call(text_or_empty(block.get("name")), id=text_or_empty(block.get("id"))))

    def _end(self) -> None:
        self.done = True
        match self._stopped:
            case "max_tokens" | "model_context_window_exceeded":
                self.reply.ending = "length"
            case "refusal":
                self.reply.ending = "refused"
            case _:
                self.reply.ending = "complete"

    def _usage(self, usage: Mapping[str, Any]) -> None:
        """Read the counts; each is the sum so far, so the last one is right."""
        if (fresh := count_of(usage.get("input_tokens"))) is not None:
            self.reply.input_tokens = fresh + sum(count_of(usage.get(name)) or 0 for name in _CACHED)
        if (written := count_of(usage.get("output_tokens"))) is not None:
            self.reply.output_tokens = written


class AnthropicMessages(Adapter):
    """Adapter for Anthropic's API, or a server with the same protocol."""

    default_url = "https://api.anthropic.com"
    key_variable = "ANTHROPIC_API_KEY"
    reader = MessageReader

    def path(self, base: str) -> str:
        """Return the path of messages."""
        return base.removesuffix("/messages").removesuffix("/v1") + _MESSAGES_PATH

    def headers(self, key: str) -> dict[str, str]:
        """Return the protocol's version, and the key in its own header."""
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
                {
                    "name": function.name,
                    "description": function.description,
                    "input_schema": function.parameters,
                }
                for function in prompt.functions
            ]
            body["tool_choice"] = {"type": "any", "disable_parallel_tool_use": True}
        return body
