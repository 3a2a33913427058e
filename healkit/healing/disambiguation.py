"""Questions to a person where plausible patches disagree.

Two patches can pass all checks and still return different results for another input. Then at least one is wrong. A
person is asked what is right there; without an answer, neither patch is called cured. (Measured on seventy broken
tools: 18 patches lost the verdict *cured*, of which 10 were wrong; 40 kept it, of which 5 were wrong.)
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Sequence

import msgspec

from healkit import values
from healkit.contracts.healing import Answered, Attempt, Check, CheckResult
from healkit.healing.advisor import Case, Workbench
from healkit.healing.checks import Validator, why_not
from healkit.healing.heal_record import HealRecord
from healkit.healing.inputs import accepted, known_inputs
from healkit.healing.questions import Answer, AskPerson, Question, answered_check, question_on
from healkit.healing.verdicts import verdict_on

_QUESTIONS_MAX = 3
#: Time limit of an input that tells patches apart, by the longest check that passed.
_ASKED_LEAST_S, _ASKED_TIMES = 0.03, 4.0
Ranked = Callable[[Sequence[Attempt]], list[Attempt]]


class Disambiguator:
    """Asks one healing's questions.

    `case`, `attempts` and `base` (the checks' results without a patch) include the answers so far, also where the
    budget ends in the middle. `note` says where patches disagree without an answer.
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
        """Ask at most three questions, each on the smallest input on which patches differ; raise `BudgetSpent`.

        No question follows an unanswered one.
        """
        for number in range(1, _QUESTIONS_MAX + 1):
            plausible = [attempt for attempt in ranked(self.attempts) if attempt.verdict != "not_cured"]
            accepts = functools.partial(accepted, self._entry)
            question = question_on(
                self._entry.label,
                plausible,
                known_inputs(self._entry, self.case.checks),
                accepts,
                self._bench,
                number,
                _limit_s(self.base),
            )
            if question is None:
                return
            doubted = [_doubted(attempt, question) for attempt in self.attempts]
            answer = self._answer_to(question)
            if answer is None:  # without an answer, none of them is more than unproven
                self.attempts = doubted
                return
            undecided, self.attempts = (
                self.attempts,
                doubted,
            )  # until the answer's check has run on them
            self._recheck(answered_check(question, answer), undecided)

    def _recheck(self, check: Check, attempts: Sequence[Attempt]) -> None:
        """Check the attempts against an answer too."""
        base = [*self.base, self._validator.run(self._entry.code, [check])[0]]
        case = dataclasses.replace(self.case, checks=(*self.case.checks, check))
        held = [self._rechecked(attempt, case.checks, base) for attempt in attempts]
        self.case, self.base, self.attempts = case, base, held
        for before, now in zip(attempts, held, strict=True):
            if now is not before and now.step_id is not None:
                self._record.answered(now.step_id, now, check)

    def _answer_to(self, question: Question) -> Answer | None:
        """Ask, and record question and answer; without anyone to ask, note that."""
        choices = tuple(choice.text for choice in question.choices)
        if self._ask is not None:
            self._record.asking(question.call, choices)
        asked_at = time.monotonic()
        answer = None if self._ask is None else self._ask(question)
        if answer is None:
            said = " or ".join(choices)
            self.note = (
                f"Plausible patches disagree on {question.call}: {said}. None of them is known to be right."
            )
        if self._ask is not None:
            said = "" if answer is None else _said(answer)
            self.questions.append(Answered(question.call, choices, said or None))
            self._record.replied(question.call, said, time.monotonic() - asked_at)
        return answer

    def _rechecked(self, attempt: Attempt, checks: Sequence[Check], base: Sequence[CheckResult]) -> Attempt:
        """Return the attempt with the last check run too."""
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


def _said(answer: Answer) -> str:
    return f"raises {answer.raises}" if answer.raises else values.text_of(values.kept(answer.value))


def _limit_s(base: Sequence[CheckResult]) -> float:
    """Return a patch's time limit on another input: some times the tool's longest time where it was right."""
    return _ASKED_LEAST_S + _ASKED_TIMES * max(
        (r.duration_s for r in base if r.outcome == "passed"), default=0.0
    )


def _doubted(attempt: Attempt, question: Question) -> Attempt:
    """Return a cured attempt as unproven, because another patch disagrees and the question has no answer."""
    if attempt.verdict != "cured":
        return attempt
    doubt = f"Another patch passes too, and does something else for {question.call}."
    return msgspec.structs.replace(
        attempt, verdict="unproven", patch=msgspec.structs.replace(attempt.patch, doubt=doubt)
    )
