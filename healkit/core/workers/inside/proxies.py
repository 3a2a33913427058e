"""`mcp` and `trace` for a tool, and the worker's bridge half.

They contain nothing of the host. A proxy knows its tool's name, text and schema. It turns a call into a message, and
the answer into a value or an exception.

A call of a missing tool is reported to the host. A question whether a tool exists is not: `hasattr(mcp, "x")`,
`getattr(mcp, "x", None)`, `dir(mcp)`, copying and completion are not calls. In all these cases, Python reads the
attribute. Only the caller's next instructions show whether it is a call.

No dedicated thread reads the bridge's socket. The caller that gets the receive lock reads for all callers until its own
answer has arrived, then wakes another one. So a single caller needs no switch of threads, which would be most of the
cost of a call.
"""

from __future__ import annotations

import dis
import inspect
import itertools
import os
import socket
import sys
from _thread import allocate_lock
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from healkit.core.contracts import rpc
from healkit.core.contracts.cassette import Playback, Tape, not_on_record, not_read
from healkit.core.contracts.tools import ToolDefinition, Withheld, is_valid_name
from healkit.core.crossing import values
from healkit.core.wire import claims, framing
from healkit.core.workers.inside.capture import NotOnRecord

if TYPE_CHECKING:
    import threading


_TYPES: dict[str, Any] = {
    "integer": int, "number": float, "string": str, "boolean": bool, "array": list, "object": dict, "null": None,
}  # fmt: skip


#: Maximum size of a call's arguments, in bytes; leaves room for the rest of the frame.
_ARGUMENTS_MAX_BYTES = rpc.MAX_FRAME_BYTES - 4096


class ToolCallError(Exception):
    """A call through the bridge failed; `code` is stable, `ename` is the type of the callee's exception."""

    __module__ = "builtins"  # so that a traceback shows the short name

    def __init__(self, called: str, error: rpc.RpcError) -> None:
        super().__init__(
            f"{called}: {error.ename}: {error.message}" if error.ename else f"{called}: {error.message}"
        )
        self.code = error.code
        self.ename = error.ename
        if error.traceback:
            self.add_note(f"In the called tool:\n{error.traceback}")


class _Connected:
    """Part of `mcp`: copying it returns the same object, and it cannot leave the worker."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: object) -> Self:
        return self

    def __reduce__(self) -> Any:
        raise TypeError(f"{self!r} cannot be pickled: it works in this tool's worker only.")


class Proxy(_Connected):
    """Tool as a function; `await proxy.acall(…)` is the same for async code, several at a time.

    A single positional dict contains the arguments, as in `mcp.fs.read_file({"path": "a.txt"})`. The exception is a
    first parameter that accepts a dict, if the dict's keys are not the parameters' names.
    """

    def __init__(self, endpoint: AnyEndpoint, definition: ToolDefinition) -> None:
        self._endpoint = endpoint
        self._definition = definition
        self.__name__ = definition.name
        self.__qualname__ = f"mcp.{definition.server}.{definition.name}"
        self.__doc__ = definition.description
        self.__signature__ = signature_of(definition.input_schema)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        arguments = self._bind(args, kwargs)
        answer = self._endpoint.call(self._definition.server, self._definition.name, arguments)
        if answer.success:
            return values.decode(answer.result)
        raise ToolCallError(
            self.__qualname__, answer.error or rpc.RpcError("CALL_REFUSED", "", "no reason given")
        )

    async def acall(self, *args: object, **kwargs: object) -> Any:
        """Call without blocking the event loop."""
        import asyncio  # late: most code needs none, and a trial server forks faster without it

        return await asyncio.to_thread(self, *args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.__qualname__}{self.__signature__}>"

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> msgspec.Raw:
        if len(args) == 1 and not kwargs and self._holds_arguments(args[0]):
            kwargs = args[0]
        elif args:  # positional, in the schema's order
            kwargs = self._by_name(args, kwargs)
        try:
            encoded = msgspec.Raw(values.encode(kwargs, root=self.__qualname__)[0])
        except values.CannotCross as error:
            message = f"the argument {error} cannot cross"
            raise ToolCallError(self.__qualname__, rpc.RpcError("CALL_REFUSED", "", message)) from None
        if len(encoded) <= claims.MAX_DEPTH:  # fewer bytes cannot exceed a limit
            return encoded
        try:
            claims.check_claim(encoded, max_bytes=_ARGUMENTS_MAX_BYTES)
        except claims.BadClaim as error:  # the host would end this process for it
            raise ToolCallError(
                self.__qualname__, rpc.RpcError("CALL_REFUSED", "", f"the arguments hold {error}")
            ) from None
        return encoded

    def _holds_arguments(self, value: object) -> bool:
        """Return whether a positional value contains all arguments, as opposed to being the first one."""
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            return False
        schema = self._definition.input_schema
        properties: dict[str, Any] = schema.get("properties") or {}
        first = next((name for name in self.__signature__.parameters if name in properties), None)
        if first is None or not _may_be_object(properties[first]):
            return True
        return bool(value) and set(schema.get("required") or ()) <= set(value) <= set(properties)

    def _by_name(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return arguments by name; for arguments that do not fit, raise Python's own error with the tool's name."""
        try:
            bound = self.__signature__.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{self.__qualname__}{self.__signature__}: {error}") from None
        return {**{k: v for k, v in bound.items() if k != "more"}, **bound.get("more", {})}


