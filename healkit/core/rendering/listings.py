"""Cards for the list of executions, and for a tool."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from healkit.core.contracts.execution import (
    HEALING_ORIGINS,
    TRIED_COUNTED_MAX,
    ExecutionData,
)
from healkit.core.contracts.vault import VaultEntry
from healkit.core.crossing import values
from healkit.core.rendering import cleaning, execution_card, plain
from healkit.core.rendering.document import (
    Card,
    Cell,
    Facts,
    Only,
    Span,
    Table,
    Tone,
)
from healkit.core.rendering.to_html import html_of
from healkit.core.rendering.to_text import text_of

if TYPE_CHECKING:
    from IPython.lib.pretty import RepresentationPrinter

# Executions and their sums.

#: The columns that a narrow page shows without scrolling come first.
_EXECUTIONS = ("row", "when", "tool", "status", "result", "took", "isolation")
_STATES: dict[str, tuple[str, Tone]] = {"SUCCESS": ("✓", "good"), "FAILURE": ("✗", "bad")}


def executions(found: Sequence[ExecutionData], *, left_out: int = 0, ask: str = "") -> Card:
    """Build the list of executions, in the given order (newest first).

    left_out: Number of executions on trial that are not listed.
    ask: Command that lists them too.
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
    """Return how many executions on trial are not listed, and which command lists them."""
    more = " or more" if number >= TRIED_COUNTED_MAX else ""
    runs, are, them = ("trial run", "is", "it") if number == 1 else ("trial runs", "are", "them")
    return f"{number:,}{more} {runs}, for example of a healing, {are} hidden; {ask} lists {them} too."


# Tools and their revisions.

#: Maximum length of an example's arguments that are offered for typing, in characters.
_EXAMPLE_MAX_CHARS = 120


@dataclasses.dataclass(frozen=True, repr=False)
class ShownVaultEntry(VaultEntry):
    """Vault entry that a notebook shows as a card; `hk.vault` returns it."""

    def _repr_pretty_(self, printer: RepresentationPrinter, _cycle: bool) -> None:
        """Print the card as text, or the short form in a list; called by IPython for the value of a cell."""
        printer.text(text_of(saved(self)) if printer.indentation == 0 else repr(self))

    def _repr_html_(self) -> str:
        """Return the card as HTML; called by a notebook that shows the entry."""
        return html_of(saved(self))


def entry_title(found: VaultEntry) -> str:
    """Return the name of a tool's revision, with its type."""
    return f"{found.label} ({found.type}{', draft' if found.draft else ''})"


def saved(found: VaultEntry) -> Card:
    """Build a short card of a tool: its name, the beginning of its code, and how to run it."""
    plain_ones = {"persona", "note"}
    facts = [(name, text if name in plain_ones else Span(text, "code")) for name, text in _saved_facts(found)]
    described = Only("html", Span(found.description, "ticked"))
    return Card(entry_title(found), tone="info", below=(described,), parts=(Facts(facts, width=8),))


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
    """Return arguments to run it with: those of its first example if they are short, else only their names."""
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
    """Return the first line that is not empty."""
    return plain.one_line(next((line for line in code.splitlines() if line.strip()), ""), 120)


# The database, and this machine.
