"""Process of a worker: spawned, or forked from a fork server.

A fork server serves one tier and one set of mount grants. It starts in the background with the first execution that
could use it. Until it is ready, or if it is not possible, workers start cold.

Trials have their own server (`workers.trialserver`). A trial is forked thousands of times, and each fork copies the
page tables of everything in the parent. With a kernel's modules in the parent, a trial took 1.6 times as long. Also, a
trial server is locked down before it forks, while a kernel's fork server leaves that to each child.

A worker imports what its work needs, and pandas takes half a second. So a trial server for code or arguments of pandas
or numpy imports that library first, and its children have it. For a tool that gets a frame, there is a spare with
pandas. This only applies to these two libraries: they are the host's own, and a tool cannot change them.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import contextvars
import itertools
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple

import msgspec

from healkit.core.contracts.execution import Grants
from healkit.core.contracts.rpc import Init
from healkit.core.wire import claims
from healkit.core.workers.inside.cleanup import children_of
from healkit.core.workers.inside.forkserver_main import (
    CONTROL_VARIABLE,
    MESSAGE_BYTES,
    Exited,
    Fork,
    Forked,
    ForkServerPlan,
    FromForkServer,
    Preloaded,
)
from healkit.core.workers.sandbox import ForkServerSandbox, RunFolder, Sandbox, Tier
from healkit.errors import WorkerError

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
_PID = re.compile(r"^Pid:\s*([1-9]\d*)$", re.MULTILINE)


class Process:
    """Process with a pidfd: a handle that never refers to another process.

    `exited` becomes its exit status, negative for a signal as in subprocess. `may_fork` means that it can have
    children, which then end with it. These are the processes of its session, and all below it if it adopts daemons
    (`lockdown.adopt_orphans`).
    """

    def __init__(self, pid: int, pidfd: int, *, may_fork: bool) -> None:
        self.pid = pid
        self.pidfd = pidfd
        self.may_fork = may_fork
        self.exited: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def kill(self) -> None:
        """Send SIGKILL; ignore a process that has ended."""
        self.send(signal.SIGKILL)

    def send(self, number: signal.Signals) -> None:
        """Send a signal; ignore a process that has ended."""
        if self.pidfd >= 0:
            try:
                signal.pidfd_send_signal(self.pidfd, number)
            except ProcessLookupError:
                pass

    def end_children(self) -> None:
        """Kill its children, and what these start in the meantime."""
        if self.may_fork and not self.exited.done():
            _end_all_below(self.pid)

    def ended(self, status: int) -> None:
        """Note the end; called once by the code that reaps the process."""
        self.end_children()
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1
        if not self.exited.done():
            self.exited.set_result(status)


def family(pid: int) -> Iterator[int]:
    """Yield the process and all below it, as far as the kernel lists them."""
    waiting, visited = [pid], set[int]()
    while waiting:
        number = waiting.pop()
        if number not in visited:
            visited.add(number)
            yield number
            waiting += children_of(number)


def pid_of(pidfd: int) -> int | None:
    """Return the id, in our namespace, of the process behind a handle; None if it has ended."""
    try:
        match = _PID.search(Path(f"/proc/self/fdinfo/{pidfd}").read_text())
    except OSError:
        return None
    return int(match[1]) if match is not None else None


def cpu_time_s(pid: int) -> float:
    """Return the processor time of a process and all below it so far, in seconds; 0 if it has ended.

    Call it on a thread, because it reads some files of each process.
    """
    ticks = 0
    for number in family(pid):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The name in field 2 may contain anything; fields 14 to 17 are user and system time, own and of
            # ended children.
            fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _end_all_below(leader: int) -> None:
    killed = {leader}
    while remaining := {*_members(leader), *family(leader)} - killed:
        for pid in remaining:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed |= remaining


def _members(session: int) -> Iterator[int]:
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getsid(pid) == session:
                yield pid


def off_loop(work: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
    """Call a function on a thread; on this one if the interpreter is ending and cannot start threads."""
    loop = asyncio.get_running_loop()
    try:
        return loop.run_in_executor(None, partial(contextvars.copy_context().run, work, *args))
    except RuntimeError as error:
        if "after" not in str(error):  # "cannot schedule new futures after (interpreter) shutdown"
            raise
    done: asyncio.Future[T] = loop.create_future()
    try:
        done.set_result(work(*args))
    except Exception as error:  # noqa: BLE001 - passed on to the waiting code
        done.set_exception(error)
    return done


async def surely(work: Callable[[*Ts], T], *args: *Ts) -> T:
    """Call a function on a thread, and wait for its end even if this task is cancelled; then raise the cancellation."""
    task, cancelled = off_loop(work, *args), None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        task.exception()  # the task's own result is not used
        raise cancelled
    return task.result()


def spawn(sandbox: Sandbox, command: list[str], fds: tuple[int, ...], environment: dict[str, str]) -> Process:
    """Start a command in the sandbox, with these descriptors; raise `OSError`.

    Call it on the loop's own thread, which lives as long as the host: bubblewrap's --die-with-parent depends on the
    thread that spawns it. In the `namespaces` tier, the process is bubblewrap, and everything inside dies with it.
    """
    with sandbox.folder.crash_file.open("wb") as crash_file:
        popen = subprocess.Popen(
            sandbox.command(command),
            stdin=subprocess.DEVNULL,
            stdout=crash_file,
            stderr=crash_file,
            env=environment,
            cwd=sandbox.folder.scratch,
            pass_fds=fds,
            start_new_session=True,
        )
    _running.add(popen)
    process = Process(popen.pid, os.pidfd_open(popen.pid), may_fork=sandbox.tier == "process")

    def ended() -> None:
        kill_group(popen)
        process.ended(_unwrapped(sandbox, popen.wait()))
        _running.discard(popen)

    _when_readable(process.pidfd, ended)
    return process


#: Started processes that were not waited for. On a busy machine, a killed process may end later than the loop
#: that would notice it. Forgetting it while it runs would cause a `ResourceWarning`.
_running: set[subprocess.Popen[bytes]] = set()
_owner = os.getpid()


@atexit.register
def _reap() -> None:
    """Kill and wait for processes that no loop has waited for; called at the interpreter's exit."""
    if os.getpid() == _owner:  # a forked child has a copy of its parent's
        for popen in list(_running):
            kill_group(popen)
            popen.wait()


