"""Host's half of RPC: one socket, a few threads.

The bridge uses threads, not the event loop, because the worker waits for each answer. A thread that blocks in `recv`
answers in half the time of a loop that has to wake up. One thread reads at a time. Before it handles a call, it lets
another thread read, so that a long call does not delay the next ones. This hand-over takes a quarter of a quick call's
time. So it is skipped for tools that have been quick so far, until one of them is slow.

While a bridge is open, the interpreter's switch interval is 10 µs instead of 5 ms. A call needs the interpreter's lock
five times, and each of them would wait that long for a busy main thread.

If many large calls of a worker are in progress, the bridge does not read more until some have ended. New messages wait
in the worker's socket. Large messages are decoded one at a time, from whichever worker (`wire.claims`), so that small
calls of other workers come in between.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

import msgspec

from healkit.core.contracts import rpc
from healkit.core.wire import claims, framing


class CallHandler(Protocol):
    """Handler of a worker's calls; implemented by the runtime's router."""

    def handle(self, call: rpc.RpcCall) -> rpc.RpcResult:
        """Answer one call; called on a bridge thread, several at a time. Must not raise."""
        ...

    def ended(self, call: rpc.RpcCall, result: rpc.RpcResult, *, late: bool) -> None:
        """Note an answer; called after it was sent, or dropped because the call had already timed out."""
        ...

    def timed_out(self, call: rpc.RpcCall, error: rpc.RpcError) -> None:
        """Note that the call timed out for the worker; called while `handle` may still be running."""
        ...


#: Beginning of a message if the bridge itself failed, as opposed to the worker's protocol.
OWN_FAULT = "healkit itself failed at the bridge, with "
#: Below the first duration, a tool is quick; above the second, it is no longer quick.
_QUICK_S, _SLOW_S = 0.001, 0.02
#: Maximum number of tools that are remembered as quick, since their names come from the worker.
_QUICK_MAX = 1000
_SWITCH_INTERVAL_S = 0.00001
#: Maximum size of the calls of one worker that are in progress together, in bytes; a single call is always
#: allowed.
_IN_FLIGHT_MAX_BYTES = rpc.MAX_FRAME_BYTES


class _Pending:
    """A call that is being handled; `answered` is set once, under the bridge's lock.

    `holds_turn` is true while its thread keeps others from reading, because its tool has been quick so far.
    """

    __slots__ = ("answered", "call", "holds_turn", "size_bytes", "started")

    def __init__(self, call: rpc.RpcCall, size_bytes: int, *, holds_turn: bool) -> None:
        self.call = call
        self.size_bytes = size_bytes
        self.started = time.monotonic()
        self.holds_turn = holds_turn
        self.answered = False


class Bridge:
    """Serves one worker until its end of the socket closes.

    `on_message` gets messages other than calls (`Ready`, `ExecutionComplete`). `on_end` gets a text once: empty at end
    of file, else the violation of the protocol. Both are called on a bridge thread.
    """

    def __init__(
        self,
        sock: socket.socket,
        on_message: Callable[[rpc.Ready | rpc.ExecutionComplete], None],
        on_end: Callable[[str], None],
        *,
        rpc_timeout_s: float,
        max_in_flight: int,
    ) -> None:
        self._sock = sock
        self._reader = framing.FrameReader(sock)
        self._on_message = on_message
        self._on_end = on_end
        self._rpc_timeout_s = rpc_timeout_s
        self._max_threads = max_in_flight
        self._handler: CallHandler | None = None
        self._turn = threading.Lock()  # its holder reads
        self._lock = threading.Lock()  # pending calls; only held for moments, since the event loop takes it
        self._sending = (
            threading.Lock()
        )  # its holder sends a whole frame, however long the worker does not read
        self._room = threading.Condition(self._lock)  # room that calls in progress leave for others
        self._in_flight_bytes, self._awaits_room = 0, False
        self._pending: dict[int, _Pending] = {}
        self._quick: set[tuple[str, str]] = set()
        self._busy = 0
        self._threads = 0
        self._ended = False
        _fast_switching.enter()
        self._threads += 1
        self._spawn()

    def serve(self, handler: CallHandler) -> None:
        """Set the handler of calls, before the work is sent, since no call can arrive earlier."""
        self._handler = handler

    def limit(self, rpc_timeout_s: float, max_in_flight: int) -> None:
        """Change the limits, before the work is sent."""
        self._rpc_timeout_s = rpc_timeout_s
        self._max_threads = max_in_flight

    def send(self, message: msgspec.Struct, descriptors: Sequence[int] = ()) -> None:
        """Send one message to the worker, whole; ignore a worker that has ended, which other code detects.

        descriptors: Open files that go with it.
        """
        self._send(framing.encode_frame(message), descriptors)

    def expire(self) -> None:
        """Answer every overdue call with CALL_TIMEOUT, and let others read past a call that has become slow.

        Called on the event loop, every few milliseconds to tenths of a second, by the code that waits for the worker.
        It never waits, because the worker may not be reading.
        """
        now = time.monotonic()
        for pending in list(self._pending.values()):
            if now - pending.started >= self._rpc_timeout_s:
                message = f"no answer within {self._rpc_timeout_s:g} s"
                error = rpc.RpcError("CALL_TIMEOUT", "TimeoutError", message)
                if self._claim(pending):
                    threading.Thread(target=self._time_out, args=(pending.call, error), daemon=True).start()
            if now - pending.started >= _SLOW_S:
                self._hand_over(pending)

    def close(self) -> None:
        """Close the connection; the threads end once they notice. Safe to call twice."""
        with self._lock:
            if self._ended:
                return
            self._ended = True
            self._room.notify_all()
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the other side closed first
        _fast_switching.leave()

    def _spawn(self) -> None:
        threading.Thread(target=self._serve, name="healkit-bridge", daemon=True).start()

    def _serve(self) -> None:
        """Read, let another thread read unless the call will be quick, handle, repeat; main function of each thread."""
        try:
            while (pending := self._next_call()) is not None:
                self._handle(pending)
                with self._lock:
                    has_turn, pending.holds_turn = pending.holds_turn, False
                    self._busy -= 1
                    self._in_flight_bytes -= pending.size_bytes
                    if self._awaits_room:
                        self._room.notify()
                if has_turn:
                    self._turn.release()
                del pending  # releases its arguments while this thread waits for the next call
        except Exception as error:  # noqa: BLE001 - report it, so that the execution need not wait for its timeout
            self._end(f"{OWN_FAULT}{type(error).__name__}")
            self.close()
            with suppress(RuntimeError):
                self._turn.release()  # a waiting thread then sees the end
        finally:
            with self._lock:
                self._threads -= 1
                if self._threads == 0:
                    self._sock.close()

    def _next_call(self) -> _Pending | None:
        """Return the next call, holding the turn, or None at the end; pass on every other message."""
        self._turn.acquire()
        while not self._ended:
            message, size_bytes = self._read()
            if isinstance(message, rpc.RpcCall):
                pending = _Pending(message, size_bytes, holds_turn=True)
                if self._register(pending):
                    return pending
            elif message is None:
                self.close()
            else:
                self._on_message(message)
        self._turn.release()
        return None

    def _register(self, pending: _Pending) -> bool:
        call = pending.call
        with self._lock:
            duplicate = call.id in self._pending
            if self._handler is None or duplicate:
                self._end(
                    f"a call with id {call.id} that is {'open already' if duplicate else 'before any work'}"
                )
                return False
            self._pending[call.id] = pending
            self._busy += 1
            self._in_flight_bytes += pending.size_bytes
        if (call.server, call.tool) not in self._quick:
            self._hand_over(pending)
        return True

    def _hand_over(self, pending: _Pending) -> None:
        """Let another thread read while this call continues; a second call has no effect."""
        with self._lock:
            if not pending.holds_turn:
                return
            pending.holds_turn = False
            spawn = self._busy == self._threads and self._threads < self._max_threads and not pending.answered
            if spawn:
                self._threads += 1
        self._turn.release()
        if spawn:
            self._spawn()

    def _read(self) -> tuple[rpc.FromWorker | None, int]:
        """Return the next message and its size in bytes; None at the end."""
        try:
            frame = self._reader.read()
            if frame is not None:
                size_bytes = len(frame)
                if size_bytes > claims.SMALL_BYTES:
                    self._wait_for_room(size_bytes)
                return framing.decode_from_worker(frame), size_bytes
            self._end("")
        except (framing.FrameTooLarge, claims.BadClaim) as error:
            self._end(str(error))
        except OSError:
            self._end("")
        return None, 0

    def _wait_for_room(self, size_bytes: int) -> None:
        """Wait until the calls in progress leave room for a message of that size, or all of them have ended."""
        with self._room:
            self._awaits_room = True
            self._room.wait_for(
                lambda: (
                    self._ended
                    or not self._in_flight_bytes
                    or self._in_flight_bytes + size_bytes <= _IN_FLIGHT_MAX_BYTES
                )
            )
            self._awaits_room = False

    def _end(self, problem: str) -> None:
        if not self._ended:
            self._on_end(problem)

    def _handle(self, pending: _Pending) -> None:
        call = pending.call
        assert self._handler is not None
        self._answer(pending, self._handler.handle(call))
        tool, quick = (call.server, call.tool), self._quick
        if time.monotonic() - pending.started >= _QUICK_S:
            quick.discard(tool)
        elif tool not in quick and len(quick) < _QUICK_MAX:
            quick.add(tool)

    def _answer(self, pending: _Pending, result: rpc.RpcResult) -> None:
        result, frame = _framed(result)
        with self._lock:  # like `_claim`, but inline
            late, pending.answered = pending.answered, True
            if not late:
                del self._pending[pending.call.id]
        if not late:
            self._send(frame)
        if self._handler is not None:
            self._handler.ended(pending.call, result, late=late)

    def _time_out(self, call: rpc.RpcCall, error: rpc.RpcError) -> None:
        """Answer an overdue call, on a thread of its own."""
        self._send(framing.encode_frame(rpc.RpcResult(call.id, success=False, error=error)))
        if self._handler is not None:
            self._handler.timed_out(call, error)

    def _claim(self, pending: _Pending) -> bool:
        """Mark the call as answered; return True for the first caller only."""
        with self._lock:
            first, pending.answered = not pending.answered, True
            if first:
                del self._pending[pending.call.id]
        return first

    def _send(self, frame: bytes, descriptors: Sequence[int] = ()) -> None:
        try:
            with self._sending:
                sent = socket.send_fds(self._sock, [frame], descriptors) if descriptors else 0
                self._sock.sendall(frame[sent:] if sent else frame)
        except OSError:
            pass  # the code that watches the process sees the worker's end


def _framed(result: rpc.RpcResult) -> tuple[rpc.RpcResult, bytes]:
    """Return the answer and its frame; if it is too large, those of an error that says so."""
    try:
        return result, framing.encode_frame(result)
    except framing.FrameTooLarge as error:
        refused = rpc.RpcError("CALL_REFUSED", "ResultTooLarge", f"the answer is too large: {error}")
        result = rpc.RpcResult(result.id, success=False, error=refused)
        return result, framing.encode_frame(result)


class _FastSwitching:
    """Switch interval of the interpreter, which is short while a bridge is open."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._before = sys.getswitchinterval()

    def enter(self) -> None:
        with self._lock:
            if self._users == 0:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(self._before, _SWITCH_INTERVAL_S))
            self._users += 1

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                sys.setswitchinterval(self._before)


_fast_switching = _FastSwitching()
