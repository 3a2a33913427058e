"""Workers of failed runs, kept to be asked.

A few workers are kept for a time. The oldest is removed if there are too many. Each is removed when its time is up or
its process has ended, and all are removed with the pool. Between questions, a retained process is stopped (SIGSTOP), so
that threads of the tool cost nothing. For removed workers, the reason is known.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import zmq
import zmq.asyncio
from jupyter_client.session import Session

from healkit.config import Config
from healkit.core.runtime import background
from healkit.core.wire import claims
from healkit.core.workers.kernel import KernelWorker, zmq_context
from healkit.core.workers.tiers import is_bounded, look, until_over
from healkit.core.workers.worker import Outcome, Retainer, Worker
from healkit.errors import PostMortemError, PostMortemGone
from healkit.parts.post_mortem import questions as pm

#: How long a worker is kept after its run or the last question, in seconds.
KEPT_S = 600.0
#: Time beyond the question's own limit, for a busy machine.
_GRACE_S = 3.0
#: Number of gone workers whose reason is remembered.
_REMEMBERED = 200
#: Claims of a worker in which no stack was left behind.
_WITHOUT_STACK = {"TOOL_RESULT_TOO_LARGE", "TOOL_RESULT_UNSUPPORTED"}
_KILLED: dict[str, str] = {
    "timeout": "it did not react to its timeout and was killed",
    "stopped": "it was stopped, and its process killed",
    "died": "its process died",
    "lost": "its process was lost",
    "protocol": "it broke the protocol and was killed",
    "output_limit": "it was killed at its output limit",
    "disk_limit": "it was killed at its disk limit",
}


class RetainedWorker:
    """Kernel of one failed execution; all methods belong to healkit's event loop."""

    def __init__(self, worker: KernelWorker, let_go: Callable[[str], None]) -> None:
        self.worker = worker
        self.attached = False
        self._let_go = let_go
        self._lock = asyncio.Lock()
        self._socket: zmq.asyncio.Socket | None = None
        worker.hang_up()
        worker.pause()

    async def ask(self, question: pm.Question, timeout_s: float) -> pm.Answer:
        """Ask a question, and wait for its answer at most a little longer than the time limit.

        Raises `PostMortemGone` if the worker has ended, or if it does not answer and is stopped for that. Raises
        `PostMortemError` if the worker refuses or a console keeps it busy.
        """
        async with self._lock:
            if not self.worker.alive:
                raise PostMortemGone("The worker of the failed execution has ended.")
            self.worker.resume()
            try:
                answer = await self._exchange(question, timeout_s + _GRACE_S)
            finally:
                if not self.attached:
                    self.worker.pause()
        if isinstance(answer, pm.Refused):
            raise PostMortemError(f"The worker of the failed execution cannot answer: {answer.reason}.")
        return answer

    async def attach(self, frame: int | None) -> Path:
        """Return the connection file for other Jupyter clients; from now on, the process is no longer stopped."""
        if frame is not None:
            await self.ask(pm.AskConsole(frame), 2.0)
        self.attached = True
        self.worker.resume()
        return self.worker.connection_file

    @property
    def runs(self) -> bool:
        """True while its process is not stopped: during a question, or with a console attached."""
        return self.attached or self._lock.locked()

    def hang_up(self) -> None:
        """Close the connection; the worker itself is stopped elsewhere."""
        if self._socket is not None:
            self._socket.close(linger=0)
            self._socket = None

    async def _exchange(self, question: pm.Question, timeout_s: float) -> pm.Answer:
        session, socket = self._connected()
        message = session.msg(pm.REQUEST, {"question": pm.encode(question)})
        session.send(socket, message)
        reading = asyncio.create_task(_read_answer(session, socket, message["header"]["msg_id"]))
        assert self.worker.process is not None
        exited = self.worker.process.exited
        ends: list[asyncio.Future[Any]] = [reading, exited]
        try:
            await asyncio.wait(ends, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if reading.done() and not reading.cancelled():
                return reading.result()
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        if exited.done() or self._socket is None:
            raise PostMortemGone("The worker of the failed execution ended while it was answering.")
        if self.attached:
            raise PostMortemError(
                "The worker of the failed execution is busy with its console.", hint="Ask again later."
            )
        reason = f"it did not answer within {timeout_s:g} s (most likely it hangs in C code) and was stopped"
        self._let_go(reason)
        raise PostMortemGone(f"The worker of the failed execution no longer exists: {reason}.")

    def _connected(self) -> tuple[Session, zmq.asyncio.Socket]:
        """Return the session, with the shell channel open; it takes no message larger than the answer limit."""
        if self._socket is None:
            self._socket = zmq_context().socket(zmq.DEALER)
            self._socket.maxmsgsize = 2 * pm.ANSWER_MAX_BYTES
            self._socket.rcvhwm = 4
            self._socket.linger = 0
            self._socket.connect(self.worker.address("shell"))
        return self.worker.session, self._socket


async def _read_answer(session: Session, socket: zmq.asyncio.Socket, message_id: str) -> pm.Answer:
    """Return the answer, and skip earlier messages; raises `PostMortemError` for an invalid one."""
    while True:
        frames = await socket.recv_multipart()
        try:
            _, parts = session.feed_identities(frames)
            for part in parts:
                claims.check_claim(part)
            message = session.deserialize(parts)
            if message["parent_header"].get("msg_id") == message_id:
                return pm.decode_answer(message["content"]["answer"].encode())
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            problem = f"The worker of the failed execution sent an invalid answer: {type(error).__name__}."
            raise PostMortemError(problem) from error


class RetainedWorkers(Retainer):
    """Retained workers of one pool, by the `trace_id` of their execution; `retire` stops a worker in the background."""

    def __init__(self, retire: Callable[[Any], None]) -> None:
        self._retire = retire
        self._retained: dict[str, RetainedWorker] = {}
        self._timers: dict[str, tuple[asyncio.TimerHandle, float]] = {}
        self._watches: dict[str, asyncio.Task[None]] = {}
        self._reasons: dict[str, str] = {}

    def retain(self, trace_id: str, worker: Worker, outcome: Outcome, config: Config) -> bool:
        """Retain the worker of a failed execution; returns false if it is of no use, and the caller must stop it."""
        if outcome.complete is not None and outcome.complete.failure is None:
            return False
        if reason := _why_not(worker, outcome, config):
            self._remember(trace_id, reason)
            return False
        assert isinstance(worker, KernelWorker)
        assert worker.process is not None
        while len(self._retained) >= config.post_mortem_kept:
            oldest = next(iter(self._retained))
            self.let_go(
                oldest, f"newer failures replaced it (healkit keeps at most {config.post_mortem_kept})"
            )
        self._retained[trace_id] = RetainedWorker(worker, lambda reason: self.let_go(trace_id, reason))
        self._set_timer(trace_id, KEPT_S)
        self._watches[trace_id] = asyncio.create_task(self._limit_disk(trace_id))
        worker.process.exited.add_done_callback(
            lambda exited: self.let_go(trace_id, _of_death(exited.result()))
        )
        return True

    def find(self, trace_id: str) -> RetainedWorker | None:
        """Return the worker of that execution with a renewed time limit; None if it no longer exists."""
        retained = self._retained.get(trace_id)
        if retained is not None:
            self._set_timer(trace_id, self._timers[trace_id][1])
        return retained

    def hold(self, trace_id: str) -> None:
        """Pause its time limit until it is used again; for a console that is open."""
        if trace_id in self._timers:
            self._timers[trace_id][0].cancel()

    def reason(self, trace_id: str) -> str:
        """Return why there is none, if known."""
        return self._reasons.get(trace_id, "")

    def let_go(self, trace_id: str, reason: str) -> None:
        """Stop one worker; no error if it has already ended."""
        if (retained := self._take(trace_id, reason)) is not None:
            self._retire(retained.worker)

    async def close(self) -> None:
        """Stop all of them, and return when they have ended."""
        retained_workers = [
            self._take(trace_id, "healkit was shut down") for trace_id in list(self._retained)
        ]
        # As the interpreter ends there are no threads to remove folders with: the pool removes them all.
        await asyncio.gather(
            *(
                retained_worker.worker.close()
                for retained_worker in retained_workers
                if retained_worker is not None
            ),
            return_exceptions=True,
        )

    def _take(self, trace_id: str, reason: str) -> RetainedWorker | None:
        retained = self._retained.pop(trace_id, None)
        if retained is not None:
            self._timers.pop(trace_id)[0].cancel()
            self._watches.pop(trace_id).cancel()
            retained.hang_up()
            self._remember(trace_id, reason)
        return retained

    async def _limit_disk(self, trace_id: str) -> None:
        """Stop a worker that has written too much, during its execution or since then."""
        retained = self._retained[trace_id]
        sandbox, layers, process = retained.worker.sandbox, retained.worker.layers, retained.worker.process
        assert process is not None
        if is_bounded(sandbox, layers):
            return
        if not await look(sandbox, process.pid):
            await until_over(sandbox, layers, process.pid, lambda: retained.runs)
        self.let_go(trace_id, _KILLED["disk_limit"])

    def _set_timer(self, trace_id: str, after_s: float) -> None:
        if trace_id in self._timers:
            self._timers[trace_id][0].cancel()
        handle = asyncio.get_running_loop().call_later(
            after_s, self.let_go, trace_id, f"it was not used for {after_s:g} s"
        )
        self._timers[trace_id] = (handle, after_s)

    def _remember(self, trace_id: str, reason: str) -> None:
        self._reasons[trace_id] = reason
        while len(self._reasons) > _REMEMBERED:
            del self._reasons[next(iter(self._reasons))]


def _of_death(status: int) -> str:
    return "it used up its processor time" if status == -signal.SIGXCPU else "its process has ended"


def _why_not(worker: Worker, outcome: Outcome, config: Config) -> str:
    """Return why the worker of a failed execution is not retained, or an empty text."""
    if outcome.complete is None or outcome.complete.failure is None:
        return _KILLED.get(outcome.ending, "it was killed")
    if outcome.complete.failure.code in _WITHOUT_STACK:
        return "the tool had already returned, so its frames no longer existed"
    if not isinstance(worker, KernelWorker):
        return "it ran in a plain subprocess, which cannot be inspected"
    if config.post_mortem_kept == 0:
        return "failed workers are not kept (HEALKIT_POST_MORTEM_KEPT=0)"
    return "" if worker.alive else "its process has ended"


_NOT_KNOWN = "another process ran it, or healkit has been shut down since"


async def retained_worker(trace_id: str, *, hold: bool = False) -> RetainedWorker:
    """Return the worker of a failed execution; raises `PostMortemGone` with the reason.

    hold: Pause its time limit.
    """
    reason = ""
    for retained in _all():
        if (worker := retained.find(trace_id)) is not None:
            if hold:
                retained.hold(trace_id)
            return worker
        reason = reason or retained.reason(trace_id)
    raise PostMortemGone(
        f"The worker of that execution cannot be inspected: {reason or _NOT_KNOWN}.",
        hint="Run the tool again; HEALKIT_POST_MORTEM_KEPT says how many are kept.",
    )


async def let_go(trace_id: str) -> None:
    """Stop the worker of a failed execution before its time limit; no error if there is none."""
    for retained in _all():
        retained.let_go(trace_id, "it was released")


def _all() -> list[RetainedWorkers]:
    return [pool.retained for pool in background.pools() if isinstance(pool.retained, RetainedWorkers)]
