"""Tools in the vault as data: one revision, its history, and its failures over time."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Any

from healkit.contracts.records import Grants
from healkit.contracts.tools import EntryRef

NO_GRANTS = Grants()


@dataclasses.dataclass(frozen=True)
class EntryData:
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
