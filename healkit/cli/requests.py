"""Commands of the patch requests: list, show, accept, decline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from healkit import options
from healkit.cli.command import (
    CODE,
    HELP_OPTIONS,
    OK,
    DbOption,
    JsonOption,
    alone,
    command,
    open_healkit,
    print_json,
    put,
    terminal_width,
    typed,
)
from healkit.contracts.tools import revision_address, revision_label

if TYPE_CHECKING:
    from healkit.contracts.healing import PatchRequest

app = typer.Typer(
    help="Patches waiting for approval; without a command, the list.",
    context_settings=HELP_OPTIONS,
)
NumberArgument = Annotated[int, typer.Argument(metavar="ID", help="The request's number.")]
ToolOption = Annotated[str | None, typed(options.TOOL_FILTER)]
PendingOption = Annotated[bool, typer.Option("--pending", help="Only those that wait.")]
LimitOption = Annotated[int, typed(options.LIMIT, min=1)]


def list_requests(
    tool: ToolOption = None,
    pending: PendingOption = False,
    limit: LimitOption = 50,
    as_json: JsonOption = False,
    db: DbOption = None,
) -> int:
    """List all requests: those that wait first, then the decided ones, newest first."""
    from healkit.rendering import listings
    from healkit.rendering.to_text import text_of

    with open_healkit(db, create=False) as healkit:
        found = healkit.requests.list(tool, state="pending" if pending else None, limit=limit)
    if as_json:
        print_json([_json(request) for request in found], exact=CODE)
    else:
        put(text_of(listings.requests(found), terminal_width()))
    return OK


def show(number: NumberArgument, as_json: JsonOption = False, db: DbOption = None) -> int:
    """Show one request in full, with its diff."""
    from healkit.rendering import listings
    from healkit.rendering.to_text import text_of

    with open_healkit(db, create=False) as healkit:
        request = healkit.requests.get(number)
    if as_json:
        print_json(_json(request), exact=CODE)
    else:
        put(text_of(listings.request(request, "terminal")))
    return OK


def accept(number: NumberArgument, as_json: JsonOption = False, db: DbOption = None) -> int:
    """Make it the tool's next revision; refused when the tool has another one by now."""
    with open_healkit(db, create=False) as healkit:
        request = healkit.requests.accept(number)
        active = healkit.vault.get(request.tool_name, request.persona).revision
    name, persona = request.tool_name, request.persona
    became, now = (revision_label(name, persona, one) for one in (request.revision, active))
    by_now = f"; {now} is active by now" if active != request.revision else ""
    return _decided(request, f"Request {number} accepted: it is {became}{by_now}", as_json)


def decline(
    number: NumberArgument,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept with it.")] = "",
    as_json: JsonOption = False,
    db: DbOption = None,
) -> int:
    """Decide against it; its code stays in the vault under its hash."""
    with open_healkit(db, create=False) as healkit:
        request = healkit.requests.decline(number, reason)
    return _decided(request, f"Request {number} declined", as_json)


def _decided(request: PatchRequest, said: str, as_json: bool) -> int:
    if as_json:
        print_json(_json(request), exact=CODE)
    else:
        put(said)
    return OK


def _json(request: PatchRequest) -> dict[str, Any]:
    import msgspec

    address = revision_address(request.tool_name, request.persona, request.parent)
    return {"label": address, **msgspec.to_builtins(request)}


command(app, "list")(list_requests)
command(app, "show")(show)
command(app, "accept")(accept)
command(app, "decline")(decline)
alone(app, list_requests)
