"""One execution on record, and what is kept of it.

Everything that becomes known of an execution passes through its `Recording` on its way to the log, the journal, the
trace and the run that it is a step of. A tool with the flag `log=False` still has a row, a trace and calls for every
execution: that it ran, when, for whom, which revision, for how long and how it ended. Its contents (what it was given,
what it said, what it returned) are taken out here, before they go anywhere. The place of a failure stays, as function
names and lines of the tool's own code, without the exception's message.

The caller gets everything, as always. What such a tool asked of another is that one's to keep or not; what another tool
asked of it is kept off that one's record too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from healkit.contracts.entries import VaultEntry
from healkit.contracts.failure import format_frames
from healkit.contracts.fingerprint import fingerprint
from healkit.contracts.records import (
    NOT_KEPT,
    NOT_KEPT_OBJECT,
    NOT_KEPT_VALUE,
    CallRecord,
    DecisionRecord,
    Finished,
    Started,
    Step,
)
from healkit.runtime.recorder import Recorder
from healkit.runtime.steps import UNRECORDED, StepListener
from healkit.tracing.collector import Collector

AnyRecord = TypeVar("AnyRecord", bound=Started | CallRecord | DecisionRecord | Finished)


class Recording:
    """Record of one execution; `started` is its beginning with all that is known so far, contents included.

    contents: whether contents are kept; set it as soon as that is known. drops: whether the contents of calls of a
    vault tool, by its name, are kept off the record. `log_id` is the row's id, None while there is none.
    """

    def __init__(
        self,
        recorder: Recorder,
        started: Started,
        step: StepListener = UNRECORDED,
        *,
        contents: bool = True,
        drops: Callable[[str], bool] = lambda _tool: False,
    ) -> None:
        self.started = started
        self.step = step
        self.contents = contents
        self.log_id: int | None = None
        self._drops = drops
        self._recorder = recorder
        self._clock_s = time.perf_counter()
        self._journal = recorder.journal(started.trace_id)
        self._collector: Collector | None = None
        self._sink: Callable[[Step], None] = self._journal.append

    @property
    def elapsed_ms(self) -> float:
        """Time since the execution was asked for, in milliseconds."""
        return (time.perf_counter() - self._clock_s) * 1000

    @property
    def decisions(self) -> list[DecisionRecord]:
        """Branch decisions on record, in order."""
        return self._traced().decisions

    def add(self, **known: Any) -> None:
        """Add what has become known of the beginning, by field of `Started`."""
        self.started = msgspec.structs.replace(self.started, **known)

    def observe(self, entry: VaultEntry) -> None:
        """Tell the run that the tool was found."""
        self.step.observed(self._kept(self.started), entry)

    def begin(self) -> None:
        """Commit the beginning as RUNNING; again, when more of it is known."""
        kept = self._kept(self.started)
        self.log_id = self._recorder.begin(kept) or self.log_id
        self._collector = self._recorder.collector(kept)
        self._sink = self._collector.through(self._journal.append)

    def begin_step(self, timeout_s: float, mode: str) -> None:
        """Tell the run what is about to be done, commit it as RUNNING, and tell the run so."""
        self.step.prepared(self._kept(self.started), timeout_s, mode)
        self.begin()
        self.step.started(self.log_id)

    def record(self, step: Step) -> None:
        """Put a call or a decision on record; when this returns, kill -9 cannot undo it. For any thread."""
        self._sink(self._kept_step(step))

    @property
    def has_steps(self) -> bool:
        """Whether any call or decision was recorded, so that there is a journal to close."""
        return self._journal.used

    def close_journal(self) -> None:
        """Move the steps into their tables; before the execution's end is recorded. May wait."""
        self._journal.close()

    def refuse(self, finished: Finished) -> int | None:
        """Commit a call that was refused before its row was there, as one row; its id."""
        kept, end = self._kept(self.started), self._kept(finished)
        log_id = self._recorder.refuse(kept, end)
        self.step.refused(kept, end)
        return log_id

    def fail(self, finished: Finished) -> int | None:
        """Commit the end of an execution that had no worker or was interrupted; its row's id. May wait."""
        end = self._kept(finished)
        self.log_id = self._recorder.finish(end, self._traced()) or self.log_id
        self.step.refused(self._kept(self.started), end)
        return self.log_id

    def finish(
        self,
        finished: Finished,
        encoded: str | None = None,
        outputs: Sequence[dict[str, Any]] = (),
        calls: Sequence[CallRecord] = (),
    ) -> int | None:
        """Commit how it ended; its row's id. May wait for a locked database.

        encoded: the whole value as JSON, where there is one.
        """
        end, collector = self._kept(finished), self._traced()
        said = encoded if self.contents or encoded is None else NOT_KEPT_VALUE
        collector.result = None if finished.failure else said
        self.log_id = self._recorder.finish(end, collector) or self.log_id
        if self.step is not UNRECORDED:
            shown = list(outputs) if self.contents else []
            self.step.ended(end, said or "null", shown, [self._kept_step(call) for call in calls])
        return self.log_id

    def _traced(self) -> Collector:
        if self._collector is None:
            self._collector = self._recorder.collector(self._kept(self.started))
        return self._collector

    def _kept(self, record: AnyRecord) -> AnyRecord:
        return record if self.contents else without_contents(record)

    def _kept_step(self, step: AnyRecord) -> AnyRecord:
        called_off = isinstance(step, CallRecord) and step.server == "vault" and self._drops(step.tool)
        return without_contents(step) if called_off else self._kept(step)


def without_contents(record: AnyRecord) -> AnyRecord:
    """Return the record without contents."""
    replace = msgspec.structs.replace
    if isinstance(record, Started):
        return replace(record, arguments=NOT_KEPT_OBJECT)
    if isinstance(record, DecisionRecord):
        return replace(record, outcome=NOT_KEPT, condition="")
    if isinstance(record, CallRecord):
        said = NOT_KEPT_VALUE if record.success else ""
        error = NOT_KEPT if record.error else ""
        return replace(record, arguments=NOT_KEPT_OBJECT, result_summary=said, error=error)
    if record.failure is None:
        return replace(record, result_summary=NOT_KEPT_VALUE, last_output="")
    traceback = format_frames(record.failure.frames, f"{record.failure.ename}: {NOT_KEPT}")
    failure = replace(record.failure, evalue=NOT_KEPT, traceback=traceback, hint="")
    mark = None if record.fingerprint is None else fingerprint(failure)
    return replace(record, failure=failure, fingerprint=mark, last_output="")
