"""Magics on tools: `%%tool`, `%vault` and `%healkit`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from healkit.commands.parsing import parse_arguments, read_grants, split_label, unknown
from healkit.core.contracts.vault import CodeChange
from healkit.core.rendering.document import Code, Line, Section, Span
from healkit.errors import FixUndone, UsageInvalid
from healkit.faces.commands import rows, vault_edits
from healkit.faces.commands import trust as trust_command
from healkit.faces.commands import vault as vault_commands
from healkit.faces.notebook.cell_output import CellOutput, replace_cell
from healkit.faces.notebook.magic_parsers import REQUEST_COMMANDS, VAULT_COMMANDS
from healkit.parts.doctor import cards as doctor_cards

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from healkit.app import Healkit
    from healkit.core.contracts.vault import VaultEntry
    from healkit.core.store.vault import Vault
    from healkit.parts.cells.own_cells import FailedCell, FailedCells


#: Returns the texts of the notebook's cells; None if they are unknown.
ReadCells = Callable[[], Iterable[str] | None]
#: Next steps for a cell that would undo a fix, and for one that is saved as a tool.
_INSTEAD = (
    "In the first line, --take puts v{active}'s code into this cell, and --replace saves the cell's code."
)
_INSTEAD_KEPT = (
    "%vault show {name} --edit puts v{active} into a cell; %vault revert {name} {older} takes the fix back."
)


def save(healkit: Healkit, options: Namespace, code: str, cells: ReadCells) -> tuple[VaultEntry, CellOutput]:
    """Save a `%%tool` cell; return the entry, and a line on what was saved.

    Raises `FixUndone` if the vault has a fix that no cell has.
    """
    if not code.strip():
        raise UsageInvalid("This %%tool cell is empty.", hint="Put the tool's code below the first line.")
    if options.name is None and options.sql:
        raise UsageInvalid("A SQL tool needs a name.", hint="Write %%tool NAME --sql.")
    name = options.name or vault_edits.name_in(code)
    if not (options.replace or options.draft):
        _check_fix(healkit.vault, name, options.persona, code, cells)
    grants = read_grants(vars(options))
    change = CodeChange(code, reason=options.reason, draft=options.draft, grants=grants)
    entry, before = vault_edits.add_or_patch(
        healkit.vault,
        healkit.log,
        name,
        options.persona,
        change,
        description=options.description,
        sql=options.sql,
        examples=[parse_arguments(text, "--example") for text in options.example or ()],
    )
    return entry, CellOutput.done(vault_edits.saved_line(entry, before))


def _check_fix(
    vault: Vault, name: str, persona: str, code: str, cells: ReadCells, instead: str = _INSTEAD
) -> None:
    """Raise `FixUndone` if the code would undo a fix that no cell of the notebook has.

    If the cells are unknown, one of them may have a fix that a person made.
    """
    undone = vault_edits.undone_fix(vault, name, persona, code)
    if undone is None:
        return
    texts, active = cells(), undone.active
    if not undone.healed if texts is None else any(active.code.strip() in text for text in texts):
        return
    kind = "a healed" if undone.healed else "a fixed"
    raise FixUndone(
        f"The vault has {kind} {active.label} that this cell does not have. "
        f"The cell's code is that of v{undone.older}; it was not saved.",
        hint=instead.format(name=name, active=active.revision, older=undone.older),
    )


def check_vault_words(options: Namespace) -> None:
    """Raise for an unknown subcommand, and for one with too few or too many words."""
    if options.command not in VAULT_COMMANDS:
        error = unknown("subcommand of %vault called", options.command, VAULT_COMMANDS)
        if error.hint:  # no similar subcommand: it is a tool's name
            error.hint += f" To see a tool, write %vault show {options.command}."
        raise error
    least, most, what = VAULT_COMMANDS[options.command]
    if not least <= len(options.words) <= most:
        takes = what.partition(":")[0] if most else ""
        needed = takes.partition("[")[0].split()
        typed = [*options.words, *needed[len(options.words) :]][:most]
        raise UsageInvalid(
            f"%vault {options.command} takes {takes or 'no name'}.",
            hint=f"Write {' '.join(['%vault', options.command, *typed])}; %vault lists the tools.",
        )
    if options.command != "grant" and (options.clear or read_grants(vars(options))):
        raise UsageInvalid(f"%vault {options.command} changes no grants.", hint="Write %vault grant NAME.")


def editing_cell(healkit: Healkit, options: Namespace) -> str:
    """Return a `%%tool` cell with the entry's code, to edit and to save as its next revision."""
    name, persona, revision = split_label(options.words[0])
    return tool_cell(healkit.vault.get(name, options.persona or persona or "default", revision))


