"""Plain text for terminals: tables, times, one-liners."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from healkit.contracts.records import summarize
from healkit.rendering.markup import visible


def text_table(headers: Sequence[str], rows: Iterable[Sequence[str]], width: int | None = None) -> str:
    """Aligned columns; with a `width`, the last column is cut to fit the terminal."""
    lines = [list(headers), *([one_line(cell, 10_000) for cell in row] for row in rows)]
    widths = [max(columns(line[i]) for line in lines) for i in range(len(headers))]
    if width is not None:
        room = width - sum(widths[:-1]) - 2 * (len(widths) - 1)
        widths[-1] = min(widths[-1], max(room, 16))
    return "\n".join(
        "  ".join(_fit(cell, size) for cell, size in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def columns(text: str) -> int:
    """How many terminal cells `text` takes: East Asian wide characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def _fit(text: str, size: int) -> str:
    if columns(text) > size:
        while columns(text) > size - 1:
            text = text[:-1]
        text += "…"
    return text + " " * (size - columns(text))


def one_line(text: str, limit: int = 120) -> str:
    """The text on one line, cut at `limit` characters."""
    flat = " ".join(visible(text[: limit * 8]).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def duration(milliseconds: float | None) -> str:
    """`3.5 ms`, `120 ms`, `2.1 s`, `4 min 10 s`; an en dash where it is not known."""
    if milliseconds is None:
        return "–"
    if milliseconds < 1000:
        return f"{milliseconds:.1f} ms" if milliseconds < 10 else f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    return f"{seconds:.1f} s" if seconds < 100 else f"{int(seconds) // 60} min {int(seconds) % 60} s"


def moment(when: datetime | None) -> str:
    """`2025-03-01 14:02:11 UTC`; a naive time is taken as UTC, as the log keeps it."""
    if when is None:
        return "–"
    aware = when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    return aware.strftime("%Y-%m-%d %H:%M:%S UTC")


def value_text(value: Any, limit: int = 2000) -> str:
    """A JSON value as Python writes it, cut with its size noted."""
    return summarize(repr(value), limit)


def indent(text: str, by: str = "    ") -> str:
    """Every line moved right."""
    return "\n".join(by + line for line in text.splitlines())


def count(number: int, noun: str) -> str:
    """`1 frame`, `2 frames`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
