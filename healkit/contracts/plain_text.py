"""Text as a terminal can show it.

Below everything that writes sentences, so it uses the standard library only.
"""

from __future__ import annotations

import re

#: Escape sequences that only colour text; what is shown is the text without them.
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
#: What moves the cursor, rings, or reorders the line around it: a forged message could hide behind it.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200e\u200f\ufeff]")


def visible(text: str) -> str:
    """Return `text` without colour codes, other control and reordering characters spelt out as escapes."""
    text = _COLOUR.sub("", text).replace("\r\n", "\n")
    return _UNSEEN.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def one_line(text: str, limit: int = 120) -> str:
    """Put the text on one line, cut at `limit` characters."""
    flat = " ".join(visible(text[: limit * 8]).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def count(number: int, noun: str) -> str:
    """Write a number with its noun: `1 frame`, `2 frames`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
