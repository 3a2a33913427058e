"""Healing: observe, diagnose, propose, validate, ask, decide.

The tool's failure is reproduced first. Advisors are asked in order of their cost, and every patch, whoever made it,
runs on the same checks. Each step is an event of the run folder before the next one begins. The chosen patch becomes a
revision only with consent, runs once more on the execution path, and is taken back if it fails there after all.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import glob
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec

from healkit.core.contracts.cassette import Tape
from healkit.core.contracts.patches import Check, CheckResult
from healkit.core.contracts.tools import Withheld
from healkit.core.pysource.nodes import declares_effects
from healkit.core.rendering import cleaning, plain
from healkit.core.runtime import background
from healkit.core.runtime.calls import allows, unaccepted
from healkit.core.runtime.execution import nested_grants
from healkit.core.secrets.cleaner import RecordCleaner, learn
from healkit.core.workers.tiers import achieved_tier
from healkit.errors import (
    BudgetSpent,
    ConfigError,
    HealError,
    HealkitError,
    PolicyHalted,
    is_retryable,
)
from healkit.parts.heal.advisor import Advisor, Case, advisors_for
from healkit.parts.heal.advisors.search.patch_ranking import doubt_by_new_parts
from healkit.parts.heal.advisors.search.strategy import doubt_by_rivals
from healkit.parts.heal.case import (
    Diagnosis,
    diagnose,
    diagnosed_by_examples,
    gather,
    granted_files,
)
from healkit.parts.heal.chance import (
    PASSING_RUNS,
    SET_ORDER,
    chance_in,
)
from healkit.parts.heal.checks import Validator, missing_grant
from healkit.parts.heal.deciding import Decision, Ending, best_of
from healkit.parts.heal.options import HealOptions
from healkit.parts.heal.questions import Answer, Question, answered_check, question_on
from healkit.parts.heal.record import HealRecord
from healkit.parts.heal.records import VERDICTS, Answered, Attempt, Patch
from healkit.parts.heal.report import HealReport, nothing_cures, total_cost
from healkit.parts.heal.reproduction import Reproduction
from healkit.parts.heal.verdicts import (
    UNTRIED,
    disputed,
    doubt_by_other_inputs,
    doubted,
    is_provable,
    judged,
    place_of,
    rejudged,
    uncompared,
    with_changes_doubted,
)
from healkit.parts.heal.workbench import Bench
from healkit.parts.learn.memory import FixMemory
from healkit.parts.runs.contract import ExecutionMode
from healkit.parts.runs.run_policy import HEAL_CAPS, RunPolicy
from healkit.parts.runs.runs import OpenRun
from healkit.parts.trials.cassette import LiveCalls, cassette_of
from healkit.parts.trials.shares import slots_of
from healkit.parts.trials.trials import Fixture, Trials
from healkit.parts.views import views

if TYPE_CHECKING:
    from healkit.core.store.models import ExecutionLog
    from healkit.services import Services

#: Part of the budget that is kept for the validation of patches found at its end, and the most of it in seconds; a
#: smaller budget has so long for it.
_VALIDATION_PART, _VALIDATION_S = 0.15, 3.0
#: How much longer an advisor is asked after a cured patch of its own, in seconds and patches.
_MORE_S, _MORE_PATCHES = 3.0, 5
#: How many patches are tried where all of them only hide the error.
_SILENCED_PATCHES = 12
#: Characters of an advisor's own error that the report quotes.
_SAID_CHARS = 200
_QUESTIONS_MAX = 3
#: Number of recent executions whose calls are at hand besides those of the checks.
_RUNS_MAX = 50
_log = logging.getLogger(__name__)
Told = TypeVar("Told")


class Healing:
    """Healing of one failure, from its record to the report.

    Its case holds what is known so far: the checks that count, what they gave with the code as it is, the attempts.
    Raises `ConfigError` for bad options, and `HealError` where nothing says that the tool fails.
    """

    def __init__(self, hk: Services, options: HealOptions) -> None:
        if options.executor is not None:
            background.loop.wait_for(slots_of(options.executor))
        if not options.budget_s > 0:
            raise ConfigError(f"budget_s={options.budget_s!r} must be greater than 0 seconds.")
        self._hk, self._options, self._stop = hk, options, options.stop
        self._advisors, notes = advisors_for(options.advisors, hk.config)
        self._notes = notes if options.advisors_named else []
        cell, self._is_cell = options.cell, options.cell is not None
        #: Persona whose rows alone are read, since an agent is told what they hold.
        self._only = options.persona if options.client else None
        with views.noting() as self._read:
            self._case, self._log_id, self._blamed = (
                gather(
                    hk.vault,
                    hk.log,
                    options.tool_name,
                    options.persona,
                    options.log_id,
                    may_work=options.improves,
                    only=self._only,
                )
                if cell is None
                else (cell.case, None, None)
            )
        if any(advisor.name == "memory" for advisor in self._advisors):
            recalled = FixMemory(hk.database).recall(self._only)
            self._case = dataclasses.replace(self._case, memory=recalled)
            if not recalled.known:  # nothing to say of it, unless it alone was asked
                self._advisors = [
                    remaining_advisor
                    for remaining_advisor in self._advisors
                    if remaining_advisor.name != "memory"
                ] or self._advisors
        self._case = dataclasses.replace(self._case, discreet=bool(options.client))
        if self._blamed is not None:
            self._notes.append(self._blamed.sentence)
        failed = None if self._log_id is None else hk.log.get(self._log_id)
        self._failed_at = None if failed is None else failed.timestamp
        entry = self._case.entry
        if not self._is_cell:  # a trial has no executor to ask for what counts of them
            entry = dataclasses.replace(entry, grants=hk.executor.grants_in_force(entry.grants))
            self._case = dataclasses.replace(self._case, entry=entry)
        self._entry = entry
        cassette = cassette_of(hk.log, self._recorded_runs(), entry, hk.executor.providers)
        self._acting = {
            f"{definition.server}.{definition.name}" for definition in cassette.definitions if definition.acts
        }
        self._calls = LiveCalls(options.live, cassette.live, self._acts, self._tell_call)
        call_names = [f"{definition.server}.{definition.name}" for definition in cassette.definitions]
        live = [name for name in call_names if self._calls.may_make(name)]
        tape = Tape(msgspec.structs.replace(cassette, live=live))
        self._notes += [
            f"{name} declares effects, so no healing calls it."
            for name in call_names
            if self._acts(name) and allows(self._calls.left, name)
        ]
        self._case = dataclasses.replace(self._case, answers=tape.answers())
        read, named = (*entry.grants.read, *entry.grants.write), unaccepted(entry.grants, options.files).read
        # What a caller chose as arguments gets no more than the caller had: only a worker can be given that.
        as_called = bool(read) and any(map(self._is_nested, self._case.checks))
        self._watched = not self._is_cell and declares_effects(
            entry, lambda name: hk.vault.lookup(name, entry.persona)
        )
        self._started = time.monotonic()
        fixture = Fixture(tape.cassette, () if as_called else named, Withheld(read, named))
        #: Codes that have the tool's grants: its own, and what a person writes in an editor meanwhile.
        self._whole = whole = Fixture(tape.cassette, () if as_called else read)
        self._accepted = {} if self._is_cell or entry.draft else {entry.code: whole}
        self._bench = Bench(
            Trials(hk.recorder, hk.config if cell is None else cell.config),
            entry.ref,
            options.budget_s,
            options.stop,
            self._has_tried,
            executor=options.executor,
            off_record=not entry.logged,
            fixture=fixture if cell is None else cell.fixture,
            accepted=self._accepted,
            reserve_s=min(_VALIDATION_S, _VALIDATION_PART * options.budget_s),
        )
        if self._case.failure is not None and self._case.failure.code == "TOOL_TIMEOUT":
            self._bench.expect_hanging(self._case.failing)
        # With more time: a patch that is found in the last moment must still be validated.
        self._beside = self._bench.beside(0.0)
        beside = self._bench.beside(max(0.0, _VALIDATION_S - options.budget_s))
        self._validator = Validator(
            hk, entry, beside, options.stop, tape, self._calls, options.files, self._accepted
        )
        self._lacks_grants = set(read) != set(named) and not self._is_cell
        if as_called:
            self._validator.use_workers()
        self._isolation = achieved_tier(hk.config)
        self._reproduction = Reproduction(
            hk,
            entry,
            self._bench,
            self._validator,
            self._notes,
            self._say,
            is_cell=self._is_cell,
            blamed=self._blamed is not None,
            lacks_grants=self._lacks_grants,
            may_act=self._may_act,
        )
        self._advisor = ""
        self._tried: set[str] = set()
        self._questions: list[Answered] = []
        self._cleaner: RecordCleaner | None = None
        #: Sentences on patches that only hide the error, said together.
        self._silenced: list[str] = []
        self._spent = False
        #: False until each plausible patch was compared with the others.
        self._compared = self._cut_short = False
        self._diagnosis: Diagnosis
        self._record: HealRecord

    def report(self) -> HealReport:
        """Search, decide, and return the report; called once."""
        options, entry = self._options, self._entry
        mode: ExecutionMode = "dry_run" if options.dry_run else "live"
        parameters = {
            "persona": options.persona,
            "advisors": [advisor.name for advisor in self._advisors],
            "budget_s": options.budget_s,
            "auto": options.auto,
            "logged": entry.logged,
        }
        policy = RunPolicy(options.policy, HEAL_CAPS)
        with self._hk.runs.begin(
            "heal",
            allow=glob.escape(entry.tool_name),
            policy=policy,
            mode=mode,
            parameters=parameters,
            audited=True,
        ) as run:
            self._record = HealRecord(run, policy, self._case, self._read)
            ending = self._search() or self._decision().ending(self._nothing_cures)
            run.finish("completed", f"{ending.outcome}: {ending.reason}", self._record.state)
            return self._report_of(ending, run)

    # The search, up to the decision.

    def _search(self) -> Ending | None:
        """Observe, diagnose, and try proposals until there are enough; None where there is something to decide.

        Never raises for an advisor's fault.
        """
        step = self._record.observed(self._log_id)
        self._diagnosis = diagnose(self._entry, self._case.failure, self._case.checks)
        ending = None
        try:
            ending = self._try_patches(step)
        except BudgetSpent as error:
            self._spent = True
            self._notes.append(error.message)
        except PolicyHalted as error:
            ending = Ending("halted", error.message)
        except KeyboardInterrupt:
            self._stop.set()
        if ending is None and self._stop.is_set():
            ending = Ending("stopped", "It was stopped; nothing was changed.")
        halt = self._record.run.halted
        if ending is None and halt is not None:
            ending = Ending("halted", halt.reason)
        self._conclude()
        return ending

    def _try_patches(self, step: str) -> Ending | None:
        # Nothing is on record of a wrong value: its examples tell what happens.
        unseen, chance = self._diagnosis.kind == "wrong_value", None
        if unseen:
            chance = self._reproduce()
            self._case, self._diagnosis = diagnosed_by_examples(self._case, self._diagnosis, self._hk.log)
            if chance is not None:
                sentence = "It passes and fails with the same arguments."
                self._diagnosis = dataclasses.replace(self._diagnosis, sentence=sentence)
        self._record.inspected(step, self._diagnosis)
        if self._blamed is not None:
            self._say(self._blamed.sentence)
        self._say(self._diagnosis.sentence)
        if not self._case.discreet:
            self._notes += granted_files(self._entry.grants, self._failed_at)
        if not self._diagnosis.fixable and not self._options.improves:
            return Ending("not_mendable", self._diagnosis.why_not)
        if not unseen:
            chance = self._reproduce()
        case = self._case
        self._record.measured(step, case.checks, case.base)
        if chance is not None:
            return chance
        works = case.checks and not case.untried and not self._options.improves
        if works and all(was.outcome == "passed" for was in case.base):
            return Ending("healthy", self._reproduction.healthy(case))
        outside = self._reproduction.cause_outside(case, self._diagnosis.outside)
        self._ask_advisors(outside=bool(outside))
        if outside and not any(
            attempt.plausible and attempt.verdict != "silenced" for attempt in self._case.attempts
        ):
            self._diagnosis = dataclasses.replace(self._diagnosis, fixable=False, why_not=outside)
            self._record.inspected(step, self._diagnosis)  # once more: the checks have shown it
            return Ending("not_mendable", outside)
        if self._validator.light and not self._is_cell:  # else it is run on its checks only
            self._keep_attempts(with_changes_doubted(self._case, self._beside))
            self._ask_questions()
        self._compared = not self._cut_short
        return None

    @property
    def _may_act(self) -> bool:
        """True for a tool with declared side effects where nothing keeps its code from having them."""
        return self._isolation == "process" and bool(self._entry.flags.get("side_effects"))

    def _is_nested(self, check: Check) -> bool:
        """Return True for the input of an execution that another tool asked for."""
        return check.log_id is not None and nested_grants(self._hk.log.get(check.log_id)) is not None

    def _recorded_runs(self) -> Iterator[ExecutionLog]:
        """Yield the executions whose calls answer those of checks: those that are checks, then other recent ones."""
        log, log_ids = self._hk.log, [check.log_id for check in self._case.checks] + [self._log_id]
        if self._blamed is not None:
            yield from self._blamed.callers
        if "mcp" not in self._entry.code:
            return
        distinct_ids = list(dict.fromkeys(log_id for log_id in log_ids if log_id is not None))
        yield from filter(None, map(log.get, distinct_ids))
        entry = self._entry
        recent_rows = log.query(
            tool=entry.tool_name, persona=self._only or entry.persona, tried=False, limit=_RUNS_MAX
        ).rows
        yield from (row for row in recent_rows if row.id not in distinct_ids and row.status != "RUNNING")

    def _reproduce(self) -> Ending | None:
        """Run the code as it is; return the ending where chance alone decides."""
        case = self._reproduction.settled(self._case)
        self._case, ending = self._reproduction.without_chance(case, outside=bool(self._diagnosis.outside))
        return ending

    def _keep_attempts(self, attempts: Sequence[Attempt]) -> None:
        self._case = dataclasses.replace(self._case, attempts=tuple(attempts))

    def _ask_advisors(self, *, outside: bool) -> None:
        """Ask the advisors; where the cause is outside of the code, only those that know of a mistake or a version."""
        if outside:
            peers = tuple(peer for peer in self._case.peers if peer.same_tool)
            self._case = dataclasses.replace(self._case, peers=peers)
        for advisor in self._advisors:
            if advisor.author == "search" and self._may_act:
                continue
            if outside and advisor.author not in ("rule", "person", "agent"):
                continue
            before = len(self._case.attempts)
            self._say(f"Asking {advisor.name}.")
            self._advisor = advisor.name
            self._has_tried(self._bench.tried)
            try:
                if (listen := getattr(advisor, "listen", None)) is not None:
                    listen(self._say)
                self._ask(advisor)
            except (BudgetSpent, PolicyHalted):
                raise
            except Exception as error:  # noqa: BLE001 - an advisor may be anybody's code; the others are asked as usual
                self._failed(advisor.name, error)
            finally:
                self._notes += [f"{advisor.name}: {remark}" for remark in getattr(advisor, "remarks", ())]
            verdicts = {attempt.verdict for attempt in self._case.attempts[before:]}
            # No further advisor does better than a cure, or than an unproven patch where nothing can be proven.
            enough = "cured" in verdicts or ("unproven" in verdicts and not is_provable(self._case))
            if enough or self._record.run.halted is not None:
                return

    def _failed(self, name: str, error: Exception) -> None:
        """Report and record that an advisor failed; its patches until then still count."""
        if not isinstance(error, HealkitError):
            _log.debug("the advisor %s raised %s", name, type(error).__name__, exc_info=error)
            message = f"{type(error).__name__}: {' '.join(str(error).split())[:_SAID_CHARS]}".rstrip(": ")
            error = HealError(
                f"This advisor failed with {message}.", hint="The other advisors are asked as usual."
            )
        self._notes.append(f"{name}: {error}")
        self._record.error_raised(None, error)

    def _ask(self, advisor: Advisor) -> None:
        """Try one advisor's patches until it has no more, or there are enough."""
        proposals = advisor.propose(self._case, self._bench)
        cured_at, plausible, silenced = 0.0, 0, 0
        patch = next(proposals, None)
        while patch is not None:
            attempt = self._try(patch)
            plausible += attempt is not None and attempt.plausible
            silenced += attempt is not None and attempt.verdict == "silenced"
            if attempt is not None and attempt.verdict == "cured":
                cured_at = cured_at or time.monotonic()
            long_enough = cured_at and time.monotonic() - cured_at > _MORE_S
            enough = plausible >= (_SILENCED_PATCHES if silenced == plausible else _MORE_PATCHES)
            if enough or long_enough or self._record.run.halted is not None:
                if (close := getattr(proposals, "close", None)) is not None:
                    close()
                return
            patch = _next(proposals, attempt)

    def _try(self, patch: Patch) -> Attempt | None:
        """Try one patch from proposal to verdict; return None if it was tried before."""
        if patch.code in self._tried and patch.author in ("rule", "search"):
            return None  # two rules proposed the same
        case = self._case
        step = self._record.proposed(patch)
        self._tried.add(patch.code)
        if patch.author == "person" and not self._is_cell:
            self._accepted[patch.code] = self._whole
        if self._options.before_patch is not None:
            with self._bench.off_the_clock():
                self._options.before_patch(case, patch)
        try:
            if not self._is_cell:
                self._hk.vault.candidate(case.entry, patch.code)
        except HealkitError as error:
            self._record.refused(step, patch, error)
            self._say(f"{patch.advisor}: {patch.reason} Not possible: {error.message}")
            attempt = judged(case, patch, [], why=f"it cannot be run as this tool: {error.message}")
            attempt = msgspec.structs.replace(attempt, step_id=step)
            self._keep_attempts([*case.attempts, attempt])
            return attempt
        started = time.perf_counter()
        self._record.validating(
            step, patch, self._bench.left_s, self._isolation, self._validator.mode, case.checks
        )
        attempt = self._compared_with_code(judged(case, patch, self._validate(step, patch)))
        duration_s = time.perf_counter() - started
        attempt = msgspec.structs.replace(attempt, step_id=step, duration_s=duration_s)
        if patch.advisor == "memory" and attempt.verdict != "cured":
            self._tried.discard(patch.code)  # the search may clear it of the doubt
        self._keep_attempts([*case.attempts, attempt])
        self._record.validated(step, attempt, case.checks)
        why = f" ({attempt.why})" if attempt.why else ""
        sentence = f"{patch.advisor}: {patch.reason} {VERDICTS[attempt.verdict].words.capitalize()}{why}."
        if attempt.verdict == "silenced":
            self._silenced.append(sentence)
        else:
            self._say(sentence)
        return attempt

    def _compared_with_code(self, attempt: Attempt) -> Attempt:
        """Doubt every advisor's cured patch by one list; a person vouches for theirs."""
        case, patch, bench = self._case, attempt.patch, self._bench
        if patch.author == "person" or attempt.verdict != "cured":
            return attempt
        if not self._validator.light:
            return doubted(case, attempt, UNTRIED if patch.author in ("model", "agent") else "")
        try:
            doubt = doubt_by_new_parts(case, patch, bench)
            if patch.advisor != "search":  # which has compared its own
                self._say(
                    f"{patch.advisor}: {patch.reason} It passes every check, and is compared with others."
                )
                doubt = doubt or doubt_by_other_inputs(case, attempt, bench)
                doubt = doubt or doubt_by_rivals(case, patch, bench)
        except BudgetSpent:
            self._cut_short, doubt = True, ""
        return doubted(case, attempt, doubt)

    def _validate(self, step: str, patch: Patch) -> list[CheckResult]:
        """Run the checks; retry those that failed through no fault of the patch, as the policy allows."""
        tries = 0
        while True:
            results = self._validator.run(patch.code, self._case.checks)
            lost = next((r.error_code for r in results if is_retryable(r.error_code)), None)
            if lost is None:
                return self._repeated(patch, results)
            tries += 1
            verdict = self._record.retrying(step, f"validate:{hash(patch.code)}", lost, tries)
            if not verdict.granted:
                return results
            self._stop.wait(min(verdict.wait_ms / 1000, max(0.0, self._bench.left_s)))
            self._record.waited(step, verdict.wait_ms)

    def _repeated(self, patch: Patch, results: list[CheckResult]) -> list[CheckResult]:
        """Run the checks again where a patch that passes reads what may differ each time; a failure counts."""
        checks = self._case.checks
        if any(was.outcome != "passed" for was in results) or chance_in(patch.code) in ("", SET_ORDER):
            return results
        for _ in range(PASSING_RUNS if self._validator.light else 1):
            again = self._validator.run(patch.code, checks)
            results = [
                now if was.outcome == "passed" else was for was, now in zip(results, again, strict=True)
            ]
        return results

    # Questions. Two patches can pass all checks and still return different results for another input. Then at least one
    # is wrong. A person is asked what is right there; without an answer, neither patch is called cured. (Measured on
    # seventy broken tools: 18 patches lost the verdict *cured*, of which 10 were wrong; 40 kept it, of which 5 were
    # wrong.)

    def _ask_questions(self) -> None:
        """Ask at most three questions, each on the smallest input on which patches differ; raise `BudgetSpent`.

        Each answer is one more check for all patches. No question follows an unanswered one.
        """
        for number in range(1, _QUESTIONS_MAX + 1):
            case = self._case
            plausible = [attempt for attempt in self._ranked() if attempt.plausible]
            question = question_on(case, plausible, self._beside, number)
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
        answer, ask = None, self._options.ask
        if ask is not None:
            self._record.asking(question.call, choices)
            asked_at = time.monotonic()
            with self._bench.off_the_clock():
                answer = ask(question)
            reply = "" if answer is None else answer.text
            self._questions.append(Answered(question.call, choices, reply or None))
            self._record.replied(question.call, reply, time.monotonic() - asked_at)
        if answer is None:
            reply = "" if self._case.discreet else f": {' or '.join(choices)}"
            self._notes.append(
                f"Plausible patches disagree on {question.call}{reply}. None of them is known to be right."
            )
        return answer

    def _recheck(self, case: Case, check: Check) -> None:
        """Run the tool and each plausible attempt of the case on an answer's check too."""
        base = (*case.base, self._validator.run(self._entry.code, [check])[0])
        case = dataclasses.replace(case, checks=(*case.checks, check), base=base)
        attempts = [
            attempt
            if not attempt.plausible
            else rejudged(case, attempt, self._validator.run(attempt.patch.code, [check])[0])
            for attempt in case.attempts
        ]
        self._case = dataclasses.replace(case, attempts=tuple(attempts))
        for before, now in zip(case.attempts, attempts, strict=True):
            if now is not before and now.step_id is not None:
                self._record.answered(now.step_id, now, check)

    def _ranked(self) -> list[Attempt]:
        """Sort the attempts, likeliest right first: by verdict, then by advisor, then by the advisor's own order."""
        order = {advisor.name: place for place, advisor in enumerate(self._advisors)}
        return sorted(
            self._case.attempts,
            key=lambda a: (place_of(a), order.get(a.patch.advisor, 99), -a.patch.rank, a.number),
        )

    def _conclude(self) -> None:
        """Give the attempts their last verdicts and their order; record and say what has changed."""
        if not self._compared:
            self._keep_attempts([uncompared(self._case, attempt) for attempt in self._case.attempts])
        self._say_silenced()
        for attempt in self._record.concluded(self._case.attempts):
            words = VERDICTS[attempt.verdict].words.capitalize()
            doubt = "" if self._case.discreet else f": {attempt.patch.doubt}"  # it may name what was returned
            self._say(f"{attempt.patch.advisor}: {attempt.patch.reason} {words}{doubt}")
        self._keep_attempts(self._ranked())

    def _decision(self) -> Decision:
        return Decision(
            self._hk,
            self._options,
            self._case,
            self._record,
            self._validator,
            self._bench,
            log_id=self._log_id,
            watched=self._watched,
            may_act=self._may_act,
            shown=self._shown,
        )

    # The report, and what is said on the way.

    def _report_of(self, ending: Ending, run: OpenRun) -> HealReport:
        case, best = self._case, ending.refuted or best_of(self._case)
        passed = sum(result.outcome == "passed" for result in case.base)
        nearer = [attempt for attempt in case.attempts if attempt.passed > passed]
        report = HealReport(
            tool_name=self._entry.tool_name,
            persona=self._entry.persona,
            label=self._entry.label,
            outcome=ending.outcome,
            reason=ending.reason,
            diagnosis=self._diagnosis.sentence,
            attempts=tuple(
                best if best and original.number == best.number else original for original in case.attempts
            ),
            best=best,
            checks=case.checks,
            duration_s=time.monotonic() - self._started,
            think_time_s=self._bench.think_time_s,
            candidates_tried=self._bench.tried + len(case.attempts),
            run_id=run.run_id,
            folder=run.folder,
            revision=ending.revision,
            request_id=ending.request_id,
            questions=tuple(self._questions),
            notes=(
                *self._notes,
                *self._grants_note(),
                *self._calls_note(),
                *([run.problem] if run.problem else ()),
            ),
            cost=total_cost(case.attempts, self._advisors),
            calls_answered=self._validator.answered,
            calls_live=self._validator.made,
            nearest=max(nearer, key=lambda attempt: attempt.passed, default=None) if best is None else None,
        )
        return report if self._is_cell else self._shown(report)

    def _shown(self, told: Told) -> Told:
        """Return what is told of the healing without the secrets of the arguments that it is about."""
        if self._cleaner is None:
            self._cleaner = cleaning.sanitizer().of_record()
            cleaning.report(self._case.checks, self._cleaner)
            if self._case.failure is not None:
                learn(self._case.failure, self._cleaner)
        return cleaning.report(told, self._cleaner)

    def _acts(self, name: str) -> bool:
        """Return True for a call that declares effects: its server says so, or the flags of a vault tool do."""
        server, _, tool = name.partition(".")
        lookup = functools.partial(self._hk.vault.lookup, persona=self._entry.persona)
        with contextlib.suppress(HealkitError):
            return name in self._acting or (server == "vault" and declares_effects(lookup(tool), lookup))
        return False

    def _tell_call(self, told: str) -> None:
        """Tell of a live call before it is made."""
        self._notes.append(told)
        self._say(told)

    def _calls_note(self) -> list[str]:
        """Say how the calls of the checks were answered, for a tool that makes any."""
        answered, live_count = self._validator.answered, self._validator.made
        if not answered and not live_count and "mcp" not in self._entry.code:
            return []
        more = " and ".join(f'"{name}:N"' for name in self._calls.refused)
        least = [f"As many live calls as were allowed were made; to allow N: live=[{more}]."] if more else []
        return [f"{plain.count(answered, 'call')} answered from the record, {live_count} live.", *least]

    def _grants_note(self) -> list[str]:
        """Say which checks no patch could be decided by, for want of a grant that was not named."""
        checks, attempts = self._case.checks, self._case.attempts
        tried = [attempt.results for attempt in attempts] or [self._validator.bare(checks)]
        lacking = [
            (at, name) for row in tried for at, result in enumerate(row) if (name := missing_grant(result))
        ]
        if not lacking:
            return []
        many = plain.count(len({at for at, _ in lacking}), "check")
        names = " and ".join(dict.fromkeys(self._as_granted(*name) for _, name in lacking))
        lacks = "not decided for new code, which has no grants of the tool's"
        return [f"{many} of {len(checks):,} {lacks}: allow {names}."]

    def _as_granted(self, option: str, name: str) -> str:
        """Return what a person has to name: of a file, the grant that it lies in."""
        grants = self._entry.grants
        places = [path for path in (*grants.read, *grants.write) if Withheld((path,)).has(name)]
        return f"{option}=[{(places[0] if places and option == 'files' else name)!r}]"

    def _nothing_cures(self) -> str:
        spent = self._spent or self._bench.left_s <= 0
        tried = self._bench.tried + len(self._case.attempts)
        searched = any(advisor.author == "search" for advisor in self._advisors)
        spent_s = self._options.budget_s if spent else None
        return nothing_cures(self._case, tried, spent_s, searched=searched, acts=self._acts)

    def _has_tried(self, count: int) -> None:
        """Tell the advisor that is asked and the number of tries, as one of them has changed."""
        if self._options.on_tried is not None:
            self._options.on_tried(self._advisor, count)

    def _say(self, sentence: str) -> None:
        self._say_silenced()
        if self._options.progress is not None:
            self._options.progress(self._shown(sentence))

    def _say_silenced(self) -> None:
        """Say in one line how many patches since the last sentence only hide the error."""
        sentences, self._silenced = self._silenced, []
        if sentences and self._options.progress is not None:
            advisor = sentences[0].partition(":")[0]
            many = f"{advisor}: {len(sentences)} patches only hide the error."
            self._options.progress(self._shown(sentences[0]) if len(sentences) == 1 else many)


def _next(proposals: Iterator[Patch], attempt: Attempt | None) -> Patch | None:
    """Return the next patch; an advisor that is a generator gets the attempt with the last one."""
    send: Callable[[Attempt | None], Patch | None] | None = getattr(proposals, "send", None)
    try:
        patch = send(attempt) if send is not None else next(proposals)
    except StopIteration:
        return None
    return patch
