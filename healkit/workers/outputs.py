"""What a worker shows, on its way to the host's user.

Everything here is a claim of the worker's (it can write its own messages), so it is only collected, in
nbformat's output dicts, and counted: over the limit the host stops listening and ends the worker.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from healkit.workers.worker import LAST_CHARS

#: About what a message's headers take: not the tool's doing, so not counted for a message that is in order.
_HEADERS_BYTES = 1024
_KINDS = {"stream", "display_data", "execute_result", "update_display_data", "clear_output"}


class OutputCollector:
    """Reads one execution's iopub messages until the kernel is idle again.

    `overflow` is set when more than `max_bytes` have come; `outputs` then holds what came before. `idle` is done once
    the kernel has said that all output of the cell is sent.
    """

    def __init__(self, max_bytes: int, on_output: Callable[[dict[str, Any]], None] | None) -> None:
        self.outputs: list[dict[str, Any]] = []
        #: How many messages have come, of whatever kind.
        self.heard = 0
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
        """Collect until cancelled; one task for each execution.

        From the socket itself, because each message is counted before it is parsed, and one that is none (a wrong
        signature, no JSON, no parent) must neither end the reading nor go uncounted.
        """
        channel = client.iopub_channel
        while True:
            parts = await channel.socket.recv_multipart()
            self.heard += 1
            if self.overflow.done():
                continue
            size_bytes = sum(map(len, parts))
            found = None if size_bytes > self._left + _HEADERS_BYTES else _decoded(channel.session, parts)
            if found is None or found["parent_header"].get("msg_id") != message_id:
                self._count(size_bytes)
                continue
            kind, content = found["msg_type"], found["content"]
            if kind == "status" and content.get("execution_state") == "idle" and not self.idle.done():
                self.idle.set_result(None)
            elif kind in _KINDS and self._count(max(0, size_bytes - _HEADERS_BYTES)):
                self._take(kind, content)

    def _count(self, size_bytes: int) -> bool:
        """Whether that still fits; `overflow` is set when it does not."""
        self._left -= size_bytes
        if self._left < 0:
            self.overflow.set_result(None)
        return self._left >= 0

    def _take(self, kind: str, content: dict[str, Any]) -> None:
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


def _decoded(session: Any, parts: list[bytes]) -> dict[str, Any] | None:
    """The message, signed and shaped as Jupyter's are, or None for whatever else a tool may have sent."""
    try:
        message: dict[str, Any] = session.deserialize(session.feed_identities(parts)[1])
    except Exception:  # noqa: BLE001 - jupyter_client parses bytes of a tool's here: anything may come of it
        return None
    return message if all(isinstance(message[name], dict) for name in ("parent_header", "content")) else None


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
        text = last.pop("text")  # the only reference to it, so that Python can append in place
        text += output["text"]
        last["text"] = text
    return same
