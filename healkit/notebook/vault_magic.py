"""Magics on the vault: `%%tool` and `%vault`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING

from healkit.errors import UsageInvalid
from healkit.notebook.cell_output import CellOutput, panel_of
from healkit.notebook.magic_parsers import VAULT_COMMANDS
from healkit.parsing import parse_arguments, parse_revision, read_grants, split_label, unknown
from healkit.rendering import listings
from healkit.runtime import vault_edits

if TYPE_CHECKING:
    from healkit.app import Healkit
    from healkit.contracts.vault import VaultEntry


def save(healkit: Healkit, options: Namespace, code: str) -> tuple[VaultEntry, CellOutput]:
    """Save a `%%tool` cell; return the entry, and say what was saved."""
    if not code.strip():
        raise UsageInvalid("This %%tool cell is empty.", hint="Put the tool's code below the first line.")
    if options.name is None and options.sql:
        raise UsageInvalid("A SQL tool needs a name.", hint="Write %%tool NAME --sql.")
    entry, before = vault_edits.add_or_patch(
        healkit.vault,
        healkit.log,
        options.name or vault_edits.name_in(code),
        code,
        persona=options.persona,
        description=options.description,
        sql=options.sql,
        draft=options.draft,
        reason=options.reason,
        grants=read_grants(vars(options)),
        examples=[parse_arguments(text, "--example") for text in options.example or ()],
    )
    return entry, CellOutput.done(vault_edits.saved_line(entry, before))


def check_vault_words(options: Namespace) -> None:
    """Refuse an unknown subcommand, and one with too few or too many words."""
    if options.command not in VAULT_COMMANDS:
        error = unknown("subcommand of %vault called", options.command, VAULT_COMMANDS)
        if error.hint:  # nothing near it: a tool's name
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
    """Return a `%%tool` cell with the entry's code, to change and to save as its next revision."""
    name, persona, revision = _which(options)
    entry = healkit.vault.get(name, persona, revision)
    flags = "" if entry.persona == "default" else f" --persona {entry.persona}"
    return f"%%tool {entry.tool_name}{flags}\n{entry.code}"


def _list(healkit: Healkit, options: Namespace) -> CellOutput:
    entries = healkit.vault.list(options.persona, removed=options.removed)
    return CellOutput.of(listings.vault(entries))


def _show(healkit: Healkit, options: Namespace) -> CellOutput:
    name, persona, revision = _which(options)
    entry = healkit.vault.get(name, persona, revision)
    live = panel_of(healkit, "PatchEditor", name, entry.persona) if revision is None else None
    return CellOutput.of(listings.entry(entry), live)


def _diff(healkit: Healkit, options: Namespace) -> CellOutput:
    name, persona, revision = _which(options)
    ends = [parse_revision(word) for word in options.words[1:]]
    if revision is not None:
        ends.append(revision)
    a, b = (ends[0] if ends else None), (ends[1] if len(ends) > 1 else None)
    text = healkit.vault.diff(name, a, b, persona=persona)
    return CellOutput.of(listings.diff(name, text))


def _history(healkit: Healkit, options: Namespace) -> CellOutput:
    name, persona, _ = _which(options)
    revisions = healkit.vault.history(name, persona)
    return CellOutput.of(listings.history(name, revisions))


def _blame(healkit: Healkit, options: Namespace) -> CellOutput:
    name, persona, _ = _which(options)
    blame = healkit.vault.blame(name, persona=persona)
    return CellOutput.of(listings.blame(name, blame))


def _revert(healkit: Healkit, options: Namespace) -> CellOutput:
    name, persona, _ = _which(options)
    to = parse_revision(options.words[1])
    entry = healkit.vault.revert(name, to, persona=persona, reason=options.reason)
    said = f"{entry.label} saved (the code of v{to} again)"
    return CellOutput.done(said)


def _undo(healkit: Healkit, options: Namespace) -> CellOutput:
    name, persona, _ = _which(options)
    before = healkit.vault.get(name, persona)
    said = f"{healkit.undo(name, persona).label} saved ({before.label} is undone)"
    return CellOutput.done(said)


def _rename(healkit: Healkit, options: Namespace) -> CellOutput:
    old, new = options.words
    return CellOutput.done(vault_edits.rename(healkit.vault, old, new, options.reason)[1])


def _remove(healkit: Healkit, options: Namespace) -> CellOutput:
    name, persona, _ = split_label(options.words[0])
    persona = options.persona or persona
    _, said = vault_edits.remove(healkit.vault, name, persona, options.reason, "%vault restore")
    return CellOutput.done(said)


def _restore(healkit: Healkit, options: Namespace) -> CellOutput:
    name, persona, _ = split_label(options.words[0])
    _, said = vault_edits.restore(healkit.vault, name, options.persona or persona, options.reason)
    return CellOutput.done(said)


def _grant(healkit: Healkit, options: Namespace) -> CellOutput:
    name, persona, _ = _which(options)
    changes = read_grants(vars(options))
    if changes or options.clear:
        entry = healkit.vault.set_grants(name, persona, clear=options.clear, **changes)
    else:
        entry = healkit.vault.get(name, persona)
    return CellOutput.of(listings.grants(entry))


def _which(options: Namespace) -> tuple[str, str, int | None]:
    """Read name, persona and revision off the first word; `--persona` wins over `NAME.PERSONA`."""
    name, persona, revision = split_label(options.words[0])
    return name, options.persona or persona or "default", revision


#: The subcommand's name → what it shows.
VAULT: dict[str, Callable[[Healkit, Namespace], CellOutput]] = {
    "list": _list,
    "show": _show,
    "diff": _diff,
    "history": _history,
    "blame": _blame,
    "revert": _revert,
    "undo": _undo,
    "rename": _rename,
    "remove": _remove,
    "restore": _restore,
    "grant": _grant,
}
