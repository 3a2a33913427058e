"""Providers of healkit itself: host functions, vault, debug."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

from healkit.core.contracts.execution import Grants
from healkit.core.contracts.tools import ToolDefinition, is_valid_name
from healkit.core.contracts.vault import DEFAULT_PERSONA
from healkit.core.pysource.nodes import effects_of
from healkit.core.runtime.calls import CallContext
from healkit.core.runtime.execution import last_error_report
from healkit.errors import CallRefused, ConfigError, PersonaNotFound, ToolNotFound, did_you_mean

if TYPE_CHECKING:
    from healkit.core.contracts.vault import VaultEntry
    from healkit.core.store.log_reader import Log
    from healkit.core.store.vault import Vault


#: Maximum depth of nested calls of vault tools.
MAX_DEPTH = 8
#: Usual result types; the check whether a result is awaitable takes longer than a call of a small function.
_NOT_AWAITABLE = frozenset({type(None), bool, int, float, str, list, dict, tuple})


class HostFunctions:
    """Python functions of the user's kernel, `mcp.host.<name>` in a worker.

    They run in the host, on a thread of the bridge, with all the host's rights. So providing a function is a grant.

    Example:
    >>> hk.host.provide(len, "length").name
    'length'
    """

    server = "host"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._functions: dict[str, tuple[Callable[..., Any], ToolDefinition]] = {}

    def provide(
        self,
        function: Callable[..., Any],
        name: str | None = None,
        *,
        replace: bool = False,
        read_only: bool = False,
    ) -> ToolDefinition:
        """Let tools call a Python function of this process as `mcp.host.<name>(…)`.

        It runs in this process, with all your rights, on a thread of healkit. It can also be used as a decorator.

        replace: Replace another function of that name. It is not needed for the same function, for instance when its
            cell runs again.
        read_only: A call changes nothing, so that a healing may make a call that is not on record.

        Raises `ConfigError` if another function has the name, if `function` is not callable, or if the name is not
        possible in `mcp.host.<name>`.

        Example:
        >>> def rate(currency: str) -> float:
        ...     return {"USD": 1.08}[currency]
        >>> _ = hk.provide(rate, read_only=True)
        >>> code = "def in_usd(eur): return eur * mcp.host.rate(currency='USD')"
        >>> _ = hk.vault.add("in_usd", code, grants={"calls": ["host.rate"]})
        >>> hk.execute("in_usd", arguments={"eur": 100}).value
        108.0
        """
        name = str(name or getattr(function, "__name__", ""))
        if not callable(function) or not is_valid_name(name):
            raise ConfigError(
                f"{function!r} cannot be provided as {name!r}.",
                hint="Give a function, and a name that is an identifier.",
            )
        description = inspect.getdoc(function) or ""
        definition = ToolDefinition(self.server, name, description, schema_of(function), read_only)
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
        """Withdraw a provided function; tools can no longer call it. An unknown name is not an error.

        Example:
        >>> _ = hk.provide(max, "largest")
        >>> hk.withdraw("largest")
        >>> hk.provide(min, "largest").name
        'largest'
        """
        with self._lock:
            self._functions.pop(name, None)

    def definitions(self, persona: str) -> list[ToolDefinition]:
        """Return all functions, for any persona; called by the router."""
        with self._lock:
            return [definition for _, definition in self._functions.values()]

    def expect(self, tool: str) -> None:
        """Raise if the function is not provided; called by the router."""
        if tool not in self._functions:
            self._find(tool)

    def call(self, tool: str, arguments: dict[str, Any], context: CallContext) -> Any:
        """Call the function; called by the router on a bridge thread. A coroutine runs to its end here."""
        value = self._find(tool)(**arguments)
        if type(value) in _NOT_AWAITABLE or not inspect.isawaitable(value):
            return value
        return asyncio.run(_await(value))

    def _find(self, tool: str) -> Callable[..., Any]:
        entry = self._functions.get(tool)
        if entry is None:
            raise CallRefused(f"No function named {tool!r} is provided.{did_you_mean(tool, self._functions)}")
        return entry[0]


class VaultTools:
    """Other tools of the vault, `mcp.vault.<name>`; each call is a separate execution on the same path."""

    server = "vault"

    def __init__(
        self,
        vault: Callable[[], Vault],
        execute: Callable[[str, dict[str, Any], CallContext], Any],
    ) -> None:
        self._vault = vault
        self._execute = execute

    def definitions(self, persona: str) -> list[ToolDefinition]:
        """Return all tools that the persona can run; called by the router."""
        definitions: dict[str, ToolDefinition] = {}
        for entry in self._vault().list():
            if entry.persona == persona or (
                entry.persona == "default" and entry.tool_name not in definitions
            ):
                definitions[entry.tool_name] = ToolDefinition(
                    self.server,
                    entry.tool_name,
                    entry.description,
                    entry.input_schema,
                    self._only_looks(entry),
                )
        for former, name in self._vault().former_names(persona).items():
            if name in definitions:  # code from before a renaming must continue to work
                now = definitions[name]
                definitions[former] = ToolDefinition(
                    self.server, former, f"{name} by its former name.", now.input_schema, now.read_only
                )
        return list(definitions.values())

    def _only_looks(self, entry: VaultEntry) -> bool:
        """Return whether it only calculates, as does each tool that it calls: it may not read any files."""
        met = [entry]

        def lookup(name: str) -> VaultEntry:
            met.append(self._vault().lookup(name, entry.persona))
            return met[-1]

        granted = (tool.grants for tool in met)
        return not effects_of(entry, lookup) and not any(grants.read for grants in granted)

    def expect(self, tool: str) -> None:
        """Accept every name: the execution of a missing tool is recorded too. Called by the router."""

    def call(self, tool: str, arguments: dict[str, Any], context: CallContext) -> Any:
        """Execute the tool and return its value; called by the router on a bridge thread, which waits."""
        if context.depth + 1 >= MAX_DEPTH:
            raise CallRefused(
                f"Tools are calling each other {MAX_DEPTH} deep; mcp.vault.{tool} is not called.",
                hint="Break the circle.",
            )
        try:
            return self._execute(tool, arguments, context)
        except (ToolNotFound, PersonaNotFound) as error:
            # The vault suggests similar names of any persona; a tool may only see those that it can call.
            names = [definition.name for definition in self.definitions(context.persona)]
            raise type(error)(
                f"There is no vault tool {tool!r} for {context.persona!r}.{did_you_mean(tool, names)}"
            ) from None


def _is_again(function: Callable[..., Any], earlier: Callable[..., Any]) -> bool:
    """Return whether this is the earlier function, or its definition run again."""
    if function is earlier:
        return True
    name = getattr(function, "__qualname__", "<lambda>")
    named = "<" not in name  # neither a lambda nor defined in a function
    same = (name, function.__module__) == (getattr(earlier, "__qualname__", ""), earlier.__module__)
    return named and same


def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return a JSON Schema of a function's arguments, from its annotations; without useful ones, any object."""
    from pydantic import PydanticUserError, TypeAdapter

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(cast("Any", function))
        schema = adapter.json_schema()
    except (PydanticUserError, NameError, TypeError, ValueError):
        return {"type": "object"}
    return schema if schema.get("type") == "object" else {"type": "object"}


