"""Healing loop: observe, diagnose, propose, validate, ask.

The tool's failure is reproduced first. Advisors are asked in order of their cost, and every patch, whoever made it,
runs on the same checks. Each step is an event of the run folder before the next one begins. The chosen patch becomes a
revision only with consent, runs once more on the execution path, and is taken back if it fails there after all.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from healkit.config import Config
from healkit.contracts.healing import (
    VERDICTS,
    Answered,
    Attempt,
    Check,
    CheckResult,
    Outcome,
    Patch,
    PatchRequest,
    Verdict,
)
from healkit.contracts.runs import ExecutionMode, PolicyDefaults
from healkit.contracts.vault import VaultEntry, unified_diff
from healkit.crossing import values
from healkit.errors import (
    BudgetSpent,
    ConfigError,
    HealError,
    HealkitError,
    PolicyHalted,
    RevisionConflict,
    is_retryable,
)
from healkit.healing.advisor import Advisor, Case, Workbench, advisors_for
from healkit.healing.case import Diagnosis, diagnose, diagnosed_by_examples, gather, own_code, settled
from healkit.healing.checks import TryCode, Validator, why_not
from healkit.healing.consent import decide
from healkit.healing.inputs import accepted, known_inputs
from healkit.healing.questions import Answer, AskPerson, Question, answered_check, question_on
from healkit.healing.record import HealRecord, heal_steps
from healkit.healing.report import HealReport, LoopResult, nothing_cures, report_of, total_cost
from healkit.healing.run_policy import HEAL_CAPS, RunPolicy
from healkit.healing.verdicts import (
    doubt_types,
    doubt_unasked,
    doubt_untried,
    place_of,
    uncompared,
    verdict_on,
)
from healkit.healing.workbench import Bench
from healkit.rendering import plain
from healkit.runtime import views
from healkit.runtime.execution import Execution
from healkit.runtime.runs import Runs
from healkit.store.log_reader import Log
from healkit.store.requests import Requests
from healkit.store.vault import Vault

#: Gets the attempt that was chosen; True accepts it, False declines it, None leaves it waiting.
Confirm = Callable[[Attempt], "bool | None"]


#: Gets the advisor that is asked, and the number of candidates tried so far.
OnTried = Callable[[str, int], object]

#: Time that the validation may take beyond the search's budget.
_VALIDATION_S = 10.0


@dataclasses.dataclass(frozen=True)
class HealRequest:
    """Request for a healing: the tool, its advisors, the budget, and whether a cure may be kept without asking."""

    tool: str
    persona: str
    advisors: Sequence[str | Advisor]
    budget_s: float
    auto: bool
    log_id: int | None
    policy: PolicyDefaults | None
    dry_run: bool = False
    #: True if the caller named the advisors; a default advisor that is not set up is not worth a note.
    named: bool = True


@dataclasses.dataclass(frozen=True)
class Healer:
    """Healer with the parts that a healing needs; one for each `Healkit`.

    make_bench: makes the workbench for an entry, which tells its last argument how many candidates were tried.
    try_code: runs a candidate on the execution path; execute: runs the tool itself.
    """

    config: Config
    vault: Vault
    log: Log
    runs: Runs
    requests: Requests
    make_bench: Callable[[VaultEntry, float, threading.Event, Callable[[int], object]], Bench]
    try_code: Callable[[VaultEntry, str, Check], Execution]
    execute: Callable[[VaultEntry, Check], Execution]
    isolation: Callable[[], str]

    def heal(
        self,
        request: HealRequest,
        listeners: Listeners,
        confirm: Confirm | None,
        stop: threading.Event,
        on_tried: OnTried | None = None,
    ) -> HealReport:
        """Heal one tool.

        Raises `HealError` where nothing says that it fails, and `ConfigError` for a bad request.
        """
        if not request.budget_s > 0:
            raise ConfigError(f"budget_s={request.budget_s!r} must be greater than 0 seconds.")
        advisors, notes = advisors_for(request.advisors, self.config)
        with views.noting() as read:
            case, log_id = gather(self.vault, self.log, request.tool, request.persona, request.log_id)
        started = time.monotonic()
        policy = RunPolicy(request.policy, HEAL_CAPS)
        counter = _TriedCounter(on_tried)
        bench = self.make_bench(case.entry, request.budget_s, stop, counter.tried)
        if case.failure is not None and case.failure.code == "TOOL_TIMEOUT":
            bench.expect_hanging(case.failing)
        # With more time: a patch that is found in the last moment must still be validated.
        validating = bench.beside(_VALIDATION_S)
        listeners = _listeners_off_the_clock(dataclasses.replace(listeners, asking=counter.asking), bench)
        mode: ExecutionMode = "dry_run" if request.dry_run else "live"
        asked = {
            "persona": request.persona,
            "advisors": [advisor.name for advisor in advisors],
            "budget_s": request.budget_s,
            "auto": request.auto,
            "logged": case.entry.logged,
        }
        entry, is_clean = case.entry, not self.config.trace_raw
        audited = heal_steps(entry.tool_name, contents=entry.logged, is_clean=is_clean)
        with self.runs.begin(
            "heal", allow=request.tool, policy=policy, mode=mode, parameters=asked, audited=audited
        ) as run:
            record = HealRecord(run, policy, case, read)
            try_code: TryCode = functools.partial(self.try_code, case.entry)
            validator = Validator(case.entry, validating, try_code, stop)
            loop = HealLoop(self.vault, self.log, advisors, bench, validator, record, listeners, stop)
            found = loop.search(case, log_id, self.isolation())
            found = dataclasses.replace(found, notes=(*(notes if request.named else ()), *found.notes))
            confirm = _off_the_clock(confirm, bench)
            outcome, reason, known = self._decide(request, found, record, log_id, confirm)
            if outcome == "not_cured":
                reason = nothing_cures(found, bench.tried, request.budget_s, advisors)
            run.finish("completed", f"{outcome}: {reason}", record.state)
            known["cost"] = total_cost(found.attempts, advisors)
            return report_of(found, bench, run, outcome, reason, time.monotonic() - started, known)

    def _decide(
        self,
        request: HealRequest,
        found: LoopResult,
        record: HealRecord,
        log_id: int | None,
        confirm: Confirm | None,
    ) -> tuple[Outcome, str, dict[str, Any]]:
        """Decide on the result; return outcome, reason, and what else the report knows."""
        best = found.best
        if found.outcome is not None:
            return found.outcome, found.reason, {}
        if best is None:
            return "not_cured", "", {}
        if request.dry_run:
            return "shown", "It is shown only, as was asked for; nothing was kept.", {}
        entry, step = found.case.entry, best.step_id or ""
        word = decide(entry.tool_name, best.verdict, best.patch.author, self.config, auto=request.auto)
        if word == "deny":
            record.decided(step, "denied")
            return (
                "denied",
                f"The policy forbids patches of {entry.tool_name!r} (heal_deny); it is shown only.",
                {},
            )
        if word == "allow":
            return self._apply(found, best, record, log_id)
        # On record before anyone is asked: no end of this process loses it.
        patch_request = self._request(entry, best, record, log_id)
        said = None if confirm is None else confirm(best)
        if said is None:
            return self._left_pending(patch_request, record, step)
        if not said:
            if patch_request.state == "pending":
                self.requests.decline(patch_request.id, "declined when it was proposed", in_run=True)
            record.decided(step, "declined")
            return "declined", "The patch was declined; nothing was changed.", {}
        return self._apply(found, best, record, log_id, patch_request)

    def _left_pending(
        self, request: PatchRequest, record: HealRecord, step: str
    ) -> tuple[Outcome, str, dict[str, Any]]:
        record.decided(step, request.state, request_id=request.id)
        known = {"request_id": request.id}
        if request.state != "pending":
            return "declined", f"The same patch was {request.state} before, as request {request.id}.", known
        return "pending", f"It is waiting for approval as request {request.id}.", known

    def _apply(
        self,
        found: LoopResult,
        best: Attempt,
        record: HealRecord,
        log_id: int | None,
        request: PatchRequest | None = None,
    ) -> tuple[Outcome, str, dict[str, Any]]:
        """Make the patch a revision, with the answers as examples; take it back if it fails on the execution path."""
        entry, step = found.case.entry, best.step_id or ""
        try:
            kept = self._keep(entry, best, log_id, request)
        except RevisionConflict as conflict:
            request = self._request(entry, best, record, log_id)
            record.decided(step, request.state, request_id=request.id)
            record.error_raised(step, conflict)
            reason = f"The tool was changed meanwhile; the patch is kept as request {request.id}."
            return "pending", reason, {"request_id": request.id}
        record.decided(step, "kept", revision=kept.revision)
        for check in found.case.checks:
            if check.origin == "answered":
                self.vault.add_example(entry.tool_name, _example_of(check), persona=entry.persona)
        problem = self._problem_of(kept, found.case.checks)
        if not problem:
            said = VERDICTS[best.verdict].words
            return "kept", f"{kept.label} is active: {said}.", {"revision": kept.revision}
        known: dict[str, Any] = {"best": _refuted(best, problem)}
        if not record.recovering(step, problem):
            halt = record.run.halted
            why = "" if halt is None else f" {halt.reason}"
            reason = f"{kept.label} fails when it runs ({problem.rstrip('.')}), and stays active.{why}"
            return "halted", reason, {**known, "revision": kept.revision}
        back = self.vault.revert(
            entry.tool_name, entry.revision, persona=entry.persona, reason=f"rolled back: {problem}"
        )
        record.recovered(step, back.revision)
        return "rolled_back", f"It was taken back: {problem}", {**known, "revision": back.revision}

    def _keep(
        self, entry: VaultEntry, best: Attempt, log_id: int | None, request: PatchRequest | None
    ) -> VaultEntry:
        """Return the revision with the patch; a pending request for it is accepted in the same transaction."""
        if request is not None and request.state == "pending":
            accepted = self.requests.accept(request.id, in_run=True)
            return self.vault.get(entry.tool_name, entry.persona, revision=accepted.revision)
        return self.vault.patch(
            entry.tool_name,
            best.patch.code,
            persona=entry.persona,
            reason=f"{best.patch.reason} [{VERDICTS[best.verdict].words}]",
            author=best.patch.author,
            parent=entry.revision,
            motivating_log_id=log_id,
        )

    def _request(
        self, entry: VaultEntry, best: Attempt, record: HealRecord, log_id: int | None
    ) -> PatchRequest:
        """Add a request for the patch; one that was decided before keeps its state."""
        return self.requests.add(
            entry.tool_name,
            best.patch.code,
            persona=entry.persona,
            parent=entry.revision,
            advisor=best.patch.advisor,
            author=best.patch.author,
            reason=best.patch.reason,
            verdict=best.verdict,
            motivating_log_id=log_id,
            run_id=record.run.run_id,
        )

    def _problem_of(self, kept: VaultEntry, checks: Sequence[Check]) -> str:
        """Run the new revision once as any execution, on the failing input; return its problem, or an empty text."""
        chosen = next((c for c in checks if c.origin == "failing"), None) or next(
            (c for c in checks if not c.call and not c.raises), None
        )
        if chosen is None or kept.flags.get("side_effects"):
            return ""
        try:
            execution = self.execute(kept, chosen)
        except HealkitError as error:
            return error.message
        if execution.failure is not None:
            return execution.failure.summary
        if chosen.known and not values.meets(chosen.expected, execution.value):
            returned = values.text_of(values.kept(execution.value))
            return f"it returned {returned} where {values.text_of(chosen.expected)} is right."
        return ""


class _TriedCounter:
    """Tells the advisor that is asked and the number of tries, whenever one of them changes."""

    def __init__(self, tell: OnTried | None) -> None:
        self._tell, self._advisor, self._tried = tell, "", 0

    def asking(self, advisor: str) -> None:
        self._advisor = advisor
        self.tried(self._tried)

    def tried(self, count: int) -> None:
        self._tried = count
        if self._tell is not None:
            self._tell(self._advisor, count)


def _listeners_off_the_clock(listeners: Listeners, bench: Bench) -> Listeners:
    """Return the same listeners; a person's thinking time does not count against the budget."""
    return dataclasses.replace(
        listeners,
        ask=_off_the_clock(listeners.ask, bench),
        before_patch=_off_the_clock(listeners.before_patch, bench),
    )


def _off_the_clock(heard: Callable[..., Any] | None, bench: Bench) -> Callable[..., Any] | None:
    if heard is None:
        return None

    def off_the_clock(*about: Any) -> Any:
        with bench.off_the_clock():
            return heard(*about)

    return off_the_clock


def _refuted(best: Attempt, problem: str) -> Attempt:
    """Return an attempt that passed its checks and then failed on the execution path."""
    return msgspec.structs.replace(best, verdict="not_cured", why=f"it fails when it runs: {problem}")


def _example_of(check: Check) -> dict[str, Any]:
    right = (
        {"raises": check.raises} if check.raises else {"result": check.expected}
    )  # both in their kept form
    return {"arguments": check.arguments, **right}


# The loop, up to the decision.

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


# Questions to a person. Two patches can pass all checks and still return different results for another input. Then at
# least one is wrong. A person is asked what is right there; without an answer, neither patch is called cured. (Measured
# on seventy broken tools: 18 patches lost the verdict *cured*, of which 10 were wrong; 40 kept it, of which 5 were
# wrong.)

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
