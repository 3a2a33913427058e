"""Records of one execution's calls.

A call is on record before it is performed, and again when it ends. It ends with its answer, with CALL_TIMEOUT, or with
CALL_UNANSWERED where its worker ended first. An answer that comes after one of the last two changes neither the outcome
nor the code, but what the provider returned is added: the call may have changed something outside.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

import msgspec

from healkit.contracts import rpc
from healkit.contracts.execution import CALL_MAX_CHARS, CallRecord, Step, summarize_json, utc_now
from healkit.errors import CallTimedOut, CallUnanswered

_replace = msgspec.structs.replace
#: Text of one execution's calls that is kept at full length, and what is kept of each text beyond it, in characters.
_TEXTS_MAX_CHARS, _SHORT_MAX_CHARS = 8_000_000, 200
#: How long a call waits at most until those that were answered before it are on record.
_IN_TURN_S = 1.0
_TIMED_OUT = rpc.RpcError(CallTimedOut.code, "TimeoutError", "no answer in time")
#: Ending of a call that no worker waits for any more.
UNANSWERED = rpc.RpcError(CallUnanswered.code, "", "its worker ended before it had an answer")


class OpenCall:
    """A call whose answer may yet come, or is not on record yet, with its record so far.

    in_full: the error as the host knows it, with what is kept from the worker.
    answered: true once there is an answer.
    turn: held while an ending that may not be the last one is written, so that they are written in order.
    """

    __slots__ = ("answered", "in_full", "record", "started", "turn")

    def __init__(self, record: CallRecord, started: float) -> None:
        self.record = record
        self.started = started
        self.in_full = ""
        self.answered = False
        self.turn = threading.Lock()


class CallRecords:
    """Records of one execution's calls, for several threads; `record` writes one of them.

    A call is known by its object: its `id` is the worker's, and may come again. `_open` is changed without a lock: each
    change is one operation on a dict.
    """

    def __init__(self, trace_id: str, record: Callable[[Step], None]) -> None:
        self._trace_id = trace_id
        self._record = record
        self._left_chars = _TEXTS_MAX_CHARS
        self._lock = threading.Lock()
        self._open: dict[int, OpenCall] = {}
        self._ended: dict[str, CallRecord] = {}
        self._recorded = threading.Condition(self._lock)
        self._waiting = 0
        #: True once the execution has ended.
        self.over = False

    @property
    def calls(self) -> list[CallRecord]:
        """Calls that have ended, in the order in which they came."""
        return sorted(self._ended.values(), key=lambda record: int(record.task_id[1:]))

    @property
    def settled(self) -> bool:
        """True when there is nothing to wait for, and nothing to end."""
        return not self._open

    def begin(self, call: rpc.RpcCall, task_id: str, server: str, tool: str) -> OpenCall:
        """Put a call on record, after those that were answered before it; kill -9 cannot undo what this has done."""
        self._wait_for_answered(_IN_TURN_S)
        started = time.perf_counter()
        record = CallRecord(
            trace_id=self._trace_id,
            task_id=task_id,
            server=server,
            tool=tool,
            arguments=self._summary(call.args),
            started_at=utc_now(),
        )
        opened = OpenCall(record, started)
        self._record(record)
        self._open[id(call)] = opened
        return opened

    def end(self, call: rpc.RpcCall, result: rpc.RpcResult, *, late: bool) -> None:
        """Write how the call ended; an answer that was dropped is added to the ending that it has.

        Called by the bridge once the answer is on its way, or dropped as too late.
        """
        opened = self._open.get(id(call))
        if opened is None:  # beyond the budget
            return
        with self._lock:
            if not (late := late or opened.record.success is not None):
                self._set(opened, self._ending(opened, result, opened.in_full))
        if late:
            self._add(opened, result)
        else:
            self._record(opened.record)
        del self._open[id(call)]
        if self._waiting:
            with self._recorded:
                self._recorded.notify_all()

    def time_out(self, call: rpc.RpcCall, error: rpc.RpcError) -> None:
        """Write that the worker was told that the time is up; called by the bridge, before or after the late answer."""
        opened = self._open.get(id(call))
        if opened is not None:
            self._give_up([opened], error)

    def settle(self, timeout_s: float) -> None:
        """End the record of every call.

        Called once the work is over, before its records are closed. A worker may have its answer, and be done with
        everything, before the thread that gave it has come to writing that down: this waits so long for those.
        """
        with self._recorded:
            self.over = True
        self._wait_for_answered(timeout_s)
        self._give_up(list(self._open.values()), UNANSWERED)

    def ends_of(self, text: str) -> str:
        """Return an error's text without its middle where it is long: a worker's arguments may be part of it."""
        limit = CALL_MAX_CHARS if self._left_chars > 0 else _SHORT_MAX_CHARS
        if len(text) > 2 * limit:
            text = f"{text[:limit]}\n… [{len(text):,} characters]\n{text[-limit:]}"
        self._left_chars -= len(text)
        return text

    def _wait_for_answered(self, timeout_s: float) -> None:
        """Wait until the endings of the calls that have their answers are on record."""
        if not self._any_answered():
            return
        with self._recorded:
            self._waiting += 1
            self._recorded.wait_for(lambda: not self._any_answered(), timeout_s)
            self._waiting -= 1

    def _any_answered(self) -> bool:
        return any(opened.answered for opened in list(self._open.values()))

    def _give_up(self, calls: Iterable[OpenCall], error: rpc.RpcError) -> None:
        """End the records of calls whose answers may still come; one that has an ending keeps it."""
        for opened in calls:
            with opened.turn:
                with self._lock:
                    is_open = opened.record.success is None
                    if is_open:
                        self._fail(opened, error)
                if is_open:
                    self._record(opened.record)

    def _add(self, opened: OpenCall, result: rpc.RpcResult) -> None:
        """Add what a call came to whose worker has ended, or was told that the time is up."""
        with opened.turn:
            with self._lock:
                if opened.record.success is None:  # ahead of the thread that was to write it
                    self._fail(opened, _TIMED_OUT)
                came = self._ending(opened, result, opened.in_full)
                what = "its answer" if result.success else f"its error ({came.error})"
                after_s = (came.duration_ms or 0.0) / 1000
                error = f"{opened.record.error}; {what} came after {after_s:.1f} s and was dropped"
                self._set(opened, _replace(opened.record, result_summary=came.result_summary, error=error))
            self._record(opened.record)

    def _fail(self, opened: OpenCall, error: rpc.RpcError) -> None:
        self._set(opened, self._ending(opened, rpc.RpcResult(0, success=False, error=error), ""))

    def _set(self, opened: OpenCall, record: CallRecord) -> None:
        opened.record = self._ended[record.task_id] = record

    def _ending(self, opened: OpenCall, result: rpc.RpcResult, in_full: str) -> CallRecord:
        """Return the call's record with that ending."""
        duration_ms = (time.perf_counter() - opened.started) * 1000
        error = result.error
        if error is None:
            return _replace(
                opened.record,
                success=result.success,
                result_summary=self._summary(result.result),
                error_code=None,
                error=in_full,
                duration_ms=duration_ms,
            )
        said = f"{error.ename}: {error.message}" if error.ename else error.message
        return _replace(
            opened.record,
            success=False,
            result_summary="",
            error_code=error.code,
            error=in_full or said,
            duration_ms=duration_ms,
        )

    def _summary(self, raw: msgspec.Raw) -> str:
        """Return JSON as text, cut to what a call's record may hold, and to less once the records are full."""
        if len(raw) <= _SHORT_MAX_CHARS:
            return bytes(raw).decode(errors="replace")
        text = summarize_json(raw, CALL_MAX_CHARS if self._left_chars > 0 else _SHORT_MAX_CHARS)
        self._left_chars -= len(text)
        return text
