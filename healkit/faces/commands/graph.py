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
    edges = healkit.graph.drawn(tool)
    return Answer(lambda: repr(edges), lambda: [edge.to_json() for edge in edges], clipped=True)


def suggest(
    healkit: Healkit,
    intent: Annotated[str | None, word("what is wanted, in words and in quotes", "INTENT")] = None,
    after: Annotated[list[str] | None, options.AFTER] = None,
    limit: Annotated[int, options.SUGGESTED] = options.SUGGESTED.default,
) -> Answer:
    """Suggest tools to call, for an intent or after other calls, and say why."""
    suggestions = healkit.suggest(intent, after=after or (), k=limit)
    rows: list[dict[str, Any]] = [
        {"tool": suggestion.tool, "share": suggestion.share, "why": suggestion.why}
        for suggestion in suggestions
    ]
    return Answer(lambda: repr(suggestions), lambda: rows, clipped=True)


COMMANDS = {"graph": Command(graph), "suggest": Command(suggest)}
