"""Lists of failure groups and of tools' summaries."""

from __future__ import annotations

from collections.abc import Sequence

from healkit.rendering import markup as m
from healkit.rendering import plain
from healkit.rendering.markup import visible
from healkit.rendering.views import GroupView, SummaryView

_GROUPS = ("failures", "tool", "first seen", "last seen", "since", "cured by", "row", "fingerprint", "what")


def groups_text(groups: Sequence[GroupView], width: int | None = None) -> str:
    """One line a group, the one seen last first."""
    if not groups:
        return "No failures match."
    return plain.text_table(_GROUPS, [_group_row(group) for group in groups], width)


def groups_html(groups: Sequence[GroupView]) -> str:
    """The same list as a card."""
    if not groups:
        return m.card(m.section("No failures match."))
    return m.card(m.section(m.table(_GROUPS, [_group_row(group) for group in groups])), accent=m.RED)


def summary_text(rows: Sequence[SummaryView], by: Sequence[str] = (), width: int | None = None) -> str:
    """One line a tool, or whatever it was summed up by besides."""
    if not rows:
        return "No executions match."
    return plain.text_table(_summary_headers(by), [_summary_row(row, by) for row in rows], width)


def summary_html(rows: Sequence[SummaryView], by: Sequence[str] = ()) -> str:
    """The same list as a card."""
    if not rows:
        return m.card(m.section("No executions match."))
    table = m.table(_summary_headers(by), [_summary_row(row, by) for row in rows])
    return m.card(m.section(table), accent=m.BLUE)


def _group_row(group: GroupView) -> tuple[str, ...]:
    persona = "" if group.persona == "default" else f".{group.persona}"
    return (
        f"{group.count:,}",
        visible(f"{group.tool_name}{persona}"),
        plain.moment(group.first_seen),
        plain.moment(group.last_seen),
        _revision(group.first_revision),
        _revision(group.cured_by),
        str(group.last_log_id),
        visible(group.fingerprint),
        plain.one_line(group.summary, 160),
    )


def _summary_headers(by: Sequence[str]) -> tuple[str, ...]:
    asked = [word for word in ("persona", "revision", "day") if word in by]
    return ("tool", *asked, "runs", "failed", "rate", "mean", "half within", "95 % within")


def _summary_row(row: SummaryView, by: Sequence[str]) -> tuple[str, ...]:
    asked = {"persona": row.persona or "–", "revision": _revision(row.revision), "day": str(row.day)}
    return (
        visible(row.tool_name),
        *(value for word, value in asked.items() if word in by),
        f"{row.runs:,}",
        f"{row.failures:,}",
        f"{row.failure_rate:.1%}",
        *(
            plain.duration(value) if value != float("inf") else "longer"
            for value in (row.mean_ms, row.p50_ms, row.p95_ms)
        ),
    )


def _revision(number: int | None) -> str:
    return "–" if number is None else f"@{number}"
