"""A patch, inside a caller's write transaction.

The vault patches, and a patch request is accepted, by this one function: each is one transaction with whatever else it
has to change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from healkit.contracts.tools import EntryRef
from healkit.errors import RevisionConflict, RevisionNotFound
from healkit.store import vaultrows
from healkit.store.entries import VaultEntry, code_hash, describe, entry_of
from healkit.store.models import Revision, ToolRegistry


def apply_patch(
    session: Session,
    dialect: str,
    name: str,
    persona: str,
    code: str,
    *,
    reason: str,
    author: str,
    parent: int | None,
    motivating_log_id: int | None,
    draft: bool = False,
    grants: Mapping[str, Any] | None = None,
) -> VaultEntry | RevisionConflict:
    """Add a revision and make it the active one, unless it is a draft; see `Vault.patch`.

    A conflict is returned and not raised: the loser's code has been kept, and that must be committed first.
    """
    digest = code_hash(code)
    tool = vaultrows.exactly(session, name, persona)
    active = vaultrows.find_revision(session, tool, tool.active_revision)
    kind = vaultrows.stored_code(session, active).type
    vaultrows.check_kind(kind, author)
    if digest == active.code_hash and (draft or not active.draft):
        if grants:
            vaultrows.regrant(tool, grants)
        return entry_of(tool, active, vaultrows.keep_code(session, code, digest, kind))
    number = vaultrows.last_number(session, tool) + 1
    read_off = describe(code, kind, EntryRef(name, persona, number, digest), dialect, draft=draft)
    stored = vaultrows.keep_code(session, code, digest, kind)
    if parent is not None and not vaultrows.builds_upon(session, tool, parent):
        return vaultrows.conflict(session, tool, parent, stored)
    revision = vaultrows.new_revision(
        tool, number, digest, parent or active.number, author, reason, motivating_log_id, draft=draft
    )
    session.add(revision)
    if not draft:
        vaultrows.activate(tool, revision, read_off)
    if grants:
        vaultrows.regrant(tool, grants)
    session.flush()
    return entry_of(tool, revision, stored)


def undone(session: Session, tool: ToolRegistry) -> tuple[Revision, Revision]:
    """The active revision, and the one before it that undoing goes back to; raises `RevisionNotFound`.

    A draft on the way is passed over: it was never what ran.
    """
    active = vaultrows.find_revision(session, tool, tool.active_revision)
    before = active
    while before is active or before.draft:
        if before.parent is None:
            raise RevisionNotFound(
                f"{tool.tool_name}@{active.number} has no revision before it that could run.",
                hint="There is nothing to undo; patch the tool instead.",
            )
        before = vaultrows.find_revision(session, tool, before.parent)
    return active, before
