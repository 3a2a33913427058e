"""Syncer: sends the outbox to a collector, in the background.

An execution never waits for it: its trace is in the database when the execution ends, and it only counts one up here. A
batch is sent when enough traces wait, or after a while with those there are. `delivery` judges the answers; this module
decides when to send, how much, when to pause, and when to end.

Each trace is delivered at least once. The collector recognises a trace that it has already, so it stores it once.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Protocol

import msgspec

from healkit.config import Config
from healkit.contracts.traces import DeliveryVerdict, Waiting
from healkit.errors import DatabaseError
from healkit.tracing.collector_client import CollectorClient, DaemonExecutor
from healkit.tracing.delivery import RetryPolicy, judge

#: Limit of the characters of one request's traces, if there is more than one.
_BATCH_MAX_CHARS = 2_000_000
#: Time by which a lease outlasts its request, for storing the verdicts.
_LEASE_MARGIN_S = 20.0
#: Time to end the thread, besides the flush itself.
_END_S = 2.0


class Outbox(Protocol):
    """Queue of traces to send; the store's `Outbox` is one. All methods may raise `DatabaseError`."""

    def claim(self, limit: int, max_bytes: int, lease_s: float) -> list[Waiting]:
        """Take the next traces on lease; called before each request."""
        ...

    def settle(self, verdicts: Sequence[DeliveryVerdict]) -> None:
        """Store the verdicts on them; called after each request."""
        ...

    def release(self) -> None:
        """Give back the leases of this process and of dead ones; called at the start and at the end."""
        ...


