"""Healing loop: observe, diagnose, propose, validate, ask.

The tool's failure is reproduced first. Advisors are asked in order of their cost, and every patch, whoever made it,
runs on the same checks. Each step is an event of the run folder before the next one begins. The decision on the best
patch is the healer's.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from healkit.contracts.healing import VERDICTS, Answered, Attempt, Check, CheckResult, Outcome, Patch, Verdict
from healkit.contracts.vault import unified_diff
from healkit.errors import BudgetSpent, HealError, HealkitError, PolicyHalted, is_retryable
from healkit.healing.advisor import Advisor, Case, Workbench
from healkit.healing.case import own_code, settled
from healkit.healing.checks import Validator, why_not
from healkit.healing.diagnosis import Diagnosis, diagnose, diagnosed_by_examples
from healkit.healing.disambiguation import Disambiguator
from healkit.healing.heal_record import HealRecord
from healkit.healing.questions import AskPerson
from healkit.healing.report import LoopResult
from healkit.healing.result_types import doubt_types
from healkit.healing.unasked_changes import doubt_unasked
from healkit.healing.verdicts import doubt_untried, place_of, uncompared, verdict_on
from healkit.rendering import plain
from healkit.store.log_reader import Log
from healkit.store.vault import Vault

#: How much longer an advisor is asked after a cured patch of its own, in seconds and patches.
_MORE_S, _MORE_PATCHES = 3.0, 5
#: Characters of an advisor's own error that the report quotes.
_SAID_CHARS = 200
_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Listeners:
    """Callbacks of a healing; each may be None.

    progress: gets a sentence whenever something has happened. ask: gets the questions. before_patch: gets each patch
    before it is validated; a class says there what it would change. asking: gets the name of each advisor before it is
    asked.
    """

    progress: Callable[[str], None] | None = None
    ask: AskPerson | None = None
    before_patch: Callable[[Case, Patch], None] | None = None
    asking: Callable[[str], object] | None = None


class HealLoop:
    """Loop of one healing, up to the decision; `search` is called once."""

    def __init__(
        self,
        vault: Vault,
        log: Log,
        advisors: Sequence[Advisor],
        bench: Workbench,
        validator: Validator,
        record: HealRecord,
        listeners: Listeners,
        stop: threading.Event,
    ) -> None:
        self._vault, self._log = vault, log
        self._advisors = advisors
        self._bench, self._validator = bench, validator
        self._record, self._listeners = record, listeners
        self._stop = stop
        self._attempts: list[Attempt] = []
        self._tried: set[str] = set()
        self._base: list[CheckResult] = []
        self._notes: list[str] = []
        #: Sentences on patches that only hide the error, said together.
        self._silenced: list[str] = []
        self._questions: list[Answered] = []
        self._spent = False
        #: False until each plausible patch was compared with the others.
        self._compared = False

    def search(self, case: Case, log_id: int | None, isolation: str | None) -> LoopResult:
        """Observe, diagnose, and try proposals until there are enough; never raise for an advisor's fault."""
        self._isolation = isolation
        step = self._record.observed(log_id)
        diagnosis = diagnose(case.entry, case.failure, case.checks)
        try:
            if (
                unseen := diagnosis.kind == "wrong_value"
            ):  # nothing is on record, so its examples tell what happens
                case = self._settle(case)
                case, diagnosis = diagnosed_by_examples(case, diagnosis, self._base, self._log)
            self._record.inspected(step, diagnosis)
            self._say(diagnosis.sentence)
            if not diagnosis.fixable:
                return self._result(case, diagnosis, "not_mendable", diagnosis.why_not)
            if not unseen:
                case = self._settle(case)
            self._record.measured(step, case.checks, self._base)
            if case.checks and not case.untried and all(was.outcome == "passed" for was in self._base):
                return self._result(
                    case, diagnosis, "healthy", "Every check passes as it is; nothing fails any more."
                )
            case = self._ask_advisors(case)
            if self._validator.light and not case.entry.flags.get("side_effects"):
                self._attempts = doubt_unasked(
                    case.entry, case.checks, self._base, self._attempts, self._bench
                )
                case = self._disambiguate(case)
            else:  # such a tool is run on its checks only
                self._compared = True
        except BudgetSpent as error:
            self._spent = True
            self._notes.append(error.message)
        except PolicyHalted as error:
            return self._result(case, diagnosis, "halted", error.message)
        except KeyboardInterrupt:
            self._stop.set()
        if self._stop.is_set():
            return self._result(case, diagnosis, "stopped", "It was stopped; nothing was changed.")
        if self._record.run.halted is not None:
            return self._result(case, diagnosis, "halted", self._record.run.halted.reason)
        return self._result(case, diagnosis)

    def _settle(self, case: Case) -> Case:
        """Run the tool as it is on every check, and leave out the checks that do not count."""
        checks = tuple(check for check in case.checks if self._validator.fits(check))
        case = dataclasses.replace(case, checks=checks)
        if case.entry.flags.get("side_effects"):
            self._notes.append("The tool has side effects, so nothing of it was run.")
            return dataclasses.replace(case, checks=(), untried=True)
        base = self._validator.run(case.entry.code, checks)
        again = [self._rerun(case, check, was) for check, was in zip(checks, base, strict=True)]
        kept = settled(case, base, again)
        self._base = [result for check, result in zip(checks, base, strict=True) if check in kept]
        failed = sum(result.outcome != "passed" for result in self._base)
        self._say(_standing(failed, len(kept)))
        left_out = any(check.sampled and check not in kept for check in checks)
        if left_out:
            self._notes.append(
                "The failing frame is too long to be tried; a sample of its rows does not fail."
            )
        untried = case.untried or (left_out and not any(check.origin == "failing" for check in kept))
        return dataclasses.replace(case, checks=kept, untried=untried)

    def _rerun(self, case: Case, check: Check, was: CheckResult) -> CheckResult | None:
        """Run a recorded run's check with the code it had; return None where nothing can be said."""
        if check.origin != "passing" or was.outcome == "passed":
            return None
        code = own_code(self._vault, self._log, case.entry, check)
        return was if code is None else self._validator.run(code, [check])[0]

    def _ask_advisors(self, case: Case) -> Case:
        for advisor in self._advisors:
            if case.entry.flags.get("side_effects") and advisor.author == "search":
                self._notes.append("search: a tool with side effects is never searched on.")
                continue
            before = len(self._attempts)
            self._say(f"Asking {advisor.name}.")
            if self._listeners.asking is not None:
                self._listeners.asking(advisor.name)
            try:
                if (listen := getattr(advisor, "listen", None)) is not None:
                    listen(self._say)
                self._ask(advisor, case)
            except (BudgetSpent, PolicyHalted):
                raise
            except Exception as error:  # noqa: BLE001 - an advisor may be anybody's code; the others are asked as usual
                self._failed(advisor.name, error)
            finally:
                self._notes += [f"{advisor.name}: {remark}" for remark in getattr(advisor, "remarks", ())]
            case = dataclasses.replace(case, attempts=tuple(self._attempts))
            if self._enough(case, self._attempts[before:]) or self._record.run.halted is not None:
                break
        return case

    def _failed(self, name: str, error: Exception) -> None:
        """Say in the report and in the record that an advisor failed; its patches until then stand."""
        if not isinstance(error, HealkitError):
            _log.debug("the advisor %s raised %s", name, type(error).__name__, exc_info=error)
            said = f"{type(error).__name__}: {' '.join(str(error).split())[:_SAID_CHARS]}".rstrip(": ")
            error = HealError(
                f"This advisor failed with {said}.", hint="The other advisors are asked as usual."
            )
        self._notes.append(f"{name}: {error}")
        self._record.error_raised(None, error)

    def _ask(self, advisor: Advisor, case: Case) -> None:
        """Try one advisor's patches until it has no more, or there are enough."""
        proposals = advisor.propose(case, self._bench)
        cured_at, plausible = 0.0, 0
        patch = next(proposals, None)
        while patch is not None:
            attempt = self._try(case, patch)
            plausible += attempt is not None and attempt.verdict != "not_cured"
            if attempt is not None and attempt.verdict == "cured":
                cured_at = cured_at or time.monotonic()
            long_enough = cured_at and time.monotonic() - cured_at > _MORE_S
            if plausible >= _MORE_PATCHES or long_enough or self._record.run.halted is not None:
                if (close := getattr(proposals, "close", None)) is not None:
                    close()
                return
            patch = _next(proposals, attempt)

    def _try(self, case: Case, patch: Patch) -> Attempt | None:
        """Try one patch from proposal to verdict; return None if it was tried before."""
        if patch.code in self._tried and patch.author in ("rule", "search"):
            return None  # two rules proposed the same
        step = self._record.proposed(patch)
        self._tried.add(patch.code)
        if self._listeners.before_patch is not None:
            self._listeners.before_patch(case, patch)
        try:
            self._vault.candidate(case.entry, patch.code)
        except HealkitError as error:
            self._record.refused(step, patch, error)
            self._say(f"{patch.advisor}: {patch.reason} Not possible: {error.message}")
            return self._keep(case, patch, step, [], f"it cannot be run as this tool: {error.message}", 0.0)
        started = time.perf_counter()
        self._record.validating(
            step, patch, self._bench.left_s, self._isolation, self._validator.mode, case.checks
        )
        results = self._validate(step, patch, case.checks)
        why = why_not(case.checks, results)
        attempt = self._keep(case, patch, step, results, why, time.perf_counter() - started)
        self._record.validated(step, attempt, case.checks)
        found = VERDICTS[attempt.verdict].words.capitalize()
        said = f"{patch.advisor}: {patch.reason} {found}{f' ({why})' if why else ''}."
        if attempt.verdict == "silenced":
            self._silenced.append(said)
        else:
            self._say(said)
        return attempt

    def _keep(
        self, case: Case, patch: Patch, step: str, results: list[CheckResult], why: str, duration_s: float
    ) -> Attempt:
        verdict: Verdict = "not_cured"
        if not why:
            patch = doubt_types(patch, case.entry, case.checks, self._base, results)
            verdict = verdict_on(patch, case.entry.code, case.checks, self._base, results)
            if verdict == "unproven":
                patch = doubt_untried(patch, case.checks, case.untried)
        attempt = Attempt(
            number=len(self._attempts) + 1,
            patch=patch,
            diff=unified_diff(case.entry.code, patch.code, case.entry.label, "patch"),
            verdict=verdict,
            why=why,
            passed=sum(result.outcome == "passed" for result in results),
            total=len(case.checks),
            results=results,
            duration_s=duration_s,
            step_id=step,
        )
        self._attempts.append(attempt)
        return attempt

    def _validate(self, step: str, patch: Patch, checks: Sequence[Check]) -> list[CheckResult]:
        """Run the checks; retry those that failed through no fault of the patch, as the policy allows."""
        tries = 0
        while True:
            results = self._validator.run(patch.code, checks)
            lost = next((r.error_code for r in results if is_retryable(r.error_code)), None)
            if lost is None:
                return results
            tries += 1
            verdict = self._record.retrying(step, f"validate:{hash(patch.code)}", lost, tries)
            if not verdict.granted:
                return results
            self._stop.wait(min(verdict.wait_ms / 1000, max(0.0, self._bench.left_s)))
            self._record.waited(step, verdict.wait_ms)

    def _enough(self, case: Case, attempts: Sequence[Attempt]) -> bool:
        """Return True if no further advisor could do better.

        That is the case after a cure, or after an unproven patch where nothing can be proven.
        """
        verdicts = {attempt.verdict for attempt in attempts}
        provable = any(
            check.binding and was.outcome != "passed"
            for check, was in zip(case.checks, self._base, strict=True)
        )
        return "cured" in verdicts or ("unproven" in verdicts and not provable)

    def _disambiguate(self, case: Case) -> Case:
        """Ask what is right where plausible patches disagree; each answer is one more check for all of them."""
        disambiguator = Disambiguator(
            case, self._attempts, self._base, self._validator, self._bench, self._record, self._listeners.ask
        )
        try:
            disambiguator.resolve(self._ranked)
            self._compared = True
        except BudgetSpent as error:
            self._notes.append(error.message)
        finally:  # keep the answers also where the budget ends in the middle
            self._attempts, self._base = disambiguator.attempts, disambiguator.base
            self._questions = disambiguator.questions
            self._notes += [disambiguator.note] if disambiguator.note else []
        return disambiguator.case

    def _ranked(self, attempts: Sequence[Attempt] | None = None) -> list[Attempt]:
        """Sort attempts, likeliest right first: by verdict, then by advisor, then by the advisor's own order."""
        order = {advisor.name: place for place, advisor in enumerate(self._advisors)}
        return sorted(
            self._attempts if attempts is None else attempts,
            key=lambda a: (place_of(a), order.get(a.patch.advisor, 99), -a.patch.rank, a.number),
        )

    def _result(
        self, case: Case, diagnosis: Diagnosis, outcome: Outcome | None = None, reason: str = ""
    ) -> LoopResult:
        if not self._compared:
            code, checks = case.entry.code, case.checks
            self._attempts = [uncompared(attempt, code, checks, self._base) for attempt in self._attempts]
        self._say_silenced()
        for attempt in self._record.concluded(self._attempts):
            found = VERDICTS[attempt.verdict].words.capitalize()
            self._say(f"{attempt.patch.advisor}: {attempt.patch.reason} {found}: {attempt.patch.doubt}")
        return LoopResult(
            case,
            diagnosis,
            tuple(self._ranked()),
            tuple(self._questions),
            tuple(self._notes),
            outcome,
            reason,
            tuple(self._base),
            self._spent or self._bench.left_s <= 0,
        )

    def _say(self, sentence: str) -> None:
        self._say_silenced()
        if self._listeners.progress is not None:
            self._listeners.progress(sentence)

    def _say_silenced(self) -> None:
        """Say in one line how many patches since the last sentence only hide the error."""
        said, self._silenced = self._silenced, []
        if said and self._listeners.progress is not None:
            advisor = said[0].partition(":")[0]
            many = f"{advisor}: {len(said)} patches only hide the error."
            self._listeners.progress(said[0] if len(said) == 1 else many)


def _standing(failed: int, checks: int) -> str:
    """Say how the code does before any patch."""
    if checks == 1:
        return f"Before any patch, the check {'fails' if failed else 'passes'}."
    if failed == checks and checks:
        return f"Before any patch, all {checks} checks fail."
    fail = "fails" if failed == 1 else "fail"
    return f"Before any patch, {failed or 'none'} of {plain.count(checks, 'check')} {fail}."


def _next(proposals: Iterator[Patch], attempt: Attempt | None) -> Patch | None:
    """Return the next patch; an advisor that is a generator gets the attempt with the last one."""
    send: Any = getattr(proposals, "send", None)
    try:
        patch: Patch | None = send(attempt) if send is not None else next(proposals)
    except StopIteration:
        return None
    return patch
