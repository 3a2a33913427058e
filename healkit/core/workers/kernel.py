"""Worker that is a Jupyter kernel.

The protocol provides displays, tracebacks, post-mortem and consoles. A worker's output is not trusted (it can write its
own messages). So it is only collected, in nbformat's output dicts, and counted: above the limit, the host stops
listening and ends the worker.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import zmq
import zmq.asyncio
from jupyter_client.session import Session

from healkit.core.contracts import rpc
from healkit.core.wire import claims
from healkit.core.workers.bridge import CallHandler
from healkit.core.workers.process import off_loop
from healkit.core.workers.worker import LAST_CHARS, Ending, OnOutput, Outcome, Worker, split_crash_text
from healkit.errors import WorkerStartFailed

#: Number of quiet ticks after which the host stops waiting for the outputs of an ended run. The first number
#: is for a living worker, the second for one that is dead or about to be killed. Ticks are counted because a
#: loop that is busy with another worker's flood receives these outputs late.
_DRAIN_TICK_S, _QUIET_TICKS, _QUIET_TICKS_DEAD = 0.025, 200, 2
#: Maximum of that wait, in seconds, however much still arrives.
_DRAIN_S = 15.0
#: Port numbers of its sockets, in its own folder.
_PORTS = {"shell_port": 1, "iopub_port": 2, "stdin_port": 3, "control_port": 4, "hb_port": 5}
#: Flags for its connection file: made by this process, in its own folder.
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
#: Wait for a kernel's greeting before subscribing again, in milliseconds.
_GREETING_MS = 100


class KernelWorker(Worker):
    """Restricted kernel for one execution."""

    #: Socket for its outputs, while the host listens.
    _outputs: zmq.asyncio.Socket | None = None

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
        assert self._outputs is not None
        self._bridge.serve(handler)
        collector = OutputCollector(init.output_max_bytes, on_output)
        reader = asyncio.create_task(collector.read(self._outputs, self.session, rpc.RUN_ID))
        try:
            await self._send_work(init, contents)
            ending, detail = await self._wait(init, stop, collector.overflow)
            drained = True
            if ending != "complete" or self._complete.result().shown:
                drained = await self._drain(collector, ending, stop)
        finally:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)
        words, crash_text = ("", "") if ending == "complete" else split_crash_text(self._crash_text())
        return self._ended(
            ending,
            detail or collector.problem,
            outputs=collector.outputs,
            last_output=words[-LAST_CHARS:] or collector.last_text(),
            crash_text=crash_text,
            drained=drained or ending != "complete",
        )

    async def _drain(self, collector: OutputCollector, ending: Ending, stop: asyncio.Event | None) -> bool:
        """Wait for outputs that were displayed before the end; return whether all have arrived."""
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

    def hang_up(self) -> None:
        """Disconnect from a kernel whose run has ended, but keep it for questions."""
        assert self._bridge is not None
        self._bridge.close()
        self._stop_hearing()

    def pause(self) -> None:
        """Stop all its threads; not if the process is bubblewrap instead of the kernel itself."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue the process."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self.process is not None and (self.fork_server is not None or self.sandbox.tier != "namespaces"):
            self.process.send(number)

    async def close(self) -> None:
        """Kill the kernel and remove everything that belonged to it; safe to call twice and at any stage."""
        self._stop_hearing()
        await super().close()

    def _stop_hearing(self) -> None:
        if self._outputs is not None:
            self._outputs.close(linger=0)
            self._outputs = None

    async def _hear(self) -> None:
        # Only now: a client that connects before the sockets are bound has to wait for ZeroMQ's reconnection.
        self._outputs = zmq_context().socket(zmq.SUB)
        # A worker's messages are read into this process's memory: one at a time, and with a limited size.
        self._outputs.maxmsgsize = rpc.MAX_FRAME_BYTES
        self._outputs.rcvhwm = rpc.MESSAGES_WAITING
        self._outputs.connect(self.address("iopub"))
        assert self.process is not None
        welcome = asyncio.create_task(until_heard(self._outputs))
        events: list[asyncio.Future[Any]] = [welcome, self.process.exited]
        try:
            await asyncio.wait(events, return_when=asyncio.FIRST_COMPLETED)
            if not welcome.done():
                raise WorkerStartFailed(f"its process ended with status {self.process.exited.result()}")
        finally:
            welcome.cancel()

    def _arguments(self) -> list[str]:
        """Write the connection file; a forked kernel gets its contents directly."""
        self.session = Session()
        self.connection_file = self.sandbox.folder.ipc / "connection.json"
        settings = {"transport": "ipc", "ip": self._ip, "signature_scheme": self.session.signature_scheme}
        info = json.dumps({**settings, "key": self.session.key.decode(), "kernel_name": "", **_PORTS})
        with open(os.open(self.connection_file, _NEW, 0o600), "w") as file:
            file.write(info)
        return ["-f", str(self.connection_file), *([info] if self.fork_server is not None else [])]

    @property
    def _ip(self) -> str:
        return str(self.sandbox.folder.ipc / "k")

    def address(self, channel: str) -> str:
        """Return the address of one of its sockets, such as `shell`."""
        return f"ipc://{self._ip}-{_PORTS[f'{channel}_port']}"


