"""Audit: an execution's entries, sums, a check of the chain."""

from __future__ import annotations

from collections.abc import Sequence

from healkit.contracts.audit import AuditEntry, AuditMetadata, AuditSummary, AuditVerification
from healkit.rendering import plain
from healkit.rendering.document import Card, Fact, Facts, Span, Table

_HEADERS = ("entry", "when", "choice", "tool", "result", "description")


def listing(entries: Sequence[AuditEntry]) -> Card:
    """Build the list of an execution's entries."""
    failed = any(entry.metadata.success is False for entry in entries)
    rows = [
        (
            str(entry.seq),
            Span(plain.moment(entry.timestamp), "moment"),
            Span(entry.choice_type, "code"),
            Span(entry.tool_name, "code"),
            _result(entry.metadata),
            plain.one_line(entry.description, 160),
        )
        for entry in entries
    ]
    return Card(tone="warn" if failed else "info", parts=(Table(_HEADERS, rows),))


def summary(found: AuditSummary) -> Card:
    """Build the sums over the entries of one execution, or of all."""
    if not found.entries:
        return Card(parts=("No audit entries.",))
    facts = summary_facts(found)
    if found.first is not None and found.last is not None:
        facts.append(("between", f"{plain.moment(found.first)} and {plain.moment(found.last)}"))
    return Card(tone="info", parts=(Facts(facts, width=12),))


def summary_facts(found: AuditSummary) -> list[tuple[str, Fact]]:
    """List the sums as names and words."""
    choices = ", ".join(f"{count:,} {choice}" for choice, count in found.by_choice.items())
    return [
        ("entries", f"{found.entries:,} of {plain.count(found.executions, 'execution')}"),
        ("choices", choices),
        ("corrections", f"{found.corrections:,}, and {found.failed_corrections:,} that failed"),
        ("failures", f"{found.failures:,}"),
        ("duration", f"{found.duration_ms:,.1f} ms"),
        ("tools", ", ".join(found.tools) or "none"),
    ]


def verification(found: AuditVerification) -> Card:
    """Build the result of a check of the chain."""
    if found.fault is None:
        read = f"{plain.count(found.entries, 'entry')}, all as written" if found.entries else "No entries yet"
        skipped = (
            f" ({plain.count(found.foreign, 'file')} of another database skipped)" if found.foreign else ""
        )
        return Card(f"{read}{skipped}", "✓", "good")
    return Card(f"{found.fault.message} ({found.fault.kind.replace('_', ' ')})", "✗", "bad")


def _result(known: AuditMetadata) -> Span:
    if known.success is None:
        return Span("")
    return Span("✓ done", "state", "good") if known.success else Span("✗ failed", "state", "bad")
