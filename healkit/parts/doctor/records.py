"""State of a machine and of healkit, as data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from healkit.core.contracts.execution import Grants
    from healkit.parts.traces.outbox import OutboxState


@dataclasses.dataclass(frozen=True)
class DoctorCheck:
    """Result of one check of the machine: whether it passed, what was found, and the command that fixes it."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


@dataclasses.dataclass(frozen=True)
class DoctorReport:
    """Tier that executions get here ("" for none), with every check, and what that tier does not stop."""

    tier: str
    checks: list[DoctorCheck]
    not_stopped: list[str]

    @property
    def ok(self) -> bool:
        """True if tools run behind a boundary here."""
        return self.tier in {"namespaces", "landlock"}


@dataclasses.dataclass(frozen=True)
class Status:
    """State of healkit; `problem` is empty when nothing is wrong with the log.

    `failures` are those of code; `refused` counts the calls that were refused before any code ran. `trust` says whether
    the database is trusted, and why. `requests` is the number of patches that wait for the user's consent. `traces`
    says how many traces are where, and what is wrong with sending them; None without that part. `settings` are those
    that `Config` lists for it, by their headings.
    """

    url: str
    tier: str
    tools: int
    executions: int
    failures: int
    running: int
    problem: str
    traces: OutboxState | None = None
    requests: int = 0
    settings: Mapping[str, str] = dataclasses.field(default_factory=dict)
    refused: int = 0
    trust: str = ""


@dataclasses.dataclass(frozen=True)
class TrustReport:
    """Trust in a database, and what the database grants where it is trusted.

    `why` says since when and how it is trusted, "" where it is not. `grants` are by the label of the tool, for those
    that have any; `acting` the labels of tools with declared effects; `requests` those of tools that a patch waits for.
    `strange` names parts that healkit did not make: where there are any, nothing else is read.
    """

    place: str
    why: str
    tools: int = 0
    grants: Mapping[str, Grants] = dataclasses.field(default_factory=dict)
    acting: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()
    strange: tuple[str, ...] = ()
