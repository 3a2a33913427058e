"""Panels of decisions: a person chooses; the audit.

The decision runs in a separate thread, which starts when a page first shows the panel, so the kernel remains free. At
each turn, the page shows exactly `told(turn)` and sends a choice. When the decision ends, its audit, data and analysis
replace the form. A healing or a notebook only has the audit. Its steps are loaded page by page, and the panel can write
the data to a file that the user names.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Literal

from healkit.app import Healkit
from healkit.core.rendering.document import Card, Line
from healkit.errors import UsageInvalid, named
from healkit.faces.notebook.cell_output import CellOutput
from healkit.faces.notebook.widgets.panel import CardedPanel, Panel, begin
from healkit.faces.pages.audit_reading import AuditPanesReading
from healkit.faces.pages.operations import described
from healkit.parts.decide import render_audit as audit
from healkit.parts.decide.choosers import told
from healkit.parts.decide.decision import Decision, panes_of
from healkit.parts.decide.records import Turn
from healkit.parts.views.render import shape_text

#: `working`: a step is running. `choosing`: waits for a choice. `failed`: the call itself cannot be answered.
Phase = Literal["idle", "working", "choosing", "done", "failed"]

#: Longest wait for the end of a stopped decision, in seconds.
_END_S = 5.0
_GOES_ON = (
    "You choose in the panel below. The result stands here once there is one; when the kernel ends, "
    "so does the decision."
)


class DecidePanel(CardedPanel):
    """Decision in which the person at the page chooses; `decision` is the result, None until it ends.

    more: Further arguments of `hk.decide`, such as `tools`; not `chooser`, `ask` and `stop`.
    """

    KIND = "DecidePanel"
    title = "Decision"
    #: Name of the chooser in the record.
    name = "person"
    told_in_full = True

    def __init__(self, healkit: Healkit, question: str, data: Mapping[str, Any], **more: Any) -> None:
        if reserved := sorted({"chooser", "ask", "stop"} & more.keys()):
            raise UsageInvalid(f"{reserved[0]!r} is the panel's own.", hint=f"Leave {reserved[0]} out.")
        super().__init__(healkit, {"question": str(question)[:200]})
        self.decision: Decision | None = None
        self._given = (question, data, more)
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._phase: Phase = "idle"
        self._turn: Turn | None = None
        self._choice: dict[str, Any] | None = None
        self._problem: dict[str, Any] | None = None
        self._version = 0
        self._thread: threading.Thread | None = None
        self.operations |= {
            "decide_open": self._opened,
            "decide_choose": self._chosen,
            "decide_stop": self._stopped,
        }
        self.endings = (self._stopped,)

    def choose(self, turn: Turn) -> dict[str, Any] | None:
        """Wait for the choice of the person at the page; None after a stop. Called by the decision's loop."""
        with self._changed:
            self._turn, self._choice, self._phase = turn, None, "choosing"
            self._tell()
            self._changed.wait_for(lambda: self._choice is not None or self._stop.is_set())
            self._phase = "working"
            self._tell()
            return self._choice

    def static_card(self) -> CellOutput | None:
        """Draw the result, or the question until there is a result."""
        if self.decision is not None:
            return CellOutput.of(self.decision.card())
        return CellOutput.of(Card(str(self._given[0])[:200], "?", "info", (Line(_GOES_ON),)))

    def _opened(self) -> dict[str, Any]:
        """Start, unless it has started, and return the state."""
        with self._changed:
            if self._phase == "idle":
                self._phase = "working"
                self._thread = begin("healkit-decide", self._decide)
            return self._state()

    def _chosen(self, number: int, choice: dict[str, Any]) -> dict[str, Any]:
        """Take a choice for the turn with that number; the loop checks the choice."""
        with self._changed:
            waits = self._phase == "choosing" and self._choice is None and self._turn is not None
            if not waits or self._turn is None or self._turn.number != number:
                raise UsageInvalid(
                    "This choice is not waited for any more.", hint="Choose for the newest turn."
                )
            if not isinstance(choice, dict):
                raise UsageInvalid("A choice is a JSON object.")
            self._choice = choice
            self._changed.notify_all()
            return self._state()

    def _stopped(self) -> None:
        """End the decision after the running step."""
        with self._changed:
            self._stop.set()
            self._changed.notify_all()
            run = self._thread
        if run is not None and run is not threading.current_thread():
            run.join(_END_S)

    def _decide(self) -> None:
        question, data, more = self._given
        try:
            decision = self.healkit.decide(question, data, chooser=self, stop=self._stop, **more)
        except Exception as error:  # noqa: BLE001 - report it to the page; an exception in a thread would be lost
            with self._changed:
                self._problem, self._phase = self.recorded.shown(described(error)).value, "failed"
                self._tell()
            return
        with self._changed:
            self.operations |= AuditOperations(self.healkit, self.recorded, decision.panes()).operations
            self.decision, self._phase = decision, "done"
            self._redraw_card()
            self._tell()

    def _state(self) -> dict[str, Any]:
        turn = self._turn if self._phase == "choosing" and self._choice is None else None
        return {
            "version": self._version,
            "phase": self._phase,
            "question": str(self._given[0])[:10_000],
            "problem": self._problem,
            "turn": None
            if turn is None
            else {
                "number": turn.number,
                "told": told(turn),
                "problem": turn.problem,
                "tools": [tool.name for tool in turn.tools],
                "views": [view.name for view in turn.views],
            },
        }

    def _tell(self) -> None:
        """Send the state to the page; called with the lock held."""
        self._version += 1
        self._reply({"event": "decide", "state": self._state()})


_FILE_MAX_CHARS = 1_000


class AuditOperations(AuditPanesReading):
    """Requests of a page on one audited execution, and the export of its data."""

    NAMES = ("open", "steps", "export")

    def export(self, file: str) -> dict[str, Any]:
        """Write the data to a new file, `.csv` or `.parquet`, beside the notebook if no folder is named."""
        view = self._panes.view
        if view is None:
            raise UsageInvalid("There is no data to export.")
        if not isinstance(file, str) or not 0 < len(file.strip()) <= _FILE_MAX_CHARS:
            raise UsageInvalid("Give the file a name that ends with .csv or .parquet.")
        written = self._healkit.views.export(view.name, file.strip())
        return {"file": str(written.absolute()), "shape": shape_text(view)}


class AuditPanel(Panel):
    """Audit of one execution; `of` is a `Decision`, a result of `hk.heal`, or an execution's id.

    Raises `UsageInvalid` for an id that is not in the audit.
    """

    KIND = "AuditPanel"
    title = "Audit"

    def __init__(self, healkit: Healkit, of: object) -> None:
        execution_id: object = getattr(of, "run_id", of)
        panes = of.panes() if isinstance(of, Decision) else panes_of(healkit.services, execution_id)
        if panes is None:
            raise UsageInvalid(
                f"No execution {named(execution_id)} is on the audit.",
                hint="Give what hk.decide or hk.heal returned, or an id that healkit trace list shows.",
            )
        self._panes = panes
        super().__init__(healkit, {"execution_id": self._panes.execution_id})
        self.operations |= AuditOperations(healkit, self.recorded, self._panes).operations

    def static_card(self) -> CellOutput | None:
        """Draw the same three panes as a card."""
        return CellOutput.of(audit.audit_card(self._panes))
