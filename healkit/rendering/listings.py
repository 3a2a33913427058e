"""Lists of executions, tools and revisions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from healkit import values
from healkit.contracts.execution import HEALING_ORIGINS, TRIED_COUNTED_MAX, ExecutionData
from healkit.contracts.vault import RevisionInfo, VaultEntry
from healkit.rendering import cleaning, parts, plain
from healkit.rendering.document import (
    Card,
    Cell,
    Code,
    Fact,
    Facts,
    Line,
    Only,
    Section,
    Span,
    Table,
    Tone,
)
from healkit.rendering.plain import visible

#: Columns that a narrow page shows without scrolling come first.
_EXECUTIONS = ("row", "when", "tool", "status", "result", "took", "isolation")
_VAULT = ("tool", "persona", "rev", "type", "group", "description")
_HISTORY = ("rev", "from", "author", "when", "runs", "failed", "code", "reason")
_STATES: dict[str, tuple[str, Tone]] = {"SUCCESS": ("✓", "good"), "FAILURE": ("✗", "bad")}
#: Longest arguments of an example that are offered for typing, in characters.
_EXAMPLE_MAX_CHARS = 120
_EXAMPLES_MAX = 5


def executions(found: Sequence[ExecutionData], *, left_out: int = 0, ask: str = "") -> Card:
    """Build the list of executions, newest first as given.

    left_out: how many trials are not listed. ask: what lists them too.
    """
    below = [Span(left_out_line(left_out, ask), "quiet")] if left_out else []
    if not found:
        return Card(parts=("No executions match.", *below))
    rows = [_execution_row(cleaning.execution(one, in_list=True)) for one in found]
    table = Table(_EXECUTIONS, rows, cut="result")
    return Card(tone="info", parts=(table, *below))


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


def vault(entries: Sequence[VaultEntry]) -> Card:
    """Build the list of tools."""
    if not entries:
        return Card(parts=("The vault is empty.",))
    return Card(tone="info", parts=(Table(_VAULT, [_entry_row(entry) for entry in entries]),))


def history(label: str, revisions: Sequence[RevisionInfo]) -> Card:
    """Build the list of a tool's revisions; the active one is marked."""
    title = f"{label}: {plain.count(len(revisions), 'revision')}"
    table = Table(_HISTORY, [_revision_row(revision) for revision in revisions])
    return Card(title, tone="info", parts=(table,))


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


def saved(found: VaultEntry) -> Card:
    """Build one tool in short: which it is, how its code begins, how to run it."""
    plain_ones = {"persona", "note"}
    facts = [(name, text if name in plain_ones else Span(text, "code")) for name, text in _saved_facts(found)]
    described = Only("html", Span(found.description, "ticked"))
    return Card(_entry_title(found), tone="info", below=(described,), parts=(Facts(facts, width=8),))


def grants(found: VaultEntry) -> Card:
    """Build the list of what one tool may do."""
    persona = "" if found.persona == "default" else f" for {found.persona}"
    lines = [Line(Span(line, "code")) for line in _granted(found)]
    return Card(f"What {found.tool_name}{persona} may do", tone="info", parts=(Section(lines),))


def first_line(code: str) -> str:
    """Find the first line that says something."""
    return plain.one_line(next((line for line in code.splitlines() if line.strip()), ""), 120)


def _execution_row(one: ExecutionData) -> tuple[Cell, ...]:
    mark, tone = _STATES.get(one.status, ("…", "warn"))
    status = "refused" if one.refused else one.status
    label: Cell = Span(one.label, "code")
    if one.origin in HEALING_ORIGINS:
        label = (Span(one.label, "code"), Span(f" {one.origin}", "quiet", plain=f" ({one.origin})"))
    came = ""
    if one.failure is not None:
        came = plain.one_line(one.failure.summary, 160)
    elif one.ok:
        came = parts.result_line(one, 160)
    return (
        str(one.log_id) if one.log_id is not None else "–",
        Span(plain.moment(one.timestamp), "moment"),
        label,
        Span(f"{mark} {status}", "state", tone),
        came,
        Span(plain.duration(one.duration_ms), "unbroken"),
        one.isolation or "–",
    )