class Server(_Connected):
    """Tools of one server, as attributes."""

    def __init__(self, endpoint: AnyEndpoint, name: str, proxies: dict[str, Proxy]) -> None:
        self.__dict__.update(proxies)
        self._endpoint = endpoint
        self._name = name
        self._proxies = proxies

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if _called(sys._getframe(1)) is not None:
            _report(self._endpoint, f"{self._name}.{name}")
        tools = ", ".join(sorted(self._proxies)) or "none"
        raise AttributeError(
            f"mcp.{self._name} has no tool {name!r} that this tool may call; it may call: {tools}"
        )

    def __dir__(self) -> list[str]:
        return sorted(self._proxies)

    def __repr__(self) -> str:
        return f"<server {self._name}: {', '.join(sorted(self._proxies))}>"


class Servers(_Connected):
    """`mcp` itself, whose attributes are the servers that this tool may call."""

    def __init__(self, endpoint: AnyEndpoint, servers: dict[str, Server]) -> None:
        self.__dict__.update(servers)
        self._endpoint = endpoint
        self._servers = servers

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if (called := _called(sys._getframe(1))) is not None:
            _report(self._endpoint, f"{name}.{called or '*'}")
        servers = ", ".join(sorted(self._servers)) or "none"
        raise AttributeError(f"mcp has no server {name!r} that this tool may call; it may call: {servers}")

    def __dir__(self) -> list[str]:
        return sorted(self._servers)

    def __repr__(self) -> str:
        return f"<servers: {', '.join(sorted(self._servers))}>"


def build_servers(endpoint: AnyEndpoint, definitions: list[ToolDefinition]) -> Servers:
    """Build the `mcp` object; skip a definition whose name is not possible in `mcp.server.tool`."""
    by_server: dict[str, dict[str, Proxy]] = {}
    for definition in definitions:
        if is_valid_name(definition.server) and is_valid_name(definition.name):
            by_server.setdefault(definition.server, {})[definition.name] = Proxy(endpoint, definition)
    return Servers(endpoint, {name: Server(endpoint, name, proxies) for name, proxies in by_server.items()})


def _report(endpoint: AnyEndpoint, called: str) -> None:
    """Make the host record a call of `server.tool`, which does not exist."""
    with suppress(OSError):
        endpoint.call(rpc.UNKNOWN_SERVER, _text(called)[: rpc.NAME_MAX_CHARS], framing.raw({}))


#: Instructions that read an attribute. Before 3.12, a method call has its own; since then, a bit marks it.
_GETS = ("LOAD_ATTR", "LOAD_METHOD")


