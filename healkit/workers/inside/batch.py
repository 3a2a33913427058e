"""Batches in a trial server: many candidates a child.

A child is watched, and replaced where it ends early. A child that hangs in C code, or swallows its alarms, is killed
when its position in the buffer has not changed for longer than the check may take, unless it has hardly computed
meanwhile: then the machine is busy, and it gets more time. One that crashes ends by itself. In both cases the batch
goes on in another child after that check, whose result is `t` or `d`.

A child can write any letters it likes, but only its own search suffers: a winner is validated afresh, each check in a
process of its own.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from typing import NoReturn

import msgspec

from healkit.contracts.healing import DIED, TIMED_OUT, Batch, Outcomes, Share, ShareDone
from healkit.workers.inside.candidate_checks import Candidates
from healkit.workers.inside.preimport import preimport
from healkit.workers.inside.result_buffer import ResultBuffer
from healkit.workers.inside.scratch import empty_folder
from healkit.workers.inside.time_limits import waited_s

#: Pause between looks at the buffer, and time allowed beyond a check's limit.
_TICK_S = 0.01
_GRACE_S = 0.25
#: Limit for compiling a candidate, and for cleaning up after a check.
_BETWEEN_S = 2.0
#: Kind of a process's clock, in the number that names it (Linux, `CPUCLOCK_SCHED` in posix-timers.h).
_OF_PROCESS = 2
#: A child that has not computed as long as its check may is left alone for so many times as long.
_WAITING_TIMES = 5


class BatchServer:
    """Serves one batch: made when it begins, then `share` for each share.

    `become` turns this process, a fresh fork, into a sealed child and runs what it is given there; `send` sends a
    message to the host.
    """

    def __init__(
        self,
        batch: Batch,
        become: Callable[[Callable[[], None]], NoReturn],
        send: Callable[[msgspec.Struct], None],
        folder: str,
    ) -> None:
        self._batch = batch
        self._become, self._send, self._folder = become, send, folder
        preimport(batch.code)
        self._candidates = Candidates(batch, folder)

    def share(self, share: Share) -> None:
        """Run a share to its end, in as many children as it takes, and tell the outcomes as they come."""
        buffer = ResultBuffer(len(share.candidates), len(self._batch.checks))
        told, children, setup_us = 0, 0, 0
        place = (0, 0)
        try:
            while place[0] < len(share.candidates):
                children += 1
                before = place
                place, told = self._child(share, buffer, place, told)
                setup_us += buffer.ready_us
                if place == before:  # no progress: skip that check
                    place = self._after(buffer, *place, DIED)
            self._tell(buffer, told, len(share.candidates))
            self._send(ShareDone(setup_us / 1e6, children))
        finally:
            buffer.close()

    def _child(
        self, share: Share, buffer: ResultBuffer, start: tuple[int, int], told: int
    ) -> tuple[tuple[int, int], int]:
        """Run one child to its end; return where the next begins, and how many candidates have been reported."""
        buffer.at(*start)
        buffer.ready_us = 0
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            self._become(lambda: self._candidates.run(share.candidates, buffer, start))
        os.close(writing)
        stuck = False
        word, since, computed_s = buffer.word, time.monotonic(), 0.0
        try:
            while not self._ended(pid, reading):
                if buffer.word != word:
                    word, since, computed_s = buffer.word, time.monotonic(), _computed_s(pid)
                    told = self._tell(buffer, told, min(buffer.place[0], len(share.candidates)))
                elif self._is_stuck(buffer, time.monotonic() - since, _computed_s(pid) - computed_s):
                    stuck = True
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                    break
        finally:
            os.close(reading)
            empty_folder(self._folder)
        candidate, check, running = buffer.place
        if candidate < len(share.candidates) and (running or stuck):
            return self._after(buffer, candidate, check, TIMED_OUT if stuck and running else DIED), told
        return (candidate, check), told

    def _ended(self, pid: int, reading: int) -> bool:
        """Wait for a tick, or for the end of the child; a child may close its end of the pipe and live on."""
        ready, _, _ = select.select([reading], [], [], _TICK_S)
        ended = os.waitpid(pid, os.WNOHANG)[0] == pid
        if ready and not ended:
            time.sleep(0.0005)  # its descriptors are closed, but it has not quite ended
        return ended

    def _is_stuck(self, buffer: ResultBuffer, took_s: float, computed_s: float) -> bool:
        """Return whether a child is stuck: at one place for `took_s` by the clock, in which it computed so long."""
        _, check, running = buffer.place
        checks = self._batch.checks
        limit_s, patience_s = _BETWEEN_S, _BETWEEN_S
        if running and check < len(checks):
            limit_s = checks[check].timeout_s
            patience_s = waited_s(limit_s) + _GRACE_S
        return took_s > (patience_s if computed_s > limit_s else _WAITING_TIMES * patience_s)

    def _after(self, buffer: ResultBuffer, candidate: int, check: int, letter: str) -> tuple[int, int]:
        """Put down how a check ended whose child has, and where to go on."""
        if check < buffer.checks:
            buffer.put(candidate, check, letter)
        if self._batch.every and check + 1 < buffer.checks:
            return candidate, check + 1
        return candidate + 1, 0

    def _tell(self, buffer: ResultBuffer, told: int, done: int) -> int:
        """Send the rows of the candidates that are done and have not been told of."""
        if done > told:
            self._send(Outcomes(told, [buffer.row(candidate) for candidate in range(told, done)]))
        return max(told, done)


def _computed_s(pid: int) -> float:
    """Return the computing time that a child has used so far, in seconds; it must not have been waited for."""
    return time.clock_gettime((~pid << 3) | _OF_PROCESS)
