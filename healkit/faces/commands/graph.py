"""Commands of the tool graph: graph, suggest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from healkit.faces.commands import options
from healkit.faces.commands.options import word
from healkit.faces.commands.table import Answer, Command

if TYPE_CHECKING:
    from healkit.app import Healkit


def graph(
    healkit: Healkit, tool: Annotated[str | None, word("a tool: only what it goes with", "TOOL")] = None
) -> Answer:
    """Show which tools go together: which calls which, which comes after which, whose result goes into which."""
    found = healkit.graph.drawn(tool)
    return Answer(lambda: repr(found), lambda: [edge.to_json() for edge in found], clipped=True)


def suggest(
    healkit: Healkit,
    intent: Annotated[str | None, word("what is wanted, in words and in quotes", "INTENT")] = None,
    after: Annotated[list[str] | None, options.AFTER] = None,
    limit: Annotated[int, options.SUGGESTED] = options.SUGGESTED.default,
) -> Answer:
    """Suggest tools to call, for an intent or after other calls, and say why."""
    found = healkit.suggest(intent, after=after or (), k=limit)
    rows: list[dict[str, Any]] = [{"tool": one.tool, "share": one.share, "why": one.why} for one in found]
    return Answer(lambda: repr(found), lambda: rows, clipped=True)


COMMANDS = {"graph": Command(graph), "suggest": Command(suggest)}
