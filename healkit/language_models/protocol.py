"""Questions to a language model, and its replies.

The seam of the two adapters: whatever a provider calls things, the rest of this package knows a `Prompt`, a `Reply` and
an `Adapter`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, Protocol

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

    functions: the answer should be a call of one of them; a server that knows no calls is asked for text.
    """

    system: str
    user: str
    functions: tuple[Function, ...] = ()


@dataclasses.dataclass
class Call:
    """Call of a function, as it grows; `arguments` is the text of a JSON object."""

    name: str
    arguments: str = ""
    id: str = ""


@dataclasses.dataclass
class Reply:
    """Answer of a model, as it grows. Token counts are the server's; None where it sends none."""

    text: str = ""
    calls: list[Call] = dataclasses.field(default_factory=list)
    input_tokens: int | None = None
    output_tokens: int | None = None
    ending: Ending = ""


@dataclasses.dataclass(frozen=True)
class Progress:
    """Progress of a question; `attempt` counts questions from 1.

    `received_chars` of the answer are there; `wait_s` is the pause before it asks again, 0 without one. `why` is the
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


class Reader(Protocol):
    """Reader of one answer's events; made anew for each request."""

    reply: Reply
    #: True after the protocol's last event; a server may leave the connection open after it.
    done: bool

    def read(self, data: str) -> None:
        """Read one event's data; called by the transport, in order. Raises `ModelError`, or `StreamError`."""
        ...


class Adapter(Protocol):
    """Protocol of one provider, spoken at one address."""

    #: The provider's own endpoint, whose host its own key belongs to.
    default_url: str
    #: Environment variable with that key.
    key_variable: str

    @property
    def endpoint(self) -> str:
        """URL to post to."""
        ...

    def headers(self, key: str) -> dict[str, str]:
        """Return the headers of a request, with the key where there is one."""
        ...

    def body(self, model: str, prompt: Prompt, max_tokens: int) -> dict[str, Any]:
        """Return the body of a streaming request."""
        ...

    def without(self, body: dict[str, Any], complaint: str) -> dict[str, Any] | None:
        """Return the body without the field that the server complained about, or None where that is not optional."""
        ...

    def reader(self) -> Reader:
        """Make the reader of one answer."""
        ...


def without_functions(body: dict[str, Any], complaint: str) -> dict[str, Any] | None:
    """Return a body without what a server says of calls that it does not know; None where it says nothing of them."""
    if "tool_choice" in complaint and "tool_choice" in body:
        return {name: value for name, value in body.items() if name != "tool_choice"}
    if ("tool" in complaint or "function" in complaint) and "tools" in body:
        return {name: value for name, value in body.items() if name not in ("tools", "tool_choice")}
    return None


def decoded(data: str) -> Mapping[str, Any]:
    """Decode one event's JSON object; raise `ModelError` for anything else."""
    try:
        found = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ModelError(
            f"The model's server sent something in its stream that is no JSON object: {data[:80]!r}.",
            hint="Is heal_model_url the address of such an API, and heal_model_provider its protocol?",
        )
    return found


def mapping(value: object) -> Mapping[str, Any]:
    """Return the value if it is an object, else an empty one: servers send null for an absent one."""
    return value if isinstance(value, dict) else {}


def text_of(value: object) -> str:
    """Return the value if it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def count_of(value: object) -> int | None:
    """Return the value if it can be a count, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def complaint_of(error: object) -> tuple[str, str]:
    """Return kind and message of an error, which is an object with both, or only a text."""
    fields = mapping(error)
    kind = text_of(fields.get("type")) or text_of(fields.get("code"))
    return kind, text_of(fields.get("message")) or text_of(error)
