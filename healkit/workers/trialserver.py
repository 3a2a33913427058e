"""Trial servers, on the host's side.

A trial is code and arguments, run in a child forked from a restricted trial server: no kernel, no bridge, no displays.
Its output is kept, and its outcome is told as finely as for any execution.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from healkit.config import Config
from healkit.contracts import claims, rpc
from healkit.contracts.execution import Grants
from healkit.contracts.healing import Batch, Outcomes, Share, ShareDone
from healkit.errors import WorkerError, WorkerNotRestricted, WorkerStartFailed
from healkit.workers.disk_limit import until_over
from healkit.workers.folders import RunFolders
from healkit.workers.forkserver import ONE_THREAD
from healkit.workers.inside.trialserver_main import PRELOAD_VARIABLE, TrialDone, Unsealed
from healkit.workers.probe import require_restricted
from healkit.workers.process import Process, off_loop, spawn
from healkit.workers.sandbox import Sandbox, Tier
from healkit.workers.worker import LAST_CHARS, Outcome, split_crash_text

#: Time beyond a trial's own deadline for its trial server to answer.
_MARGIN_S = 2.0
#: Most bytes to send a busy trial server ahead: less than a socket holds, so that sending never waits.
_AHEAD_BYTES = 64 * 1024
#: Time that an idle trial server is kept; it holds some 10 MiB of its own.
_KEPT_S = 60.0

_FromTrialServer = rpc.Ready | TrialDone | Outcomes | ShareDone | Unsealed
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
        #: Stands for the trial or share under way, while there is one; the scratch folder is looked at then.
        self._work: object | None = None
        #: The one that has written more than it may.
        self._over: object | None = None
        self._watch: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, sandbox: Sandbox, config: Config) -> TrialServer:
        """Start a locked-down trial server that waits for work; raises `WorkerStartFailed`."""
        sandbox.folder.create()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            environment = sandbox.environment(theirs.fileno()) | {PRELOAD_VARIABLE: ",".join(config.preload)}
            if config.preload:
                environment |= ONE_THREAD
            command = [sandbox.python, "-m", "healkit.workers.inside.trialserver_main"]
            process = spawn(sandbox, command, (theirs.fileno(),), environment)
        server = cls(sandbox, config.preload, process, ours)
        try:
            async with asyncio.timeout(config.start_timeout_s):
                await server._until_ready()
        except WorkerNotRestricted:
            await server.close()
            raise
        except (TimeoutError, WorkerError) as error:
            said = sandbox.folder.last_words(2000)
            await server.close()
            raise WorkerStartFailed(
                f"No server for trials could be started: {error}. {said}", hint="Run `healkit doctor`."
            ) from error
        except asyncio.CancelledError:
            await server.close()
            raise
        return server

    async def _until_ready(self) -> None:
        message = await self._receive()
        if not isinstance(message, rpc.Ready):
            raise WorkerError("the trial server began with something else")
        await off_loop(require_restricted, self.sandbox, message.layers, self.process.pid)
        self._watch = asyncio.create_task(self._limit_disk(message.layers))

    async def _limit_disk(self, layers: dict[str, str]) -> None:
        """End it when a trial has written more than it may."""
        await until_over(self.sandbox, layers, self.process.pid, lambda: self._work)
        self._over, self._silent = self._work, True
        self.process.kill()

    async def run(self, init: rpc.Init, following: rpc.Init | None = None) -> Outcome:
        """Run one trial; a trial server that does not answer is dead or stuck, and so is the trial.

        `following`, which must be the next one then, is sent ahead, so that the trial server need not wait for it. If
        the trial server ends before that, it was not run.
        """
        loop = asyncio.get_running_loop()
        work = self._work = object()
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
        except WorkerNotRestricted:
            self._silent = True
            self.process.kill()
            raise
        except (TimeoutError, OSError, WorkerError) as error:
            self._silent = True
            self.process.kill()
            if self._over is work:
                return Outcome("disk_limit")
            return Outcome("lost", detail=f"its server did not answer: {error}")
        finally:
            self._work = None
        outcome: Outcome = await _read(len(done.claim), _outcome, done)
        return outcome

    async def begin(self, batch: Batch) -> None:
        """Make the trial server ready for the shares of a batch; raises `WorkerError`."""
        await self._send(batch)

    async def share(self, share: Share, patience_s: float) -> AsyncIterator[Outcomes | ShareDone]:
        """Yield the outcomes of a share, until it is done; raises `WorkerError` when nothing comes for that long."""
        await self._send(share)
        self._work = object()
        try:
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
        finally:
            self._work = None

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
        if self._watch is not None:
            self._watch.cancel()
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
            message: _FromTrialServer = await _read(len(frame), claims.decode, frame, _decode)
            if isinstance(message, Unsealed):
                raise WorkerNotRestricted(
                    f"A trial was ended before it ran any code: its filter is not in force ({message.reason}).",
                    hint="`healkit doctor` tries each layer. A memory shortage can be the cause: try again.",
                )
        except rpc.FrameTooLarge as error:
            raise WorkerError(f"the trial server sent more than a frame may hold: {error}") from None
        except claims.BadClaim as error:
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
        earlier = self._unwanted.pop(starting, None) is not None
        try:
            return await asyncio.shield(starting)
        except WorkerStartFailed:
            if not earlier:
                raise
            return await self.take(tier, config)  # that start failed for another caller, perhaps long ago
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


async def _read(size_bytes: int, work: Callable[..., Any], *args: Any) -> Any:
    """Read a message; a large one on a thread, so that the event loop does not wait for it."""
    return await off_loop(work, *args) if size_bytes > claims.SMALL_BYTES else work(*args)


def _outcome(done: TrialDone) -> Outcome:
    """Return what the trial server saw, in the words of any other execution."""
    printed, crash_text = split_crash_text(done.printed.decode(errors="replace"))
    last_output = printed[-LAST_CHARS:]
    if done.timed_out:
        return Outcome("timeout", last_output=last_output, crash_text=crash_text)
    if done.claim:
        try:
            return Outcome("complete", complete=claims.decode(done.claim, _claim), last_output=last_output)
        except claims.BadClaim as error:
            return Outcome("protocol", detail=str(error), last_output=last_output)
    return Outcome("died", status=done.status, last_output=last_output, crash_text=crash_text)
