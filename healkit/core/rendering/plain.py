"""Plain text for terminals: tables, times, one-liners."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from healkit.core.crossing import values
from healkit.core.wire.record_text import shortened
from healkit.plain_text import count, one_line, visible

__all__ = [
    "clipped", "count", "duration", "moment", "one_line", "recorded_text", "spared", "text_table",
    "value_text", "visible",
]  # fmt: skip

Item = TypeVar("Item")

#: Minimum width of a table's last column, in terminal cells.
_LAST_LEAST = 16


def text_table(headers: Sequence[str], rows: Iterable[Sequence[str]], width: int | None = None) -> str:
    """Align the columns; if `width` is given, cut the last column to fit the terminal."""
    from rich.cells import cell_len, set_cell_size  # late, because most commands print no table

    lines = [list(headers), *([one_line(cell, 10_000) for cell in row] for row in rows)]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    if width is not None:
        room = width - sum(widths[:-1]) - 2 * (len(widths) - 1)
        widths[-1] = min(widths[-1], max(room, _LAST_LEAST))

    def fit(cell: str, size: int) -> str:
        return set_cell_size(cell if cell_len(cell) <= size else set_cell_size(cell, size - 1) + "…", size)

    return "\n".join("  ".join(map(fit, line, widths)).rstrip() for line in lines)


def clipped(text: str, width: int | None) -> str:
    """Cut every line to the terminal's width, but not below 40 characters; with None, cut nothing."""
    return text if width is None else "\n".join(line[: max(width, 40)] for line in text.split("\n"))


def duration(milliseconds: float | None) -> str:
    """Format a duration: `3.5 ms`, `120 ms`, `2.1 s`, `4 min 10 s`, or an en dash if it is unknown."""
    if milliseconds is None:
        return "–"
    if milliseconds < 1000:
        return f"{milliseconds:.1f} ms" if milliseconds < 10 else f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    return f"{seconds:.1f} s" if seconds < 100 else f"{int(seconds) // 60} min {int(seconds) % 60} s"


def moment(when: datetime | None) -> str:
    """Format a time in the reader's zone: `2025-03-01 15:02:11 CET`. A naive time is UTC, as in the log."""
    if when is None:
        return "–"
    try:
        local = (when.replace(tzinfo=UTC) if when.tzinfo is None else when).astimezone()
    except (OverflowError, ValueError):  # in the years 1 or 9999, the local time may be out of range
        return str(when)
    return local.strftime("%Y-%m-%d %H:%M:%S %Z")


def value_text(value: object, limit: int = 2000) -> str:
    """Format a value as Python code, a frame by its first items; if it is cut, its size is noted."""
    return shortened(values.as_text(value), limit)


def recorded_text(value: object, limit: int = 2000) -> str:
    """Format a record's JSON in the same way, with `DataFrame 2 × 2` in place of a frame."""
    return shortened(values.recorded_text(value), limit)


def spared(write: Callable[[Item], str], item: Item) -> str:
    """Format one of several items; if that raises, return a note instead, so that the others are still shown."""
    try:
        return write(item)
    except Exception as error:  # noqa: BLE001 - an error in one item must not affect the others
        return f"(cannot be shown: {type(error).__name__})"
