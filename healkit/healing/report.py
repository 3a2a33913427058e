"""Report of a healing, as text and as a card."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from healkit.contracts.healing import Answered, Attempt, CheckResult, HealReportData, Outcome
from healkit.healing.advisor import Advisor, Case
from healkit.healing.case import Diagnosis
from healkit.healing.checks import why_not
from healkit.healing.workbench import Bench
from healkit.rendering import healing, plain
from healkit.rendering.to_html import html_of
from healkit.rendering.to_text import text_of
from healkit.runtime.background import in_ipython
from healkit.runtime.runs import OpenRun


@dataclasses.dataclass(frozen=True)
class LoopResult:
    """Result of the loop; `outcome` is set where there is nothing to decide.

    base: each check's result with the code as it is, if it was run. spent: the budget ended before the advisors did.
    """

    case: Case
    diagnosis: Diagnosis
    attempts: tuple[Attempt, ...]
    questions: tuple[Answered, ...]
    notes: tuple[str, ...]
    outcome: Outcome | None = None
    reason: str = ""
    base: tuple[CheckResult, ...] = ()
    spent: bool = False

    @property
    def nearest(self) -> Attempt | None:
        """Patch that passes more checks than the code as it is, where none passes all."""
        passed = sum(result.outcome == "passed" for result in self.base)
        nearer = [attempt for attempt in self.attempts if attempt.passed > passed]
        return max(nearer, key=lambda attempt: attempt.passed, default=None) if self.best is None else None

    @property
    def best(self) -> Attempt | None:
        """Likeliest patch that passes every check; None where none does."""
        first = self.attempts[0] if self.attempts else None
        return first if first is not None and first.verdict != "not_cured" else None


@dataclasses.dataclass(frozen=True)
class HealReport(HealReportData):
    """Report of one healing from observation to revision; a notebook shows it as a card."""

    def __str__(self) -> str:
        return text_of(healing.card(self, "notebook" if in_ipython() else "terminal"))

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        return html_of(healing.card(self))


def report_of(
    found: LoopResult,
    bench: Bench,
    run: OpenRun,
    outcome: Outcome,
    reason: str,
    duration_s: float,
    known: dict[str, Any],
) -> HealReport:
    """Make the report of a healing from what the loop found and what was decided.

    known: more fields of the report; its `best` is the chosen attempt as it was seen at last.
    """
    entry, best = found.case.entry, known.setdefault("best", found.best)
    return HealReport(
        tool_name=entry.tool_name,
        persona=entry.persona,
        label=entry.label,
        outcome=outcome,
        reason=reason,
        diagnosis=found.diagnosis.sentence,
        attempts=tuple(best if best and one.number == best.number else one for one in found.attempts),
        checks=found.case.checks,
        duration_s=duration_s,
        think_time_s=bench.think_time_s,
        candidates_tried=bench.tried + len(found.attempts),
        run_id=run.run_id,
        folder=run.folder,
        questions=found.questions,
        notes=(*found.notes, *([run.problem] if run.problem else ())),
        nearest=found.nearest,
        **known,
    )


def nothing_cures(found: LoopResult, tried: int, budget_s: float, asked: Sequence[Advisor]) -> str:
    """Say how far the healing got without a fix, which check still fails, and what to do next."""
    tried += len(found.attempts)
    unmet = why_not(found.case.checks, found.base)
    still = f" Still failing: {unmet}." if unmet else ""
    if not found.spent:
        ended = (
            f"{plain.count(tried, 'candidate')}, nothing left to try" if tried else "no advisor had a patch"
        )
        searched = any(advisor.author == "search" for advisor in asked)
        first = "Add an example" if searched else "Ask the search too"
        return f"No fix found: {ended}.{still} {first}, edit the code, or ask a model."
    ended = plain.count(tried, "candidate") if tried else "nothing was tried"
    return f"No fix found: {ended} in {budget_s:g} s, budget used up.{still} Raise it: budget_s=…."


def total_cost(attempts: Sequence[Attempt], advisors: Sequence[Advisor]) -> dict[str, float]:
    """Add up the cost of all attempts, and of questions asked in vain."""
    total: dict[str, float] = {}
    unclaimed = [getattr(advisor, "unclaimed", {}) for advisor in advisors]
    for cost in (*(attempt.patch.cost for attempt in attempts), *unclaimed):
        for unit, amount in cost.items():
            total[unit] = total.get(unit, 0.0) + amount
    return total
