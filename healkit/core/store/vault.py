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

    Example:
    >>> hk.vault.lookup("mean")
    <VaultEntry mean v1: 'def mean(values: list):'>
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

        Example:
        >>> code = "def greet(name: str): return f'Hello {name}'"
        >>> right = {"arguments": {"name": "Ada"}, "result": "Hello Ada"}
        >>> entry = hk.vault.add("greet", code, examples=[right])
        >>> entry.label, entry.input_schema["properties"]
        ('greet v1', {'name': {'type': 'string'}})
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

        Example:
        >>> _ = hk.vault.add("area", "def area(a, b): return a + b")
        >>> hk.vault.patch("area", "def area(a, b): return a * b", reason="it added")
        <VaultEntry area v2: 'def area(a, b): return a * b'>
        """
        change = CodeChange(code, author, reason, parent, motivating_log_id, draft, grants)
        return self.apply(name, persona, change)

    def apply(self, name: str, persona: str, change: CodeChange) -> VaultEntry:
        """Do the same as `patch`, with the change as one object, a `CodeChange`.

        Example:
        >>> from healkit.core.contracts.vault import CodeChange
        >>> _ = hk.vault.add("edges", "def edges(a): return 3 * a")
        >>> hk.vault.apply("edges", "default", CodeChange("def edges(a): return 4 * a"))
        <VaultEntry edges v2: 'def edges(a): return 4 * a'>
        """
        if change.grants:
            self._checked(change.grants)
        with self._database.write() as session:
            rows = vault_rows.apply_patch(session, self._database.dialect_name, name, persona, change)
            if not isinstance(rows, RevisionConflict):
                return self._entry(rows)
        # Raised only now, because the losing patch's code had to be committed first.
        raise rows

    def candidate(self, entry: VaultEntry, code: str) -> VaultEntry:
        """Return the unsaved entry that `patch` would make with other code; raise the errors of `patch`.

        Example:
        >>> entry = hk.vault.lookup("mean")
        >>> hk.vault.candidate(entry, "def mean(values): return max(values)")
        <VaultEntry mean: 'def mean(values): return max(values)'>
        """
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
        """Add a revision with the code of revision `to`; return it. The history remains complete.

        Raises `RevisionNotFound`, `VaultTampered`, and `VaultError` for a draft.

        Example:
        >>> _ = hk.vault.add("tax", "def tax(net): return net * 0.19")
        >>> _ = hk.vault.patch("tax", "def tax(net): return net * 0.07")
        >>> hk.vault.revert("tax", to=1)
        <VaultEntry tax v3: 'def tax(net): return net * 0.19'>
        """
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

        Example:
        >>> _ = hk.vault.add("unit", "def unit(): return 'km'")
        >>> _ = hk.vault.patch("unit", "def unit(): return 'mile'")
        >>> hk.vault.undo("unit").code
        "def unit(): return 'km'"
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

        Example:
        >>> hk.vault.lookup("mean").revision
        1
        >>> hk.vault.lookup("meen")
        Traceback (most recent call last):
            ...
        healkit.errors.ToolNotFound: No tool named 'meen' in the vault. Did you mean 'mean'?
        """
        return self._active.lookup(name, persona)

    def active(self, name: str, persona: str = DEFAULT_PERSONA) -> VaultEntry:
        """Return the same as `lookup`, also for a former name; raise as it does.

        Example:
        >>> _ = hk.vault.add("sum_up", "def total(a, b): return a + b")
        >>> _ = hk.vault.rename("sum_up", "sum_of_two")
        >>> hk.vault.active("sum_up").tool_name
        'sum_of_two'
        """
        with self._database.read() as session:
            return self._entry(vault_rows.rows_of(session, vault_rows.resolve(session, name, persona)))

    def get(self, name: str, persona: str = DEFAULT_PERSONA, revision: int | None = None) -> VaultEntry:
        """Return any revision by number, by default the active one; raise like `lookup`, and `RevisionNotFound`.

        A removed tool can still be read: its entry has `removed_at`.

        Example:
        >>> _ = hk.vault.add("limit", "def limit(): return 10")
        >>> _ = hk.vault.patch("limit", "def limit(): return 20")
        >>> hk.vault.get("limit", revision=1)
        <VaultEntry limit v1: 'def limit(): return 10'>
        """
        with self._database.read() as session:
            tool = vault_rows.readable(session, name, persona, revision)
            return self._entry(vault_rows.rows_of(session, tool, revision))

    def list(self, persona: str | None = None, *, removed: bool = False) -> builtins.list[VaultEntry]:
        """Return the active revision of every tool, optionally of one persona, sorted by name and persona.

        removed: Return the removed tools instead.

        Example:
        >>> _ = hk.vault.add("welcome", "def welcome(): return 'Hello'", persona="host")
        >>> hk.vault.list("host")
        [<VaultEntry welcome v1 (host): "def welcome(): return 'Hello'">]
        """
        with self._database.read() as session:
            rows = vault_rows.active_rows(session, persona, removed=removed)
            # A tampered entry is listed too; it is refused when it should run.
            return [entry_of(row, self._entry_type, check=False) for row in rows]

    def search(self, text: str = "", *, limit: int = 50) -> tuple[builtins.list[VaultEntry], int]:
        """Return the first tools, in the order of `list`, and their total number; their code is not checked.

        text: Words that must all occur in the name, the group or the description, in upper or lower case.

        Example:
        >>> _ = hk.vault.add("chill", "def chill(celsius): return celsius - 5", group="weather")
        >>> hk.vault.search("weather")
        ([<VaultEntry chill v1: 'def chill(celsius): return celsius - 5'>], 1)
        """
        with self._database.read() as session:
            rows = vault_rows.active_rows(session, None, text=text, limit=limit)
            entries = [entry_of(row, self._entry_type, check=False) for row in rows]
            return entries, vault_rows.count_active(session, text)

    def names(self) -> builtins.list[str]:
        """Return the names of all tools, sorted.

        Example:
        >>> "mean" in hk.vault.names()
        True
        """
        with self._database.read() as session:
            return vault_rows.tool_names(session)

    def stamp(self) -> tuple[object, ...]:
        """Return a value that changes with every change of a tool; cheap enough to be read every second.

        Example:
        >>> before = hk.vault.stamp()
        >>> _ = hk.vault.add("stamped", "def stamped(): return 1")
        >>> hk.vault.stamp() == before
        False
        """
        (row,) = self._database.fetch(TOOLS_STAMP)
        return tuple(row.values())

    def code(self, digest: str) -> str:
        """Return the code stored under a hash, or under the only hash with that prefix; raise `VaultError`.

        Example:
        >>> digest = hk.vault.lookup("mean").code_hash
        >>> print(hk.vault.code(digest[:12]))
        def mean(values: list):
            return sum(values) / len(values)
        """
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

        Example:
        >>> _ = hk.vault.add("fee", "def fee(): return 1")
        >>> _ = hk.vault.patch("fee", "def fee(): return 2", reason="new prices")
        >>> [(one.number, one.active, one.reason) for one in hk.vault.history("fee")]
        [(1, False, ''), (2, True, 'new prices')]
        """
        if limit is not None and limit < 1:
            raise UsageInvalid(f"limit={limit!r} must be at least 1.")
        with self._database.read() as session:
            tool = vault_rows.readable(session, name, persona)
            return vault_history.history(session, tool, limit, before)

    def diff(
        self, name: str, a: int | None = None, b: int | None = None, persona: str = DEFAULT_PERSONA
    ) -> str:
        """Return a unified diff from revision `a` to `b`; by default from the active one's parent to it.

        The text is empty for a first revision. Raises as `get`.

        Example:
        >>> _ = hk.vault.add("step", "def step(): return 1")
        >>> _ = hk.vault.patch("step", "def step(): return 2")
        >>> print(hk.vault.diff("step"))
        --- step v1
        +++ step v2
        @@ -1 +1 @@
        -def step(): return 1
        +def step(): return 2
        """
        with self._database.read() as session:
            tool = vault_rows.readable(session, name, persona)
            new = vault_rows.find_revision(session, tool, b)
            old_number = new.parent if a is None else a
            if old_number is None:
                return ""
            return vault_rows.diff_of(session, vault_rows.find_revision(session, tool, old_number), new)

    def blame(self, name: str, fingerprint: str | None = None, persona: str = DEFAULT_PERSONA) -> Blame:
        """Find the first revision with a failure and the one that cured it; by default, of the newest failure.

        The numbers in the returned `Blame` are None if they are unknown. Raises as `get`.

        Example:
        >>> _ = hk.vault.add("share", "def share(part, whole): return part / whole")
        >>> _ = hk.execute("share", arguments={"part": 1, "whole": 2})
        >>> _ = hk.vault.patch("share", "def share(part, whole): return part / (whole - 2)")
        >>> _ = hk.execute("share", arguments={"part": 1, "whole": 2})
        >>> blame = hk.vault.blame("share")
        >>> blame.last_good, blame.first_failed
        (1, 2)
        """
        with self._database.read() as session:
            return vault_history.blame(session, vault_rows.readable(session, name, persona), fingerprint)

    def set_grants(
        self, name: str, persona: str = DEFAULT_PERSONA, *, clear: bool = False, **grants: object
    ) -> VaultEntry:
        """Change the named grants and keep the others; None removes one, `clear` removes all that are not named.

        Raises `ConfigError` for an unknown grant, a missing path or package, or a grant that no tool may have.

        Example:
        >>> _ = hk.vault.add("lines", "def lines(path): return len(open(path).readlines())")
        >>> hk.vault.set_grants("lines", read=["/etc/hosts"]).grants.read
        ('/etc/hosts',)
        """
        self._checked(grants)
        return self._change(
            name, persona, lambda _, tool: vault_rows.change_grants(tool, grants, clear=clear)
        )

    def set_schema(
        self, name: str, schema: dict[str, Any] | None, persona: str = DEFAULT_PERSONA
    ) -> VaultEntry:
        """Replace the input schema, or with None read it from the code again; raise `SchemaInvalid`.

        Example:
        >>> _ = hk.vault.add("age", "def age(years): return years")
        >>> schema = {"type": "object", "properties": {"years": {"type": "integer", "minimum": 0}}}
        >>> hk.vault.set_schema("age", schema).input_schema["properties"]
        {'years': {'type': 'integer', 'minimum': 0}}
        """
        dialect = self._database.dialect_name
        return self._change(
            name, persona, lambda session, tool: vault_rows.change_schema(session, tool, schema, dialect)
        )

    def set_examples(
        self, name: str, examples: Iterable[Any] | None, persona: str = DEFAULT_PERSONA
    ) -> VaultEntry:
        """Replace the examples, or with None read them from the docstring again.

        Raises `ExamplesInvalid`, which says which one is wrong and why.

        Example:
        >>> _ = hk.vault.add("negate", "def negate(n): return -n")
        >>> hk.vault.set_examples("negate", [{"arguments": {"n": 3}, "result": -3}]).examples
        [{'arguments': {'n': 3}, 'result': -3}]
        """
        dialect = self._database.dialect_name
        return self._change(
            name, persona, lambda session, tool: vault_rows.change_examples(session, tool, examples, dialect)
        )

    def add_example(
        self, name: str, example: Mapping[str, Any], persona: str = DEFAULT_PERSONA
    ) -> VaultEntry:
        """Add one example, unless the tool already has it; raise `ExamplesInvalid`.

        Example:
        >>> _ = hk.vault.add("shout", "def shout(text): return text.upper()")
        >>> hk.vault.add_example("shout", {"arguments": {"text": "hi"}, "result": "HI"}).examples
        [{'arguments': {'text': 'hi'}, 'result': 'HI'}]
        """

        def change(session: Session, tool: ToolRegistry) -> None:
            kind = vault_rows.rows_of(session, tool).code.type
            (new,) = vault_rows.stored_examples([example], sql=kind == "sql")
            if new not in tool.examples:
                vault_rows.set_examples(tool, [*tool.examples, new])

        return self._change(name, persona, change)

    def set_flags(self, name: str, persona: str = DEFAULT_PERSONA, **flags: bool) -> VaultEntry:
        """Set the owner's switches, `side_effects` and `log` (see `add`); raise `VaultError` for any other.

        Example:
        >>> _ = hk.vault.add("send", "def send(text): return len(text)")
        >>> hk.vault.set_flags("send", side_effects=True).flags["side_effects"]
        True
        """
        return self._change(name, persona, lambda _, tool: vault_rows.change_flags(tool, flags))

    def rename(self, old: str, new: str, *, reason: str = "") -> VaultEntry:
        """Give a tool another name, for all its personas; return its entry.

        It keeps its revisions, requests and log rows. The old name still leads to this tool, and no other tool can have
        it. Callers that use the old name continue to work, and their code is not changed (`callers` lists them).

        Raises `ToolNotFound`, or `ToolExists` for a name that is taken or is another tool's former one. Raises
        `ToolShapeError` if the tool's name decides which function healkit runs.

        Example:
        >>> _ = hk.vault.add("avg", "def average(values): return sum(values) / len(values)")
        >>> hk.vault.rename("avg", "average_of").label
        'average_of v1'
        >>> hk.execute("avg", arguments={"values": [2, 4]}).value
        3.0
        """
        with self._database.write() as session:
            vault_names.rename(session, old, new, reason)
            tool = vault_rows.of_name(session, new)[0]
            return self._entry(vault_rows.rows_of(session, tool))

    def remove(self, name: str, persona: str | None = None, *, reason: str = "") -> builtins.list[VaultEntry]:
        """Remove a tool, for one persona or for all; return what was removed. Removing it again changes nothing.

        It is no longer listed or run (`ToolRemoved`); its code, revisions and log rows are kept and can be read.
        `restore` brings it back. Raises `ToolNotFound`.

        Example:
        >>> _ = hk.vault.add("outdated", "def outdated(): return 1")
        >>> hk.vault.remove("outdated", reason="not needed")
        [<VaultEntry outdated v1: 'def outdated(): return 1'>]
        >>> "outdated" in hk.vault.names()
        False
        """
        with self._database.write() as session:
            removed = vault_names.remove(session, name, persona, reason)
            return [self._entry(vault_rows.rows_of(session, tool)) for tool in removed]

    def restore(self, name: str, persona: str | None = None, *, reason: str = "") -> VaultEntry:
        """Bring a removed tool back as it was, for one persona or for all; return its entry. Raises `ToolNotFound`.

        Example:
        >>> _ = hk.vault.add("useful", "def useful(): return 1")
        >>> _ = hk.vault.remove("useful")
        >>> hk.vault.restore("useful").label
        'useful v1'
        """
        with self._database.write() as session:
            tool = vault_names.restore(session, name, persona, reason)
            return self._entry(vault_rows.rows_of(session, tool))

    def name_changes(self, name: str) -> builtins.list[NameChange]:
        """Return when and why a tool was renamed, removed and restored, oldest first, as `NameChange` records.

        Example:
        >>> _ = hk.vault.add("tmp", "def total(a, b): return a + b")
        >>> _ = hk.vault.rename("tmp", "total_of", reason="a clear name")
        >>> [(one.kind, one.old_name, one.new_name) for one in hk.vault.name_changes("total_of")]
        [('renamed', 'tmp', 'total_of')]
        """
        with self._database.read() as session:
            return vault_names.changes(session, name)

    def former_names(self, persona: str = DEFAULT_PERSONA) -> dict[str, str]:
        """Map each former name of the tools that the persona can run to the tool's current name.

        Example:
        >>> _ = hk.vault.add("fn1", "def net(gross): return gross / 1.19")
        >>> _ = hk.vault.rename("fn1", "net_price")
        >>> hk.vault.former_names()["fn1"]
        'net_price'
        """
        with self._database.read() as session:
            return vault_names.former_names(session, persona)

    def callers(self, name: str) -> builtins.list[str]:
        """Return the labels of the tools whose active code has `mcp.vault.<name>`; computed names are not found.

        Example:
        >>> _ = hk.vault.add("vat", "def vat(net): return net * 0.19")
        >>> _ = hk.vault.add("invoice", "def invoice(net): return net + mcp.vault.vat(net=net)")
        >>> hk.vault.callers("vat")
        ['invoice v1']
        """
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
