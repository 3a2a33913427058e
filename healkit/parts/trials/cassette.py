"""Cassettes made from the log, and one execution's replay.

The log contains the calls of each execution: the tool, the arguments, the answer, the order. A cassette is made from
these. Incomplete entries (a cut answer, a hidden secret) answer nothing: code that needs them is *not on record*, which
is not a failure of the code.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import threading
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from healkit.core.contracts import rpc
from healkit.core.contracts.cassette import (
    NOT_ON_RECORD_HINT,
    Cassette,
    Playback,
    RecordedCall,
    Tape,
    key_of,
    not_on_record,
)
from healkit.core.contracts.execution import DEFAULT_CALLS, NOT_KEPT_VALUE, CallRecord
from healkit.core.contracts.failure import Failure
from healkit.core.contracts.tools import ToolDefinition
from healkit.core.contracts.vault import VaultEntry
from healkit.core.crossing import values
from healkit.core.runtime import contents
from healkit.core.runtime.calls import OpenCall, Provider, allows, reaches
from healkit.core.runtime.execution import REDACTED, arguments_of, call_of, logged
from healkit.core.secrets.cleaner import UNLIMITED, secret_columns
from healkit.errors import ConfigError, HealkitError, LogFileError, ViewError
from healkit.plain_text import count

if TYPE_CHECKING:
    from healkit.core.secrets.cleaner import Cleaner
    from healkit.core.store.log_reader import Log
    from healkit.core.store.models import ExecutionLog
    from healkit.core.store.vault import Vault

#: Mark of a text that the log holds only in part.
_CUT = "[TRUNCATED, "
_NULL = msgspec.Raw(b"null")
#: Limit of the arguments and answers of one cassette: it travels with every batch and trial.
_MAX_BYTES = 8 * 1024 * 1024
#: Last line of a traceback: the exception's name and its message.
_ERROR = re.compile(r"^(?P<ename>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?\Z", re.DOTALL | re.MULTILINE)


#: A call by name with its arguments, as equal calls share them.
_CallKey = tuple[str, str, bytes]


class LiveCalls:
    """Calls without a record that one healing may make; each is made once, and its answer kept.

    live: Patterns of names, each with the number of calls that it allows: `host.price:3`, one if none is given.
    looks: Names that may be called as often as needed, because they change nothing.
    acts: Returns whether a name has declared effects; such calls are never made.
    tell: Gets a description of a call before it is made.

    Raises `ConfigError` for an invalid number.
    """

    def __init__(
        self,
        live: Iterable[str] = (),
        looks: Container[str] = (),
        acts: Callable[[str], bool] = lambda _name: False,
        tell: Callable[[str], object] = lambda _told: None,
    ) -> None:
        self.left: dict[str, int] = {}
        for pattern in live:
            name, _, most = pattern.partition(":")
            if most and not (most.isdecimal() and int(most)):
                raise ConfigError(f"live={pattern!r}: {most!r} is not a number of calls.")
            self.left[name.strip()] = int(most or 1)
        self._looks, self._acts, self._tell = looks, acts, tell
        self._most = dict(self.left)
        self._answers: dict[_CallKey, rpc.RpcResult | None] = {}
        self._lock = threading.Lock()
        #: Names of which a call was not made, because as many as were allowed had been.
        self.refused: dict[str, None] = {}

    def may_make(self, name: str) -> bool:
        """Return whether a call of `server.tool` may be made at all."""
        return name in self._looks or (allows(self.left, name) and not self._acts(name))

    def answered(self, key: _CallKey) -> rpc.RpcResult | None:
        """Return the answer of an equal call that was already made; None if there was none."""
        return self._answers.get(key)

    def begin(self, key: _CallKey, *, only_looks: bool) -> bool:
        """Return whether this call may be made now; from then on it counts as made."""
        name = f"{key[0]}.{key[1]}"
        with self._lock:
            if key in self._answers or not self.may_make(name):
                return False
            if name not in self._looks:
                if only_looks:
                    return False
                pattern = next(
                    (
                        candidate
                        for candidate in self.left
                        if self.left[candidate] and allows([candidate], name)
                    ),
                    None,
                )
                if pattern is None:
                    self.refused[name] = None
                    return False
                self.left[pattern] -= 1
                count_made = self._most[pattern] - self.left[pattern]
                self._tell(
                    f"Live call {count_made} of {self._most[pattern]} allowed: {_call_text(name, key[2])}."
                )
            self._answers[key] = None
            return True

    def end(self, key: _CallKey, result: rpc.RpcResult) -> None:
        """Keep the answer of a call, also an error: a failed call may have changed something."""
        with self._lock:
            if key in self._answers:
                self._answers[key] = result


def _call_text(name: str, arguments: bytes) -> str:
    try:
        decoded = values.kept(values.decode(arguments, limit_bytes=values.EXPANDED_MAX_BYTES))
    except values.BadValue:
        return f"{name}(…)"
    return values.call_text(name, decoded if isinstance(decoded, dict) else {})


@dataclasses.dataclass
class Replay:
    """Replay of one execution: its calls are answered from a cassette, and nothing else is called.

    live: Patterns of further calls that may be made if they are not on record. `made` counts those that were.
    calls: Limits them over several replays.
    only_looks: Make only those of them that change nothing.
    """

    cassette: Cassette
    playback: Playback
    live: tuple[str, ...] = ()
    made: int = 0
    calls: LiveCalls | None = None
    only_looks: bool = False

    @classmethod
    def of(cls, tape: Tape, run: str = "", live: Iterable[str] = ()) -> Replay:
        """Begin a replay.

        run: The log row whose own calls are answered first.
        """
        return cls(tape.cassette, tape.play(run), tuple(live))

    def may_reach(self, server: str) -> bool:
        """Return whether that server may be asked for its tools."""
        return reaches(self.live if self.calls is None else self.calls.left, server)

    def answer(self, call: rpc.RpcCall, opened: OpenCall) -> rpc.RpcResult | None:
        """Return the recorded answer, or the refusal of an unrecorded call; None if the host decides."""
        server, tool = opened.record.server, opened.record.tool
        name = f"{server}.{tool}"
        if call.server == rpc.UNKNOWN_SERVER and server in self.cassette.listed:
            return None  # the call is refused, with the reason
        lookup = self.playback.look_up(server, tool, call.args)
        if (lookup is None or lookup.displaced) and self.may_make(name):
            if self.calls is None:
                self.made += 1
                return None
            key = key_of(server, tool, call.args)
            if self.calls.begin(key, only_looks=self.only_looks):
                self.made += 1
                return None
            if (live_answer := self.calls.answered(key)) is not None:
                return msgspec.structs.replace(live_answer, id=call.id)
        recorded = self.playback.take(name, lookup)
        if recorded is None:
            return rpc.RpcResult(
                call.id, success=False, error=rpc.RpcError(self.failure.code, "", self.failure.evalue)
            )
        opened.record = msgspec.structs.replace(opened.record, answered_from=recorded.trace_id or None)
        return recorded.answer(call.id)

    def keep(self, call: rpc.RpcCall, opened: OpenCall, result: rpc.RpcResult) -> None:
        """Keep the answer of a call that was made."""
        if self.calls is not None:
            record = opened.record
            self.calls.end(key_of(record.server, record.tool, call.args), result)

    @property
    def warning(self) -> str:
        """Sentence on answers that were recorded for other arguments; empty if there were none."""
        if not self.playback.displaced:
            return ""
        return (
            f"{count(self.playback.displaced, 'call')} with arguments that are not on record got the answer of the "
            "recorded call in the same position."
        )

    @property
    def failure(self) -> Failure:
        """Failure of a tool that made a call that is not on record."""
        message = not_on_record(self.playback.missing)
        return Failure(
            "CALL_NOT_ON_RECORD", "NotOnRecord", message, f"NotOnRecord: {message}", hint=NOT_ON_RECORD_HINT
        )

    @property
    def missed(self) -> Failure | None:
        """Failure of a tool that made a call that is not on record; None if it made none."""
        return self.failure if self.playback.missing else None

    def may_make(self, name: str) -> bool:
        """Return whether the call of `server.tool` may be made if it is not on record."""
        if self.calls is not None:
            return self.calls.may_make(name)
        return name in self.cassette.live or allows(self.live, name)


def cassette_of(
    log: Log,
    rows: Iterable[ExecutionLog],
    entry: VaultEntry,
    providers: Mapping[str, Provider],
    live: Sequence[str] = (),
) -> Cassette:
    """Return the calls of these executions, and the tools that the entry may call.

    Rows beyond the limit of a cassette are left out; their calls are then not on record. Nothing is called, and no
    server is started: for a server that does not run, the tools are those on record.

    live: Patterns of calls that may be made.
    """
    calls: list[RecordedCall] = []
    runs: dict[str, list[int]] = {}
    size = 0
    for row in rows:
        row_calls = [recorded_call(call_of(call)) for call in log.calls(row.trace_id)]
        size += sum(len(call.arguments) + len(call.result) for call in row_calls)
        if size > _MAX_BYTES:
            break
        runs[str(row.id)] = list(range(len(calls), len(calls) + len(row_calls)))
        calls += row_calls
    definitions, listed = _definitions(entry, providers)
    tool_keys = {(definition.server, definition.name) for definition in definitions}
    for call in calls:
        # One that was answered was there; of a server that is not here now, a refused one may be too.
        was_there = call.success or call.error_code != "CALL_REFUSED"
        if (was_there or call.server not in listed) and (call.server, call.tool) not in tool_keys:
            tool_keys.add((call.server, call.tool))
            definitions.append(_definition_from(call))
    named = [(f"{definition.server}.{definition.name}", definition.read_only) for definition in definitions]
    # What a server of others calls read-only is its own word, and a grant of the tool's: a person has to name it.
    names = [name for name, looks in named if allows(live, name) or (looks and allows(DEFAULT_CALLS, name))]
    return Cassette(definitions, listed, calls, runs, names)


def recorded_call(call: CallRecord) -> RecordedCall:
    """Return a call of the log in a form for playback; `lost` says why it cannot be played back."""
    arguments = call.arguments.encode()
    whole, lost = _NULL, ""
    if call.success is None:
        lost = "it had no answer yet"
    elif _CUT in call.arguments[-100:]:
        arguments, lost = b"null", "its arguments were cut"
    elif REDACTED in call.arguments or REDACTED in call.result_summary:
        lost = "it contained secrets, which the log does not keep"
    elif call.success:
        whole, lost = _answer(call)
    elif call.error_code == "CALL_UNANSWERED":
        lost = "its tool ended before the call was answered"
    ename, message = ("", "") if call.success else _told(call)
    return RecordedCall(
        call.server, call.tool, msgspec.Raw(arguments), bool(call.success), whole,
        call.error_code or "", ename, message, call.trace_id, lost,
    )  # fmt: skip


def _answer(call: CallRecord) -> tuple[msgspec.Raw, str]:
    """Return a call's answer as it crossed, or why it is not completely on record."""
    text = call.result_summary
    if text == NOT_KEPT_VALUE:
        return _NULL, "its answer was kept off the record"
    try:
        stored = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return _NULL, "its answer was cut"
    if values.MARK not in text.encode():
        return msgspec.Raw(text.encode()), ""

    def whole(preview: values.Preview) -> object:
        return contents.data_behind(call.trace_id, preview, side=call.task_id)

    try:
        return msgspec.Raw(values.encode(values.restored_value(stored, whole=whole))[0]), ""
    except (ViewError, values.BadValue, values.CannotCross) as error:
        return _NULL, f"its answer is not complete: {error}"


