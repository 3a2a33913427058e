"""Decision: three outputs, kept apart, and how it ended."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from healkit.core.rendering.document import Card
from healkit.errors import HealkitError, ViewChanged, ViewError
from healkit.parts.decide.records import ANALYSIS_LABEL, AuditPanes, DecisionOutcome, EntityQuestion, Turn
from healkit.parts.runs.audit import summed
from healkit.parts.runs.audit_records import AuditEntry
from healkit.parts.runs.reader import read_run
from healkit.parts.runs.run_folders import find_run
from healkit.parts.views.view_records import DataView, FirstRows
from healkit.plain_text import count

if TYPE_CHECKING:
    from IPython.lib.pretty import RepresentationPrinter

    from healkit.parts.views.view_records import DataView, FirstRows
    from healkit.services import Services

#: Reason of a decision that Ctrl-C ended.
INTERRUPTED = "It was interrupted."


class DecisionRun(NamedTuple):
    """Run folder of a decision."""

    run_id: str
    folder: Path


@dataclasses.dataclass(frozen=True)
class Decision:
    """Result of a decision.

    raw_data_view_name: The view that is the result, in `hk.views`; None unless the outcome is `finalized`.
    audit_log: The steps, in order.
    analysis: A text by a model, empty without one; it is never deterministic, and never part of the data.
    outcome: `finalized`; `halted` by a cap, or by two invalid choices in a row; `asked`: a person has to answer
        `asked_for` first; `stopped` by the chooser or the caller. `reason` is a sentence.
    views: The names of all views by their names in the decision.
    files: Files that outputs wrote.
    sent: Everything that the chooser got.
    marked: Sentences on steps that did not reach their intended state.
    problem: What is missing in the record.
    view and first_rows: Parts of the result for the card, with secret columns hidden.
    analysis_struck: Sentences of the analysis whose numbers or comparisons code could not verify; they are struck out.
    """

    raw_data_view_name: str | None
    audit_log: tuple[AuditEntry, ...]
    analysis: str
    outcome: DecisionOutcome
    run: DecisionRun
    analysis_is_non_deterministic: bool = True
    reason: str = ""
    question: str = ""
    views: dict[str, str] = dataclasses.field(default_factory=dict)
    files: tuple[Path, ...] = ()
    sent: tuple[Turn, ...] = dataclasses.field(default=(), repr=False)
    marked: tuple[str, ...] = ()
    asked_for: EntityQuestion | None = None
    problem: str = ""
    view: DataView | None = dataclasses.field(default=None, repr=False)
    first_rows: FirstRows | None = dataclasses.field(default=None, repr=False)
    analysis_struck: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True if there is a result."""
        return self.outcome == "finalized"

    @property
    def interrupted(self) -> bool:
        """True if Ctrl-C ended it."""
        return self.outcome == "stopped" and self.reason == INTERRUPTED

    def to_json(self) -> dict[str, Any]:
        """Return the decision as JSON data."""
        question = self.asked_for
        return {
            "raw_data_view_name": self.raw_data_view_name,
            "analysis": self.analysis,
            "analysis_is_non_deterministic": self.analysis_is_non_deterministic,
            "analysis_label": ANALYSIS_LABEL,
            "analysis_struck": list(self.analysis_struck),
            "outcome": self.outcome,
            "reason": self.reason,
            "question": self.question,
            "run_id": self.run.run_id,
            "folder": str(self.run.folder),
            "views": self.views,
            "files": [str(file) for file in self.files],
            "marked": list(self.marked),
            "asked_for": question
            and {"entity": question.entity, "column": question.column, "candidates": question.candidates},
            "problem": self.problem,
            "audit_log": msgspec.to_builtins(self.audit_log),
        }

    def __repr__(self) -> str:
        data = "" if self.raw_data_view_name is None else f", data {self.raw_data_view_name!r}"
        return (
            f"<Decision {self.outcome}{data}, {count(len(self.audit_log), 'entry')}, run {self.run.run_id}>"
        )

    def __str__(self) -> str:
        lines = [f"{self.outcome}: {self.reason}"]
        if self.raw_data_view_name is not None:
            lines.append(f"data: {self.raw_data_view_name}")
        lines += [f"file: {file}" for file in self.files]
        lines += [f"⚠ {note}" for note in self.marked]
        if self.asked_for is not None:
            lines.append(f"candidates: {', '.join(map(repr, self.asked_for.candidates))}")
        lines.append(f"audit: {count(len(self.audit_log), 'entry')}, run {self.run.run_id}")
        if self.analysis:
            lines.append(f"{ANALYSIS_LABEL}:\n{self.analysis}")
        return "\n".join(lines)

    def panes(self) -> AuditPanes:
        """Return the data for a card or a panel: audit, data and analysis, kept apart."""
        return AuditPanes(
            self.run.run_id,
            "decide",
            self.audit_log,
            summed(self.audit_log),
            self.question,
            self.outcome,
            self.reason,
            (*self.marked, *([self.problem] if self.problem else [])),
            self.view,
            self.first_rows,
            self.views,
            self.files,
            self.asked_for,
            self.analysis,
        )

    def card(self) -> Card:
        """Build the card: one pane each for the audit, the data and the analysis."""
        from healkit.parts.decide import render_audit as audit

        return audit.audit_card(self.panes())

    def _repr_html_(self) -> str:
        from healkit.core.rendering.to_html import html_of

        return html_of(self.card())

    def _repr_pretty_(self, printer: RepresentationPrinter, _cycle: bool) -> None:
        from healkit.core.rendering.to_text import text_of

        printer.text(text_of(self.card()))


