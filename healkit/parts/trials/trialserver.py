"""Trial servers, on the host's side.

A trial server is a restricted process that forks a child for each trial, or for some candidates of a batch. It has no
kernel, no bridge and no displays. Its output is kept, and its outcome is reported as precisely as for any execution.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import sys
from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeVar, TypeVarTuple

import msgspec

from healkit.config import Config
from healkit.core.contracts import rpc
from healkit.core.contracts.execution import Grants
from healkit.core.wire import claims, framing
from healkit.core.workers.process import ONE_THREAD, Process, off_loop, spawn
from healkit.core.workers.sandbox import RunFolders, Sandbox, Tier
from healkit.core.workers.tiers import require_restricted, until_over
from healkit.errors import WorkerError, WorkerNotRestricted, WorkerStartFailed
from healkit.parts.trials import pure_code
from healkit.parts.trials.messages import Results, Share, Unsealed
from healkit.parts.trials.trialserver_main import PRELOAD_VARIABLE

#: Most bytes to send a busy trial server ahead: less than a socket holds, so that sending never waits.
_AHEAD_BYTES = 64 * 1024
#: Time that an idle trial server is kept; it holds some 10 MiB of its own.
_KEPT_S = 60.0

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
_FromTrialServer = rpc.Ready | Results | Unsealed
_decode = msgspec.json.Decoder(_FromTrialServer).decode


#: What a library warns of as it is imported, with the line of code that Python shows below: no reason to end.
_WARNINGS = re.compile(r"^\S.*\b\w*Warning: .*\n?(?:^ +.*\n?)*", re.MULTILINE)


def _inodes(paths: Iterable[str]) -> list[int]:
    return [os.stat(path).st_ino if os.path.exists(path) else 0 for path in paths]


class TrialServer:
    """Trial server process: one share at a time. Make it with `TrialServer.start`, and always `close` it."""

    def __init__(
        self, sandbox: Sandbox, preload: tuple[str, ...], process: Process, sock: socket.socket
    ) -> None:
        self.sandbox = sandbox
        self.preload = preload
        self.process = process
        self._sock = sock
        self._frames = framing.FrameBuffer()
        #: What is to be sent, and the first of it as a frame; of what was sent, the size and how many results it lacks.
        self._waiting: deque[Share] = deque()
        self._frame = b""
        self._sent: deque[tuple[int, int]] = deque()
        self._silent = False
        self._files = _inodes(sandbox.grants.read)
        #: Stands for what is under way, while there is something; the scratch folder is looked at then.
        self._work: object | None = None
        #: The one that has written more than it may.
        self._over: object | None = None
        #: Whether it was ended for that.
        self.scratch_is_full = False
        self._watch: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, sandbox: Sandbox, config: Config) -> TrialServer:
        """Start a locked-down trial server that waits for work; raises `WorkerStartFailed`."""
        sandbox.folder.create()
        sandbox.check_paths()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            environment = sandbox.environment(theirs.fileno()) | {PRELOAD_VARIABLE: ",".join(config.preload)}
            if config.preload:
                environment |= ONE_THREAD
            command = [sys.executable, "-m", "healkit.parts.trials.trialserver_main"]
            process = spawn(sandbox, command, (theirs.fileno(),), environment)
        server = cls(sandbox, config.preload, process, ours)
        try:
            async with asyncio.timeout(config.start_timeout_s):
                await server._until_ready()
        except WorkerNotRestricted:
            await server.close()
            raise
        except (TimeoutError, WorkerError) as error:
            last_words = _WARNINGS.sub("", sandbox.folder.last_words(2000)).strip()
            await server.close()
            slow = (
                f"it was not ready within {config.start_timeout_s:g} s"
                if isinstance(error, TimeoutError)
                else ""
            )
            raise WorkerStartFailed(
                f"No server for trials could be started: {slow or error}. {last_words}".rstrip(),
                hint="Run `healkit doctor`.",
            ) from error
        except asyncio.CancelledError:
            await server.close()
            raise
        return server

    async def _until_ready(self) -> None:
        message = await self._receive()
        if not isinstance(message, rpc.Ready):
            raise WorkerError("the trial server started with an unexpected message")
        await off_loop(require_restricted, self.sandbox, message.layers, self.process.pid)
        self._watch = asyncio.create_task(self._limit_disk(message.layers))

    async def _limit_disk(self, layers: dict[str, str]) -> None:
        """Stop it if a trial has written too much."""
        await until_over(self.sandbox, layers, self.process.pid, lambda: self._work)
        self._over, self._silent = self._work, True
        self.process.kill()

    def put(self, share: Share) -> None:
        """Take a share after the existing ones; `results` sends it, as soon as the socket has room.

        Each trial is its own message, so that no child can see the next one, except for those that may share a child.
        """
        self._waiting += [Share(run) for run in pure_code.runs(share.trials)] or [share]

    async def results(self, patience_s: float) -> Results:
        """Return the next results of its shares.

        Raises `WorkerError` if that takes longer than `patience_s`, or if the trial server ends or sends an impossible
        message; then it cannot be used any more.
        """
        work = self._work = object()
        try:
            async with asyncio.timeout(patience_s):
                await self._send()
                results = await self._receive()
            if not isinstance(results, Results) or not self._took(results):
                raise WorkerError("the server sent an unexpected answer")
        except (TimeoutError, OSError, framing.FrameTooLarge, WorkerError) as error:
            self._silent = True
            self.process.kill()
            if isinstance(error, WorkerNotRestricted):
                raise
            self.scratch_is_full = self._over is work
            why = f"it sent nothing for {patience_s:g} s" if isinstance(error, TimeoutError) else error
            raise WorkerError(f"its server did not answer: {why}") from error
        finally:
            self._work = None
        return results

    async def _send(self) -> None:
        while self._waiting:
            share = self._waiting[0]
            self._frame = self._frame or framing.encode_frame(share)
            size_bytes = len(self._frame)
            if self._sent and sum(size for size, _ in self._sent) + size_bytes > _AHEAD_BYTES:
                return
            await asyncio.get_running_loop().sock_sendall(self._sock, self._frame)
            self._sent.append((size_bytes, len(share.candidates) or len(share.trials)))
            self._waiting.popleft()
            self._frame = b""

    def _took(self, results: Results) -> bool:
        """Count results of sent work; return whether their number is possible."""
        count = len(results.trials) + len(results.letters) + results.back
        if not self._sent or results.back < 0 or not 0 < count <= self._sent[0][1]:
            return False
        size_bytes, left = self._sent.popleft()
        if left > count:
            self._sent.appendleft((size_bytes, left - count))
        return True

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

    def serves(self, tier: Tier, config: Config, read: tuple[str, ...]) -> bool:
        """Return whether it has these settings."""
        settings = (self.sandbox.tier, self.sandbox.scratch_mb, self.preload, self.sandbox.grants.read)
        # A file that was replaced is another one, which it does not see.
        return settings == (tier, config.scratch_mb, config.preload, read) and self._files == _inodes(read)

    async def close(self) -> None:
        """Kill it and remove its folder; safe to call twice."""
        if self._watch is not None:
            self._watch.cancel()
        self._sock.close()
        self.process.kill()
        await asyncio.wait([self.process.exited], timeout=5)
        await off_loop(self.sandbox.folder.remove)

    async def _receive(self) -> _FromTrialServer:
        """Return the next message; raises `WorkerError` for an invalid one, and at the end."""
        loop = asyncio.get_running_loop()
        try:
            while (frame := self._frames.take()) is None:
                chunk = await loop.sock_recv(self._sock, 1 << 16)
                if not chunk:
                    raise WorkerError("the trial server has ended")
                self._frames.feed(chunk)
            message: _FromTrialServer = await read_claim(len(frame), claims.decode, frame, _decode)
            if isinstance(message, Unsealed):
                raise WorkerNotRestricted(
                    f"A trial was stopped before it ran any code: its filter is not active ({message.reason}).",
                    hint="`healkit doctor` tests each layer. A lack of memory can be the cause: try again.",
                )
        except framing.FrameTooLarge as error:
            raise WorkerError(f"the trial server sent more than a frame can hold: {error}") from None
        except claims.BadClaim as error:
            raise WorkerError(f"the trial server sent an invalid message: {error}") from None
        except OSError as error:
            raise WorkerError(f"the trial server has ended: {error}") from error
        return message


class TrialServers:
    """Available trial servers. Each is kept for a while after its last trial, because a search asks repeatedly."""

    def __init__(self, folders: RunFolders) -> None:
        self._folders = folders
        self._idle: dict[TrialServer, asyncio.TimerHandle] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._starting: set[asyncio.Task[TrialServer]] = set()
        #: Starts without a waiting caller, with what they were started for.
        self._unwanted: dict[asyncio.Task[TrialServer], tuple[Tier, Config, tuple[str, ...]]] = {}

    async def take(self, tier: Tier, config: Config, read: tuple[str, ...] = ()) -> TrialServer:
        """Return an idle one for these settings, otherwise a new one; raises `WorkerStartFailed`.

        read: Paths that its trials may read besides their scratch folder.

        A server whose caller has given up goes to the next caller, ready or not, so that short runs do not each start
        one.
        """
        for server in list(self._idle):
            if not server.alive:
                self._retire(server)
            elif server.serves(tier, config, read):
                self._idle.pop(server).cancel()
                return server
        starting = next(
            (task for task, settings in self._unwanted.items() if settings == (tier, config, read)), None
        )
        if starting is None:
            sandbox = Sandbox(tier, self._folders.next(), Grants(read=read), config.scratch_mb)
            starting = asyncio.create_task(TrialServer.start(sandbox, config))
            self._starting.add(starting)
            starting.add_done_callback(self._starting.discard)
        earlier = self._unwanted.pop(starting, None) is not None
        try:
            return await asyncio.shield(starting)
        except WorkerStartFailed:
            if not earlier:
                raise
            return await self.take(
                tier, config, read
            )  # that start failed for another caller, perhaps long ago
        except asyncio.CancelledError:
            self._unwanted[starting] = (tier, config, read)
            starting.add_done_callback(self._keep)
            raise

    def _keep(self, starting: asyncio.Task[TrialServer]) -> None:
        unwanted = self._unwanted.pop(starting, None) is not None
        if unwanted and not starting.cancelled() and starting.exception() is None:
            self.give_back(starting.result())

    def give_back(self, server: TrialServer) -> None:
        """Keep it for the next caller; it has no running trial."""
        self._idle[server] = asyncio.get_running_loop().call_later(_KEPT_S, self._retire, server)

    async def close(self) -> None:
        """Stop those that are idle or starting; the users of the others stop them."""
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


async def read_claim(size_bytes: int, work: Callable[[*Ts], T], *args: *Ts) -> T:
    """Read a message; a large one on a thread, so that the event loop does not wait for it."""
    return await off_loop(work, *args) if size_bytes > claims.SMALL_BYTES else work(*args)
