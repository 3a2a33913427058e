"""Records of an execution, on their way to the log.

`Started` is written before a worker is touched, one `CallRecord` as each bridged call begins and once more as it ends,
a `DecisionRecord` for each branch that the tool reports, `Finished` at the end. All of them name the execution by its
trace id, which exists before the row does, so that a record that cannot reach the database can wait in a spool file and
still find its row.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import socket
import time
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from healkit.contracts import claims
from healkit.contracts.failure import Failure

#: The longest `result_summary`, in characters.
SUMMARY_MAX_CHARS = 2000
#: Origins of executions that only try code out. They are on record, but do not count for how the tool fares.
TRIED_ORIGINS = ("trial", "search")
#: Origins that a list names beside the tool: runs that a healing, a trial or a search made.
HEALING_ORIGINS = (*TRIED_ORIGINS, "heal")
#: The highest count of executions that a page leaves out: counting goes on for 20 ms at most.
TRIED_COUNTED_MAX = 1_000
#: The longest arguments, and the longest result, that are kept of a bridged call, in characters.
CALL_MAX_CHARS = 10_000
#: Stands in a record for contents that its tool keeps off it.
NOT_KEPT = "(not kept)"
#: The same where a JSON object or a JSON value is expected.
NOT_KEPT_OBJECT, NOT_KEPT_VALUE = f'{{"…":"{NOT_KEPT}"}}', f'"{NOT_KEPT}"'


#: What a tool may call without a grant: other vault tools and the user's functions, but neither the log nor any MCP
#: server. Providing a function is a grant of that function; connecting a server must not be one of all it can do.
DEFAULT_CALLS = ("vault.*", "host.*")


class Grants(msgspec.Struct, frozen=True, omit_defaults=True):
    """Grants of a tool beyond the default of nothing; stored with the tool, recorded with each execution.

    `read` and `write` are absolute paths. `calls` are `server.tool` patterns, `*` at the end allowed; None means
    the default: every vault tool and every host function, but neither the log (`healkit.*`) nor MCP servers.
    `packages` are the installed distributions it sees, with all they depend on, besides what a worker itself needs;
    None means all. `python` is another interpreter's executable to run in. `own_grants` lets the tool keep these
    grants when another tool calls it, which otherwise narrows them to the caller's. The rest override the
    configuration's limits for this tool.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    calls: tuple[str, ...] | None = None
    memory_mb: int | None = None
    cpu_s: int | None = None
    timeout_s: float | None = None
    packages: tuple[str, ...] | None = None
    python: str | None = None
    own_grants: bool = False

    @property
    def call_patterns(self) -> tuple[str, ...]:
        """Patterns of what may be called; the default where nothing else is granted."""
        return DEFAULT_CALLS if self.calls is None else self.calls

    @property
    def starts_cold(self) -> bool:
        """True when its workers cannot be forked: the fork server has imported what they must not see."""
        return self.packages is not None or self.python is not None


class HostIdentity(msgspec.Struct, frozen=True, omit_defaults=True):
    """Identity of the process that ran it, exact enough to know later whether that process is alive.

    The system uses process ids again, so the start time (clock ticks since boot) and the boot id go with it. Containers
    of one host name count their processes each for itself, so `pid_namespace` goes with it too; empty where it is not
    known. `clock` is on a row whose time is not what the clock of its host said, and is what it said (ISO 8601).
    """

    hostname: str
    boot_id: str
    pid: int
    started_ticks: int
    pid_namespace: str = ""
    clock: str = ""


class Started(msgspec.Struct, frozen=True, tag="started"):
    """Write-ahead record of an execution.

    `deadline` is when it must have ended at the latest; `run_id` names the run it is part of, where it is.
    """

    trace_id: str
    timestamp: datetime
    tool_name: str
    persona: str
    arguments: str
    origin: str
    host: HostIdentity
    deadline: datetime
    parent_trace_id: str | None = None
    revision: int | None = None
    code_hash: str | None = None
    isolation: str | None = None
    grants: Grants = Grants()
    run_id: str | None = None


class CallRecord(msgspec.Struct, frozen=True, tag="call"):
    """Call that a tool made through the bridge, as the host saw it; `success` is None until it has ended.

    `task_id` is `t1`, `t2`, … in the order in which the host received them.
    """

    trace_id: str
    task_id: str
    server: str
    tool: str
    arguments: str
    started_at: datetime
    success: bool | None = None
    result_summary: str = ""
    error_code: str | None = None
    error: str = ""
    duration_ms: float | None = None


class DecisionRecord(msgspec.Struct, frozen=True, tag="decision"):
    """Branch that a tool reported, `trace.decision(node, outcome, condition)`; numbered from 1.

    `after_task` is the last call that the execution had made by then, empty where it had made none.
    """

    trace_id: str
    number: int
    after_task: str
    node: str
    outcome: str
    condition: str
    decided_at: datetime


