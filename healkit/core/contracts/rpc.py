"""Messages between host and worker, and their frames.

A frame is a 4-byte big-endian length and that many bytes of JSON. Never pickle: a worker's bytes must not
be able to do more than be wrong. Both ends refuse a length over their cap before they allocate anything for
it, and the host decodes what a worker sends by `contracts.claims` only.

worker → host: `ready`, `rpc_call`, `execution_complete`; host → worker: `init`, `rpc_result`.
"""

from __future__ import annotations

import socket
import struct
from typing import Annotated

import msgspec

from healkit.core.contracts import claims
from healkit.core.contracts.encoding import NOTE_MAX_CHARS, NOTES_MAX
from healkit.core.contracts.failure import Failure
from healkit.core.contracts.tools import EntryRef, ToolDefinition, Withheld

#: The parent of everything a kernel worker displays while its tool runs (Jupyter's `msg_id`).
RUN_ID = "healkit-run"
#: Name of a cell's value, as in IPython.
CELL_VALUE = "_"
#: The server that branch decisions are sent to; no provider can have that name.
DECISIONS_SERVER = "@trace"
#: The server that a tool is reported to, as `server.tool`, that was asked for and is not shown to the worker; the call
#: is recorded and refused. `*` stands for the tool where only a server was named.
UNKNOWN_SERVER = "@unknown"
#: One frame's cap, both ways, in bytes.
MAX_FRAME_BYTES = 32 * 1024 * 1024
#: Messages of a kernel that may wait in each queue on their way to the host.
MESSAGES_WAITING = 100

#: Limit of the name of a server or a tool, and of a layer, in characters.
NAME_MAX_CHARS = 200
#: Limit of the outline of a result's types, in characters.
OUTLINE_MAX_CHARS = 200
#: Limit of what travels with a result: a failure, conversions, what was watched. In bytes.
REPORT_EXTRA_BYTES = 4 * 1024 * 1024
#: Limit of the contents that a result refers to: a frame has a few for each of its columns.
CONTENTS_MAX = 100_000
#: Limit of the threads that are named.
THREADS_MAX = 8
#: Audit events of Python's by which code starts a program or another process.
STARTS_PROGRAMS = (
    "os.system", "subprocess.Popen", "os.posix_spawn", "os.spawn", "os.exec", "os.fork", "os.forkpty", "pty.spawn",
)  # fmt: skip

#: Stands in a piece of work whose calls are made.
NO_CASSETTE = msgspec.Raw(b"null")

_LENGTH = struct.Struct(">I")
#: What is read at once, at least and at most.
_READ_BYTES, _READ_MAX_BYTES = 64 * 1024, 1024 * 1024


_Name = Annotated[str, msgspec.Meta(max_length=NAME_MAX_CHARS)]
_Note = Annotated[str, msgspec.Meta(max_length=NOTE_MAX_CHARS)]
_Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class Ready(msgspec.Struct, frozen=True, tag="ready", forbid_unknown_fields=True):
    """Message: the worker is locked down and waits for work; sent once, before any tool code is in the process.

    `layers` names each layer that was really put in force there: `landlock`, `seccomp`, `rlimits`, `capabilities`.
    """

    pid: _Number
    layers: Annotated[dict[_Name, _Name], msgspec.Meta(max_length=20)]


class Init(msgspec.Struct, frozen=True, tag="init"):
    """Work: code, arguments, the tools it may call, and its limits (seconds and bytes).

    `call` is Python source that is evaluated beside the code instead of calling its entry: statements and a last
    expression, whose value counts. `watch` asks for the executed lines and the types of names too. `exact` says that
    arguments and result are encoded by `healkit.core.crossing`, else as JSON; `contents` is where the contents of
    frames and arrays are in the region that comes with the message. `data_max_bytes` is how much the frames and arrays
    of the result may take in the host. `cassette` answers its calls, where it may make none, as those of the execution
    `run` were (`contracts.cassette`). `setup` is Python source run before the code, in its namespace; the code is that
    of a notebook's cell then. `withheld` are the files that end the run where the code asks for one.
    """

    entry: EntryRef
    code: str
    arguments: msgspec.Raw
    definitions: list[ToolDefinition]
    timeout_s: float
    rpc_timeout_s: float
    memory_bytes: int
    cpu_s: int
    result_max_bytes: int
    output_max_bytes: int
    call: str = ""
    watch: bool = False
    exact: bool = False
    contents: list[tuple[int, int]] = []
    data_max_bytes: int = 1024**3
    cassette: msgspec.Raw = NO_CASSETTE
    run: str = ""
    setup: str = ""
    withheld: Withheld = Withheld()


