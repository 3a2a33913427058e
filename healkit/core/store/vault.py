"""Vault of tools and their revisions.

Code is kept by its hash, tools by name and persona, and revisions are only ever added. A tool's row says which revision
is active; the revisions and the code they point to are never changed and never removed. Every change is one write
transaction that reads what it builds upon, so two patches of one parent cannot both win, and the one that loses keeps
its code in the vault under its hash.

A patch saved as a draft gets a number and leaves the active revision as it was: there is always something that runs.
Only a tool whose first revision is a draft has a draft as its active one.

Grants, the input schema, examples and flags belong to the tool, not to its code: changing one makes no revision. Nor
does renaming or removing it (`store.vault_names`): a former name means the same tool, and a removed tool is only
marked.
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

    check_grants: called before grants are stored, and raises `ConfigError`; it knows the machine, which the vault does
    not. entry_type: the class of the entries that are returned.
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

        Defaults are read off the code: the schema from the signature or the SQL parameters, the description from the
        docstring, the examples from its doctest lines. The same code again changes nothing. Under the name of a removed
        tool this registers it anew, with what is given here; its revisions go on counting (`restore` brings it back as
        it was).

        log: False keeps the tool's arguments, output and result off every record; that it ran stays on.

        Raises `ToolExists` where the tool has other code, or other grants than are given, or was called so before, and
        `CodeDoesNotParse`, `ToolShapeError`, `SqlNotAllowed`, `SchemaInvalid`, `ExamplesInvalid` or `ConfigError`
        (grants).
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
        """Add a revision and make it the active one (a draft is added only); return it.

        grants: those to change along with it, as in `set_grants`; a refused patch changes none.

        parent: the revision the patch was made from. Where another one is active by now, this raises
        `RevisionConflict`, which shows both sides; the code is kept under its hash (`code`). The active revision's own
        code again adds nothing. A schema that was read off the code is read off again.
        """
        change = CodeChange(code, author, reason, parent, motivating_log_id, draft, grants)
        return self.apply(name, persona, change)

    def apply(self, name: str, persona: str, change: CodeChange) -> VaultEntry:
        """Do as `patch`, with the change as one object."""
        if change.grants:
            self._checked(change.grants)
        with self._database.write() as session:
            rows = vault_rows.apply_patch(session, self._database.dialect_name, name, persona, change)
            if not isinstance(rows, RevisionConflict):
                return self._entry(rows)
        # Raised only now: the losing patch's code had to be committed first.
        raise rows

    def candidate(self, entry: VaultEntry, code: str) -> VaultEntry:
        """Return the entry with other code, as `patch` would make it, unsaved; raise as `patch` does for the code."""
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
        """Add a revision with the code of revision `to`; the history stays whole. Raises `VaultTampered`."""
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
        """Take back the active revision: add one with the code of the revision that it was made from.

        Undoing that again brings the code back. Raises `RevisionNotFound` where no revision precedes it,
        `VaultTampered`, and `RevisionConflict` where the tool is patched at that moment.
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
        """Return what `lookup` returns, found by a former name too."""
        with self._database.read() as session:
            return self._entry(vault_rows.rows_of(session, vault_rows.resolve(session, name, persona)))

    def get(self, name: str, persona: str = DEFAULT_PERSONA, revision: int | None = None) -> VaultEntry:
        """Return any revision by number, by default the active one; raise as `lookup`, and `RevisionNotFound`.

        A removed tool can still be read: its entry has `removed_at`.
        """
        with self._database.read() as session:
            tool = vault_rows.readable(session, name, persona, revision)
            return self._entry(vault_rows.rows_of(session, tool, revision))

    def list(self, persona: str | None = None, *, removed: bool = False) -> builtins.list[VaultEntry]:
        """Return the active revision of every tool, of one persona if given, sorted by name and persona.

        removed: the removed tools instead.
        """
        with self._database.read() as session:
            rows = vault_rows.active_rows(session, persona, removed=removed)
            # A tampered entry is listed like any other, and refused when it is to be run.
            return [entry_of(row, self._entry_type, check=False) for row in rows]

    def search(self, text: str = "", *, limit: int = 50) -> tuple[builtins.list[VaultEntry], int]:
        """Return the first tools, in the order of `list`, and how many there are; their code is not checked.

        text: words; the name, the group or the description of a tool holds each of them, in any case.
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
        """Return a value that is another one after each change of a tool; cheap enough to be asked every second."""
        (row,) = self._database.fetch(TOOLS_STAMP)
        return tuple(row.values())

    def code(self, digest: str) -> str:
        """Return the code kept under a hash, or under the only hash that begins so; raise `VaultError`."""
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
        """Return all revisions, oldest first, with how often each ran and failed.

        limit: the newest so many only, from 1. before: only those with a smaller number; to page back, pass the
        smallest number of the page you have.
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
        """Find the revision that first failed so and the one that cured it; of the newest failure by default."""
        with self._database.read() as session:
            return vault_history.blame(session, vault_rows.readable(session, name, persona), fingerprint)

    def set_grants(
        self, name: str, persona: str = DEFAULT_PERSONA, *, clear: bool = False, **grants: object
    ) -> VaultEntry:
        """Change the grants named and leave the others; None takes one back, `clear` all that are not named.

        Raises `ConfigError` for one that does not exist, that cannot be kept on this machine (a path or a package that
        is not there), or that no tool may have.
        """
        self._checked(grants)
        return self._change(
            name, persona, lambda _, tool: vault_rows.change_grants(tool, grants, clear=clear)
        )

    def set_schema(
        self, name: str, schema: dict[str, Any] | None, persona: str = DEFAULT_PERSONA
    ) -> VaultEntry:
        """Replace the input schema, or with None read it off the code again; raise `SchemaInvalid`."""
        dialect = self._database.dialect_name
        return self._change(
            name, persona, lambda session, tool: vault_rows.change_schema(session, tool, schema, dialect)
        )

    def set_examples(
        self, name: str, examples: Iterable[Any] | None, persona: str = DEFAULT_PERSONA
    ) -> VaultEntry:
        """Replace the examples of its calls, or with None read them off its docstring again.

        Raises `ExamplesInvalid`, which says which one is wrong and why.
        """
        dialect = self._database.dialect_name
        return self._change(
            name, persona, lambda session, tool: vault_rows.change_examples(session, tool, examples, dialect)
        )

    def add_example(
        self, name: str, example: Mapping[str, Any], persona: str = DEFAULT_PERSONA
    ) -> VaultEntry:
        """Add one example, unless the tool has it already; raise `ExamplesInvalid`."""

        def change(session: Session, tool: ToolRegistry) -> None:
            kind = vault_rows.rows_of(session, tool).code.type
            (new,) = vault_rows.stored_examples([example], sql=kind == "sql")
            if new not in tool.examples:
                vault_rows.set_examples(tool, [*tool.examples, new])

        return self._change(name, persona, change)

    def set_flags(self, name: str, persona: str = DEFAULT_PERSONA, **flags: bool) -> VaultEntry:
        """Turn the owner's switches, `side_effects` and `log` (see `add`); raise `VaultError` for another."""
        return self._change(name, persona, lambda _, tool: vault_rows.change_flags(tool, flags))

    def rename(self, old: str, new: str, *, reason: str = "") -> VaultEntry:
        """Give a tool another name, for all its personas; return its entry.

        Its revisions, requests and log rows stay its own. The old name goes on meaning this tool, and no other tool
        can have it; callers that use it go on working, and their code is not changed (`callers` names them).

        Raises `ToolNotFound`, `ToolExists` for a name that is taken or another tool's former one, and `ToolShapeError`
        where healkit runs a function because the tool is called like it.
        """
        with self._database.write() as session:
            vault_names.rename(session, old, new, reason)
            tool = vault_rows.of_name(session, new)[0]
            return self._entry(vault_rows.rows_of(session, tool))

    def remove(self, name: str, persona: str | None = None, *, reason: str = "") -> builtins.list[VaultEntry]:
        """Remove a tool, for one persona or for all; return what was removed. Removing it again changes nothing.

        It is no longer listed or run (`ToolRemoved`); its code, revisions and log rows stay, and can be read. `restore`
        brings it back. Raises `ToolNotFound`.
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
        """Return when and why a tool was renamed, removed and brought back, oldest first."""
        with self._database.read() as session:
            return vault_names.changes(session, name)

    def former_names(self, persona: str = DEFAULT_PERSONA) -> dict[str, str]:
        """Map each former name of the tools that the persona can run to the name that the tool has now."""
        with self._database.read() as session:
            return vault_names.former_names(session, persona)

    def callers(self, name: str) -> builtins.list[str]:
        """Return the labels of the tools whose active code says `mcp.vault.<name>`; computed names are not seen."""
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
        """Check these alone: a stored grant that has gone stale must not block a change."""
        grants = make_grants(changes)
        if self._check_grants is not None:
            self._check_grants(grants)
        return grants
