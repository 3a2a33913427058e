"""Vault entries and their revisions, as the rest of healkit sees them."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from healkit import rendering
from healkit.contracts import shapes
from healkit.contracts.doctests import examples_in
from healkit.contracts.encoding import to_jsonable
from healkit.contracts.records import Grants
from healkit.contracts.tools import EntryRef, is_valid_name
from healkit.errors import VaultError, VaultTampered

if TYPE_CHECKING:
    from healkit.store.models import CodeVault, Revision, ToolRegistry

CodeType = Literal["python", "sql"]

#: Whose entry serves a persona that has none of its own.
DEFAULT_PERSONA = "default"
NO_GRANTS = Grants()

_PERSONA = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


@dataclasses.dataclass(frozen=True, repr=False)
class VaultEntry:
    """One revision of one tool for one persona, ready to run.

    `code` has the hash `code_hash`, checked when it was read. `flags` are the owner's switches
    (`side_effects`, `log`) and `derived`: which of `input_schema`, `description` and `examples` were read off the
    code and follow it.
    """

    tool_name: str
    persona: str
    revision: int
    code: str
    code_hash: str
    type: str = "python"
    description: str = ""
    input_schema: dict[str, Any] = dataclasses.field(default_factory=dict)
    grants: Grants = NO_GRANTS
    examples: list[Any] = dataclasses.field(default_factory=list)
    flags: dict[str, Any] = dataclasses.field(default_factory=dict)
    group: str = ""
    draft: bool = False

    @property
    def ref(self) -> EntryRef:
        """Which code this is, for a worker and for the log."""
        return EntryRef(self.tool_name, self.persona, self.revision, self.code_hash)

    @property
    def label(self) -> str:
        """`fibonacci@2`."""
        return self.ref.label

    @property
    def logged(self) -> bool:
        """Whether what it is given, says and returns goes on record; that it ran always does."""
        return self.flags.get("log", True) is not False

    def __repr__(self) -> str:
        """Which it is; the rest of it are its fields."""
        return f"<VaultEntry {self.label} for {self.persona!r}: {rendering.first_line(self.code)!r}>"

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """Called by IPython for the value of a cell; within a list it is short."""
        printer.text(rendering.saved_text(self) if printer.indentation == 0 else repr(self))

    def _repr_html_(self) -> str:
        """Called by a notebook that shows it."""
        return rendering.saved_html(self)


@dataclasses.dataclass(frozen=True)
class RevisionInfo:
    """One line of a tool's history; `runs` and `failures` count its finished executions."""

    number: int
    parent: int | None
    author: str
    reason: str
    created_at: datetime
    code_hash: str
    draft: bool
    active: bool
    runs: int
    failures: int
    motivating_log_id: int | None = None


@dataclasses.dataclass(frozen=True)
class Blame:
    """Which revision brought a failure in, and which took it out: numbers, None where unknown.

    first_failed: the first to fail with that fingerprint, in which log row and when. last_good: the newest
    one before it that succeeded and never failed so. last_cured_by: the first one after the last such failure
    that succeeded; None while nothing has. count: how often it failed so; 0 when it never did.
    """

    fingerprint: str = ""
    first_failed: int | None = None
    first_failed_log_id: int | None = None
    first_failed_at: datetime | None = None
    last_good: int | None = None
    last_cured_by: int | None = None
    last_failed_at: datetime | None = None
    count: int = 0


@dataclasses.dataclass(frozen=True)
class Described:
    """What a tool's code says about itself."""

    input_schema: dict[str, Any]
    description: str
    examples: list[dict[str, Any]] = dataclasses.field(default_factory=list)


def code_hash(code: str) -> str:
    """The SHA-256 of the text in UTF-8, in hexadecimal; raises `VaultError` for a lone surrogate."""
    try:
        return hashlib.sha256(code.encode()).hexdigest()
    except UnicodeEncodeError as error:
        raise VaultError(
            f"The code holds a lone surrogate at position {error.start}, which no file can.",
            hint="Write the character as an escape.",
        ) from None


def describe(code: str, kind: str, ref: EntryRef, dialect: str, *, draft: bool) -> Described:
    """The schema, the description and the examples read off the code.

    Raises `CodeDoesNotParse`, `ToolShapeError` or `SqlNotAllowed`; for a draft it asks no more than it can
    read.
    """
    if kind == "sql":
        if draft:
            return Described({"type": "object"}, "")
        from healkit.store.sqltools import check_sql

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
    found = shapes.input_schema(tree, shape), shapes.docstring(tree, shape), examples_in(tree, shape)
    return Described(*found)


def check_names(name: str, persona: str) -> None:
    """Refuse names that cannot stand in `mcp.vault.<name>` or in a label; raises `VaultError`."""
    if not is_valid_name(name):
        raise VaultError(
            f"{name!r} cannot be a tool's name.",
            hint="Use a Python identifier that is no keyword and does not begin with an underscore.",
        )
    if not _PERSONA.match(persona):
        raise VaultError(
            f"{persona!r} cannot be a persona.", hint="Use up to 64 letters, digits, hyphens and underscores."
        )


def plain(value: Any) -> Any:
    """The value as JSON data, for a JSON column."""
    return to_jsonable(value)[0]


def entry_of(tool: ToolRegistry, revision: Revision, code: CodeVault, *, check: bool = True) -> VaultEntry:
    """The entry of three rows; raises `VaultTampered` where the code no longer has its hash."""
    entry = VaultEntry(
        tool_name=tool.tool_name,
        persona=tool.target_persona,
        revision=revision.number,
        code=code.code,
        code_hash=revision.code_hash,
        type=code.type,
        description=tool.description,
        input_schema=tool.input_schema,
        grants=msgspec.convert(tool.grants, Grants),
        examples=tool.examples,
        flags=tool.flags,
        group=tool.group_name,
        draft=revision.draft,
    )
    if check:
        check_untampered(entry.label, code)
    return entry


def check_untampered(label: str, code: CodeVault) -> None:
    """Raise `VaultTampered` unless the stored code has the hash it is stored under."""
    found = hashlib.sha256(code.code.encode(errors="surrogatepass")).hexdigest()
    if found != code.hash:
        raise VaultTampered(
            f"The stored code of {label} was changed outside of healkit: it should have the SHA-256 "
            f"{code.hash[:12]}… and has {found[:12]}…. Nothing was run.",
            hint="Revert to another revision, or restore the database from a copy.",
        )
