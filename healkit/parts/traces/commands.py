"""Command that sends the traces that wait: trace sync."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from healkit.commands.options import Option
from healkit.commands.table import FAILED, OK, Answer, Command

if TYPE_CHECKING:
    from healkit.services import Services


def sync(
    services: Services,
    retry_parked: Annotated[
        bool, Option("retry_parked", "also the traces that the collector refused before")
    ] = False,
    local: Annotated[
        bool, Option("local", "also the traces that were recorded while nothing was sent")
    ] = False,
    timeout: Annotated[
        float, Option("timeout", "how long to try, in seconds", float, default=30.0, least=0.1)
    ] = 30.0,
) -> Answer:
    """Send the traces that wait, now. Exit 0: the collector has them all; 1: some wait, or are parked."""
    state = services.traces.sync(retry_parked=retry_parked, local=local, timeout_s=timeout)
    parked = [f"Parked, {number:,} for: {reason}" for reason, number in state.parked_for.items()]
    return Answer(
        said=f"{state.sent:,} sent, {state.pending:,} waiting, {state.parked:,} parked",
        data=lambda: msgspec.structs.asdict(state),
        hints=[*parked, *([f"Waiting: {state.problem}"] if state.problem else ())],
        exit_code=FAILED if state.pending or state.parked else OK,
    )


COMMANDS = {"trace sync": Command(sync)}