def _told(call: CallRecord) -> tuple[str, str]:
    """Return name and message of the error that the tool got; the record may contain more."""
    text = call.error
    if call.error_code in ("CALL_REFUSED", "MCP_ERROR", "MCP_UNAVAILABLE", "MCP_MISSING"):
        return "", text.partition(" Cause: ")[0]
    if text.startswith("Traceback"):
        text = text.rstrip("\n").rpartition("\n  ")[2].partition("\n")[2] or text
    match = _ERROR.match(text.strip())
    if match is None:
        return "", text
    return match["ename"].rpartition(".")[2], match["message"] or ""


def _definitions(
    entry: VaultEntry, providers: Mapping[str, Provider]
) -> tuple[list[ToolDefinition], list[str]]:
    """Return the tools that may be called, of the servers that can list them, and those servers' names."""
    definitions: list[ToolDefinition] = []
    listed = []
    patterns = entry.grants.call_patterns
    for server, provider in list(providers.items()):
        if not reaches(patterns, server):
            listed.append(server)  # no tool of it may be called
            continue
        ask = getattr(provider, "known_definitions", None)
        try:
            tools = ask() if ask is not None else provider.definitions(entry.persona)
        except HealkitError:
            continue
        if tools:  # a server that has not begun, or functions that another process provided, are not known
            listed.append(server)
            definitions += [tool for tool in tools if allows(patterns, f"{tool.server}.{tool.name}")]
    return definitions, listed


