"""Trial servers, on the host's side, one or several at a time.

A trial is code and arguments, run in a child forked from a restricted trial server: no kernel, no bridge, no displays.
Its output is kept, and its outcome is told as finely as for any execution.

Candidates are many variants of one code, scored in small shares: as many as take a trial server about 80 milliseconds,
drawn shortly before it needs them, because the source of the candidates can look at the results of earlier ones. A
trial server that dies loses only the candidate it was at; the rest of its share goes to another.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import math
import os
import re
import socket
import sys
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Generic, TypeVar, TypeVarTuple

import msgspec

from healkit.config import Config
from healkit.core.contracts import rpc
from healkit.core.contracts.execution import Grants
from healkit.core.contracts.patches import Edit  # fmt: skip
from healkit.core.wire import claims, framing
from healkit.core.workers.process import ONE_THREAD, Process, off_loop, spawn
from healkit.core.workers.sandbox import RunFolders, Sandbox, Tier
from healkit.core.workers.tiers import require_restricted, until_over
from healkit.core.workers.worker import LAST_CHARS, Outcome, split_crash_text
from healkit.errors import WorkerError, WorkerNotRestricted, WorkerStartFailed
from healkit.parts.trials.messages import (
    DIED,
    LETTERS,
    NOT_RUN,
    SHARE_MAX,
    SHARE_OUTCOMES_MAX,
    Batch,
    Outcomes,
    Share,
    ShareDone,
)
from healkit.parts.trials.trialserver_main import PRELOAD_VARIABLE, TrialDone, Unsealed

#: Time beyond a trial's own deadline for its trial server to answer.
_MARGIN_S = 2.0
#: Most bytes to send a busy trial server ahead: less than a socket holds, so that sending never waits.
_AHEAD_BYTES = 64 * 1024
#: Time that an idle trial server is kept; it holds some 10 MiB of its own.
_KEPT_S = 60.0

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
_FromTrialServer = rpc.Ready | TrialDone | Outcomes | ShareDone | Unsealed
_decode = msgspec.json.Decoder(_FromTrialServer).decode
_claim = msgspec.json.Decoder(rpc.ExecutionComplete).decode


#: What a library warns of as it is imported, with the line of code that Python shows below: no reason to end.
_WARNINGS = re.compile(r"^\S.*\b\w*Warning: .*\n?(?:^ +.*\n?)*", re.MULTILINE)


def _inodes(paths: Iterable[str]) -> list[int]:
    return [os.stat(path).st_ino if os.path.exists(path) else 0 for path in paths]


class TrialServer:
    """Trial server process: one trial at a time. Make it with `TrialServer.start`, and always `close` it."""

    def __init__(
        self, sandbox: Sandbox, preload: tuple[str, ...], process: Process, sock: socket.socket
    ) -> None:
        self.sandbox = sandbox
        self.preload = preload
        self.process = process
        self._sock = sock
        self._frames = framing.FrameBuffer()
        self._handed: rpc.Init | None = None
        self._silent = False
        self._files = _inodes(sandbox.grants.read)
        #: Stands for the trial or share under way, while there is one; the scratch folder is looked at then.
        self._work: object | None = None
        #: The one that has written more than it may.
        self._over: object | None = None
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
                    await loop.sock_sendall(self._sock, framing.encode_frame(init))
                self._handed = None
                if following is not None and len(frame := framing.encode_frame(following)) <= _AHEAD_BYTES:
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

    def serves(self, tier: Tier, config: Config, read: tuple[str, ...]) -> bool:
        """Return whether it is what these settings ask for."""
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

    async def _send(self, message: msgspec.Struct) -> None:
        try:
            await asyncio.get_running_loop().sock_sendall(self._sock, framing.encode_frame(message))
        except (OSError, framing.FrameTooLarge) as error:
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
        except framing.FrameTooLarge as error:
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
        self._unwanted: dict[asyncio.Task[TrialServer], tuple[Tier, Config, tuple[str, ...]]] = {}

    async def take(self, tier: Tier, config: Config, read: tuple[str, ...] = ()) -> TrialServer:
        """Return an idle one for these settings, else a new one; raises `WorkerStartFailed`.

        read: what its trials may read besides their scratch folder.

        One whose caller has given up goes to the next caller, ready or not: short runs one after the other do not start
        one each.
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


