"""Command that adds the samples and lessons: seed."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

from healkit.commands.options import Option
from healkit.commands.table import Answer, Command

if TYPE_CHECKING:
    from healkit.services import Services


def seed(
    services: Services,
    reset: Annotated[
        bool, Option("reset", "restore the shipped code of every seeded tool", both=True)
    ] = False,
    debug_tools_only: Annotated[
        bool, Option("debug_tools_only", "only get_last_error and the other debug tools", both=True)
    ] = False,
) -> Answer:
    """Add the debug tools, samples and broken lessons to the vault. A second time changes nothing."""
    report = services.seed(reset=reset, debug_tools_only=debug_tools_only)
    url = services.database.shown_url
    return Answer(said=f"{url}: {report}", data=lambda: {"db": url, **dataclasses.asdict(report)})


COMMANDS = {"seed": Command(seed, creates=True)}
