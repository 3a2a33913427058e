"""Report of a healing, as text and as a card."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from healkit.core.rendering import plain
from healkit.core.rendering.to_html import html_of
from healkit.core.rendering.to_text import text_of
from healkit.core.runtime.background import in_ipython
from healkit.parts.heal import render as healing
from healkit.parts.heal.advisor import Advisor, Case
from healkit.parts.heal.checks import missing_call, missing_grant, why_not
from healkit.parts.heal.records import Attempt, CellReportData, HealReportData

if TYPE_CHECKING:
    from IPython.lib.pretty import RepresentationPrinter


@dataclasses.dataclass(frozen=True)
class HealReport(HealReportData):
    """Report of one healing from observation to revision; a notebook shows it as a card."""

    def __str__(self) -> str:
        return text_of(healing.report_card(self, "notebook" if in_ipython() else "terminal"))

    def _repr_pretty_(self, printer: RepresentationPrinter, _cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        return html_of(healing.report_card(self))


@dataclasses.dataclass(frozen=True)
class CellReport(CellReportData):
    """Report of the healing of a failing cell; a notebook shows it as a card."""

    def __str__(self) -> str:
        return text_of(healing.cell_card(self))

    def _repr_pretty_(self, printer: RepresentationPrinter, _cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        return html_of(healing.cell_card(self))


def nothing_cures(
    case: Case,
    tried: int,
    spent_s: float | None,
    *,
    searched: bool,
    acts: Callable[[str], bool] = lambda _name: False,
) -> str:
    """Say how far the healing got without a fix, which check still fails, and what to do next.

    tried: The number of candidates.
    spent_s: The used budget; None if nothing was left to try.
    searched: Whether the search was used.
    acts: Returns whether a call has declared effects, so that none is suggested.
    """
    told_of = case.entry.code if case.discreet else None
    unmet = why_not(case.checks, case.base, discreet_about=told_of) if case.base else ""
    still = f" Still failing: {unmet.rstrip('.')}." if unmet else ""
    undecided = [attempt for attempt in case.attempts if attempt.verdict == "undecided"]
    if undecided:
        results = [result for attempt in undecided for result in attempt.results]
        names = dict.fromkeys(filter(None, map(missing_call, results)))
        live = ", ".join(f'"{name}"' for name in names if not acts(name))
        still += f" Not decided: {plain.count(len(undecided), 'attempt')}."
        if done := " and ".join(filter(acts, names)):
            still += f" Healing never calls a tool that declares effects, such as {done}: run the tool once yourself."
        if live or not (names or any(map(missing_grant, results))):
            still += f" Allow the calls: live=[{live or '…'}]."
    if spent_s is None:
        ended = (
            f"{plain.count(tried, 'candidate')}, nothing left to try" if tried else "no advisor had a patch"
        )
        first = "Add an example" if searched else "Also use the search"
        return f"No fix found: {ended}.{still} {first}, edit the code, or ask a model."
    ended = plain.count(tried, "candidate") if tried else "nothing was tried"
    return f"No fix found: {ended} in {spent_s:g} s, budget used up.{still} Raise it: budget_s=…."


def total_cost(attempts: Sequence[Attempt], advisors: Sequence[Advisor]) -> dict[str, float]:
    """Add up the cost of all attempts, and of unsuccessful questions."""
    total: dict[str, float] = {}
    unclaimed = [getattr(advisor, "unclaimed", {}) for advisor in advisors]
    for cost in (*(attempt.patch.cost for attempt in attempts), *unclaimed):
        for unit, amount in cost.items():
            total[unit] = total.get(unit, 0.0) + amount
    return total
