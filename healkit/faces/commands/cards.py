"""Lists and reports of the commands."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from healkit.core.contracts.execution import (
    TRIED_COUNTED_MAX,
    GroupInfo,
    ToolSummary,
)
from healkit.core.contracts.tools import revision_label
from healkit.core.contracts.vault import Blame, RevisionInfo, VaultEntry
from healkit.core.crossing import values
from healkit.core.rendering import execution_card, plain
from healkit.core.rendering.document import (
    Card,
    Code,
    Diff,
    Fact,
    Facts,
    Fold,
    Line,
    Only,
    Section,
    Span,
    Table,
)
from healkit.core.rendering.listings import entry_title
from healkit.core.rendering.plain import visible


def refused_line(number: int, ask: str) -> str:
    """Return how many calls that were refused before any code ran are not listed, and which command lists them."""
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
    """Build the list of groups, the latest first.

    left_out: Number of refused calls that are not listed. ask: Command that lists them.
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
    """Build the list of tools' runs; `by` names the other columns of the summary."""
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


_VAULT = ("tool", "persona", "rev", "type", "group", "description")


#: Groups of the tools that come with healkit.
_SEEDED = frozenset({"samples", "gallery", "debug"})


_HISTORY = ("rev", "from", "author", "when", "runs", "failed", "code", "reason")


_EXAMPLES_MAX = 5


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


def history_card(label: str, revisions: Sequence[RevisionInfo]) -> Card:
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
    """Build one tool in full: its purpose, its arguments, its grants, its code with line numbers."""
    about: list[tuple[str, Fact]] = [(name, Span(value, "code")) for name, value in _entry_facts(found)]
    described = [("description", plain.one_line(found.description, 400))] if found.description else []
    code = Code(_numbered(found.code))
    return Card(
        entry_title(found),
        tone="info",
        below=(Only("html", Span(found.description, "ticked")),),
        parts=(
            Only("html", code),  # a page is read from the top, a terminal from the end
            Only("html", Facts(about)),
            Only("text", Facts([*described, *about], width=12)),
            Only("text", ""),
            Only("text", code),
        ),
    )


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


def grants(found: VaultEntry) -> Card:
    """Build the list of one tool's grants."""
    persona = "" if found.persona == "default" else f" for {found.persona}"
    lines = [Line(Span(line, "code")) for line in _granted(found)]
    return Card(f"What {found.tool_name}{persona} may do", tone="info", parts=(Section(lines),))


def _granted(found: VaultEntry) -> list[str]:
    removed = found.flags.get("removed_grants", {})
    lines = [f"{name} {value}: removed, so it is not run" for name, value in removed.items()]
    return [*execution_card.grant_lines(found.grants), *lines] or ["none: sees only its scratch folder"]


def _signature(schema: dict[str, Any]) -> str:
    """Return the signature from the JSON Schema: `n: integer, start: number = 0.5`."""
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
    """Build the card of a unified diff; a terminal shows only the diff."""
    if not text.strip():
        return Card(parts=(f"{name}: no difference.",))
    return Card(name, tone="info", parts=(Diff(text),), line="")


def blame_card(name: str, found: Blame) -> Card:
    """Build the report on the revision that introduced a failure, and the one that resolved it."""
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
