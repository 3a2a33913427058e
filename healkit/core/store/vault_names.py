"""Names of tools, present and former.

Nothing is deleted. A removed tool is only marked: it is not listed and not run, but its revisions and its rows in the
log are kept. A former name belongs to its tool permanently, so that old rows, traces and callers still mean that tool;
no other tool can take it. (Model registries free the old name, and an old reference then means whichever tool comes
next.)
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from sqlalchemy import select, union, update
from sqlalchemy.orm import Session
from sqlmodel import col

from healkit.core.contracts.execution import utc_now
from healkit.core.contracts.tools import revision_label
from healkit.core.contracts.vault import (
    CodeChange,
    NameChange,
)
from healkit.core.pysource.shapes import read_shape
from healkit.core.store.entries import (
    CodeType,
    EntryRows,
    check_names,
)
from healkit.core.store.models import (
    CHANGES,
    TOOLS,
    CodeVault,
    PatchRow,
    Revision,
    ToolChange,
    ToolRegistry,
)
from healkit.core.store.vault_rows import (
    active_rows,
    current,
    exactly,
    find,
    find_revision,
    last_number,
    missing,
    new_revision,
    of_name,
    rows_of,
    store_code,
)
from healkit.errors import (
    ToolExists,
    ToolShapeError,
)

#: Settings from `add`, which are replaced when a removed tool is added again.
_SETTINGS = ("description", "input_schema", "group_name", "flags", "grants", "examples")


def rename(session: Session, old: str, new: str, reason: str) -> None:
    """Give a tool another name, for all its personas; raise `ToolNotFound`, `ToolExists` or `ToolShapeError`."""
    old = current(session, old)
    tools = of_name(session, old)
    if not tools:
        missing(session, old)
    if new == old:
        return
    check_names(new, tools[0].target_persona)
    check_free(session, new, by=old)
    for tool in tools:
        _check_shape(rows_of(session, tool), new)
    now = utc_now()
    for tool in tools:
        _append(session, tool, "renamed", new, reason)
        tool.tool_name, tool.updated_at = new, now
    for table in (Revision, PatchRow):
        session.execute(update(table).where(col(table.tool_name) == old).values(tool_name=new))
    session.flush()


def remove(session: Session, name: str, persona: str | None, reason: str) -> list[ToolRegistry]:
    """Mark a tool as removed, for one persona or for all; return those newly marked. Raises `ToolNotFound`."""
    tools = _wanted(session, name, persona)
    removed = [tool for tool in tools if tool.removed_at is None]
    for tool in removed:
        tool.removed_at = utc_now()
        _append(session, tool, "removed", tool.tool_name, reason)
    session.flush()
    return removed


def restore(session: Session, name: str, persona: str | None, reason: str) -> ToolRegistry:
    """Bring a removed tool back as it was, for one persona or for all; return it. Raises `ToolNotFound`."""
    tools = _wanted(session, name, persona)
    for tool in tools:
        if tool.removed_at is not None:
            tool.removed_at = None
            _append(session, tool, "restored", tool.tool_name, reason)
    session.flush()
    return tools[0]


def register(
    session: Session, tool: ToolRegistry, change: CodeChange, kind: CodeType
) -> tuple[EntryRows, bool]:
    """Add a tool as its revision 1, or add a removed tool again.

    Return its rows and False; if a tool has the name already, return that tool's rows and True. Raises `ToolExists` and
    `ToolRemoved` for a former name.
    """
    name, persona, digest = tool.tool_name, tool.target_persona, tool.active_hash
    existing = find(session, name, persona)
    if existing is None:
        _refuse_former(session, name)
        revision = new_revision(tool, 1, digest, change)
        rows = EntryRows(tool, revision, store_code(session, change.code, digest, kind))
        session.add_all([tool, revision])
        session.flush()
        return rows, False
    if existing.removed_at is not None and existing.tool_name == name:
        stored = store_code(session, change.code, digest, kind)
        return EntryRows(existing, _add_again(session, existing, tool, change), stored), False
    exactly(session, name, persona)  # raises for the former name of a removed tool
    return rows_of(session, existing), True


def _add_again(session: Session, tool: ToolRegistry, added: ToolRegistry, patch: CodeChange) -> Revision:
    """Register a removed tool anew, with the given settings; its revision numbers continue."""
    for name in _SETTINGS:
        setattr(tool, name, getattr(added, name))
    active = find_revision(session, tool)
    if (added.active_hash, patch.draft) != (active.code_hash, active.draft):
        number = last_number(session, tool) + 1
        active = new_revision(tool, number, added.active_hash, patch)
        active.parent = tool.active_revision
        session.add(active)
    tool.active_revision, tool.active_hash = active.number, active.code_hash
    tool.removed_at, tool.updated_at = None, utc_now()
    _append(session, tool, "added", tool.tool_name, patch.reason)
    session.flush()
    return active


def all_of(session: Session, name: str) -> list[str]:
    """Return every name that the tool has or had, its current name first."""
    now = current(session, name)
    former = _former(session, [now])
    return [now, *sorted({old for old, _ in former} - {now})]


def current_names(session: Session, names: Sequence[str]) -> dict[str, str]:
    """Map each former name of these names' tools, and each of the names, to the tool's current name."""
    renamed = (
        select(TOOLS.c.tool_name)
        .join(CHANGES, CHANGES.c.tool_id == TOOLS.c.id)
        .where(CHANGES.c.kind == "renamed", CHANGES.c.old_name.in_(names))
    )
    there = select(TOOLS.c.tool_name).where(TOOLS.c.tool_name.in_(names))
    now = set(session.scalars(union(there, renamed)))
    return {**{name: name for name in names}, **dict(_former(session, now)), **{name: name for name in now}}


def former_names(session: Session, persona: str) -> dict[str, str]:
    """Map each former name of a tool that the persona can run to the tool's current name."""
    statement = (
        select(CHANGES.c.old_name, TOOLS.c.tool_name)
        .join(TOOLS, TOOLS.c.id == CHANGES.c.tool_id)
        .where(CHANGES.c.kind == "renamed", CHANGES.c.old_name != TOOLS.c.tool_name)
        .where(TOOLS.c.removed_at.is_(None), TOOLS.c.target_persona.in_((persona, "default")))
        .distinct()
    )
    return {row.old_name: row.tool_name for row in session.execute(statement)}


