"""Where payload stands in an event, and who cleans it.

Redaction is told where to look, not left to guess: a hash or an id that happens to look like a secret must survive,
or the contract is broken. So payload has its places, and a key that nobody has declared is payload.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from healkit.contracts.encoding import to_jsonable
from healkit.contracts.events import CONTRACT_KEYS, ActionSpec, ErrorObject

#: What a value is cut at when nobody says otherwise, in bytes of JSON.
PAYLOAD_MAX_BYTES = 10_240
#: Up to here a value is cleaned whole and cut after; a longer one is cut at a word first, or it would take seconds.
WHOLE_MAX_BYTES = 32_768
_MARKER = "[TRUNCATED]"
#: What stands before a cut may be half a secret, which no rule knows; a longer word is none.
WORD_MAX_CHARS, _WORD_ENDS = 2048, re.compile(r"[\s\"',;&]")


class Cleaned(Protocol):
    """A cleaned value: what was hidden by which rule, and its size in bytes before it was cut, or None."""

    @property
    def value(self) -> Any: ...
    @property
    def hidden(self) -> Mapping[str, int]: ...
    @property
    def truncated_from(self) -> int | None: ...


class Cleaner(Protocol):
    """Hides secrets and personal data in payload; the sanitiser is one, `Verbatim` is the one that hides nothing."""

    def clean(self, value: Any, *, limit_bytes: int | None = None) -> Cleaned:
        """The value as JSON data without what must not be kept, cut at the limit; must not raise."""
        ...


@dataclasses.dataclass(frozen=True)
class Kept:
    """A cleaned value that was put together here."""

    value: Any
    hidden: Mapping[str, int]
    truncated_from: int | None


class Verbatim:
    """Raw payload, by explicit opt-in: it is only made JSON, and cut."""

    def clean(self, value: Any, *, limit_bytes: int | None = None) -> Kept:
        """The value as it is; one that is too long becomes text, cut and marked."""
        plain, _ = to_jsonable(value)
        encoded = plain.encode() if isinstance(plain, str) else msgspec.json.encode(plain)
        limit = PAYLOAD_MAX_BYTES if limit_bytes is None else limit_bytes
        if len(encoded) <= limit:
            return Kept(plain, {}, None)
        cut = encoded[: max(0, limit - len(_MARKER))].decode(errors="ignore")
        return Kept(cut + _MARKER, {}, len(encoded))


def clean_bounded(cleaner: Cleaner, value: Any, max_bytes: int) -> Cleaned:
    """The value cleaned and within `max_bytes`, in time that does not grow with what is cut off."""
    plain = value if isinstance(value, str) else to_jsonable(value)[0]
    encoded = (
        plain.encode(errors="backslashreplace") if isinstance(plain, str) else msgspec.json.encode(plain)
    )
    if len(encoded) <= max(max_bytes, WHOLE_MAX_BYTES):
        return cleaner.clean(plain, limit_bytes=max_bytes)
    head = encoded[: max_bytes - len(_MARKER)].decode(errors="ignore")
    cleaned = cleaner.clean(whole_words(head), limit_bytes=2 * max_bytes)
    return Kept(f"{cleaned.value}{_MARKER}", cleaned.hidden, len(encoded))


def whole_words(head: str, longest: int = WORD_MAX_CHARS) -> str:
    """The text without its last word, or without that one's last `longest` characters; in time that is theirs alone.

    A regular expression for it, anchored at the end, tries every position of a long word and takes seconds.
    """
    start = max(0, len(head) - longest)
    ends = [match.end() for match in _WORD_ENDS.finditer(head, start)]
    return head[: ends[-1] if ends else start]


class Redactor:
    """Cleans one event's payload and counts what it hid; made for each event."""

    def __init__(self, cleaner: Cleaner, max_bytes: int = PAYLOAD_MAX_BYTES) -> None:
        self._cleaner = cleaner
        self._max_bytes = max_bytes
        self.hidden: dict[str, int] = {}

    def payload(self, value: Any) -> Any:
        """One value that a tool was given, or that came from it."""
        cleaned = clean_bounded(self._cleaner, value, self._max_bytes)
        for rule, count in cleaned.hidden.items():
            self.hidden[rule] = self.hidden.get(rule, 0) + count
        return cleaned.value

    def open_field(self, fields: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """`result`, `metadata` or `details`: the contract's own keys stay, every other value is payload."""
        if fields is None:
            return None
        return {
            key: value if key in CONTRACT_KEYS or value is None else self.payload(value)
            for key, value in fields.items()
        }

    def action(self, spec: ActionSpec | None) -> ActionSpec | None:
        """An action with its arguments cleaned."""
        return None if spec is None else msgspec.structs.replace(spec, arguments=self.payload(spec.arguments))

    def error(self, error: ErrorObject | None) -> ErrorObject | None:
        """An error with its message and details cleaned."""
        if error is None:
            return None
        details = self.open_field(error.details) or {}
        return msgspec.structs.replace(error, message=str(self.payload(error.message)), details=details)
