"""Trials by the hundred: templates on the host's side.

A trial is code and arguments, run in a child forked from a restricted template: no kernel, no bridge, no displays. What
it prints is kept, how it ended is told apart as finely as for any execution.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Iterable

import msgspec

from healkit.config import Config
from healkit.contracts import rpc
from healkit.contracts.records import Grants
from healkit.errors import WorkerError, WorkerStartFailed
from healkit.workers.folders import RunFolders
from healkit.workers.inside.trials import PRELOAD_VARIABLE, TrialDone
from healkit.workers.limits import Sandbox, Tier
from healkit.workers.process import Process, off_loop, spawn
from healkit.workers.worker import LAST_CHARS, Outcome, split_crash_text

#: How much longer than a trial's own deadline its template may take to answer.
_MARGIN_S = 2.0
#: How long a template waits for more trials; it holds some 10 MiB of its own.
_KEPT_S = 60.0

_FromTemplate = rpc.Ready | TrialDone
_decode = msgspec.json.Decoder(_FromTemplate).decode
_claim = msgspec.json.Decoder(rpc.ExecutionComplete).decode


class Template:
    """One template process: one trial at a time. Make it with `Template.start`, and always `close` it."""

    def __init__(
        self, sandbox: Sandbox, preload: tuple[str, ...], process: Process, sock: socket.socket
    ) -> None:
        self.sandbox = sandbox
        self.preload = preload
        self.process = process
        self._sock = sock
        self._received = bytearray()

    @classmethod
    async def start(cls, sandbox: Sandbox, config: Config) -> Template:
        """A locked-down template that waits for work; raises `WorkerStartFailed`."""
        sandbox.folder.create()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            environment = sandbox.environment(theirs.fileno()) | {PRELOAD_VARIABLE: ",".join(config.preload)}
            command = [sandbox.python, "-m", "healkit.workers.inside.trials"]
            process = spawn(sandbox, command, (theirs.fileno(),), environment)
        template = cls(sandbox, config.preload, process, ours)
        try:
            async with asyncio.timeout(config.start_timeout_s):
                await template._receive()
        except (TimeoutError, WorkerError) as error:
            said = sandbox.folder.crash_file.read_text(errors="replace")[-2000:]
            await template.close()
            raise WorkerStartFailed(
                f"No template for trials could be started: {error}. {said}", hint="Run `healkit doctor`."
            ) from error
        return template

    async def run(self, init: rpc.Init) -> Outcome:
        """One trial; a template that does not answer is dead or stuck, and so is the trial."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(init.timeout_s + _MARGIN_S):
                await loop.sock_sendall(self._sock, rpc.encode_frame(init))
                done = await self._receive()
        except (TimeoutError, OSError, WorkerError) as error:
            self.process.kill()
            return Outcome("lost", detail=f"its template did not answer: {error}")
        assert isinstance(done, TrialDone)
        return _outcome(done)

    @property
    def alive(self) -> bool:
        """Whether it can take another trial; to be asked between trials."""
        if self.process.exited.done():
            return False
        try:  # its end of the socket is gone before its end is reported
            return self._sock.recv(1, socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def serves(self, tier: Tier, config: Config) -> bool:
        """Whether it is what these settings ask for."""
        own = (self.sandbox.tier, self.sandbox.scratch_mb, self.sandbox.open_files, self.preload)
        return own == (tier, config.scratch_mb, config.open_files, config.preload)

    async def close(self) -> None:
        """Kill it and remove its folder; safe to call twice."""
        self._sock.close()
        self.process.kill()
        await asyncio.wait([self.process.exited], timeout=5)
        await off_loop(self.sandbox.folder.remove)

    async def _receive(self) -> rpc.Ready | TrialDone:
        loop = asyncio.get_running_loop()
        while True:
            size = int.from_bytes(self._received[:4], "big") if len(self._received) >= 4 else None
            if size is not None and size > rpc.MAX_FRAME_BYTES:
                raise WorkerError("the template sent more than a frame may hold")
            if size is not None and len(self._received) >= 4 + size:
                frame = bytes(self._received[4 : 4 + size])
                del self._received[: 4 + size]
                message: rpc.Ready | TrialDone = _decode(frame)
                return message
            chunk = await loop.sock_recv(self._sock, 1 << 16)
            if not chunk:
                raise WorkerError("the template has ended")
            self._received += chunk


class Templates:
    """Templates at hand. Each is kept for a while after its last trial, because a search asks again and again."""

    def __init__(self, folders: RunFolders) -> None:
        self._folders = folders
        self._idle: dict[Template, asyncio.TimerHandle] = {}
        self._ending: set[asyncio.Task[None]] = set()

    async def take(self, tier: Tier, config: Config) -> Template:
        """An idle one for these settings, else a new one; raises `WorkerStartFailed`."""
        for template in list(self._idle):
            if not template.alive:
                self._retire(template)
            elif template.serves(tier, config):
                self._idle.pop(template).cancel()
                return template
        sandbox = Sandbox(tier, self._folders.next(), Grants(), config.scratch_mb, config.open_files)
        return await Template.start(sandbox, config)

    def give_back(self, template: Template) -> None:
        """Keep it for the next who asks; it has no trial under way."""
        self._idle[template] = asyncio.get_running_loop().call_later(_KEPT_S, self._retire, template)

    async def close(self) -> None:
        """End those that are idle; the others are their users' to end."""
        for template in list(self._idle):
            self._retire(template)
        while self._ending:
            await asyncio.gather(*self._ending, return_exceptions=True)

    def _retire(self, template: Template) -> None:
        self._idle.pop(template).cancel()
        task = asyncio.get_running_loop().create_task(template.close())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


async def run_trials(
    inits: Iterable[rpc.Init], tier: Tier, config: Config, templates: Templates, parallel: int
) -> AsyncIterator[tuple[int, Outcome, float]]:
    """Run them all, so many at a time; yields position, outcome and milliseconds as they end, in no order."""
    waiting = iter(enumerate(inits))
    results: asyncio.Queue[tuple[int, Outcome, float] | BaseException | None] = asyncio.Queue(
        maxsize=4 * parallel
    )

    async def work() -> None:
        template: Template | None = None
        try:
            for position, init in waiting:
                if template is None or not template.alive:
                    if template is not None:
                        await template.close()
                    template = await templates.take(tier, config)
                started = time.perf_counter()
                outcome = await template.run(init)
                await results.put((position, outcome, (time.perf_counter() - started) * 1000))
            if template is not None:
                templates.give_back(template)
            await results.put(None)
        except BaseException as error:
            if template is not None:  # perhaps in the middle of a trial
                await template.close()
            await results.put(error)
            raise

    workers = [asyncio.create_task(work()) for _ in range(parallel)]
    try:
        while any(not worker.done() for worker in workers) or not results.empty():
            result = await results.get()
            if isinstance(result, BaseException):
                raise result
            if result is None:
                parallel -= 1
                if parallel == 0:
                    return
                continue
            yield result
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


def _outcome(done: TrialDone) -> Outcome:
    """What the template saw, in the words of any other execution."""
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
