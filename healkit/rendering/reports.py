"""Doctor, status and diff."""

from __future__ import annotations

from healkit.rendering import markup as m
from healkit.rendering import plain
from healkit.rendering.markup import visible
from healkit.rendering.views import BlameView, DoctorView, StatusView

_TIERS = {
    "namespaces": "namespaces, Landlock, seccomp and limits, the strongest there is",
    "landlock": "Landlock, seccomp and limits, without namespaces",
    "process": "a plain process with limits; this is NOT a boundary",
    "": "nothing can be enforced here, so tools are not run",
}


def doctor_text(report: DoctorView) -> str:
    """What this machine enforces, each check with its fix."""
    lines = [f"Isolation tier: {report.tier or 'none'} ({_TIERS.get(report.tier, 'unknown')})"]
    for check in report.checks:
        lines.append(f"  {'✓' if check.ok else '✗'} {check.name}: {visible(check.detail)}")
        if check.fix and not check.ok:
            lines.append(f"      fix: {visible(check.fix)}")
    if report.not_stopped:
        lines += ["Not stopped here:", *(f"  – {visible(item)}" for item in report.not_stopped)]
    return "\n".join(lines)


def doctor_html(report: DoctorView) -> str:
    """The same as a card."""
    good = report.tier in {"namespaces", "landlock"} and all(check.ok for check in report.checks)
    colours = (m.GREEN, m.GREEN_SOFT) if good else (m.AMBER, m.AMBER_SOFT)
    head = m.heading(
        "✓" if good else "!",
        f"Isolation tier: {report.tier or 'none'}",
        *colours,
        _TIERS.get(report.tier, ""),
    )
    rows = []
    for check in report.checks:
        sign = m.tag("b", "✓" if check.ok else "✗", style=f"color:{m.GREEN if check.ok else m.RED}")
        fix = m.tag("div", m.muted("fix: "), m.chip(check.fix)) if check.fix and not check.ok else m.Html("")
        rows.append((sign, check.name, m.join([check.detail, fix])))
    leaks = m.tag("ul", *(m.tag("li", item) for item in report.not_stopped), style="margin:2px 0")
    tail = [m.section(m.muted("Not stopped here:"), leaks)] if report.not_stopped else []
    return m.card(head, m.section(m.table((), rows)), *tail, accent=colours[0])


def status_text(status: StatusView) -> str:
    """Where the data is and what is in it."""
    return "\n".join(f"{name:<10} {visible(value)}" for name, value in _status_rows(status))


def status_html(status: StatusView) -> str:
    """The same as a card."""
    return m.card(m.section(m.facts(_status_rows(status))), accent=m.AMBER if status.problem else m.BLUE)


def _status_rows(status: StatusView) -> list[tuple[str, str]]:
    rows = [("database", status.url), ("isolation", status.tier or "none")]
    rows += [("tools", f"{status.tools:,}"), ("executions", f"{status.executions:,}")]
    rows += [("failures", f"{status.failures:,}"), ("running", f"{status.running:,}")]
    rows += [("problem", status.problem)] if status.problem else []
    rows += [("requests", f"{status.requests:,} waiting for your word")] if status.requests else []
    return [*rows, *_trace_rows(status)]


def _trace_rows(status: StatusView) -> list[tuple[str, str]]:
    """Where the traces are; where they are sent, why some will not be, and what is wrong just now."""
    state = status.traces
    counts = [
        (state.pending, "waiting"),
        (state.sent, "sent"),
        (state.parked, "parked"),
        (state.local, "here only"),
    ]
    known = [f"{count:,} {word}" for count, word in counts if count]
    rows = [("traces", ", ".join(known) or "none")]
    rows += [("collector", status.collector)] if status.collector else []
    rows += [("parked", f"{count:,} for: {reason}") for reason, count in state.parked_for.items()]
    return [*rows, ("sending", state.problem)] if state.problem else rows


def diff_html(diff: str, title: str = "") -> str:
    """A unified diff with its added and removed lines told apart by sign and by colour."""
    if not diff.strip():
        return m.card(m.section(f"{title}: no difference." if title else "No difference."))
    head = [m.heading("", title, m.BLUE, m.BLUE_SOFT)] if title else []
    return m.card(*head, *diff_lines(diff), accent=m.BLUE)


def diff_lines(diff: str) -> list[m.Html]:
    """A unified diff's lines, for a card of one's own."""
    style = f"{m.MONO};margin:0;white-space:pre-wrap;overflow-wrap:anywhere;padding:0 8px"
    lines = []
    for line in diff.rstrip("\n").split("\n"):
        name, ink, paper = _diff_look(line)
        text = m.tag(name, line or " ", style=f"color:{ink};background-color:{paper};text-decoration:none")
        lines.append(m.tag("div", text, style=f"{style};color:{ink};background-color:{paper}"))
    return lines


def _diff_look(line: str) -> tuple[str, str, str]:
    """Element, ink and paper of one line."""
    if line.startswith(("+++", "---", "@@")):
        return "span", m.MUTED, m.SOFT
    if line.startswith("+"):
        return "ins", m.GREEN, m.GREEN_SOFT
    if line.startswith("-"):
        return "del", m.RED, m.RED_SOFT
    return "span", m.INK, m.PAPER


def blame_text(name: str, blame: BlameView) -> str:
    """Which revision first failed so, and which one cured it."""
    if not blame.count:
        return f"{visible(name)}: no such failure on record."
    return "\n".join(
        [_blame_title(name, blame), *(f"  {key:<14} {value}" for key, value in _blame_rows(blame))]
    )


def blame_html(name: str, blame: BlameView) -> str:
    """The same as a card."""
    if not blame.count:
        return m.card(m.section(f"{name}: no such failure on record."))
    colours = (m.RED, m.RED_SOFT) if blame.last_cured_by is None else (m.GREEN, m.GREEN_SOFT)
    mark = "✗" if blame.last_cured_by is None else "✓"
    rows = m.section(m.facts(_blame_rows(blame)))
    return m.card(m.heading(mark, _blame_title(name, blame), *colours), rows, accent=colours[0])


def _blame_title(name: str, blame: BlameView) -> str:
    if blame.last_cured_by is None:
        return f"{visible(name)}: failed {plain.count(blame.count, 'time')}, not cured yet"
    return f"{visible(name)}: failed {plain.count(blame.count, 'time')}, cured by @{blame.last_cured_by}"


def _blame_rows(blame: BlameView) -> list[tuple[str, str]]:
    first = "–" if blame.first_failed is None else f"@{blame.first_failed}"
    row = "" if blame.first_failed_log_id is None else f", log row {blame.first_failed_log_id}"
    good = "none on record" if blame.last_good is None else f"@{blame.last_good}"
    return [
        ("first failed", f"{first}{row}, {plain.moment(blame.first_failed_at)}"),
        ("last failed", plain.moment(blame.last_failed_at)),
        ("last good", good),
        ("fingerprint", blame.fingerprint),
    ]