def _called(frame: FrameType) -> str | None:
    """Return None if the attribute that the frame reads is not called, only tested or stored.

    For `b` in `a.b.c()` return `c`; for `b` in `a.b()` return an empty text. The instructions show a call, or an
    expression that begins where the attribute's expression begins: `a.b(*more)` has no such instruction for `b`.
    """
    instructions = list(dis.get_instructions(frame.f_code))
    at = next(
        (n for n, instruction in enumerate(instructions) if instruction.offset == frame.f_lasti),
        len(instructions),
    )
    rest = instructions[at:]
    gets = list(itertools.takewhile(lambda one: one.opname in _GETS, rest))
    if not gets:
        return None
    name = str(gets[1].argval) if len(gets) > 1 else ""
    begin = _begin(gets[0])
    if any(map(_is_method, gets)) or any(
        instruction.opname.startswith("CALL") and None not in begin and _begin(instruction) == begin
        for instruction in rest
    ):
        return name
    return None


def _is_method(get: dis.Instruction) -> bool:
    return get.opname == "LOAD_METHOD" or (sys.version_info >= (3, 12) and bool((get.arg or 0) & 1))


def _begin(instruction: dis.Instruction) -> tuple[int | None, int | None]:
    """Return line and column of the beginning of the expression."""
    where = instruction.positions
    return (None, None) if where is None else (where.lineno, where.col_offset)


def _may_be_object(schema: object) -> bool:
    """Return whether a parameter with that schema accepts a dict."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    return kind is None or kind == "object" or (isinstance(kind, list) and "object" in kind)


def signature_of(schema: dict[str, Any]) -> inspect.Signature:
    """Return a signature with the schema's properties as parameters; optional ones default to `...`."""
    properties: dict[str, Any] = schema.get("properties") or {}
    required = schema.get("required") or []
    names = sorted(
        (name for name in properties if is_valid_name(name)), key=lambda name: name not in required
    )
    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=inspect.Parameter.empty if name in required else properties[name].get("default", ...),
            annotation=_TYPES.get(str(properties[name].get("type")), inspect.Parameter.empty),
        )
        for name in names
    ]
    if schema.get("additionalProperties", True) and "more" not in names:
        parameters.append(inspect.Parameter("more", inspect.Parameter.VAR_KEYWORD))
    return inspect.Signature(parameters)


class Trace:
    """Object with the name `trace` in a tool's code."""

    def __init__(self, endpoint: AnyEndpoint) -> None:
        self._endpoint = endpoint

    def decision(self, node: object, outcome: object, condition: object = "") -> None:
        """Record that the tool chose `outcome` at `node`, because of `condition`; each is stored as text."""
        decision = rpc.Decision(*(_text(value) for value in (node, outcome, condition)))
        with suppress(OSError):
            self._endpoint.call(rpc.DECISIONS_SERVER, "decision", framing.raw(decision))

    def __repr__(self) -> str:
        return "<trace: trace.decision(node, outcome, condition) says which way the tool went>"


#: Maximum length of a text, in characters; the host cuts longer ones.
_MAX_CHARS = 2000


def _text(value: object) -> str:
    """Return the value as text that JSON can hold."""
    return str(value)[:_MAX_CHARS].encode(errors="backslashreplace").decode()


# Code on trial: its calls are answered in this process, never made, and its tool's files are not read.


#: Answer to a call of a tool that its server does not have; its content is never read.
_NOT_THERE = rpc.RpcResult(0, success=False)


class RecordedEndpoint:
    """Endpoint whose calls are answered from a cassette; `rewind` begins another run."""

    #: Its answers have no memory regions.
    regions: tuple[int, ...] = ()

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self.playback: Playback = tape.play()

    def rewind(self, run: str = "") -> None:
        """Begin a run; run: the execution whose own calls come first."""
        self.playback = self._tape.play(run)

    def call(self, server: str, tool: str, args: msgspec.Raw) -> rpc.RpcResult:
        """Return the recorded answer; raise `NotOnRecord`."""
        if server == rpc.DECISIONS_SERVER:
            return rpc.RpcResult(0, success=True)
        if server == rpc.UNKNOWN_SERVER:
            server, _, tool = tool.partition(".")
            if server in self._tape.cassette.listed:
                return _NOT_THERE
        recorded = self.playback.answer(server, tool, args)
        if recorded is None:
            raise NotOnRecord(not_on_record(self.playback.missing))
        return recorded.answer()


#: Audit events whose first argument is a path that is read
#: (https://docs.python.org/3/library/audit_events.html).
_READING = frozenset({"open", "os.listdir", "os.scandir", "os.chdir", "sqlite3.connect", "glob.glob"})


