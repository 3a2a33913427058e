"""What is asked of a language model, and what comes back.

The seam of the two adapters: whatever one provider calls things, the rest of this package knows a `Prompt`, a `Reply`
and an `Adapter`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, Protocol

import msgspec

from healkit.errors import ModelError

#: `complete`: the model came to its end. `length`: it was cut at `heal_model_max_tokens`. `refused`: it declined, or a
#: filter stopped it. Empty: the end never came.
Ending = Literal["", "complete", "length", "refused"]


@dataclasses.dataclass(frozen=True)
class Prompt:
    """One question: the rules of the house, and the case."""

    system: str
    user: str


@dataclasses.dataclass
class Reply:
    """An answer, as it grows. Token counts are the server's; None where it does not tell."""

    text: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    ending: Ending = ""


class Broken(Exception):
    """An error in the middle of a stream, in the server's words; `passing` is whether another try may do better."""

    def __init__(self, said: str, *, passing: bool) -> None:
        super().__init__(said)
        self.passing = passing


class Reader(Protocol):
    """Reads one answer's events; made anew for each request."""

    reply: Reply
    #: Whether the protocol's own last word has come; a server may leave the connection open after it.
    done: bool

    def read(self, data: str) -> None:
        """One event's data; called by the exchange in their order. Raises `ModelError`, or `Broken`."""
        ...


class Adapter(Protocol):
    """One provider's protocol, spoken at one address."""

    #: The provider's own endpoint; the host that its own key belongs to.
    default_url: str
    #: The environment variable in which users keep that key.
    key_variable: str

    @property
    def endpoint(self) -> str:
        """Where to post."""
        ...

    def headers(self, key: str) -> dict[str, str]:
        """What goes with a request, the key included where there is one."""
        ...

    def body(self, model: str, prompt: Prompt, max_tokens: int) -> dict[str, Any]:
        """The request, streaming."""
        ...

    def without(self, body: dict[str, Any], complaint: str) -> dict[str, Any] | None:
        """The request without what the server has just complained about, or None where that is not optional."""
        ...

    def reader(self) -> Reader:
        """What reads one answer."""
        ...


def decoded(data: str) -> Mapping[str, Any]:
    """One event's JSON object; raises `ModelError` for anything else."""
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
    """The value where it is an object, else an empty one: servers send null for what they leave out."""
    return value if isinstance(value, dict) else {}


def text_of(value: object) -> str:
    """The value where it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def count_of(value: object) -> int | None:
    """The value where it can be a count, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def complaint_of(error: object) -> tuple[str, str]:
    """Kind and message of an error, which is an object with both, or only a text."""
    fields = mapping(error)
    kind = text_of(fields.get("type")) or text_of(fields.get("code"))
    return kind, text_of(fields.get("message")) or text_of(error)
