"""Reproduction of a failure, with the code as it is.

It runs the checks of a case, and decides which of them count.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from healkit.core.contracts.patches import Check, CheckResult
from healkit.core.rendering import plain
from healkit.parts.heal.advisor import Case
from healkit.parts.heal.case import Diagnosis, own_code, settled
from healkit.parts.heal.chance import (
    FRESH_RUNS,
    PASSING_RUNS,
    RUNS,
    SET_ORDER,
    SURE_RUNS,
    Chance,
    chance_in,
    chance_of,
    on_record,
)
from healkit.parts.heal.context import HealContext
from healkit.parts.heal.deciding import Ending
from healkit.parts.heal.verdicts import is_provable

if TYPE_CHECKING:
    from healkit.core.store.models import ExecutionLog

#: Time that a run in an interpreter of its own takes about.
_FRESH_S = 0.7


class Reproduction:
    """Runs the unpatched code of one healing."""

    def __init__(self, context: HealContext) -> None:
        self._context, self._hk, self._entry = context, context.hk, context.entry
        self._bench, self._validator = context.bench, context.validator
        self._notes = context.voice.notes

    def reproduced(self, case: Case, diagnosis: Diagnosis) -> tuple[Case, Ending | None]:
        """Run the code on every check; return the case with those that count, and the ending if chance decides."""
        return self._without_chance(self._settled(case), outside=bool(diagnosis.outside))

    def _settled(self, case: Case) -> Case:
        """Run the unpatched tool on every check, and leave out the checks that do not count."""
        if self._context.may_act:
            self._notes.append(
                "The tool has side effects and runs without isolation, so healkit did not run it."
            )
            return dataclasses.replace(case, checks=(), untried=True)
        checks = [check for check in case.checks if self._validator.fits(check)]
        if case.base:
            self._bench.know(case.checks, case.base)
        base = list(case.base) or self._validator.run(self._entry.code, checks)
        if self._fails_in_worker_only(checks, base):
            self._notes.append("A trial does not fail as the execution did, so each check runs in a worker.")
            self._validator.use_workers()
            checks = [check for check in checks if self._validator.fits(check)]
            base = self._validator.run(self._entry.code, checks)
        base = [self._told_as_memory(check, was) for check, was in zip(checks, base, strict=True)]
        if self._context.lacks_grants:
            self._validator.find_lacking(checks, base)
        again = [self._rerun(check, was) for check, was in zip(checks, base, strict=True)]
        remaining = settled(checks, base, again)
        if (
            self._context.blamed is None and not self._context.is_cell
        ):  # else it is known that it made its callers fail
            passed = [check for check, was in zip(checks, base, strict=True) if was.outcome == "passed"]
            remaining = tuple(check for check in remaining if not check.shown or check in passed)
        self._note_missing(checks, base)
        results = tuple(result for check, result in zip(checks, base, strict=True) if check in remaining)
        self._context.voice.say(
            _standing(sum(result.outcome != "passed" for result in results), len(remaining))
        )
        left_out = any(check.sampled and check not in remaining for check in checks)
        if left_out:
            self._notes.append(
                "The failing frame is too long to try, and a sample of its rows does not fail."
            )
        failing = [check for check in checks if check.origin == "failing"]
        untried = case.untried or bool(failing and not any(check in remaining for check in failing))
        return dataclasses.replace(case, checks=remaining, base=results, untried=untried)

    def _note_missing(self, checks: Sequence[Check], base: Sequence[CheckResult]) -> None:
        """Say which calls of recorded runs are not on record, so that these runs are not evidence."""
        missing = [
            was.failure.partition(": ")[2].removesuffix(", so it was not made")
            for check, was in zip(checks, base, strict=True)
            if was.outcome == "not_on_record" and check.origin in ("failing", "passing")
        ]
        self._notes += [f"{message[:1].upper()}{message[1:]}." for message in dict.fromkeys(missing)]

    def _rerun(self, check: Check, was: CheckResult) -> CheckResult | None:
        """Run a recorded run's check with its old code; return None for any other check, and one that passed."""
        if check.origin != "passing" or was.outcome == "passed":
            return None
        code = own_code(self._hk.vault, self._hk.log, self._entry, check)
        return was if code is None else self._validator.run(code, [check])[0]

    def _fails_in_worker_only(self, checks: Sequence[Check], base: Sequence[CheckResult]) -> bool:
        """Return True if a recorded run of the same code failed, and it also fails in a worker, but not in a trial."""
        code = self._entry.code
        if not self._validator.light or chance_in(code) not in ("", SET_ORDER):
            return False
        passed = (check for check, was in zip(checks, base, strict=True) if was.outcome == "passed")
        suspects = [check for check in passed if not check.call and self._own_failure(check) is not None]
        again = (self._validator.in_worker(code, check) for check in suspects)
        return any(result.outcome not in ("passed", "not_on_record") for result in again)

    def _without_chance(self, case: Case, *, outside: bool) -> tuple[Case, Ending | None]:
        """Repeat the checks that chance may decide, and leave those out; with the ending if no other fails.

        outside: The failure's cause may be outside the code.
        """
        remaining, chances = list(zip(case.checks, case.base, strict=True)), list[Chance]()
        source = chance_in(self._entry.code) if self._entry.type == "python" else ""

        def divide(pairs: Sequence[tuple[Check, CheckResult]], runs: int) -> None:
            for check, was in pairs:
                chance = self._chance_of(check, was, source, runs, outside=outside)
                if chance is not None and case.discreet:
                    chance = dataclasses.replace(chance, failure="")
                if chance is None:
                    continue
                remaining[:] = [pair for pair in remaining if pair[0] is not check]
                if check.origin != "passing":
                    chances.append(chance)
                    self._notes.append(chance.sentence)

        divide(tuple(remaining), RUNS)
        if chances and source not in ("", SET_ORDER) and self._validator.light:
            # What failed each time beside what varies may vary as well, and rarely pass.
            failed = [pair for pair in remaining if pair[1].outcome != "passed" and not pair[1].answered]
            divide(failed, SURE_RUNS)
        if len(remaining) < len(case.checks):
            untried = case.untried or any(varied.check.origin == "failing" for varied in chances)
            checks, base = tuple(check for check, _ in remaining), tuple(was for _, was in remaining)
            case = dataclasses.replace(case, checks=checks, base=base, untried=untried)
        if not chances or any(was.outcome != "passed" for _, was in remaining):
            return case, None
        self._notes.remove(chances[0].sentence)
        reason = f"{chances[0].sentence} No patch can be checked against that. {chances[0].advice}"
        return case, Ending("by_chance", reason)

    def _chance_of(
        self, check: Check, was: CheckResult, source: str, runs: int, *, outside: bool
    ) -> Chance | None:
        """Repeat a check that chance may decide; return how often it failed, None if it does not vary."""
        clear, is_decisive = "" if source == SET_ORDER else source, check.origin != "passing"
        recorded = on_record(self._hk.log, self._entry, check) if is_decisive else None
        row = self._own_failure(check) if is_decisive else None
        fresh = (source == SET_ORDER or recorded is not None) and not clear and not was.answered
        if not is_decisive:
            runs = PASSING_RUNS if clear and self._validator.light else 1
        elif not (clear or recorded or (row is not None and was.outcome == "passed")):
            runs = 1
        else:
            runs = FRESH_RUNS if fresh else runs
        room = int(self._bench.left_s / 4 / (_FRESH_S if fresh else max(was.duration_s, 0.01))) + 1
        if min(runs, room) < 2 or was.outcome == "not_on_record":
            return None
        results = [was, *self._validator.repeat(self._entry.code, check, min(runs, room) - 1, fresh=fresh)]
        chance = chance_of(check, results, source)
        if chance is not None or not is_decisive or (outside and not clear):
            return chance
        if recorded is not None and was.answered:
            self._notes.append(f"{recorded.counts} The result depends on the answers of its calls.")
            return None
        if recorded is None and clear and row is not None and was.outcome == "passed":
            return Chance(check, 1, len(results) + 1, source, f"{row.ename}: {row.evalue}")
        return None if recorded is None else dataclasses.replace(recorded, source=source)

    def _told_as_memory(self, check: Check, was: CheckResult) -> CheckResult:
        """Return an out-of-memory result for a check that was stopped earlier, but ran out of memory on record."""
        row = self._own_failure(check) if was.outcome == "timeout" else None
        code = "" if row is None else row.error_code
        return msgspec.structs.replace(was, error_code=code) if code == "TOOL_OUT_OF_MEMORY" else was

    def _own_failure(self, check: Check) -> ExecutionLog | None:
        """Return the row of a check's recorded failure, if it ran the code as it is."""
        row = None if check.log_id is None else self._hk.log.get(check.log_id)
        same = row is not None and row.code_hash == self._entry.code_hash and row.status == "FAILURE"
        return row if same else None

    def healthy(self, case: Case) -> str:
        """Say that nothing fails, and the known facts about a failure of the same code."""
        row = next(filter(None, map(self._own_failure, case.checks)), None)
        if row is None:
            return "Every check passes with the code as it is; nothing fails any more."
        error = f"{row.ename}: {row.evalue}" if row.evalue else row.ename
        return (
            f"Every check passes with the code as it is, but log row {row.id} failed with the same code "
            f"({error}). So something outside the code is the cause, such as a file, the time, or chance."
        )

    def cause_outside(self, case: Case, outside: str) -> str:
        """Say what has to change outside the code, if nothing else fails; empty if the code may be wrong.

        outside: The diagnosis' sentence about it. A granted file exists for the checks too, so an example says which
            one is meant.
        """
        if not outside or case.failure is None or (self._entry.grants.read and is_provable(case)):
            return ""
        prefix = f"{case.failure.ename}: "
        failed = [was.failure for was in case.base if was.outcome not in ("passed", "not_on_record")]
        return outside if all(failure.startswith(prefix) for failure in failed) else ""


def _standing(failed: int, checks: int) -> str:
    """Say how many checks fail before any patch."""
    if checks == 1:
        return f"Before any patch, the check {'fails' if failed else 'passes'}."
    if failed == checks and checks:
        return f"Before any patch, all {checks} checks fail."
    fail = "fails" if failed == 1 else "fail"
    return f"Before any patch, {failed or 'none'} of {plain.count(checks, 'check')} {fail}."