def kill_group(popen: subprocess.Popen[bytes]) -> None:
    """Kill a process that leads its group, with the group; nothing if it was waited for.

    If bubblewrap is killed as it starts, its child, which is in the group too, waits forever (issue 633 of bubblewrap).
    """
    if popen.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(popen.pid, signal.SIGKILL)


def _unwrapped(sandbox: Sandbox, status: int) -> int:
    """Convert bubblewrap's report of a signal, which is a shell's, to the status as in subprocess."""
    return 128 - status if sandbox.tier == "namespaces" and 128 < status <= 192 else status


def _when_readable(fd: int, then: Callable[[], None]) -> None:
    """Call back once the descriptor is readable, which for a pidfd means that the process has ended."""
    loop = asyncio.get_running_loop()

    def ready() -> None:
        loop.remove_reader(fd)
        then()

    loop.add_reader(fd, ready)


# The host's side of a fork server.


_decode = msgspec.json.Decoder(FromForkServer).decode
#: Environment of a process that imports libraries and then forks. A thread pool does not survive a fork, and
#: a memory pool would reserve more than a child may have.
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1") | {
    "ARROW_DEFAULT_MEMORY_POOL": "system"
}


class ForkServerGone(WorkerError):
    """End of the fork server before it answered; its children have ended with it."""


class ForkServer:
    """Preloaded parent in its sandbox; make it with `ForkServer.start`, and always `close` it."""

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
        """Start a fork server whose children may be anywhere below `base`; returns when it is ready.

        Raises `ForkServerGone` or `OSError` if it cannot be started.
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
            command = [sys.executable, "-m", "healkit.core.workers.inside.forkserver_main"]
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
        """True while it accepts requests."""
        return not self.process.exited.done()

    async def fork(self, sandbox: Sandbox, bridge_fd: int, argv: list[str]) -> Process:
        """Return a new child in that sandbox; raise `ForkServerGone`."""
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
        except Exception:  # noqa: BLE001 - an invalid message, or our own fault: report it to the waiting code
            self._loop.remove_reader(self._control)
            self.process.kill()
        finally:
            for descriptor in descriptors:  # those that no process has taken
                os.close(descriptor)

    def _take(self, message: FromForkServer, descriptors: list[int]) -> None:
        """Act on one message; raise `LookupError` for an impossible one."""
        match message:
            case Preloaded(modules=modules):
                if not self._preloaded.done():
                    self._preloaded.set_result(modules)
            case Forked(id=number, pid=pid):
                future, pidfd = self._forking.pop(number), descriptors.pop(0)
                # The fork server's own number is valid only in its namespace.
                process = Process(pid_of(pidfd) or pid, pidfd, may_fork=self.tier == "process")
                self._children[number] = process
                if future.done():  # the caller has given up
                    process.kill()
                else:
                    future.set_result(process)
            case Exited(id=number, status=status):
                self._children.pop(number).ended(status)

    def _gone(self) -> None:
        """Fail all waiting requests, and count every child as ended, since it died with the fork server."""
        if self._control.fileno() >= 0:
            self._loop.remove_reader(self._control)
            self._control.close()
        gone = ForkServerGone("the fork_server has ended")
        waiting: list[asyncio.Future[Any]] = [self._preloaded, *self._forking.values()]
        for future in waiting:
            if not future.done():
                future.set_exception(gone)
                future.exception()  # mark as retrieved, because some callers no longer wait
        self._forking.clear()
        for process in self._children.values():
            process.kill()
            process.ended(-9)
        self._children.clear()


# Libraries that are imported in advance.


PANDAS_TAG = re.compile(
    rb'"@":\["(?:DataFrame|Series|[A-Za-z]*Index|extension|Categorical|Timestamp|Timedelta|Period|Interval)"'
)


def library_of(init: Init) -> str:
    """Return pandas if the arguments contain one of its frames, because the worker must then import it first."""
    return "pandas" if init.contents and PANDAS_TAG.search(bytes(init.arguments)) else ""