def panes_of(
    healkit: Services, execution_id: object, *, view_max_bytes: int | None = None
) -> AuditPanes | None:
    """Return the audit's facts about an execution, in the form of `Decision.panes`; None if it has none.

    view_max_bytes: A larger file of the result is not read for its first rows, and a note says so.
    """
    if not isinstance(execution_id, str) or not (entries := healkit.audit.get(execution_id)):
        return None
    kind = entries[0].execution_type
    if kind != "decide":
        return AuditPanes(execution_id, kind, entries, summed(entries))
    begun, ended = entries[0], entries[-1]
    params = begun.tool_params if isinstance(begun.tool_params, dict) else {}
    outcome, reason = ending_of(ended)
    name = _final_view(entries, params)
    return AuditPanes(
        execution_id,
        kind,
        entries,
        summed(entries),
        question=str(params.get("question") or ""),
        outcome=outcome,
        reason=reason,
        analysis=_analysis(healkit, entries),
        **({} if name is None else _shown(healkit, name, view_max_bytes)),
    )


def ending_of(last: AuditEntry) -> tuple[str, str]:
    """Return outcome and reason by the last entry of a decision; the outcome is empty if it has not ended yet."""
    if last.choice_type == "run_finished":
        return last.description.removeprefix("The decision ended: ").rstrip("."), last.description
    return "", "The audit has no end of it: the decision is still running, or its process was killed."


def _analysis(healkit: Services, entries: Sequence[AuditEntry]) -> str | None:
    """Return the text from the run folder of a decision; empty if no model wrote one, None if it no longer exists."""
    if not any(entry.choice_type == "analysis_written" and entry.metadata.success for entry in entries):
        return ""
    try:
        run = read_run(find_run(healkit.runs_dir, entries[0].execution_id))
        for item in reversed(run.evidence):
            text = json.loads(run.read_evidence(item)) if item.kind == "report" else None
            if isinstance(text, str) and text.startswith(ANALYSIS_LABEL):
                return text.removeprefix(ANALYSIS_LABEL).strip()
    except (HealkitError, OSError, ValueError):
        return None
    return None


def _final_view(entries: Sequence[AuditEntry], begun: dict[str, Any]) -> str | None:
    """Return the name in `hk.views` of the view that a decision ended with."""
    for entry in reversed(entries):
        if entry.choice_type == "finalize" and isinstance(entry.tool_params, dict):
            name = str(entry.tool_params.get("finalViewName"))
            views = begun.get("views")
            stored_name = views.get(name) if isinstance(views, dict) else None
            return stored_name or f"{entry.execution_id}/{name}"
    return None


def _shown(healkit: Services, name: str, max_bytes: int | None) -> dict[str, Any]:
    """Return a view and its first rows, as far as it still exists."""
    try:
        view = healkit.views.get(name)
    except ViewError:
        return {"notes": [f"The view {name} was removed."]}
    if view.file is None:
        return {"view": view}
    if max_bytes is not None and view.size_bytes > max_bytes:
        return {
            "view": view,
            "notes": [f"Rows are not shown, because the view's file has {view.size_bytes:,} bytes."],
        }
    try:
        return {"view": view, "first": healkit.views.first_rows(healkit.views.to_pandas(name))}
    except ViewChanged as error:
        return {"view": view, "notes": [error.message]}
    except ViewError:
        return {"view": view}
