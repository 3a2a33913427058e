"""Worker: start it, let it run one tool, end it.

This is the common part of kernels and subprocess workers. The host decides the outcome from what it observes itself:
its own deadline, the process's death, the received bytes. The worker's `execution_complete` is not trusted; only the
value or the traceback is taken from it.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import re
import socket
import sys
from collections.abc import Callable, Sequence
from typing import Any, Literal

from healkit.config import MIB, Config
from healkit.core.contracts import rpc
from healkit.core.crossing import regions
from healkit.core.workers.bridge import Bridge, CallHandler
from healkit.core.workers.process import ForkServer, Process, cpu_time_s, off_loop, spawn
from healkit.core.workers.sandbox import Sandbox
from healkit.core.workers.tiers import require_restricted, until_over
from healkit.errors import WorkerError, WorkerNotRestricted, WorkerStartFailed, WorkerUnusable

#: End as the host observed it. Only `complete` comes with a message from the worker.
Ending = Literal["complete", "timeout", "stopped", "died", "lost", "protocol", "output_limit", "disk_limit"]
OnOutput = Callable[[dict[str, Any]], None]

#: Number of characters at the end of the output that are stored with a failure.
LAST_CHARS = 4000
#: Time that a tool gets after its timeout to unwind before it is killed, in seconds.
GRACE_S = 0.4
#: Maximum number of concurrent calls of one execution.
_CALLS_IN_FLIGHT_MAX = 16
_TICK_S = 0.1
#: Time from the end of the bridge to that of the process on a busy machine; if the tool closed the bridge, it
#: is longer.
_DEATH_S = 3.0
_CRASH_TEXT_BYTES = 64 * 1024


@dataclasses.dataclass(frozen=True)
class Outcome:
    """End of a worker, as the host observed it.

    status: Exit status if the process died on its own: negative for a signal, as in subprocess.
    last_output: End of the printed output.
    crash_text: Dump of `faulthandler`.
    detail: Violation of the protocol.
    drained: False if outputs may be missing, because the worker did not send them in time.
    contents: Buffers of the frames and arrays in the result.
    sealed: The same buffers, in memory that cannot change.
    duration_ms: Time of the run itself, if known.
    """

    ending: Ending
    complete: rpc.ExecutionComplete | None = None
    status: int | None = None
    outputs: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    last_output: str = ""
    crash_text: str = ""
    detail: str = ""
    drained: bool = True
    contents: Sequence[Any] = ()
    sealed: Sequence[Any] = ()
    duration_ms: float | None = None


class Retainer:
    """Keeper of failed runs' workers for questions; this class keeps none. A part provides another (`hooks.Specs`)."""

    def retain(self, trace_id: str, worker: Worker, outcome: Outcome, config: Config) -> bool:
        """Keep a worker whose run is over; return False if the caller has to retire it. Called on healkit's loop."""
        return False

    async def close(self) -> None:
        """End all of them, and return when they have ended; called when the pool closes."""


