"""Vault entries: looked up, made from rows, grants checked.

An execution finds its entry here without SQLAlchemy, which takes longer to import, so nothing here imports it. The
vault has all other functions.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import msgspec

from healkit.core.contracts.execution import Grants
from healkit.core.contracts.tools import EntryRef, is_valid_name
from healkit.core.contracts.vault import DEFAULT_PERSONA, VaultEntry
from healkit.core.pysource import shapes
from healkit.core.pysource.shapes import examples_in
from healkit.core.store.database import Database
from healkit.core.store.statements import LOOKUP, unreadable
from healkit.errors import (
    ConfigError,
    HealkitError,
    ToolExists,
    ToolRemoved,
    VaultError,
    VaultTampered,
    named,
)

if TYPE_CHECKING:
    from healkit.core.store.models import CodeVault, Revision, ToolRegistry


CodeType = Literal["python", "sql"]
#: Author of a revision.
Author = Literal["person", "rule", "search", "model", "agent", "seed"]

#: Revision number of code without a revision: a traceback shows it as `<fibonacci@0>`.
NO_REVISION = 0

_PERSONA = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


class EntryRows(NamedTuple):
    """Rows of three tables that make up an entry."""

    tool: ToolRegistry
    revision: Revision
    code: CodeVault


@dataclasses.dataclass(frozen=True)
class Described:
    """Schema, description and examples from a tool's code."""

    input_schema: dict[str, Any]
    description: str
    examples: list[dict[str, Any]] = dataclasses.field(default_factory=list)


class HasEntries(Protocol):
    """The part of the vault that `EntryLookup` needs."""

    def active(self, name: str, persona: str) -> VaultEntry:
        """Return the entry by a former name; called by `lookup`. Raises `ToolNotFound` or `PersonaNotFound`."""


class EntryLookup:
    """Finds the entry to run.

    vault: Called if nothing is found, because it raises the right error.
    entry_type: Class of the entries.
    """

    def __init__(
        self, database: Database, vault: Callable[[], HasEntries], entry_type: type[VaultEntry] = VaultEntry
    ) -> None:
        self._database = database
        self._vault = vault
        self._entry_type = entry_type

    def lookup(self, name: str, persona: str = DEFAULT_PERSONA) -> VaultEntry:
        """Return the active revision for exactly that persona, else for `default`; its code is hashed again.

        Raises `ToolNotFound` or `PersonaNotFound` with near matches, `ToolRemoved`, `VaultTampered`, and `VaultError`
        for a stored grant that healkit no longer supports.
        """
        if not (isinstance(name, str) and isinstance(persona, str)):
            return self._vault().active(name, persona)
        rows = self._database.fetch(LOOKUP, name=name, persona=persona)
        by_persona = {row["target_persona"]: row for row in rows}
        chosen = by_persona.get(persona) or by_persona.get(DEFAULT_PERSONA)
        if chosen is None:
            entry = self._vault().active(name, persona)
        else:
            row: Any = SimpleNamespace(**chosen)
            entry = entry_of(EntryRows(row, row, row), self._entry_type)
        if removed := entry.flags.get("removed_grants"):
            listing = ", ".join(f"{grant}={value!r}" for grant, value in removed.items())
            owner = "" if entry.persona == DEFAULT_PERSONA else f" --persona {entry.persona}"
            raise VaultError(
                f"{entry.label} has a grant that healkit no longer has: {listing}. Nothing was run.",
                hint=f"Give it new grants: healkit vault grant {entry.tool_name}{owner} --clear. "
                "What needs another environment runs in a Jupyter kernel of that environment.",
            )
        return entry

    def leaves_out(self, name: str, persona: str) -> bool:
        """Return whether that tool does not log its contents; False if there is no such tool."""
        try:
            return not self.lookup(name, persona).logged
        except ToolRemoved as error:
            return not error.logged
        except HealkitError:
            return False

    def candidate(self, entry: VaultEntry, code: str) -> VaultEntry:
        """Return the unsaved entry that `patch` would make with other code; raise the errors of `patch`."""
        return candidate(entry, code, self._database.dialect_name)


