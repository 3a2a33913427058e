"""`%healkit requests`: patches that wait for the user's word."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from healkit.errors import UsageInvalid
from healkit.notebook.cell_output import CellOutput
from healkit.notebook.commands import REQUEST_COMMANDS
from healkit.parsing import unknown
from healkit.rendering import requests as rendered

if TYPE_CHECKING:
    from healkit.app import Healkit
    from healkit.contracts.requests import PatchRequest


def requests(healkit: Healkit, options: Namespace) -> CellOutput:
    """The list, one request, or what became of one."""
    word = options.name or "list"
    if word.isdecimal() and options.number is None:  # `%healkit requests 3` can only mean one thing
        word, options.number = "show", word
    if word not in REQUEST_COMMANDS:
        raise unknown("subcommand of %healkit requests called", word, REQUEST_COMMANDS)
    if word == "list":
        if options.number is not None:
            raise UsageInvalid(
                "%healkit requests list takes no number.", hint="Write %healkit requests show ID."
            )
        found = healkit.requests.list()
        return CellOutput.of(rendered.listing(found))
    number = _number(word, options.number)
    if word == "show":
        request = healkit.requests.get(number)
    elif word == "accept":
        request = healkit.requests.accept(number)
    else:
        request = healkit.requests.decline(number, options.reason)
    return _shown(request)


def _number(word: str, typed: str | None) -> int:
    if typed is None or not typed.isdecimal():
        said = "" if typed is None else f", not {typed!r}"
        raise UsageInvalid(
            f"%healkit requests {word} takes a request's number{said}.", hint="See %healkit requests."
        )
    return int(typed)


def _shown(request: PatchRequest) -> CellOutput:
    return CellOutput.of(rendered.card(request))
