"""One worker kernel: start it, let it run one tool, end it.

What happened is decided from what the host itself observes: its own deadline, the process's death, the
bytes that arrived. The worker's `execution_complete` is a claim; it settles nothing but the value or the
traceback.
"""

from __future__ import annotations

import asyncio
import dataclasses
import re
import socket
import sys
from collections.abc import Callable
from typing import Any, Literal

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager

from healkit.config import Config
from healkit.contracts import rpc
from healkit.errors import WorkerStartFailed
from healkit.workers.bridge import Bridge, CallHandler
from healkit.workers.limits import Sandbox
from healkit.workers.outputs import LAST_CHARS, OutputCollector
from healkit.workers.provisioner import RestrictedProvisioner

#: How the host saw it end. `complete` is the only one with a message from the worker.
Ending = Literal["complete", "timeout", "stopped", "died", "protocol", "output_limit"]

_CELL = "__healkit_runner__.run()"
_EXPIRE_EVERY_S = 0.1
_DRAIN_S = 1.0
_CRASH_TEXT_BYTES = 64 * 1024


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a worker ended, as the host saw it.

    `status` is the exit status where the process died by itself: negative for a signal, as in subprocess.
    `last_output` is the end of what was printed; `crash_text` is what `faulthandler` left; `detail` names what broke
    the protocol.
    """

    ending: Ending
    complete: rpc.ExecutionComplete | None = None
    status: int | None = None
    outputs: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    last_output: str = ""
    crash_text: str = ""
    detail: str = ""


class _WorkerSpecs(KernelSpecManager):  # type: ignore[misc]
    """The one kernel spec of a worker; nothing has to be installed for it."""

    def get_kernel_spec(self, _kernel_name: str) -> KernelSpec:
        """The spec, whatever the name; called by the kernel manager."""
        return KernelSpec(
            argv=[sys.executable, "-m", "healkit.workers.inside", "-f", "{connection_file}"],
            language="python",
            interrupt_mode="message",
            metadata={"kernel_provisioner": {"provisioner_name": "healkit-restricted"}},
        )


class Worker:
    """A restricted kernel for one execution; make it with `Worker.start`, and always `close` it."""

    def __init__(self, sandbox: Sandbox, config: Config) -> None:
        self.sandbox = sandbox
        self.config = config
        self.layers: dict[str, str] = {}
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[rpc.Ready] = self._loop.create_future()
        self._complete: asyncio.Future[rpc.ExecutionComplete] = self._loop.create_future()
        self._protocol: asyncio.Future[str] = self._loop.create_future()
        self._died: asyncio.Future[int | None] | None = None
        self._manager: Any = None
        self._client: Any = None
        self._bridge: Bridge | None = None

    @classmethod
    async def start(cls, sandbox: Sandbox, config: Config) -> Worker:
        """A worker that is locked down and waits; raises `WorkerStartFailed` when it is not there in time."""
        worker = cls(sandbox, config)
        try:
            async with asyncio.timeout(config.start_timeout_s):
                await worker._launch()
        except (TimeoutError, OSError, WorkerStartFailed) as error:
            reason = str(error) or f"it was not ready within {config.start_timeout_s:g} s"
            crash_text = worker._crash_text().strip()
            await worker.close()
            said = f"\nIts last words:\n{crash_text}" if crash_text else ""
            raise WorkerStartFailed(
                f"No worker could be started: {reason}.{said}",
                hint="Run `healkit doctor`; on a slow machine give it more time with HEALKIT_START_TIMEOUT_S.",
            ) from error
        except BaseException:
            await worker.close()
            raise
        return worker

    async def run(
        self,
        init: rpc.Init,
        handler: CallHandler,
        *,
        on_output: Callable[[dict[str, Any]], None] | None = None,
        stop: asyncio.Event | None = None,
    ) -> Outcome:
        """Run one tool to its end, whichever that is; never raises for what the tool does."""
        assert self._bridge is not None
        self._bridge.serve(handler)
        collector = OutputCollector(init.output_max_bytes, on_output)
        message_id = self._client.execute(_CELL, store_history=False, allow_stdin=False)
        reader = asyncio.create_task(collector.read(self._client, message_id))
        try:
            self._bridge.send(init)
            ending, detail = await self._wait(init, collector, stop)
            if ending == "complete":
                await asyncio.wait([collector.task_of_idle()], timeout=_DRAIN_S)
            status = None
            if ending == "died" and self._died is not None:
                status = await self._died
                await asyncio.wait([collector.task_of_idle()], timeout=0.05)  # what it still had sent
            words, crash_text = ("", "") if ending == "complete" else split_crash_text(self._crash_text())
            return Outcome(
                ending=ending,
                complete=self._complete.result() if ending == "complete" else None,
                status=status,
                outputs=collector.outputs,
                last_output=words[-LAST_CHARS:] or collector.last_text(),
                crash_text=crash_text,
                detail=detail,
            )
        finally:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)

    async def close(self) -> None:
        """Kill the process and take away all that belonged to it; safe to call twice and at any stage."""
        if self._bridge is not None:
            self._bridge.close()
        if self._client is not None:
            self._client.stop_channels()
        if self._manager is not None:
            if self._manager.has_kernel:
                await self._manager.provisioner.kill()
            if self._died is not None:
                await asyncio.wait([self._died], timeout=5)
            self._manager.cleanup_connection_file()
            self._manager.context.destroy(linger=0)
            self._manager = None
        # Thousands of small files take their time; the loop has other workers to serve.
        await asyncio.to_thread(self.sandbox.folder.remove)

    async def _launch(self) -> None:
        folder = self.sandbox.folder.create()
        ours, theirs = socket.socketpair()
        with theirs:
            self._bridge = Bridge(
                ours,
                self._on_message,
                lambda problem: self._post(self._protocol, problem),
                rpc_timeout_s=self.config.rpc_timeout_s,
                max_in_flight=self.config.max_calls_in_flight,
            )
            self._manager = AsyncKernelManager(
                kernel_spec_manager=_WorkerSpecs(),
                transport="ipc",
                ip=str(folder.ipc / "k"),
                connection_file=str(folder.ipc / "connection.json"),
            )
            await self._manager.start_kernel(sandbox=self.sandbox, bridge_fd=theirs.fileno())
        provisioner: RestrictedProvisioner = self._manager.provisioner
        self._died = asyncio.create_task(provisioner.wait())
        events: list[asyncio.Future[Any]] = [self._ready, self._died]
        await asyncio.wait(events, return_when=asyncio.FIRST_COMPLETED)
        if not self._ready.done():
            raise WorkerStartFailed(f"its process ended with status {self._died.result()}")
        self.layers = self._ready.result().layers
        # Only now: a client that connects before the sockets are bound waits for ZeroMQ's reconnection.
        self._client = self._manager.client()
        self._client.start_channels(stdin=False, hb=False, control=False)
        while (await self._client.get_iopub_msg())["msg_type"] != "iopub_welcome":
            continue

    async def _wait(
        self, init: rpc.Init, collector: OutputCollector, stop: asyncio.Event | None
    ) -> tuple[Ending, str]:
        """Until the first of: the worker's claim, its death, a broken protocol, too much output, stop, deadline."""
        assert self._bridge is not None
        assert self._died is not None
        stopped = asyncio.create_task(stop.wait()) if stop is not None else None
        watched: dict[asyncio.Future[Any], Ending] = {
            self._complete: "complete",
            collector.overflow: "output_limit",
            self._protocol: "protocol",
            self._died: "died",
        }
        if stopped is not None:
            watched[stopped] = "stopped"
        deadline = self._loop.time() + init.timeout_s + self.config.grace_s
        try:
            while (left_s := deadline - self._loop.time()) > 0:
                done, _ = await asyncio.wait(
                    watched, timeout=min(left_s, _EXPIRE_EVERY_S), return_when=asyncio.FIRST_COMPLETED
                )
                self._bridge.expire()
                for future, ending in watched.items():  # in the order above: a claim counts before a death
                    if future in done:
                        return await self._settle(future, ending)
            return "timeout", ""
        finally:
            if stopped is not None:
                stopped.cancel()

    async def _settle(self, future: asyncio.Future[Any], ending: Ending) -> tuple[Ending, str]:
        """An end of file on the bridge is a death that the process's own end is about to explain."""
        if ending != "protocol":
            return ending, ""
        problem: str = future.result()
        if problem:
            return "protocol", problem
        assert self._died is not None
        await asyncio.wait([self._died], timeout=self.config.grace_s)
        return ("died", "") if self._died.done() else ("protocol", "the tool closed the bridge")

    def _on_message(self, message: rpc.Ready | rpc.ExecutionComplete) -> None:
        future: asyncio.Future[Any] = self._ready if isinstance(message, rpc.Ready) else self._complete
        self._post(future, message)

    def _post(self, future: asyncio.Future[Any], value: object) -> None:
        """Hand a value from a bridge thread to the loop; the first one counts."""

        def settle() -> None:
            if not future.done():
                future.set_result(value)

        try:
            self._loop.call_soon_threadsafe(settle)
        except RuntimeError:
            pass  # the loop was closed while the thread was reading: nobody waits any more

    def _crash_text(self) -> str:
        try:
            with self.sandbox.folder.crash_file.open("rb") as file:
                file.seek(max(0, self.sandbox.folder.crash_file.stat().st_size - _CRASH_TEXT_BYTES))
                return file.read().decode(errors="replace")
        except OSError:
            return ""


_DUMP = re.compile(r"^(?:Fatal Python error: |Timeout \(\d+:)", re.MULTILINE)


def split_crash_text(text: str) -> tuple[str, str]:
    """The tool's last words and `faulthandler`'s dump, out of the one file that holds both."""
    starts = [match.start() for match in _DUMP.finditer(text)]
    return (text, "") if not starts else (text[: starts[0]], text[starts[0] :])
