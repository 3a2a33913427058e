"""Worker without a kernel, for the `subprocess` mode."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from healkit.contracts import rpc
from healkit.workers.bridge import CallHandler
from healkit.workers.process import Process, off_loop
from healkit.workers.worker import LAST_CHARS, OnOutput, Outcome, Worker, split_crash_text


class SubprocessWorker(Worker):
    """A restricted interpreter for one execution; what it prints arrives when it ends, and it displays nothing."""

    async def run(
        self,
        init: rpc.Init,
        handler: CallHandler,
        *,
        contents: Sequence[Any] = (),
        on_output: OnOutput | None = None,
        stop: asyncio.Event | None = None,
    ) -> Outcome:
        """Run one tool to its end, whichever that is; never raises for what the tool does."""
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

    async def _launch(self, bridge_fd: int) -> Process:
        return await self._process("healkit.workers.inside.subprocess_main", [], bridge_fd)
