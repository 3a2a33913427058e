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
from healkit.core.contracts.vault import VaultEntry
from healkit.core.crossing import values
from healkit.core.pysource.reach import declares_effects
from healkit.core.rendering import cleaning, plain
from healkit.core.runtime import background
from healkit.core.runtime.calls import allows, unaccepted
from healkit.core.runtime.execution import nested_grants
from healkit.core.sanitizer.cleaner import learn
from healkit.core.sanitizer.sanitizer import RecordCleaner
from healkit.core.workers.tiers import achieved_tier
from healkit.errors import (
    BudgetSpent,
    ConfigError,
    HealError,
    HealkitError,
    PolicyHalted,
    RevisionConflict,
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
    own_code,
    settled,
)
from healkit.parts.heal.chance import (
    FRESH_RUNS,
    PASSING_RUNS,
    RUNS,
    SET_ORDER,
    Chance,
    chance_in,
    chance_of,
    on_record,
)
from healkit.parts.heal.checks import Validator, execute_check, missing_grant, result_of, why_not
from healkit.parts.heal.consent import decide, denied
from healkit.parts.heal.options import HealOptions
from healkit.parts.heal.questions import Answer, Question, answered_check, question_on
from healkit.parts.heal.record import HealRecord, heal_steps
from healkit.parts.heal.records import VERDICTS, Answered, Attempt, Outcome, Patch, PatchRequest
from healkit.parts.heal.report import HealReport, nothing_cures, total_cost
from healkit.parts.heal.verdicts import (
    UNTRIED,
    disputed,
    doubt_by_other_inputs,
    doubted,
    is_provable,
    judged,
    place_of,
    refuted,
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
from healkit.parts.trials.trials import Fixture, Searches
from healkit.parts.views import views

if TYPE_CHECKING:
    from healkit.core.store.models import ExecutionLog
    from healkit.parts.heal.requests import Requests
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
#: Time that a run in an interpreter of its own takes about.
_FRESH_S = 0.7
#: Number of recent executions whose calls are at hand besides those of the checks.
_RUNS_MAX = 50
_log = logging.getLogger(__name__)
Told = TypeVar("Told")


@dataclasses.dataclass(frozen=True)
class Ending:
    """End of a healing, as the report has it.

    refuted: the chosen attempt, where it failed once it was active.
    """

    outcome: Outcome
    reason: str = ""
    revision: int | None = None
    request_id: int | None = None
    refuted: Attempt | None = None


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
                self._advisors = [one for one in self._advisors if one.name != "memory"] or self._advisors
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
        self._acting = {f"{one.server}.{one.name}" for one in cassette.definitions if one.acts}
        self._calls = LiveCalls(options.live, cassette.live, self._acts, self._tell_call)
        known = [f"{one.server}.{one.name}" for one in cassette.definitions]
        live = [name for name in known if self._calls.may_make(name)]
        tape = Tape(msgspec.structs.replace(cassette, live=live))
        self._notes += [
            f"{name} declares effects, so no healing calls it."
            for name in known
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
        found = Fixture(tape.cassette, () if as_called else named, Withheld(read, named))
        #: Codes that have the tool's grants: its own, and what a person writes in an editor meanwhile.
        self._whole = whole = Fixture(tape.cassette, () if as_called else read)
        self._accepted = {} if self._is_cell or entry.draft else {entry.code: whole}
        self._bench = Bench(
            Searches(hk.recorder, hk.config if cell is None else cell.config),
            entry.ref,
            options.budget_s,
            options.stop,
            self._has_tried,
            executor=options.executor,
            off_record=not entry.logged,
            fixture=found if cell is None else cell.fixture,
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
        asked = {
            "persona": options.persona,
            "advisors": [advisor.name for advisor in self._advisors],
            "budget_s": options.budget_s,
            "auto": options.auto,
            "logged": entry.logged,
        }
        policy = RunPolicy(options.policy, HEAL_CAPS)
        is_clean = not self._hk.config.trace_raw
        audited = heal_steps(entry.tool_name, contents=entry.logged, is_clean=is_clean)
        with self._hk.runs.begin(
            "heal",
            allow=glob.escape(entry.tool_name),
            policy=policy,
            mode=mode,
            parameters=asked,
            audited=audited,
        ) as run:
            self._record = HealRecord(run, policy, self._case, self._read)
            ending = self._search() or self._decide()
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
            self._settle()
            chance = self._leave_out_chance()
            self._case, self._diagnosis = diagnosed_by_examples(self._case, self._diagnosis, self._hk.log)
            if chance is not None:
                told = "It passes and fails with the same arguments."
                self._diagnosis = dataclasses.replace(self._diagnosis, sentence=told)
        self._record.inspected(step, self._diagnosis)
        if self._blamed is not None:
            self._say(self._blamed.sentence)
        self._say(self._diagnosis.sentence)
        if not self._case.discreet:
            self._notes += granted_files(self._entry.grants, self._failed_at)
        if not self._diagnosis.fixable and not self._options.improves:
            return Ending("not_mendable", self._diagnosis.why_not)
        if not unseen:
            self._settle()
            chance = self._leave_out_chance()
        case = self._case
        self._record.measured(step, case.checks, case.base)
        if chance is not None:
            return chance
        works = case.checks and not case.untried and not self._options.improves
        if works and all(was.outcome == "passed" for was in case.base):
            return Ending("healthy", self._healthy())
        outside = self._cause_outside()
        self._ask_advisors(outside=bool(outside))
        if outside and not any(one.plausible and one.verdict != "silenced" for one in self._case.attempts):
            self._diagnosis = dataclasses.replace(self._diagnosis, fixable=False, why_not=outside)
            self._record.inspected(step, self._diagnosis)  # once more: the checks have shown it
            return Ending("not_mendable", outside)
        if self._validator.light and not self._is_cell:  # else it is run on its checks only
            self._keep_attempts(with_changes_doubted(self._case, self._beside))
            self._ask_questions()
        self._compared = not self._cut_short
        return None

    def _fails_in_worker_only(self, checks: Sequence[Check], base: Sequence[CheckResult]) -> bool:
        """Return True where a recorded run of the same code failed, and so it does in a worker, but not in a trial."""
        code = self._entry.code
        if not self._validator.light or chance_in(code) not in ("", SET_ORDER):
            return False
        passed = (check for check, was in zip(checks, base, strict=True) if was.outcome == "passed")
        suspects = [check for check in passed if not check.call and self._own_failure(check) is not None]
        again = (self._validator.in_worker(code, check) for check in suspects)
        return any(result.outcome not in ("passed", "not_on_record") for result in again)

    def _leave_out_chance(self) -> Ending | None:
        """Repeat the checks that chance may decide, and leave those out; return the ending where no other fails."""
        case, kept, found = self._case, list[tuple[Check, CheckResult]](), list[Chance]()
        source = chance_in(self._entry.code) if self._entry.type == "python" else ""
        for check, was in zip(case.checks, case.base, strict=True):
            chance = self._chance_of(check, was, source)
            if chance is not None and case.discreet:
                chance = dataclasses.replace(chance, failure="")
            if chance is None:
                kept.append((check, was))
            elif check.origin != "passing":
                found.append(chance)
                self._notes.append(chance.sentence)
        if len(kept) < len(case.checks):
            untried = case.untried or any(one.check.origin == "failing" for one in found)
            checks, base = tuple(check for check, _ in kept), tuple(was for _, was in kept)
            self._case = dataclasses.replace(case, checks=checks, base=base, untried=untried)
        if not found or any(was.outcome != "passed" for _, was in kept):
            return None
        self._notes.remove(found[0].sentence)
        reason = f"{found[0].sentence} No patch can be checked against that. {found[0].advice}"
        return Ending("by_chance", reason)

    def _chance_of(self, check: Check, was: CheckResult, source: str) -> Chance | None:
        """Repeat a check that chance may decide; return how often it failed, None where it does not vary."""
        clear, own = "" if source == SET_ORDER else source, check.origin != "passing"
        recorded = on_record(self._hk.log, self._entry, check) if own else None
        row = self._own_failure(check) if own else None
        fresh = (source == SET_ORDER or recorded is not None) and not clear and not was.answered
        if not own:
            runs = PASSING_RUNS if clear and self._validator.light else 1
        elif not (clear or recorded or (row is not None and was.outcome == "passed")):
            runs = 1
        else:
            runs = FRESH_RUNS if fresh else RUNS
        room = int(self._bench.left_s / 4 / (_FRESH_S if fresh else max(was.duration_s, 0.01))) + 1
        if min(runs, room) < 2 or was.outcome == "not_on_record":
            return None
        results = [was, *self._validator.repeat(self._entry.code, check, min(runs, room) - 1, fresh=fresh)]
        chance = chance_of(check, results, source)
        if chance is not None or not own or (self._diagnosis.outside and not clear):
            return chance
        if recorded is not None and was.answered:
            self._notes.append(f"{recorded.counts} What its calls gave decides.")
            return None
        if recorded is None and clear and row is not None and was.outcome == "passed":
            return Chance(check, 1, len(results) + 1, source, f"{row.ename}: {row.evalue}")
        return None if recorded is None else dataclasses.replace(recorded, source=source)

    def _told_as_memory(self, check: Check, was: CheckResult) -> CheckResult:
        """Return the result of a check that was stopped before the memory ran out, as it did on record, as that."""
        row = self._own_failure(check) if was.outcome == "timeout" else None
        code = "" if row is None else row.error_code
        return msgspec.structs.replace(was, error_code=code) if code == "TOOL_OUT_OF_MEMORY" else was

    def _own_failure(self, check: Check) -> ExecutionLog | None:
        """Return the row of a check's recorded failure, if it ran the code as it is."""
        row = None if check.log_id is None else self._hk.log.get(check.log_id)
        same = row is not None and row.code_hash == self._entry.code_hash and row.status == "FAILURE"
        return row if same else None

    def _healthy(self) -> str:
        """Say that nothing fails, and what is known of a failure of the same code."""
        row = next(filter(None, map(self._own_failure, self._case.checks)), None)
        if row is None:
            return "Every check passes as it is; nothing fails any more."
        told = f"{row.ename}: {row.evalue}" if row.evalue else row.ename
        return (
            f"Every check passes as it is, though log row {row.id} failed with the same code ({told}): something "
            "outside of the code decides, such as a file, the time, or chance."
        )

    def _cause_outside(self) -> str:
        """Say what has to change outside of the code, where nothing else fails; empty where the code may be wrong.

        A granted file is there for the checks too, so an example says which one is meant.
        """
        case, outside = self._case, self._diagnosis.outside
        if not outside or case.failure is None or (self._entry.grants.read and is_provable(case)):
            return ""
        told = f"{case.failure.ename}: "
        failed = [was.failure for was in case.base if was.outcome not in ("passed", "not_on_record")]
        return outside if all(failure.startswith(told) for failure in failed) else ""

    @property
    def _may_act(self) -> bool:
        """True for a tool with declared side effects where nothing keeps its code from having them."""
        return self._isolation == "process" and bool(self._entry.flags.get("side_effects"))

    def _is_nested(self, check: Check) -> bool:
        """Return True for the input of an execution that another tool asked for."""
        return check.log_id is not None and nested_grants(self._hk.log.get(check.log_id)) is not None

    def _recorded_runs(self) -> Iterator[ExecutionLog]:
        """Yield the executions whose calls answer those of checks: those that are checks, then other recent ones."""
        log, own = self._hk.log, [check.log_id for check in self._case.checks] + [self._log_id]
        if self._blamed is not None:
            yield from self._blamed.callers
        if "mcp" not in self._entry.code:
            return
        known = list(dict.fromkeys(log_id for log_id in own if log_id is not None))
        yield from filter(None, map(log.get, known))
        entry = self._entry
        others = log.query(
            tool=entry.tool_name, persona=self._only or entry.persona, tried=False, limit=_RUNS_MAX
        ).rows
        yield from (row for row in others if row.id not in known and row.status != "RUNNING")

    def _keep_attempts(self, attempts: Sequence[Attempt]) -> None:
        self._case = dataclasses.replace(self._case, attempts=tuple(attempts))

    def _settle(self) -> None:
        """Run the tool as it is on every check, and leave out the checks that do not count."""
        case = self._case
        if self._may_act:
            self._notes.append(
                "The tool has side effects and runs without isolation, so nothing of it was run."
            )
            self._case = dataclasses.replace(case, checks=(), untried=True)
            return
        checks = [check for check in case.checks if self._validator.fits(check)]
        if case.base:
            self._bench.know(case.checks, case.base)
        base = list(case.base) or self._validator.run(self._entry.code, checks)
        if self._fails_in_worker_only(checks, base):
            self._notes.append("A trial does not fail as the run did, so each check is run in a worker.")
            self._validator.use_workers()
            checks = [check for check in checks if self._validator.fits(check)]
            base = self._validator.run(self._entry.code, checks)
        base = [self._told_as_memory(check, was) for check, was in zip(checks, base, strict=True)]
        if self._lacks_grants:
            self._validator.find_lacking(checks, base)
        again = [self._rerun(check, was) for check, was in zip(checks, base, strict=True)]
        kept = settled(checks, base, again)
        if (
            self._blamed is None and not self._is_cell
        ):  # else it is known that the called tool made its callers fail
            passed = [check for check, was in zip(checks, base, strict=True) if was.outcome == "passed"]
            kept = tuple(check for check in kept if not check.shown or check in passed)
        self._note_missing(checks, base)
        results = tuple(result for check, result in zip(checks, base, strict=True) if check in kept)
        self._say(_standing(sum(result.outcome != "passed" for result in results), len(kept)))
        left_out = any(check.sampled and check not in kept for check in checks)
        if left_out:
            self._notes.append(
                "The failing frame is too long to be tried; a sample of its rows does not fail."
            )
        failing = [check for check in checks if check.origin == "failing"]
        untried = case.untried or bool(failing and not any(check in kept for check in failing))
        self._case = dataclasses.replace(case, checks=kept, base=results, untried=untried)

    def _note_missing(self, checks: Sequence[Check], base: Sequence[CheckResult]) -> None:
        """Say which calls of recorded runs are not on record, so that these runs say nothing."""
        missing = [
            was.failure.partition(": ")[2].removesuffix(", so it was not made")
            for check, was in zip(checks, base, strict=True)
            if was.outcome == "not_on_record" and check.origin in ("failing", "passing")
        ]
        self._notes += [f"{one[:1].upper()}{one[1:]}." for one in dict.fromkeys(missing)]

    def _rerun(self, check: Check, was: CheckResult) -> CheckResult | None:
        """Run a recorded run's check with the code it had; return None for any other check, and one that passed."""
        if check.origin != "passing" or was.outcome == "passed":
            return None
        code = own_code(self._hk.vault, self._hk.log, self._entry, check)
        return was if code is None else self._validator.run(code, [check])[0]

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
            said = f"{type(error).__name__}: {' '.join(str(error).split())[:_SAID_CHARS]}".rstrip(": ")
            error = HealError(
                f"This advisor failed with {said}.", hint="The other advisors are asked as usual."
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
        said = f"{patch.advisor}: {patch.reason} {VERDICTS[attempt.verdict].words.capitalize()}{why}."
        if attempt.verdict == "silenced":
            self._silenced.append(said)
        else:
            self._say(said)
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
            said = "" if answer is None else answer.text
            self._questions.append(Answered(question.call, choices, said or None))
            self._record.replied(question.call, said, time.monotonic() - asked_at)
        if answer is None:
            said = "" if self._case.discreet else f": {' or '.join(choices)}"
            self._notes.append(
                f"Plausible patches disagree on {question.call}{said}. None of them is known to be right."
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
            found = VERDICTS[attempt.verdict].words.capitalize()
            doubt = "" if self._case.discreet else f": {attempt.patch.doubt}"  # it may name what was returned
            self._say(f"{attempt.patch.advisor}: {attempt.patch.reason} {found}{doubt}")
        self._keep_attempts(self._ranked())

    # The decision.

    @property
    def _best(self) -> Attempt | None:
        """Likeliest patch that passes every check; None where none does."""
        first = next(iter(self._case.attempts), None)
        return first if first is not None and first.plausible else None

    def _decide(self) -> Ending:
        """Decide on the likeliest patch: the policy first, then the person."""
        best, options = self._best, self._options
        if best is None:
            return self._left_to_a_person() or Ending("not_cured", self._nothing_cures())
        if options.dry_run:
            return Ending("shown", "It is shown only, as was asked for; nothing was kept.")
        tool, step = self._entry.tool_name, best.step_id or ""
        word = decide(
            tool,
            best.verdict,
            best.patch.author,
            self._hk.config,
            persona=self._entry.persona,
            client=options.client,
            auto=options.auto,
            watched=self._watched or bool(best.reach),
        )
        if word == "deny":
            self._record.decided(step, "denied")
            return Ending("denied", f"The policy forbids patches of {tool!r} (heal_deny); it is shown only.")
        if word == "allow":
            return self._apply(best)
        # On record before anyone is asked: no end of this process loses it.
        request = self._request(best)
        said = None
        if options.confirm is not None:
            with self._bench.off_the_clock():
                said = options.confirm(self._shown(best))
        if said is None:
            self._record.decided(step, request.state, request_id=request.id)
            if request.state == "pending":
                reason = f"It is waiting for approval as request {request.id}."
                return Ending("pending", reason, request_id=request.id)
            reason = f"The same patch was {request.state} before, as request {request.id}."
            return Ending("declined", reason, request_id=request.id)
        if not said:
            if request.state == "pending":
                self._hk.requests.decline(request.id, "declined when it was proposed", in_run=True)
            self._record.decided(step, "declined")
            return Ending("declined", "The patch was declined; nothing was changed.")
        return self._apply(best, request)

    def _left_to_a_person(self) -> Ending | None:
        """Leave an agent's patch that nothing speaks against as a request: it cannot name what its checks need."""
        undecided = (
            one for one in self._case.attempts if one.verdict == "undecided" and one.patch.author == "agent"
        )
        if (attempt := next(undecided, None)) is None or self._options.dry_run:
            return None
        tool, options = self._entry.tool_name, self._options
        if denied(tool, self._hk.config, self._entry.persona, options.client):
            return None
        request = self._request(attempt)
        self._record.decided(attempt.step_id or "", request.state, request_id=request.id)
        if request.state != "pending":
            reason = f"The same patch was {request.state} before, as request {request.id}."
            return Ending("declined", reason, request_id=request.id)
        return Ending(
            "pending", f"Request {request.id} waits: a person has to decide it.", request_id=request.id
        )

    def _apply(self, best: Attempt, request: PatchRequest | None = None) -> Ending:
        """Make the patch a revision, with the answers as examples; take it back if it fails on the execution path."""
        entry, step, vault = self._entry, best.step_id or "", self._hk.vault
        try:
            kept = self._revision_of(best, request)
        except RevisionConflict as conflict:
            request = self._request(best)
            self._record.decided(step, request.state, request_id=request.id)
            self._record.error_raised(step, conflict)
            reason = f"The tool was changed meanwhile; the patch is kept as request {request.id}."
            return Ending("pending", reason, request_id=request.id)
        self._record.decided(step, "kept", revision=kept.revision)
        for check in self._case.checks:
            if check.origin == "answered":  # in its kept form
                right = {"raises": check.raises} if check.raises else {"result": check.expected}
                example = {"arguments": check.arguments, **right}
                vault.add_example(entry.tool_name, example, persona=entry.persona)
        problem = self._problem_of(kept)
        if not problem:
            said = VERDICTS[best.verdict].words
            return Ending("kept", f"{kept.label} is active: {said}.", kept.revision)
        failed = refuted(best, problem)
        if not self._record.recovering(step, problem):
            halt = self._record.run.halted
            why = "" if halt is None else f" {halt.reason}"
            reason = f"{kept.label} fails when it runs ({problem.rstrip('.')}), and stays active.{why}"
            return Ending("halted", reason, kept.revision, refuted=failed)
        back = vault.revert(
            entry.tool_name, entry.revision, persona=entry.persona, reason=f"rolled back: {problem}"
        )
        self._record.recovered(step, back.revision)
        return Ending("rolled_back", f"It was taken back: {problem}", back.revision, refuted=failed)

    def _revision_of(self, best: Attempt, request: PatchRequest | None) -> VaultEntry:
        """Keep the patch; a pending request for it is accepted in the same transaction."""
        hk, entry = self._hk, self._entry
        if request is not None and request.state == "pending":
            accepted = hk.requests.accept(request.id, in_run=True)
            return hk.vault.get(entry.tool_name, entry.persona, revision=accepted.revision)
        return hk.vault.patch(
            entry.tool_name,
            best.patch.code,
            persona=entry.persona,
            reason=f"{best.patch.reason} [{VERDICTS[best.verdict].words}]",
            author=best.patch.author,
            parent=entry.revision,
            motivating_log_id=self._log_id,
        )

    def _request(self, best: Attempt) -> PatchRequest:
        """Add a request for the patch; one that was decided before keeps its state."""
        requests: Requests = self._hk.requests
        return requests.add(
            self._entry.tool_name,
            best.patch.code,
            persona=self._entry.persona,
            parent=self._entry.revision,
            advisor=best.patch.advisor,
            author=best.patch.author,
            reason=best.patch.reason,
            verdict=best.verdict,
            motivating_log_id=self._log_id,
            run_id=self._record.run.run_id,
        )

    def _problem_of(self, kept: VaultEntry) -> str:
        """Run the new revision once as any execution, on the failing input; return its problem, or an empty text."""
        checks = self._case.checks
        chosen = next((c for c in checks if c.origin == "failing"), None) or next(
            (c for c in checks if not c.call and not c.raises), None
        )
        if chosen is None or self._may_act:
            return ""
        replay = self._validator.replay(chosen)
        try:
            execution = execute_check(self._hk, kept, chosen, replay)
        except HealkitError as error:
            return error.message
        finally:
            self._validator.count(replay)
        if self._case.discreet:
            return why_not([chosen], [result_of(chosen, execution, 0.0)], discreet_about=kept.code)
        if execution.failure is not None:
            return execution.failure.summary
        if chosen.known and not values.meets(chosen.expected, execution.value):
            returned = values.text_of(values.kept(execution.value))
            return f"it returned {returned} where {values.text_of(chosen.expected)} is right."
        return ""

    # The report, and what is said on the way.

    def _report_of(self, ending: Ending, run: OpenRun) -> HealReport:
        case, best = self._case, ending.refuted or self._best
        passed = sum(result.outcome == "passed" for result in case.base)
        nearer = [attempt for attempt in case.attempts if attempt.passed > passed]
        report = HealReport(
            tool_name=self._entry.tool_name,
            persona=self._entry.persona,
            label=self._entry.label,
            outcome=ending.outcome,
            reason=ending.reason,
            diagnosis=self._diagnosis.sentence,
            attempts=tuple(best if best and one.number == best.number else one for one in case.attempts),
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
        answered, made = self._validator.answered, self._validator.made
        if not answered and not made and "mcp" not in self._entry.code:
            return []
        more = " and ".join(f'"{name}:N"' for name in self._calls.refused)
        least = [f"As many live calls as were allowed were made; to allow N: live=[{more}]."] if more else []
        return [f"{plain.count(answered, 'call')} answered from the record, {made} live.", *least]

    def _grants_note(self) -> list[str]:
        """Say which checks no patch could be decided by, for want of a grant that was not named."""
        checks, attempts = self._case.checks, self._case.attempts
        tried = [one.results for one in attempts] or [self._validator.bare(checks)]
        lacking = [(at, name) for row in tried for at, one in enumerate(row) if (name := missing_grant(one))]
        if not lacking:
            return []
        many = plain.count(len({at for at, _ in lacking}), "check")
        names = " and ".join(dict.fromkeys(self._as_granted(*name) for _, name in lacking))
        said = f"{many} of {len(checks):,} not decided for new code, which has no grants of the tool's: allow {names}."
        return [said]

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
        said, self._silenced = self._silenced, []
        if said and self._options.progress is not None:
            advisor = said[0].partition(":")[0]
            many = f"{advisor}: {len(said)} patches only hide the error."
            self._options.progress(self._shown(said[0]) if len(said) == 1 else many)


def _standing(failed: int, checks: int) -> str:
    """Say how many checks fail before any patch."""
    if checks == 1:
        return f"Before any patch, the check {'fails' if failed else 'passes'}."
    if failed == checks and checks:
        return f"Before any patch, all {checks} checks fail."
    fail = "fails" if failed == 1 else "fail"
    return f"Before any patch, {failed or 'none'} of {plain.count(checks, 'check')} {fail}."


def _next(proposals: Iterator[Patch], attempt: Attempt | None) -> Patch | None:
    """Return the next patch; an advisor that is a generator gets the attempt with the last one."""
    send: Callable[[Attempt | None], Patch | None] | None = getattr(proposals, "send", None)
    try:
        patch = send(attempt) if send is not None else next(proposals)
    except StopIteration:
        return None
    return patch
