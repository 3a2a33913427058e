"""Audit: an execution's entries, its panes, the chain.

A decision has three panes: its audit, its data, its analysis. Each has its own colour, icon and heading: green and a
shield, blue and a database, purple and a label. The frame around them has another colour. Words always say a
step's state too. The live panel shows the same words by `state_of` and `entry_facts`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from healkit.core.rendering import plain
from healkit.core.rendering.document import (
    Card,
    Code,
    Fact,
    Facts,
    Fold,
    Line,
    Part,
    Section,
    Span,
    Step,
    Steps,
    Table,
    Tone,
)
from healkit.parts.decide.records import ANALYSIS_LABEL, AuditPanes
from healkit.parts.runs.audit_records import AuditEntry, AuditMetadata, AuditSummary, AuditVerification
from healkit.parts.views.render import shape_text
from healkit.parts.views.view_records import DataView, FirstRows

if TYPE_CHECKING:
    from healkit.parts.views.view_records import DataView, FirstRows

#: What the steps of a saved card may take, in characters of HTML.
_STEPS_MAX_CHARS = 16_000
#: Columns that are listed, names of views and files that are, and characters of parameters and states.
COLUMNS_MAX, _NAMES_MAX, _JSON_MAX_CHARS = 8, 12, 600
#: Longest name of a column that is shown whole.
_NAME_MAX_CHARS = 60
_HEADS: dict[str, tuple[str, str, Tone]] = {
    "finalized": ("✓", "Decision: finalized", "ink"),
    "asked": ("?", "Decision: a person has to answer first", "warn"),
    "halted": ("✗", "Decision: halted", "bad"),
    "stopped": ("■", "Decision: stopped", "warn"),
}
_OTHERS = {"decide": "Decision without an end in the audit", "heal": "Healing", "notebook": "Notebook"}
#: Sentence of an analysis that is struck out.
STRUCK = re.compile(r"~~(.+?)~~")


class State(NamedTuple):
    """State of a step, as a sign, in words, and as a colour; `is_apart` for a correction, which has a coloured row."""

    mark: str
    words: str
    tone: Tone
    is_apart: bool = False


def audit_card(panes: AuditPanes) -> Card:
    """Build the card of an execution in the audit: three panes for a decision, otherwise only the audit."""
    mark, title, tone = head_of(panes)
    below: list[Part] = [Line(Span(panes.question, "strong"))] if panes.question else []
    below += [Line(panes.reason)] if panes.reason else []
    notes = [Line((Span("⚠ ", plain="⚠ "), note), "note") for note in notes_of(panes)]
    parts: list[Part] = [*notes, _audit(panes)]
    if panes.kind == "decide":
        parts += [_data(panes), _analysis(panes)]
    return Card(title, mark, tone, below, parts)


def head_of(panes: AuditPanes) -> tuple[str, str, Tone]:
    """Return mark, title and tone of an execution."""
    if panes.kind == "decide" and panes.outcome in _HEADS:
        return _HEADS[panes.outcome]
    return "🛡", f"{_OTHERS.get(panes.kind, panes.kind)}: {panes.execution_id}", "info"


def notes_of(panes: AuditPanes) -> list[str]:
    """List the important facts: steps without their intended state, and a question to a person."""
    notes = list(panes.notes)
    if (question := panes.asked) is not None:
        among = ", ".join(map(repr, question.candidates[:_NAMES_MAX]))
        sentence = f"What does {question.entity!r} mean? Candidates: {among}."
        notes.append(f"{sentence} Write one of them in the choice, or pass a function as ask=.")
    return notes


def state_of(entry: AuditEntry) -> State:
    """Say how a step ended; a correction counts only if the retry reached its intended state."""
    metadata = entry.metadata
    if metadata.correction_applied is True:
        return State("↻", "corrected", "warn", is_apart=True)
    if metadata.correction_applied is False:
        return State("✗", "correction failed", "bad", is_apart=True)
    if metadata.success is None:
        return State("·", "noted", "quiet")
    if not metadata.success:
        return State("✗", "failed", "bad")
    if entry.choice_type == "execute_data_op" and not _is_as_intended(metadata.actual_state or {}):
        return State("≠", "done, but not as intended", "warn")
    return State("✓", "done", "good")


def sums_of(panes: AuditPanes) -> list[tuple[str, Fact]]:
    """List the sums over an execution's steps: by choice, corrections, failures, duration, tools."""
    return [("steps", f"{panes.summary.entries:,}"), *summary_facts(panes.summary)[1:]]


