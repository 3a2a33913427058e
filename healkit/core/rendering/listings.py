"""Lists and reports: executions, tools, requests, views."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from healkit.core.contracts.doctor import DoctorCheck, DoctorReport, Status, TrustReport
from healkit.core.contracts.execution import (
    HEALING_ORIGINS,
    TRIED_COUNTED_MAX,
    ExecutionData,
    GroupInfo,
    ToolSummary,
)
from healkit.core.contracts.tools import revision_label
from healkit.core.contracts.vault import Blame, RevisionInfo, VaultEntry
from healkit.core.crossing import values
from healkit.core.rendering import cleaning, execution_card, plain
from healkit.core.rendering.document import (
    Card,
    Cell,
    Code,
    Diff,
    Fact,
    Facts,
    Fold,
    Items,
    Line,
    Only,
    Part,
    Section,
    Span,
    Table,
    Tone,
)
from healkit.core.rendering.plain import visible
from healkit.core.rendering.to_html import html_of
from healkit.core.rendering.to_text import text_of

if TYPE_CHECKING:
    from IPython.lib.pretty import RepresentationPrinter

# Executions, and their sums.

#: Columns that a narrow page shows without scrolling come first.
_EXECUTIONS = ("row", "when", "tool", "status", "result", "took", "isolation")
#: Names of a list that are written out.
_NAMES_MAX = 12
_STATES: dict[str, tuple[str, Tone]] = {"SUCCESS": ("✓", "good"), "FAILURE": ("✗", "bad")}


def executions(found: Sequence[ExecutionData], *, left_out: int = 0, ask: str = "") -> Card:
    """Build the list of executions, newest first as given.

    left_out: how many trials are not listed. ask: what lists them too.
    """
    below = [Span(left_out_line(left_out, ask), "quiet")] if left_out else []
    if not found:
        return Card(parts=("No executions match.", *below))
    rows = [_execution_row(cleaning.execution(execution, in_list=True)) for execution in found]
    table = Table(_EXECUTIONS, rows, cut="result")
    return Card(tone="info", parts=(table, *below))


def _execution_row(one: ExecutionData) -> tuple[Cell, ...]:
    mark, tone = _STATES.get(one.status, ("…", "warn"))
    status = "refused" if one.refused else one.status
    label: Cell = Span(one.label, "code")
    client = one.client.partition(", ")[0] if one.client else ""
    if beside := client or (one.origin if one.origin in HEALING_ORIGINS else ""):
        label = (Span(one.label, "code"), Span(f" {beside}", "quiet", plain=f" ({beside})"))
    result = ""
    if one.failure is not None:
        result = plain.one_line(one.failure.summary, 160)
    elif one.ok:
        result = execution_card.result_line(one, 160)
    return (
        str(one.log_id) if one.log_id is not None else "–",
        Span(plain.moment(one.timestamp), "moment"),
        label,
        Span(f"{mark} {status}", "state", tone),
        result,
        Span(plain.duration(one.duration_ms), "unbroken"),
        one.isolation or "–",
    )


def left_out_line(number: int, ask: str) -> str:
    """Say how many runs that only try code out are not listed, and what lists them."""
    more = " or more" if number >= TRIED_COUNTED_MAX else ""
    runs, are, them = ("trial run", "is", "it") if number == 1 else ("trial runs", "are", "them")
    return f"{number:,}{more} {runs}, such as a healing makes, {are} hidden; {ask} lists {them} too."


def refused_line(number: int, ask: str) -> str:
    """Say how many calls that were refused before any code ran are not listed, and what lists them."""
    more = " or more" if number >= TRIED_COUNTED_MAX else ""
    calls = "refused call is" if number == 1 else "refused calls are"
    return f"{number:,}{more} {calls} not listed: {ask}"


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
    rows = [
        (
            f"{group.count:,}",
            group.tool_name if group.persona == "default" else f"{group.tool_name}.{group.persona}",
            plain.moment(group.first_seen),
            plain.moment(group.last_seen),
            _revision(group.first_revision),
            _revision(group.cured_by),
            str(group.last_log_id),
            group.fingerprint,
            plain.one_line(group.summary, 160),
        )
        for group in found
    ]
    return Card(tone="bad", parts=(Table(_GROUPS, rows), *below))


def summary(rows: Sequence[ToolSummary], by: Sequence[str] = ()) -> Card:
    """Build the list of tools' runs; `by` names what else they are summed up by."""
    if not rows:
        return Card(parts=("No executions match.",))
    columns = [word for word in ("persona", "revision", "day") if word in by]
    refused = ["refused"] if any(row.refused for row in rows) else []
    headers = ("tool", *columns, "runs", "failed", *refused, "rate", "mean", "half within", "95 % within")
    return Card(
        tone="info", parts=(Table(headers, [_summary_row(row, [*columns, *refused]) for row in rows]),)
    )


