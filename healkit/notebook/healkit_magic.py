"""`%healkit`: keep a cell as a tool, decide on patch requests."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from healkit.errors import UsageInvalid
from healkit.notebook.cell_output import CellOutput
from healkit.notebook.magic_parsers import REQUEST_COMMANDS
from healkit.parsing import unknown
from healkit.rendering import listings
from healkit.rendering import listings as rendered
from healkit.rendering.document import Code, Line, Section, Span
from healkit.runtime import vault_edits

if TYPE_CHECKING:
    from healkit.app import Healkit
    from healkit.notebook.own_cells import FailedCell

#: Subcommand → the report that it shows.
REPORTS: dict[str, Callable[[Healkit], CellOutput]] = {
    "status": lambda healkit: CellOutput.of(listings.status(healkit.status())),
    "doctor": lambda healkit: CellOutput.of(listings.doctor(healkit.doctor())),
}
_KEPT_NOTE = (
    "The tool runs in a restricted worker, not in this kernel: it has no network and sees no files until it is granted "
    "some (%vault grant)."
)


def keep(healkit: Healkit, options: Namespace, shell: Any, last: FailedCell | None) -> CellOutput:
    """Save a cell as a tool, and say which arguments it takes and how to run it."""
    if options.name is None or options.number is not None:
        raise UsageInvalid("The tool needs a name, of one word.", hint="Write %healkit keep NAME.")
    from healkit.cells.function_extraction import extract_function  # few cells are kept

    kept = extract_function(options.name, _cell(options.cell, shell, last), shell.user_ns)
    entry, before = vault_edits.add_or_patch(
        healkit.vault, healkit.log, options.name, kept.code, persona=options.persona, reason=options.reason
    )
    flag = "" if entry.persona == "default" else f" --persona {entry.persona}"
    run = " ".join([f"%run_tool {entry.tool_name}{flag}", *(f"{one}={one}" for one in kept.arguments)])
    command = Line((Span(run, "code", "info"), Span("  run it", "quiet", plain="")), label="next")
    note = Line(Span(_KEPT_NOTE, "quiet"), "bare", "note")
    return CellOutput.done(
        vault_edits.saved_line(entry, before), Section((Code(kept.code, indent=4), command, note))
    )


def _cell(number: int | None, shell: Any, last: FailedCell | None) -> str:
    """Return the text of the cell with that prompt number, or of the one that failed last."""
    if number is None:
        if last is None:
            raise UsageInvalid("No cell has failed yet.", hint="Name one by its prompt: --cell 12.")
        return last.execution.code or ""
    typed = shell.history_manager.input_hist_raw
    if not 0 < number < len(typed):
        raise UsageInvalid(f"There is no cell {number!r}.", hint=f"The last one is {len(typed) - 1}.")
    return str(typed[number])


def requests(healkit: Healkit, options: Namespace) -> CellOutput:
    """Show the list, one request, or the result of a decision."""
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
        return CellOutput.of(rendered.requests(found))
    number = _number(word, options.number)
    if word == "show":
        request = healkit.requests.get(number)
    elif word == "accept":
        request = healkit.requests.accept(number)
    else:
        request = healkit.requests.decline(number, options.reason)
    active = healkit.vault.get(request.tool_name, request.persona).revision
    return CellOutput.of(rendered.request(request, active=active))


def _number(word: str, typed: str | None) -> int:
    if typed is None or not typed.isdecimal():
        said = "" if typed is None else f", not {typed!r}"
        raise UsageInvalid(
            f"%healkit requests {word} takes a request's number{said}.", hint="See %healkit requests."
        )
    return int(typed)
