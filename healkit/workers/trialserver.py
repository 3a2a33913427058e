"""Trials by the hundred: servers on the host's side.

A trial is code and arguments, run in a child forked from a restricted trial server: no kernel, no bridge, no displays.
Its output is kept, and its outcome is told as finely as for any execution.
"""

from __future__ import annotations

import asyncio
import math
import socket
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterable

import msgspec

from healkit.config import Config
from healkit.contracts import rpc
from healkit.contracts.batches import Batch, Outcomes, Share, ShareDone
from healkit.contracts.records import Grants
from healkit.errors import WorkerError, WorkerStartFailed
from healkit.workers.folders import RunFolders
from healkit.workers.inside.trialserver_main import PRELOAD_VARIABLE, TrialDone
from healkit.workers.process import Process, off_loop, spawn
from healkit.workers.sandbox import Sandbox, Tier
from healkit.workers.worker import LAST_CHARS, Outcome, split_crash_text

#: Time beyond a trial's own deadline for its trial server to answer.
_MARGIN_S = 2.0
#: Most bytes to send a busy trial server ahead: less than a socket holds, so that sending never waits.
_AHEAD_BYTES = 64 * 1024
#: Send ahead only behind trials faster than this, because what was sent stays with that trial server.
_QUICK_S = 0.05
#: Time that an idle trial server is kept; it holds some 10 MiB of its own.
_KEPT_S = 60.0

_FromTrialServer = rpc.Ready | TrialDone | Outcomes | ShareDone
_decode = msgspec.json.Decoder(_FromTrialServer).decode
_claim = msgspec.json.Decoder(rpc.ExecutionComplete).decode


