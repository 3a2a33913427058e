"""The vault's rows: found, kept and compared inside a caller's session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, get_args

import msgspec
from sqlalchemy import func
from sqlalchemy.orm import Session
from sqlmodel import select

from healkit.contracts.diffs import unified_diff
from healkit.contracts.examples import checked_examples
from healkit.contracts.records import utc_now
from healkit.contracts.tools import EntryRef
from healkit.errors import (
    PersonaNotFound,
    RevisionConflict,
    RevisionNotFound,
    ToolNotFound,
    VaultError,
    did_you_mean,
)
from healkit.store.arguments import check_schema
from healkit.store.entries import DEFAULT_PERSONA, CodeType, Described, describe, entry_of
from healkit.store.grants import make_grants
from healkit.store.models import Author, CodeVault, Revision, ToolRegistry

#: What `vault.set_flags` turns.
SWITCHES = ("side_effects", "log")


def check_kind(kind: str, author: str) -> None:
    """Refuse a type or an author that is not in the closed list; raises `VaultError`."""
    for word, value, known in (("type", kind, get_args(CodeType)), ("author", author, get_args(Author))):
        if value not in known:
            raise VaultError(f"{word}={value!r} is not known.", hint=f"It is one of {', '.join(known)}.")


def find(session: Session, name: str, persona: str) -> ToolRegistry | None:
    """The tool for exactly that persona, or None."""
    statement = select(ToolRegistry).where(
        ToolRegistry.tool_name == name, ToolRegistry.target_persona == persona
    )
    return session.scalars(statement).first()


def resolve(session: Session, name: str, persona: str) -> ToolRegistry:
    """The tool for that persona, else for `default`."""
    tool = find(session, name, persona) or find(session, name, DEFAULT_PERSONA)
    return tool if tool is not None else exactly(session, name, persona)


def exactly(session: Session, name: str, persona: str) -> ToolRegistry:
    """The tool for exactly that persona: what a change may be made to."""
    tool = find(session, name, persona)
    if tool is not None:
        return tool
    personas = sorted(
        session.scalars(select(ToolRegistry.target_persona).where(ToolRegistry.tool_name == name))
    )
    if personas:
        not_for_persona(name, persona, personas)
    names = tool_names(session)
    raise ToolNotFound(
        f"No tool named {name!r} in the vault.{did_you_mean(name, names)}",
        hint=""
        if names
        else "The vault is empty: add one with vault.add(name, code), or run `healkit seed`.",
    )


def not_for_persona(name: str, persona: str, personas: list[str]) -> NoReturn:
    """Raise the `PersonaNotFound` that names the personas there are."""
    raise PersonaNotFound(
        f"Tool {name!r} has no persona {persona!r}.{did_you_mean(persona, personas)}",
        hint=f"It has {', '.join(map(repr, personas))}; add one with vault.add({name!r}, code, persona=…).",
    )


def tool_names(session: Session) -> list[str]:
    """All names, sorted."""
    return sorted(session.scalars(select(ToolRegistry.tool_name).distinct()))


def find_revision(session: Session, tool: ToolRegistry, number: int) -> Revision:
    """The revision of that number; raises `RevisionNotFound`."""
    revision: Revision | None = session.scalars(revisions_of(tool).where(Revision.number == number)).first()
    if revision is None:
        last = last_number(session, tool)
        raise RevisionNotFound(
            f"{tool.tool_name!r} has no revision {number!r}.", hint=f"It has the revisions 1 to {last}."
        )
    return revision


def last_number(session: Session, tool: ToolRegistry) -> int:
    """The number of the newest revision, drafts included."""
    statement = select(func.max(Revision.number)).where(
        Revision.tool_name == tool.tool_name, Revision.target_persona == tool.target_persona
    )
    return session.scalar(statement) or 0


def stored_code(session: Session, revision: Revision) -> CodeVault:
    """The code of a revision."""
    code = session.get(CodeVault, revision.code_hash)
    if code is None:
        raise VaultError(
            f"The code of {revision.tool_name}@{revision.number} is gone from the vault.",
            hint="Restore the database from a copy, or revert to another revision.",
        )
    return code


def keep_code(session: Session, code: str, digest: str, kind: str) -> CodeVault:
    """The code's row, made where there is none; flushed, because a revision refers to it.

    A stored text that no longer has its hash is replaced by this one, which does: that mends a tampered row.
    """
    stored = session.get(CodeVault, digest)
    if stored is None:
        stored = CodeVault(hash=digest, code=code, type=kind, created_at=utc_now())
        session.add(stored)
        session.flush()
    elif stored.type != kind:
        raise VaultError(
            f"This very code is in the vault as {stored.type}.", hint=f"Add it with type={stored.type!r}."
        )
    else:
        stored.code = code  # the same, unless somebody tampered with it
    return stored


def builds_upon(session: Session, tool: ToolRegistry, parent: int) -> bool:
    """Whether `parent` is the active revision, or a draft that was made from it."""
    while parent != tool.active_revision:
        revision = find_revision(session, tool, parent)
        if not revision.draft or revision.parent is None:
            return False
        parent = revision.parent
    return True


def new_revision(
    tool: ToolRegistry,
    number: int,
    digest: str,
    parent: int | None,
    author: str,
    reason: str,
    motivating_log_id: int | None = None,
    *,
    draft: bool,
) -> Revision:
    """The row of a revision that is made now; adding it is the caller's."""
    return Revision(
        tool_name=tool.tool_name,
        target_persona=tool.target_persona,
        number=number,
        code_hash=digest,
        parent=parent,
        author=author,
        reason=reason,
        motivating_log_id=motivating_log_id,
        draft=draft,
        created_at=utc_now(),
    )


