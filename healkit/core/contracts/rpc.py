"""Messages between host and worker.

worker → host: `ready`, `rpc_call`, `execution_complete`; host → worker: `init`, `rpc_result`.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

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

#: Limits of the notes of what was converted, and of one of them in characters.
NOTES_MAX, NOTE_MAX_CHARS = 21, 1000
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
