"""Sizes: what a value weighs as JSON, and how it is cut.

A cut value keeps its outline: long texts and long lists lose their ends, and each cut says so and how much there was.
Nothing is cut inside of a replacement, and no cut leaves half a word, because half a secret matches no rule.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from healkit.tracing.redaction import whole_words

MARKER = "[TRUNCATED]"
#: What a container gives one of its items at most, of what it has left: those that follow need room too.
_SHARE = 2
_LEAST_BYTES = 64
_MARKED = re.compile(r" ?… \[TRUNCATED\] \(([\d,]+) bytes\)\Z")
_HALF_REPLACEMENT = re.compile(r"\[[A-Za-z][\w:.-]{0,63}\Z")
_WORD_MAX_CHARS = 4096

_encode = msgspec.json.Encoder().encode


def size_of(value: Any) -> int:
    """A text's size is its UTF-8; any other value's that of its JSON. In bytes."""
    return len(value.encode()) if isinstance(value, str) else len(_encode(value))


def cut(value: Any, limit_bytes: int) -> Any:
    """The value in at most `limit_bytes`, as `size_of` counts them; unchanged where it fits."""
    budget = limit_bytes
    for _ in range(8):
        size = size_of(value)
        if size <= limit_bytes:
            return value
        value = _text(value, budget, size) if isinstance(value, str) else _inside(value, budget)
        budget = budget * 3 // 4  # escapes and punctuation were estimated
    return MARKER[:limit_bytes]


def _text(text: str, budget: int, size: int) -> str:
    """A text's beginning, and how many bytes there were before the first cut."""
    earlier = _MARKED.search(text)
    if earlier is not None:
        size = int(earlier[1].replace(",", ""))
        text = text[: earlier.start()]
    marker = f" … {MARKER} ({size:,} bytes)"
    room = max(0, budget - len(marker.encode()))
    head = text.encode()[:room].decode(errors="ignore")
    if len(head) < len(text):
        head = whole_words(head, _WORD_MAX_CHARS) or head[: len(head) // 2]
    return _HALF_REPLACEMENT.sub("", head).rstrip() + marker


def _inside(value: Any, budget: int) -> Any:
    """A list or an object with as much of each item as there is room for; anything else as it is."""
    if isinstance(value, dict):
        return _object(value, budget)
    if not isinstance(value, list):
        return value
    kept: list[Any] = []
    left = budget - 2
    for position, item in enumerate(value):
        rest = len(value) - position
        if left < 2 * _LEAST_BYTES and rest > 1:
            kept.append(f"{MARKER} {rest:,} more items")
            break
        fitted, size = _fitted(item, left if rest == 1 else max(_LEAST_BYTES, left // _SHARE))
        kept.append(fitted)
        left -= size + 1
    return kept


def _object(value: dict[str, Any], budget: int) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    left = budget - 2
    for position, (key, item) in enumerate(value.items()):
        rest = len(value) - position
        weight = len(_encode(key)) + 2
        if left < 2 * _LEAST_BYTES + weight and (rest > 1 or weight > left):
            kept[MARKER] = f"{rest:,} more keys"
            break
        fitted, size = _fitted(
            item, left - weight if rest == 1 else max(_LEAST_BYTES, (left - weight) // _SHARE)
        )
        kept[key] = fitted
        left -= size + weight
    return kept


def _fitted(item: Any, budget: int) -> tuple[Any, int]:
    """An item within its budget, and its size as JSON."""
    size = len(_encode(item))
    if size <= budget:
        return item, size
    item = _text(item, budget, len(item.encode())) if isinstance(item, str) else _inside(item, budget)
    return item, len(_encode(item))
