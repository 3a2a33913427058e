"""Session of a notebook's restricted kernel, for its host.

Cells are sent one after the other, and only the reply to each is read. Their output stays with the kernel, so that no
flood of it reaches the host. nbclient collects all outputs and cannot leave that out.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from pathlib import Path
from typing import Any

import zmq.asyncio
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager

from healkit.config import MIB
from healkit.core.workers.sandbox import SCRATCH_FILES
from healkit.core.workers.tiers import exceeds
from healkit.parts.kernels.kernelspec import DEFAULT_DISPLAY_NAME, kernel_json

#: Limits of a reply, and of the folder that the kernel may write to.
_REPLY_MAX_BYTES, _EXCHANGE_MAX_BYTES = 16 * MIB, 2048 * MIB
#: How often the kernel is looked at while a cell runs, and how long one that was interrupted may take.
_LOOK_S, _GRACE_S = 0.25, 3.0
_log = logging.getLogger(f"{__name__}.jupyter")
_log.disabled = True  # what goes wrong is raised too


class _OneSpec(KernelSpecManager):  # type: ignore[misc]  # Jupyter's bases carry no types
    """Finder of one kernel spec, which need not be installed."""

    spec: KernelSpec

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """Return it; called by the kernel manager."""
        return self.spec


class NotebookSession:
    """Kernel for one run of a notebook, and its client; to be used as a context.

    folder: Where the cells run.
    grants: Traits of its provisioner.
    exchange: The folder that it may write to.
    private: A folder that it does not see.
    stop: Ends the running cell.

    Starting it raises `HealkitError` if the machine has no boundary.
    """

    def __init__(
        self, folder: Path, grants: dict[str, Any], exchange: Path, private: Path, stop: threading.Event
    ) -> None:
        self._folder, self._exchange, self._stop = folder, exchange, stop
        specs = _OneSpec()
        specs.spec = KernelSpec(**kernel_json(DEFAULT_DISPLAY_NAME, {**grants, "write": [str(exchange)]}))
        self._context = zmq.asyncio.Context()
        self._context.setsockopt(zmq.MAXMSGSIZE, _REPLY_MAX_BYTES)
        self._manager = AsyncKernelManager(
            kernel_name=DEFAULT_DISPLAY_NAME,
            kernel_spec_manager=specs,
            context=self._context,
            connection_file=str(private / "connection.json"),
            log=_log,
        )
        self._client: Any = None

    async def __aenter__(self) -> NotebookSession:
        try:
            await self._manager.start_kernel(cwd=str(self._folder))
            self._client = self._manager.client()
            self._client.start_channels(iopub=False, stdin=False, hb=False, control=False)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._client is not None:
            self._client.stop_channels()
        if self._manager.has_kernel:
            await self._manager.shutdown_kernel(now=True)
        self._context.destroy(linger=0)

    async def run(
        self, code: str, *, timeout_s: float, silent: bool = False, cell_id: str = ""
    ) -> dict[str, Any]:
        """Run code to its end, and return the reply.

        silent: The code is the host's own, not a cell.

        Its `status` is `ok`, `error`, or `timeout` after an interrupt. If the kernel no longer exists or had to be
        stopped, it is `died` (with `exit_status`), `disk_limit` or `stopped`.
        """
        if self._stop.is_set():
            return {"status": "stopped"}
        content = {"code": code, "silent": silent, "store_history": not silent, "allow_stdin": False}
        session = self._client.session
        request = session.msg("execute_request", content | {"user_expressions": {}, "stop_on_error": False})
        request["metadata"]["cellId"] = cell_id
        self._client.shell_channel.send(request)
        until, timed_out, ended = time.monotonic() + timeout_s, False, ""
        while not ended:
            try:
                reply = await self._client.shell_channel.get_msg(timeout=_LOOK_S)
                if reply["parent_header"].get("msg_id") == request["header"]["msg_id"]:
                    return {**reply["content"], **({"status": "timeout"} if timed_out else {})}
            except queue.Empty:
                pass
            if not await self._manager.is_alive():
                process = self._manager.has_kernel and self._manager.provisioner.process
                return {"status": "died", "exit_status": process.poll() if process else None}
            if self._stop.is_set():
                ended = "stopped"
            elif await self._fills_disk():
                ended = "disk_limit"
            elif time.monotonic() > until and timed_out:
                ended = "timeout"
            elif time.monotonic() > until:
                await self._manager.interrupt_kernel()
                until, timed_out = time.monotonic() + _GRACE_S, True
        await self._manager.shutdown_kernel(now=True)
        return {"status": ended}

    async def _fills_disk(self) -> bool:
        pid = self._manager.provisioner.pid
        return await asyncio.to_thread(exceeds, str(self._exchange), pid, _EXCHANGE_MAX_BYTES, SCRATCH_FILES)