def entry_facts(entry: AuditEntry) -> list[tuple[str, str]]:
    """List the content of an entry, as names and texts; unknown facts are left out."""
    metadata = entry.metadata
    facts = [
        ("parameters", _json(entry.tool_params)),
        ("result", _size(metadata)),
        ("distinct", _counts(metadata.unique_values or {})),
        ("error", metadata.error_message or ""),
        ("intended", _json(metadata.intended_state)),
        ("actual" if metadata.intended_state else "state", _json(metadata.actual_state)),
        ("duration", "" if not metadata.duration_ms else plain.duration(metadata.duration_ms)),
        ("when", plain.moment(entry.timestamp)),
        ("event", f"event {entry.event_seq} of run {entry.run_id}" if entry.event_seq else ""),
        ("hash", f"{entry.hash[:16]}…, entry {entry.position:,} of the chain"),
    ]
    return [(name, text) for name, text in facts if text]


def export_command(name: str) -> str:
    """Write how to export a view: `hk.views.export("RUN/chosen", "chosen.csv")`."""
    return f"hk.views.export({json.dumps(name, ensure_ascii=False)}, {json.dumps(file_name(name))})"


def file_name(name: str) -> str:
    """Return a file's name for a view: the last part of its own, in plain letters."""
    last = name.rpartition("/")[2]
    stem = "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in last)[:60]
    return f"{stem or 'data'}.csv"


def columns_of(view: DataView) -> list[tuple[str, str, str]]:
    """List the first columns of a view: name, type, number of nulls."""
    return [
        (plain.one_line(column.name, _NAME_MAX_CHARS), plain.one_line(column.dtype, 40), f"{column.nulls:,}")
        for column in view.columns[:COLUMNS_MAX]
    ]


def headers_of(first: FirstRows) -> list[str]:
    """Return the names of the columns of the first rows, none too long for a table."""
    return [plain.one_line(str(name), _NAME_MAX_CHARS) for name in first.columns]


def first_label(view: DataView, first: FirstRows) -> str:
    """Say how much of a view the first rows are: `First 5 rows, 8 of 40 columns`."""
    rows, columns = len(first.rows), len(first.columns)
    some = f"First {plain.count(rows, 'row')}" if view.row_count > rows else "All rows"
    return some + (f", {columns} of {len(view.columns):,} columns" if len(view.columns) > columns else "")


def no_analysis(panes: AuditPanes) -> str:
    """Say why there is no analysis."""
    return (
        "Empty, because no model wrote one."
        if panes.analysis == ""
        else "Its text was in the run folder, which no longer exists."
    )


def _audit(panes: AuditPanes) -> Card:
    steps = Steps([_step(entry) for entry in panes.entries], _STEPS_MAX_CHARS)
    facts = Facts(sums_of(panes), width=12)
    return Card("Audit", "🛡", "good", parts=(Section((facts,)), Section((steps,), is_last=True)))


def _step(entry: AuditEntry) -> Step:
    state = state_of(entry)
    words = plain.one_line(entry.description, 200)
    heading = (
        f"{entry.seq}. ",
        Span(f"{state.mark} {state.words}", "state", state.tone),
        " ",
        Span(entry.choice_type, "code"),
        f" {words}",
    )
    details = "\n".join(f"{name:<10}  {text}" for name, text in entry_facts(entry))
    tone: Tone = state.tone if state.is_apart else ""
    full = Fold(heading, (Code(details),), terminal="summary", look="step", tone=tone)
    return Step(full, Line(heading, "step"), rank=1 if state.tone in ("warn", "bad") else 2)


