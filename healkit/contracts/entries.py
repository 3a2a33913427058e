"""Tools in the vault: an entry, its history, and its failures."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Any

from healkit.contracts.records import Grants
from healkit.contracts.tools import EntryRef

NO_GRANTS = Grants()
#: The persona whose entry serves a persona that has none of its own.
DEFAULT_PERSONA = "default"
#: Characters of the first line of code in an entry's `repr`.
REPR_CODE_CHARS = 120


@dataclasses.dataclass(frozen=True, repr=False)
class VaultEntry:
    """Revision of a tool for a persona, ready to run.

    `code` has the hash `code_hash`, checked when it was read. `removed_at`: a removed tool can be read, not run.
    `flags` are the owner's switches
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
    removed_at: datetime | None = None

    @property
    def ref(self) -> EntryRef:
        """Reference to this code, for a worker and for the log."""
        return EntryRef(self.tool_name, self.persona, self.revision, self.code_hash)

    @property
    def label(self) -> str:
        """Name and revision: `fibonacci v2`, or `fibonacci v2 (teacher)`."""
        return self.ref.label

    @property
    def acts(self) -> bool:
        """True when it may change something that lasts: declared to have side effects, or granted to write."""
        return bool(self.flags.get("side_effects") or self.grants.write)

    @property
    def logged(self) -> bool:
        """True when its arguments, output and result go on record; that it ran always does."""
        return self.flags.get("log", True) is not False

    def __repr__(self) -> str:
        """Say which entry it is, with the first line of its code."""
        first = next((" ".join(line.split()) for line in self.code.splitlines() if line.strip()), "")
        first = first if len(first) <= REPR_CODE_CHARS else f"{first[: REPR_CODE_CHARS - 1]}…"
        return f"<VaultEntry {self.label}: {first!r}>"


@dataclasses.dataclass(frozen=True)
class RevisionInfo:
    """Line of a tool's history; `runs` and `failures` count its finished executions."""

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
class NameChange:
    """Renaming, removal or return of a tool: `kind` is `renamed`, `removed`, `restored` or `added` (again)."""

    kind: str
    persona: str
    old_name: str
    new_name: str
    reason: str
    changed_at: datetime


@dataclasses.dataclass(frozen=True)
class Blame:
    """Revisions that brought a failure in and took it out: numbers, None where unknown.

    first_failed: the first to fail with that fingerprint, in which log row and when. last_good: the newest
    one before it that succeeded and never failed so; else that one itself, if it succeeded in other runs.
    last_cured_by: the first one after the last such failure that passed with arguments for which it is on record; None
    while none has. count: how often it failed so; 0 when it never did.
    """

    fingerprint: str = ""
    first_failed: int | None = None
    first_failed_log_id: int | None = None
    first_failed_at: datetime | None = None
    last_good: int | None = None
    last_cured_by: int | None = None
    last_failed_at: datetime | None = None
    count: int = 0
