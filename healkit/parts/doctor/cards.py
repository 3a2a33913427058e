"""Cards of status, doctor and trust."""

from __future__ import annotations

from collections.abc import Sequence

from healkit.core.contracts.execution import TRACES_COUNTED_MAX
from healkit.core.rendering import execution_card
from healkit.core.rendering.document import (
    Card,
    Cell,
    Fact,
    Facts,
    Items,
    Line,
    Only,
    Part,
    Section,
    Span,
    Table,
)
from healkit.parts.doctor.records import DoctorCheck, DoctorReport, Status, TrustReport

#: Names of a list that are written out.
_NAMES_MAX = 12


_TIERS = {
    "namespaces": "namespaces, Landlock, seccomp and limits, the strongest tier",
    "landlock": "Landlock, seccomp and limits, without namespaces",
    "process": "a plain process with limits; this is NOT a boundary",
    "": "nothing can be enforced here, so tools do not run",
}


def status_card(found: Status) -> Card:
    """Build the report on where the data is and what it contains."""
    rows = [("database", found.url), *([("trusted", found.trust)] if found.trust else [])]
    rows += [("isolation", found.tier or "none")]
    rows += [("tools", f"{found.tools:,}"), ("executions", f"{found.executions:,}")]
    rows += [("failures", f"{found.failures:,}")]
    rows += [("refused", f"{found.refused:,}")] if found.refused else []
    rows += [("running", f"{found.running:,}")]
    rows += [("problem", found.problem)] if found.problem else []
    rows += [("requests", f"{found.requests:,} waiting for your approval")] if found.requests else []
    rows += _trace_rows(found)
    return Card(tone="warn" if found.problem else "info", parts=(Facts(rows, indent=0),))


def _trace_rows(found: Status) -> list[tuple[str, str]]:
    """Say where the traces are; if they are sent, why some will not be sent, and the current problem."""
    state = found.traces
    if state is None:
        return [*found.settings.items()]
    counts = [
        (state.pending, "waiting"),
        (state.sent, "sent"),
        (state.parked, "parked"),
        (state.local, "on this machine only"),
    ]
    parts = [
        f"{'at least ' * (count >= TRACES_COUNTED_MAX)}{count:,} {word}" for count, word in counts if count
    ]
    rows = [("traces", ", ".join(parts) or "none")]
    rows += found.settings.items()
    rows += [("parked", f"{count:,} for: {reason}") for reason, count in state.parked_for.items()]
    return [*rows, ("sending", state.problem)] if state.problem else rows


def trust_card(report: TrustReport) -> Card:
    """Build the report on what a database grants, or would."""
    rows: list[tuple[str, Fact]] = [("database", report.place), ("trusted", report.why or "no")]
    if report.strange:
        rows += [("not ours", _some(report.strange)), ("", "Nothing else in it was read.")]
    else:
        rows.append(("tools", f"{report.tools:,}"))
    granted = [
        f"{label}: {', '.join(execution_card.grant_lines(tool_grants))}"
        for label, tool_grants in report.grants.items()
    ]
    rows += [("" if i else "grants", line) for i, line in enumerate(granted)]
    rows += [("effects", _some(report.acting))] if report.acting else []
    rows += [("requests", f"waiting for {_some(report.requests)}")] if report.requests else []
    return Card(tone="info" if report.why else "warn", parts=(Facts(rows, indent=0),))


def _some(names: Sequence[str]) -> str:
    remaining = len(names) - _NAMES_MAX
    return ", ".join(names[:_NAMES_MAX]) + (f", and {remaining:,} more" if remaining > 0 else "")


def doctor(report: DoctorReport) -> Card:
    """Build the report on what this machine enforces: each check, with its fix if it needs one."""
    good = report.tier in {"namespaces", "landlock"} and all(check.ok for check in report.checks)
    title = f"Isolation tier: {report.tier or 'none'}"
    parts: list[Part] = [Table((), [_check(check) for check in report.checks], indent=2)]
    if report.not_stopped:
        parts.append(Section((Span("Not stopped here:", "quiet"), Items(report.not_stopped))))
    return Card(
        title,
        mark="✓" if good else "!",
        tone="good" if good else "warn",
        below=(Only("html", _TIERS.get(report.tier, "")),),
        parts=parts,
        line=f"{title} ({_TIERS.get(report.tier, 'unknown')})",
    )


def _check(check: DoctorCheck) -> tuple[Cell, ...]:
    sign = Span("✓", "strong", "good") if check.ok else Span("✗", "strong", "bad")
    wanted = check.fix and not check.ok
    fix = (Line((Span("fix: ", "quiet"), Span(check.fix, "code")), indent=4),) if wanted else ()
    return sign, Span(check.name, plain=f"{check.name}:"), (check.detail, *fix)
