"""Lists of failure groups and of tools' summaries."""

from __future__ import annotations

from collections.abc import Sequence

from healkit.contracts.execution import GroupInfo, ToolSummary
from healkit.rendering import plain
from healkit.rendering.document import Card, Span, Table
from healkit.rendering.listings import refused_line

_GROUPS = (
    "failures",
    "tool",
    "first seen",
    "last seen",
    "since",
    "resolved by",
    "row",
    "fingerprint",
    "what",
)


def groups(found: Sequence[GroupInfo], *, left_out: int = 0, ask: str = "") -> Card:
    """Build the list of groups, the one seen last first.

    left_out: how many refused calls are not listed. ask: what lists them.
    """
    below = [Span(refused_line(left_out, ask), "quiet")] if left_out else []
    if not found:
        return Card(parts=("No failures match.", *below))
    return Card(tone="bad", parts=(Table(_GROUPS, [_group_row(group) for group in found]), *below))


def summary(rows: Sequence[ToolSummary], by: Sequence[str] = ()) -> Card:
    """Build the list of tools' runs; `by` names what else they are summed up by."""
    if not rows:
        return Card(parts=("No executions match.",))
    asked = [word for word in ("persona", "revision", "day") if word in by]
    refused = ["refused"] if any(row.refused for row in rows) else []
    headers = ("tool", *asked, "runs", "failed", *refused, "rate", "mean", "half within", "95 % within")
    return Card(tone="info", parts=(Table(headers, [_summary_row(row, [*asked, *refused]) for row in rows]),))


def _group_row(group: GroupInfo) -> tuple[str, ...]:
    persona = "" if group.persona == "default" else f".{group.persona}"
    return (
        f"{group.count:,}",
        f"{group.tool_name}{persona}",
        plain.moment(group.first_seen),
        plain.moment(group.last_seen),
        _revision(group.first_revision),
        _revision(group.cured_by),
        str(group.last_log_id),
        group.fingerprint,
        plain.one_line(group.summary, 160),
    )


def _summary_row(row: ToolSummary, asked: Sequence[str]) -> tuple[str, ...]:
    known = {"persona": row.persona or "–", "revision": _revision(row.revision), "day": str(row.day)}
    times = (row.mean_ms, row.p50_ms, row.p95_ms)
    return (
        row.tool_name,
        *(known[word] for word in asked if word in known),
        f"{row.runs:,}",
        f"{row.failures:,}",
        *([f"{row.refused:,}"] if "refused" in asked else []),
        f"{row.failure_rate:.1%}",
        *("longer" if value == float("inf") else plain.duration(value) for value in times),
    )


def _revision(number: int | None) -> str:
    return "–" if number is None else f"v{number}"