async def _await(value: Awaitable[Any]) -> Any:
    return await value


# Debug tools are in the vault and run like any other tool, in a restricted worker without access to the vault
# and the log. They read both through the bridge, by `LogTools`. Only tools with a grant for `healkit.*` may
# call it. It shows the records of one persona: the one that the calling execution runs for.


_MAX_ROWS = 200


@dataclasses.dataclass(frozen=True)
class BuiltinTool:
    """A tool that healkit itself puts into the vault."""

    name: str
    code: str
    description: str
    grants: Grants = Grants(calls=("healkit.*",))
    group: str = "debug"


BUILTIN_TOOLS: tuple[BuiltinTool, ...] = (
    BuiltinTool(
        "get_last_error",
        '''def get_last_error(tool_name: str | None = None) -> str:
    """The newest failure on record of this persona, as text; optionally of one tool."""
    return mcp.healkit.last_error(tool_name=tool_name)
''',
        "The newest failure on record: tool, time, persona, input and full traceback; optionally of one tool.",
    ),
    BuiltinTool(
        "list_tools",
        '''def list_tools(persona: str | None = None) -> list:
    """The tools that this persona can run, with their descriptions; optionally its own or the default ones."""
    return mcp.healkit.tools(persona=persona)
''',
        "The tools that this persona can run, with their descriptions; optionally its own or the default ones.",
    ),
    BuiltinTool(
        "inspect_tool",
        '''def inspect_tool(tool_name: str, persona: str | None = None) -> dict:
    """One tool that this persona can run: its code, input schema and revisions."""
    return mcp.healkit.inspect(tool_name=tool_name, persona=persona)
''',
        "One tool that this persona can run: its code, input schema and revisions.",
    ),
    BuiltinTool(
        "list_executions",
        '''def list_executions(tool_name: str | None = None, status: str | None = None, limit: int = 20) -> list:
    """This persona's newest executions, optionally of one tool or status (SUCCESS, FAILURE, RUNNING)."""
    return mcp.healkit.executions(tool_name=tool_name, status=status, limit=limit)
''',
        "This persona's newest executions, optionally of one tool or status (SUCCESS, FAILURE, RUNNING).",
    ),
)


