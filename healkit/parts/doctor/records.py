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
    """Result of one check of the machine: whether it passed, the finding, and the command that fixes it."""

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
    """State of healkit; `problem` is empty if nothing is wrong with the log.

    `failures` counts failures of code. `refused` counts calls that were refused before any code ran. `trust` says
    whether and why the database is trusted. `requests` is the number of patches that are waiting for the user's
    consent. `traces` says where traces are and what is wrong with sending them; None without that part. `settings` are
    the settings that `Config` lists for it, by their headings.
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
    """Trust in a database, and what the database grants if it is trusted.

    `why` says since when and how it is trusted; empty if it is not. `grants` has the grants by tool label, for tools
    that have any. `acting` has the labels of tools with declared effects, `requests` those of tools with a waiting
    patch. `strange` names parts that healkit did not make; if there are any, nothing else is read.
    """

    place: str
    why: str
    tools: int = 0
    grants: Mapping[str, Grants] = dataclasses.field(default_factory=dict)
    acting: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()
    strange: tuple[str, ...] = ()
