"""Advisor that is a person with an editor.

A person's patch is validated like any other; if it fails, the person sees why and may try again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Literal

from healkit.contracts.healing import Attempt, Patch
from healkit.healing.advisor import Case, Workbench

#: Lets a person edit the code: gets the case, the text so far, and the problem of the last try (empty at first);
#: returns the edited code, or None for no more.
Edit = Callable[[Case, str, str], "str | None"]


class PersonAdvisor:
    """Advisor that asks until the patch passes, or the person stops."""

    name = "person"
    author: Literal["person"] = "person"

    def __init__(self, edit: Edit) -> None:
        self._edit = edit

    def propose(self, case: Case, bench: Workbench) -> Generator[Patch, Attempt | None, None]:
        """Yield one patch a round; the loop sends back its attempt."""
        code, problem = case.entry.code, ""
        while (edited := self._edited(case, code, problem, bench)) is not None and edited != code:
            attempt = yield Patch(
                code=edited, advisor=self.name, author=self.author, reason="Edited by hand."
            )
            if attempt is None or attempt.verdict == "cured":
                return
            code, problem = edited, attempt.why or "it passes, but no example says what is right"

    def _edited(self, case: Case, code: str, problem: str, bench: Workbench) -> str | None:
        with bench.off_the_clock():
            return self._edit(case, code, problem)
