"""Rows of the vault, found and changed in a caller's session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn

import msgspec
from sqlalchemy import and_, func
from sqlalchemy.orm import Session
from sqlmodel import col, select

from healkit.contracts.execution import utc_now
from healkit.contracts.tools import EntryRef, revision_label
from healkit.contracts.vault import DEFAULT_PERSONA, checked_examples
from healkit.crossing import values
from healkit.errors import (
    PersonaNotFound,
    RevisionNotFound,
    ToolNotFound,
    ToolRemoved,
    VaultError,
    did_you_mean,
    named,
)
from healkit.store.arguments import check_schema
from healkit.store.entries import Described, EntryRows, code_hash, describe
from healkit.store.grants import make_grants
from healkit.store.models import CodeVault, Revision, ToolChange, ToolRegistry

#: The flags that `vault.set_flags` changes.
SWITCHES = ("side_effects", "log")


def find(session: Session, name: str, persona: str) -> ToolRegistry | None:
    """Return the tool for exactly that persona, removed or not, by its name or a former one; None without one."""
    if not isinstance(name, str):
        missing(session, name)
    if not isinstance(persona, str):
        not_for_persona(
            name, persona, [tool.target_persona for tool in of_name(session, current(session, name))]
        )
    statement = select(ToolRegistry).where(ToolRegistry.target_persona == persona)
    found = session.scalars(statement.where(ToolRegistry.tool_name == name)).first()
    if found is not None or (now := current(session, name)) == name:
        return found
    return session.scalars(statement.where(ToolRegistry.tool_name == now)).first()


def resolve(session: Session, name: str, persona: str) -> ToolRegistry:
    """Return the tool that persona runs: its own, else the one of `default`.

    Raises `ToolNotFound`, `PersonaNotFound` or `ToolRemoved`.
    """
    for served in (persona, DEFAULT_PERSONA):
        tool = find(session, name, served)
        if tool is not None and tool.removed_at is None:
            return tool
    return exactly(session, name, persona)


def readable(session: Session, name: str, persona: str, revision: int | None = None) -> ToolRegistry:
    """Return the tool to read about: the one that persona runs, or a removed one; raise as `resolve`.

    revision: with a number, the persona's own tool is meant even where it is removed, as in old rows.
    """
    own, default = find(session, name, persona), find(session, name, DEFAULT_PERSONA)
    live = [tool for tool in (own, default) if tool is not None and tool.removed_at is None]
    found = own if own is not None and revision is not None else next(iter(live), None)
    return found or own or default or exactly(session, name, persona)


def exactly(session: Session, name: str, persona: str, *, removed: bool = False) -> ToolRegistry:
    """Return the tool for exactly that persona, to be changed; removed: even where it was removed.

    Raises `ToolNotFound`, `PersonaNotFound` or `ToolRemoved`.
    """
    tool = find(session, name, persona)
    if tool is not None and (removed or tool.removed_at is None):
        return tool
    same_name = of_name(session, current(session, name))
    personas = [other.target_persona for other in same_name if other.removed_at is None]
    removed_one = tool or next((other for other in same_name if not personas), None)
    if removed_one is not None:
        raise _removed(removed_one)
    if personas:
        not_for_persona(same_name[0].tool_name, persona, personas)
    return missing(session, name)


def of_name(session: Session, name: str) -> list[ToolRegistry]:
    """Return the tool of exactly that name for each of its personas, sorted by them; removed ones too."""
    statement = select(ToolRegistry).where(ToolRegistry.tool_name == name)
    return list(session.scalars(statement.order_by(col(ToolRegistry.target_persona))))


def current(session: Session, name: str) -> str:
    """Return the name that the tool has now; the same one where no tool was ever renamed from it."""
    if of_name(session, name):
        return name
    renamed = and_(col(ToolChange.tool_id) == ToolRegistry.id, col(ToolChange.kind) == "renamed")
    statement = select(ToolRegistry.tool_name).join(ToolChange, renamed).where(ToolChange.old_name == name)
    return session.scalars(statement).first() or name


def missing(session: Session, name: str) -> NoReturn:
    """Raise the `ToolNotFound` that names what is near."""
    names = sorted(tool_names(session))
    near = did_you_mean(name, names)
    few = f"{', '.join(names[:5])}{', …' if len(names) > 5 else ''}"
    hint = "" if near else f"It has {few}. hk.vault.list() lists them all."
    empty = "The vault is empty: hk.vault.add(name, code) adds a tool, and hk.seed() adds samples."
    raise ToolNotFound(f"No tool named {named(name)} in the vault.{near}", hint=hint if names else empty)


def _removed(tool: ToolRegistry) -> ToolRemoved:
    persona = "" if tool.target_persona == DEFAULT_PERSONA else f", persona={tool.target_persona!r}"
    return ToolRemoved(
        f"The tool {tool.tool_name!r} was removed on {tool.removed_at:%Y-%m-%d}. Its revisions and runs are kept.",
        hint=f"Bring it back with vault.restore({tool.tool_name!r}{persona}), or add other code under its name.",
        logged=tool.flags.get("log", True) is not False,
    )


def not_for_persona(name: str, persona: str, personas: list[str]) -> NoReturn:
    """Raise the `PersonaNotFound` that names the personas there are."""
    raise PersonaNotFound(
        f"Tool {name!r} has no persona {named(persona)}.{did_you_mean(persona, personas)}",
        hint=f"It has {', '.join(map(repr, personas))}; add one with vault.add({name!r}, code, persona=…).",
    )


def tool_names(session: Session) -> list[str]:
    """Return the names of all tools, sorted."""
    statement = select(ToolRegistry.tool_name).where(col(ToolRegistry.removed_at).is_(None))
    return sorted(session.scalars(statement.distinct()))


def find_revision(session: Session, tool: ToolRegistry, number: int | None = None) -> Revision:
    """Return the revision of that number, by default the active one; raise `RevisionNotFound`."""
    number = tool.active_revision if number is None else number
    statement = select(Revision).where(
        Revision.tool_name == tool.tool_name,
        Revision.target_persona == tool.target_persona,
        Revision.number == number,
    )
    revision: Revision | None = session.scalars(statement).first() if isinstance(number, int) else None
    if revision is None:
        last = last_number(session, tool)
        raise RevisionNotFound(
            f"{tool.tool_name!r} has no revision {named(number)}.",
            hint=f"It has v1{f' to v{last}' if last > 1 else ''}.",
        )
    return revision


def last_number(session: Session, tool: ToolRegistry) -> int:
    """Return the number of the newest revision, drafts included."""
    statement = select(func.max(Revision.number)).where(
        Revision.tool_name == tool.tool_name, Revision.target_persona == tool.target_persona
    )
    return session.scalar(statement) or 0


def stored_code(session: Session, revision: Revision) -> CodeVault:
    """Return the code of a revision; raise `VaultError` where it is gone."""
    code = session.get(CodeVault, revision.code_hash)
    if code is None:
        label = revision_label(revision.tool_name, revision.target_persona, revision.number)
        raise VaultError(
            f"The code of {label} is gone from the vault.",
            hint="Restore the database from a copy, or revert to another revision.",
        )
    return code


def rows_of(session: Session, tool: ToolRegistry, number: int | None = None) -> EntryRows:
    """Return the rows of a tool's entry, of its active revision unless another number is given."""
    revision = find_revision(session, tool, number)
    return EntryRows(tool, revision, stored_code(session, revision))