def _summary_row(row: ToolSummary, asked: Sequence[str]) -> tuple[str, ...]:
    cells = {"persona": row.persona or "–", "revision": _revision(row.revision), "day": str(row.day)}
    times = (row.mean_ms, row.p50_ms, row.p95_ms)
    return (
        row.tool_name,
        *(cells[word] for word in asked if word in cells),
        f"{row.runs:,}",
        f"{row.failures:,}",
        *([f"{row.refused:,}"] if "refused" in asked else []),
        f"{row.failure_rate:.1%}",
        *("longer" if value == float("inf") else plain.duration(value) for value in times),
    )


def _revision(number: int | None) -> str:
    return "–" if number is None else f"v{number}"


# Tools and their revisions.

_VAULT = ("tool", "persona", "rev", "type", "group", "description")
#: Groups of the tools that healkit comes with.
_SEEDED = frozenset({"samples", "gallery", "debug"})
_HISTORY = ("rev", "from", "author", "when", "runs", "failed", "code", "reason")
#: Longest arguments of an example that are offered for typing, in characters.
_EXAMPLE_MAX_CHARS = 120
_EXAMPLES_MAX = 5


@dataclasses.dataclass(frozen=True, repr=False)
class ShownVaultEntry(VaultEntry):
    """Vault entry that a notebook shows as a card; `hk.vault` returns these."""

    def _repr_pretty_(self, printer: RepresentationPrinter, _cycle: bool) -> None:
        """Print the card as text, or within a list the short form; called by IPython for the value of a cell."""
        printer.text(text_of(saved(self)) if printer.indentation == 0 else repr(self))

    def _repr_html_(self) -> str:
        """Return the card as HTML; called by a notebook that shows the entry."""
        return html_of(saved(self))


def vault(entries: Sequence[VaultEntry]) -> Card:
    """Build the list of tools."""
    if not entries:
        return Card(parts=("The vault is empty.",))
    theirs = [entry for entry in entries if entry.group in _SEEDED]
    user_tools = [entry for entry in entries if entry.group not in _SEEDED]
    if not user_tools or not theirs:
        return Card(tone="info", parts=(_tools(entries),))
    shipped = Fold(f"{plain.count(len(theirs), 'tool')} of the lessons", (_tools(theirs),), terminal="both")
    return Card(tone="info", parts=(_tools(user_tools), shipped))


def _tools(entries: Sequence[VaultEntry]) -> Table:
    rows = [
        (
            Span(entry.tool_name, "code"),
            entry.persona,
            f"v{entry.revision}",
            entry.type,
            entry.group or "–",
            Span(plain.one_line(f"{'(draft) ' if entry.draft else ''}{entry.description}", 160), "ticked"),
        )
        for entry in entries
    ]
    return Table(_VAULT, rows)


def history(label: str, revisions: Sequence[RevisionInfo]) -> Card:
    """Build the list of a tool's revisions; the active one is marked."""
    title = f"{label}: {plain.count(len(revisions), 'revision')}"
    rows = []
    for revision in revisions:
        number = (
            f"v{revision.number}{' ● active' if revision.active else ''}{' draft' if revision.draft else ''}"
        )
        failures = str(revision.failures)
        row = (
            Span(number, "strong" if revision.active else ""),
            _revision(revision.parent),
            revision.author,
            Span(plain.moment(revision.created_at), "moment"),
            str(revision.runs),
            Span(f"✗ {failures}", "strong", "bad", plain=failures) if revision.failures else Span(failures),
            Span(revision.code_hash[:8], "code"),
            Span(plain.one_line(revision.reason, 160), "ticked"),
        )
        rows.append(row)
    return Card(title, tone="info", parts=(Table(_HISTORY, rows),))


