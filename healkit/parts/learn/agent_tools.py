"""Tool of agents: suggest_tools."""

from __future__ import annotations

from healkit.commands.agents import AgentAnswer, AgentCaller, AgentTool

_SUGGESTED_MAX = 20


def suggest_tools(
    call: AgentCaller, intent: str | None = None, after: list[str] | None = None, limit: int = 5
) -> AgentAnswer:
    """Suggest vault tools for an intent, or for what comes after other calls: schema and why. Then run_tool."""
    services = call.services
    most = max(1, min(limit, _SUGGESTED_MAX))
    suggestions = services.suggest(intent, after=after or (), k=most, persona=call.persona)
    tools = []
    for suggestion in suggestions:
        entry = services.vault.active(suggestion.tool, call.persona)
        tools.append(
            {
                "name": suggestion.tool,
                "why": suggestion.why,
                "description": entry.description,
                "input_schema": entry.input_schema,
            }
        )
    waiting = {"waiting_traces": suggestions.waiting} if suggestions.waiting else {}
    return AgentAnswer({"tools": tools, **waiting, **({} if tools else {"note": repr(suggestions)})})


TOOLS = {"suggest_tools": AgentTool(suggest_tools, reads=True, repeats=True)}