class StoredTrace(msgspec.Struct, frozen=True):
    """Trace of an execution in its wire form, stored with the outcome; `send` puts it into the outbox."""

    wire: str
    parent_trace_id: str | None = None
    send: bool = False


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    """Outcome of an execution: SUCCESS without a failure, FAILURE with one. `trace` is None with tracing off."""

    trace_id: str
    finished_at: datetime
    duration_ms: float
    result_summary: str | None = None
    failure: Failure | None = None
    fingerprint: str | None = None
    last_output: str = ""
    trace: StoredTrace | None = None

    @property
    def status(self) -> str:
        """Status in the log: `SUCCESS` or `FAILURE`."""
        return "SUCCESS" if self.failure is None else "FAILURE"


#: Records between an execution's beginning and its end.
Step = CallRecord | DecisionRecord
Record = Started | CallRecord | DecisionRecord | Finished
#: Any one kind of record: a function that takes one returns the same kind.
AnyRecord = TypeVar("AnyRecord", bound=Record)


def new_trace_id() -> str:
    """Make a UUIDv7 (RFC 9562): sortable by time, made before the execution starts."""
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds & (1 << 48) - 1) << 80 | 0x7 << 76 | secrets.randbits(12) << 64
    value |= 0b10 << 62 | secrets.randbits(62)
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def utc_now() -> datetime:
    """Return the current time, aware, in UTC."""
    return datetime.now(UTC)


def summarize(text: str, limit: int = SUMMARY_MAX_CHARS, characters: int | None = None) -> str:
    """Truncate a text to at most `limit` characters; a marker at its end has the original size.

    characters: the original size, where `text` is only the beginning.
    """
    size = len(text) if characters is None else characters
    if size <= limit:
        return text
    marker = f"… [TRUNCATED, {size:,} characters]"
    return text[: limit - len(marker)] + marker


def summarize_json(raw: msgspec.Raw, limit: int = SUMMARY_MAX_CHARS) -> str:
    """Return JSON as text, truncated as `summarize` does; makes no text of a large value but for its beginning."""
    if len(raw) <= limit:
        return bytes(raw).decode(errors="replace")
    head = bytes(memoryview(raw)[: 4 * limit]).decode(errors="replace")
    return summarize(head, limit, claims.count_characters(raw))


def storable(record: AnyRecord) -> AnyRecord:
    """Return the record with every character that a database or UTF-8 refuses written as an escape.

    Lone surrogates cannot be encoded at all. PostgreSQL takes no NUL in a text, and no NaN in JSON. Call it only for a
    record that was refused, so that the others do not pay for the search.
    """
    values = escaped(msgspec.to_builtins(record))
    if isinstance(record, Started | CallRecord):
        with suppress(ValueError, RecursionError):
            values["arguments"] = json.dumps(finite(json.loads(values["arguments"])))
    return msgspec.convert(values, type(record))


def finite(value: Any) -> Any:
    """Return a value of JSON with NaN and the infinities, which JSON has no numbers for, as texts."""
    if isinstance(value, float):
        return value if math.isfinite(value) else json.dumps(value)
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, list) else value


def escaped(value: Any) -> Any:
    """Return a text, or every text in a structure, with the characters that cannot be stored written as escapes."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode().replace("\x00", "\\x00")
    if isinstance(value, dict):
        return {key: escaped(item) for key, item in value.items()}
    return [escaped(item) for item in value] if isinstance(value, list | tuple) else value


def host_identity() -> HostIdentity:
    """Return this process's identity; cheap after the first call, and correct after a fork."""
    return _identity_of(os.getpid())


@cache
def _identity_of(pid: int) -> HostIdentity:
    ticks = process_start_ticks(pid) or 0
    return HostIdentity(socket.gethostname(), boot_id(), pid, ticks, pid_namespace())


@cache
def pid_namespace() -> str:
    """Return the kernel's name of the namespace that this process's id counts in; empty where it cannot be read."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


@cache
def boot_id() -> str:
    """Return the kernel's id of this boot, or an empty text where it cannot be read."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def process_start_ticks(pid: int) -> int | None:
    """Return when that process started, in clock ticks since boot (field 22 of proc(5) stat), or None if it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name in field 2 may hold spaces and parentheses; the text after the last one is safe to split.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else int(fields[19])


def is_alive(host: HostIdentity) -> bool | None:
    """Return whether that process still runs; None when it ran on another machine, or in another container."""
    if host.hostname != socket.gethostname():
        return None
    if host.boot_id != boot_id():
        return False
    if host.pid_namespace not in {"", pid_namespace()}:
        return None  # a process of that id here would be another one
    if not Path("/proc/self/stat").exists():
        return _answers_signals(host.pid)
    return process_start_ticks(host.pid) == host.started_ticks


def _answers_signals(pid: int) -> bool:
    """Return True when a process of that id exists, which is all that can be known without /proc."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
