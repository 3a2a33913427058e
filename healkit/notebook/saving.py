"""Code on its way into the vault.

It is added when the tool is new, and patched when the vault has the tool with other code.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from healkit.contracts.examples import checked_examples
from healkit.errors import TOOL_CODES, CodeDoesNotParse, PersonaNotFound, ToolNotFound, UsageInvalid
from healkit.pysource.shapes import parse, read_shape

if TYPE_CHECKING:
    from healkit.app import Healkit
    from healkit.store.vault import VaultEntry


def name_in(code: str) -> str:
    """The tool's name read off its code: its only public function, or the class that is a tool."""
    tree = parse(code, "<cell>")
    shape = read_shape(tree, "")
    if shape.entry in {"", "run"}:
        raise UsageInvalid("This code does not say what the tool is called.", hint="Write %%tool NAME.")
    return _snake(shape.entry) if shape.kind == "class" else shape.entry


def current(healkit: Healkit, name: str, persona: str) -> VaultEntry | None:
    """The active revision of exactly that name and persona; None when there is none."""
    try:
        entry = healkit.vault.get(name, persona)
    except (ToolNotFound, PersonaNotFound):
        return None
    return entry if entry.persona == persona else None  # the vault falls back to `default`


def motive(healkit: Healkit, entry: VaultEntry) -> int | None:
    """The log row of the newest failure, if it was this very revision's: what a patch of it answers."""
    last = healkit.last_error(entry.tool_name, entry.persona)
    if last is None or last.failure is None or last.revision != entry.revision:
        return None
    return last.log_id if last.failure.code in TOOL_CODES else None  # a wrong call is no reason to patch


@contextlib.contextmanager
def draft_flag() -> Iterator[None]:
    """Say `--draft` in a syntax error's hint, which names the Python argument otherwise."""
    try:
        yield
    except CodeDoesNotParse as error:
        error.hint = error.hint.replace("draft=True", "--draft")
        raise


@draft_flag()
def save(
    healkit: Healkit,
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
) -> tuple[VaultEntry, str]:
    """Add or patch; the entry, and one line that says which: `fibonacci@2 saved (patched from @1)`.

    grants: those that were typed; a patch leaves the others as they were. examples: a patch adds them to the tool's.
    """
    before = current(healkit, name, persona)
    if before is None:
        kind: Literal["python", "sql"] = "sql" if sql else "python"
        entry = healkit.vault.add(
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
        return entry, f"{entry.label} saved"
    checked_examples(examples, sql=before.type == "sql")  # before anything is saved
    if sql and before.type != "sql":
        raise UsageInvalid(f"{before.label} is a Python tool.", hint="Give the SQL tool a name of its own.")
    entry = healkit.vault.patch(
        name,
        code,
        persona=persona,
        reason=reason,
        author="person",
        draft=draft,
        motivating_log_id=motive(healkit, before),
        grants=grants,
    )
    for example in examples:
        healkit.vault.add_example(name, example, persona)
    if entry.revision == before.revision and entry.grants != before.grants:
        return entry, f"{entry.label} has other grants now, and the code it had"
    if entry.revision == before.revision:
        return entry, f"{entry.label} unchanged (the vault has this code already)"
    return entry, f"{entry.label} saved (patched from @{before.revision})"


def _snake(name: str) -> str:
    """`FibonacciTool` as `fibonacci`."""
    stem = name.removesuffix("Tool") or name
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(stem))
