"""Tool of agents: decide."""

from __future__ import annotations

import asyncio
from typing import Any

from healkit.commands.agents import AgentAnswer, AgentCaller, AgentTool
from healkit.parts.decide.choosers import told

Json = dict[str, Any]


async def decide(
    call: AgentCaller,
    question: str,
    data: dict[str, str],
    choices: list[Json],
    tools: list[str] | None = None,
) -> AgentAnswer:
    """Answer a question about tables from their metadata only. data: name → data view.

    choices: {"type": "gather_info" or "execute_data_op", "tool", "params", "viewName"}, then {"type": "finalize",
    "finalViewName"}. With none, lists views and tools. tools: vault tools instead of the operations.
    """
    services = call.services
    views = {name: (await asyncio.to_thread(call.view, view)).name for name, view in data.items()}
    decision = await services.adecide(question, views, chooser=choices, tools=tools, persona=call.persona)
    call.note(decision.run.run_id, *decision.views.values())
    name = decision.raw_data_view_name
    return AgentAnswer(
        decision.to_json(),
        failed=not decision.ok and bool(choices),
        texts=[told(decision.sent[-1])] if decision.sent else (),
        views=() if name is None else [await asyncio.to_thread(services.views.get, name)],
    )


TOOLS = {"decide": AgentTool(decide)}
