"""Cleaners: the seam between a payload and what is kept of it.

A cleaner turns a value into JSON data without what must not be kept. `Sanitizer` is the one in use; `Verbatim` hides
nothing, for those who ask for raw traces.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from healkit.contracts.encoding import to_jsonable
from healkit.sanitizer.truncation import MARKER, whole_words

#: Default limit of one payload, in bytes of JSON.
PAYLOAD_MAX_BYTES = 10_240
#: A value up to this size is cleaned whole and then cut; a longer one is first cut at a word, or it would take seconds.
WHOLE_MAX_BYTES = 32_768


@dataclasses.dataclass(frozen=True)
class Cleaned:
    """A cleaned value.

    value: plain JSON data. hidden: how often each rule hid something, by rule id. truncated_from: the value's size in
    bytes before it was cut, None where it was not.
    """

    value: Any
    hidden: Mapping[str, int]
    truncated_from: int | None = None


class Cleaner(Protocol):
    """Hides secrets and personal data in payloads.

    rule_set_version: a hash of the built-in rules, None without any. custom_rules: ids of the user's own rules.
    """

    @property
    def rule_set_version(self) -> str | None: ...
    @property
    def custom_rules(self) -> tuple[str, ...]: ...

    def clean(self, value: Any, *, limit_bytes: int | None = None) -> Cleaned:
        """Return the value as JSON data without what must not be kept, cut at the limit; never raise.

        Called for each payload, before it is stored, sent or shown.
        """
        ...


class Verbatim:
    """Cleaner that hides nothing: values are only made JSON, and cut."""

    rule_set_version: str | None = None
    custom_rules: tuple[str, ...] = ()

    def clean(self, value: Any, *, limit_bytes: int | None = None) -> Cleaned:
        """Return the value as it is; one that is too long becomes text, cut and marked."""
        plain, _ = to_jsonable(value)
        encoded = plain.encode() if isinstance(plain, str) else msgspec.json.encode(plain)
        limit = PAYLOAD_MAX_BYTES if limit_bytes is None else limit_bytes
        if len(encoded) <= limit:
            return Cleaned(plain, {})
        cut = encoded[: max(0, limit - len(MARKER))].decode(errors="ignore")
        return Cleaned(cut + MARKER, {}, len(encoded))


def clean_bounded(cleaner: Cleaner, value: Any, max_bytes: int) -> Cleaned:
    """Clean a value to at most `max_bytes`, in time that does not grow with what is cut off."""
    plain = value if isinstance(value, str) else to_jsonable(value)[0]
    encoded = (
        plain.encode(errors="backslashreplace") if isinstance(plain, str) else msgspec.json.encode(plain)
    )
    if len(encoded) <= max(max_bytes, WHOLE_MAX_BYTES):
        return cleaner.clean(plain, limit_bytes=max_bytes)
    head = encoded[: max_bytes - len(MARKER)].decode(errors="ignore")
    cleaned = cleaner.clean(whole_words(head), limit_bytes=2 * max_bytes)
    return Cleaned(f"{cleaned.value}{MARKER}", cleaned.hidden, len(encoded))


def of_record(cleaner: Cleaner) -> Cleaner:
    """Return a cleaner for the parts of one record: what the sanitiser hides in one part, it hides in all."""
    make = getattr(cleaner, "of_record", None)
    made: Cleaner = cleaner if make is None else make()
    return made


def again(cleaner: Cleaner, value: Any) -> Any:
    """Return a part that `of_record`'s cleaner has cleaned, without what later parts have taught it."""
    hide = getattr(cleaner, "again", None)
    return value if hide is None else hide(value)
