"""Audit of a run: entries made of its events.

There is no second bookkeeping: an entry is made of the event that was written to trace.jsonl, and names it. Entries
wait until something has ended (a verdict, a halt, the run), and are appended in one transaction then.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from healkit.contracts.audit import AuditEntry, AuditHead, AuditStep
from healkit.contracts.events import TraceEvent
from healkit.errors import HealkitError
from healkit.plain_text import count

#: Makes the audit's entry of an event; None for an event that the audit does not hold.
StepOf = Callable[[TraceEvent], AuditStep | None]
#: Events that end something; what waits is appended with them.
_ENDS = frozenset(
    {
        "proposal_accepted", "proposal_rejected", "recovery_finished", "policy_halt", "error_raised",
        "trace.gather_info", "trace.execute_data_op", "trace.execute_output", "trace.finalize", "trace.self_correction",
    }
)  # fmt: skip
#: Wait for another writer of the database in the middle of a run; what could not be appended is tried again later.
_SHORT_WAIT_S = 0.05


class Appends(Protocol):
    """Part of the audit that a run uses."""

    def extend(self, steps: Sequence[AuditStep], wait_s: float | None = None) -> list[AuditEntry]: ...
    def head(self) -> AuditHead: ...


class RunAudit:
    """Audit of one run; several threads may use it. It raises nothing: `problem` says what could not be appended."""

    def __init__(self, audit: Appends, step_of: StepOf) -> None:
        self._audit = audit
        self._step_of = step_of
        self._lock = threading.Lock()
        self._waiting: list[AuditStep] = []
        self._trouble = ""

    @property
    def problem(self) -> str:
        """Sentence on the entries that could not be appended; empty when there are none."""
        if not self._trouble or not self._waiting:
            return ""
        return f"{count(len(self._waiting), 'entry')} could not be added to the audit: {self._trouble}"

    def heard(self, event: TraceEvent) -> None:
        """Take an event that was written; called by the run with each."""
        step = self._step_of(event)
        with self._lock:
            if step is not None:
                self._waiting.append(step)
            if event.event_type in _ENDS:
                self._append(_SHORT_WAIT_S)

    def finish(self) -> AuditHead | None:
        """Append what still waits, and return the head of the chain; None where that failed."""
        with self._lock:
            self._append(None)
            try:
                return None if self._waiting else self._audit.head()
            except HealkitError as error:
                self._trouble = error.message
                return None

    def _append(self, wait_s: float | None) -> None:
        try:
            self._audit.extend(self._waiting, wait_s)
        except HealkitError as error:
            self._trouble = error.message
        else:
            self._waiting, self._trouble = [], ""
