"""Doctor, status, blame and diff."""

from __future__ import annotations

from healkit.contracts.doctor import DoctorCheck, DoctorReport, Status
from healkit.contracts.tools import revision_label
from healkit.contracts.vault import Blame
from healkit.rendering import plain
from healkit.rendering.document import Card, Cell, Diff, Facts, Items, Line, Only, Part, Section, Span, Table

_TIERS = {
    "namespaces": "namespaces, Landlock, seccomp and limits, the strongest there is",
    "landlock": "Landlock, seccomp and limits, without namespaces",
    "process": "a plain process with limits; this is NOT a boundary",
    "": "nothing can be enforced here, so tools are not run",
}


def doctor(report: DoctorReport) -> Card:
    """Build the report on what this machine enforces: each check, with its fix where it needs one."""
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


def status(found: Status) -> Card:
    """Build the report on where the data is and what is in it."""
    rows = [("database", found.url), ("isolation", found.tier or "none")]
    rows += [("tools", f"{found.tools:,}"), ("executions", f"{found.executions:,}")]
    rows += [("failures", f"{found.failures:,}")]
    rows += [("refused", f"{found.refused:,}")] if found.refused else []
    rows += [("running", f"{found.running:,}")]
    rows += [("problem", found.problem)] if found.problem else []
    rows += [("requests", f"{found.requests:,} waiting for your approval")] if found.requests else []
    rows += _trace_rows(found)
    return Card(tone="warn" if found.problem else "info", parts=(Facts(rows, indent=0),))


def _trace_rows(found: Status) -> list[tuple[str, str]]:
    """Say where the traces are; where they are sent, why some will not be, and what is wrong just now."""
    state = found.traces
    counts = [
        (state.pending, "waiting"),
        (state.sent, "sent"),
        (state.parked, "parked"),
        (state.local, "here only"),
    ]
    known = [f"{count:,} {word}" for count, word in counts if count]
    rows = [("traces", ", ".join(known) or "none")]
    rows += found.settings.items()
    rows += [("parked", f"{count:,} for: {reason}") for reason, count in state.parked_for.items()]
    return [*rows, ("sending", state.problem)] if state.problem else rows


def diff(name: str, text: str) -> Card:
    """Build the card of a unified diff; a terminal shows the diff alone."""
    if not text.strip():
        return Card(parts=(f"{name}: no difference.",))
    return Card(name, tone="info", parts=(Diff(text),), line="")


def _last_good(found: Blame) -> str:
    if found.last_good is None:
        return "none on record"
    return f"v{found.last_good}" + (", in other runs" if found.last_good == found.first_failed else "")


def blame(name: str, found: Blame) -> Card:
    """Build the report on which revision first failed so, and which one resolved it."""
    if not found.count:
        return Card(parts=(f"{name}: no such failure on record.",))
    resolved = found.last_cured_by is not None
    ending = (
        f"resolved by {revision_label(name, 'default', found.last_cured_by)}" if resolved else "not resolved"
    )
    title = f"{name}: failed {plain.count(found.count, 'time')}, {ending}"
    first = "–" if found.first_failed is None else f"v{found.first_failed}"
    row = "" if found.first_failed_log_id is None else f", log row {found.first_failed_log_id}"
    rows = [
        ("first failed", f"{first}{row}, {plain.moment(found.first_failed_at)}"),
        ("last failed", plain.moment(found.last_failed_at)),
        ("last good", _last_good(found)),
        ("fingerprint", found.fingerprint),
    ]
    return Card(
        title,
        "✓" if resolved else "✗",
        "good" if resolved else "bad",
        parts=(Facts(rows, width=14),),
        line=title,
    )
