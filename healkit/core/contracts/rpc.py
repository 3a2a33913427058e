"""Messages between host and worker.

worker → host: `ready`, `rpc_call`, `execution_complete`; host → worker: `init`, `rpc_result`.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from healkit.core.contracts.failure import Failure
from healkit.core.contracts.tools import EntryRef, ToolDefinition, Withheld

#: Parent message (Jupyter's `msg_id`) of everything that a kernel worker displays while its tool runs.
RUN_ID = "healkit-run"
#: Name of the value of a cell, as in IPython.
CELL_VALUE = "_"
#: Reserved server name for reports of branch decisions.
DECISIONS_SERVER = "@trace"
#: Reserved server name for calls of unknown tools: the worker reports such a tool as `server.tool`, and the
#: host records and refuses the call. `*` replaces the tool if the code named only a server.
UNKNOWN_SERVER = "@unknown"
#: Maximum size of one message, both ways, in bytes.
MAX_FRAME_BYTES = 32 * 1024 * 1024
#: Maximum number of a kernel's messages in each queue to the host.
MESSAGES_WAITING = 100

#: Maximum number of notes on conversions, and maximum length of a note in characters.
NOTES_MAX, NOTE_MAX_CHARS = 21, 1000
#: Maximum length of the name of a server, a tool or a layer, in characters.
NAME_MAX_CHARS = 200
#: Maximum length of the outline of a result's types, in characters.
OUTLINE_MAX_CHARS = 200
#: Maximum size of the data beside a result: a failure, conversions, observations. In bytes.
REPORT_EXTRA_BYTES = 4 * 1024 * 1024
#: Maximum number of buffers that a result refers to: a frame has a few for each of its columns.
CONTENTS_MAX = 100_000
#: Maximum number of thread names in a report.
THREADS_MAX = 8
#: Audit events of Python that show that code starts a program or another process.
STARTS_PROGRAMS = (
    "os.system", "subprocess.Popen", "os.posix_spawn", "os.spawn", "os.exec", "os.fork", "os.forkpty", "pty.spawn",
)  # fmt: skip

#: Empty cassette: the calls are really made.
NO_CASSETTE = msgspec.Raw(b"null")


_Name = Annotated[str, msgspec.Meta(max_length=NAME_MAX_CHARS)]
_Note = Annotated[str, msgspec.Meta(max_length=NOTE_MAX_CHARS)]
_Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class Ready(msgspec.Struct, frozen=True, tag="ready", forbid_unknown_fields=True):
    """Message: the worker is locked down and ready; sent once, before any tool code is in the process.

    `layers` names the layers that are really in force: `landlock`, `seccomp`, `rlimits`, `capabilities`.
    """

    pid: _Number
    layers: Annotated[dict[_Name, _Name], msgspec.Meta(max_length=20)]


class Init(msgspec.Struct, frozen=True, tag="init"):
    """Work for a worker: code, arguments, the tools that it may call, and its limits (seconds and bytes).

    call: Python source to evaluate beside the code, instead of calling its entry: statements and a last expression,
        whose value is the result.
    watch: Also report the executed lines and the types of names.
    exact: Arguments and result are encoded by `healkit.core.crossing`, else as JSON.
    contents: Positions of the buffers of frames and arrays in the memory region that comes with the message.
    data_max_bytes: Maximum size of the frames and arrays in the result, in the host.
    cassette: Recorded calls that answer the calls of code that may make no calls (`contracts.cassette`).
    run: Execution whose recorded calls come first.
    setup: Python source to run before the code, in its namespace. Then the code is a notebook cell.
    withheld: Files that end the run if the code opens one.
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
    """Call of `mcp.<server>.<tool>(**args)`; the worker chooses `id`, which only serves to match the answer."""

    id: _Number
    server: _Name
    tool: _Name
    args: msgspec.Raw


class Decision(msgspec.Struct, frozen=True):
    """Arguments of a call of `DECISIONS_SERVER`: the branch that the tool took, and why."""

    node: str
    outcome: str
    condition: str = ""


class RpcError(msgspec.Struct, frozen=True, omit_defaults=True):
    """Reason why a call has no result: a stable code, a type name, a message, and the callee's traceback, if any."""

    code: str
    ename: str
    message: str
    traceback: str = ""


class RpcResult(msgspec.Struct, frozen=True, tag="rpc_result", omit_defaults=True):
    """Answer to the call with the same id: `result` if `success`, else `error`."""

    id: int
    success: bool
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: RpcError | None = None


class ExecutionComplete(
    msgspec.Struct, frozen=True, tag="execution_complete", omit_defaults=True, forbid_unknown_fields=True
):
    """Report of the worker about its end: a value or a failure.

    contents: Positions of the buffers of frames and arrays in the region for results.
    conversions: For each path, what could not cross unchanged, and what it became.
    shown: False if there was no output, so that the host does not wait for it.
    watched: What `Init.watch` requested, as JSON.
    took_s: How long the code ran, in seconds of wall time. If the code never waited, it is processor time, which is not
        longer on a busy machine.
    outline: Types of the value that its JSON does not show.
    threads: Names of threads that were still running some time after the tool returned.
    programs: Functions by which the tool tried to start a program, such as `os.system`.
    answered: Number of calls that a cassette answered.
    displaced: Number of these whose recorded call had other arguments.
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