class RpcCall(msgspec.Struct, frozen=True, tag="rpc_call", forbid_unknown_fields=True):
    """A call of `mcp.<server>.<tool>(**args)`; `id` is the worker's, for correlation only."""

    id: _Number
    server: _Name
    tool: _Name
    args: msgspec.Raw


class Decision(msgspec.Struct, frozen=True):
    """Arguments of a call of `DECISIONS_SERVER`: which way the tool went at a branch, and why."""

    node: str
    outcome: str
    condition: str = ""


class RpcError(msgspec.Struct, frozen=True, omit_defaults=True):
    """Reason for no result: a stable code, a type name, a message, and the callee's traceback if it has one."""

    code: str
    ename: str
    message: str
    traceback: str = ""


class RpcResult(msgspec.Struct, frozen=True, tag="rpc_result", omit_defaults=True):
    """Answer to the call with the same id: `result` when `success`, else `error`."""

    id: int
    success: bool
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: RpcError | None = None


class ExecutionComplete(
    msgspec.Struct, frozen=True, tag="execution_complete", omit_defaults=True, forbid_unknown_fields=True
):
    """Claim of the worker of how it ended: a value, or a failure.

    `contents` is where the contents of frames and arrays are in the region for results.
    `conversions` says, path by path, what could not cross as it is and how it arrives instead. `shown` is false
    when there was no output at all, and so none to wait for. `watched` is what `Init.watch` asked for, as JSON.
    `took_s` is how long the code ran, in seconds: by the clock, or where it never waited for anything, of the
    processor's time, which a busy machine does not make longer. `outline` is what the value's JSON does not say of
    its types. `threads` are the names of those that still ran when the tool had returned, and some time after.
    `programs` are the functions by which the tool tried to start one, such as `os.system`.
    `answered` counts the calls that a cassette has answered, `displaced` those of them that had other arguments.
    """

    value: msgspec.Raw = msgspec.Raw(b"null")
    failure: Failure | None = None
    conversions: Annotated[list[_Note], msgspec.Meta(max_length=NOTES_MAX)] = []
    shown: bool = True
    watched: msgspec.Raw = msgspec.Raw(b"null")
    took_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    outline: Annotated[str, msgspec.Meta(max_length=OUTLINE_MAX_CHARS)] = ""
    contents: Annotated[list[tuple[_Number, _Number]], msgspec.Meta(max_length=CONTENTS_MAX)] = []
    threads: Annotated[list[_Name], msgspec.Meta(max_length=THREADS_MAX)] = []
    programs: Annotated[list[_Name], msgspec.Meta(max_length=len(STARTS_PROGRAMS))] = []
    answered: _Number = 0
    displaced: _Number = 0


FromWorker = Ready | RpcCall | ExecutionComplete
FromHost = Init | RpcResult

_encoder = msgspec.json.Encoder()
_from_worker: msgspec.json.Decoder[FromWorker] = msgspec.json.Decoder(FromWorker)
_decode_from_worker = _from_worker.decode
_from_host: msgspec.json.Decoder[FromHost] = msgspec.json.Decoder(FromHost)
decode_from_host = _from_host.decode


