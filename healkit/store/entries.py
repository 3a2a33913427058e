"""Vault entries and their revisions, as the rest of healkit sees them."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from healkit.contracts.encoding import to_jsonable
from healkit.contracts.entries import EntryData
from healkit.contracts.records import Grants
from healkit.contracts.tools import EntryRef, is_valid_name
from healkit.errors import VaultError, VaultTampered
from healkit.pysource import shapes
from healkit.pysource.doctests import examples_in

if TYPE_CHECKING:
    from healkit.store.models import CodeVault, Revision, ToolRegistry

CodeType = Literal["python", "sql"]

#: Whose entry serves a persona that has none of its own.
DEFAULT_PERSONA = "default"

_PERSONA = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


@dataclasses.dataclass(frozen=True, repr=False)
class VaultEntry(EntryData):
    """One revision of one tool for one persona, ready to run; a notebook shows it as a card."""

    def __repr__(self) -> str:
        """Which it is; the rest of it are its fields."""
        from healkit.rendering import listings  # an entry that is run and never looked at needs none of it

        return f"<VaultEntry {self.label} for {self.persona!r}: {listings.first_line(self.code)!r}>"

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """Called by IPython for the value of a cell; within a list it is short."""
        from healkit.rendering import listings, text_of

        printer.text(text_of(listings.saved(self)) if printer.indentation == 0 else repr(self))

    def _repr_html_(self) -> str:
        """Called by a notebook that shows it."""
        from healkit.rendering import html_of, listings

        return html_of(listings.saved(self))


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
