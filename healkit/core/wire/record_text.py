"""Texts of a record: truncated and storable."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from typing import Any

import msgspec

from healkit.core.contracts.execution import SUMMARY_MAX_CHARS, AnyRecord, CallRecord, Started, escaped
from healkit.core.wire import claims


def shortened(text: str, limit: int = SUMMARY_MAX_CHARS, characters: int | None = None) -> str:
    """Truncate a text to at most `limit` characters; a marker at its end states the original size.

    characters: The original size, if `text` is only the beginning.
    """
    size = len(text) if characters is None else characters
    if size <= limit:
        return text
    marker = f"… [TRUNCATED, {size:,} characters]"
    return text[: limit - len(marker)] + marker


def summarize_json(raw: msgspec.Raw, limit: int = SUMMARY_MAX_CHARS) -> str:
    """Return JSON as text, truncated like `summarize`; of a large value, only the beginning is converted to text."""
    if len(raw) <= limit:
        return bytes(raw).decode(errors="replace")
    head = bytes(memoryview(raw)[: 4 * limit]).decode(errors="replace")
    return shortened(head, limit, claims.count_characters(raw))


def storable(record: AnyRecord) -> AnyRecord:
    """Return the record with every character that a database or UTF-8 refuses written as an escape.

    Lone surrogates cannot be encoded at all. PostgreSQL does not accept NUL in a text, or NaN in JSON. Call it only for
    a record that was refused, so that other records do not pay for the search.
    """
    values = escaped(msgspec.to_builtins(record))
    if isinstance(record, Started | CallRecord):
        with suppress(ValueError, RecursionError):
            values["arguments"] = json.dumps(finite(json.loads(values["arguments"])))
    return msgspec.convert(values, type(record))


def finite(value: object) -> Any:
    """Return a JSON value with NaN and the infinities, for which JSON has no numbers, as texts."""
    if isinstance(value, float):
        return value if math.isfinite(value) else json.dumps(value)
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, list) else value
