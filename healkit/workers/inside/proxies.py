"""`mcp` and `trace`, as a tool's code sees them.

They hold nothing of the host. A proxy knows its tool's name, text and schema, turns a call into a message and the
answer into a value or an exception.
"""

from __future__ import annotations

import inspect
from contextlib import suppress
from typing import Any

import msgspec

from healkit import values
from healkit.contracts import claims, rpc
from healkit.contracts.tools import ToolDefinition, is_valid_name
from healkit.workers.inside.endpoint import Endpoint

_TYPES: dict[str, Any] = {
    "integer": int, "number": float, "string": str, "boolean": bool, "array": list, "object": dict, "null": None,
}  # fmt: skip


#: Room for the rest of a call's frame.
_ARGUMENTS_MAX_BYTES = rpc.MAX_FRAME_BYTES - 4096


class ToolCallError(Exception):
    """A call through the bridge had no result; `code` is stable, `ename` the type of the callee's exception."""

    __module__ = "builtins"  # so that a traceback shows the bare name

    def __init__(self, called: str, error: rpc.RpcError) -> None:
        super().__init__(
            f"{called}: {error.ename}: {error.message}" if error.ename else f"{called}: {error.message}"
        )
        self.code = error.code
        self.ename = error.ename
        if error.traceback:
            self.add_note(f"In the called tool:\n{error.traceback}")


class Proxy:
    """Tool as a function; `await proxy.acall(…)` is the same from async code, several at a time."""

    def __init__(self, endpoint: Endpoint, definition: ToolDefinition) -> None:
        self._endpoint = endpoint
        self._definition = definition
        self.__name__ = definition.name
        self.__qualname__ = f"mcp.{definition.server}.{definition.name}"
        self.__doc__ = definition.description
        self.__signature__ = signature_of(definition.input_schema)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        arguments = self._bind(args, kwargs)
        answer = self._endpoint.call(self._definition.server, self._definition.name, arguments)
        if answer.success:
            return values.decode(answer.result)
        raise ToolCallError(
            self.__qualname__, answer.error or rpc.RpcError("CALL_REFUSED", "", "no reason given")
        )

    async def acall(self, *args: Any, **kwargs: Any) -> Any:
        """Call without blocking the event loop."""
        import asyncio  # late: most code has none, and a trial server is forked faster without

        return await asyncio.to_thread(self, *args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.__qualname__}{self.__signature__}>"

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> msgspec.Raw:
        if args:  # by position, in the schema's order
            kwargs = self.__signature__.bind(*args, **kwargs).arguments
            kwargs = {**{k: v for k, v in kwargs.items() if k != "more"}, **kwargs.get("more", {})}
        try:
            encoded = msgspec.Raw(values.encode(kwargs, root=self.__qualname__)[0])
        except values.CannotCross as error:
            message = f"the argument {error} cannot cross"
            raise ToolCallError(self.__qualname__, rpc.RpcError("CALL_REFUSED", "", message)) from None
        if len(encoded) <= claims.MAX_DEPTH:  # fewer bytes break no limit
            return encoded
        try:
            claims.check(encoded, max_bytes=_ARGUMENTS_MAX_BYTES)
        except claims.BadClaim as error:  # the host would end this process for it
            raise ToolCallError(
                self.__qualname__, rpc.RpcError("CALL_REFUSED", "", f"the arguments hold {error}")
            ) from None
        return encoded


class Server:
    """Tools of one server, as attributes."""

    def __init__(self, endpoint: Endpoint, name: str, proxies: dict[str, Proxy]) -> None:
        self.__dict__.update(proxies)
        self._endpoint = endpoint
        self._name = name
        self._proxies = proxies

    def __getattr__(self, name: str) -> Any:
        _report(self._endpoint, self._name, name)
        known = ", ".join(sorted(self._proxies)) or "none"
        raise AttributeError(
            f"mcp.{self._name} has no tool {name!r} that this tool may call; it may call: {known}"
        )

    def __dir__(self) -> list[str]:
        return sorted(self._proxies)

    def __repr__(self) -> str:
        return f"<server {self._name}: {', '.join(sorted(self._proxies))}>"


class Servers:
    """`mcp` itself: the servers that this tool may call, as attributes."""

    def __init__(self, endpoint: Endpoint, servers: dict[str, Server]) -> None:
        self.__dict__.update(servers)
        self._endpoint = endpoint
        self._servers = servers

    def __getattr__(self, name: str) -> Any:
        _report(self._endpoint, name)
        known = ", ".join(sorted(self._servers)) or "none"
        raise AttributeError(f"mcp has no server {name!r} that this tool may call; it may call: {known}")

    def __dir__(self) -> list[str]:
        return sorted(self._servers)

    def __repr__(self) -> str:
        return f"<servers: {', '.join(sorted(self._servers))}>"


def build_servers(endpoint: Endpoint, definitions: list[ToolDefinition]) -> Servers:
    """Build the `mcp` object; leaves out a definition whose name cannot be written as `mcp.server.tool`."""
    by_server: dict[str, dict[str, Proxy]] = {}
    for definition in definitions:
        if is_valid_name(definition.server) and is_valid_name(definition.name):
            by_server.setdefault(definition.server, {})[definition.name] = Proxy(endpoint, definition)
    return Servers(endpoint, {name: Server(endpoint, name, proxies) for name, proxies in by_server.items()})


def _report(endpoint: Endpoint, server: str, tool: str = "*") -> None:
    """Have the host record that the tool was asked for and cannot be called; private names are Python's business."""
    if server.startswith("_") or tool.startswith("_"):
        return
    with suppress(OSError):
        endpoint.call(rpc.UNKNOWN_SERVER, _text(f"{server}.{tool}")[: rpc.NAME_MAX_CHARS], rpc.raw({}))


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
    """Object behind the name `trace` in a tool's code."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def decision(self, node: object, outcome: object, condition: object = "") -> None:
        """Put on record that at `node` the tool chose `outcome`, because of `condition`; each is kept as text."""
        said = rpc.Decision(*(_text(value) for value in (node, outcome, condition)))
        with suppress(OSError):
            self._endpoint.call(rpc.DECISIONS_SERVER, "decision", rpc.raw(said))

    def __repr__(self) -> str:
        return "<trace: trace.decision(node, outcome, condition) says which way the tool went>"


#: The host cuts longer texts.
_MAX_CHARS = 2000


def _text(value: object) -> str:
    """Return the value as text that JSON can hold."""
    return str(value)[:_MAX_CHARS].encode(errors="backslashreplace").decode()