class Worker:
    """Restricted process for one execution; make it with `start`, and always `close` it.

    With a fork server it is forked, otherwise started cold.
    """

    def __init__(self, sandbox: Sandbox, config: Config, fork_server: ForkServer | None) -> None:
        self.sandbox = sandbox
        self.config = config
        self.fork_server = fork_server
        self.layers: dict[str, str] = {}
        self.process: Process | None = None
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[rpc.Ready] = self._loop.create_future()
        self._complete: asyncio.Future[rpc.ExecutionComplete] = self._loop.create_future()
        self._protocol: asyncio.Future[str] = self._loop.create_future()
        self._bridge: Bridge | None = None
        #: Called with the contents of the arguments as sent, in memory that cannot change; on a thread.
        self.on_sent: Callable[[Sequence[Any]], None] | None = None
        #: Region for the result's contents, once there is work.
        self._results: int | None = None

    async def start(self) -> None:
        """Start the process and check its lockdown; raise `WorkerStartFailed`, also if it is not ready in time."""
        try:
            async with asyncio.timeout(self.config.start_timeout_s):
                await self._launch()
                await self._hear()
        except (TimeoutError, OSError, WorkerError) as error:
            stage = (
                "it was locked down, and its kernel not heard," if self._ready.done() else "it was not ready"
            )
            reason = str(error) or f"{stage} within {self.config.start_timeout_s:g} s"
            crash_text = self._crash_text().strip()
            await self.close()
            last_words = f"\nIts last words:\n{crash_text}" if crash_text else ""
            if isinstance(error, WorkerNotRestricted | WorkerUnusable):
                raise
            raise WorkerStartFailed(
                f"No worker could be started: {reason}.{last_words}",
                hint="Run `healkit doctor`; the machine may be too busy.",
            ) from error
        except BaseException:
            await self.close()
            raise

    async def run(
        self,
        init: rpc.Init,
        handler: CallHandler,
        *,
        contents: Sequence[Any] = (),
        on_output: OnOutput | None = None,
        stop: asyncio.Event | None = None,
    ) -> Outcome:
        """Run one tool until it ends in any way; never raises for what the tool does.

        contents: Buffers of the frames and arrays in the arguments, for the places in `init`.
        """
        raise NotImplementedError

    async def _send_work(self, init: rpc.Init, contents: Sequence[Any]) -> None:
        """Send the work, with a region for the arguments' contents and one for the result's."""
        assert self._bridge is not None
        if not init.exact:
            self._bridge.send(init)
            return
        self._results = regions.empty(regions.at_most(self.config.memory_mb * MIB))
        if not contents:
            self._bridge.send(init, [self._results])
            await self._tell_sent([])
            return
        arguments = await off_loop(regions.filled, contents, init.contents)
        try:
            self._bridge.send(init, [arguments, self._results])
            if self.on_sent is not None:
                await self._tell_sent(regions.mapped(arguments, init.contents))
        finally:
            os.close(arguments)

    async def _tell_sent(self, sealed: Sequence[Any]) -> None:
        if self.on_sent is not None:
            await off_loop(self.on_sent, sealed)

    def _ended(
        self,
        ending: Ending,
        detail: str,
        *,
        outputs: list[dict[str, Any]],
        last_output: str,
        crash_text: str,
        drained: bool = True,
    ) -> Outcome:
        """Return the outcome of a run; if the result's contents cannot be trusted, the outcome is a broken protocol."""
        assert self.process is not None
        complete = self._complete.result() if ending == "complete" else None
        contents: list[memoryview] = []
        sealed: list[memoryview] = []
        if complete is not None and complete.contents and self._results is not None:
            try:
                regions.seal(self._results)
                contents = regions.mapped(self._results, complete.contents)
                sealed = regions.mapped(self._results, complete.contents)
            except regions.BadRegion as error:
                ending, complete, detail = "protocol", None, f"the result cannot be read: {error}"
        status = self.process.exited.result() if ending == "died" else None
        return Outcome(
            ending, complete, status, outputs, last_output, crash_text, detail, drained, contents, sealed
        )

    def adopt(self, config: Config) -> None:
        """Adopt another caller's time limits, for a spare that was started with the pool's."""
        self.config = config
        if self._bridge is not None:
            self._bridge.limit(config.rpc_timeout_s, _CALLS_IN_FLIGHT_MAX)

    @property
    def alive(self) -> bool:
        """True while its process runs."""
        return self.process is not None and not self.process.exited.done()

    @property
    def cpu_used_s(self) -> float:
        """Processor time that its process has used so far, in seconds; 0 once it has ended. Read it on a thread."""
        return cpu_time_s(self.process.pid) if self.process is not None and self.alive else 0.0

    async def close(self) -> None:
        """Kill the process and remove everything that belonged to it; safe to call twice and at any stage."""
        if self._bridge is not None:
            self._bridge.close()
        if self._results is not None:
            os.close(self._results)
            self._results = None
        if self.process is not None:
            self.process.kill()
            await asyncio.wait([self.process.exited], timeout=5)
        # Off the loop, because removing thousands of small files takes a while.
        await off_loop(self.sandbox.folder.remove)

    async def _launch(self) -> None:
        """Make folders, bridge and process, and wait for `Ready`."""
        self.sandbox.folder.create()
        argv = self._arguments()
        ours, theirs = socket.socketpair()
        with theirs:
            bridge_fd = theirs.fileno()
            self._bridge = Bridge(
                ours,
                self._on_message,
                lambda problem: self._post(self._protocol, problem),
                rpc_timeout_s=self.config.rpc_timeout_s,
                max_in_flight=_CALLS_IN_FLIGHT_MAX,
            )
            if self.fork_server is not None:
                self.process = await self.fork_server.fork(self.sandbox, bridge_fd, argv)
            else:
                command = [sys.executable, "-m", "healkit.core.workers.inside", *argv]
                self.process = spawn(self.sandbox, command, (bridge_fd,), self.sandbox.environment(bridge_fd))
        events: list[asyncio.Future[Any]] = [self._ready, self.process.exited, self._protocol]
        await asyncio.wait(events, return_when=asyncio.FIRST_COMPLETED)
        if not self._ready.done():
            if self._protocol.done() and self._protocol.result():
                raise WorkerStartFailed(f"it broke the protocol: {self._protocol.result()}")
            await self.process.exited  # the bridge ends with the process, and may be seen to end first
            raise WorkerStartFailed(f"its process ended with status {self.process.exited.result()}")
        self.layers = self._ready.result().layers
        await off_loop(require_restricted, self.sandbox, self.layers, self.process.pid)

    def _arguments(self) -> list[str]:
        """Return the command line of this kind of worker; its folders exist."""
        raise NotImplementedError

    async def _hear(self) -> None:
        """Open the channels of this kind of worker besides the bridge."""

    async def _wait(
        self, init: rpc.Init, stop: asyncio.Event | None, overflow: asyncio.Future[None]
    ) -> tuple[Ending, str]:
        """Wait for the first of: the worker's report, a limit, a broken protocol, its death, stop, deadline."""
        assert self._bridge is not None
        assert self.process is not None
        background = [asyncio.create_task(until_over(self.sandbox, self.layers, self.process.pid))]
        watched: dict[asyncio.Future[Any], Ending] = {
            self._complete: "complete",
            overflow: "output_limit",
            self._protocol: "protocol",
            self.process.exited: "died",
            background[0]: "disk_limit",
        }
        if stop is not None:
            background.append(asyncio.create_task(stop.wait()))  # type: ignore[arg-type]  # its value is not looked at
            watched[background[-1]] = "stopped"
        deadline = self._loop.time() + init.timeout_s + GRACE_S
        try:
            while (left_s := deadline - self._loop.time()) > 0:
                done, _ = await asyncio.wait(
                    watched, timeout=min(left_s, _TICK_S), return_when=asyncio.FIRST_COMPLETED
                )
                self._bridge.expire()
                for future, ending in watched.items():  # in the order above: a report counts before a death
                    if future in done:
                        return await self._settle(future, ending)
                if self._crash_size() > 2 * init.output_max_bytes:
                    return "output_limit", ""
            return "timeout", ""
        finally:
            for task in background:
                task.cancel()
            self.process.end_children()

    async def _settle(self, future: asyncio.Future[Any], ending: Ending) -> tuple[Ending, str]:
        """Distinguish a broken protocol from a death: the bridge's end of file may come before the process's end."""
        assert self.process is not None
        if ending == "disk_limit":
            future.result()  # a check that raised is our own fault, not an exceeded limit
        if ending == "protocol":
            problem: str = future.result()
            if problem:
                return "protocol", problem
            await asyncio.wait([self.process.exited], timeout=_DEATH_S)
            if not self.process.exited.done():
                return "protocol", "the tool closed the bridge"
            ending = "died"
        if ending == "died":
            # Its last message may still be on its way through the bridge's thread, followed by the bridge's
            # end.
            outcomes = (self._complete, self._protocol)
            await asyncio.wait(outcomes, timeout=GRACE_S, return_when=asyncio.FIRST_COMPLETED)
            if self._complete.done():
                return "complete", ""
            if self.fork_server is not None and not self.fork_server.alive:
                return "lost", "the fork_server it was forked from has died"
        return ending, ""

    def _on_message(self, message: rpc.Ready | rpc.ExecutionComplete) -> None:
        future: asyncio.Future[Any] = self._ready if isinstance(message, rpc.Ready) else self._complete
        self._post(future, message)

    def _post(self, future: asyncio.Future[Any], value: object) -> None:
        """Pass a value from a bridge thread to the loop; the first one counts."""

        def settle() -> None:
            if not future.done():
                future.set_result(value)

        try:
            self._loop.call_soon_threadsafe(settle)
        except RuntimeError:
            pass  # the loop was closed while the thread was reading

    def _crash_size(self) -> int:
        try:
            return self.sandbox.folder.crash_file.stat().st_size
        except OSError:
            return 0

    def _crash_text(self, limit: int = _CRASH_TEXT_BYTES) -> str:
        return self.sandbox.folder.last_words(limit)