class FileWatch:
    """Watch for withheld files: opening one ends the run, like an unrecorded call.

    The sandbox protects these files; the watch only distinguishes code that needs one from code that is wrong.
    `missing` is the first requested file.
    """

    def __init__(self, withheld: Withheld) -> None:
        self._withheld, self._looks = withheld, False
        self.missing = ""
        if withheld.paths:
            sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in _READING or self._looks or not arguments:
            return
        place = arguments[0]
        if not isinstance(place, str | bytes | os.PathLike):
            return
        path = os.path.abspath(
            os.fsdecode(place).removeprefix("file:").partition("?")[0]
        )  # SQLite also accepts a URI
        if not self._withheld.has(path):
            return
        self._looks = True
        try:
            os.close(os.open(path, os.O_RDONLY))  # a worker may still be able to read some of them
        except OSError:
            self.missing = self.missing or path
            raise NotOnRecord(not_read(path)) from None
        finally:
            self._looks = False


# The worker's half of the bridge.


class BridgeClosed(ConnectionError):
    """End of the connection: the host has closed it."""


class _Slot:
    """A call that waits for its answer."""

    __slots__ = ("result", "wake")

    def __init__(self) -> None:
        self.result: rpc.RpcResult | None = None
        self.wake: threading.Event | None = None  # only for a call that has to wait for another reader


class Endpoint:
    """Sends the worker's messages and matches answers to calls by id; safe to use from any thread."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._reader = framing.FrameReader(sock)
        self._send_lock = allocate_lock()
        self._receive_lock = allocate_lock()
        self._ids = itertools.count(1)
        self._waiting: dict[int, _Slot] = {}
        self._closed = False
        #: Regions that came with the work: one for the arguments if they have contents, then one for the
        #: result.
        self.regions: list[int] = []

    def send(self, message: msgspec.Struct) -> None:
        """Send one message, whole; raise `FrameTooLarge`, or `OSError` if the host is gone."""
        frame = framing.encode_frame(message)
        with self._send_lock:
            self._sock.sendall(frame)

    def close(self) -> None:
        """Close the connection; every later call raises `BridgeClosed` or `OSError`."""
        self._closed = True
        self._sock.close()

    def receive_init(self) -> rpc.Init:
        """Wait for the work; called once, before there are calls to answer."""
        frame = self._reader.read(self.regions)
        message = None if frame is None else framing.decode_from_host(frame)
        if not isinstance(message, rpc.Init):
            raise BridgeClosed("the host closed the bridge before it sent any work")
        return message

    def call(self, server: str, tool: str, args: msgspec.Raw) -> rpc.RpcResult:
        """Ask the host to call a tool, and wait for its answer."""
        call_id, slot = next(self._ids), _Slot()
        self._waiting[call_id] = slot
        try:
            self.send(rpc.RpcCall(call_id, server, tool, args))
            while slot.result is None:
                if self._receive_lock.acquire(blocking=False):
                    self._read_until(slot)
                elif slot.wake is None:
                    import threading  # only here, because a single thread never waits

                    slot.wake = threading.Event()  # and try again, because the reader may have just left
                else:
                    slot.wake.wait()
                    slot.wake.clear()
        finally:
            del self._waiting[call_id]
        return slot.result

    def _read_until(self, slot: _Slot) -> None:
        try:
            while slot.result is None:
                self._deliver()
        finally:
            self._receive_lock.release()
            # Wake one of the open calls to continue reading.
            for waiting_slot in list(self._waiting.values()):
                if waiting_slot.wake is not None and waiting_slot.result is None:
                    waiting_slot.wake.set()
                    break

    def _deliver(self) -> None:
        frame = None if self._closed else self._reader.read()
        if frame is None:
            self._closed = True
            raise BridgeClosed("the host closed the bridge")
        message = framing.decode_from_host(frame)
        if isinstance(message, rpc.RpcResult) and (slot := self._waiting.get(message.id)) is not None:
            slot.result = message
            if slot.wake is not None:
                slot.wake.set()


#: Endpoint of the calls of `mcp` and `trace`.
AnyEndpoint = Endpoint | RecordedEndpoint