def active_rows(session: Session, persona: str | None, *, removed: bool = False) -> Iterator[EntryRows]:
    """Yield the active entry of every tool, of one persona if given, sorted by name and persona.

    removed: those of removed tools instead.
    """
    marked = col(ToolRegistry.removed_at).is_not(None)
    statement = (
        select(ToolRegistry, Revision, CodeVault)
        .where(Revision.tool_name == ToolRegistry.tool_name)
        .where(Revision.target_persona == ToolRegistry.target_persona)
        .where(Revision.number == ToolRegistry.active_revision)
        .where(CodeVault.hash == Revision.code_hash)
        .where(marked if removed else ~marked)
        .order_by(col(ToolRegistry.tool_name), col(ToolRegistry.target_persona))
    )
    if persona is not None:
        statement = statement.where(ToolRegistry.target_persona == persona)
    for rows in session.execute(statement):
        yield EntryRows(*rows)


def new_tool(
    name: str,
    persona: str,
    code: str,
    kind: str,
    description: str,
    input_schema: dict[str, Any] | None,
    examples: Iterable[Any],
    dialect: str,
    draft: bool,
) -> ToolRegistry:
    """Make the row of a tool, with what is not given read off its code; `derived` says which."""
    digest = code_hash(code)
    described = describe(code, kind, EntryRef(name, persona, 1, digest), dialect, draft=draft)
    declared = stored_examples(examples, sql=kind == "sql") or described.examples
    derived = [n for n, given in (("input_schema", input_schema), ("description", description)) if not given]
    derived += ["examples"] if declared and declared is described.examples else []
    schema = described.input_schema if input_schema is None else input_schema
    check_schema(schema, name)
    now = utc_now()
    return ToolRegistry(
        tool_name=name,
        target_persona=persona,
        description=description or described.description,
        input_schema=schema,
        active_hash=digest,
        active_revision=1,
        flags={"derived": derived},
        grants={},
        examples=declared,
        created_at=now,
        updated_at=now,
    )


