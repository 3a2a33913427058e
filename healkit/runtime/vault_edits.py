"""Code on its way into the vault, as a person saves it.

A tool is added when it is new, and patched when the vault has it with other code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from healkit.contracts.examples import checked_examples
from healkit.errors import TOOL_CODES, PersonaNotFound, ToolNotFound, UsageInvalid
from healkit.pysource.shapes import parse, read_shape
from healkit.runtime.log_rows import execution_of

if TYPE_CHECKING:
    from healkit.contracts.entries import VaultEntry
    from healkit.store.log_reader import Log
    from healkit.store.vault import Vault


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
    failure = None if row is None else execution_of(row, []).failure
    if row is None or failure is None or row.revision != entry.revision:
        return None
    return row.id if failure.code in TOOL_CODES else None  # a wrong call is no reason to patch


def patch(
    vault: Vault,
    log: Log,
    name: str,
    code: str,
    *,
    persona: str = "default",
    parent: int | None = None,
    draft: bool = False,
    reason: str = "",
    grants: dict[str, Any] | None = None,
    examples: Sequence[Any] = (),
) -> tuple[VaultEntry, VaultEntry]:
    """Save other code for a tool, with the failure that it answers; return the entry, and the one before.

    examples: added to the tool's. Raises `ExamplesInvalid` before anything is saved, and as `Vault.patch` does.
    """
    before = vault.get(name, persona)
    checked_examples(examples, sql=before.type == "sql")
    entry = vault.patch(
        name,
        code,
        persona=persona,
        parent=parent,
        draft=draft,
        reason=reason,
        grants=grants,
        motivating_log_id=motivating_row(log, before),
    )
    for example in examples:
        vault.add_example(name, example, persona)
    return entry, before


def add_or_patch(
    vault: Vault,
    log: Log,
    name: str,
    code: str,
    *,
    persona: str = "default",
    description: str = "",
    sql: bool = False,
    draft: bool = False,
    reason: str = "",
    grants: dict[str, Any] | None = None,
    examples: Sequence[Any] = (),
) -> tuple[VaultEntry, VaultEntry | None]:
    """Save the code under that name; return the entry, and the one that was there before, if any.

    grants: those that were named; a patch leaves the others as they were. examples: a patch adds them to the tool's.
    """
    before = _exactly(vault, name, persona)
    if before is None:
        kind: Literal["python", "sql"] = "sql" if sql else "python"
        entry = vault.add(
            name,
            code,
            persona=persona,
            type=kind,
            description=description,
            reason=reason,
            draft=draft,
            grants=grants or None,
            examples=examples,
        )
        return entry, None
    if sql and before.type != "sql":
        raise UsageInvalid(f"{before.label} is a Python tool.", hint="Give the SQL tool a name of its own.")
    return patch(
        vault,
        log,
        name,
        code,
        persona=persona,
        draft=draft,
        reason=reason,
        grants=grants,
        examples=examples,
    )


def _exactly(vault: Vault, name: str, persona: str) -> VaultEntry | None:
    """Return the active revision of exactly that name and persona; None when there is none."""
    try:
        entry = vault.get(name, persona)
    except (ToolNotFound, PersonaNotFound):
        return None
    return entry if entry.persona == persona else None  # the vault falls back to `default`


def _snake(name: str) -> str:
    """Return the name of a class as a tool's: `FibonacciTool` as `fibonacci`."""
    stem = name.removesuffix("Tool") or name
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(stem))
