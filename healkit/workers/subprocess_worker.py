"""A worker without a kernel, for the `subprocess` mode."""

from __future__ import annotations

import asyncio

from healkit.contracts import rpc
from healkit.workers.bridge import CallHandler
from healkit.workers.process import Process
from healkit.workers.worker import LAST_CHARS, OnOutput, Outcome, Worker, split_crash_text


class SubprocessWorker(Worker):
    """A restricted interpreter for one execution; what it prints arrives when it ends, and it displays nothing."""

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
        self._bridge.send(init)
        overflow: asyncio.Future[None] = self._loop.create_future()
        ending, detail = await self._wait(init, stop, overflow)
        printed, crash_text = split_crash_text(self._crash_text(init.output_max_bytes))
        outputs = [{"output_type": "stream", "name": "stdout", "text": printed}] if printed else []
        for output in outputs if on_output is not None else ():
            on_output(output)  # type: ignore[misc]  # narrowed just above
        return Outcome(
            ending=ending,
            complete=self._complete.result() if ending == "complete" else None,
            status=self.process.exited.result() if ending == "died" else None,
            outputs=list(outputs),
            last_output=printed[-LAST_CHARS:],
            crash_text=crash_text,
            detail=detail,
        )

    async def _launch(self, bridge_fd: int) -> Process:
        return await self._process("healkit.workers.inside.subprocess_main", [], bridge_fd)
