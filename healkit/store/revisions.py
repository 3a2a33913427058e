"""Revisions: added by a patch, compared and undone.

All functions work inside a caller's session. `Vault.patch` and the acceptance of a patch request share `apply_patch`,
so that each is one transaction with all else that it changes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, get_args

from sqlalchemy.orm import Session

from healkit.contracts.execution import utc_now
from healkit.contracts.tools import EntryRef, revision_label
from healkit.contracts.vault import unified_diff
from healkit.errors import RevisionConflict, RevisionNotFound, VaultError
from healkit.store import vault_rows
from healkit.store.entries import Author, CodeType, Described, EntryRows, code_hash, describe, entry_of
from healkit.store.models import CodeVault, Revision, ToolRegistry


@dataclasses.dataclass(frozen=True)
class CodeChange:
    """Other code for a tool, and where it comes from.

    parent: the number of the revision that it was made from; None is the active one. motivating_log_id: the failure
    that it answers. draft: it gets a number, but the active revision stays. grants: changed along with the code.
    """

    code: str
    author: str = "person"
    reason: str = ""
    parent: int | None = None
    motivating_log_id: int | None = None
    draft: bool = False
    grants: Mapping[str, Any] | None = None


def apply_patch(
    session: Session, dialect: str, name: str, persona: str, patch: CodeChange
) -> EntryRows | RevisionConflict:
    """Add a revision and make it the active one, unless it is a draft; see `Vault.patch`.

    A conflict is returned and not raised: the losing patch's code has been stored, and that must be committed first.
    """
    digest = code_hash(patch.code)
    tool = vault_rows.exactly(session, name, persona)
    _, active, active_code = vault_rows.rows_of(session, tool)
    kind = active_code.type
    check_words(kind, patch.author)
    if digest == active.code_hash and (patch.draft or not active.draft):
        if patch.grants:
            vault_rows.change_grants(tool, patch.grants)
        return EntryRows(tool, active, store_code(session, patch.code, digest, kind))
    number = vault_rows.last_number(session, tool) + 1
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
        vault_rows.change_grants(tool, patch.grants)
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
    """Return the code's row, made where there is none and flushed, because a revision refers to it.

    A stored text that no longer has its hash is replaced by this one, which repairs a tampered row.
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
    """Refuse a type or an author that is not in the closed list; raise `VaultError`."""
    for word, value, known in (("type", kind, get_args(CodeType)), ("author", author, get_args(Author))):
        if value not in known:
            raise VaultError(f"{word}={value!r} is not known.", hint=f"It is one of {', '.join(known)}.")


def undone(session: Session, tool: ToolRegistry) -> tuple[Revision, Revision]:
    """Return the active revision, and the one before it that undoing goes back to; raise `RevisionNotFound`.

    Drafts on the way are passed over: they never ran.
    """
    active = vault_rows.find_revision(session, tool)
    before = active
    while before is active or before.draft:
        if before.parent is None:
            raise RevisionNotFound(
                f"{_label(active)} has no revision before it that could run.",
                hint="There is nothing to undo; patch the tool instead: "
                f"hk.vault.patch({tool.tool_name!r}, code, reason=…).",
            )
        before = vault_rows.find_revision(session, tool, before.parent)
    return active, before


def diff_of(session: Session, old: Revision, new: Revision, new_label: str = "") -> str:
    """Return a unified diff of two revisions' codes."""
    return unified_diff(
        vault_rows.stored_code(session, old).code,
        vault_rows.stored_code(session, new).code,
        _label(old),
        new_label or _label(new),
    )


def _label(revision: Revision) -> str:
    return revision_label(revision.tool_name, revision.target_persona, revision.number)


def with_code(base: Revision, digest: str) -> Revision:
    """Return the revision with other code, to compare and to read; it is never stored."""
    return Revision(**{**base.model_dump(), "code_hash": digest})


def _builds_upon(session: Session, tool: ToolRegistry, parent: int) -> bool:
    """Return True when `parent` is the active revision, or a draft that was made from it."""
    while parent != tool.active_revision:
        revision = vault_rows.find_revision(session, tool, parent)
        if not revision.draft or revision.parent is None:
            return False
        parent = revision.parent
    return True


def _activate(tool: ToolRegistry, revision: Revision, described: Described) -> None:
    """Make the revision the active one; what was read off the code follows it."""
    tool.active_revision = revision.number
    tool.active_hash = revision.code_hash
    tool.updated_at = revision.created_at
    derived = tool.flags.get("derived", ())
    if "input_schema" in derived:
        tool.input_schema = described.input_schema
    if "description" in derived:
        tool.description = described.description
    # Examples follow a person's patch only: another author's patch may not define its own expectations.
    if revision.author == "person" and described.examples and ("examples" in derived or not tool.examples):
        vault_rows.set_examples(tool, list(described.examples), derived=True)


def _conflict(session: Session, tool: ToolRegistry, parent: int, later: CodeVault) -> RevisionConflict:
    """Make the error that shows both sides: another patch of the same parent came first."""
    base = vault_rows.find_revision(session, tool, parent)
    rows = vault_rows.rows_of(session, tool)
    active = rows.revision
    label = entry_of(rows, check=False).label
    return RevisionConflict(
        f"{label} is the active revision by now, and this patch was made from {parent}.\n"
        f"What was changed there:\n{diff_of(session, base, active)}\n"
        f"What this patch changes:\n{diff_of(session, base, with_code(base, later.hash), 'this patch')}\n"
        f"Nothing is lost: this patch's code is kept in the vault under the hash {later.hash}.",
        hint=f"Join the two and patch again with parent={active.number}.",
    )