class Syncer:
    """Sender of an outbox to the collector at `config.sync_url`, from `start` to `close`."""

    def __init__(self, outbox: Outbox, config: Config) -> None:
        self._outbox = outbox
        self._config = config
        self._policy = RetryPolicy(config.sync_retries, config.sync_backoff_s, config.sync_backoff_max_s)
        self._pid = os.getpid()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._news = 0
        self._counting = threading.Lock()
        self._recorded = False
        self._closing = False
        self._limit = config.sync_batch
        self._failures = 0
        self._not_before = 0.0
        self._last_success: datetime | None = None
        #: Reason why nothing is sent now or any more; empty when all is well.
        self.problem = ""
        self._stopped = False

    def start(self) -> None:
        """Start, with the traces that an earlier process left."""
        self._thread = threading.Thread(target=self._serve, name="healkit-sync", daemon=True)
        self._thread.start()

    def notify(self) -> None:
        """Count one more waiting trace; called after its transaction, cheap, never raises."""
        self._recorded = True
        with self._counting:
            self._news += 1
            full = self._news % self._config.sync_batch == 0
        if full and os.getpid() == self._pid:
            self._call(self._wake.set)

    def send_now(self, timeout_s: float) -> None:
        """Send all that is due, whatever the last attempt said; return when there is no more, or time is up."""
        if self._thread is None or os.getpid() != self._pid:
            return
        done = threading.Event()

        def begin() -> None:
            task = asyncio.ensure_future(self._send_all(timeout_s))
            task.add_done_callback(lambda _: done.set())

        give_up = time.monotonic() + timeout_s + _END_S
        while self._loop is None and time.monotonic() < give_up:
            time.sleep(0.005)
        self._call(begin)
        done.wait(max(0.0, give_up - time.monotonic()))

    def close(self) -> None:
        """Send what can be sent of this process's traces within `sync_flush_s`, and end; safe to call twice.

        The rest waits for the next start.
        """
        if self._thread is None or os.getpid() != self._pid:
            return  # after a fork, the thread and its traces are the parent's
        self._closing = True
        self._call(self._begin_end)
        self._thread.join(timeout=self._config.sync_flush_s + _END_S)
        self._thread = None

    def _call(self, function: Callable[[], object]) -> None:
        """Call a function in the thread's loop, if there is one."""
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # it was closed just now
                loop.call_soon_threadsafe(function)

    def _begin_end(self) -> None:
        self._wake.set()
        if self._main is not None and self._loop is not None:
            self._loop.call_later(self._config.sync_flush_s, self._main.cancel)

    def _serve(self) -> None:
        """Run the loop; the thread's target."""
        with asyncio.Runner() as runner, suppress(asyncio.CancelledError):
            runner.get_loop().set_default_executor(DaemonExecutor())
            runner.run(self._run())

    async def _run(self) -> None:
        self._loop, self._main = asyncio.get_running_loop(), asyncio.current_task()
        self._sending = asyncio.Lock()
        self._client = CollectorClient(
            self._config.sync_url, self._config.sync_token, self._config.sync_timeout_s
        )
        self._release()
        if self._closing:  # closed before there was a loop to tell
            self._begin_end()
        try:
            while not self._closing:
                full = await self._pause()
                if not self._closing and self._may_send():
                    await self._drain(only_full=full)
            if self._recorded and self._may_send():
                await self._drain()
        finally:
            self._release()
            with suppress(asyncio.CancelledError):
                await self._client.close()

    async def _pause(self) -> bool:
        """Wait for a full batch or the end of the interval; after a failure, until the next attempt is due.

        Returns True for a full batch.
        """
        wait_s = self._not_before - time.monotonic()
        if wait_s <= 0 or self._stopped:
            wait_s = self._config.sync_interval_s
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._wake.wait()
        full = self._wake.is_set()
        self._wake.clear()
        return full

    def _may_send(self) -> bool:
        return not self._stopped and time.monotonic() >= self._not_before

    async def _send_all(self, timeout_s: float) -> None:
        """Drain until nothing is due; try again after a failure while there is time."""
        give_up = time.monotonic() + timeout_s
        self._stopped = False
        self._not_before = 0.0
        while True:
            try:
                async with asyncio.timeout(give_up - time.monotonic()):
                    in_order = await self._drain()
            except TimeoutError:
                if not self._sending.locked():  # else the leased traces are being sent
                    self._release()
                return
            if in_order or self._stopped or self._not_before >= give_up:
                return
            await asyncio.sleep(max(0.0, self._not_before - time.monotonic()))

    async def _drain(self, *, only_full: bool = False) -> bool:
        """Send batch after batch until none is due, or something is wrong; return True if nothing was.

        only_full: leave what fills no batch to wait for more, or for the end of the interval.
        """
        async with self._sending:
            if not only_full:
                self._sent(self._news)
            while not self._stopped:
                if only_full and self._news < self._config.sync_batch:
                    return True
                lease_s = self._config.sync_timeout_s + _LEASE_MARGIN_S
                try:
                    batch = self._outbox.claim(self._limit, _BATCH_MAX_CHARS, lease_s)
                    if not batch:
                        return True
                    if not await self._send(batch):
                        return False
                    self._sent(len(batch) if only_full else 0)
                except DatabaseError as error:  # busy or gone: the traces wait, and the lease runs out
                    self._failed(error.message, 0.0)
                    return False
                except Exception as error:  # noqa: BLE001 - the thread must outlive any error
                    self._failed(f"{type(error).__name__}: {error}", 0.0)
                    self._release()
                    return False
            return False

    def _sent(self, traces: int) -> None:
        with self._counting:
            self._news = max(0, self._news - traces)

    async def _send(self, batch: list[Waiting]) -> bool:
        """Send one request and settle it; return True to go on with the next at once."""
        response = await self._client.post(batch)
        judged = judge(batch, response, self._policy, self._last_success)
        verdicts, self._stopped = judged.verdicts, judged.stop
        if judged.trouble:
            pause_s = self._failed(judged.trouble, judged.wait_s)
            verdicts = [msgspec.structs.replace(verdict, delay_s=pause_s) for verdict in verdicts]
        else:
            self.problem, self._failures = "", 0
        if judged.smaller:
            self._limit = max(1, len(batch) // 2)
        elif not judged.trouble:
            self._limit = min(self._config.sync_batch, 2 * self._limit)
        self._outbox.settle(verdicts)
        if judged.trouble:  # counted from now, so that the traces put off are due by then
            self._not_before = time.monotonic() + pause_s
        if any(verdict.state == "sent" for verdict in verdicts):
            self._last_success = datetime.now(UTC)
        return not judged.trouble

    def _failed(self, problem: str, wait_s: float) -> float:
        """Note the trouble and put off the next attempt; return by how many seconds."""
        self.problem = problem
        self._failures += 1
        pause_s = max(wait_s, self._policy.pause_s(self._failures))
        self._not_before = time.monotonic() + pause_s
        return pause_s

    def _release(self) -> None:
        with suppress(DatabaseError):
            self._outbox.release()
