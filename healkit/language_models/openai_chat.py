"""Chat completions protocol, as many servers speak it.

Published by OpenAI (https://platform.openai.com/docs/api-reference/chat/create; calls of functions:
https://platform.openai.com/docs/guides/function-calling; and for the chunks of a stream
https://platform.openai.com/docs/api-reference/chat-streaming) and spoken by Ollama
(https://docs.ollama.com/api/openai-compatibility), vLLM
(https://docs.vllm.ai/en/stable/serving/openai_compatible_server.html), llama.cpp's server and LM Studio, each with a
little less: an optional field is left out once a server complains of it by name, and null stands for an empty list.
"""

from __future__ import annotations

import dataclasses
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

_PATH = "/chat/completions"
#: Kinds of errors in the middle of a stream that are not the request's fault.
_BUSY = {
    "server_error",
    "rate_limit_exceeded",
    "overloaded_error",
    "service_unavailable",
    "tokens",
    "requests",
}


class OpenAIChat:
    """Adapter for any chat completions endpoint."""

    default_url = "https://api.openai.com/v1"
    key_variable = "OPENAI_API_KEY"

    def __init__(self, url: str = "") -> None:
        self._url = url or self.default_url

    @property
    def endpoint(self) -> str:
        """Base address, which by custom ends in `/v1`, with the path of chat completions."""
        parts = urlsplit(self._url)
        path = parts.path.rstrip("/")
        path = path if path.endswith(_PATH) else path + _PATH
        return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))

    def headers(self, key: str) -> dict[str, str]:
        """Return the key as a bearer token; local servers want none."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, model: str, prompt: Prompt, max_tokens: int) -> dict[str, Any]:
        """Return the body; OpenAI's own API gets the limit's newer name.

        Its reasoning models insist on that one, and other servers may know only the older.
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
        """Return the body with the limit's other name, or without the count of tokens or calls of functions."""
        changed = dict(body)
        limit = "max_tokens" if "max_tokens" in body else "max_completion_tokens"
        if limit in complaint:
            other = "max_completion_tokens" if limit == "max_tokens" else "max_tokens"
            changed[other] = changed.pop(limit)
        elif ("stream_options" in complaint or "include_usage" in complaint) and "stream_options" in body:
            del changed["stream_options"]
        else:
            return without_functions(body, complaint)
        return changed

    def reader(self) -> ChatReader:
        """Make the reader of one answer."""
        return ChatReader()


class ChatReader:
    """Reader of `chat.completion.chunk` objects up to `[DONE]`."""

    def __init__(self) -> None:
        self.reply = Reply()
        self.done = False

    def read(self, data: str) -> None:
        """Read one event's data; the reply's text is whole once it has an ending."""
        if data.strip() == "[DONE]":
            self.reply.ending = self.reply.ending or "complete"
            self.done = True
            return
        chunk = decoded(data)
        if chunk.get("error"):
            kind, message = complaint_of(chunk["error"])
            passing = kind in _BUSY or mapping(chunk["error"]).get("code") in {429, 500, 502, 503, 529}
            raise StreamError(message or kind, passing=passing)
        usage = mapping(chunk.get("usage"))
        if usage:
            self.reply.input_tokens = count_of(usage.get("prompt_tokens"))
            self.reply.output_tokens = count_of(usage.get("completion_tokens"))
        choices = chunk.get("choices")
        for choice in choices[:1] if isinstance(choices, list) else ():
            self._choice(mapping(choice))

    def _choice(self, choice: Any) -> None:
        delta = mapping(choice.get("delta"))
        self.reply.text += text_of(delta.get("content"))
        pieces = delta.get("tool_calls")
        for piece in pieces if isinstance(pieces, list) else ():
            self._call(mapping(piece))
        if text_of(delta.get("refusal")):
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

    def _call(self, piece: Any) -> None:
        """Take a piece of a call: the first has its name, the others the rest of its arguments."""
        calls, function, sent_id = self.reply.calls, mapping(piece.get("function")), text_of(piece.get("id"))
        name = text_of(function.get("name"))
        if name and not (calls and sent_id and calls[-1].id == sent_id):
            calls.append(Call(name, id=sent_id))
        if calls:
            calls[-1].arguments += text_of(function.get("arguments"))
