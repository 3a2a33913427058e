"""Fork server, host's side: start it, ask it for workers.

A fork server serves one tier and one set of mount grants. It is started in the background with the first execution that
could use it. Until it is ready, and where there can be none, workers start cold.

Trials have a server of their own (`workers.trialserver`). A trial is forked thousands of times, and each fork copies
the page tables of all that the parent holds: with a kernel's modules in it, a trial took 1.6 times as long. And a trial
server is locked down before it forks, where a kernel's fork server leaves that to each child.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import socket
import sys
from pathlib import Path
from typing import Any

import msgspec

from healkit.contracts import claims
from healkit.contracts.execution import Grants
from healkit.errors import WorkerError
from healkit.workers.folders import RunFolder
from healkit.workers.inside.forkserver_main import (
    CONTROL_VARIABLE,
    MESSAGE_BYTES,
    Exited,
    Fork,
    Forked,
    ForkServerPlan,
    FromForkServer,
    Preloaded,
)
from healkit.workers.process import Process, spawn
from healkit.workers.process_status import pid_of
from healkit.workers.sandbox import ForkServerSandbox, Sandbox, Tier

_decode = msgspec.json.Decoder(FromForkServer).decode
#: Environment of a process that imports libraries and then forks: a pool of threads does not survive that, and a pool
#: of memory would reserve more than a child may have.
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1") | {
    "ARROW_DEFAULT_MEMORY_POOL": "system"
}


class ForkServerGone(WorkerError):
    """End of the fork server before it answered; its children have ended with it."""


class ForkServer:
    """A preloaded parent in its sandbox; make it with `ForkServer.start`, and always `close` it."""

    def __init__(self, process: Process, control: socket.socket, folder: RunFolder, tier: Tier) -> None:
        self.process = process
        self.folder = folder
        self.tier = tier
        self._control = control
        self._loop = asyncio.get_running_loop()
        self._ids = itertools.count(1)
        self._preloaded: asyncio.Future[int] = self._loop.create_future()
        self._forking: dict[int, asyncio.Future[Process]] = {}
        self._children: dict[int, Process] = {}
        self._loop.add_reader(control, self._receive)
        process.exited.add_done_callback(lambda _: self._gone())

    @classmethod
    async def start(
        cls,
        tier: Tier,
        base: Path,
        folder: RunFolder,
        grants: Grants,
        preload: tuple[str, ...],
    ) -> ForkServer:
        """Start one whose children may live anywhere below `base`; returns when it is ready.

        Raises `ForkServerGone` or `OSError` when it cannot be started.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        sandbox = ForkServerSandbox(
            tier, folder.create(), Grants(read=grants.read, write=grants.write), base=base
        )
        with theirs:
            plan = ForkServerPlan(theirs.fileno(), list(preload))
            environment = sandbox.environment(theirs.fileno()) | {
                CONTROL_VARIABLE: msgspec.json.encode(plan).decode()
            }
            if preload:
                environment |= ONE_THREAD
            command = [sys.executable, "-m", "healkit.workers.inside.forkserver_main"]
            process = spawn(sandbox, command, (theirs.fileno(),), environment)
        fork_server = cls(process, ours, folder, tier)
        try:
            await fork_server._preloaded
        except BaseException:
            await fork_server.close()
            raise
        return fork_server

    @property
    def alive(self) -> bool:
        """True while it can be asked."""
        return not self.process.exited.done()

    async def fork(self, sandbox: Sandbox, bridge_fd: int, argv: list[str]) -> Process:
        """Return a new child in that sandbox; raises `ForkServerGone`."""
        request = Fork(next(self._ids), sandbox.restrictions(-1), sandbox.environment(None), argv)
        future: asyncio.Future[Process] = self._loop.create_future()
        self._forking[request.id] = future
        with sandbox.folder.crash_file.open("wb") as crash_file:
            try:
                socket.send_fds(
                    self._control, [msgspec.json.encode(request)], [bridge_fd, crash_file.fileno()]
                )
            except OSError as error:
                del self._forking[request.id]
                raise ForkServerGone(f"the fork_server does not answer: {error}") from error
        return await future

    async def close(self) -> None:
        """Kill it and all its children; safe to call twice."""
        self.process.kill()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self.process.exited), 5)
        self._gone()
        self.folder.remove()

    def _receive(self) -> None:
        """Read one message from the fork server; called by the loop."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self._control, MESSAGE_BYTES, 4)
        except BlockingIOError:
            return
        except OSError:
            data, descriptors = b"", []
        if not data:
            self._loop.remove_reader(self._control)
            self.process.kill()
            return
        try:
            self._take(claims.decode(data, _decode), descriptors)
        except Exception:  # noqa: BLE001 - no message, about an unknown child, or a fault of ours: who waits must hear of it
            self._loop.remove_reader(self._control)
            self.process.kill()
        finally:
            for descriptor in descriptors:  # what no process has taken
                os.close(descriptor)

    def _take(self, message: FromForkServer, descriptors: list[int]) -> None:
        """Act on one message; raises `LookupError` for one that cannot be."""
        match message:
            case Preloaded(modules=modules):
                if not self._preloaded.done():
                    self._preloaded.set_result(modules)
            case Forked(id=number, pid=pid):
                future, pidfd = self._forking.pop(number), descriptors.pop(0)
                # The fork server's own number is one of its namespace.
                process = Process(pid_of(pidfd) or pid, pidfd, may_fork=self.tier == "process")
                self._children[number] = process
                if future.done():  # the caller has given up meanwhile
                    process.kill()
                else:
                    future.set_result(process)
            case Exited(id=number, status=status):
                self._children.pop(number).ended(status)

    def _gone(self) -> None:
        """Fail what waits, and count every child as ended: it died with the fork server."""
        if self._control.fileno() >= 0:
            self._loop.remove_reader(self._control)
            self._control.close()
        gone = ForkServerGone("the fork_server has ended")
        waiting: list[asyncio.Future[Any]] = [self._preloaded, *self._forking.values()]
        for future in waiting:
            if not future.done():
                future.set_exception(gone)
                future.exception()  # mark as retrieved: some callers no longer wait
        self._forking.clear()
        for process in self._children.values():
            process.kill()
            process.ended(-9)
        self._children.clear()