def _entry_row(found: VaultEntry) -> tuple[Cell, ...]:
    description = f"(draft) {found.description}" if found.draft else found.description
    return (
        Span(found.tool_name, "code"),
        found.persona,
        f"v{found.revision}",
        found.type,
        found.group or "–",
        Span(plain.one_line(description, 160), "ticked"),
    )


def _revision_row(revision: RevisionInfo) -> tuple[Cell, ...]:
    number = f"v{revision.number}{' ● active' if revision.active else ''}{' draft' if revision.draft else ''}"
    failures = str(revision.failures)
    return (
        Span(number, "strong" if revision.active else ""),
        f"v{revision.parent}" if revision.parent is not None else "–",
        revision.author,
        Span(plain.moment(revision.created_at), "moment"),
        str(revision.runs),
        Span(f"✗ {failures}", "strong", "bad", plain=failures) if revision.failures else Span(failures),
        Span(revision.code_hash[:8], "code"),
        Span(plain.one_line(revision.reason, 160), "ticked"),
    )


def _entry_title(found: VaultEntry) -> str:
    return f"{found.label} ({found.type}{', draft' if found.draft else ''})"


def _entry_facts(found: VaultEntry) -> list[tuple[str, str]]:
    removed = [("removed", f"{found.removed_at:%Y-%m-%d %H:%M} UTC")] if found.removed_at else []
    facts = [*removed, ("arguments", _signature(found.input_schema))]
    facts += [("" if i else "grants", line) for i, line in enumerate(_granted(found))]
    for example in found.examples[:_EXAMPLES_MAX]:
        shown = json.dumps(values.with_texts(example), ensure_ascii=False, default=str)
        facts.append(("example", plain.one_line(shown, 300)))
    if (more := len(found.examples) - _EXAMPLES_MAX) > 0:
        facts.append(("", f"and {plain.count(more, 'more example')}"))
    return [*facts, ("code hash", found.code_hash)]


def _saved_facts(found: VaultEntry) -> list[tuple[str, str]]:
    lines = len(found.code.splitlines())
    more = f" … {lines:,} lines" if lines > 1 else ""
    known = [("persona", found.persona), ("code", first_line(found.code) + more)]
    flag = "" if found.persona == "default" else f" --persona {found.persona}"
    if found.draft:
        note = "a draft, which cannot be run before it parses"
        return [*known, ("note", note), ("fix it", f"%vault show {found.tool_name}{flag} --edit")]
    given = _given(found)
    words = [repr(found.tool_name)] + ([] if found.persona == "default" else [repr(found.persona)])
    call = ", ".join(f"{name!r}: {value}" for name, value in given)
    typed = "".join(f" {name}={value}" for name, value in given)
    words += [f"arguments={{{call}}}"] if given else []
    return [
        *known,
        ("run it", f"hk.execute_tool({', '.join(words)})"),
        ("or", f"%run_tool {found.tool_name}{flag}{typed}"),
    ]


def _given(found: VaultEntry) -> list[tuple[str, str]]:
    """Write the arguments to run it with: those of its first example where they are short, else their names alone."""
    for example in found.examples[:1]:
        arguments = dict(example.get("arguments") or {})
        if values.has_tags(arguments):
            break  # no literal can be typed for it
        given = [(str(name), repr(value)) for name, value in arguments.items()]
        if sum(len(value) for _, value in given) <= _EXAMPLE_MAX_CHARS:
            return given
    names = found.input_schema.get("required") or ()
    return [(str(name), "…") for name in names]


def _granted(found: VaultEntry) -> list[str]:
    return parts.grant_lines(found.grants) or ["none: sees only its scratch folder"]


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


def _numbered(code: str) -> str:
    lines = code.rstrip("\n").split("\n")
    size = len(str(len(lines)))
    return "\n".join(f"{number:>{size}} │ {visible(line)}" for number, line in enumerate(lines, 1))