class LogTools:
    """`mcp.healkit.*`: read-only access to the vault and the log, limited to the caller's persona."""

    server = "healkit"

    def __init__(self, vault: Callable[[], Vault], log: Callable[[], Log]) -> None:
        self._vault = vault
        self._log = log
        self._tools: dict[str, Callable[..., Any]] = {
            "last_error": self._last_error,
            "tools": self._list,
            "inspect": self._inspect,
            "executions": self._executions,
        }

    def definitions(self, persona: str) -> list[ToolDefinition]:
        """Return all of these tools; called by the router."""
        return [
            ToolDefinition(self.server, name, function.__doc__ or "")
            for name, function in self._tools.items()
        ]

    def expect(self, tool: str) -> None:
        """Raise if there is no such tool; called by the router."""
        if tool not in self._tools:
            raise CallRefused(f"mcp.healkit has no {tool!r}.{did_you_mean(tool, self._tools)}")

    def call(self, tool: str, arguments: dict[str, Any], context: CallContext) -> Any:
        """Return the requested records; called by the router on a bridge thread."""
        return self._tools[tool](context.persona, **arguments)

    def _last_error(self, mine: str, /, tool_name: str | None = None) -> str:
        """Return the newest failure as a report."""
        return last_error_report(self._log(), tool_name, mine)

    def _list(self, mine: str, /, persona: str | None = None) -> list[dict[str, Any]]:
        """Return name, persona, revision and description of each tool that the caller's persona can run."""
        personas = (DEFAULT_PERSONA, mine) if persona is None else (_visible(persona, mine),)
        return [
            {
                "tool_name": e.tool_name,
                "persona": e.persona,
                "revision": e.revision,
                "description": e.description,
            }
            for e in self._vault().list()
            if e.persona in personas
        ]

    def _inspect(self, mine: str, /, tool_name: str, persona: str | None = None) -> dict[str, Any]:
        """Return one tool with its code and history."""
        entry = self._vault().get(tool_name, mine if persona is None else _visible(persona, mine))
        history = self._vault().history(entry.tool_name, entry.persona)
        return {
            "tool_name": entry.tool_name,
            "persona": entry.persona,
            "revision": entry.revision,
            "type": entry.type,
            "description": entry.description,
            "input_schema": entry.input_schema,
            "code": entry.code,
            "revisions": [{"number": r.number, "author": r.author, "reason": r.reason} for r in history],
        }

    def _executions(
        self, mine: str, /, tool_name: str | None = None, status: str | None = None, limit: int = 20
    ) -> list[dict[str, Any]]:
        """Return the newest rows of the log, without arguments, tracebacks, trials and searches."""
        most = min(max(1, limit), _MAX_ROWS)
        page = self._log().query(tool=tool_name, status=status, persona=mine, limit=most, tried=False)
        return [
            {
                "id": row.id,
                "timestamp": row.timestamp.isoformat(timespec="milliseconds"),
                "tool_name": row.tool_name,
                "persona": row.persona,
                "status": row.status,
                "error": f"{row.ename}: {row.evalue}" if row.ename else None,
                "result_summary": row.result_summary,
                "duration_ms": row.duration_ms,
            }
            for row in page.rows
        ]


def _visible(persona: str, mine: str) -> str:
    """Return the persona, if a tool that runs for `mine` may see its tools; else raise `CallRefused`."""
    if persona not in (mine, DEFAULT_PERSONA):
        raise CallRefused(f"A tool that runs for {mine!r} sees no tools of {persona!r}.")
    return persona