def change_grants(tool: ToolRegistry, changes: Mapping[str, Any], *, clear: bool = False) -> None:
    """Change the grants named and leave the others, or with `clear` take those back; raise `ConfigError`."""
    tool.grants = msgspec.to_builtins(make_grants({**({} if clear else tool.grants), **changes}))
    tool.updated_at = utc_now()


def change_schema(session: Session, tool: ToolRegistry, schema: dict[str, Any] | None, dialect: str) -> None:
    """Give the tool that input schema, or one read off its active code, which then follows the code."""
    derived = [name for name in tool.flags.get("derived", []) if name != "input_schema"]
    if schema is None:
        schema = _described(session, tool, dialect).input_schema
        derived.append("input_schema")
    check_schema(schema, tool.tool_name)
    tool.input_schema = schema
    tool.flags = {**tool.flags, "derived": derived}
    tool.updated_at = utc_now()


def change_examples(
    session: Session, tool: ToolRegistry, examples: Iterable[Any] | None, dialect: str
) -> None:
    """Give the tool those examples, or the ones in its docstring, which then follow the code."""
    if examples is None:
        found = _described(session, tool, dialect).examples
        set_examples(tool, found, derived=bool(found))
    else:
        kind = rows_of(session, tool).code.type
        set_examples(tool, stored_examples(examples, sql=kind == "sql"))


def stored_examples(examples: Iterable[Any], *, sql: bool) -> list[dict[str, Any]]:
    """Return examples as the vault keeps them: JSON, with tags for frames, sets and all else that JSON lacks.

    Raises `ExamplesInvalid`.
    """
    found = []
    for example in checked_examples(examples, sql=sql):
        arguments = dict(example.get("arguments", {}))
        kept = {name: values.adopted(value) for name, value in example.items() if name != "arguments"}
        if "arguments" in example:
            kept = {"arguments": {name: values.adopted(value) for name, value in arguments.items()}, **kept}
        found.append(kept)
    return found


def set_examples(tool: ToolRegistry, examples: list[Any], *, derived: bool = False) -> None:
    """Store these examples; derived: they were read off the tool's code, which they follow."""
    others = [name for name in tool.flags.get("derived", []) if name != "examples"]
    tool.examples = examples
    tool.flags = {**tool.flags, "derived": [*others, *(["examples"] if derived else [])]}
    tool.updated_at = utc_now()


def change_flags(tool: ToolRegistry, changes: Mapping[str, bool]) -> None:
    """Turn the switches named and leave the others; raise `VaultError` for one that does not exist."""
    for name, value in changes.items():
        if name not in SWITCHES or not isinstance(value, bool):
            raise VaultError(
                f"{name}={value!r} is no switch of a tool.",
                hint=f"There are {' and '.join(SWITCHES)}, True or False.",
            )
    tool.flags = {**tool.flags, **changes}
    tool.updated_at = utc_now()


def _described(session: Session, tool: ToolRegistry, dialect: str) -> Described:
    _, active, code = rows_of(session, tool)
    ref = EntryRef(tool.tool_name, tool.target_persona, active.number, code.hash)
    return describe(code.code, code.type, ref, dialect, draft=active.draft)