def activate(tool: ToolRegistry, revision: Revision, read_off: Described) -> None:
    """Make it what runs; what was read off the code follows it, examples only where a person changes them."""
    tool.active_revision = revision.number
    tool.active_hash = revision.code_hash
    tool.updated_at = revision.created_at
    derived = tool.flags.get("derived", ())
    if "input_schema" in derived:
        tool.input_schema = read_off.input_schema
    if "description" in derived:
        tool.description = read_off.description
    # A patch that nobody but its maker has seen may not say itself what is right.
    if revision.author == "person" and read_off.examples and ("examples" in derived or not tool.examples):
        keep_examples(tool, list(read_off.examples), derived=True)


def regrant(tool: ToolRegistry, changes: Mapping[str, Any], *, clear: bool = False) -> None:
    """Change the grants named and leave the others, or with `clear` take those back; raises `ConfigError`."""
    tool.grants = msgspec.to_builtins(make_grants({**({} if clear else tool.grants), **changes}))
    tool.updated_at = utc_now()


def reschema(session: Session, tool: ToolRegistry, schema: dict[str, Any] | None, dialect: str) -> None:
    """Give it that input schema, or one read off its active code, which then follows the code."""
    derived = [name for name in tool.flags.get("derived", []) if name != "input_schema"]
    if schema is None:
        active = find_revision(session, tool, tool.active_revision)
        code = stored_code(session, active)
        ref = EntryRef(tool.tool_name, tool.target_persona, active.number, code.hash)
        schema = describe(code.code, code.type, ref, dialect, draft=active.draft).input_schema
        derived.append("input_schema")
    check_schema(schema, tool.tool_name)
    tool.input_schema = schema
    tool.flags = {**tool.flags, "derived": derived}
    tool.updated_at = utc_now()


def kind_of(session: Session, tool: ToolRegistry) -> str:
    """`python` or `sql`."""
    return stored_code(session, find_revision(session, tool, tool.active_revision)).type


def keep_examples(tool: ToolRegistry, examples: list[Any], *, derived: bool = False) -> None:
    """Give it these examples; derived: they were read off its code, which they follow."""
    others = [name for name in tool.flags.get("derived", []) if name != "examples"]
    tool.examples = examples
    tool.flags = {**tool.flags, "derived": [*others, *(["examples"] if derived else [])]}
    tool.updated_at = utc_now()


def reexample(session: Session, tool: ToolRegistry, examples: Iterable[Any] | None, dialect: str) -> None:
    """Give it those examples, or the ones in its docstring, which then follow the code."""
    active = find_revision(session, tool, tool.active_revision)
    code = stored_code(session, active)
    if examples is None:
        ref = EntryRef(tool.tool_name, tool.target_persona, active.number, code.hash)
        found = describe(code.code, code.type, ref, dialect, draft=active.draft).examples
        keep_examples(tool, found, derived=bool(found))
    else:
        keep_examples(tool, checked_examples(examples, sql=code.type == "sql"))


def reflag(tool: ToolRegistry, changes: Mapping[str, bool]) -> None:
    """Turn the switches named and leave the others; raises `VaultError` for one that there is not."""
    for name, value in changes.items():
        if name not in SWITCHES or not isinstance(value, bool):
            raise VaultError(
                f"{name}={value!r} is no switch of a tool.",
                hint=f"There are {' and '.join(SWITCHES)}, True or False.",
            )
    tool.flags = {**tool.flags, **changes}
    tool.updated_at = utc_now()


def with_code(base: Revision, digest: str) -> Revision:
    """The revision with other code, to compare and to read; it is never stored."""
    return Revision(**{**base.model_dump(), "code_hash": digest})


def conflict(session: Session, tool: ToolRegistry, parent: int, later: CodeVault) -> RevisionConflict:
    """Somebody else patched the same parent first: both sides, to be joined by who comes second."""
    base = find_revision(session, tool, parent)
    active = find_revision(session, tool, tool.active_revision)
    mine = with_code(base, later.hash)
    label = entry_of(tool, active, stored_code(session, active), check=False).label
    return RevisionConflict(
        f"{label} is the active revision by now, and this patch was made from {parent}.\n"
        f"What was changed there:\n{diff_of(session, base, active)}\n"
        f"What this patch changes:\n{diff_of(session, base, mine, 'this patch')}\n"
        f"Nothing is lost: this patch's code is kept in the vault under the hash {later.hash}.",
        hint=f"Join the two and patch again with parent={active.number}.",
    )


def diff_of(session: Session, old: Revision, new: Revision, new_label: str = "") -> str:
    """A unified diff of two revisions' codes."""
    return unified_diff(
        stored_code(session, old).code,
        stored_code(session, new).code,
        f"{old.tool_name}@{old.number}",
        new_label or f"{new.tool_name}@{new.number}",
    )


def revisions_of(tool: ToolRegistry) -> Any:
    """The statement that selects a tool's revisions."""
    return select(Revision).where(
        Revision.tool_name == tool.tool_name, Revision.target_persona == tool.target_persona
    )
