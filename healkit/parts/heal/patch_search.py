"""Search for a patch: reproduce, ask, try, compare.

Advisors are asked in the order of their cost, and every patch, whoever made it, runs on the same checks. Each step is
an event of the run folder before the next one begins.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable, Iterator, Sequence

import msgspec

from healkit.core.contracts.patches import Check, CheckResult
from healkit.errors import BudgetSpent, HealError, HealkitError, PolicyHalted, is_retryable
from healkit.parts.heal.advisor import Advisor, Case
from healkit.parts.heal.advisors.search.patch_ranking import doubt_by_new_parts
from healkit.parts.heal.advisors.search.strategy import doubt_by_rivals
from healkit.parts.heal.case import diagnose, diagnosed_by_examples, granted_files
from healkit.parts.heal.chance import PASSING_RUNS, SET_ORDER, chance_in
from healkit.parts.heal.context import HealContext
from healkit.parts.heal.deciding import Ending
from healkit.parts.heal.questions import Answer, Question, answered_check, question_on
from healkit.parts.heal.record import HealRecord
from healkit.parts.heal.records import VERDICTS, Answered, Attempt, Patch
from healkit.parts.heal.reproduction import Reproduction
from healkit.parts.heal.verdicts import (
    UNTRIED,
    disputed,
    doubt_by_other_inputs,
    doubted,
    is_provable,
    judged_attempt,
    place_of,
    rejudged,
    uncompared,
    with_changes_doubted,
)

#: How much longer an advisor is asked after a cured patch of its own, in seconds and patches.
_MORE_S, _MORE_PATCHES = 3.0, 5
#: How many patches are tried where all of them only hide the error.
_SILENCED_PATCHES = 12
#: Characters of an advisor's own error that the report quotes.
_SAID_CHARS = 200
_QUESTIONS_MAX = 3
_log = logging.getLogger(__name__)


class PatchSearch:
    """Search for a patch of one failing tool.

    Its case contains the facts so far: the checks that count, their results with the unpatched code, the attempts.
    """

    def __init__(
        self, context: HealContext, record: HealRecord, case: Case, advisors: Sequence[Advisor]
    ) -> None:
        self._context, self._record, self._advisors = context, record, advisors
        self._reproduction = Reproduction(context)
        self.case = case
        self.diagnosis = diagnose(context.entry, case.failure, case.checks)
        #: Questions that a person was asked, with their answers.
        self.questions: list[Answered] = []
        #: True once the budget has ended it.
        self.spent = False
        self._tried: set[str] = set()
        #: False until each plausible patch was compared with the others.
        self._compared = self._cut_short = False

    def ending(self) -> Ending | None:
        """Search until there are enough patches; return None if there is something to decide.

        Never raises for an advisor's fault.
        """
        ending, stop = None, self._context.options.stop
        step = self._record.observed(self._context.log_id)
        try:
            ending = self._without_a_patch(step) or self._with_patches(step)
        except BudgetSpent as error:
            self.spent = True
            self._context.voice.notes.append(error.message)
        except PolicyHalted as error:
            ending = Ending("halted", error.message)
        except KeyboardInterrupt:
            stop.set()
        if ending is None and stop.is_set():
            ending = Ending("stopped", "It was stopped; nothing was changed.")
        halt = self._record.run.halted
        if ending is None and halt is not None:
            ending = Ending("halted", halt.reason)
        self._conclude()
        return ending

    def _without_a_patch(self, step: str) -> Ending | None:
        """Diagnose, and run the unpatched code; return the ending if no patch is needed."""
        context, voice, reproduction = self._context, self._context.voice, self._reproduction
        # Nothing is on record of a wrong value: its examples tell what happens.
        unseen, by_chance = self.diagnosis.kind == "wrong_value", None
        if unseen:
            self.case, by_chance = reproduction.reproduced(self.case, self.diagnosis)
            self.case, self.diagnosis = diagnosed_by_examples(self.case, self.diagnosis, context.hk.log)
            if by_chance is not None:
                self._diagnose_again(
                    sentence="It sometimes passes and sometimes fails with the same arguments."
                )
        self._record.inspected(step, self.diagnosis)
        if context.blamed is not None:
            voice.say(context.blamed.sentence)
        voice.say(self.diagnosis.sentence)
        if not self.case.discreet:
            voice.notes += granted_files(context.entry.grants, context.failed_at)
        if not self.diagnosis.fixable and not context.options.improves:
            return Ending("not_mendable", self.diagnosis.why_not)
        if not unseen:
            self.case, by_chance = reproduction.reproduced(self.case, self.diagnosis)
        case = self.case
        self._record.measured(step, case.checks, case.base)
        works = case.checks and not case.untried and not context.options.improves
        if by_chance is None and works and all(was.outcome == "passed" for was in case.base):
            return Ending("healthy", reproduction.healthy(case))
        return by_chance

    def _with_patches(self, step: str) -> Ending | None:
        """Ask the advisors, and compare passing patches; return the ending if only an outside cause is left."""
        context = self._context
        outside = self._reproduction.cause_outside(self.case, self.diagnosis.outside)
        self._ask_advisors(outside=bool(outside))
        if outside and not any(
            attempt.plausible and attempt.verdict != "silenced" for attempt in self.case.attempts
        ):
            self._diagnose_again(fixable=False, why_not=outside)
            self._record.inspected(step, self.diagnosis)  # once more: the checks have shown it
            return Ending("not_mendable", outside)
        if context.validator.light and not context.is_cell:  # else it is run on its checks only
            self._keep_attempts(with_changes_doubted(self.case, context.beside))
            self._ask_questions()
        self._compared = not self._cut_short
        return None

    def _diagnose_again(self, **changes: object) -> None:
        self.diagnosis = dataclasses.replace(self.diagnosis, **changes)  # type: ignore[arg-type]  # its fields

    def _keep_attempts(self, attempts: Sequence[Attempt]) -> None:
        self.case = dataclasses.replace(self.case, attempts=tuple(attempts))

    # The advisors, one after the other.

    def _ask_advisors(self, *, outside: bool) -> None:
        """Ask the advisors; if the cause is outside the code, only those that know a mistake or another version."""
        if outside:
            peers = tuple(peer for peer in self.case.peers if peer.same_tool)
            self.case = dataclasses.replace(self.case, peers=peers)
        voice = self._context.voice
        for advisor in self._advisors:
            if advisor.author == "search" and self._context.may_act:
                continue
            if outside and advisor.author not in ("rule", "person", "agent"):
                continue
            before = len(self.case.attempts)
            voice.asking(advisor.name, self._context.bench.tried)
            try:
                if (listen := getattr(advisor, "listen", None)) is not None:
                    listen(voice.say)
                self._ask(advisor)
            except (BudgetSpent, PolicyHalted):
                raise
            except Exception as error:  # noqa: BLE001 - an advisor may be anybody's code; the others are asked as usual
                self._failed(advisor.name, error)
            finally:
                voice.notes += [f"{advisor.name}: {remark}" for remark in getattr(advisor, "remarks", ())]
            verdicts = {attempt.verdict for attempt in self.case.attempts[before:]}
            # No further advisor does better than a cure, or than an unproven patch where nothing can be proven.
            enough = "cured" in verdicts or ("unproven" in verdicts and not is_provable(self.case))
            if enough or self._record.run.halted is not None:
                return

    def _failed(self, name: str, error: Exception) -> None:
        """Report and record that an advisor failed; its patches until then still count."""
        if not isinstance(error, HealkitError):
            _log.debug("the advisor %s raised %s", name, type(error).__name__, exc_info=error)
            message = f"{type(error).__name__}: {' '.join(str(error).split())[:_SAID_CHARS]}".rstrip(": ")
            error = HealError(
                f"This advisor failed with {message}.", hint="The other advisors continue as usual."
            )
        self._context.voice.notes.append(f"{name}: {error}")
        self._record.error_raised(None, error)

    def _ask(self, advisor: Advisor) -> None:
        """Try one advisor's patches until it has no more, or there are enough."""
        proposals = advisor.propose(self.case, self._context.bench)
        may_come_again = not getattr(advisor, "final", True)
        cured_at, plausible, silenced = 0.0, 0, 0
        patch = next(proposals, None)
        while patch is not None:
            attempt = self._try(patch)
            plausible += attempt is not None and attempt.plausible
            silenced += attempt is not None and attempt.verdict == "silenced"
            if attempt is not None and attempt.verdict == "cured":
                cured_at = cured_at or time.monotonic()
            elif attempt is not None and may_come_again:
                self._tried.discard(patch.code)
            long_enough = cured_at and time.monotonic() - cured_at > _MORE_S
            enough = plausible >= (_SILENCED_PATCHES if silenced == plausible else _MORE_PATCHES)
            if enough or long_enough or self._record.run.halted is not None:
                if (close := getattr(proposals, "close", None)) is not None:
                    close()
                return
            patch = _next(proposals, attempt)

    # One patch, from proposal to verdict.

    def _try(self, patch: Patch) -> Attempt | None:
        """Try one patch; return None if it was tried before."""
        if patch.code in self._tried and patch.author in ("rule", "search"):
            return None  # two rules proposed the same
        context, case, voice = self._context, self.case, self._context.voice
        step = self._record.proposed(patch)
        self._tried.add(patch.code)
        if patch.author == "person" and not context.is_cell:
            context.accepted[patch.code] = context.whole
        if context.options.before_patch is not None:
            with context.bench.off_the_clock():
                context.options.before_patch(case, patch)
        try:
            if not context.is_cell:
                context.hk.vault.candidate(case.entry, patch.code)
        except HealkitError as error:
            self._record.refused(step, patch, error)
            voice.say(f"{patch.advisor}: {patch.reason} Not possible: {error.message}")
            attempt = judged_attempt(case, patch, [], why=f"it cannot run as this tool: {error.message}")
            attempt = msgspec.structs.replace(attempt, step_id=step)
            self._keep_attempts([*case.attempts, attempt])
            return attempt
        started, validator = time.perf_counter(), context.validator
        self._record.validating(
            step, patch, context.bench.left_s, context.isolation, validator.mode, case.checks
        )
        attempt = self._compared_with_code(judged_attempt(case, patch, self._validate(step, patch)))
        duration_s = time.perf_counter() - started
        attempt = msgspec.structs.replace(attempt, step_id=step, duration_s=duration_s)
        self._keep_attempts([*case.attempts, attempt])
        self._record.validated(step, attempt, case.checks)
        why = f" ({attempt.why})" if attempt.why else ""
        sentence = f"{patch.advisor}: {patch.reason} {VERDICTS[attempt.verdict].words.capitalize()}{why}."
        (voice.say_of_silenced if attempt.verdict == "silenced" else voice.say)(sentence)
        return attempt

    def _validate(self, step: str, patch: Patch) -> list[CheckResult]:
        """Run the checks; retry those whose failure the patch did not cause, as the policy allows."""
        tries, context = 0, self._context
        while True:
            results = context.validator.run(patch.code, self.case.checks)
            lost = next((r.error_code for r in results if is_retryable(r.error_code)), None)
            if lost is None:
                return self._repeated(patch, results)
            tries += 1
            verdict = self._record.retrying(step, f"validate:{hash(patch.code)}", lost, tries)
            if not verdict.granted:
                return results
            context.options.stop.wait(min(verdict.wait_ms / 1000, max(0.0, context.bench.left_s)))
            self._record.waited(step, verdict.wait_ms)

    def _repeated(self, patch: Patch, results: list[CheckResult]) -> list[CheckResult]:
        """Run the checks again if a passing patch reads a changing source; a failure counts."""
        checks, validator = self.case.checks, self._context.validator
        if any(was.outcome != "passed" for was in results) or chance_in(patch.code) in ("", SET_ORDER):
            return results
        for _ in range(PASSING_RUNS if validator.light else 1):
            again = validator.run(patch.code, checks)
            results = [
                now if was.outcome == "passed" else was for was, now in zip(results, again, strict=True)
            ]
        return results

    def _compared_with_code(self, attempt: Attempt) -> Attempt:
        """Doubt every advisor's cured patch by one list; a person vouches for their own."""
        case, patch, bench = self.case, attempt.patch, self._context.bench
        if patch.author == "person" or attempt.verdict != "cured":
            return attempt
        if not self._context.validator.light:
            return doubted(case, attempt, UNTRIED if patch.author in ("model", "agent") else "")
        try:
            doubt = doubt_by_new_parts(case, patch, bench)
            if patch.advisor != "search":  # which has compared its own
                self._context.voice.say(
                    f"{patch.advisor}: {patch.reason} It passes every check and is compared with other patches."
                )
                doubt = doubt or doubt_by_other_inputs(case, attempt, bench)
                doubt = doubt or doubt_by_rivals(case, patch, bench)
        except BudgetSpent:
            self._cut_short, doubt = True, ""
        return doubted(case, attempt, doubt)

    # Questions. Two patches can pass all checks and still return different results for another input. Then at least one
    # is wrong. A person is asked what is right there; without an answer, neither patch is called cured. (Measured on
    # seventy broken tools: 18 patches lost the verdict *cured*, of which 10 were wrong; 40 kept it, of which 5 were
    # wrong.)

    def _ask_questions(self) -> None:
        """Ask at most three questions, each on the smallest input on which patches differ; raise `BudgetSpent`.

        Each answer is one more check for all patches. No question follows an unanswered one.
        """
        for number in range(1, _QUESTIONS_MAX + 1):
            case = self.case
            plausible = [attempt for attempt in self._ranked() if attempt.plausible]
            question = question_on(case, plausible, self._context.beside, number)
            if question is None:
                return
            # They stay so without an answer, and where time ends before its check has run on them.
            self._keep_attempts([disputed(attempt, question.call) for attempt in case.attempts])
            answer = self._answer_to(question)
            if answer is None:
                return
            self._recheck(case, answered_check(question, answer))

    def _answer_to(self, question: Question) -> Answer | None:
        """Ask, and record question and answer; without an answer, note that patches disagree."""
        choices = tuple(choice.text for choice in question.choices)
        answer, ask = None, self._context.options.ask
        if ask is not None:
            self._record.asking(question.call, choices)
            asked_at = time.monotonic()
            with self._context.bench.off_the_clock():
                answer = ask(question)
            reply = "" if answer is None else answer.text
            self.questions.append(Answered(question.call, choices, reply or None))
            self._record.replied(question.call, reply, time.monotonic() - asked_at)
        if answer is None:
            reply = "" if self.case.discreet else f": {' or '.join(choices)}"
            self._context.voice.notes.append(
                f"Plausible patches disagree on {question.call}{reply}. It is not known which one is right."
            )
        return answer

    def _recheck(self, case: Case, check: Check) -> None:
        """Run the tool and each plausible attempt of the case also on an answer's check."""
        run = self._context.validator.run
        base = (*case.base, run(case.entry.code, [check])[0])
        case = dataclasses.replace(case, checks=(*case.checks, check), base=base)
        attempts = [
            attempt if not attempt.plausible else rejudged(case, attempt, run(attempt.patch.code, [check])[0])
            for attempt in case.attempts
        ]
        self.case = dataclasses.replace(case, attempts=tuple(attempts))
        for before, now in zip(case.attempts, attempts, strict=True):
            if now is not before and now.step_id is not None:
                self._record.answered(now.step_id, now, check)

    # The end of the search.

    def _conclude(self) -> None:
        """Give the attempts their last verdicts and their order; record and report the changes."""
        voice = self._context.voice
        if not self._compared:
            self._keep_attempts([uncompared(self.case, attempt) for attempt in self.case.attempts])
        voice.say_silenced()
        for attempt in self._record.concluded(self.case.attempts):
            words = VERDICTS[attempt.verdict].words.capitalize()
            doubt = "" if self.case.discreet else f": {attempt.patch.doubt}"  # it may name what was returned
            voice.say(f"{attempt.patch.advisor}: {attempt.patch.reason} {words}{doubt}")
        self._keep_attempts(self._ranked())

    def _ranked(self) -> list[Attempt]:
        """Sort the attempts, likeliest right first: by verdict, then by advisor, then by the advisor's own order."""
        order = {advisor.name: place for place, advisor in enumerate(self._advisors)}
        return sorted(
            self.case.attempts,
            key=lambda a: (place_of(a), order.get(a.patch.advisor, 99), -a.patch.rank, a.number),
        )


def _next(proposals: Iterator[Patch], attempt: Attempt | None) -> Patch | None:
    """Return the next patch; an advisor that is a generator gets the attempt with the last one."""
    send: Callable[[Attempt | None], Patch | None] | None = getattr(proposals, "send", None)
    try:
        return send(attempt) if send is not None else next(proposals)
    except StopIteration:
        return None
