"""The vault: code by its hash, tools by name and persona, revisions that are only ever added.

A tool's row says which revision is active; the revisions and the code they point to are never changed and
never removed. Every change is one write transaction that reads what it builds upon, so two patches of one
parent cannot both win, and the one that loses keeps its code in the vault under its hash.

A patch saved as a draft gets a number, and leaves the active revision what it was: there is always something
that runs. Only a tool whose first revision is a draft has a draft as its active one.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from sqlalchemy.orm import Session
from sqlmodel import col, select

from healkit.contracts.entries import Blame, RevisionInfo
from healkit.contracts.examples import checked_examples
from healkit.contracts.records import Grants, utc_now
from healkit.contracts.tools import EntryRef
from healkit.errors import RevisionConflict, ToolExists, UsageInvalid, VaultError
from healkit.store import annals, vaultrows
from healkit.store.arguments import check_schema
from healkit.store.database import Database
from healkit.store.entries import (
    DEFAULT_PERSONA,
    CodeType,
    VaultEntry,
    check_names,
    check_untampered,
    code_hash,
    describe,
    entry_of,
)
from healkit.store.lookup import Lookup
from healkit.store.models import Author, CodeVault, Revision, ToolRegistry
from healkit.store.patching import apply_patch, undone
from healkit.store.settings import Settings

__all__ = ["Blame", "RevisionInfo", "Vault", "VaultEntry"]


#: Every tool with its active revision and that one's code.
_ACTIVE = (
    select(ToolRegistry, Revision, CodeVault)
    .where(Revision.tool_name == ToolRegistry.tool_name)
    .where(Revision.target_persona == ToolRegistry.target_persona)
    .where(Revision.number == ToolRegistry.active_revision)
    .where(CodeVault.hash == Revision.code_hash)
)


class Vault(Settings):
    """The tools of one database.

    check_grants: asked for its `ConfigError` before grants are stored; it knows the machine, which the vault does not.
    """

    def __init__(self, database: Database, check_grants: Callable[[Grants], None] | None = None) -> None:
        self._database = database
        self._check_grants = check_grants
        self._active = Lookup(database, lambda: self)

    def add(
        self,
        name: str,
        code: str,
        *,
        persona: str = DEFAULT_PERSONA,
        type: CodeType = "python",  # noqa: A002 - the column's and the card's word for it
        description: str = "",
        input_schema: dict[str, Any] | None = None,
        examples: Iterable[Any] = (),
        group: str = "",
        grants: Grants | Mapping[str, Any] | None = None,
        side_effects: bool = False,
        log: bool = True,
        author: Author = "person",
        reason: str = "",
        draft: bool = False,
    ) -> VaultEntry:
        """Register a new tool as its revision 1; only name and code are needed.

        What is not given is read off the code: the schema from the signature or the SQL parameters, the
        description from the docstring, the examples from its doctest lines. The same code again changes nothing.

        Raises `ToolExists` where the tool has other code, or other grants than are given, and `CodeDoesNotParse`,
        `ToolShapeError`, `SqlNotAllowed`, `SchemaInvalid`, `ExamplesInvalid` or `ConfigError` (grants).

        log: False keeps what the tool is given, says and returns off every record; that it ran stays on.
        """
        check_names(name, persona)
        vaultrows.check_kind(type, author)
        granted = self._checked(msgspec.to_builtins(grants) if isinstance(grants, Grants) else grants or {})
        digest = code_hash(code)
        read_off = describe(
            code, type, EntryRef(name, persona, 1, digest), self._database.dialect_name, draft=draft
        )
        declared = checked_examples(examples, sql=type == "sql") or read_off.examples
        derived = [
            n for n, given in (("input_schema", input_schema), ("description", description)) if not given
        ]
        derived += ["examples"] if declared and declared is read_off.examples else []
        schema = read_off.input_schema if input_schema is None else input_schema
        check_schema(schema, name)
        now = utc_now()
        tool = ToolRegistry(
            tool_name=name,
            target_persona=persona,
            description=description or read_off.description,
            input_schema=schema,
            active_hash=digest,
            active_revision=1,
            group_name=group,
            flags={"side_effects": side_effects, "derived": derived, **({} if log else {"log": False})},
            grants=msgspec.to_builtins(granted),
            examples=declared,
            created_at=now,
            updated_at=now,
        )
        revision = vaultrows.new_revision(tool, 1, digest, None, author, reason, draft=draft)
        with self._database.write() as session:
            existing = vaultrows.find(session, name, persona)
            if existing is not None:
                return _same_again(session, existing, digest, None if grants is None else granted)
            stored = vaultrows.keep_code(session, code, digest, type)
            session.add_all([tool, revision])
            session.flush()
            return entry_of(tool, revision, stored)

    def patch(
        self,
        name: str,
        code: str,
        *,
        persona: str = DEFAULT_PERSONA,
        reason: str = "",
        author: Author = "person",
        parent: int | None = None,
        motivating_log_id: int | None = None,
        draft: bool = False,
        grants: Mapping[str, Any] | None = None,
    ) -> VaultEntry:
        """Add a revision and make it the active one (a draft is added only); returns it.

        grants: those to change along with it, as in `set_grants`; not with a patch that is refused.

        parent: the revision the patch was made from. Where another one is active by now, this raises
        `RevisionConflict`, which shows both sides; the code is kept under its hash (`code`). The active
        revision's own code again adds nothing. A schema that was read off the code is read off again.
        """
        if grants:
            self._checked(grants, self.get(name, persona).grants)
        with self._database.write() as session:
            found = apply_patch(
                session,
                self._database.dialect_name,
                name,
                persona,
                code,
                reason=reason,
                author=author,
                parent=parent,
                motivating_log_id=motivating_log_id,
                draft=draft,
                grants=grants,
            )
        # Raised only now: the loser's code had to be committed first.
        if isinstance(found, RevisionConflict):
            raise found
        return found

    def candidate(self, entry: VaultEntry, code: str) -> VaultEntry:
        """The entry with other code, as `patch` would make it, unsaved; raises what `patch` does for the code."""
        return self._active.candidate(entry, code)

    def revert(
        self,
        name: str,
        to: int,
        *,
        persona: str = DEFAULT_PERSONA,
        reason: str = "",
        author: Author = "person",
    ) -> VaultEntry:
        """A new revision with the code of revision `to`; the history stays whole. Raises `VaultTampered`."""
        entry = self.get(name, persona, to)
        if entry.persona != persona:
            vaultrows.not_for_persona(name, persona, [entry.persona])
        if entry.draft:
            raise VaultError(
                f"{entry.label} is a draft.", hint="Patch the tool with its code once it is finished."
            )
        return self.patch(
            name, entry.code, persona=persona, reason=reason or f"revert to {to}", author=author
        )

    def undo(self, name: str, persona: str = DEFAULT_PERSONA, *, author: Author = "person") -> VaultEntry:
        """Take back the active revision: a new one with the code of the revision that it was made from.

        Undoing that again brings the code back. Raises `RevisionNotFound` where there is none before it,
        `VaultTampered`, and `RevisionConflict` where somebody patches the tool at that moment.
        """
        with self._database.read() as session:
            active, before = undone(session, vaultrows.exactly(session, name, persona))
            code = vaultrows.stored_code(session, before)
            check_untampered(f"{name}@{before.number}", code)
        reason = f"undo of {active.number}, back to {before.number}"
        return self.patch(
            name, code.code, persona=persona, reason=reason, author=author, parent=active.number
        )

    def lookup(self, name: str, persona: str = DEFAULT_PERSONA) -> VaultEntry:
        """The active revision for exactly that persona, else for `default`; its code is hashed again.

        Raises `ToolNotFound` or `PersonaNotFound` with near matches, and `VaultTampered`.
        """
        return self._active.lookup(name, persona)

    def get(self, name: str, persona: str = DEFAULT_PERSONA, revision: int | None = None) -> VaultEntry:
        """The same for any revision by number; raises `RevisionNotFound` too."""
        with self._database.read() as session:
            tool = vaultrows.resolve(session, name, persona)
            row = vaultrows.find_revision(
                session, tool, tool.active_revision if revision is None else revision
            )
            return entry_of(tool, row, vaultrows.stored_code(session, row))

    def list(self, persona: str | None = None) -> builtins.list[VaultEntry]:
        """The active revision of every tool, of one persona where it is given, sorted by name and persona."""
        statement = _ACTIVE.order_by(col(ToolRegistry.tool_name), col(ToolRegistry.target_persona))
        if persona is not None:
            statement = statement.where(ToolRegistry.target_persona == persona)
        with self._database.read() as session:
            # A tampered entry is listed like any other, and refused when it is to be run.
            return [entry_of(tool, row, code, check=False) for tool, row, code in session.execute(statement)]

    def names(self) -> builtins.list[str]:
        """The names of all tools, sorted."""
        with self._database.read() as session:
            return vaultrows.tool_names(session)

    def code(self, digest: str) -> str:
        """The code kept under a hash, or under the only hash that begins so; raises `VaultError`."""
        with self._database.read() as session:
            found = session.scalars(
                select(CodeVault).where(col(CodeVault.hash).startswith(digest, autoescape=True)).limit(2)
            ).all()
            if len(found) != 1:
                raise VaultError(
                    f"{'No' if not found else 'More than one'} code in the vault has hash {digest!r}."
                )
            check_untampered(f"hash {digest}", found[0])
            return found[0].code

    def history(
        self,
        name: str,
        persona: str = DEFAULT_PERSONA,
        *,
        limit: int | None = None,
        before: int | None = None,
    ) -> builtins.list[RevisionInfo]:
        """All revisions, oldest first, with how often each ran and failed.

        limit: the newest so many only, from 1. before: only those with a smaller number; the first of one page is
        `before` of the page with older ones.
        """
        if limit is not None and limit < 1:
            raise UsageInvalid(f"limit={limit!r} must be at least 1.")
        with self._database.read() as session:
            return annals.history(session, vaultrows.resolve(session, name, persona), limit, before)

    def diff(
        self, name: str, a: int | None = None, b: int | None = None, persona: str = DEFAULT_PERSONA
    ) -> str:
        """A unified diff from revision `a` to `b`; by default from the active one's parent to it."""
        with self._database.read() as session:
            tool = vaultrows.resolve(session, name, persona)
            new = vaultrows.find_revision(session, tool, tool.active_revision if b is None else b)
            old_number = new.parent if a is None else a
            if old_number is None:
                return ""
            old = vaultrows.find_revision(session, tool, old_number)
            return vaultrows.diff_of(session, old, new)

    def blame(self, name: str, fingerprint: str | None = None, persona: str = DEFAULT_PERSONA) -> Blame:
        """Which revision first failed so and which cured it; the newest failure unless one is given."""
        with self._database.read() as session:
            return annals.blame(session, vaultrows.resolve(session, name, persona), fingerprint)


def _same_again(session: Session, tool: ToolRegistry, digest: str, granted: Grants | None) -> VaultEntry:
    revision = vaultrows.find_revision(session, tool, tool.active_revision)
    entry = entry_of(tool, revision, vaultrows.stored_code(session, revision))
    if digest != revision.code_hash:
        raise ToolExists(
            f"The vault has {entry.label} already, with other code.",
            hint=f"Patch it: vault.patch({tool.tool_name!r}, code, reason=…), or take another name.",
        )
    if granted not in (None, entry.grants):  # to leave a limit out without a word would be no limit
        raise ToolExists(
            f"The vault has {entry.label} already, with other grants.",
            hint=f"Change them: vault.set_grants({tool.tool_name!r}, …).",
        )
    return entry
