"""Decide panel: a person chooses, told what a model would be.

The decision runs in a thread of its own, from when a page first shows the panel, so the kernel stays free. At each turn
the page shows `told(turn)`, word for word, and sends a choice. When the decision ends, its audit, data and analysis
take the form's place.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Mapping
from typing import Any, Literal

from IPython.display import display

from healkit.app import Healkit
from healkit.contracts.decisions import Turn
from healkit.decisions.choosers import told
from healkit.decisions.decision import Decision
from healkit.errors import UsageInvalid
from healkit.notebook.cell_output import CellOutput
from healkit.notebook.widgets.audit_panel import AuditOperations
from healkit.notebook.widgets.panel import Panel, described
from healkit.rendering.document import Card, Line

#: `working`: a step is run. `choosing`: a choice is waited for. `failed`: the call itself cannot be answered.
Phase = Literal["idle", "working", "choosing", "done", "failed"]

#: How long the end of a stopped decision is waited for.
_END_S = 5.0
_GOES_ON = (
    "You choose in the panel below. The result stands here once there is one; when the kernel ends, "
    "so does the decision."
)


class DecidePanel(Panel):
    """Decision in which the person at the page chooses; `decision` is the result, None until it ends.

    more: further arguments of `hk.decide`, such as `tools`; not `chooser`, `ask` and `stop`.
    """

    KIND = "DecidePanel"
    title = "Decision"
    #: Name of the chooser in the record.
    name = "person"
    told_in_full = True

    def __init__(self, healkit: Healkit, question: str, data: Mapping[str, Any], **more: Any) -> None:
        if taken := sorted({"chooser", "ask", "stop"} & more.keys()):
            raise UsageInvalid(f"{taken[0]!r} is the panel's own.", hint=f"Leave {taken[0]} out.")
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
        self._card: Any = None
        self.operations |= {
            "decide_open": self._opened,
            "decide_choose": self._chosen,
            "decide_stop": self._stopped,
            "card": self._card_data,
        }
        self.endings = (self._stopped,)

    def choose(self, turn: Turn) -> dict[str, Any] | None:
        """Wait for the choice of the person at the page; None once it is stopped. Called by the decision's loop."""
        with self._changed:
            self._turn, self._choice, self._phase = turn, None, "choosing"
            self._tell()
            self._changed.wait_for(lambda: self._choice is not None or self._stop.is_set())
            self._phase = "working"
            self._tell()
            return self._choice

    def static_card(self) -> CellOutput | None:
        """Draw the result, or until there is one the question."""
        if self.decision is not None:
            return CellOutput.of(self.decision.card())
        return CellOutput.of(Card(str(self._given[0])[:200], "?", "info", (Line(_GOES_ON),)))

    def show(self, *, card: bool = True) -> None:
        """Display the card, which becomes the result in its place, and the panel below it."""
        if card and (shown := self.static_card()) is not None:
            self._card = display(shown, metadata=self._mark, display_id=True)
        super().show(card=False)

    @property
    def _mark(self) -> dict[str, Any]:
        """Metadata by which a page finds the card among the outputs."""
        return {"healkit": {"panel": self.model_id}}

    def _card_data(self) -> dict[str, str] | None:
        shown = None if self._card is None else self.static_card()
        return None if shown is None else shown._repr_mimebundle_()

    def _opened(self) -> dict[str, Any]:
        """Begin, unless it has begun, and return the state."""
        with self._changed:
            if self._phase == "idle":
                self._phase = "working"
                context = contextvars.copy_context()
                run = threading.Thread(
                    target=context.run, args=(self._decide,), name="healkit-decide", daemon=True
                )
                self._thread = run
                run.start()
            return self._state()

    def _chosen(self, number: int, choice: dict[str, Any]) -> dict[str, Any]:
        """Take a choice for the turn of that number; the loop checks what it says."""
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
        """End the decision after the step that is going on."""
        with self._changed:
            self._stop.set()
            self._changed.notify_all()
            run = self._thread
        if run is not None and run is not threading.current_thread():
            run.join(_END_S)

    def _decide(self) -> None:
        question, data, more = self._given
        try:
            found = self.healkit.decide(question, data, chooser=self, stop=self._stop, **more)
        except Exception as error:  # noqa: BLE001 - the page is told; an exception in a thread would be lost
            with self._changed:
                self._problem, self._phase = self.recorded.shown(described(error)).value, "failed"
                self._tell()
            return
        with self._changed:
            self.decision, self._phase = found, "done"
            self.operations |= AuditOperations(self.healkit, self.recorded, found.panes()).operations
            if self._card is not None:
                self._card.update(self.static_card(), metadata=self._mark)
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
        """Send the page the state; called with the lock held."""
        self._version += 1
        self._reply({"event": "decide", "state": self._state()})