async def _read(size_bytes: int, work: Callable[[*Ts], T], *args: *Ts) -> T:
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


# Several trial servers at a time, each of which draws what it runs next.


R = TypeVar("R")
#: What comes of some items: position and result of each.
Results = list[tuple[int, R]]


@dataclasses.dataclass
class Crew(Generic[R]):
    """Trial servers at one piece of work: how many, where they come from, and what has come of it."""

    tier: Tier
    config: Config
    servers: TrialServers
    parallel: int
    #: Folders and files that the trials may read.
    read: tuple[str, ...] = ()
    results: asyncio.Queue[Results[R] | BaseException | None] = dataclasses.field(
        default_factory=asyncio.Queue
    )
    #: Those that wait for a trial server to start.
    starting: set[asyncio.Task[None] | None] = dataclasses.field(default_factory=set)

    async def run(
        self, member: Callable[[], _Member[R]], is_complete: Callable[[int], bool]
    ) -> AsyncGenerator[Results[R], None]:
        """Yield results as they come, in no order, until all members are done or so many results are all.

        Raises `WorkerStartFailed`.
        """
        members = [asyncio.create_task(member().run()) for _ in range(self.parallel)]
        result_count, running_count = 0, self.parallel
        try:
            while running_count and not is_complete(result_count):
                results = await self.results.get()
                if isinstance(results, BaseException):
                    raise results
                if results is None:
                    running_count -= 1
                else:
                    result_count += len(results)
                    yield results
            for member_starting in filter(None, list(self.starting)):
                member_starting.cancel()
            # Results are complete; let the trial servers finish rather than start others.
            await asyncio.wait(members, timeout=_LAST_WORD_S)
        finally:
            for task in members:
                task.cancel()
            await asyncio.gather(*members, return_exceptions=True)


class _Member(Generic[R]):
    """Member of a crew: one trial server at a time, until nothing is left to draw."""

    def __init__(self, crew: Crew[R]) -> None:
        self.crew = crew
        self.server: TrialServer | None = None
        #: Whether its trial server is in the middle of something.
        self.busy = False

    async def run(self) -> None:
        """Work, and leave the trial server to the next who asks, or end it where it is in the middle of something."""
        try:
            await self.work()
            self.crew.results.put_nowait(None)
        except BaseException as error:
            self.crew.results.put_nowait(error)
            raise
        finally:
            if self.server is not None and self.busy:
                await self.server.close()
            elif self.server is not None:
                self.crew.servers.give_back(self.server)

    async def work(self) -> None:
        """Draw, run and tell, until nothing is left."""
        raise NotImplementedError

    async def prepare(self, server: TrialServer) -> None:
        """Tell a trial server what it has to know before its first item; raises `WorkerError`."""

    async def ready(self) -> TrialServer:
        """Return its trial server, another one where that has died."""
        if self.server is not None:
            if self.server.alive:
                return self.server
            await self.end()
        failed, task = 0, asyncio.current_task()
        while self.server is None:
            self.crew.starting.add(task)
            try:
                self.server = await self.crew.servers.take(self.crew.tier, self.crew.config, self.crew.read)
            except WorkerNotRestricted:
                raise
            except WorkerStartFailed:
                failed += 1
                if failed > 1:  # the first may have been killed while it started
                    raise
                continue
            finally:
                self.crew.starting.discard(task)
            self.busy = True
            try:
                await self.prepare(self.server)
                self.busy = False
            except WorkerError:  # it has died since it was checked
                await self.end()
        return self.server

    async def end(self) -> None:
        """End its trial server."""
        assert self.server is not None
        server, self.server, self.busy = self.server, None, False
        await server.close()


