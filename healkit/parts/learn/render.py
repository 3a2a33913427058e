"""What was learned, as a card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from healkit.core.rendering import plain
from healkit.core.rendering.document import Card, Look, Section, Span, Table, Tone

if TYPE_CHECKING:
    from healkit.parts.learn.priority import Surprise

_SURPRISING = ("priority", "tool", "it", "though", "when")


_FIXES = ("edit", "failure", "outcomes")


_ENDED: dict[bool, tuple[str, Look, Tone]] = {
    True: ("✓ succeeded", "state", "good"),
    False: ("✗ failed", "state", "bad"),
}


def learned(executions: int, surprising: Sequence[Surprise], fixes: Sequence[Mapping[str, Any]]) -> Card:
    """Build the card of what was learned: the most surprising executions, and the fixes that are remembered."""
    if not executions and not fixes:
        return Card(parts=("Nothing was learned yet: no tool has run, and no fix was kept.",))
    runs = [
        (
            Span(f"{row.priority:.2f}", "unbroken"),
            Span(row.tool_name, "code"),
            Span(*_ENDED[row.succeeded]),
            f"expected to succeed at {row.predicted:.0%}",
            Span(plain.moment(row.timestamp), "moment"),
        )
        for row in surprising
    ]
    edits = [
        (
            Span(f"{fix['old']} → {fix['new']}", "code"),
            fix["failure"],
            f"{fix['kept']} kept, {fix['against']} against",
        )
        for fix in fixes
    ]
    summary = f"Learned from {plain.count(executions, 'execution')}."
    return Card(
        tone="info",
        parts=(
            summary,
            *([Section(("The most surprising", Table(_SURPRISING, runs)))] if runs else []),
            *([Section(("Remembered fixes", Table(_FIXES, edits)))] if edits else []),
        ),
    )
