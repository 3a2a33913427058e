"""Commands of the patch requests, from list to decline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from healkit.core.contracts.tools import revision_address, revision_label
from healkit.faces.commands import options
from healkit.faces.commands.options import Option, word
from healkit.faces.commands.table import CODE, Answer, Command, Group, Json
from healkit.parts.heal import render_requests

if TYPE_CHECKING:
    from healkit.app import Healkit
    from healkit.parts.heal.records import PatchRequest

Number = Annotated[int, word("the request's number", "ID")]


def list_requests(
    healkit: Healkit,
    tool: Annotated[str | None, options.TOOL_FILTER] = None,
    pending: Annotated[bool, Option("pending", "only those that wait")] = False,
    limit: Annotated[int, options.LIMIT] = 50,
) -> Answer:
    """List all requests: those that wait first, then the decided ones, newest first."""
    requests = healkit.requests.list(tool, state="pending" if pending else None, limit=limit)
    return Answer(
        lambda: render_requests.requests(requests), lambda: [*map(_json, requests)], exact=CODE, table=True
    )


def show(healkit: Healkit, number: Number, *, program: str) -> Answer:
    """Show one request in full, with its diff."""
    return _answer(healkit, healkit.requests.get(number), program)


def accept(healkit: Healkit, number: Number, *, program: str) -> Answer:
    """Make it the tool's next revision; refused when the tool has another one by now."""
    request = healkit.requests.accept(number)
    active = healkit.vault.get(request.tool_name, request.persona).revision
    name, persona = request.tool_name, request.persona
    became, now = (revision_label(name, persona, revision) for revision in (request.revision, active))
    by_now = f"; {now} is active by now" if active != request.revision else ""
    return _answer(healkit, request, program, f"Request {number} accepted: it is {became}{by_now}")


def decline(
    healkit: Healkit,
    number: Number,
    reason: Annotated[str, Option("reason", "why; kept with it")] = "",
    *,
    program: str,
) -> Answer:
    """Decide against it; its code stays in the vault under its hash."""
    return _answer(healkit, healkit.requests.decline(number, reason), program, f"Request {number} declined")


def _answer(healkit: Healkit, request: PatchRequest, program: str, said: str = "") -> Answer:
    """Show a request's card; a terminal says a decision in one sentence instead."""
    if program == "%":
        active = healkit.vault.get(request.tool_name, request.persona).revision
        return Answer(lambda: render_requests.request(request, active=active))
    card = None if said else lambda: render_requests.request(request, "terminal")
    return Answer(card, lambda: _json(request), said=said, exact=CODE)


def _json(request: PatchRequest) -> Json:
    address = revision_address(request.tool_name, request.persona, request.parent)
    return {"label": address, **msgspec.to_builtins(request)}


GROUP = Group(
    "Patches waiting for approval; without a command, the list.",
    {
        "list": Command(list_requests),
        "show": Command(show),
        "accept": Command(accept),
        "decline": Command(decline),
    },
)