#: The process, and its context. A forked child makes its own, because the parent's threads do not exist
#: there.
_made: tuple[int, zmq.asyncio.Context] | None = None


def zmq_context() -> zmq.asyncio.Context:
    """Return the context of all sockets to workers; a new one if other code has closed it.

    One for each worker would start and end two threads with every execution.
    """
    global _made
    if _made is None or _made[0] != os.getpid() or _made[1].closed:
        _made = os.getpid(), zmq.asyncio.Context()
    return _made[1]


async def until_heard(outputs: zmq.asyncio.Socket) -> None:
    """Subscribe, and wait for any first message of the kernel: displays before it would be lost.

    outputs: Socket that is connected to the kernel's publisher. A kernel greets each subscription. But libzmq loses the
    signal for a subscription that arrives between two parts of a message, because the sending thread consumes it. Then
    no greeting would ever arrive. So we subscribe to another topic, again and again.
    """
    outputs.subscribe(b"")
    for attempt in itertools.count():
        if await outputs.poll(_GREETING_MS):
            await outputs.recv_multipart()
            return
        outputs.subscribe(b"healkit-%d" % attempt)


#: Approximate size of a message's headers, which does not count as the tool's output.
_HEADERS_BYTES = 1024
#: Cost of each output for the host besides its contents, in bytes; it counts too, to limit many empty
#: outputs.
_OUTPUT_BYTES = 256
#: Number of parts: signature, header, parent header, metadata, content; binary data follows.
_SIGNED_PARTS = 5
_KINDS = {"stream", "display_data", "execute_result", "update_display_data", "clear_output"}


