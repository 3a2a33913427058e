"""Processes of a test's own, many or at the same moment.

They are forked from multiprocessing's fork server, which has imported what they need: Python with the database's
libraries takes a second to start, and eight of them on a busy machine take a minute. Each is a process like any other:
it shares no lock, no thread and no connection with the test, and it can be killed.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.util
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from waiting import WITHIN_S

T = TypeVar("T")
#: What a process calls when it is ready; it returns when all of them are.
Meet = Callable[[], None]

_FORKING = multiprocessing.get_context("forkserver")
# Its sockets' folder, before a test has temporary files made elsewhere: the path of a socket must be short.
multiprocessing.util.get_temp_dir()
_FORKING.set_forkserver_preload(
    [
        "pytest",
        "alembic.command",
        "httpx",
        "mcp.server.mcpserver",
        "uvicorn",
        "healkit.parts.collect.commands",
        "healkit.app",
        "healkit.core.runtime.recording",
        "healkit.parts.collect.service",
        "healkit.parts.collect.standalone",
        "healkit.parts.heal.requests",
        "healkit.parts.sanitizer.sanitizer",
        "healkit.parts.traces.delivery",
    ]
)


class Forked:
    """Process that calls a function with these arguments, in this process's environment unless another is given."""

    def __init__(
        self, function: Callable[..., object], *arguments: Any, environ: Mapping[str, str] = os.environ
    ) -> None:
        self._process = _FORKING.Process(target=_call, args=(dict(environ), function, arguments))
        self._process.start()
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """Its exit code, minus the signal that ended it; None while it runs."""
        return self._process.exitcode

    def wait(self, timeout_s: float = WITHIN_S) -> int:
        """Its exit code, when it has ended."""
        self._process.join(timeout_s)
        code = self._process.exitcode
        assert code is not None, f"process {self.pid} still runs after {timeout_s:g} s"
        return code

    def send_signal(self, number: int) -> None:
        """Send it that signal, if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, number)


class ForkedCommand(Forked):
    """`healkit WORDS…` in such a process; `stderr` is what it writes there."""

    def __init__(self, *words: str, environ: Mapping[str, str]) -> None:
        read, write = _FORKING.Pipe(duplex=False)
        super().__init__(_main, write, words, environ=environ)
        write.close()
        self.stderr = os.fdopen(os.dup(read.fileno()))
        read.close()


def at_once(function: Callable[..., T], *calls: tuple[Any, ...]) -> list[T]:
    """Call `function(meet, *arguments)` in one process for each tuple of arguments; what they returned.

    Each process calls `meet` when it is ready for what they are to do at the same moment.
    """
    pairs = [_FORKING.Pipe() for _ in calls]
    processes = [
        Forked(_answer, theirs, function, arguments)
        for (_, theirs), arguments in zip(pairs, calls, strict=True)
    ]
    channels = [ours for ours, _ in pairs]
    for _, theirs in pairs:
        theirs.close()
    try:
        for channel in channels:
            _receive(channel)
        for channel in channels:
            channel.send(None)
        return [_receive(channel) for channel in channels]
    finally:
        for channel in channels:
            channel.close()
        for process in processes:
            process.wait()


def end_fork_server() -> None:
    """End what else lives as long as this process.

    The two methods are multiprocessing's own, private, and made for its tests.
    """
    forkserver._forkserver._stop()
    resource_tracker._resource_tracker._stop()


def _call(environment: dict[str, str], function: Callable[..., object], arguments: tuple[Any, ...]) -> None:
    os.environ.clear()  # the fork server's, as it was when the first process was started
    os.environ.update(environment)
    function(*arguments)


def _answer(channel: Connection, function: Callable[..., object], arguments: tuple[Any, ...]) -> None:
    def meet() -> None:
        channel.send((None, ""))
        channel.recv()

    warnings.simplefilter("error")
    try:
        channel.send((function(meet, *arguments), ""))
    except Exception:
        channel.send((None, traceback.format_exc()))


def _main(told: Connection, words: tuple[str, ...]) -> None:
    from healkit.faces.cli import main

    os.dup2(told.fileno(), 2)
    told.close()
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)  # the fork server's is of another file
    sys.argv = ["healkit", *words]
    main()


def _receive(channel: Connection) -> Any:
    assert channel.poll(WITHIN_S), f"a process says nothing after {WITHIN_S:g} s"
    said, failure = channel.recv()
    assert not failure, failure
    return said