def _data(panes: AuditPanes) -> Card:
    view = panes.view
    if view is None:
        return Card("Data", "🗄", "info", parts=("No result.", *_more(panes)))
    facts: list[tuple[str, Fact]] = [
        ("view", Span(view.name, "code")),
        ("shape", shape_text(view)),
        ("export", Span(export_command(view.name), "code")),
    ]
    parts: list[Part] = [Facts(facts)]
    if view.columns:
        rows = [(Span(name, "code"), dtype, nulls) for name, dtype, nulls in columns_of(view)]
        parts.append(Section((Table(("column", "dtype", "nulls"), rows, indent=2), *_left(view.columns))))
    if panes.first is not None and panes.first.columns:
        cells = [[plain.value_text(cell, 60) for cell in row] for row in panes.first.rows]
        table = Table(headers_of(panes.first), cells, indent=2)
        parts.append(Section((Line(Span(first_label(view, panes.first), "quiet")), table), is_last=True))
    elif view.file is None:
        parts.append("The data was evicted; the run can create it again.")
    return Card("Data", "🗄", "info", parts=(*parts, *_more(panes)))


def _left(columns: Sequence[Any]) -> list[Part]:
    remaining = len(columns) - COLUMNS_MAX
    return [Line(Span(f"… {plain.count(remaining, 'more column')}", "quiet"))] if remaining > 0 else []


def _more(panes: AuditPanes) -> list[Part]:
    """List the written files, and all views of the decision."""
    facts: list[tuple[str, Fact]] = []
    if panes.files:
        facts.append(("files", Span(_names([str(file) for file in panes.files]), "code")))
    if panes.views:
        facts.append(("views", Span(_names(list(panes.views.values())), "code")))
    return [Facts(facts)] if facts else []


def _names(names: Sequence[str]) -> str:
    remaining = len(names) - _NAMES_MAX
    return ", ".join(names[:_NAMES_MAX]) + (f", and {remaining:,} more" if remaining > 0 else "")


def _analysis(panes: AuditPanes) -> Card:
    below = (Span(ANALYSIS_LABEL, "label", "ai"),)
    if not panes.analysis:
        return Card("Analysis", "⚡", "ai", below, (Line(Span(no_analysis(panes), "quiet")),))
    lines = [Line(_struck(line), "wrapped") for line in panes.analysis.splitlines() if line.strip()]
    return Card("Analysis", "⚡", "ai", below, (Section(lines, is_last=True),))


def _struck(line: str) -> tuple[str | Span, ...]:
    """Return a line of an analysis; text between `~~` is struck out."""
    pieces = STRUCK.split(line)
    return tuple(
        Span(piece, "struck", plain=f"~~{piece}~~") if at % 2 else piece for at, piece in enumerate(pieces)
    )


def _json(value: object) -> str:
    if value in (None, {}, ""):
        return ""
    return plain.one_line(json.dumps(value, ensure_ascii=False, default=str), _JSON_MAX_CHARS)


def _size(known: AuditMetadata) -> str:
    facts = [] if known.row_count is None else [plain.count(known.row_count, "row")]
    facts += [] if known.column_count is None else [plain.count(known.column_count, "column")]
    return ", ".join(facts)


def _counts(counts: dict[str, int]) -> str:
    named = [f"{plain.one_line(name, 40)} {number:,}" for name, number in counts.items()]
    return _names(named)


def _is_as_intended(actual: dict[str, Any]) -> bool:
    """Return whether the actual state is the intended one; entries of earlier versions contain the difference."""
    return bool(actual.get("asIntended", not actual.keys() - {"entities_intended"}))


# Entries, sums, and a check of the chain.

_HEADERS = ("entry", "when", "choice", "tool", "result", "description")


def entry_list(entries: Sequence[AuditEntry]) -> Card:
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


def audit_sums(found: AuditSummary) -> Card:
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
