"""Advisor that remembers: past fixes, tried on this failure.

Its candidates are run, ranked and doubted like those of the search. A doubted candidate is left to the search, which
compares it with thousands of others.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Literal

from healkit.errors import BudgetSpent
from healkit.parts.heal.advisor import Case, Workbench
from healkit.parts.heal.advisors.search.edit_space import Candidate, parses
from healkit.parts.heal.advisors.search.program import Program
from healkit.parts.heal.advisors.search.strategy import start_search
from healkit.parts.heal.records import Patch
from healkit.parts.learn.memory import FixMemory, Recalled, Recollection

if TYPE_CHECKING:
    from healkit.services import Services

#: The most candidates that are tried, and how likely one has to be for that. (With 8 and 0.05 the memory costs more
#: than it saves where no mistake recurs, and saves no more where some do.)
_TRIED_MAX, _CHANCE_MIN = 4, 0.12


class MemoryAdvisor:
    """Patches as earlier ones were; implements `healkit.parts.heal.advisor.Advisor`."""

    name = "memory"
    author: Literal["rule"] = "rule"
    #: A patch of it that is not cured may be one that the search clears of the doubt.
    final = False

    def __init__(self) -> None:
        self._memory: Recollection | None = None

    def prepare(self, services: Services, persona: str | None) -> bool:
        """Read the vault's past fixes; return False if there are none."""
        self._memory = FixMemory(services.database).recall(persona)
        return bool(self._memory.known)

    def propose(self, case: Case, bench: Workbench) -> Iterator[Patch]:
        """Yield the patches that pass every check without a doubt, likeliest first."""
        code, memory = case.entry.code, self._memory
        if case.entry.type != "python" or memory is None or not parses(code):
            return
        failure, program = case.failure, Program(code)
        arguments = next((check.arguments for check in case.failing or case.checks), {})
        recalled = list(
            memory.edits(program.source, failure.ename if failure else "", case.fingerprint, arguments)
        )
        search = start_search(case, bench, self.name, self.author) if recalled else None
        if search is None:
            return
        suspicion = functools.partial(search.suspicion.of, program)
        tried = [
            Candidate(
                (recalled_edit.edit,),
                recalled_edit.chance * suspicion(recalled_edit.node),
                recalled_edit.chance,
                (recalled_edit.source,),
                recalled_edit.guard,
            )
            for recalled_edit in tried_first(recalled, suspicion)
        ]
        try:
            yield from (patch for patch in search.of(tried) if not patch.doubt)
        except BudgetSpent:
            return


def tried_first(recalled: Iterable[Recalled], suspicion: Callable[[ast.AST], float]) -> list[Recalled]:
    """Return the few edits that are likelier than the first edits of the search, likeliest first."""
    likely = [recalled_edit for recalled_edit in recalled if recalled_edit.chance >= _CHANCE_MIN]
    return sorted(likely, key=lambda one: -one.chance * suspicion(one.node))[:_TRIED_MAX]
