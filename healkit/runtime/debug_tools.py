"""Debug tools: in the vault, run as any other tool.

Their code runs in a restricted worker, which sees neither the vault nor the log. Both are read through the bridge, by
`LogTools`, which only tools with a grant for `healkit.*` may call, and which shows one persona's records: those of the
persona that the calling execution runs for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from healkit.contracts.execution import Grants
from healkit.contracts.tools import ToolDefinition
from healkit.contracts.vault import DEFAULT_PERSONA
from healkit.errors import CallRefused, did_you_mean
from healkit.runtime.history import last_error_report
from healkit.runtime.router import CallContext

if TYPE_CHECKING:
    from healkit.store.log_reader import Log
    from healkit.store.vault import Vault

_MAX_ROWS = 200


@dataclasses.dataclass(frozen=True)
class BuiltinTool:
    """A tool that the seeding puts into the vault."""

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
    """`mcp.healkit.*`: read-only views of the vault and the log, as far as the caller's persona goes."""

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
        """Return all of them; called by the router."""
        return [
            ToolDefinition(self.server, name, function.__doc__ or "")
            for name, function in self._tools.items()
        ]

    def expect(self, tool: str) -> None:
        """Refuse what is none of them; called by the router."""
        if tool not in self._tools:
            raise CallRefused(f"mcp.healkit has no {tool!r}.{did_you_mean(tool, self._tools)}")

    def call(self, tool: str, arguments: dict[str, Any], context: CallContext) -> Any:
        """Look it up; called by the router on a bridge thread."""
        return self._tools[tool](context.persona, **arguments)

    def _last_error(self, mine: str, /, tool_name: str | None = None) -> str:
        """Return the newest failure as a report."""
        return last_error_report(self._log(), tool_name, mine)

    def _list(self, mine: str, /, persona: str | None = None) -> list[dict[str, Any]]:
        """Name, persona, revision and description of each tool that the caller's persona can run."""
        shown = (DEFAULT_PERSONA, mine) if persona is None else (_visible(persona, mine),)
        return [
            {
                "tool_name": e.tool_name,
                "persona": e.persona,
                "revision": e.revision,
                "description": e.description,
            }
            for e in self._vault().list()
            if e.persona in shown
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
    """Return the persona, if a tool that runs for `mine` may see its tools; raise `CallRefused`."""
    if persona not in (mine, DEFAULT_PERSONA):
        raise CallRefused(f"A tool that runs for {mine!r} sees no tools of {persona!r}.")
    return persona
