"""Notebook that is driven as a frontend drives one."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import psutil
from jupyter_client.manager import AsyncKernelManager
from waiting import wait_until

WAIT_S = 60.0
_AGAIN_S = 5.0
#: Time for stopped processes to end.
LEFT_S = 10.0

#: Each is a cell that tries what must not be possible, and prints what it got.
FORBIDDEN = {
    "network": "import socket; socket.create_connection(('127.0.0.1', 1))",
    "somebody's file": "open('/etc/passwd')",
    "writing": "open('/usr/lib/healkit-was-here', 'w')",
    "fork": "import os; os.fork()",
    "program": "import subprocess; subprocess.run(['/bin/true'])",
    "signal": "import os; os.kill(1, 9)",
}


@dataclasses.dataclass
class Reply:
    """Result of a cell."""

    status: str
    text: str
    ename: str
    evalue: str
    outputs: list[dict[str, Any]]


class Notebook:
    """Kernel under a manager, both in an event loop of their own, as a server has them."""

    def __init__(self, name: str, folder: Path) -> None:
        self.started_in = folder
        self.loop = asyncio.new_event_loop()
        self.manager = AsyncKernelManager(kernel_name=name)
        try:
            self.do(self.manager.start_kernel(cwd=str(folder)))
        except BaseException:
            self.loop.close()
            raise
        self.client = self.manager.client()
        self.client.start_channels()
        self.ready()
        self.root = self.folder()

    def do(self, awaitable: Awaitable[Any]) -> Any:
        """Run it to its end, which must come in time."""

        async def bounded() -> Any:
            return await asyncio.wait_for(awaitable, WAIT_S)

        return self.loop.run_until_complete(bounded())

    def ready(self) -> None:
        """Wait until the kernel answers."""
        self.do(self.client.wait_for_ready(timeout=WAIT_S))

    def folder(self) -> Path:
        """Return the run folder of the kernel, as it itself names it."""
        return Path(self.run("import os; print(os.environ['HOME'], end='')").text).parent

    def forget(self) -> None:
        """Let go of all names, as if no cell had been run yet."""
        assert self.run("%reset -f").status == "ok"

    def run(self, code: str, *, stop: bool = False, answer: str | None = None) -> Reply:
        """Run a cell to its end; from its first output on interrupt it, as often as it takes; answer what it asks."""
        outputs: list[dict[str, Any]] = []
        stops: list[asyncio.Task[Any]] = []

        def on_output(message: dict[str, Any]) -> None:
            outputs.append({"type": message["msg_type"], **message["content"]})
            if message["msg_type"] == "stream" and stop and not stops:
                stops.append(self.loop.create_task(self._interrupt()))

        try:
            reply = self.do(
                self.client.execute_interactive(
                    code,
                    timeout=WAIT_S,
                    allow_stdin=answer is not None,
                    stop_on_error=False,
                    output_hook=on_output,
                    stdin_hook=lambda message: self.client.input(
                        message["content"]["prompt"] + (answer or "")
                    ),
                )
            )
        finally:
            for task in stops:
                task.cancel()
        return reply_of(reply["content"], outputs)

    async def _interrupt(self) -> None:
        """Press Stop every few seconds: one that meets the kernel inside `print` may get lost there."""
        while True:
            await self.manager.interrupt_kernel()
            await asyncio.sleep(_AGAIN_S)

    def close(self) -> None:
        """Shut it down as a frontend does."""
        self.client.stop_channels()
        self.do(self.manager.shutdown_kernel())
        self.do(self.loop.shutdown_default_executor())
        self.loop.close()


def reply_of(content: dict[str, Any], outputs: list[dict[str, Any]]) -> Reply:
    """Join a reply and its outputs in one."""
    text = "".join(o["text"] for o in outputs if "text" in o)
    text += "".join(o["data"].get("text/plain", "") for o in outputs if o["type"] == "execute_result")
    return Reply(content["status"], text, content.get("ename", ""), content.get("evalue", ""), outputs)


def wait_until_nothing_is_left_of(root: Path) -> None:
    """Wait until the run folder is gone, and every process that names it."""
    try:
        wait_until(lambda: not leftovers_of(root), LEFT_S)
    except AssertionError:
        raise AssertionError(f"left behind: {leftovers_of(root)}") from None


def leftovers_of(root: Path) -> list[str]:
    """Return the run folder, and the processes that name it."""
    found = [str(root.parent)] if root.parent.exists() else []
    lines = [(p.info["pid"], p.info["cmdline"] or []) for p in psutil.process_iter(["pid", "cmdline"])]
    return found + [f"{pid} {words}" for pid, words in lines if str(root.parent) in " ".join(words)]
