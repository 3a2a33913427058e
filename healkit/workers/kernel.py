"""A worker that is a real Jupyter kernel: displays, tracebacks, post-mortem and consoles come with it."""

from __future__ import annotations

import asyncio
import itertools
import logging
import queue
import signal
from pathlib import Path
from typing import Any

import zmq
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager

from healkit.contracts import rpc
from healkit.errors import WorkerStartFailed
from healkit.workers.bridge import CallHandler
from healkit.workers.outputs import OutputCollector
from healkit.workers.process import Process
from healkit.workers.worker import LAST_CHARS, Ending, OnOutput, Outcome, Worker, split_crash_text

# jupyter_client reports to the terminal what is raised here anyway.
_log = logging.getLogger("healkit.jupyter_client")
_log.setLevel(logging.CRITICAL + 1)

_MESSAGES_WAITING = 100
_MODULE = "healkit.workers.inside"
#: After its end a worker's outputs are awaited until it has been quiet for so many ticks: one that lives, one that is
#: dead or about to be killed. Ticks, because a loop that is held up by another worker's flood hears this one late.
_DRAIN_TICK_S, _QUIET_TICKS, _QUIET_TICKS_DEAD = 0.025, 200, 2
#: And no longer than that, however much still comes.
_DRAIN_S = 15.0
#: How long a kernel's greeting is waited for before it is asked for once more.
_GREETING_S = 0.1


class _WorkerSpecs(KernelSpecManager):  # type: ignore[misc]  # jupyter_client carries no types
    """The one kernel spec of a worker; nothing has to be installed for it."""

    def get_kernel_spec(self, _kernel_name: str) -> KernelSpec:
        """The spec, whatever the name; called by the kernel manager."""
        return KernelSpec(
            argv=["python", "-m", _MODULE, "-f", "{connection_file}"],
            language="python",
            interrupt_mode="message",
            metadata={"kernel_provisioner": {"provisioner_name": "healkit-restricted"}},
        )


class KernelWorker(Worker):
    """A restricted kernel for one execution."""

    _manager: Any = None
    _client: Any = None

    async def run(
        self,
        init: rpc.Init,
        handler: CallHandler,
        *,
        on_output: OnOutput | None = None,
        stop: asyncio.Event | None = None,
    ) -> Outcome:
        """Run one tool to its end, whichever that is; never raises for what the tool does."""
        assert self._bridge is not None
        assert self.process is not None
        self._bridge.serve(handler)
        collector = OutputCollector(init.output_max_bytes, on_output)
        reader = asyncio.create_task(collector.read(self._client, rpc.RUN_ID))
        try:
            self._bridge.send(init)
            ending, detail = await self._wait(init, stop, collector.overflow)
            drained = True
            if ending != "complete" or self._complete.result().shown:
                drained = await self._drain(collector, ending, stop)
        finally:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)
        words, crash_text = ("", "") if ending == "complete" else split_crash_text(self._crash_text())
        return Outcome(
            ending=ending,
            complete=self._complete.result() if ending == "complete" else None,
            status=self.process.exited.result() if ending == "died" else None,
            outputs=collector.outputs,
            last_output=words[-LAST_CHARS:] or collector.last_text(),
            crash_text=crash_text,
            detail=detail,
            drained=drained or ending != "complete",
        )

    async def _drain(self, collector: OutputCollector, ending: Ending, stop: asyncio.Event | None) -> bool:
        """Wait for what it had displayed before it ended; whether all of that has come."""
        heard, quiet, until = collector.heard, 0, self._loop.time() + _DRAIN_S
        while not collector.idle.done():
            lives = ending == "complete" and self.alive
            enough = quiet >= (_QUIET_TICKS if lives else _QUIET_TICKS_DEAD) or self._loop.time() > until
            stopped = ending == "complete" and stop is not None and stop.is_set()
            if enough or stopped or collector.overflow.done():
                return False
            await asyncio.wait([collector.idle], timeout=_DRAIN_TICK_S)
            quiet = quiet + 1 if collector.heard == heard else 0
            heard = collector.heard
        return True

    @property
    def connection_file(self) -> Path:
        """Where other Jupyter clients find it; its owner's only."""
        return Path(self._manager.connection_file)

    def connection_info(self) -> dict[str, Any]:
        """Addresses, key and session, as jupyter_client gives them."""
        info: dict[str, Any] = self._manager.get_connection_info(session=True)
        return info

    def hang_up(self) -> None:
        """Stop serving and hearing it; what is left is a kernel that can be asked. For a run that has ended."""
        assert self._bridge is not None
        self._bridge.close()
        self._client.stop_channels()
        self._client = None

    def pause(self) -> None:
        """Let none of its threads run; not where the process at hand is bubblewrap's and not the kernel's own."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it run again."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self.process is not None and (self.fork_server is not None or self.sandbox.tier != "namespaces"):
            self.process.send(number)

    async def close(self) -> None:
        """Kill the kernel and take away all that belonged to it; safe to call twice and at any stage."""
        if self._client is not None:
            self._client.stop_channels()
        if self._manager is not None:
            self._manager.cleanup_connection_file()
            self._manager.context.destroy(linger=0)
            self._manager = None
        await super().close()

    async def _start(self) -> None:
        await super()._start()
        # Only now: a client that connects before the sockets are bound waits for ZeroMQ's reconnection.
        self._client = self._manager.client()
        self._client.start_channels(shell=False, stdin=False, hb=False, control=False)
        assert self.process is not None
        welcome = asyncio.create_task(until_heard(self._client))
        events: list[asyncio.Future[Any]] = [welcome, self.process.exited]
        try:
            await asyncio.wait(events, return_when=asyncio.FIRST_COMPLETED)
            if not welcome.done():
                raise WorkerStartFailed(f"its process ended with status {self.process.exited.result()}")
        finally:
            welcome.cancel()

    async def _launch(self, bridge_fd: int) -> Process:
        """Through jupyter_client's manager, whose provisioner asks back for the process."""
        ipc = self.sandbox.folder.ipc
        self._manager = AsyncKernelManager(
            kernel_spec_manager=_WorkerSpecs(),
            transport="ipc",
            ip=str(ipc / "k"),
            connection_file=str(ipc / "connection.json"),
            log=_log,
        )
        # What a worker sends is read into this process's memory: one message at a time, and none without bound.
        self._manager.context.setsockopt(zmq.MAXMSGSIZE, rpc.MAX_FRAME_BYTES)
        self._manager.context.setsockopt(zmq.RCVHWM, _MESSAGES_WAITING)

        async def launch(command: list[str]) -> Process:
            return await self._process(_MODULE, command[3:], bridge_fd)

        await self._manager.start_kernel(launcher=launch)
        process: Process = self._manager.provisioner.process
        return process


async def until_heard(client: Any) -> None:
    """Until a kernel's first message has arrived, whichever it is: before it, what is displayed would be lost.

    `client` is a jupyter_client `AsyncKernelClient` with its iopub channel started. A kernel greets each subscription,
    but one that arrives between two parts of a message that is just being sent is taken in without a word (libzmq
    signals it once, and the sending thread consumes the signal). Then nothing would ever come, so we subscribe to
    something more, again and again.
    """
    for attempt in itertools.count():
        try:
            await client.get_iopub_msg(timeout=_GREETING_S)
        except queue.Empty:
            client.iopub_channel.socket.setsockopt(zmq.SUBSCRIBE, b"healkit-%d" % attempt)
        else:
            return