def entry(found: VaultEntry) -> Card:
    """Build one tool in full: what it is for, what it takes, what it may do, its code with line numbers."""
    about: list[tuple[str, Fact]] = [(name, Span(value, "code")) for name, value in _entry_facts(found)]
    described = [("description", plain.one_line(found.description, 400))] if found.description else []
    code = Code(_numbered(found.code))
    return Card(
        _entry_title(found),
        tone="info",
        below=(Only("html", Span(found.description, "ticked")),),
        parts=(
            Only("html", code),  # a page is read from its top, a terminal from its end
            Only("html", Facts(about)),
            Only("text", Facts([*described, *about], width=12)),
            Only("text", ""),
            Only("text", code),
        ),
    )


def _entry_title(found: VaultEntry) -> str:
    return f"{found.label} ({found.type}{', draft' if found.draft else ''})"


def _entry_facts(found: VaultEntry) -> list[tuple[str, str]]:
    removed = [("removed", f"{found.removed_at:%Y-%m-%d %H:%M} UTC")] if found.removed_at else []
    facts = [*removed, ("arguments", _signature(found.input_schema))]
    facts += [("" if i else "grants", line) for i, line in enumerate(_granted(found))]
    for example in found.examples[:_EXAMPLES_MAX]:
        text = json.dumps(values.with_texts(example), ensure_ascii=False, default=str)
        facts.append(("example", plain.one_line(text, 300)))
    if (more := len(found.examples) - _EXAMPLES_MAX) > 0:
        facts.append(("", f"and {plain.count(more, 'more example')}"))
    return [*facts, ("code hash", found.code_hash)]


def _numbered(code: str) -> str:
    lines = code.rstrip("\n").split("\n")
    size = len(str(len(lines)))
    return "\n".join(f"{number:>{size}} │ {visible(line)}" for number, line in enumerate(lines, 1))


def saved(found: VaultEntry) -> Card:
    """Build one tool in short: which it is, how its code begins, how to run it."""
    plain_ones = {"persona", "note"}
    facts = [(name, text if name in plain_ones else Span(text, "code")) for name, text in _saved_facts(found)]
    described = Only("html", Span(found.description, "ticked"))
    return Card(_entry_title(found), tone="info", below=(described,), parts=(Facts(facts, width=8),))


def _saved_facts(found: VaultEntry) -> list[tuple[str, str]]:
    lines = len(found.code.splitlines())
    more = f" … {lines:,} lines" if lines > 1 else ""
    facts = [("persona", found.persona), ("code", first_line(found.code) + more)]
    flag = "" if found.persona == "default" else f" --persona {found.persona}"
    if found.draft:
        note = "a draft, which cannot be run before it parses"
        return [*facts, ("note", note), ("fix it", f"%vault show {found.tool_name}{flag} --edit")]
    arguments = _given(found)
    words = [repr(found.tool_name)] + ([] if found.persona == "default" else [repr(found.persona)])
    call = ", ".join(f"{name!r}: {value}" for name, value in arguments)
    typed = "".join(f" {name}={value}" for name, value in arguments)
    words += [f"arguments={{{call}}}"] if arguments else []
    return [
        *facts,
        ("run it", f"hk.execute_tool({', '.join(words)})"),
        ("or", f"%run_tool {found.tool_name}{flag}{typed}"),
    ]


def _given(found: VaultEntry) -> list[tuple[str, str]]:
    """Write the arguments to run it with: those of its first example where they are short, else their names alone."""
    for example in found.examples[:1]:
        arguments = dict(example.get("arguments") or {})
        if values.has_tags(arguments):
            break  # no literal can be typed for it
        literals = [(str(name), repr(value)) for name, value in arguments.items()]
        if sum(len(value) for _, value in literals) <= _EXAMPLE_MAX_CHARS:
            return literals
    names = found.input_schema.get("required") or ()
    return [(str(name), "…") for name in names]