def tool_cell(entry: VaultEntry) -> str:
    """Return the `%%tool` cell of an entry."""
    flags = "" if entry.persona == "default" else f" --persona {entry.persona}"
    return f"%%tool {entry.tool_name}{flags}{' --sql' if entry.type == 'sql' else ''}\n{entry.code}"


def take(healkit: Healkit, options: Namespace, code: str, shell: InteractiveShell) -> CellOutput:
    """Replace the running `%%tool` cell's text by the vault's code."""
    name = options.name or vault_edits.name_in(code)
    return put_into_cell(healkit.vault.get(name, options.persona), shell)


def put_into_cell(entry: VaultEntry, shell: InteractiveShell) -> CellOutput:
    """Turn the running cell into the `%%tool` cell of an entry."""
    replace_cell(shell, tool_cell(entry))
    return CellOutput.done(f"The code of {entry.label} is in this cell now: run it")


def vault(healkit: Healkit, options: Namespace) -> CellOutput:
    """Show the answer of a subcommand of `%vault`; `--persona` has priority over `NAME.PERSONA`."""
    words, flags = list(options.words), vars(options)
    if words and options.command != "rename":
        name, persona, revision = split_label(words[0])
        words[0] = name
        flags = {**flags, "persona": options.persona or persona}
        if revision is not None and options.command == "show":
            words[0] = f"{name}@{revision}"
        elif revision is not None and options.command == "diff":
            words.append(str(revision))
    answer = vault_commands.GROUP[options.command].answer_magic(healkit, words, flags)
    return CellOutput.answered(answer, healkit)


#: Subcommand → its report.
REPORTS: dict[str, Callable[[Healkit], CellOutput]] = {
    "status": lambda healkit: CellOutput.of(doctor_cards.status_card(healkit.status())),
    "doctor": lambda healkit: CellOutput.of(doctor_cards.doctor(healkit.doctor())),
}
_KEPT_NOTE = (
    "The tool runs in a restricted worker, not in this kernel. It has no network, and sees only the files that "
    "%vault grant allows."
)


def keep(healkit: Healkit, options: Namespace, shell: InteractiveShell, cells: FailedCells) -> CellOutput:
    """Save a cell as a tool, and show its arguments and how to run it."""
    if options.name is None or options.number is not None:
        raise UsageInvalid("The tool needs a name, of one word.", hint="Write %healkit keep NAME.")
    from healkit.parts.cells.cell_program import extract_function  # late, because few cells are saved

    extracted = extract_function(options.name, _cell(options.cell, shell, cells.last), shell.user_ns)
    _check_fix(healkit.vault, options.name, options.persona, extracted.code, cells.texts, _INSTEAD_KEPT)
    change = CodeChange(extracted.code, reason=options.reason)
    entry, before = vault_edits.add_or_patch(
        healkit.vault, healkit.log, options.name, options.persona, change
    )
    flag = "" if entry.persona == "default" else f" --persona {entry.persona}"
    run = " ".join(
        [
            f"%run_tool {entry.tool_name}{flag}",
            *(f"{argument}={argument}" for argument in extracted.arguments),
        ]
    )
    command = Line((Span(run, "code", "info"), Span("  run it", "quiet", plain="")), label="next")
    note = Line(Span(_KEPT_NOTE, "quiet"), "bare", "note")
    return CellOutput.done(
        vault_edits.saved_line(entry, before), Section((Code(extracted.code, indent=4), command, note))
    )


def _cell(number: int | None, shell: InteractiveShell, last: FailedCell | None) -> str:
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
    if word.isdecimal() and options.number is None:  # `%healkit requests 3` can only mean this
        word, options.number = "show", word
    if word not in REQUEST_COMMANDS:
        raise unknown("subcommand of %healkit requests called", word, REQUEST_COMMANDS)
    if word == "list":
        if options.number is not None:
            raise UsageInvalid(
                "%healkit requests list takes no number.", hint="Write %healkit requests show ID."
            )
        words = []
    else:
        words = [_number(word, options.number)]
    return CellOutput.answered(
        rows.group("requests")[word].answer_magic(healkit, words, {"reason": options.reason, "limit": 100}),
        healkit,
    )


def trust(options: Namespace) -> CellOutput:
    """Trust a database, or show what it would grant, even if the database could not be opened before."""
    answer = trust_command.COMMANDS["trust"].function(options.name, options.show, options.remove)
    return CellOutput.answered(answer)


def _number(word: str, typed: str | None) -> int:
    if typed is None or not typed.isdecimal():
        detail = "" if typed is None else f", not {typed!r}"
        raise UsageInvalid(
            f"%healkit requests {word} takes a request's number{detail}.", hint="See %healkit requests."
        )
    return int(typed)