class TrialServer:
    """Trial server process: one trial at a time. Make it with `TrialServer.start`, and always `close` it."""

    def __init__(
        self, sandbox: Sandbox, preload: tuple[str, ...], process: Process, sock: socket.socket
    ) -> None:
        self.sandbox = sandbox
        self.preload = preload
        self.process = process
        self._sock = sock
        self._frames = rpc.FrameBuffer()
        self._handed: rpc.Init | None = None
        self._silent = False

    @classmethod
    async def start(cls, sandbox: Sandbox, config: Config) -> TrialServer:
        """Start a locked-down trial server that waits for work; raises `WorkerStartFailed`."""
        sandbox.folder.create()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            environment = sandbox.environment(theirs.fileno()) | {PRELOAD_VARIABLE: ",".join(config.preload)}
            command = [sandbox.python, "-m", "healkit.workers.inside.trialserver_main"]
            process = spawn(sandbox, command, (theirs.fileno(),), environment)
        server = cls(sandbox, config.preload, process, ours)
        try:
            async with asyncio.timeout(config.start_timeout_s):
                await server._receive()
        except (TimeoutError, WorkerError) as error:
            said = sandbox.folder.crash_file.read_text(errors="replace")[-2000:]
            await server.close()
            raise WorkerStartFailed(
                f"No server for trials could be started: {error}. {said}", hint="Run `healkit doctor`."
            ) from error
        except asyncio.CancelledError:
            await server.close()
            raise
        return server

    async def run(self, init: rpc.Init, following: rpc.Init | None = None) -> Outcome:
        """Run one trial; a trial server that does not answer is dead or stuck, and so is the trial.

        `following`, which must be the next one then, is sent ahead, so that the trial server need not wait for it. If
        the trial server ends before that, it was not run.
        """
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(init.timeout_s + _MARGIN_S):
                if self._handed is not init:
                    await loop.sock_sendall(self._sock, rpc.encode_frame(init))
                self._handed = None
                if following is not None and len(frame := rpc.encode_frame(following)) <= _AHEAD_BYTES:
                    await loop.sock_sendall(self._sock, frame)
                    self._handed = following
                done = await self._receive()
                if not isinstance(done, TrialDone):
                    raise WorkerError("the server answered something else")
        except (TimeoutError, OSError, WorkerError) as error:
            self._silent = True
            self.process.kill()
            return Outcome("lost", detail=f"its server did not answer: {error}")
        return _outcome(done)

    async def begin(self, batch: Batch) -> None:
        """Make the trial server ready for the shares of a batch; raises `WorkerError`."""
        await self._send(batch)

    async def share(self, share: Share, patience_s: float) -> AsyncIterator[Outcomes | ShareDone]:
        """Yield the outcomes of a share, until it is done; raises `WorkerError` when nothing comes for that long."""
        await self._send(share)
        while True:
            try:
                async with asyncio.timeout(patience_s):
                    message = await self._receive()
            except TimeoutError:
                raise WorkerError(f"the server said nothing for {patience_s:g} s") from None
            if not isinstance(message, Outcomes | ShareDone):
                raise WorkerError("the server answered something else")
            yield message
            if isinstance(message, ShareDone):
                return

    @property
    def alive(self) -> bool:
        """True while it can take another trial; to be asked between trials."""
        if self._silent or self.process.exited.done():
            return False
        try:  # its end of the socket is gone before its end is reported
            return self._sock.recv(1, socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def serves(self, tier: Tier, config: Config) -> bool:
        """Return whether it is what these settings ask for."""
        own = (self.sandbox.tier, self.sandbox.scratch_mb, self.sandbox.open_files, self.preload)
        return own == (tier, config.scratch_mb, config.open_files, config.preload)

    async def close(self) -> None:
        """Kill it and remove its folder; safe to call twice."""
        self._sock.close()
        self.process.kill()
        await asyncio.wait([self.process.exited], timeout=5)
        await off_loop(self.sandbox.folder.remove)

    async def _send(self, message: msgspec.Struct) -> None:
        try:
            await asyncio.get_running_loop().sock_sendall(self._sock, rpc.encode_frame(message))
        except (OSError, rpc.FrameTooLarge) as error:
            raise WorkerError(f"the server could not be told: {error}") from error

    async def _receive(self) -> _FromTrialServer:
        """Return the next message; raises `WorkerError` for what is none, and at the end."""
        loop = asyncio.get_running_loop()
        try:
            while (frame := self._frames.take()) is None:
                chunk = await loop.sock_recv(self._sock, 1 << 16)
                if not chunk:
                    raise WorkerError("the trial server has ended")
                self._frames.feed(chunk)
            message: _FromTrialServer = _decode(frame)
        except rpc.FrameTooLarge as error:
            raise WorkerError(f"the trial server sent more than a frame may hold: {error}") from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise WorkerError(f"the trial server sent what is no message: {error}") from None
        except OSError as error:
            raise WorkerError(f"the trial server has ended: {error}") from error
        return message


class TrialServers:
    """TrialServers at hand. Each is kept for a while after its last trial, because a search asks again and again."""

    def __init__(self, folders: RunFolders) -> None:
        self._folders = folders
        self._idle: dict[TrialServer, asyncio.TimerHandle] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._starting: set[asyncio.Task[TrialServer]] = set()
        #: Starts without a waiting caller, with what they were started for.
        self._unwanted: dict[asyncio.Task[TrialServer], tuple[Tier, Config]] = {}

    async def take(self, tier: Tier, config: Config) -> TrialServer:
        """Return an idle one for these settings, else a new one; raises `WorkerStartFailed`.

        One whose caller has given up goes to the next caller, ready or not: short runs one after the other do not start
        one each.
        """
        for server in list(self._idle):
            if not server.alive:
                self._retire(server)
            elif server.serves(tier, config):
                self._idle.pop(server).cancel()
                return server
        starting = next((task for task, asked in self._unwanted.items() if asked == (tier, config)), None)
        if starting is None:
            sandbox = Sandbox(tier, self._folders.next(), Grants(), config.scratch_mb, config.open_files)
            starting = asyncio.create_task(TrialServer.start(sandbox, config))
            self._starting.add(starting)
            starting.add_done_callback(self._starting.discard)
        self._unwanted.pop(starting, None)
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            self._unwanted[starting] = (tier, config)
            starting.add_done_callback(self._keep)
            raise

    async def keep_or_take(self, server: TrialServer | None, tier: Tier, config: Config) -> TrialServer:
        """Return the one that its user has, while it is alive, else another for the same settings."""
        if server is not None and server.alive:
            return server
        if server is not None:
            await server.close()
        return await self.take(tier, config)

    def _keep(self, starting: asyncio.Task[TrialServer]) -> None:
        unwanted = self._unwanted.pop(starting, None) is not None
        if unwanted and not starting.cancelled() and starting.exception() is None:
            self.give_back(starting.result())

    def give_back(self, server: TrialServer) -> None:
        """Keep it for the next who asks; it has no trial under way."""
        self._idle[server] = asyncio.get_running_loop().call_later(_KEPT_S, self._retire, server)

    async def close(self) -> None:
        """End those that are idle or just being started; the others are their users' to end."""
        for starting in list(self._starting):
            starting.cancel()
        await asyncio.gather(*self._starting, return_exceptions=True)
        for server in list(self._idle):
            self._retire(server)
        while self._ending:
            await asyncio.gather(*self._ending, return_exceptions=True)

    def _retire(self, server: TrialServer) -> None:
        self._idle.pop(server).cancel()
        task = asyncio.get_running_loop().create_task(server.close())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


async def run_trials(
    inits: Iterable[rpc.Init], tier: Tier, config: Config, servers: TrialServers, parallel: int
) -> AsyncGenerator[tuple[int, Outcome, float], None]:
    """Run them all, so many at a time; yields position, outcome and milliseconds as they end, in no order."""
    chosen = list(inits)
    run = _Run(chosen, tier, config, servers, parallel)
    workers = [asyncio.create_task(run.work()) for _ in range(parallel)]
    unneeded: Iterable[asyncio.Task[None] | None] = workers
    try:
        for _ in chosen:
            result = await run.results.get()
            if isinstance(result, BaseException):
                raise result
            yield result
        unneeded = run.starting
    finally:
        for worker in filter(None, list(unneeded)):
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


class _Run:
    """Trials to run, shared by several workers; `starting` are those that wait for a trial server."""

    def __init__(
        self, inits: list[rpc.Init], tier: Tier, config: Config, servers: TrialServers, parallel: int
    ) -> None:
        self.results: asyncio.Queue[tuple[int, Outcome, float] | BaseException] = asyncio.Queue()
        self.starting: set[asyncio.Task[None] | None] = set()
        self._waiting = deque(enumerate(inits))
        self._tier, self._config, self._servers, self._parallel = tier, config, servers, parallel

    async def work(self) -> None:
        """Run trials on one trial server, until none waits."""
        server: TrialServer | None = None
        drawn: tuple[int, rpc.Init] | None = None
        took_s, waiting, task = math.inf, self._waiting, asyncio.current_task()
        try:
            while True:
                self.starting.add(task)
                server = await self._servers.keep_or_take(server, self._tier, self._config)
                self.starting.discard(task)
                # Draw only once ready, so that no trial waits for another trial server's start.
                if drawn is None and not waiting:
                    self._servers.give_back(server)
                    return
                position, init = drawn or waiting.popleft()
                # Draw one more while there are enough for all: then the trial server need not wait for this loop.
                drawn = waiting.popleft() if took_s < _QUICK_S and len(waiting) >= self._parallel else None
                started = time.perf_counter()
                outcome = await server.run(init, drawn and drawn[1])
                took_s = time.perf_counter() - started
                self.results.put_nowait((position, outcome, took_s * 1000))
        except BaseException as error:
            if server is not None:  # perhaps in the middle of a trial
                await server.close()
            self.results.put_nowait(error)
            raise


def _outcome(done: TrialDone) -> Outcome:
    """Return what the trial server saw, in the words of any other execution."""
    printed, crash_text = split_crash_text(done.printed.decode(errors="replace"))
    last_output = printed[-LAST_CHARS:]
    if done.timed_out:
        return Outcome("timeout", last_output=last_output, crash_text=crash_text)
    if done.claim:
        try:
            return Outcome("complete", complete=_claim(done.claim), last_output=last_output)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return Outcome("protocol", detail=str(error), last_output=last_output)
    return Outcome("died", status=done.status, last_output=last_output, crash_text=crash_text)
