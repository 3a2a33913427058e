"""The search advisor: tries thousands of small edits.

It gives up as soon as there is nothing left to try, because what was deleted from a tool no rule brings back.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Literal

from healkit.contracts.healing import Attempt, Patch
from healkit.errors import BudgetSpent
from healkit.healing.advisor import Case, Workbench
from healkit.healing.search.stages import begin


class SearchAdvisor:
    """An advisor (`healing.advisor.Advisor`) that needs no model: edits by rule, tried by the thousand."""

    name = "search"
    author: Literal["search"] = "search"

    def propose(self, case: Case, bench: Workbench) -> Generator[Patch, Attempt | None, None]:
        """Patches that pass every check, likeliest first; none for SQL and side effects."""
        entry = case.entry
        if entry.type != "python" or entry.flags.get("side_effects"):
            return
        search = None
        try:
            search = begin(case, bench)
            if search is not None:
                yield from search.patches()
        except BudgetSpent:
            if search is not None:
                yield from search.rest()
