"""Audit for pages: decisions, and their steps."""

from __future__ import annotations

from typing import Any

from healkit.app import Healkit
from healkit.core.rendering import plain
from healkit.errors import AuditNotFound
from healkit.faces.pages.operations import Operations
from healkit.faces.pages.page_data import PageData
from healkit.parts.decide import render_audit as audit
from healkit.parts.decide.decision import ending_of, panes_of
from healkit.parts.decide.records import ANALYSIS_LABEL, AuditPanes
from healkit.parts.runs.audit import summed
from healkit.parts.runs.audit_records import AuditEntry
from healkit.parts.views.render import shape_text

#: Numbers of steps and of decisions in one answer.
PAGE_STEPS, _PAGE_DECISIONS = 100, 25
#: Maximum size of a view whose first rows are read, in bytes: other users' kernels share the server's memory.
_VIEW_MAX_BYTES = 50_000_000


class AuditPanesReading(Operations):
    """Audited execution, step by step."""

    PREFIX = "audit_"
    NAMES: tuple[str, ...] = ("open", "steps")

    def __init__(self, healkit: Healkit, recorded: PageData, panes: AuditPanes) -> None:
        super().__init__(healkit, recorded)
        self._panes = panes

    def open(self) -> dict[str, Any]:
        """Return the panes' initial content."""
        panes = self._panes
        mark, title, tone = audit.head_of(panes)
        is_decision = panes.kind == "decide"
        fields = {
            "question": panes.question,
            "reason": panes.reason,
            "notes": audit.notes_of(panes),
            "summary": audit.sums_of(panes),
            "data": self._data() if is_decision else None,
            "analysis": panes.analysis,
            "files": [str(file) for file in panes.files],
        }
        return {
            **self._recorded.shown(fields).value,
            "mark": mark,
            "title": title,
            "tone": tone,
            "apart": is_decision,
            "label": ANALYSIS_LABEL,
            "no_analysis": audit.no_analysis(panes),
            "total": len(panes.entries),
            **self.steps(0),
        }

    def steps(self, after: int) -> dict[str, Any]:
        """Return the steps after the first `after`, each in the form of the card."""
        page = self._panes.entries[after : after + PAGE_STEPS]
        return {"steps": [self._step(entry) for entry in page]}

    def _step(self, entry: AuditEntry) -> dict[str, Any]:
        state = audit.state_of(entry)
        fields = {
            "tool": entry.tool_name,
            "said": plain.one_line(entry.description, 300),
            "facts": audit.entry_facts(entry),
        }
        return {
            **self._recorded.shown(fields).value,
            "seq": entry.seq,
            "choice": entry.choice_type,
            "mark": state.mark,
            "state": state.words,
            "tone": state.tone,
            "apart": state.is_apart,
        }

    def _data(self) -> dict[str, Any] | None:
        view, first = self._panes.view, self._panes.first
        if view is None:
            return None
        columns = audit.columns_of(view)
        return {
            "name": view.name,
            "shape": shape_text(view),
            "file": audit.file_name(view.name),
            "command": audit.export_command(view.name),
            "columns": [list(column) for column in columns],
            "left_out": len(view.columns) - len(columns),
            "label": "" if first is None else audit.first_label(view, first),
            "headers": [] if first is None else audit.headers_of(first),
            "rows": []
            if first is None
            else [[plain.value_text(cell, 60) for cell in row] for row in first.rows],
        }


class AuditReading(Operations):
    """Audited decisions, newest first, and any audited execution."""

    NAMES: tuple[str, ...] = ("decisions", "audit_open", "audit_steps")

    def decisions(self, before: int | None = None) -> dict[str, Any]:
        """Return a page of decisions, and the beginning of the next page with older ones."""
        begun, older = self._healkit.audit.begun("decide", limit=_PAGE_DECISIONS, before=before)
        return {"rows": [self._row(entry) for entry in begun], "older": older}

    def audit_open(self, execution_id: str) -> dict[str, Any]:
        """Return the initial content of an execution's panes; raise `AuditNotFound`."""
        return self._panes(execution_id).open()

    def audit_steps(self, execution_id: str, after: int) -> dict[str, Any]:
        """Return the steps after the first `after`; raise `AuditNotFound`."""
        return self._panes(execution_id).steps(after)

    def _panes(self, execution_id: str) -> AuditPanesReading:
        panes = panes_of(self._healkit.services, execution_id, view_max_bytes=_VIEW_MAX_BYTES)
        if panes is None:
            raise AuditNotFound(f"No execution {execution_id[:100]!r} is on the audit.")
        return AuditPanesReading(self._healkit, self._recorded, panes)

    def _row(self, begun: AuditEntry) -> dict[str, Any]:
        last = self._healkit.audit.last(begun.execution_id) or begun
        outcome, reason = ending_of(last)
        parameters = begun.tool_params if isinstance(begun.tool_params, dict) else {}
        panes = AuditPanes(begun.execution_id, "decide", [], summed([]), outcome=outcome)
        mark, title, tone = audit.head_of(panes)
        texts = {"question": plain.one_line(str(parameters.get("question") or ""), 200), "reason": reason}
        return {
            "execution_id": begun.execution_id,
            "when": begun.timestamp.isoformat(),
            "steps": last.seq,
            "mark": mark if outcome else "…",
            "title": title if outcome else "not ended",
            "tone": tone if outcome else "warn",
            **self._recorded.shown(texts).value,
        }
