"""Report of a healing, as data."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Literal

from healkit.contracts.healing import VERDICTS, Attempt, Check, Verdict

#: `kept`: a patch is the tool's active revision now. `shown`: a dry run's. `pending`: it waits for consent. `declined`:
#: the person said no. `denied`: the policy forbids it. `rolled_back`: it was kept, failed when it ran, and was taken
#: back. `not_cured`: no attempt passes. `healthy`: the tool does not fail any more. `not_mendable`: no change
#: of the code helps. `halted`: the policy ended the run; a patch that failed once it was active may still be there.
#: `stopped`: Stop was pressed.
Outcome = Literal[
    "kept", "shown", "pending", "declined", "denied", "rolled_back", "not_cured", "healthy", "not_mendable", "halted",
    "stopped",
]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Answered:
    """Question that was asked: the input, each plausible patch's result, and the answer, as JSON text."""

    call: str
    choices: tuple[str, ...]
    answer: str | None


@dataclasses.dataclass(frozen=True)
class HealReportData:
    """Report of one healing from observation to revision.

    revision: the active one, where the healing made a revision. best: the attempt that was chosen; `not_cured` if it
    failed once it was active. reason: one sentence.
    notes: deviations on the way, such as an advisor that could not be asked. cost: of the advisors' work, summed by
    unit. folder: the run folder; `healkit trace show` reads it. nearest: where no patch passes every check, the one
    that passes most, if that is more than the code as it is.

    duration_s: wall-clock time of all of it. think_time_s: the part in which a person was waited for, at a question,
    for consent, or in an editor.
    """

    tool_name: str
    persona: str
    label: str
    outcome: Outcome
    reason: str
    diagnosis: str
    attempts: tuple[Attempt, ...]
    best: Attempt | None
    checks: tuple[Check, ...]
    duration_s: float
    candidates_tried: int
    run_id: str
    folder: Path
    revision: int | None = None
    request_id: int | None = None
    questions: tuple[Answered, ...] = ()
    notes: tuple[str, ...] = ()
    cost: dict[str, float] = dataclasses.field(default_factory=dict)
    think_time_s: float = 0.0
    nearest: Attempt | None = None

    @property
    def working_time_s(self) -> float:
        """Wall-clock time without the time in which a person was waited for."""
        return max(0.0, self.duration_s - self.think_time_s)

    @property
    def ok(self) -> bool:
        """True if a patch was kept, or none was needed."""
        return self.outcome in ("kept", "healthy")

    @property
    def verdict_code(self) -> Verdict | None:
        """Chosen attempt's verdict as a code; None where none was chosen."""
        return None if self.best is None else self.best.verdict

    @property
    def verdict(self) -> str:
        """Chosen attempt's verdict in words, for people; empty where none was chosen."""
        return "" if self.best is None else VERDICTS[self.best.verdict].words

    @property
    def plausible(self) -> tuple[Attempt, ...]:
        """Attempts that pass every check, likeliest first."""
        return tuple(attempt for attempt in self.attempts if attempt.verdict != "not_cured")
