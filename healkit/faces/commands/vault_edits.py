"""Code on its way into the vault, as a person saves it.

A tool is added when it is new, and patched when the vault has it with other code.
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


#: Authors of revisions that were healed.
_HEALERS = frozenset({"rule", "search", "model", "agent"})


class UndoneFix(NamedTuple):
    """Fix that older code would take back: the active revision, the one that has that code, and who made the fix."""

    active: VaultEntry
    older: int
    healed: bool


def name_in(code: str) -> str:
    """Return the tool's name, read off its code: its only public function, or the class that is a tool.

    Raises `UsageInvalid` where the code does not say it.
    """
    tree = parse(code, "<cell>")
    shape = read_shape(tree, "")
    if shape.entry in {"", "run"}:
        raise UsageInvalid("This code does not say what the tool is called.", hint="Write %%tool NAME.")
    return _snake(shape.entry) if shape.kind == "class" else shape.entry


def motivating_row(log: Log, entry: VaultEntry) -> int | None:
    """Return the log row that a patch of this revision answers: the newest failure, if its own code failed."""
    row = log.last_error(entry.tool_name, entry.persona)
    failure = None if row is None else execution_of(row, []).uncleaned.failure
    if row is None or failure is None or row.revision != entry.revision:
        return None
    return None if is_refused(failure.code) else row.id  # a wrong call is no reason to patch


def patch(
    vault: Vault,
    log: Log,
    name: str,
    persona: str,
    change: CodeChange,
    examples: Sequence[Any] = (),
) -> tuple[VaultEntry, VaultEntry]:
    """Save other code for a tool, with the failure that it answers; return the entry, and the one before.

    examples: added to the tool's. Raises `ExamplesInvalid` before anything is saved, and as `Vault.patch` does.
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
    """Save the code under that name; return the entry, and the one that was there before, if any.

    A patch leaves grants that the change does not name as they were. examples: a patch adds them to the tool's.
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
    """Return the fix that saving this code would take back; None where it would take back none.

    The code is that of an older revision, and one of those since is a fix: healing or an agent made it, or a person in
    answer to a failure. What `%vault revert` and a changed cell save is none.
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
    """Say in one line what was saved: `fibonacci v2 saved (patched from v1)`."""
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
    """Rename a tool; return its entry, and a line that says so and names who calls it by the old name."""
    callers = vault.callers(old)
    entry = vault.rename(old, new, reason=reason)
    sentence = (
        f"{old} is called {entry.tool_name} now, with its revisions and runs. The old name still means it"
    )
    return entry, f"{sentence}.{_called_by(old, callers, 'their code is not changed')}"


def remove_tool(
    vault: Vault, name: str, persona: str | None, reason: str, restore: str
) -> tuple[list[VaultEntry], str]:
    """Remove a tool; return what was removed, and a line that says so and names who calls it.

    restore: the command that brings it back, as the reader types it.
    """
    removed = vault.remove(name, persona, reason=reason)
    if not removed:
        return removed, f"{name} was removed already."
    sentence = f"{name} removed; its code, revisions and runs are kept, and {restore} {name} brings it back"
    return removed, f"{sentence}.{_called_by(name, vault.callers(name), 'those calls fail from now on')}"


def restore_tool(vault: Vault, name: str, persona: str | None, reason: str) -> tuple[VaultEntry, str]:
    """Bring a removed tool back; return its entry, and a line that says so, or that it was not removed."""
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
    """Return the active revision of exactly that name and persona; None when there is none."""
    try:
        entry = vault.get(name, persona)
    except (ToolNotFound, PersonaNotFound):
        return None
    # The vault falls back to `default`; a removed tool is added anew.
    return entry if entry.persona == persona and entry.removed_at is None else None


def _snake(name: str) -> str:
    """Return the name of a class as a tool's: `FibonacciTool` as `fibonacci`."""
    stem = name.removesuffix("Tool") or name
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(stem))