def entry_of(rows: EntryRows, kind: type[VaultEntry] = VaultEntry, *, check: bool = True) -> VaultEntry:
    """Make an entry from its rows.

    Raises `VaultTampered` if the code does not match its hash, and `DatabaseCorrupt` for invalid grants.
    """
    tool, revision, code = rows
    try:
        grants = msgspec.convert(tool.grants, Grants)
    except msgspec.ValidationError:
        raise unreadable("grants", tool.grants) from None
    removed = {name: tool.grants[name] for name in tool.grants if name not in Grants.__struct_fields__}
    entry = kind(
        tool_name=tool.tool_name,
        persona=tool.target_persona,
        revision=revision.number,
        code=code.code,
        code_hash=revision.code_hash,
        type=code.type,
        description=tool.description,
        input_schema=tool.input_schema,
        grants=grants,
        examples=tool.examples,
        flags={**tool.flags, "removed_grants": removed} if removed else tool.flags,
        group=tool.group_name,
        draft=revision.draft,
        removed_at=getattr(tool, "removed_at", None),  # `lookup` never finds a removed tool
    )
    # Build the label only for a tampered entry, because every execution runs this.
    if check and stored_hash(code) != code.hash:
        check_untampered(entry.label, code)
    return entry


def candidate(entry: VaultEntry, code: str, dialect: str) -> VaultEntry:
    """Return the entry with other code, as a patch would make it; its grants are unchanged, and nothing is saved.

    Raises `CodeDoesNotParse`, `ToolShapeError` or `SqlNotAllowed`.
    """
    digest = code_hash(code)
    ref = EntryRef(entry.tool_name, entry.persona, NO_REVISION, digest)
    described = describe(code, entry.type, ref, dialect, draft=False)
    follows = "input_schema" in entry.flags.get("derived", [])
    return dataclasses.replace(
        entry,
        revision=NO_REVISION,
        code=code,
        code_hash=digest,
        input_schema=described.input_schema if follows else entry.input_schema,
        draft=False,
    )


def code_hash(code: str) -> str:
    """Return the SHA-256 of the text in UTF-8, in hexadecimal; raise `VaultError` for a lone surrogate, or no text."""
    if not isinstance(code, str):
        raise VaultError(
            f"A tool's code is text, not {named(code)}.", hint="Of a function, inspect.getsource gives it."
        )
    try:
        return hashlib.sha256(code.encode()).hexdigest()
    except UnicodeEncodeError as error:
        raise VaultError(
            f"The code holds a lone surrogate at position {error.start}, which no file can.",
            hint="Write the character as an escape.",
        ) from None


def describe(code: str, kind: str, ref: EntryRef, dialect: str, *, draft: bool) -> Described:
    """Read the schema, the description and the examples from the code.

    Raises `CodeDoesNotParse`, `ToolShapeError` or `SqlNotAllowed`. A draft that cannot be read is described as a tool
    that accepts anything.
    """
    if kind == "sql":
        if draft:
            return Described({"type": "object"}, "")
        from healkit.core.store.sql_tools import check_sql

        names = check_sql(code, dialect)
        schema = {"type": "object", "properties": {name: {} for name in names}, "additionalProperties": False}
        return Described({**schema, "required": names} if names else schema, "")
    try:
        tree = shapes.parse(code, ref.filename)
        shape = shapes.read_shape(tree, ref.tool_name)
    except VaultError:
        if draft:
            return Described({"type": "object"}, "")
        raise
    parts = shapes.input_schema(tree, shape), shapes.docstring(tree, shape), examples_in(tree, shape)
    return Described(*parts)


def check_names(name: str, persona: str) -> None:
    """Raise `VaultError` for names that are not possible in `mcp.vault.<name>` or in a label."""
    if not (isinstance(name, str) and is_valid_name(name)):
        raise VaultError(
            f"{named(name)} cannot be a tool's name.",
            hint="Use a Python identifier that is not a keyword and does not begin with an underscore.",
        )
    if not (isinstance(persona, str) and _PERSONA.match(persona)):
        raise VaultError(
            f"{named(persona)} cannot be a persona.",
            hint="Use up to 64 letters, digits, hyphens and underscores.",
        )