def first_line(code: str) -> str:
    """Find the first line that says something."""
    return plain.one_line(next((line for line in code.splitlines() if line.strip()), ""), 120)


def grants(found: VaultEntry) -> Card:
    """Build the list of what one tool may do."""
    persona = "" if found.persona == "default" else f" for {found.persona}"
    lines = [Line(Span(line, "code")) for line in _granted(found)]
    return Card(f"What {found.tool_name}{persona} may do", tone="info", parts=(Section(lines),))


def _granted(found: VaultEntry) -> list[str]:
    removed = found.flags.get("removed_grants", {})
    lines = [f"{name} {value}: removed, so it is not run" for name, value in removed.items()]
    return [*execution_card.grant_lines(found.grants), *lines] or ["none: sees only its scratch folder"]


def _signature(schema: dict[str, Any]) -> str:
    """Write the signature from the JSON Schema: `n: integer, start: number = 0.5`."""
    required = set(schema.get("required", ()))
    words = []
    for name, rule in (schema.get("properties") or {}).items():
        kind = rule.get("type", "any") if isinstance(rule, dict) else "any"
        kind = "DataFrame" if isinstance(rule, dict) and rule.get("format") == "dataframe" else kind
        word = f"{name}: {'|'.join(kind) if isinstance(kind, list) else kind}"
        if isinstance(rule, dict) and "default" in rule:
            word += f" = {rule['default']!r}"
        elif name not in required:
            word += " (optional)"
        words.append(word)
    return ", ".join(words) or "any"


def diff(name: str, text: str) -> Card:
    """Build the card of a unified diff; a terminal shows the diff alone."""
    if not text.strip():
        return Card(parts=(f"{name}: no difference.",))
    return Card(name, tone="info", parts=(Diff(text),), line="")


def blame(name: str, found: Blame) -> Card:
    """Build the report on which revision first failed so, and which one resolved it."""
    if not found.count:
        return Card(parts=(f"{name}: no such failure on record.",))
    resolved = found.last_cured_by is not None
    ending = (
        f"resolved by {revision_label(name, 'default', found.last_cured_by)}" if resolved else "not fixed yet"
    )
    title = f"{name}: failed {plain.count(found.count, 'time')}, {ending}"
    good = "none on record" if found.last_good is None else f"v{found.last_good}"
    if found.last_good is not None and found.last_good == found.first_failed:
        good += ", in other runs"
    row = "" if found.first_failed_log_id is None else f", log row {found.first_failed_log_id}"
    rows = [
        ("first failed", f"{_revision(found.first_failed)}{row}, {plain.moment(found.first_failed_at)}"),
        ("last failed", plain.moment(found.last_failed_at)),
        ("last good", good),
        ("fingerprint", found.fingerprint),
    ]
    return Card(
        title,
        "✓" if resolved else "✗",
        "good" if resolved else "bad",
        parts=(Facts(rows, width=14),),
        line=title,
    )


# The database, and this machine.

_TIERS = {
    "namespaces": "namespaces, Landlock, seccomp and limits, the strongest there is",
    "landlock": "Landlock, seccomp and limits, without namespaces",
    "process": "a plain process with limits; this is NOT a boundary",
    "": "nothing can be enforced here, so tools are not run",
}


def status(found: Status) -> Card:
    """Build the report on where the data is and what is in it."""
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
    """Say where the traces are; where they are sent, why some will not be, and what is wrong just now."""
    state = found.traces
    counts = [
        (state.pending, "waiting"),
        (state.sent, "sent"),
        (state.parked, "parked"),
        (state.local, "here only"),
    ]
    parts = [f"{count:,} {word}" for count, word in counts if count]
    rows = [("traces", ", ".join(parts) or "none")]
    rows += found.settings.items()
    rows += [("parked", f"{count:,} for: {reason}") for reason, count in state.parked_for.items()]
    return [*rows, ("sending", state.problem)] if state.problem else rows


def trust(report: TrustReport) -> Card:
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
