"""Lists of executions, tools and revisions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from healkit.contracts.records import TRIED_COUNTED_MAX, TRIED_ORIGINS
from healkit.rendering import markup as m
from healkit.rendering import parts, plain
from healkit.rendering.markup import Html, visible
from healkit.rendering.views import EntryView, ExecutionView, RevisionView

_EXECUTIONS = ("row", "when", "tool", "status", "took", "isolation", "what came of it")
_VAULT = ("tool", "persona", "rev", "type", "group", "description")
#: Longer arguments of an example are not offered to be typed.
_EXAMPLE_MAX_CHARS = 120
_HISTORY = ("rev", "from", "author", "when", "runs", "failed", "code", "reason")


def executions_text(
    executions: Sequence[ExecutionView], width: int | None = None, *, left_out: int = 0, ask: str = ""
) -> str:
    """One line an execution, newest first as given; then how many trials were left out, and what to `ask` for them."""
    below = [left_out_line(left_out, ask)] if left_out else []
    if not executions:
        return "\n".join(["No executions match.", *below])
    rows = []
    for e in executions:
        mark = {"SUCCESS": "✓", "FAILURE": "✗"}.get(e.status, "…")
        when, took = plain.moment(e.timestamp), plain.duration(e.duration_ms)
        label = f"{e.label} ({e.origin})" if e.origin in TRIED_ORIGINS else e.label
        rows.append((_row_id(e), when, label, f"{mark} {e.status}", took, e.isolation or "–", _outcome(e)))
    return "\n".join([plain.text_table(_EXECUTIONS, rows, width), *below])


def executions_html(executions: Sequence[ExecutionView], *, left_out: int = 0, ask: str = "") -> str:
    """The same list as a card."""
    below = [m.section(m.muted(left_out_line(left_out, ask)))] if left_out else []
    if not executions:
        return m.card(m.section("No executions match."), *below)
    rows = []
    for e in executions:
        when, took = plain.moment(e.timestamp), plain.duration(e.duration_ms)
        tried = [m.muted(f" {e.origin}")] if e.origin in TRIED_ORIGINS else []
        tool = m.join([m.chip(e.label), *tried])
        rows.append(
            (
                _row_id(e),
                m.moment(when),
                tool,
                _status(e.status),
                _outcome(e),
                m.unbroken(took),
                e.isolation or "–",
            )
        )
    # What a narrow page shows without scrolling comes first.
    headers = ("row", "when", "tool", "status", "what came of it", "took", "isolation")
    return m.card(m.section(m.table(headers, rows)), *below, accent=m.BLUE)


def left_out_line(number: int, ask: str) -> str:
    """How many runs that only try code out are not listed, and what lists them."""
    more = " or more" if number >= TRIED_COUNTED_MAX else ""
    runs, them = ("trial run", "it") if number == 1 else ("trial runs", "them")
    return f"{number:,}{more} {runs}, such as a healing makes, not listed here; {ask} lists {them} too."


def vault_text(entries: Sequence[EntryView], width: int | None = None) -> str:
    """One line a tool."""
    if not entries:
        return "The vault is empty."
    return plain.text_table(_VAULT, [_entry_row(entry) for entry in entries], width)


def vault_html(entries: Sequence[EntryView]) -> str:
    """The same list as a card."""
    if not entries:
        return m.card(m.section("The vault is empty."))
    rows = [(m.chip(row[0]), *row[1:-1], m.ticked(row[-1])) for row in map(_entry_row, entries)]
    return m.card(m.section(m.table(_VAULT, rows)), accent=m.BLUE)


def entry_text(entry: EntryView) -> str:
    """One tool in full: what it is for, what it takes, what it may do, its code with line numbers."""
    facts = [f"  {name:<12} {visible(value)}" for name, value in _entry_facts(entry)]
    return "\n".join([_entry_title(entry), *facts, "", _numbered(entry.code)])


def entry_html(entry: EntryView) -> str:
    """The same as a card."""
    head = m.heading("", _entry_title(entry), m.BLUE, m.BLUE_SOFT, m.ticked(entry.description))
    facts = [(name, m.chip(value)) for name, value in _entry_facts(entry) if name != "description"]
    return m.card(head, m.section(m.block(_numbered(entry.code))), m.section(m.facts(facts)), accent=m.BLUE)


def saved_text(entry: EntryView) -> str:
    """One tool in short: which it is, how its code begins, how to run it."""
    facts = [f"  {name:<8} {visible(value)}" for name, value in _saved_facts(entry)]
    return "\n".join([_entry_title(entry), *facts])


def saved_html(entry: EntryView) -> str:
    """The same as a card."""
    head = m.heading("", _entry_title(entry), m.BLUE, m.BLUE_SOFT, m.ticked(entry.description))
    plain_ones = {"persona", "note"}
    facts = [(name, text if name in plain_ones else m.chip(text)) for name, text in _saved_facts(entry)]
    return m.card(head, m.section(m.facts(facts)), accent=m.BLUE)


def first_line(code: str) -> str:
    """The first line that says something."""
    return plain.one_line(next((line for line in code.splitlines() if line.strip()), ""), 120)


def grants_text(entry: EntryView) -> str:
    """What one tool may do, a grant a line."""
    return "\n".join([_grants_title(entry), *(f"  {visible(line)}" for line in _granted(entry))])


def grants_html(entry: EntryView) -> str:
    """The same as a card."""
    lines = m.section(*(m.tag("div", m.chip(line)) for line in _granted(entry)))
    return m.card(m.heading("", _grants_title(entry), m.BLUE, m.BLUE_SOFT), lines, accent=m.BLUE)


def history_text(label: str, revisions: Sequence[RevisionView], width: int | None = None) -> str:
    """One line a revision; the active one is marked."""
    rows = [_revision_row(revision) for revision in revisions]
    return f"{visible(label)}: {plain.count(len(rows), 'revision')}\n" + plain.text_table(
        _HISTORY, rows, width
    )


def history_html(label: str, revisions: Sequence[RevisionView]) -> str:
    """The same as a card."""
    rows: list[tuple[str, ...]] = []
    for revision in revisions:
        row = _revision_row(revision)
        number = m.tag("b", row[0]) if revision.active else m.join([row[0]])
        failed = (
            m.tag("b", f"✗ {revision.failures}", style=f"color:{m.RED}")
            if revision.failures
            else m.join([row[5]])
        )
        rows.append((number, *row[1:3], m.moment(row[3]), row[4], failed, m.chip(row[6]), m.ticked(row[7])))
    head = m.heading("", f"{label}: {plain.count(len(rows), 'revision')}", m.BLUE, m.BLUE_SOFT)
    return m.card(head, m.section(m.table(_HISTORY, rows)), accent=m.BLUE)


def _row_id(execution: ExecutionView) -> str:
    return str(execution.log_id) if execution.log_id is not None else "–"


def _outcome(execution: ExecutionView) -> str:
    if execution.failure is not None:
        return plain.one_line(execution.failure.summary, 160)
    return plain.one_line(parts.result_text(execution), 160) if execution.ok else ""


def _status(status: str) -> Html:
    mark, ink = {"SUCCESS": ("✓", m.GREEN), "FAILURE": ("✗", m.RED)}.get(status, ("…", m.AMBER))
    return m.tag("b", f"{mark} {status}", style=f"color:{ink};white-space:nowrap")


def _entry_row(entry: EntryView) -> tuple[str, ...]:
    description = f"(draft) {entry.description}" if entry.draft else entry.description
    revision = f"@{entry.revision}"
    return (
        entry.tool_name,
        entry.persona,
        revision,
        entry.type,
        entry.group or "–",
        plain.one_line(description, 160),
    )


def _entry_title(entry: EntryView) -> str:
    return f"{entry.label} ({entry.type}{', draft' if entry.draft else ''})"


def _entry_facts(entry: EntryView) -> list[tuple[str, str]]:
    facts = [("description", plain.one_line(entry.description, 400))] if entry.description else []
    facts.append(("arguments", _signature(entry.input_schema)))
    facts += [("" if i else "grants", line) for i, line in enumerate(_granted(entry))]
    for example in entry.examples[:5]:
        facts.append(("example", plain.one_line(json.dumps(example, ensure_ascii=False, default=str), 300)))
    if (more := len(entry.examples) - 5) > 0:
        facts.append(("", f"and {plain.count(more, 'more example')}"))
    return [*facts, ("code hash", entry.code_hash)]


def _saved_facts(entry: EntryView) -> list[tuple[str, str]]:
    lines = len(entry.code.splitlines())
    more = f" … {lines:,} lines" if lines > 1 else ""
    found = [("persona", entry.persona), ("code", first_line(entry.code) + more)]
    flag = "" if entry.persona == "default" else f" --persona {entry.persona}"
    if entry.draft:
        note = "a draft, which cannot be run before it parses"
        return [*found, ("note", note), ("mend it", f"%vault show {entry.tool_name}{flag} --edit")]
    given = _given(entry)
    words = [repr(entry.tool_name)] + ([] if entry.persona == "default" else [repr(entry.persona)])
    call = ", ".join(f"{name!r}: {value}" for name, value in given)
    typed = "".join(f" {name}={value}" for name, value in given)
    words += [f"arguments={{{call}}}"] if given else []
    return [
        *found,
        ("run it", f"hk.execute_tool({', '.join(words)})"),
        ("or", f"%run_tool {entry.tool_name}{flag}{typed}"),
    ]


def _given(entry: EntryView) -> list[tuple[str, str]]:
    """Arguments to run it with: those of its first example where they are short, else their names alone."""
    for example in entry.examples[:1]:
        given = [(str(name), repr(value)) for name, value in dict(example.get("arguments") or {}).items()]
        if sum(len(value) for _, value in given) <= _EXAMPLE_MAX_CHARS:
            return given
    names = entry.input_schema.get("required") or ()
    return [(str(name), "…") for name in names]


def _granted(entry: EntryView) -> list[str]:
    return parts.grant_lines(entry.grants) or ["none: sees only its scratch folder"]


def _grants_title(entry: EntryView) -> str:
    persona = "" if entry.persona == "default" else f" for {entry.persona}"
    return f"What {entry.tool_name}{persona} may do"


def _signature(schema: dict[str, Any]) -> str:
    """`n: integer, start: number = 0.5`, read off the JSON Schema."""
    required = set(schema.get("required", ()))
    words = []
    for name, rule in (schema.get("properties") or {}).items():
        kind = rule.get("type", "any") if isinstance(rule, dict) else "any"
        word = f"{name}: {'|'.join(kind) if isinstance(kind, list) else kind}"
        if isinstance(rule, dict) and "default" in rule:
            word += f" = {rule['default']!r}"
        elif name not in required:
            word += " (optional)"
        words.append(word)
    return ", ".join(words) or "any"


def _numbered(code: str) -> str:
    lines = code.rstrip("\n").split("\n")
    size = len(str(len(lines)))
    return "\n".join(f"{number:>{size}} │ {visible(line)}" for number, line in enumerate(lines, 1))


def _revision_row(revision: RevisionView) -> tuple[str, ...]:
    number = f"@{revision.number}{' ● active' if revision.active else ''}{' draft' if revision.draft else ''}"
    parent = f"@{revision.parent}" if revision.parent is not None else "–"
    counts = (str(revision.runs), str(revision.failures))
    when = plain.moment(revision.created_at)
    return (
        number,
        parent,
        revision.author,
        when,
        *counts,
        revision.code_hash[:8],
        plain.one_line(revision.reason, 160),
    )
