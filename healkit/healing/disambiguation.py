"""Plausible patches held against each other, and the person asked where they part.

A patch that passes everything is one guess among others, as long as another one passes too and does something else.
So where patches part and nobody says what is right, none of them is called cured. (Measured on seventy broken tools: of
the claims that this takes back, ten of eighteen were wrong; of those that it leaves, five of forty.)
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Sequence

import msgspec

from healkit.contracts.heal_report import Answered
from healkit.contracts.healing import Attempt, Check, CheckResult
from healkit.healing.advisor import Case, Workbench
from healkit.healing.checks import Validator, verdict_on, why_not
from healkit.healing.heal_record import HealRecord
from healkit.healing.inputs import accepted
from healkit.healing.questions import Answer, AskPerson, Question, answered_check, question_on

_QUESTIONS_MAX = 3
#: How long an input that tells patches apart may take, by the longest check that passed.
_ASKED_LEAST_S, _ASKED_TIMES = 0.03, 4.0
Ranked = Callable[[Sequence[Attempt]], list[Attempt]]


class Disambiguator:
    """One healing's questions.

    `case`, `attempts` and `base` (how the checks went without a patch) are as they stand after the answers so far, also
    where the budget ends in the middle. `note` says where patches part and nobody has said what is right.
    """

    def __init__(
        self,
        case: Case,
        attempts: list[Attempt],
        base: list[CheckResult],
        validator: Validator,
        bench: Workbench,
        record: HealRecord,
        ask: AskPerson | None,
    ) -> None:
        self.case, self.attempts, self.base = case, attempts, base
        self.questions: list[Answered] = []
        self.note = ""
        self._entry, self._validator, self._bench = case.entry, validator, bench
        self._record, self._ask = record, ask

    def resolve(self, ranked: Ranked) -> None:
        """Ask at most three questions, each on the smallest input on which patches differ; raises `BudgetSpent`.

        None is put after one that was not answered.
        """
        for number in range(1, _QUESTIONS_MAX + 1):
            plausible = [attempt for attempt in ranked(self.attempts) if attempt.verdict != "not_cured"]
            accepts = functools.partial(accepted, self._entry)
            question = question_on(
                self._entry.label,
                plausible,
                self.case.checks,
                accepts,
                self._bench,
                number,
                _limit_s(self.base),
            )
            if question is None:
                return
            doubted = [_doubted(attempt, question) for attempt in self.attempts]
            answer = self._put(question)
            if answer is None:  # nobody has said what is right there, so none of them is more than unproven
                self.attempts = doubted
                return
            undecided, self.attempts = (
                self.attempts,
                doubted,
            )  # as long as the answer was not held against them
            self._hold(answered_check(question, answer), undecided)

    def _hold(self, check: Check, attempts: Sequence[Attempt]) -> None:
        """Hold the attempts against an answer too."""
        base = [*self.base, self._validator.run(self._entry.code, [check])[0]]
        case = dataclasses.replace(self.case, checks=(*self.case.checks, check))
        held = [self._held(attempt, case.checks, base) for attempt in attempts]
        self.case, self.base, self.attempts = case, base, held
        for before, now in zip(attempts, held, strict=True):
            if now is not before and now.step_id is not None:
                self._record.answered(now.step_id, now, check)

    def _put(self, question: Question) -> Answer | None:
        """Ask, and keep question and answer; where there is nobody to ask, that is noted."""
        choices = tuple(choice.text for choice in question.choices)
        if self._ask is not None:
            self._record.asking(question.call, choices)
        asked_at = time.monotonic()
        answer = None if self._ask is None else self._ask(question)
        if answer is None:
            said = " or ".join(choices)
            self.note = (
                f"Plausible patches disagree on {question.call}: {said}. Nobody has said what is right."
            )
        if self._ask is not None:
            said = (
                "" if answer is None else f"raises {answer.raises}" if answer.raises else repr(answer.value)
            )
            self.questions.append(Answered(question.call, choices, said or None))
            self._record.told(question.call, said, time.monotonic() - asked_at)
        return answer

    def _held(self, attempt: Attempt, checks: Sequence[Check], base: Sequence[CheckResult]) -> Attempt:
        """The attempt with one more check, the last of them."""
        if attempt.verdict == "not_cured":
            return attempt
        results = [*attempt.results, self._validator.run(attempt.patch.code, checks[-1:])[0]]
        return msgspec.structs.replace(
            attempt,
            results=results,
            why=why_not(checks, results),
            verdict=verdict_on(attempt.patch, self._entry.code, checks, base, results),
            passed=sum(result.outcome == "passed" for result in results),
            total=len(results),
        )


def _limit_s(base: Sequence[CheckResult]) -> float:
    """How long a patch may take on another input: some times what the tool took where it was right."""
    return _ASKED_LEAST_S + _ASKED_TIMES * max(
        (r.duration_s for r in base if r.outcome == "passed"), default=0.0
    )


def _doubted(attempt: Attempt, question: Question) -> Attempt:
    """A cure that is none as long as nobody says what is right there."""
    if attempt.verdict != "cured":
        return attempt
    doubt = f"Another patch passes too, and does something else for {question.call}."
    return msgspec.structs.replace(
        attempt, verdict="unproven", patch=msgspec.structs.replace(attempt.patch, doubt=doubt)
    )
