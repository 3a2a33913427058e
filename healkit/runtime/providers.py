"""Providers of healkit's own: host functions, vault tools."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from healkit.contracts.tools import ToolDefinition, is_valid_name
from healkit.errors import CallRefused, ConfigError, PersonaNotFound, ToolNotFound, did_you_mean
from healkit.runtime.router import CallContext

if TYPE_CHECKING:
    from healkit.store.vault import Vault


#: What most functions return; to ask whether it is awaitable takes longer than the call of a small function.
_NOT_AWAITABLE = frozenset({type(None), bool, int, float, str, list, dict, tuple})


class HostFunctions:
    """Python functions of the user's kernel, `mcp.host.<name>` in a worker.

    They run in the host, on a thread of the bridge's, with all the host's rights: providing one is a grant.
    """

    server = "host"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._functions: dict[str, tuple[Callable[..., Any], ToolDefinition]] = {}

    def provide(
        self, function: Callable[..., Any], name: str | None = None, *, replace: bool = False
    ) -> ToolDefinition:
        """Let tools call a Python function of this process as `mcp.host.<name>(…)`.

        It runs here, with all your rights, on a thread of healkit's. Can be used as a decorator's call.

        replace: provide it although another function has the name. The same function again, as when its cell is run
        again, needs none.

        Raises `ConfigError` for a name that another function has, what cannot be called, or a name that could not be
        written as `mcp.host.<name>`.
        """
        name = str(name or getattr(function, "__name__", ""))
        if not callable(function) or not is_valid_name(name):
            raise ConfigError(
                f"{function!r} cannot be provided as {name!r}.",
                hint="Give a function, and a name that is an identifier.",
            )
        description = inspect.getdoc(function) or ""
        definition = ToolDefinition(self.server, name, description, schema_of(function))
        with self._lock:
            there = self._functions.get(name)
            if there is not None and not replace and not _is_again(function, there[0]):
                raise ConfigError(
                    f"Another function is provided as {name!r} already.",
                    hint="Give a name of its own, or replace=True.",
                )
            self._functions[name] = function, definition
        return definition

    def withdraw(self, name: str) -> None:
        """Take a provided function back; a name that was never provided is no error."""
        with self._lock:
            self._functions.pop(name, None)

    def definitions(self, persona: str) -> list[ToolDefinition]:
        """Return all of them, whatever the persona; called by the router."""
        with self._lock:
            return [definition for _, definition in self._functions.values()]

    def expect(self, tool: str) -> None:
        """Refuse a function that is not provided; called by the router."""
        if tool not in self._functions:
            self._find(tool)

    def call(self, tool: str, arguments: dict[str, Any], context: CallContext) -> Any:
        """Call the function; called by the router on a bridge thread. Coroutines are run to their end here."""
        value = self._find(tool)(**arguments)
        if type(value) in _NOT_AWAITABLE or not inspect.isawaitable(value):
            return value
        return asyncio.run(_await(value))

    def _find(self, tool: str) -> Callable[..., Any]:
        found = self._functions.get(tool)
        if found is None:
            raise CallRefused(f"No function named {tool!r} is provided.{did_you_mean(tool, self._functions)}")
        return found[0]


class VaultTools:
    """Other tools of the vault, `mcp.vault.<name>`; each call is an execution of its own, on the same path."""

    server = "vault"

    def __init__(
        self,
        vault: Callable[[], Vault],
        execute: Callable[[str, dict[str, Any], CallContext], Any],
        max_depth: int,
    ) -> None:
        self._vault = vault
        self._execute = execute
        self._max_depth = max_depth

    def definitions(self, persona: str) -> list[ToolDefinition]:
        """Every tool that persona would find; called by the router."""
        found: dict[str, ToolDefinition] = {}
        for entry in self._vault().list():
            if entry.persona == persona or (entry.persona == "default" and entry.tool_name not in found):
                found[entry.tool_name] = ToolDefinition(
                    self.server, entry.tool_name, entry.description, entry.input_schema
                )
        for former, name in self._vault().former_names(persona).items():
            if name in found:  # code that was written before the renaming goes on working
                now = found[name]
                found[former] = ToolDefinition(
                    self.server, former, f"{name} by its former name.", now.input_schema
                )
        return list(found.values())

    def expect(self, tool: str) -> None:
        """Refuse nothing: an execution of a tool that is not there is on record too; called by the router."""

    def call(self, tool: str, arguments: dict[str, Any], context: CallContext) -> Any:
        """Execute the tool and return its value; called by the router on a bridge thread, which waits."""
        if context.depth + 1 >= self._max_depth:
            raise CallRefused(
                f"Tools are calling each other {self._max_depth} deep; mcp.vault.{tool} is not called.",
                hint="Break the circle, or set HEALKIT_MAX_DEPTH.",
            )
        try:
            return self._execute(tool, arguments, context)
        except (ToolNotFound, PersonaNotFound) as error:
            # The vault names what is near for any persona; a tool hears of those that it could call.
            known = [definition.name for definition in self.definitions(context.persona)]
            raise type(error)(
                f"There is no vault tool {tool!r} for {context.persona!r}.{did_you_mean(tool, known)}"
            ) from None


def _is_again(function: Callable[..., Any], earlier: Callable[..., Any]) -> bool:
    """Return whether this is the earlier function, or its definition run again."""
    if function is earlier:
        return True
    name = getattr(function, "__qualname__", "<lambda>")
    named = "<" not in name  # neither a lambda nor made in a function
    same = (name, function.__module__) == (getattr(earlier, "__qualname__", ""), earlier.__module__)
    return named and same


def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return a JSON Schema of a function's arguments, from its annotations; any object where they do not help."""
    from pydantic import PydanticUserError, TypeAdapter

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(cast("Any", function))
        schema = adapter.json_schema()
    except (PydanticUserError, NameError, TypeError, ValueError):
        return {"type": "object"}
    return schema if schema.get("type") == "object" else {"type": "object"}


async def _await(value: Any) -> Any:
    return await value
