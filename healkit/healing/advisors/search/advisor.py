"""Search advisor: tries thousands of small edits.

It ends as soon as nothing is left to try, because no edit rule restores deleted code.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Literal

from healkit.contracts.healing import Attempt, Patch
from healkit.errors import BudgetSpent
from healkit.healing.advisor import Case, Workbench
from healkit.healing.advisors.search.strategy import start_search


class SearchAdvisor:
    """Advisor (`healing.advisor.Advisor`) without a model: tries edits made by operators."""

    name = "search"
    author: Literal["search"] = "search"

    def propose(self, case: Case, bench: Workbench) -> Generator[Patch, Attempt | None, None]:
        """Yield patches that pass every check, likeliest first; none for SQL or tools with side effects."""
        entry = case.entry
        if entry.type != "python" or entry.flags.get("side_effects"):
            return
        search = None
        try:
            search = start_search(case, bench)
            if search is not None:
                yield from search.patches()
        except BudgetSpent:
            if search is not None:
                yield from search.rest()
