"""What a worker shows, on its way to the host's user.

Everything here is a claim of the worker's (it can write its own messages), so it is only collected, in
nbformat's output dicts, and counted: over the limit the host stops listening and ends the worker.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from healkit.workers.worker import LAST_CHARS

_KINDS = {"stream", "display_data", "execute_result", "update_display_data", "clear_output"}


class OutputCollector:
    """Reads one execution's iopub messages until the kernel is idle again.

    `overflow` is set when more than `max_bytes` have come; `outputs` then holds what came before. `idle` is done once
    the kernel has said that all output of the cell is sent.
    """

    def __init__(self, max_bytes: int, on_output: Callable[[dict[str, Any]], None] | None) -> None:
        self.outputs: list[dict[str, Any]] = []
        self.overflow: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.idle: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # The worker stops itself at the limit; the host's own is for one that does not.
        self._left = 2 * max_bytes
        self._on_output = on_output
        self._tail: deque[str] = deque()

    def last_text(self) -> str:
        """The last 4,000 characters that were printed."""
        return "".join(self._tail)[-LAST_CHARS:]

    async def read(self, client: Any, message_id: str) -> None:
        """Collect until cancelled; one task for each execution."""
        while True:
            message = await client.get_iopub_msg()
            kind, content = message["msg_type"], message["content"]
            if message["parent_header"].get("msg_id") != message_id:
                continue
            if kind == "status" and content.get("execution_state") == "idle" and not self.idle.done():
                self.idle.set_result(None)
            elif kind in _KINDS and not self.overflow.done():
                self._take(kind, content)

    def _take(self, kind: str, content: dict[str, Any]) -> None:
        self._left -= len(msgspec.json.encode(content))
        if self._left < 0:
            self.overflow.set_result(None)
            return
        output = _to_nbformat(kind, content)
        if output is None:
            return
        if output["output_type"] == "stream":
            self._remember(output["text"])
        if not _merge(self.outputs, output):
            self.outputs.append(dict(output))
        if self._on_output is not None:
            self._on_output(output)

    def _remember(self, text: str) -> None:
        self._tail.append(text[-LAST_CHARS:])
        while len(self._tail) > 1 and sum(map(len, self._tail)) - len(self._tail[0]) > LAST_CHARS:
            self._tail.popleft()


def _to_nbformat(kind: str, content: dict[str, Any]) -> dict[str, Any] | None:
    """One message as an output of nbformat 4, or None for what is not shown."""
    if kind == "stream":
        return {
            "output_type": "stream",
            "name": content.get("name", "stdout"),
            "text": str(content.get("text", "")),
        }
    data = content.get("data")
    if not isinstance(data, dict):
        return None
    return {"output_type": "display_data", "data": data, "metadata": content.get("metadata") or {}}


def _merge(outputs: list[dict[str, Any]], output: dict[str, Any]) -> bool:
    """Append text to the last output if that is the same stream, as notebooks do."""
    last = outputs[-1] if outputs else {}
    same: bool = (
        output["output_type"] == last.get("output_type") == "stream" and output["name"] == last["name"]
    )
    if same:
        last["text"] += output["text"]
    return same