def _definition_from(call: RecordedCall) -> ToolDefinition:
    """Return a tool with the facts of a recorded call: the names of its arguments, in their order."""
    arguments = msgspec.json.decode(call.arguments)
    names = arguments if isinstance(arguments, dict) else {}
    return ToolDefinition(call.server, call.tool, "", {"properties": {name: {} for name in names}})


# A reproduction: one execution in a file, to be run again where neither its database nor its servers are.


class Reproduction(msgspec.Struct, frozen=True, kw_only=True):
    """Recorded execution with everything for running it again: code, arguments, the answers of its calls.

    Arguments are in their kept form (`values.kept`). status, error and result say how it ended: `error` in one line,
    with its code, `result` as the log shows it. It contains no grants: a file must not carry authority.
    """

    format: Literal["healkit-cassette-1"] = "healkit-cassette-1"
    tool_name: str
    persona: str = "default"
    type: Literal["python", "sql"] = "python"
    code: str
    arguments: dict[str, Any]
    status: str = ""
    error_code: str = ""
    error: str = ""
    result: str = ""
    run: str = ""
    cassette: Cassette = Cassette()


def reproduction_of(log: Log, vault: Vault, log_id: int, providers: Mapping[str, Provider]) -> Reproduction:
    """Return that execution in the form of a file.

    Raises `UsageInvalid` if there is no such row, `ArgumentsInvalid` if the log does not contain its complete
    arguments, and a `VaultError` if its code is not known.
    """
    row = logged(log, log_id)
    entry = vault.get(row.tool_name, row.persona)
    code = entry.code if row.code_hash in (None, entry.code_hash) else vault.code(str(row.code_hash))
    entry = dataclasses.replace(entry, code=code)
    return Reproduction(
        tool_name=row.tool_name,
        persona=row.persona,
        type="sql" if entry.type == "sql" else "python",
        code=code,
        arguments={name: values.kept(value) for name, value in arguments_of(row).items()},
        status=row.status,
        error_code=row.error_code or "",
        error=f"{row.ename}: {row.evalue}" if row.ename else "",
        result=row.result_summary or "",
        run=str(row.id),
        cassette=cassette_of(log, [row], entry, providers),
    )