# Trials: each in a child of its own.


#: Send ahead only behind trials faster than this, because what was sent stays with that trial server.
_QUICK_S = 0.05


async def run_trials(
    inits: Sequence[rpc.Init],
    tier: Tier,
    config: Config,
    servers: TrialServers,
    parallel: int,
    more: Callable[[], bool] = lambda: True,
    *,
    read: tuple[str, ...] = (),
) -> AsyncGenerator[tuple[int, Outcome, float], None]:
    """Run them, so many at a time; yields position, outcome and milliseconds as they end, in no order.

    more: asked before each; where it says no, those that are left are not run. read: what they may read.
    """
    crew = Crew[tuple[Outcome, float]](tier, config, servers, parallel, read)
    waiting = deque(enumerate(inits))
    coming = crew.run(lambda: _TrialMember(crew, waiting, more), lambda told: told == len(inits))
    async with contextlib.aclosing(coming):
        async for results in coming:
            for position, (outcome, duration_ms) in results:
                yield position, outcome, duration_ms


class _TrialMember(_Member[tuple[Outcome, float]]):
    """Runs one trial after the other, and hands over a second one ahead while they are quick."""

    def __init__(
        self,
        crew: Crew[tuple[Outcome, float]],
        waiting: deque[tuple[int, rpc.Init]],
        more: Callable[[], bool],
    ) -> None:
        super().__init__(crew)
        self._waiting, self._more = waiting, more

    async def work(self) -> None:
        """Run trials on one trial server, until none waits."""
        drawn: tuple[int, rpc.Init] | None = None
        took_s, waiting = math.inf, self._waiting
        while True:
            # Draw only once ready, so that no trial waits for another trial server's start.
            server = await self.ready()
            if drawn is None and not (waiting and self._more()):
                return
            position, init = drawn or waiting.popleft()
            # Draw one more while there are enough for all: then the trial server need not wait for this loop.
            ahead = took_s < _QUICK_S and len(waiting) >= self.crew.parallel and self._more()
            drawn = waiting.popleft() if ahead else None
            self.busy, began = True, time.perf_counter()
            outcome = await server.run(init, drawn and drawn[1])
            took_s, self.busy = time.perf_counter() - began, False
            self.crew.results.put_nowait([(position, (outcome, took_s * 1000))])


# Candidates: many variants of one code, in shares.


Candidate = Sequence[Edit]
#: Draws up to so many candidates; none when there are no more.
Draw = Callable[[int], Awaitable[Sequence[Candidate]]]
#: Positions of candidates with their letters, as they come.
Scores = list[tuple[int, str]]

#: Time of one share; longer where a child needs long to get ready.
SHARE_S = 0.08
_SETUP_TIMES = 8
_FIRST_SHARE = 16
#: Wait for the end of a share whose outcomes are all there.
_LAST_WORD_S = 0.25
#: Silence allowed beyond what one candidate's checks may take together.
_SILENCE_S = 15.0
_CHECK_EXTRA_S = 1.0


async def run_batch(
    batch: Batch,
    draw: Draw,
    tier: Tier,
    config: Config,
    servers: TrialServers,
    parallel: int,
    read: tuple[str, ...] = (),
) -> AsyncGenerator[Scores, None]:
    """Score all candidates that can be drawn; yields what comes, in no order. Raises `WorkerStartFailed`."""
    crew, cursor = Crew[str](tier, config, servers, parallel, read), Cursor(draw)
    coming = crew.run(
        lambda: _CandidateMember(crew, batch, cursor), lambda told: cursor.ended and told == cursor.drawn
    )
    async with contextlib.aclosing(coming):
        async for scores in coming:
            yield scores


