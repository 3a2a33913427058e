"""The chat completions protocol, as many servers speak it.

Published by OpenAI (https://platform.openai.com/docs/api-reference/chat/create, and for the chunks of a stream
https://platform.openai.com/docs/api-reference/chat-streaming) and spoken by Ollama
(https://docs.ollama.com/api/openai-compatibility), vLLM
(https://docs.vllm.ai/en/stable/serving/openai_compatible_server.html), llama.cpp's server and LM Studio, each with a
little less: so what is optional is left away when a server complains of it by name, and null stands for an empty list.
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

_PATH = "/chat/completions"
#: What is not the request's fault, of an error in the middle of a stream.
_BUSY = {
    "server_error",
    "rate_limit_exceeded",
    "overloaded_error",
    "service_unavailable",
    "tokens",
    "requests",
}


class OpenAIChat:
    """Any chat completions endpoint."""

    default_url = "https://api.openai.com/v1"
    key_variable = "OPENAI_API_KEY"

    def __init__(self, url: str = "") -> None:
        self._url = url or self.default_url

    @property
    def endpoint(self) -> str:
        """The base address, which by custom ends in `/v1`, with the path of chat completions."""
        parts = urlsplit(self._url)
        path = parts.path.rstrip("/")
        path = path if path.endswith(_PATH) else path + _PATH
        return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))

    def headers(self, key: str) -> dict[str, str]:
        """A bearer token; servers on one's own machine want none."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, model: str, prompt: Prompt, max_tokens: int) -> dict[str, Any]:
        """OpenAI's reasoning models insist on the limit's newer name; others may know the older one only."""
        limit = "max_completion_tokens" if self._url == self.default_url else "max_tokens"
        return {
            "model": model,
            "messages": [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": prompt.user},
            ],
            limit: max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }

    def without(self, body: dict[str, Any], complaint: str) -> dict[str, Any] | None:
        """The limit by its other name, or no count of tokens, where a server knows nothing else."""
        changed = dict(body)
        limit = "max_tokens" if "max_tokens" in body else "max_completion_tokens"
        if limit in complaint:
            other = "max_completion_tokens" if limit == "max_tokens" else "max_tokens"
            changed[other] = changed.pop(limit)
        elif ("stream_options" in complaint or "include_usage" in complaint) and "stream_options" in body:
            del changed["stream_options"]
        else:
            return None
        return changed

    def reader(self) -> ChatReader:
        """What reads one answer."""
        return ChatReader()


class ChatReader:
    """Reads `chat.completion.chunk` objects up to `[DONE]`."""

    def __init__(self) -> None:
        self.reply = Reply()
        self.done = False

    def read(self, data: str) -> None:
        """One event's data; the text of the reply is whole once it has ended."""
        if data.strip() == "[DONE]":
            self.reply.ending = self.reply.ending or "complete"
            self.done = True
            return
        chunk = decoded(data)
        if chunk.get("error"):
            kind, message = complaint_of(chunk["error"])
            passing = kind in _BUSY or mapping(chunk["error"]).get("code") in {429, 500, 502, 503, 529}
            raise Broken(message or kind, passing=passing)
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
