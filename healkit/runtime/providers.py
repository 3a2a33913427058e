"""Providers of healkit's own: host functions, vault tools."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from healkit.contracts.tools import ToolDefinition, is_valid_name
from healkit.errors import CallRefused, ConfigError, did_you_mean
from healkit.runtime.router import CallContext

if TYPE_CHECKING:
    from healkit.store.vault import Vault


class HostFunctions:
    """Python functions of the user's kernel, `mcp.host.<name>` in a worker.

    They run in the host, on a thread of the bridge's, with all the host's rights: providing one is a grant.
    """

    server = "host"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._functions: dict[str, tuple[Callable[..., Any], ToolDefinition]] = {}

    def provide(self, function: Callable[..., Any], name: str | None = None) -> ToolDefinition:
        """Let tools call a Python function of this process as `mcp.host.<name>(…)`; the same name replaces it.

        It runs here, with all your rights, on a thread of healkit's. Can be used as a decorator's call.
        Raises `ConfigError` for what cannot be called, or a name that could not be written as `mcp.host.<name>`.
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

    def call(self, tool: str, arguments: dict[str, Any], context: CallContext) -> Any:
        """Call the function; called by the router on a bridge thread. Coroutines are run to their end here."""
        with self._lock:
            found = self._functions.get(tool)
        if found is None:
            raise CallRefused(f"No function named {tool!r} is provided.{did_you_mean(tool, self._functions)}")
        value = found[0](**arguments)
        return asyncio.run(_await(value)) if inspect.isawaitable(value) else value


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
        return list(found.values())

    def call(self, tool: str, arguments: dict[str, Any], context: CallContext) -> Any:
        """Execute the tool and return its value; called by the router on a bridge thread, which waits."""
        if context.depth + 1 >= self._max_depth:
            raise CallRefused(
                f"Tools are calling each other {self._max_depth} deep; mcp.vault.{tool} is not called.",
                hint="Break the circle, or set HEALKIT_MAX_DEPTH.",
            )
        return self._execute(tool, arguments, context)


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