class Cursor:
    """Source of candidates for all trial servers, numbered in the order in which they are drawn."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._lock = asyncio.Lock()
        self.drawn = 0
        self.ended = False

    async def take(self, count: int) -> tuple[int, Sequence[Candidate]]:
        """Return the number of the first, and at most so many candidates; none at the end."""
        async with self._lock:
            if self.ended:
                return self.drawn, ()
            candidates = await self._draw(count)
            first = self.drawn
            self.drawn += len(candidates)
            self.ended = not candidates
            return first, candidates


class _CandidateMember(_Member[str]):
    """Runs one share of a batch's candidates after the other, each sized by how long the last one took."""

    def __init__(self, crew: Crew[str], batch: Batch, cursor: Cursor) -> None:
        super().__init__(crew)
        self._batch, self._cursor = batch, cursor
        self._size = _FIRST_SHARE
        self._patience_s = sum(check.timeout_s + _CHECK_EXTRA_S for check in batch.checks) + _SILENCE_S

    async def prepare(self, server: TrialServer) -> None:
        """Tell it of the batch."""
        await server.begin(self._batch)

    async def work(self) -> None:
        """Run shares until the cursor is at its end."""
        following: asyncio.Task[tuple[int, Sequence[Candidate]]] | None = None
        try:
            await self.ready()
            first, candidates = await self._cursor.take(self._size)
            while candidates:
                # Draw while this share runs, so that the trial server never waits for candidates.
                following = asyncio.create_task(self._cursor.take(self._size))
                await self._share(first, candidates)
                first, candidates = await following
        finally:
            if following is not None:
                following.cancel()

    async def _share(self, first: int, candidates: Sequence[Candidate]) -> None:
        """Run a share to its end, in another trial server if one dies."""
        done, checks = 0, len(self._batch.checks)
        while done < len(candidates):
            server = await self.ready()
            self.busy = True
            try:
                async for letters in self._run(server, candidates[done:]):
                    self.crew.results.put_nowait(list(enumerate(letters, first + done)))
                    done += len(letters)
                self.busy = False
            except WorkerNotRestricted:
                raise
            except WorkerError:
                await self.end()
                if done < len(candidates):
                    self.crew.results.put_nowait([(first + done, (DIED + NOT_RUN * checks)[:checks])])
                    done += 1

    async def _run(self, server: TrialServer, candidates: Sequence[Candidate]) -> AsyncIterator[list[str]]:
        """Yield a share's letters as they come; raises `WorkerError` for letters that cannot be."""
        began, reported_count = time.perf_counter(), 0
        async for message in server.share(Share([list(edits) for edits in candidates]), self._patience_s):
            if isinstance(message, ShareDone):
                self._learn(len(candidates), time.perf_counter() - began, message.setup_s)
                continue
            remaining, checks = len(candidates) - reported_count, len(self._batch.checks)
            if (
                message.first != reported_count
                or len(message.letters) > remaining
                or not are_letters(message.letters, checks)
            ):
                raise WorkerError("the server told of candidates that it was not given")
            reported_count += len(message.letters)
            yield message.letters
        if reported_count != len(candidates):
            raise WorkerError("the server left candidates out")

    def _learn(self, count: int, took_s: float, setup_s: float) -> None:
        """Take the size of the next share from a share of so many."""
        wanted_s = max(SHARE_S, _SETUP_TIMES * setup_s)
        # Fork and exit of a child take about as long as its setup.
        own_s = max(took_s - 2 * setup_s, took_s / 4, 1e-4)
        most = min(SHARE_MAX, SHARE_OUTCOMES_MAX // max(len(self._batch.checks), 1))
        self._size = max(1, min(int(count * wanted_s / own_s), 4 * self._size, most))


def are_letters(rows: Sequence[str], checks: int) -> bool:
    """Return whether each row can be the outcomes of a batch with so many checks."""
    return all(len(row) == checks and not row.strip(LETTERS) for row in rows)
