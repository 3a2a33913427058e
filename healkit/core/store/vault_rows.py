"""Rows of the vault, found and changed in a caller's session.

`Vault` and `Requests` open the sessions, and each of their methods is one transaction. This module has two parts: rows
of a tool and its entry, and revisions. `vault_names` and `vault_history` continue it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn, get_args

import msgspec
from sqlalchemy import ColumnElement, and_, func, or_, select
from sqlalchemy.orm import Session
from sqlmodel import col

from healkit.core.contracts.execution import Grants, utc_now
from healkit.core.contracts.tools import EntryRef, revision_label
from healkit.core.contracts.vault import (
    DEFAULT_PERSONA,
    CodeChange,
    checked_examples,
    unified_diff,
)
from healkit.core.crossing import values
from healkit.core.store.arguments import check_schema
from healkit.core.store.entries import (
    Author,
    CodeType,
    Described,
    EntryRows,
    code_hash,
    describe,
    entry_of,
    make_grants,
)
from healkit.core.store.models import (
    CodeVault,
    Revision,
    ToolChange,
    ToolRegistry,
)
from healkit.errors import (
    PersonaNotFound,
    RevisionConflict,
    RevisionNotFound,
    ToolNotFound,
    ToolRemoved,
    VaultError,
    did_you_mean,
    named,
)

#: The flags that `vault.set_flags` changes.
SWITCHES = ("side_effects", "log")


def find(session: Session, name: str, persona: str) -> ToolRegistry | None:
    """Return the tool for exactly that persona, removed or not, by its name or a former one; None if there is none."""
    if not isinstance(name, str):
        missing(session, name)
    if not isinstance(persona, str):
        not_for_persona(
            name, persona, [tool.target_persona for tool in of_name(session, current(session, name))]
        )
    statement = select(ToolRegistry).where(col(ToolRegistry.target_persona) == persona)
    exact_match = session.scalars(statement.where(col(ToolRegistry.tool_name) == name)).first()
    if exact_match is not None or (now := current(session, name)) == name:
        return exact_match
    return session.scalars(statement.where(col(ToolRegistry.tool_name) == now)).first()


def resolve(session: Session, name: str, persona: str) -> ToolRegistry:
    """Return the tool that the persona runs: its own, else the one of `default`.

    Raises `ToolNotFound`, `PersonaNotFound` or `ToolRemoved`.
    """
    for served in (persona, DEFAULT_PERSONA):
        tool = find(session, name, served)
        if tool is not None and tool.removed_at is None:
            return tool
    return exactly(session, name, persona)


def readable(session: Session, name: str, persona: str, revision: int | None = None) -> ToolRegistry:
    """Return the tool to read: the one that the persona runs, or a removed one; raise like `resolve`.

    revision: With a number, the persona's own tool is meant, even if it was removed, as in old rows.
    """
    persona_tool, default = find(session, name, persona), find(session, name, DEFAULT_PERSONA)
    live = [tool for tool in (persona_tool, default) if tool is not None and tool.removed_at is None]
    chosen = persona_tool if persona_tool is not None and revision is not None else next(iter(live), None)
    return chosen or persona_tool or default or exactly(session, name, persona)


def exactly(session: Session, name: str, persona: str, *, removed: bool = False) -> ToolRegistry:
    """Return the tool for exactly that persona, for a change; removed: also if it was removed.

    Raises `ToolNotFound`, `PersonaNotFound` or `ToolRemoved`.
    """
    tool = find(session, name, persona)
    if tool is not None and (removed or tool.removed_at is None):
        return tool
    same_name = of_name(session, current(session, name))
    personas = [sibling.target_persona for sibling in same_name if sibling.removed_at is None]
    removed_one = tool or next((sibling for sibling in same_name if not personas), None)
    if removed_one is not None:
        raise _removed(removed_one)
    if personas:
        not_for_persona(same_name[0].tool_name, persona, personas)
    return missing(session, name)


def of_name(session: Session, name: str) -> list[ToolRegistry]:
    """Return the tool of exactly that name for each of its personas, sorted by persona; removed ones too."""
    statement = select(ToolRegistry).where(col(ToolRegistry.tool_name) == name)
    return list(session.scalars(statement.order_by(col(ToolRegistry.target_persona))))


def current(session: Session, name: str) -> str:
    """Return the tool's current name; the same name if no tool was renamed from it."""
    if of_name(session, name):
        return name
    renamed = and_(col(ToolChange.tool_id) == col(ToolRegistry.id), col(ToolChange.kind) == "renamed")
    statement = (
        select(col(ToolRegistry.tool_name)).join(ToolChange, renamed).where(col(ToolChange.old_name) == name)
    )
    return session.scalars(statement).first() or name


