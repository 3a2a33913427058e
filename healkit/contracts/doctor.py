"""What a machine can enforce, and where healkit stands on it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from healkit.contracts.outbox import OutboxState


@dataclasses.dataclass(frozen=True)
class DoctorCheck:
    """One thing that was tried: whether it is as it should be, what was found, and the command that mends it."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


@dataclasses.dataclass(frozen=True)
class DoctorReport:
    """The tier that executions get here ("" for none), every check, and what that tier does not stop."""

    tier: str
    checks: list[DoctorCheck]
    not_stopped: list[str]

    @property
    def ok(self) -> bool:
        """Whether tools are run behind a boundary here."""
        return self.tier in {"namespaces", "landlock"}


@dataclasses.dataclass(frozen=True)
class Status:
    """Where healkit stands: `problem` is empty when nothing is wrong with the log.

    `requests` is how many patches wait for the user's word.
    `traces` says how many traces are where, and what is wrong with sending them. `settings` are those that `Config`
    lists for it, by their headings.
    """

    url: str
    tier: str
    tools: int
    executions: int
    failures: int
    running: int
    problem: str
    traces: OutboxState = dataclasses.field(default_factory=OutboxState)
    requests: int = 0
    settings: Mapping[str, str] = dataclasses.field(default_factory=dict)