class OutputCollector:
    """Reads one execution's iopub messages until the kernel is idle again.

    `overflow` is set after more than `max_bytes`, or for a message with too many elements, which `problem` describes;
    then `outputs` has what came before. `idle` is done once the kernel reports that all output of the cell is sent.
    """

    def __init__(self, max_bytes: int, on_output: Callable[[dict[str, Any]], None] | None) -> None:
        self.outputs: list[dict[str, Any]] = []
        #: Number of messages received, of any kind.
        self.heard = 0
        self.problem = ""
        self.overflow: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.idle: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # Twice the limit: a worker stops itself; this is for one that does not.
        self._left = 2 * max_bytes
        self._on_output = on_output
        self._tail: deque[str] = deque()

    def last_text(self) -> str:
        """Return the last 4,000 characters that were printed."""
        return "".join(self._tail)[-LAST_CHARS:]

    async def read(self, socket: zmq.asyncio.Socket, session: Session, message_id: str) -> None:
        """Collect until cancelled; one task for each execution.

        It reads the socket directly, because each message must be counted before it is parsed. An invalid message (a
        wrong signature, no JSON, no parent) must neither end the reading nor remain uncounted. Between two messages,
        the event loop gets its turn, however many are waiting.
        """
        while True:
            parts = await socket.recv_multipart()
            await asyncio.sleep(0)
            self.heard += 1
            if self.overflow.done():
                continue
            size_bytes = sum(map(len, parts))
            message = None
            if size_bytes <= self._left + _HEADERS_BYTES:
                try:
                    message = await _read(session, parts, size_bytes)
                except claims.BadClaim as error:
                    self.problem = f"it displayed too much in one message: {error}"
                    self.overflow.set_result(None)
                    continue
            if message is None or message["parent_header"].get("msg_id") != message_id:
                self._count(size_bytes)
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "status" and content.get("execution_state") == "idle" and not self.idle.done():
                self.idle.set_result(None)
            elif kind in _KINDS and self._count(max(0, size_bytes - _HEADERS_BYTES)):
                self._take(kind, content)

    def _count(self, size_bytes: int) -> bool:
        """Return whether that still fits; set `overflow` if it does not."""
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
            if not self._count(_OUTPUT_BYTES):
                return
            self.outputs.append(dict(output))
        if self._on_output is not None:
            self._on_output(output)

    def _remember(self, text: str) -> None:
        self._tail.append(text[-LAST_CHARS:])
        while len(self._tail) > 1 and sum(map(len, self._tail)) - len(self._tail[0]) > LAST_CHARS:
            self._tail.popleft()


async def _read(session: Session, parts: list[bytes], size_bytes: int) -> dict[str, Any] | None:
    """Return the message, or None, like `_decoded`; a large one is read on a thread. Raises `claims.BadClaim`."""
    if size_bytes <= claims.SMALL_BYTES:
        return _decoded(session, parts)
    message: dict[str, Any] | None = await off_loop(_decoded, session, parts)
    return message


def _decoded(session: Session, parts: list[bytes]) -> dict[str, Any] | None:
    """Return the message, if it is signed and structured like Jupyter's; None for anything else from a tool.

    Raises `claims.BadClaim` before parsing a message that would cost too much. The text of a stream and a plot in
    base64 are strings, which cost no more than their size.
    """
    try:
        signed = session.feed_identities(parts)[1]
        for part in signed[:_SIGNED_PARTS]:
            claims.check_claim(part)
        message: dict[str, Any] = session.deserialize(signed)
    except claims.BadClaim:
        raise
    except Exception:  # noqa: BLE001 - jupyter_client parses a tool's bytes here and may raise anything
        return None
    whole = isinstance(message["parent_header"], dict) and isinstance(message["content"], dict)
    return message if whole else None


def _to_nbformat(kind: str, content: dict[str, Any]) -> dict[str, Any] | None:
    """Return one message as an output of nbformat 4; None if it is not shown."""
    if kind == "stream":
        name = "stderr" if content.get("name") == "stderr" else "stdout"
        return {"output_type": "stream", "name": name, "text": str(content.get("text", ""))}
    data, metadata = content.get("data"), content.get("metadata")
    if not isinstance(data, dict):
        return None
    return {
        "output_type": "display_data",
        "data": data,
        "metadata": metadata if isinstance(metadata, dict) else {},
    }


def _merge(outputs: list[dict[str, Any]], output: dict[str, Any]) -> bool:
    """Append text to the last output if it belongs to the same stream, as notebooks do."""
    last = outputs[-1] if outputs else {}
    same: bool = (
        output["output_type"] == last.get("output_type") == "stream" and output["name"] == last["name"]
    )
    if same:
        text = last.pop("text")  # the only reference to it, so that Python can append in place
        text += output["text"]
        last["text"] = text
    return same
