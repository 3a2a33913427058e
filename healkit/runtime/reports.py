"""Texts about the log, for people and for agents alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from healkit.errors import near_misses
from healkit.runtime.history import execution_of

if TYPE_CHECKING:
    from healkit.store.log import Log


def last_error_report(log: Log, tool_name: str | None = None) -> str:
    """The newest failure with tool, time, persona, input and full traceback; "No errors found" if there is none.

    When only the name filter excluded every failure, it says so and names tools that are spelled alike.
    """
    row = log.last_error(tool_name)
    if row is None:
        return _nothing_found(log, tool_name)
    execution = execution_of(row, [])
    failure = execution.failure
    code = f" [{failure.code}]" if failure else ""
    return "\n".join(
        [
            f"Last error: {execution.label}{code}",
            f"Time: {execution.timestamp.isoformat(timespec='seconds')}",
            f"Persona: {execution.persona}",
            f"Input: {row.arguments}",
            f"Log row: {row.id}",
            "",
            row.error_traceback or "(no traceback was recorded)",
            *([f"\nNext step: {failure.hint}"] if failure and failure.hint else []),
        ]
    )


def _nothing_found(log: Log, tool_name: str | None) -> str:
    if tool_name is None:
        return "No errors found."
    others = log.tools_with_errors()
    if not others:
        return f"No errors found for tool {tool_name!r}, nor for any other."
    near = near_misses(tool_name, others)
    hint = (
        f"Did you mean {' or '.join(map(repr, near))}?"
        if near
        else f"Failures are on record for: {', '.join(others[:10])}."
    )
    return f"No errors found for tool {tool_name!r}. {hint}"
