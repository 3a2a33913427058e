"""Tool that fails, and an advisor with ideas of its own."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Literal

from healkit.core.contracts.patches import Check, CheckResult
from healkit.core.contracts.vault import VaultEntry
from healkit.parts.heal.advisor import Case, Workbench
from healkit.parts.heal.records import Attempt, Patch, Verdict
from healkit.parts.heal.report import HealReport
from healkit.parts.heal.verdicts import judged_attempt
from healkit.parts.runs.reader import read_run

BROKEN = "def ratio(a, b):\n    return a / b  # how many times\n"
FIXED = "def ratio(a, b):\n    return a / b if b else 0.0  # how many times\n"
EXAMPLES = [{"arguments": {"a": 1, "b": 0}, "result": 0.0}, {"arguments": {"a": 6, "b": 3}, "result": 2.0}]
#: Passes every check of a trial, and fails in a worker.
TREACHEROUS = FIXED.replace(
    "def ratio(a, b):\n", "import sys\ndef ratio(a, b):\n    if 'ipykernel' in sys.modules: 1 / 0\n"
)
WRONG = BROKEN.replace("a / b", "b / a")
SILENT = (
    "def ratio(a, b):\n    try:\n        return a / b\n    except ZeroDivisionError:\n        return None\n"
)
STEP = "def step(n):\n    if n > 10:\n        return 20\n    return 0\n"
PASSED, RAISED, WRONG_RESULT = (CheckResult(outcome=outcome) for outcome in ("passed", "raised", "wrong"))
STEP_EXAMPLES = [{"arguments": {"n": 10}, "result": 20}, {"arguments": {"n": 3}, "result": 0}]


class Idea:
    """Advisor that proposes the given codes in order, and keeps the attempt that it gets back for each."""

    name = "idea"

    def __init__(
        self, *codes: str, author: Literal["rule", "model", "search", "person"] = "rule", guard: bool = False
    ) -> None:
        self.author = author
        self.told: list[Attempt | None] = []
        self.cases: list[Case] = []
        self._codes, self._guard = codes, guard

    def propose(self, case: Case, bench: Workbench) -> Generator[Patch, Attempt | None, None]:
        self.cases.append(case)
        for place, code in enumerate(self._codes):
            self.told.append(
                (
                    yield Patch(
                        code=code,
                        advisor=self.name,
                        author=self.author,
                        reason=f"Idea {place + 1}.",
                        rank=-place,
                        guard=self._guard,
                        cost={"ideas": 1},
                    )
                )
            )


def events(report: HealReport) -> list[str]:
    """Return the types of its events; its record must be in order."""
    run = read_run(report.folder)
    assert run.problems == []
    return [event.event_type for event in run.events]


def verdict_on(
    before: str,
    patch: Patch,
    checks: Sequence[Check],
    base: Sequence[CheckResult],
    results: list[CheckResult],
) -> Verdict:
    """Return the verdict on a patch of `before`. base, results: of the checks, without the patch and with it."""
    case = Case(VaultEntry("f", "default", 1, before, ""), None, tuple(checks), base=tuple(base))
    return judged_attempt(case, patch, results).verdict
