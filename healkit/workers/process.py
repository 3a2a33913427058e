"""Process of a worker, spawned or forked."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from healkit.workers.process_status import family
from healkit.workers.sandbox import Sandbox

T = TypeVar("T")


class Process:
    """Process with a pidfd: a handle that no other process can ever take over.

    `exited` becomes its exit status, negative for a signal as in subprocess. `may_fork` says that nothing keeps it from
    having children, which then end with it: those of the session that it leads, and all below it, where it adopts
    daemons (`lockdown.adopt_orphans`).
    """

    def __init__(self, pid: int, pidfd: int, *, may_fork: bool) -> None:
        self.pid = pid
        self.pidfd = pidfd
        self.may_fork = may_fork
        self.exited: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def kill(self) -> None:
        """SIGKILL; one that has ended already is no error."""
        self.send(signal.SIGKILL)

    def send(self, number: signal.Signals) -> None:
        """Any signal; one that has ended already is no error."""
        if self.pidfd >= 0:
            try:
                signal.pidfd_send_signal(self.pidfd, number)
            except ProcessLookupError:
                pass

    def end_children(self) -> None:
        """Kill what it has started, and what these start meanwhile."""
        if self.may_fork and not self.exited.done():
            _end_all_below(self.pid)

    def ended(self, status: int) -> None:
        """Take note of the end; called once by whoever reaps the process."""
        self.end_children()
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1
        if not self.exited.done():
            self.exited.set_result(status)


def cpu_time_s(pid: int) -> float:
    """Return the processor time of a process and all below it so far, in seconds; 0 for one that has gone.

    To be called on a thread: it reads some files of each process.
    """
    ticks = 0
    for number in family(pid):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The name in field 2 may hold anything; field 14 to 17 are user and system time, own and of ended children.
            fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _end_all_below(leader: int) -> None:
    killed = {leader}
    while found := {*_members(leader), *family(leader)} - killed:
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed |= found


def _members(session: int) -> Iterator[int]:
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getsid(pid) == session:
                yield pid


async def off_loop(work: Callable[..., Any], *args: Any) -> Any:
    """Do it on a thread; here, while the interpreter ends and gives out no more threads."""
    try:
        return await asyncio.to_thread(work, *args)
    except RuntimeError as error:
        if "after" not in str(error):  # "cannot schedule new futures after (interpreter) shutdown"
            raise
        return work(*args)


async def surely(work: Callable[..., T], *args: Any) -> T:
    """Do it on a thread, and wait for its end also where this task is cancelled meanwhile; that then goes on."""
    task: asyncio.Future[T] = asyncio.ensure_future(off_loop(work, *args))
    cancelled = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        task.exception()  # the task is not asked again
        raise cancelled
    return task.result()


def spawn(sandbox: Sandbox, command: list[str], fds: tuple[int, ...], environment: dict[str, str]) -> Process:
    """Start a command inside the sandbox, with these descriptors; raises `OSError`.

    To be called on the loop's own thread, which lives as long as the host: bubblewrap's --die-with-parent is tied to
    the thread that spawns it. In the `namespaces` tier the process is bubblewrap's, and everything inside dies with it.
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
    process = Process(popen.pid, os.pidfd_open(popen.pid), may_fork=sandbox.tier == "process")
    _when_readable(process.pidfd, lambda: process.ended(_unwrapped(sandbox, popen.wait())))
    return process


def _unwrapped(sandbox: Sandbox, status: int) -> int:
    """Undo bubblewrap's way to report a signal, which is a shell's; return the status as subprocess has it."""
    return 128 - status if sandbox.tier == "namespaces" and 128 < status <= 192 else status


def _when_readable(fd: int, then: Callable[[], None]) -> None:
    """Call back once the descriptor can be read, which for a pidfd means that the process has ended."""
    loop = asyncio.get_running_loop()

    def ready() -> None:
        loop.remove_reader(fd)
        then()

    loop.add_reader(fd, ready)
