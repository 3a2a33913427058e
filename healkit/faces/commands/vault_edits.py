"""Saving code in the vault, on behalf of a person.

A new tool is added; a tool with other code in the vault is patched.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from healkit.core.contracts.vault import checked_examples
from healkit.core.pysource.shapes import parse, read_shape
from healkit.core.runtime.execution import execution_of
from healkit.core.store.entries import code_hash
from healkit.errors import PersonaNotFound, ToolNotFound, UsageInvalid, is_refused

if TYPE_CHECKING:
    from healkit.core.contracts.vault import CodeChange, RevisionInfo, VaultEntry
    from healkit.core.store.log_reader import Log
    from healkit.core.store.vault import Vault


#: Authors of revisions that a healing made.
_HEALERS = frozenset({"rule", "search", "model", "agent"})


class UndoneFix(NamedTuple):
    """Fix that older code would undo: the active revision, the older revision with that code, the fix's author."""

    active: VaultEntry
    older: int
    healed: bool


def name_in(code: str) -> str:
    """Return the tool's name from its code: its only public function, or the class that is a tool.

    Raises `UsageInvalid` if the code does not show it.
    """
    tree = parse(code, "<cell>")
    shape = read_shape(tree, "")
    if shape.entry in {"", "run"}:
        raise UsageInvalid("This code does not say what the tool is called.", hint="Write %%tool NAME.")
    return _snake(shape.entry) if shape.kind == "class" else shape.entry


def motivating_row(log: Log, entry: VaultEntry) -> int | None:
    """Return the log row that a patch of this revision responds to: the newest failure, if its own code failed."""
    row = log.last_error(entry.tool_name, entry.persona)
    failure = None if row is None else execution_of(row, []).uncleaned.failure
    if row is None or failure is None or row.revision != entry.revision:
        return None
    return None if is_refused(failure.code) else row.id  # a wrong call does not justify a patch


def patch(
    vault: Vault,
    log: Log,
    name: str,
    persona: str,
    change: CodeChange,
    examples: Sequence[Any] = (),
) -> tuple[VaultEntry, VaultEntry]:
    """Save new code for a tool, with the failure that it responds to; return the entry, and the previous one.

    examples: Added to the tool's. Raises `ExamplesInvalid` before anything is saved, and the errors of `Vault.patch`.
    """
    before = vault.get(name, persona)
    checked_examples(examples, sql=before.type == "sql")
    answering = dataclasses.replace(change, motivating_log_id=motivating_row(log, before))
    entry = vault.apply(name, persona, answering)
    for example in examples:
        vault.add_example(name, example, persona)
    return entry, before


def add_or_patch(
    vault: Vault,
    log: Log,
    name: str,
    persona: str,
    change: CodeChange,
    *,
    description: str = "",
    sql: bool = False,
    examples: Sequence[Any] = (),
) -> tuple[VaultEntry, VaultEntry | None]:
    """Save the code under that name; return the entry, and the previous one, if any.

    A patch keeps grants that the change does not name. examples: A patch adds them to the tool's.
    """
    before = exactly(vault, name, persona)
    if before is None:
        kind: Literal["python", "sql"] = "sql" if sql else "python"
        entry = vault.add(
            name,
            change.code,
            persona=persona,
            type=kind,
            description=description,
            reason=change.reason,
            draft=change.draft,
            grants=change.grants or None,
            examples=examples,
        )
        return entry, None
    if sql and before.type != "sql":
        raise UsageInvalid(f"{before.label} is a Python tool.", hint="Give the SQL tool a name of its own.")
    return patch(vault, log, name, persona, change, examples)


def undone_fix(vault: Vault, name: str, persona: str, code: str) -> UndoneFix | None:
    """Return the fix that saving this code would undo; None if there is none.

    The code is that of an older revision, and a later revision is a fix. A healing or an agent made it, or a person in
    response to a failure. Revisions from `%vault revert` and from a changed cell do not count as fixes.
    """
    active = exactly(vault, name, persona)
    if active is None or active.code == code:
        return None
    saved = [revision for revision in vault.history(name, persona) if not revision.draft]
    older = [revision.number for revision in saved if revision.code_hash == code_hash(code)]
    fixes = [revision for revision in saved if older and revision.number > older[-1] and _is_fix(revision)]
    if not fixes:
        return None
    return UndoneFix(active, older[-1], any(fix.author in _HEALERS for fix in fixes))


def _is_fix(revision: RevisionInfo) -> bool:
    answers = revision.author == "person" and revision.motivating_log_id is not None
    return answers or revision.author in _HEALERS


def saved_line(entry: VaultEntry, before: VaultEntry | None) -> str:
    """Return one line on what was saved, such as `fibonacci v2 saved (patched from v1)`."""
    draft = " as a draft, which cannot be run" if entry.draft else ""
    if before is None:
        return f"{entry.label} saved{draft}"
    if entry.revision == before.revision and entry.grants != before.grants:
        return f"{entry.label} has other grants now, and the code it had"
    if entry.revision == before.revision:
        return f"{entry.label} unchanged (the vault already has this code)"
    grants = ", with other grants" if entry.grants != before.grants else ""
    return f"{entry.label} saved (patched from v{before.revision}){draft}{grants}"


def rename_tool(vault: Vault, old: str, new: str, reason: str = "") -> tuple[VaultEntry, str]:
    """Rename a tool; return its entry, and a line about it that lists the callers of the old name."""
    callers = vault.callers(old)
    entry = vault.rename(old, new, reason=reason)
    sentence = (
        f"{old} is called {entry.tool_name} now, with its revisions and runs. The old name still means it"
    )
    return entry, f"{sentence}.{_called_by(old, callers, 'their code is not changed')}"


def remove_tool(
    vault: Vault, name: str, persona: str | None, reason: str, restore: str
) -> tuple[list[VaultEntry], str]:
    """Remove a tool; return what was removed, and a line about it that lists its callers.

    restore: The command that restores it, as the user types it.
    """
    removed = vault.remove(name, persona, reason=reason)
    if not removed:
        return removed, f"{name} was removed already."
    sentence = f"{name} removed; its code, revisions and runs are kept, and {restore} {name} brings it back"
    return removed, f"{sentence}.{_called_by(name, vault.callers(name), 'those calls fail from now on')}"


def restore_tool(vault: Vault, name: str, persona: str | None, reason: str) -> tuple[VaultEntry, str]:
    """Restore a removed tool; return its entry, and a line about it, also if it was not removed."""
    before = len(vault.name_changes(name))
    entry = vault.restore(name, persona, reason=reason)
    restored = len(vault.name_changes(name)) > before
    return (
        entry,
        f"{entry.label} is back" if restored else f"{entry.label} was not removed; nothing has changed",
    )


def _called_by(name: str, callers: Sequence[str], outcome: str) -> str:
    return f" mcp.vault.{name} is called by {', '.join(callers)}: {outcome}." if callers else ""


def exactly(vault: Vault, name: str, persona: str) -> VaultEntry | None:
    """Return the active revision of exactly that name and persona; None if there is none."""
    try:
        entry = vault.get(name, persona)
    except (ToolNotFound, PersonaNotFound):
        return None
    # The vault falls back to `default`; a removed tool is added anew.
    return entry if entry.persona == persona and entry.removed_at is None else None


def _snake(name: str) -> str:
    """Convert a class name to a tool's name: `FibonacciTool` to `fibonacci`."""
    stem = name.removesuffix("Tool") or name
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(stem))
