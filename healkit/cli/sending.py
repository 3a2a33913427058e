"""Commands on where healkit stands and what it sends: status, trace sync."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any

import typer

from healkit.cli.common import (
    OK,
    TOOL_FAILED,
    DbOption,
    JsonOption,
    command,
    open_healkit,
    print_json,
    say,
)

if TYPE_CHECKING:
    from healkit.contracts.outbox import OutboxState


def status(as_json: JsonOption = False, db: DbOption = None) -> int:
    """Where the database is and what is in it, which traces wait to be sent, and what is wrong, if anything."""
    from healkit.rendering import reports, text_of

    with open_healkit(db, create=False) as healkit:
        found = healkit.status()
    if as_json:
        print_json({**dataclasses.asdict(found), "traces": _state_json(found.traces)})
    else:
        typer.echo(text_of(reports.status(found)))
    return OK


def sync(
    retry_parked: Annotated[
        bool, typer.Option("--retry-parked", help="With the traces that the collector refused before.")
    ] = False,
    local: Annotated[
        bool, typer.Option("--local", help="With those recorded while nothing was sent anywhere.")
    ] = False,
    timeout: Annotated[float, typer.Option(min=0.1, help="How long to try, in seconds.")] = 30.0,
    as_json: JsonOption = False,
    db: DbOption = None,
) -> int:
    """Send the traces that wait, now. Exit 0: the collector has them all; 1: some wait, or are parked."""
    with open_healkit(db, create=False) as healkit:
        state = healkit.traces.sync(retry_parked=retry_parked, local=local, timeout_s=timeout)
    if as_json:
        print_json(_state_json(state))
    else:
        typer.echo(f"{state.sent:,} sent, {state.pending:,} waiting, {state.parked:,} parked")
        for reason, count in state.parked_for.items():
            say(f"Parked, {count:,} for: {reason}")
        if state.problem:
            say(f"Waiting: {state.problem}")
    return TOOL_FAILED if state.pending or state.parked else OK


def _state_json(state: OutboxState) -> dict[str, Any]:
    import msgspec

    found: dict[str, Any] = msgspec.structs.asdict(state)
    return found


def add_to(app: typer.Typer, trace: typer.Typer) -> None:
    """Register the commands; `sync` beside the others on traces."""
    command(app, "status")(status)
    command(trace, "sync")(sync)
