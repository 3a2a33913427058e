"""Record of one execution, from its beginning to its end.

Everything that becomes known of an execution passes through its `Recording` on its way to the log, the journal, the
trace and the run that it is a step of. What its tool keeps off the record is taken out here, and nowhere else.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from healkit.contracts.execution import NOT_KEPT_VALUE, CallRecord, DecisionRecord, Finished, Started, Step
from healkit.contracts.failure import Failure
from healkit.contracts.vault import VaultEntry
from healkit.runtime.contents import AnyRecord, without_contents
from healkit.runtime.outcomes import fault_of
from healkit.runtime.recorder import Recorder
from healkit.runtime.step_listener import UNRECORDED, StepListener
from healkit.tracing.trace_collector import TraceCollector


class Recording:
    """Record of one execution; `started` is its beginning with all that is known so far, contents included.

    contents: False keeps the tool's arguments, results and outputs off the record; set it as soon as that is known.
    leaves_out: asked with the name of a vault tool that this one calls; True keeps that call's contents off the record.
    `log_id` is the row's id, None while there is none. `fault` is the failure on record where its end could not be
    recorded as it was, for an error of healkit's own.
    """

    def __init__(
        self,
        recorder: Recorder,
        started: Started,
        step: StepListener = UNRECORDED,
        *,
        contents: bool = True,
        leaves_out: Callable[[str], bool] = lambda _tool: False,
    ) -> None:
        self.started = started
        self.step = step
        self.contents = contents
        self.log_id: int | None = None
        self.fault: Failure | None = None
        self._placed = self._begun = self._ended = False
        self._ending = threading.Lock()
        self._leaves_out = leaves_out
        self._recorder = recorder
        self._clock_s = time.perf_counter()
        self._journal = recorder.journal(started.trace_id)
        self._collector: TraceCollector | None = None
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
        """Commit the beginning as RUNNING, behind all rows that the log has; again, when more of it is known."""
        log_id, time = self._recorder.begin(self._kept(self.started))
        self.log_id, self._begun = log_id or self.log_id, True
        if not self._placed:
            self.started, self._placed = msgspec.structs.replace(self.started, timestamp=time), True
        self._collector = self._recorder.collector(self._kept(self.started))
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
        """True once any call or decision was recorded, so that there is a journal to close."""
        return self._journal.used

    def close_journal(self) -> None:
        """Move the steps into their tables; before the execution's end is recorded. May wait."""
        self._journal.close()

    @property
    def ended(self) -> bool:
        """True once the row says how it ended."""
        return self._ended

    def refuse(self, finished: Finished) -> int | None:
        """Commit the end of an execution that had no worker or was interrupted; its row's id. May wait.

        Where its row is not there yet, it is committed as one.
        """

        def write() -> None:
            end = self._kept(finished)
            if self._begun:
                self.log_id = self._recorder.finish(end, self._traced()) or self.log_id
                return
            if not self._placed:
                self.started, self._placed = self._recorder.in_order(self.started), True
            self.log_id = self._recorder.refuse(self._kept(self.started), end)

        self._end(write, lambda: self.step.refused(self._kept(self.started), self._kept(finished)))
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
        said = encoded if self.contents or encoded is None else NOT_KEPT_VALUE

        def write() -> None:
            collector = self._traced()
            collector.result = None if finished.failure else said
            self.log_id = self._recorder.finish(self._kept(finished), collector) or self.log_id

        def tell() -> None:
            if self.step is not UNRECORDED:
                shown = list(outputs) if self.contents else []
                kept = [self._kept_step(call) for call in calls]
                self.step.ended(self._kept(finished), said or "null", shown, kept)

        self._end(write, tell)
        return self.log_id

    def _end(self, write: Callable[[], None], tell: Callable[[], None]) -> None:
        """Write the end, once: the first one counts. An error of healkit's own is the end then (`fault`)."""
        with self._ending:
            if self._ended:
                return
            try:
                write()
            except Exception as error:  # noqa: BLE001 - whatever is raised, the row must not stay RUNNING
                bare = without_contents(self.started)
                end = fault_of(bare, error, self.elapsed_ms, quoted=False)
                self.fault = end.failure
                self.log_id = self._recorder.fault(bare, end) or self.log_id
                tell = functools.partial(self.step.refused, bare, end)
            self._ended = True
            with suppress(Exception):  # a step of a run is told, and cannot change how the execution ended
                tell()

    def _traced(self) -> TraceCollector:
        if self._collector is None:
            self._collector = self._recorder.collector(self._kept(self.started))
        return self._collector

    def _kept(self, record: AnyRecord) -> AnyRecord:
        return record if self.contents else without_contents(record)

    def _kept_step(self, step: AnyRecord) -> AnyRecord:
        called_off = isinstance(step, CallRecord) and step.server == "vault" and self._leaves_out(step.tool)
        return without_contents(step) if called_off else self._kept(step)
