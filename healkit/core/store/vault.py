"""Vault of tools and their revisions.

Code is stored by its hash, tools by name and persona. Revisions are only ever added. A tool's row names the active
revision. Revisions and their code are never changed or removed. Every change is one write transaction that reads what
it is based on. So two patches of one parent cannot both win; the code of the losing one is stored under its hash.

A patch saved as a draft gets a number and does not change the active revision, so there is always a revision that runs.
The active revision is only a draft if it is the tool's first.

Grants, the input schema, examples and flags belong to the tool, not to its code; changing one makes no revision. The
same holds for renaming or removing a tool (`store.vault_names`): a former name leads to the same tool, and a removed
tool is only marked.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from sqlalchemy.orm import Session
from sqlmodel import col, select

from healkit.core.contracts.execution import Grants
from healkit.core.contracts.tools import revision_label
from healkit.core.contracts.vault import (
    DEFAULT_PERSONA,
    Blame,
    CodeChange,
    NameChange,
    RevisionInfo,
    VaultEntry,
)
from healkit.core.store import vault_history, vault_names, vault_rows
from healkit.core.store.database import Database
from healkit.core.store.entries import (
    Author,
    CodeType,
    EntryLookup,
    EntryRows,
    check_names,
    check_same,
    check_untampered,
    entry_of,
    make_grants,
)
from healkit.core.store.models import CodeVault, ToolRegistry
from healkit.core.store.statements import TOOLS_STAMP
from healkit.core.store.vault_rows import ToolSettings
from healkit.errors import RevisionConflict, UsageInvalid, VaultError, check_text

__all__ = ["Blame", "RevisionInfo", "Vault", "VaultEntry"]


class Vault:
    """Tools of one database; `hk.vault`.

    check_grants: Called before grants are stored; raises `ConfigError`. It knows the machine, which the vault does not.
    entry_type: Class of the returned entries.
    """

    def __init__(
        self,
        database: Database,
        check_grants: Callable[[Grants], None] | None = None,
        entry_type: type[VaultEntry] = VaultEntry,
    ) -> None:
        self._database = database
        self._check_grants = check_grants
        self._entry_type = entry_type
        self._active = EntryLookup(database, lambda: self, entry_type)

    def add(
        self,
        name: str,
        code: str,
        *,
        persona: str = DEFAULT_PERSONA,
        type: CodeType = "python",  # noqa: A002 - as in the column and the card
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
        """Register a new tool as its revision 1; only name and code are required.

        Defaults come from the code: the schema from the signature or the SQL parameters, the description from the
        docstring, the examples from its doctest lines. Adding the same code again changes nothing. With the name of a
        removed tool, this registers the tool anew, with the given settings. Its revision numbers continue. (`restore`
        would bring it back as it was.)

        log: False omits the tool's arguments, output and result from every record; the execution itself is recorded.

        Raises `ToolExists` if the tool has other code, or other grants than given, or if another tool had the name
        before. Raises `CodeDoesNotParse`, `ToolShapeError`, `SqlNotAllowed`, `SchemaInvalid`, `ExamplesInvalid` or
        `ConfigError` (grants).
        """
        check_names(name, persona)
        vault_rows.check_words(type, author)
        grant_fields = msgspec.to_builtins(grants) if isinstance(grants, Grants) else grants or {}
        granted = self._checked(grant_fields)
        flags = {"side_effects": side_effects, **({} if log else {"log": False})}
        settings = ToolSettings(description, input_schema, examples, group, granted, flags)
        change = CodeChange(code, author, reason, draft=draft)
        tool = vault_rows.new_tool(name, persona, type, change, settings, self._database.dialect_name)
        with self._database.write() as session:
            rows, is_registered = vault_names.register(session, tool, change, type)
            entry = self._entry(rows)
            if is_registered:
                check_same(entry, name, tool.active_hash, None if grants is None else granted)
            return entry

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
        """Add a revision and make it the active one (a draft is only added); return it.

        grants: Grants to change with it, as in `set_grants`; a refused patch changes none.
        parent: Revision that the patch is based on. If another one is active by now, this raises `RevisionConflict`,
            which shows both sides; the code is stored under its hash (`code`).

        The active revision's own code adds nothing. A schema that came from the code is read again.
        """
        change = CodeChange(code, author, reason, parent, motivating_log_id, draft, grants)
        return self.apply(name, persona, change)

    def apply(self, name: str, persona: str, change: CodeChange) -> VaultEntry:
        """Do the same as `patch`, with the change as one object."""
        if change.grants:
            self._checked(change.grants)
        with self._database.write() as session:
            rows = vault_rows.apply_patch(session, self._database.dialect_name, name, persona, change)
            if not isinstance(rows, RevisionConflict):
                return self._entry(rows)
        # Raised only now, because the losing patch's code had to be committed first.
        raise rows

    def candidate(self, entry: VaultEntry, code: str) -> VaultEntry:
        """Return the unsaved entry that `patch` would make with other code; raise the errors of `patch`."""
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
        """Add a revision with the code of revision `to`; the history remains complete. Raises `VaultTampered`."""
        entry = self.get(name, persona, to)
        if entry.persona != persona:
            vault_rows.not_for_persona(name, persona, [entry.persona])
        if entry.draft:
            raise VaultError(
                f"{entry.label} is a draft.", hint="Patch the tool with its code once it is finished."
            )
        return self.patch(
            name, entry.code, persona=persona, reason=reason or f"revert to {to}", author=author
        )

    def undo(self, name: str, persona: str = DEFAULT_PERSONA, *, author: Author = "person") -> VaultEntry:
        """Undo the active revision: add one with the code of its parent.

        A second call restores the undone code. Raises `RevisionNotFound` if there is no earlier revision,
        `VaultTampered`, and `RevisionConflict` if the tool is patched at that moment.
        """
        with self._database.read() as session:
            active, before = vault_rows.undone(session, vault_rows.exactly(session, name, persona))
            code = vault_rows.stored_code(session, before)
            check_untampered(revision_label(before.tool_name, before.target_persona, before.number), code)
        reason = f"undo of {active.number}, back to {before.number}"
        return self.patch(
            name, code.code, persona=persona, reason=reason, author=author, parent=active.number
        )

    def lookup(self, name: str, persona: str = DEFAULT_PERSONA) -> VaultEntry:
        """Return the active revision for exactly that persona, else for `default`; its code is hashed again.

        Raises `ToolNotFound` or `PersonaNotFound` with near matches, `ToolRemoved`, and `VaultTampered`.
        """
        return self._active.lookup(name, persona)

    def active(self, name: str, persona: str = DEFAULT_PERSONA) -> VaultEntry:
        """Return the same as `lookup`, also for a former name."""
        with self._database.read() as session:
            return self._entry(vault_rows.rows_of(session, vault_rows.resolve(session, name, persona)))

    def get(self, name: str, persona: str = DEFAULT_PERSONA, revision: int | None = None) -> VaultEntry:
        """Return any revision by number, by default the active one; raise like `lookup`, and `RevisionNotFound`.

        A removed tool can still be read: its entry has `removed_at`.
        """
        with self._database.read() as session:
            tool = vault_rows.readable(session, name, persona, revision)
            return self._entry(vault_rows.rows_of(session, tool, revision))

    def list(self, persona: str | None = None, *, removed: bool = False) -> builtins.list[VaultEntry]:
        """Return the active revision of every tool, optionally of one persona, sorted by name and persona.

        removed: Return the removed tools instead.
        """
        with self._database.read() as session:
            rows = vault_rows.active_rows(session, persona, removed=removed)
            # A tampered entry is listed too; it is refused when it should run.
            return [entry_of(row, self._entry_type, check=False) for row in rows]

    def search(self, text: str = "", *, limit: int = 50) -> tuple[builtins.list[VaultEntry], int]:
        """Return the first tools, in the order of `list`, and their total number; their code is not checked.

        text: Words that must all occur in the name, the group or the description, in upper or lower case.
        """
        with self._database.read() as session:
            rows = vault_rows.active_rows(session, None, text=text, limit=limit)
            entries = [entry_of(row, self._entry_type, check=False) for row in rows]
            return entries, vault_rows.count_active(session, text)

    def names(self) -> builtins.list[str]:
        """Return the names of all tools, sorted."""
        with self._database.read() as session:
            return vault_rows.tool_names(session)

    def stamp(self) -> tuple[object, ...]:
        """Return a value that changes with every change of a tool; cheap enough to be read every second."""
        (row,) = self._database.fetch(TOOLS_STAMP)
        return tuple(row.values())

    def code(self, digest: str) -> str:
        """Return the code stored under a hash, or under the only hash with that prefix; raise `VaultError`."""
        check_text("digest", digest)
        with self._database.read() as session:
            matches = session.scalars(
                select(CodeVault).where(col(CodeVault.hash).startswith(digest, autoescape=True)).limit(2)
            ).all()
            if len(matches) != 1:
                raise VaultError(
                    f"{'No' if not matches else 'More than one'} code in the vault has hash {digest!r}."
                )
            check_untampered(f"hash {digest}", matches[0])
            return matches[0].code

    def history(
        self,
        name: str,
        persona: str = DEFAULT_PERSONA,
        *,
        limit: int | None = None,
        before: int | None = None,
    ) -> builtins.list[RevisionInfo]:
        """Return all revisions, oldest first, with the numbers of their runs and failures.

        limit: Only the newest `limit`, at least 1.
        before: Only revisions with a smaller number. For the next page, pass the smallest number of this page.
        """
        if limit is not None and limit < 1:
            raise UsageInvalid(f"limit={limit!r} must be at least 1.")
        with self._database.read() as session:
            tool = vault_rows.readable(session, name, persona)
            return vault_history.history(session, tool, limit, before)

    def diff(
        self, name: str, a: int | None = None, b: int | None = None, persona: str = DEFAULT_PERSONA
    ) -> str:
        """Return a unified diff from revision `a` to `b`; by default from the active one's parent to it."""
        with self._database.read() as session:
            tool = vault_rows.readable(session, name, persona)
            new = vault_rows.find_revision(session, tool, b)
            old_number = new.parent if a is None else a
            if old_number is None:
                return ""
            return vault_rows.diff_of(session, vault_rows.find_revision(session, tool, old_number), new)

    def blame(self, name: str, fingerprint: str | None = None, persona: str = DEFAULT_PERSONA) -> Blame:
        """Find the first revision with a failure and the one that cured it; by default, of the newest failure."""
        with self._database.read() as session:
            return vault_history.blame(session, vault_rows.readable(session, name, persona), fingerprint)

    def set_grants(
        self, name: str, persona: str = DEFAULT_PERSONA, *, clear: bool = False, **grants: object
    ) -> VaultEntry:
        """Change the named grants and keep the others; None removes one, `clear` removes all that are not named.

        Raises `ConfigError` for an unknown grant, a missing path or package, or a grant that no tool may have.
        """
        self._checked(grants)
        return self._change(
            name, persona, lambda _, tool: vault_rows.change_grants(tool, grants, clear=clear)
        )

    def set_schema(
        self, name: str, schema: dict[str, Any] | None, persona: str = DEFAULT_PERSONA
    ) -> VaultEntry:
        """Replace the input schema, or with None read it from the code again; raise `SchemaInvalid`."""
        dialect = self._database.dialect_name
        return self._change(
            name, persona, lambda session, tool: vault_rows.change_schema(session, tool, schema, dialect)
        )

    def set_examples(
        self, name: str, examples: Iterable[Any] | None, persona: str = DEFAULT_PERSONA
    ) -> VaultEntry:
        """Replace the examples, or with None read them from the docstring again.

        Raises `ExamplesInvalid`, which says which one is wrong and why.
        """
        dialect = self._database.dialect_name
        return self._change(
            name, persona, lambda session, tool: vault_rows.change_examples(session, tool, examples, dialect)
        )

    def add_example(
        self, name: str, example: Mapping[str, Any], persona: str = DEFAULT_PERSONA
    ) -> VaultEntry:
        """Add one example, unless the tool already has it; raise `ExamplesInvalid`."""

        def change(session: Session, tool: ToolRegistry) -> None:
            kind = vault_rows.rows_of(session, tool).code.type
            (new,) = vault_rows.stored_examples([example], sql=kind == "sql")
            if new not in tool.examples:
                vault_rows.set_examples(tool, [*tool.examples, new])

        return self._change(name, persona, change)

    def set_flags(self, name: str, persona: str = DEFAULT_PERSONA, **flags: bool) -> VaultEntry:
        """Set the owner's switches, `side_effects` and `log` (see `add`); raise `VaultError` for any other."""
        return self._change(name, persona, lambda _, tool: vault_rows.change_flags(tool, flags))

    def rename(self, old: str, new: str, *, reason: str = "") -> VaultEntry:
        """Give a tool another name, for all its personas; return its entry.

        It keeps its revisions, requests and log rows. The old name still leads to this tool, and no other tool can have
        it. Callers that use the old name continue to work, and their code is not changed (`callers` lists them).

        Raises `ToolNotFound`, or `ToolExists` for a name that is taken or is another tool's former one. Raises
        `ToolShapeError` if the tool's name decides which function healkit runs.
        """
        with self._database.write() as session:
            vault_names.rename(session, old, new, reason)
            tool = vault_rows.of_name(session, new)[0]
            return self._entry(vault_rows.rows_of(session, tool))

    def remove(self, name: str, persona: str | None = None, *, reason: str = "") -> builtins.list[VaultEntry]:
        """Remove a tool, for one persona or for all; return what was removed. Removing it again changes nothing.

        It is no longer listed or run (`ToolRemoved`); its code, revisions and log rows are kept and can be read.
        `restore` brings it back. Raises `ToolNotFound`.
        """
        with self._database.write() as session:
            removed = vault_names.remove(session, name, persona, reason)
            return [self._entry(vault_rows.rows_of(session, tool)) for tool in removed]

    def restore(self, name: str, persona: str | None = None, *, reason: str = "") -> VaultEntry:
        """Bring a removed tool back as it was, for one persona or for all; return its entry. Raises `ToolNotFound`."""
        with self._database.write() as session:
            tool = vault_names.restore(session, name, persona, reason)
            return self._entry(vault_rows.rows_of(session, tool))

    def name_changes(self, name: str) -> builtins.list[NameChange]:
        """Return when and why a tool was renamed, removed and restored, oldest first."""
        with self._database.read() as session:
            return vault_names.changes(session, name)

    def former_names(self, persona: str = DEFAULT_PERSONA) -> dict[str, str]:
        """Map each former name of the tools that the persona can run to the tool's current name."""
        with self._database.read() as session:
            return vault_names.former_names(session, persona)

    def callers(self, name: str) -> builtins.list[str]:
        """Return the labels of the tools whose active code has `mcp.vault.<name>`; computed names are not found."""
        check_text("name", name)
        with self._database.read() as session:
            return vault_names.callers(session, name)

    def _change(self, name: str, persona: str, change: Callable[[Session, ToolRegistry], None]) -> VaultEntry:
        with self._database.write() as session:
            change(session, vault_rows.exactly(session, name, persona))
        return self.get(name, persona)

    def _entry(self, rows: EntryRows) -> VaultEntry:
        return entry_of(rows, self._entry_type)

    def _checked(self, changes: Mapping[str, Any]) -> Grants:
        """Check only these grants, because a stored grant that is no longer valid must not block a change."""
        grants = make_grants(changes)
        if self._check_grants is not None:
            self._check_grants(grants)
        return grants
