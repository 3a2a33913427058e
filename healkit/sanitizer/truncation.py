"""Truncation of values to a size in bytes of JSON.

A cut value keeps its outline: long texts and long lists lose their ends, and each cut says how much there was. No cut
is made inside a replacement, and none leaves half a word, because half a secret matches no rule.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

MARKER = "[TRUNCATED]"
#: A container gives one item at most this part (a half) of the room left: the items after it need some too.
_SHARE = 2
_LEAST_BYTES = 64
_MARKED = re.compile(r" ?… \[TRUNCATED\] \(([\d,]+) bytes\)\Z")
_HALF_REPLACEMENT = re.compile(r"\[[A-Za-z][\w:.-]{0,63}\Z")
_WORD_MAX_CHARS = 4096
#: The longest mark, the longest replacement and most words are shorter.
_NEAR_CHARS = 128
#: Default of `whole_words`: text before a cut may be half a secret, which no rule matches; a longer word is no secret.
WORD_MAX_CHARS, _WORD_ENDS = 2048, re.compile(r"[\s\"',;&]")

_encode = msgspec.json.Encoder().encode


def size_of(value: Any) -> int:
    """Return the size in bytes: of a text's UTF-8, of any other value's JSON."""
    return len(value.encode()) if isinstance(value, str) else len(_encode(value))


def cut(value: Any, limit_bytes: int) -> Any:
    """Return the value in at most `limit_bytes`, as `size_of` counts them; the same object where it fits."""
    budget = limit_bytes
    for _ in range(8):
        size = size_of(value)
        if size <= limit_bytes:
            return value
        value = _text(value, budget, size) if isinstance(value, str) else _inside(value, budget)
        budget = budget * 3 // 4  # the sizes of escapes and punctuation are estimates
    return MARKER[:limit_bytes]


def whole_words(head: str, longest: int = WORD_MAX_CHARS) -> str:
    """Drop the text's last word, or the last `longest` characters of it; takes time for those alone.

    A regular expression anchored at the end would try every position of a long word and take seconds.
    """
    start = max(0, len(head) - longest)
    for begin in (max(start, len(head) - _NEAR_CHARS), start):  # the last end is most often near
        ends = [match.end() for match in _WORD_ENDS.finditer(head, begin)]
        if ends:
            return head[: ends[-1]]
    return head[:start]


def _text(text: str, budget: int, size: int) -> str:
    """Return a text's beginning, and how many bytes there were before the first cut."""
    earlier = _MARKED.search(text, max(0, len(text) - _NEAR_CHARS))
    if earlier is not None:
        size = int(earlier[1].replace(",", ""))
        text = text[: earlier.start()]
    marker = f" … {MARKER} ({size:,} bytes)"
    room = max(0, budget - len(marker.encode()))
    head = text.encode()[:room].decode(errors="ignore")
    if len(head) < len(text):
        head = whole_words(head, _WORD_MAX_CHARS) or head[: len(head) // 2]
    half = _HALF_REPLACEMENT.search(head, max(0, len(head) - _NEAR_CHARS))
    return (head[: half.start()] if half else head).rstrip() + marker


def _inside(value: Any, budget: int) -> Any:
    """Return a list or an object with as much of each item as there is room for; anything else unchanged."""
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
    """Return an item within its budget, and its size as JSON."""
    size = len(_encode(item))
    if size <= budget:
        return item, size
    item = _text(item, budget, len(item.encode())) if isinstance(item, str) else _inside(item, budget)
    return item, len(_encode(item))