_DUMP = re.compile(
    r"^(?:Fatal Python error: |Timeout \(\d+:|(?:Current thread|Stack) .*\(most recent)", re.MULTILINE
)


def split_crash_text(text: str) -> tuple[str, str]:
    """Split the crash file into the tool's last output and `faulthandler`'s dump."""
    dump = _DUMP.search(text)
    return (text, "") if dump is None else (text[: dump.start()], text[dump.start() :][:_CRASH_TEXT_BYTES])


class SubprocessWorker(Worker):
    """Restricted interpreter for one execution; its output arrives when it ends, and it displays nothing."""

    async def run(
        self,
        init: rpc.Init,
        handler: CallHandler,
        *,
        contents: Sequence[Any] = (),
        on_output: OnOutput | None = None,
        stop: asyncio.Event | None = None,
    ) -> Outcome:
        """Run one tool until it ends in any way; never raises for what the tool does."""
        assert self._bridge is not None
        assert self.process is not None
        self._bridge.serve(handler)
        await self._send_work(init, contents)
        overflow: asyncio.Future[None] = self._loop.create_future()
        ending, detail = await self._wait(init, stop, overflow)
        printed, crash_text = await off_loop(self._printed, init.output_max_bytes)
        outputs = [{"output_type": "stream", "name": "stdout", "text": printed}] if printed else []
        for output in outputs if on_output is not None else ():
            on_output(output)  # type: ignore[misc]  # narrowed just above
        return self._ended(
            ending,
            detail,
            outputs=list(outputs),
            last_output=printed[-LAST_CHARS:],
            crash_text=crash_text,
        )

    def _printed(self, limit: int) -> tuple[str, str]:
        return split_crash_text(self._crash_text(limit))

    def _arguments(self) -> list[str]:
        return ["--plain"]
