"""A worker's process, however it came to be: spawned by the host, or forked by a nursery."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable
from typing import Any

from healkit.workers.limits import Sandbox


class Process:
    """One process with a pidfd: a handle that no other process can ever take over.

    `exited` becomes its exit status, negative for a signal as in subprocess.
    """

    def __init__(self, pid: int, pidfd: int) -> None:
        self.pid = pid
        self.pidfd = pidfd
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

    def ended(self, status: int) -> None:
        """Take note of the end; called once by whoever reaps the process."""
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1
        if not self.exited.done():
            self.exited.set_result(status)


async def off_loop(work: Callable[..., Any], *args: Any) -> Any:
    """Do it on a thread; here, while the interpreter ends and gives out no more threads."""
    try:
        return await asyncio.to_thread(work, *args)
    except RuntimeError as error:
        if "after" not in str(error):  # "cannot schedule new futures after (interpreter) shutdown"
            raise
        return work(*args)


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
    process = Process(popen.pid, os.pidfd_open(popen.pid))
    _when_readable(process.pidfd, lambda: process.ended(_unwrapped(sandbox, popen.wait())))
    return process


def _unwrapped(sandbox: Sandbox, status: int) -> int:
    """bubblewrap reports its child's signal the way a shell does; back to subprocess's way."""
    return 128 - status if sandbox.tier == "namespaces" and 128 < status <= 192 else status


def _when_readable(fd: int, then: Callable[[], None]) -> None:
    """Call back once the descriptor can be read, which for a pidfd means that the process has ended."""
    loop = asyncio.get_running_loop()

    def ready() -> None:
        loop.remove_reader(fd)
        then()

    loop.add_reader(fd, ready)