def check_same(entry: VaultEntry, name: str, digest: str, grants: Grants | None) -> None:
    """Raise `ToolExists` if the entry, added again by that name, has other code or grants than before."""
    note = "" if entry.tool_name == name else f" It was called {name!r} before."
    if digest != entry.code_hash:
        raise ToolExists(
            f"The vault has {entry.label} already, with other code.{note}",
            hint=f"Patch it: vault.patch({entry.tool_name!r}, code, reason=…), or take another name.",
        )
    if grants not in (None, entry.grants):  # silently dropping a limit would leave the tool without it
        raise ToolExists(
            f"The vault has {entry.label} already, with other grants.{note}",
            hint=f"Change them: vault.set_grants({entry.tool_name!r}, …).",
        )


def stored_hash(code: CodeVault) -> str:
    """Return the hash of the stored code, which may differ from its key."""
    return hashlib.sha256(code.code.encode(errors="surrogatepass")).hexdigest()


def check_untampered(label: str, code: CodeVault) -> None:
    """Raise `VaultTampered` unless the stored code matches its hash."""
    actual = stored_hash(code)
    if actual != code.hash:
        raise VaultTampered(
            f"The stored code of {label} was changed outside of healkit: it should have the SHA-256 "
            f"{code.hash[:12]}… and has {actual[:12]}…. Nothing was run.",
            hint="Revert to another revision, or restore the database from a copy.",
        )


# Checks of grants: their form, and what may never be granted.


#: Suffixes of the database's file and of the files that SQLite keeps beside it.
_BESIDE = ("", "-wal", "-shm", "-journal")


def make_grants(given: Grants | Mapping[str, Any]) -> Grants:
    """Check grants and return them; raise `ConfigError` for an unknown field, a wrong type or a relative path."""
    fields = msgspec.to_builtins(given) if isinstance(given, Grants) else dict(given)
    for name in ("read", "write", "packages", "calls"):
        if isinstance(fields.get(name), str | Path):
            fields[name] = [fields[name]]
    for name in ("read", "write"):
        if name in fields:
            fields[name] = [_full_path(name, path) for path in fields[name] or ()]
    if fields.get("own_grants", False) is None:
        del fields["own_grants"]
    unknown = sorted(set(fields) - set(Grants.__struct_fields__))
    if unknown:
        names = ", ".join(Grants.__struct_fields__)
        hint = f"The grants are {names}; `--clear` takes back a stored one that healkit no longer has."
        raise ConfigError(f"There is no grant {unknown[0]!r}.", hint=hint)
    try:
        grants = msgspec.convert(fields, Grants)
    except msgspec.ValidationError as error:
        raise ConfigError(f"These grants are not valid: {error}.") from None
    for name in ("memory_mb", "cpu_s", "timeout_s"):
        limit = getattr(grants, name)
        if limit is not None and not limit > 0:
            raise ConfigError(f"The grant {name}={limit!r} must be greater than 0.")
    return grants


def keep_records_apart(grants: Grants, database: Path | None, folders: Iterable[Path]) -> None:
    """Raise `ConfigError` for a grant of the database, its side files, or a folder that contains one of them.

    A tool that can read the vault and the log can read the arguments of all tools. One that can write there passes
    every check.

    folders: Folders of records that wait for their database.
    """
    files = [] if database is None else [Path(f"{database}{suffix}") for suffix in _BESIDE]
    protected = {os.path.realpath(path): path for path in (*files, *folders)}
    for name in ("read", "write"):
        for path in getattr(grants, name):
            real = os.path.realpath(path)
            for own_real, protected_path in protected.items():
                is_it = real == own_real or real.startswith(f"{own_real}/") or _same_file(own_real, real)
                if is_it or own_real.startswith(f"{real.rstrip('/')}/"):
                    raise ConfigError(
                        f"The grant {name}={path!r} {'is' if is_it else 'holds'} what healkit keeps its records in "
                        f"({str(protected_path)!r}), which no tool may see.",
                        hint="Grant a folder without it; HEALKIT_DB can name another place for the database.",
                    )


def _full_path(name: str, path: object) -> str:
    if not isinstance(path, str | Path):
        raise ConfigError(f"The grant {name}={path!r} is not a path.")
    if not Path(path).is_absolute():
        full = os.path.abspath(os.path.expanduser(path))
        raise ConfigError(
            f"The grant {name}={str(path)!r} is not an absolute path.", hint=f"Write it in full: {full!r}."
        )
    return str(Path(path))


def _same_file(a: str, b: str) -> bool:
    """Return True for two names of one file, such as hard links."""
    try:
        return os.path.samefile(a, b)
    except OSError:
        return False