def missing(session: Session, name: str) -> NoReturn:
    """Raise `ToolNotFound` with similar names."""
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
    """Raise `PersonaNotFound` with the existing personas."""
    raise PersonaNotFound(
        f"Tool {name!r} has no persona {named(persona)}.{did_you_mean(persona, personas)}",
        hint=f"It has {', '.join(map(repr, personas))}; add one with vault.add({name!r}, code, persona=…).",
    )


def tool_names(session: Session) -> list[str]:
    """Return the names of all tools, sorted."""
    statement = select(col(ToolRegistry.tool_name)).where(col(ToolRegistry.removed_at).is_(None))
    return sorted(session.scalars(statement.distinct()))


def find_revision(session: Session, tool: ToolRegistry, number: int | None = None) -> Revision:
    """Return the revision with that number, by default the active one; raise `RevisionNotFound`."""
    number = tool.active_revision if number is None else number
    statement = select(Revision).where(
        col(Revision.tool_name) == tool.tool_name,
        col(Revision.target_persona) == tool.target_persona,
        col(Revision.number) == number,
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
    statement = select(func.max(col(Revision.number))).where(
        col(Revision.tool_name) == tool.tool_name, col(Revision.target_persona) == tool.target_persona
    )
    return session.scalar(statement) or 0


def stored_code(session: Session, revision: Revision) -> CodeVault:
    """Return the code of a revision; raise `VaultError` if it is missing."""
    code = session.get(CodeVault, revision.code_hash)
    if code is None:
        label = revision_label(revision.tool_name, revision.target_persona, revision.number)
        raise VaultError(
            f"The code of {label} is gone from the vault.",
            hint="Restore the database from a copy, or revert to another revision.",
        )
    return code


def rows_of(session: Session, tool: ToolRegistry, number: int | None = None) -> EntryRows:
    """Return the rows of a tool's entry, by default of its active revision."""
    revision = find_revision(session, tool, number)
    return EntryRows(tool, revision, stored_code(session, revision))


def active_rows(
    session: Session, persona: str | None, *, removed: bool = False, text: str = "", limit: int | None = None
) -> Iterator[EntryRows]:
    """Yield the active entry of every tool, optionally of one persona, sorted by name and persona.

    removed: Yield those of removed tools instead.
    text: Words that must all occur in the name, the group or the description.
    """
    statement = (
        select(ToolRegistry, Revision, CodeVault)
        .where(col(Revision.tool_name) == col(ToolRegistry.tool_name))
        .where(col(Revision.target_persona) == col(ToolRegistry.target_persona))
        .where(col(Revision.number) == col(ToolRegistry.active_revision))
        .where(col(CodeVault.hash) == col(Revision.code_hash))
        .where(*_are(removed, text))
        .order_by(col(ToolRegistry.tool_name), col(ToolRegistry.target_persona))
        .limit(limit)
    )
    if persona is not None:
        statement = statement.where(col(ToolRegistry.target_persona) == persona)
    for rows in session.execute(statement):
        yield EntryRows(*rows)


def count_active(session: Session, text: str) -> int:
    """Count the entries that `active_rows` yields for that text."""
    return session.scalar(select(func.count()).select_from(ToolRegistry).where(*_are(False, text))) or 0


#: Maximum number of words in a search; each is compared with every row.
_WORDS_MAX = 32


def _are(removed: bool, text: str) -> Iterator[ColumnElement[bool]]:
    gone = col(ToolRegistry.removed_at).is_not(None)
    yield gone if removed else ~gone
    names = (ToolRegistry.tool_name, ToolRegistry.group_name, ToolRegistry.description)
    for word in text.split()[:_WORDS_MAX]:
        yield or_(*(col(name).icontains(word, autoescape=True) for name in names))


@dataclasses.dataclass(frozen=True)
class ToolSettings:
    """Settings of a new tool; an empty description, schema or list of examples is read from its code."""

    description: str
    input_schema: dict[str, Any] | None
    examples: Iterable[Any]
    group: str
    grants: Grants
    flags: Mapping[str, bool]


def new_tool(
    name: str, persona: str, kind: CodeType, change: CodeChange, given: ToolSettings, dialect: str
) -> ToolRegistry:
    """Make the row of a tool; `derived` lists what was read from its code."""
    digest = code_hash(change.code)
    ref = EntryRef(name, persona, 1, digest)
    described = describe(change.code, kind, ref, dialect, draft=change.draft)
    declared = stored_examples(given.examples, sql=kind == "sql")
    read_off = {
        "input_schema": not given.input_schema,
        "description": not given.description,
        "examples": not declared and bool(described.examples),
    }
    schema = described.input_schema if given.input_schema is None else given.input_schema
    check_schema(schema, name)
    now = utc_now()
    return ToolRegistry(
        tool_name=name,
        target_persona=persona,
        description=given.description or described.description,
        input_schema=schema,
        active_hash=digest,
        active_revision=1,
        group_name=given.group,
        flags={**given.flags, "derived": [setting for setting, was_read in read_off.items() if was_read]},
        grants=msgspec.to_builtins(given.grants),
        examples=declared or described.examples,
        created_at=now,
        updated_at=now,
    )


def change_grants(tool: ToolRegistry, changes: Mapping[str, Any], *, clear: bool = False) -> None:
    """Change the named grants and keep the others; with `clear`, remove those. Raises `ConfigError`."""
    tool.grants = msgspec.to_builtins(make_grants({**({} if clear else tool.grants), **changes}))
    tool.updated_at = utc_now()


def change_schema(session: Session, tool: ToolRegistry, schema: dict[str, Any] | None, dialect: str) -> None:
    """Give the tool that input schema, or one read from its active code, which then changes with the code."""
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
    """Give the tool those examples, or the ones in its docstring, which then change with the code."""
    if examples is None:
        derived_examples = _described(session, tool, dialect).examples
        set_examples(tool, derived_examples, derived=bool(derived_examples))
    else:
        kind = rows_of(session, tool).code.type
        set_examples(tool, stored_examples(examples, sql=kind == "sql"))


def stored_examples(examples: Iterable[Any], *, sql: bool) -> list[dict[str, Any]]:
    """Return examples in stored form: JSON, with tags for frames, sets and all else that JSON lacks.

    Raises `ExamplesInvalid`.
    """
    stored = []
    for example in checked_examples(examples, sql=sql):
        arguments = dict(example.get("arguments", {}))
        fields = {name: values.adopted(value) for name, value in example.items() if name != "arguments"}
        if "arguments" in example:
            fields = {
                "arguments": {name: values.adopted(value) for name, value in arguments.items()},
                **fields,
            }
        stored.append(fields)
    return stored


def set_examples(tool: ToolRegistry, examples: list[Any], *, derived: bool = False) -> None:
    """Store these examples; derived: they come from the tool's code and change with it."""
    derived_names = [name for name in tool.flags.get("derived", []) if name != "examples"]
    tool.examples = examples
    tool.flags = {**tool.flags, "derived": [*derived_names, *(["examples"] if derived else [])]}
    tool.updated_at = utc_now()


def change_flags(tool: ToolRegistry, changes: Mapping[str, bool]) -> None:
    """Set the named switches and keep the others; raise `VaultError` for an unknown one."""
    for name, value in changes.items():
        if name not in SWITCHES or not isinstance(value, bool):
            raise VaultError(
                f"{name}={value!r} is not a switch of a tool.",
                hint=f"There are {' and '.join(SWITCHES)}, True or False.",
            )
    tool.flags = {**tool.flags, **changes}
    tool.updated_at = utc_now()


def _described(session: Session, tool: ToolRegistry, dialect: str) -> Described:
    _, active, code = rows_of(session, tool)
    ref = EntryRef(tool.tool_name, tool.target_persona, active.number, code.hash)
    return describe(code.code, code.type, ref, dialect, draft=active.draft)


# Revisions are added by a patch, compared and undone. `Vault.patch` and the acceptance of a patch request
# share `apply_patch`, so that each is one transaction with all its other changes.


def apply_patch(
    session: Session, dialect: str, name: str, persona: str, patch: CodeChange
) -> EntryRows | RevisionConflict:
    """Add a revision and make it the active one, unless it is a draft; see `Vault.patch`.

    A conflict is returned, not raised, because the losing patch's code has been stored and must be committed first.
    """
    digest = code_hash(patch.code)
    tool = exactly(session, name, persona)
    _, active, active_code = rows_of(session, tool)
    kind = active_code.type
    check_words(kind, patch.author)
    if digest == active.code_hash and (patch.draft or not active.draft):
        if patch.grants:
            change_grants(tool, patch.grants)
        return EntryRows(tool, active, store_code(session, patch.code, digest, kind))
    number = last_number(session, tool) + 1
    described = describe(
        patch.code, kind, EntryRef(name, persona, number, digest), dialect, draft=patch.draft
    )
    stored = store_code(session, patch.code, digest, kind)
    if patch.parent is not None and not _builds_upon(session, tool, patch.parent):
        return _conflict(session, tool, patch.parent, stored)
    made_from = dataclasses.replace(patch, parent=patch.parent or active.number)
    revision = new_revision(tool, number, digest, made_from)
    session.add(revision)
    if not patch.draft:
        _activate(tool, revision, described)
    if patch.grants:
        change_grants(tool, patch.grants)
    session.flush()
    return EntryRows(tool, revision, stored)


def new_revision(tool: ToolRegistry, number: int, digest: str, patch: CodeChange) -> Revision:
    """Make the row of a revision, dated now; the caller adds it to the session."""
    return Revision(
        tool_name=tool.tool_name,
        target_persona=tool.target_persona,
        number=number,
        code_hash=digest,
        parent=patch.parent,
        author=patch.author,
        reason=patch.reason,
        motivating_log_id=patch.motivating_log_id,
        draft=patch.draft,
        created_at=utc_now(),
    )


def store_code(session: Session, code: str, digest: str, kind: str) -> CodeVault:
    """Return the code's row. A new one is made and flushed if needed, because a revision refers to it.

    If a stored text no longer matches its hash, it is replaced by this one, which repairs a tampered row.
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
        stored.code = code  # differs only in a tampered row
    return stored


def check_words(kind: str, author: str) -> None:
    """Raise `VaultError` for an unknown type or author."""
    for word, value, allowed in (("type", kind, get_args(CodeType)), ("author", author, get_args(Author))):
        if value not in allowed:
            raise VaultError(f"{word}={value!r} is not known.", hint=f"It is one of {', '.join(allowed)}.")


def undone(session: Session, tool: ToolRegistry) -> tuple[Revision, Revision]:
    """Return the active revision, and the one to which undoing leads; raise `RevisionNotFound`.

    Drafts in between are skipped, because they never ran.
    """
    active = find_revision(session, tool)
    before = active
    while before is active or before.draft:
        if before.parent is None:
            raise RevisionNotFound(
                f"{_label(active)} has no revision before it that could run.",
                hint="There is nothing to undo; patch the tool instead: "
                f"hk.vault.patch({tool.tool_name!r}, code, reason=…).",
            )
        before = find_revision(session, tool, before.parent)
    return active, before


def diff_of(session: Session, old: Revision, new: Revision, new_label: str = "") -> str:
    """Return a unified diff of two revisions' codes."""
    return unified_diff(
        stored_code(session, old).code, stored_code(session, new).code, _label(old), new_label or _label(new)
    )


def _label(revision: Revision) -> str:
    return revision_label(revision.tool_name, revision.target_persona, revision.number)


def with_code(base: Revision, digest: str) -> Revision:
    """Return the revision with other code, for comparing and reading; it is never stored."""
    return Revision(**{**base.model_dump(), "code_hash": digest})


def _builds_upon(session: Session, tool: ToolRegistry, parent: int) -> bool:
    """Return True if `parent` is the active revision, or a draft that was made from it."""
    while parent != tool.active_revision:
        revision = find_revision(session, tool, parent)
        if not revision.draft or revision.parent is None:
            return False
        parent = revision.parent
    return True


def _activate(tool: ToolRegistry, revision: Revision, described: Described) -> None:
    """Make the revision the active one; settings that come from the code are read again."""
    tool.active_revision = revision.number
    tool.active_hash = revision.code_hash
    tool.updated_at = revision.created_at
    derived = tool.flags.get("derived", ())
    if "input_schema" in derived:
        tool.input_schema = described.input_schema
    if "description" in derived:
        tool.description = described.description
    # Only a person's patch changes the examples: another author's patch may not define its own expectations.
    if revision.author == "person" and described.examples and ("examples" in derived or not tool.examples):
        set_examples(tool, list(described.examples), derived=True)


def _conflict(session: Session, tool: ToolRegistry, parent: int, later: CodeVault) -> RevisionConflict:
    """Make the error that shows both sides: another patch of the same parent was first."""
    base = find_revision(session, tool, parent)
    rows = rows_of(session, tool)
    active = rows.revision
    label = entry_of(rows, check=False).label
    return RevisionConflict(
        f"{label} is the active revision by now, and this patch was made from {parent}.\n"
        f"What was changed there:\n{diff_of(session, base, active)}\n"
        f"What this patch changes:\n{diff_of(session, base, with_code(base, later.hash), 'this patch')}\n"
        f"The vault has this patch's code under the hash {later.hash}.",
        hint=f"Join the two and patch again with parent={active.number}.",
    )