def changes(session: Session, name: str) -> list[NameChange]:
    """Return the changes of a tool's name, oldest first, for all its personas."""
    statement = (
        select(CHANGES, TOOLS.c.target_persona)
        .join(TOOLS, TOOLS.c.id == CHANGES.c.tool_id)
        .where(TOOLS.c.tool_name == current(session, name))
        .order_by(CHANGES.c.id)
    )
    return [
        NameChange(row.kind, row.target_persona, row.old_name, row.new_name, row.reason, row.changed_at)
        for row in session.execute(statement)
    ]


def callers(session: Session, name: str) -> list[str]:
    """Return the labels of the tools whose active code calls that tool by exactly that name: `mcp.vault.<name>`.

    A call with a computed name is not found.
    """
    return [
        revision_label(tool.tool_name, tool.target_persona, revision.number)
        for tool, revision, code in active_rows(session, None)
        if tool.tool_name != name and name in code.code and code.type == "python" and _calls(code, name)
    ]


def check_free(session: Session, name: str, by: str = "") -> None:
    """Raise `ToolExists` if a tool has or had that name; by: name of the tool that may have had it."""
    tools = of_name(session, name)
    if tools:
        removed = all(tool.removed_at is not None for tool in tools)
        raise ToolExists(
            f"The vault has a tool {name!r} already{', which was removed' if removed else ''}.",
            hint="Take another name.",
        )
    _refuse_former(session, name, by)


def _refuse_former(session: Session, name: str, by: str = "") -> None:
    """Raise `ToolExists` if that is a former name of a tool that is not called `by` now."""
    now = current(session, name)
    if now not in (name, by):
        raise ToolExists(
            f"{name!r} is the former name of the tool {now!r}, and old runs and callers mean that one by it.",
            hint=f"Patch {now!r}, or take another name.",
        )


def _wanted(session: Session, name: str, persona: str | None) -> list[ToolRegistry]:
    if persona is not None:
        return [exactly(session, name, persona, removed=True)]
    return of_name(session, current(session, name)) or missing(session, name)


def _former(session: Session, names: Sequence[str] | set[str]) -> list[tuple[str, str]]:
    statement = (
        select(CHANGES.c.old_name, TOOLS.c.tool_name)
        .join(TOOLS, TOOLS.c.id == CHANGES.c.tool_id)
        .where(CHANGES.c.kind == "renamed", TOOLS.c.tool_name.in_(names))
        .distinct()
    )
    return [(old, new) for old, new in session.execute(statement)]


def _append(session: Session, tool: ToolRegistry, kind: str, new: str, reason: str) -> None:
    assert tool.id is not None  # it is stored
    old = tool.tool_name
    session.add(
        ToolChange(
            tool_id=tool.id, kind=kind, old_name=old, new_name=new, reason=reason, changed_at=utc_now()
        )
    )


def _check_shape(rows: EntryRows, new: str) -> None:
    """Raise for a name under which healkit would start the code at another function, or not at all."""
    tool, revision, code = rows
    if code.type != "python" or revision.draft:
        return
    tree = ast.parse(code.code)
    entry = read_shape(tree, tool.tool_name).entry
    try:
        same = read_shape(tree, new).entry == entry
    except ToolShapeError:
        same = False
    if not same:
        raise ToolShapeError(
            f"{tool.tool_name!r} runs its function {entry!r}, because the tool is called so; as {new!r} it would not.",
            hint="Patch it first: call that function 'run', which goes with any name, then rename the tool.",
        )


def _calls(code: CodeVault, name: str) -> bool:
    try:
        tree = ast.parse(code.code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # a draft
        return False
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == name
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "vault"
        for node in ast.walk(tree)
    )