def write_reproduction(
    found: Reproduction, path: str | Path, cleaner: Cleaner, *, overwrite: bool = False
) -> tuple[Path, int]:
    """Write it as JSON, secrets hidden; return the file and their number: without them it may end differently.

    Raises `LogFileError` if the file already exists or is not writable.
    """
    file = Path(path)
    record = cleaner.of_record()
    hidden = functools.partial(secret_columns, record)
    plain = values.without_secret_frames(msgspec.json.decode(msgspec.json.encode(found)), hidden)
    cleaned = record.clean(plain, limit_bytes=UNLIMITED)
    whole = msgspec.json.encode(record.again(cleaned.value))
    try:
        with file.open("wb" if overwrite else "xb") as opened:
            opened.write(msgspec.json.format(whole, indent=1) + b"\n")
    except FileExistsError:
        raise LogFileError(
            f"{str(file)!r} already exists.", hint="Choose another name, or overwrite it with --force."
        ) from None
    except OSError as error:
        raise LogFileError(f"Cannot write {str(file)!r}: {error.strerror or error}.") from None
    return file, sum(cleaned.hidden.values())


def read_reproduction(path: str | Path) -> Reproduction:
    """Read such a file; raises `LogFileError` for an invalid one."""
    try:
        reproduction = msgspec.json.decode(Path(path).read_bytes(), type=Reproduction)
        places = range(len(reproduction.cassette.calls))
        if any(place not in places for run in reproduction.cassette.runs.values() for place in run):
            raise msgspec.ValidationError("a run names a call that does not exist")
        values.remade(reproduction.arguments)
        return reproduction
    except OSError as error:
        raise LogFileError(f"Cannot read {str(path)!r}: {error.strerror or error}.") from None
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, values.BadValue) as error:
        raise LogFileError(
            f"{str(path)!r} is not a healkit cassette: {error}.",
            hint="`healkit log export --cassette` writes one.",
        ) from None