def decode_from_worker(frame: bytes | memoryview) -> FromWorker:
    """Decode a worker's frame; arguments and results in it stay raw. Raises `claims.BadClaim`."""
    if len(frame) > claims.MAX_DEPTH:
        return claims.decode(frame, _decode_from_worker)
    try:  # most calls are this short, and break no limit; the detour would be a tenth of what the host does for one
        return _decode_from_worker(frame)
    except claims.REFUSALS as error:
        raise claims.refusal(error) from None


class FrameTooLarge(Exception):
    """A frame whose length is over the cap; `size_bytes` is what it claimed."""

    def __init__(self, size_bytes: int, cap_bytes: int) -> None:
        super().__init__(f"a message of {size_bytes:,} bytes is over the cap of {cap_bytes:,} bytes")
        self.size_bytes = size_bytes


def encode_frame(message: msgspec.Struct) -> bytes:
    """Return the message with its length in front; raises `FrameTooLarge` over the cap."""
    body = _encoder.encode(message)
    if len(body) > MAX_FRAME_BYTES:
        raise FrameTooLarge(len(body), MAX_FRAME_BYTES)
    return _LENGTH.pack(len(body)) + body


class FrameBuffer:
    """Bytes as they arrive, taken out again as frames; for any kind of socket."""

    def __init__(self, cap_bytes: int = MAX_FRAME_BYTES) -> None:
        self._cap_bytes = cap_bytes
        #: What is still here. Most chunks are one whole frame, and stay as they are; a frame in pieces is put together.
        self.received: bytes | bytearray = b""
        #: Bytes that the next frame still needs, as far as is known: its length first.
        self.missing = _LENGTH.size

    def feed(self, chunk: bytes) -> None:
        """Add what has come."""
        if not self.received:
            self.received = chunk
            return
        if isinstance(self.received, bytes):
            self.received = bytearray(self.received)
        self.received += chunk

    def take(self) -> bytes | memoryview | None:
        """Return the next frame's bytes, None while it is not whole; raises `FrameTooLarge` before its body is here.

        A frame that came in pieces is not copied: what is returned is a view of them.
        """
        received = self.received
        if len(received) < _LENGTH.size:
            self.missing = _LENGTH.size - len(received)
            return None
        end = _LENGTH.size + _LENGTH.unpack_from(received)[0]
        if end - _LENGTH.size > self._cap_bytes:
            raise FrameTooLarge(end - _LENGTH.size, self._cap_bytes)
        if len(received) < end:
            self.missing = end - len(received)
            return None
        self.missing = _LENGTH.size
        if isinstance(received, bytes):
            self.received = received[end:]
            return received[_LENGTH.size : end]
        self.received = bytes(received[end:])
        return memoryview(received)[_LENGTH.size : end]


class FrameReader:
    """Frames from a blocking socket, one after the other; one thread at a time.

    ahead: read what has come, not only what is needed next. A small frame then costs one system call and not two.
    """

    def __init__(self, sock: socket.socket, cap_bytes: int = MAX_FRAME_BYTES, *, ahead: bool = True) -> None:
        self._sock = sock
        self._frames = FrameBuffer(cap_bytes)
        self._least_bytes = _READ_BYTES if ahead else 0

    def read(self, descriptors: list[int] | None = None) -> bytes | memoryview | None:
        """Return the next frame's bytes, None at end of file; raises `FrameTooLarge` before reading the body.

        descriptors: gets those that came with the frame.
        """
        frames = self._frames
        while not frames.received or (frame := frames.take()) is None:
            least = self._least_bytes
            size = least if frames.missing < least else min(frames.missing, _READ_MAX_BYTES)
            if descriptors is None:
                chunk = self._sock.recv(size)
            else:
                chunk, new_descriptors, _, _ = socket.recv_fds(self._sock, size, 2, socket.MSG_CMSG_CLOEXEC)
                descriptors += new_descriptors
            if not chunk:
                return None
            frames.feed(chunk)
        return frame


def raw(value: object) -> msgspec.Raw:
    """Return a JSON value as the raw bytes that travel inside a message."""
    return msgspec.Raw(_encoder.encode(value))
